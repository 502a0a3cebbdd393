"""Platforms: discovery and look-up of the platform modules. They are found by name, not listed anywhere.

A platform is a module with the names of `model.Platform`, and perhaps some of `model.PlatformOptions`: pure functions
and declarations. It never uses the database, never sends a request, never reads the clock: it returns the requests to
send next. Modules of this folder are found by name; third-party packages register theirs through the entry point
`catchment.platforms`.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from inspect import Signature, isfunction, signature
from types import ModuleType
from typing import Any, cast, get_args, get_origin, get_type_hints

from catchment.errors import CatchmentError, InvalidInput
from catchment.lazy import lazy_imports
from catchment.messages import Message, message
from catchment.model import (
    Kind,
    Listing,
    Order,
    PlanPart,
    Platform,
    PlatformOptions,
    Request,
    Service,
    options,
)

with lazy_imports():
    from importlib import metadata

__all__ = [
    "ANNOUNCED",
    "Platform",
    "Platforms",
    "installed",
    "listing_of",
    "no_platform",
    "platform_named",
    "protocol_faults",
    "services_of",
    "unknown",
]

log = logging.getLogger(__name__)

_LONGEST = 50
"""How much of an unknown name an error repeats."""
_MOST_DIFFERENT = 0.15
"""The share of different characters up to which a constant is taken for a misspelt one of the protocol."""


ANNOUNCED = {
    "twitter_feed": ("x", "@nasa"),
    "twitter_list": ("x", "https://x.com/i/lists/84839422"),
    "twitter_bookmarks": ("x", "https://x.com/i/bookmarks"),
    "nga_forum": ("nga", "7"),
    "xhs_keyword": ("xiaohongshu", "露营"),
    "xhs_note": ("xiaohongshu", "https://www.xiaohongshu.com/explore/64b95d01000000000c034587"),
}
"""Kinds that catchment's specifications name, and whose platform need not be installed, with its name and an example of
a target. Such sources are kept, and skipped until there is a platform for them."""
NAMES: dict[str, dict[str, str]] = {
    "kind": {"xhs_keyword": "Xiaohongshu search", "xhs_note": "Xiaohongshu note"},
    "platform": {"xiaohongshu": "Xiaohongshu"},
    "what": {"absent": "Stored now; collected once a platform for it is installed"},
}
"""Texts of those kinds whose platform does not ship with catchment."""
WAITS_FOR_PLATFORM = NAMES["what"]["absent"]


class Platforms:
    """The platforms of this installation, by name and by kind."""

    def __init__(self, modules: tuple[Platform, ...]) -> None:
        self.by_name = {module.NAME: module for module in modules}
        self._by_kind = {kind.name: (module, kind) for module in modules for kind in module.KINDS}
        self.services = {service.NAME: service for module in modules for service in _services(module)}
        """What requests are sent to, by name: the services of platforms that declare some, else the platform itself."""
        self.without_services = frozenset(module.NAME for module in modules if not services_of(module))
        self.paid = frozenset(module.NAME for module in modules if any(map(_is_paid, _services(module))))
        """Platforms that have a service which charges for what it answers."""
        self.of_one_site = frozenset(module.NAME for module in modules if module.HOSTS)
        """Platforms whose sources share a host; elsewhere each source has a host of its own."""
        self.titles = {
            "kind": NAMES["kind"] | {kind.name: kind.title or kind.name for kind in self.kinds()},
            "platform": NAMES["platform"] | {module.NAME: getattr(module, "TITLE", module.NAME) for module in modules},
        }
        """What pages call kinds and platforms, in English."""
        self.chinese: dict[str, str] = {}
        """Chinese for English texts of platforms."""
        for module in modules:
            self.chinese |= getattr(module, "CHINESE", {})

    def __iter__(self) -> Iterator[Platform]:
        return iter(self.by_name.values())

    def of_kind(self, kind: str) -> Platform | None:
        """Returns the platform of a kind; None for a kind that this installation does not know: skipped, never an
        error."""
        entry = self._by_kind.get(kind)
        return entry[0] if entry else None

    def kind(self, name: str) -> Kind | None:
        entry = self._by_kind.get(name)
        return entry[1] if entry else None

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for _, kind in self._by_kind.values())

    def item_kinds(self) -> set[str]:
        """Returns the kinds that items of these platforms have."""
        return {name for kind in self.kinds() for name in kind.item_kinds}

    def needed(self, kind: str) -> Platform:
        platform = self.of_kind(kind)
        if platform is None and kind in ANNOUNCED:
            raise InvalidInput(no_platform(kind), "install a package that provides it", "kind")
        if platform is None:
            raise unknown("kind", kind, {*self._by_kind, *ANNOUNCED})
        return platform

    def absent_kinds(self) -> tuple[Kind, ...]:
        """Returns the known kinds for which no platform is installed, as far as they can be described."""
        return tuple(
            Kind(name, WAITS_FOR_PLATFORM, interval_minutes=60, example=example, listings=())
            for name, (_, example) in ANNOUNCED.items()
            if self.of_kind(name) is None
        )

    def announced(self, kind: str) -> str | None:
        """Returns the platform of a known kind if it is not installed."""
        return ANNOUNCED[kind][0] if kind in ANNOUNCED and self.of_kind(kind) is None else None

    def service(self, name: str) -> Platform:
        """Returns what has credentials, a budget and a base URL of its own under that name."""
        if name not in self.services:
            raise unknown("platform", name, self.services)
        return self.services[name]

    def recipient(self, platform: Platform, request: Request) -> Platform:
        """Returns what the request is sent to: the service that it names, else the platform."""
        return self.services[request.service] if request.service else platform

    def named(self, name: str, *others: str) -> str:
        """Returns the name if a platform has it: one of this installation, or of the known `others`."""
        names = {*self.by_name, *others}
        if name not in names:
            raise unknown("platform", name, names)
        return name


class _ServiceOf:
    """A platform as one of its services is reached: its own name, hosts, budget, credential settings, probe and
    prices."""

    def __init__(self, platform: Platform, service: Service) -> None:
        self._platform = platform
        self.NAME, self.HOSTS, self.BUDGET = service.name, service.hosts, service.budget
        if service.credential_settings is not None:
            self.CREDENTIAL_SETTINGS = service.credential_settings
        if service.probe is not None:
            self.PROBE = service.probe
        if service.prices is not None:
            self.PRICES = service.prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)


def _services(platform: Platform) -> tuple[Platform, ...]:
    declared = services_of(platform)
    return tuple(cast(Platform, _ServiceOf(platform, service)) for service in declared) or (platform,)


def _is_paid(service: Platform) -> bool:
    return hasattr(service, "PRICES")


def services_of(platform: Platform) -> tuple[Service, ...]:
    """Returns the services that a platform declares; empty: it is its own only one."""
    return options(platform).SERVICES if hasattr(platform, "SERVICES") else ()


def no_platform(kind: str) -> Message:
    return message("visit.no_platform", kind=kind)


def unknown(what: str, name: str, known: Iterable[str], field: str | None = None) -> InvalidInput:
    """Returns the error for an unknown name: with the nearest known one, and with all. `what` is one of: kind, platform
    …"""
    names = sorted(known)
    lowered = {text.lower(): text for text in names}
    near = get_close_matches(name.lower(), lowered, n=1)
    return InvalidInput(
        "unknown {subject} {name!r}",
        "did you mean {meant}? known: {names}" if near else "known: {names}",
        field or what,
        subject=what,
        name=name[:_LONGEST],
        meant=lowered[near[0]] if near else None,
        names=", ".join(names),
    )


def listing_of(kind: Kind, name: str) -> Listing:
    """Returns the listing of that name; the kind's default for an unknown one."""
    return next((listing for listing in kind.listings if listing.name == name), kind.listings[0])


