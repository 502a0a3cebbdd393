"""The platforms: one module each, found by looking, listed nowhere.

A platform is a module with the names of `model.Platform` (pure functions and declarations). It never sees the
database, never sends a request, never looks at the clock: what should be asked next, it returns. Modules of this
folder are found by name; packages of third parties announce theirs through the entry point `catchment.platforms`.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import cast

from catchment.errors import InvalidInput
from catchment.model import Kind, Listing, Platform

__all__ = ["Platform", "Platforms", "installed", "listing_of", "unknown"]

log = logging.getLogger(__name__)

_LONGEST = 50
"""So much of a name that nothing has is repeated."""


class Platforms:
    """The platforms of this installation, by name and by kind."""

    def __init__(self, modules: tuple[Platform, ...]) -> None:
        self.by_name = {module.NAME: module for module in modules}
        self._by_kind = {kind.name: (module, kind) for module in modules for kind in module.KINDS}

    def __iter__(self) -> Iterator[Platform]:
        return iter(self.by_name.values())

    def of_kind(self, kind: str) -> Platform | None:
        """The platform of a kind; None for a kind that this installation does not know: skipped, never an error."""
        known = self._by_kind.get(kind)
        return known[0] if known else None

    def kind(self, name: str) -> Kind | None:
        known = self._by_kind.get(name)
        return known[1] if known else None

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for _, kind in self._by_kind.values())

    def item_kinds(self) -> set[str]:
        """The kinds that items of these platforms have."""
        return {name for kind in self.kinds() for name in kind.item_kinds}

    def needed(self, kind: str) -> Platform:
        platform = self.of_kind(kind)
        if platform is None:
            raise unknown("kind", kind, self._by_kind)
        return platform

    def named(self, name: str, *others: str) -> str:
        """The name, if a platform has it: one of this installation, or of the `others` that are known of."""
        known = {*self.by_name, *others}
        if name not in known:
            raise unknown("platform", name, known)
        return name


def unknown(what: str, name: str, known: Iterable[str], field: str | None = None) -> InvalidInput:
    """That nothing is called so: with the nearest that is, and with all that are. `what` is one of: kind, platform …"""
    names = sorted(known)
    near = get_close_matches(name.lower(), names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return InvalidInput(f"unknown {what} {name[:_LONGEST]!r}", f"{meant}known: {', '.join(names)}", field or what)


def listing_of(kind: Kind, name: str) -> Listing:
    """The listing of that name; the kind's default for an unknown one."""
    return next((listing for listing in kind.listings if listing.name == name), kind.listings[0])


@cache
def installed() -> Platforms:
    """All platforms: our modules, then those of installed packages. A broken package is said so and left out."""
    found: list[Platform] = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "NAME"):
            found.append(cast(Platform, module))
    for entry in entry_points(group="catchment.platforms"):
        try:
            module = entry.load()
        except Exception as error:  # noqa: BLE001 — a stranger's code: whatever it raises must not stop ours
            log.warning("platform package %s cannot be loaded: %s", entry.name, error)
            continue
        if isinstance(module, Platform):
            found.append(module)
        else:
            log.warning("platform package %s has not all names of a platform; left out", entry.name)
    return Platforms(tuple(found))