@cache
def platform_named(name: str) -> Platform | None:
    """Returns the platform with this name; one of ours without loading the others."""
    if any(info.name == name for info in pkgutil.iter_modules(__path__)):
        module = _module(name)
        if getattr(module, "NAME", None) == name:
            return cast(Platform, module)
    return installed().by_name.get(name)


@cache
def installed() -> Platforms:
    """Returns all platforms: our modules, then those of installed packages.

    Raises CatchmentError for a module of ours that cannot be loaded or does not follow the protocol; a
    third-party package of that sort is logged and ignored.
    """
    loaded: list[Platform] = []
    for info in pkgutil.iter_modules(__path__):
        module = _module(info.name)
        if hasattr(module, "NAME"):
            if faults := [*_name_faults(module, info.name), *protocol_faults(module, loaded)]:
                raise CatchmentError(
                    "platform {name} does not follow the protocol: {faults}",
                    "correct its module; docs/adding-a-platform.md lists what a module has",
                    name=info.name,
                    faults="; ".join(faults),
                )
            loaded.append(cast(Platform, module))
    for entry in metadata.entry_points(group="catchment.platforms"):
        try:
            module = entry.load()
            faults = protocol_faults(module, loaded)
        except Exception as error:  # noqa: BLE001 — third-party code: whatever it raises must not stop ours
            log.warning("platform package %s cannot be loaded: %s", entry.name, error)
            continue
        if faults:
            log.warning("platform package %s is left out: %s", entry.name, "; ".join(faults))
        else:
            loaded.append(cast(Platform, module))
    return Platforms(tuple(loaded))


def _module(name: str) -> ModuleType:
    path = f"{__name__}.{name}"
    try:
        return importlib.import_module(path)
    except Exception as error:
        raise CatchmentError(
            "platform {name} cannot be loaded: {error_type}: {error}",
            'python -c "import {path}" shows where',
            name=name,
            error_type=type(error).__name__,
            error=str(error),
            path=path,
        ) from error


def _name_faults(module: ModuleType, name: str) -> list[str]:
    return [] if name == module.NAME else [f"NAME is {module.NAME!r}; it must be the name of the module, {name!r}"]


def protocol_faults(module: ModuleType, others: Iterable[Platform] = ()) -> list[str]:
    """Returns how a module differs from the protocol: names that are missing, misspelt or of the wrong form.

    Public functions that the protocol does not have are taken for misspelt: helpers begin with an underscore.
    """
    missing = [f"it has no {name}" for name in _members(Platform) if not hasattr(module, name)]
    members = {**_members(Platform), **_members(PlatformOptions)}
    faults = [fault for name in members if hasattr(module, name) and (fault := _fault(module, name, members[name]))]
    if missing or faults:
        return missing + faults + _misspelt(module, members)
    taken = {kind.name for other in others for kind in other.KINDS} | {other.NAME for other in others}
    taken |= {service.name for other in others for service in services_of(other)}
    names = [module.NAME, *(kind.name for kind in module.KINDS), *(service.name for service in services_of(module))]
    is_half_a_login = hasattr(module, "login") != hasattr(module, "token")
    return [
        *_misspelt(module, members),
        *(f"another platform has the name {name}" for name in dict.fromkeys(names) if name in taken),
        *(f"kind {kind.name}: {fault}" for kind in module.KINDS for fault in _kind_faults(kind, module)),
        *(["login and token go together: it has one of them"] if is_half_a_login else []),
        *_service_faults(module),
    ]


def _service_faults(module: ModuleType) -> Iterator[str]:
    services: tuple[Service, ...] = getattr(module, "SERVICES", ())
    if not services:
        return
    if len({service.name for service in services}) < len(services):
        yield "its services need different names"
    if {host for service in services for host in service.hosts} != set(module.HOSTS):
        yield "HOSTS are not the hosts of its services"
    if sum(len(service.hosts) for service in services) > len(module.HOSTS):
        yield "two services share a host: a credential of the one would be sent to the other"
    if module.BUDGET is not None:
        yield "its services have the budgets: BUDGET must be None"
    if hasattr(module, "PRICES"):
        yield "its services have the prices: there must be no PRICES"


def _members(protocol: type) -> dict[str, Any]:
    """Returns the names of a protocol: of constants with their types, of functions with their signatures."""
    functions = {name: value for name, value in vars(protocol).items() if isfunction(value) and name[0] != "_"}
    return {**get_type_hints(protocol), **{name: signature(function) for name, function in functions.items()}}


def _fault(module: ModuleType, name: str, declared: Any) -> str | None:
    value = getattr(module, name)
    if not isinstance(declared, Signature):
        if get_origin(declared) is tuple:
            is_right = isinstance(value, tuple) and all(isinstance(entry, get_args(declared)[0]) for entry in value)
        else:
            is_right = isinstance(value, dict if get_origin(declared) is dict else declared)
        return None if is_right else f"{name} is not of the type {declared}"
    parameters = list(declared.parameters)[1:]
    try:
        signature(value).bind(*parameters)
    except (TypeError, ValueError):
        return f"{name} does not take ({', '.join(parameters)})"
    return None


def _misspelt(module: ModuleType, members: Mapping[str, Any]) -> list[str]:
    public = {name: value for name, value in vars(module).items() if name[0] != "_" and name not in members}
    own = [name for name, value in public.items() if isfunction(value) and value.__module__ == module.__name__]
    near = [name for name in public if name.isupper() and _is_nearly_one_of(name, members)]
    faults = []
    for name in (*own, *near):
        similar = get_close_matches(name, members, n=1)
        meant = f" (did you mean {similar[0]}?)" if similar else ": helpers begin with an underscore"
        faults.append(f"the protocol has no {name}{meant}")
    return faults


def _is_nearly_one_of(name: str, members: Iterable[str]) -> bool:
    # By lengths and letters first: every start of a command compares thousands of pairs, and nearly all of them differ.
    letters = set(name)
    similar = [
        member
        for member in members
        if abs(len(member) - len(name)) <= (most := _MOST_DIFFERENT * (len(member) + len(name)))
        and len(letters.symmetric_difference(member)) <= most
    ]
    return bool(similar and get_close_matches(name, similar, n=1, cutoff=1 - _MOST_DIFFERENT))


def _kind_faults(kind: Kind, module: ModuleType) -> Iterator[str]:
    orders = {listing.name: listing.order for listing in kind.listings}
    if len(orders) != len(kind.listings) or not orders:
        yield "it needs listings, each with a name of its own"
    if kind.newest is not None and orders.get(kind.newest) != Order.NEWEST_FIRST:
        yield f"newest={kind.newest!r} is not the name of a newest-first listing"
    stream = kind.forum.stream if kind.forum else None
    if stream is not None and (orders.get(stream) != Order.NEWEST_FIRST or stream == kind.listings[0].name):
        yield f"stream={stream!r} is not the name of a newest-first listing after the first"
    if kind.recheck_ages and not hasattr(module, "recheck"):
        yield "it has recheck_ages, and the module has no recheck"
    if kind.gap_repair and not hasattr(module, "reach"):
        yield "it has gap_repair, and the module has no reach"
    deciding = [field for field in kind.fields if field.decides is not None]
    for part in PlanPart:
        if len(names := [field.name for field in deciding if field.decides == part]) > 1:
            yield f"several settings decide the {part}: {', '.join(names)}"
    for field in deciding:
        if field.decides == PlanPart.LISTING and not (field.choices and orders.keys() >= set(field.choices)):
            yield f"the choices of {field.name} are not names of its listings"
