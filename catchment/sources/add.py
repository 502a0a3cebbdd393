"""Adds sources: parses what a person typed, checks it with the platform, and moves secrets into the credential
store."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from catchment.collect.source_settings import checked_settings, merged_settings
from catchment.collect.visit import Visitor
from catchment.credentials.secret import Secret, strip_url
from catchment.credentials.secret_store import SecretStore
from catchment.errors import (
    CatchmentError,
    Conflict,
    InvalidInput,
    NoFeed,
    Unreadable,
)
from catchment.fetch.auth import bound_host, is_for, mismatch, parsed_source_url
from catchment.lazy import pattern
from catchment.logs import redact
from catchment.messages import Message, as_message, message
from catchment.model import (
    ADDED,
    PRIORITIES,
    REQUESTED,
    Kind,
    Platform,
    Record,
    SettingValues,
    Source,
    SourceState,
    Target,
    options,
)
from catchment.platforms import Platforms, no_platform, services_of
from catchment.sources.list_formats import DEFAULT_KIND
from catchment.sources.preview import Preview, draft_source, preview
from catchment.store import Store
from catchment.store.credentials import Terms
from catchment.store.sources.sources import SourceRequest, key_of, refuse_twice
from catchment.text.printable import one_line

SERVICE = "service"
"""The setting of a source that chooses among the services of its platform."""
_MOST_MINUTES = 525_600
_HOST = pattern(r"(?:[^\s:/?#@]+\.[^\s:/?#@.]+|localhost)(?::\d+)?(?:[/?#]|$)")
_ALSO = "digest_feed"
"""Uses the same parser as `rss`: what the one cannot parse, the other cannot either."""
# The most that fits into a PostgreSQL index.
_LONGEST_ADDRESS = 2_000


def understand(platforms: Platforms, kind: str, text: str) -> Target:
    """Returns the target a person meant; raises InvalidInput with what is allowed. Sends no request."""
    platform = platforms.needed(kind)
    return platform.understand(text, kind).replace(kind=kind)


class Added(Record, frozen=True):
    """A source that was added, with the kind that was recognised, if none was given, and what the platform showed."""

    source: Source
    recognised: Kind | None
    preview: Preview | None


def add_typed(
    visitor: Visitor,
    safe: SecretStore,
    kind: str,
    target: str | None,
    now: datetime,
    *,
    check: bool | None = None,
    settings: Sequence[str] = (),
    **more: Any,
) -> Added:
    """Adds a source as a person types it: a kind and a target, or an address alone. Raises Conflict if it exists.

    An address alone is recognised, and its platform is asked first; `check` decides that in either case. `settings`
    are `key=value` texts; `more` is passed to `source_request`.
    """
    recognised_kind, text = (None, target) if target is not None else recognised(visitor.platforms, kind)
    name = recognised_kind.name if recognised_kind else kind
    more["settings"] = settings_from(visitor.platforms, name, settings)
    if check or (check is None and recognised_kind):
        ask = follow_recognised if recognised_kind else follow_checked
        source, preview = ask(visitor, safe, name, text, now, **more)
        is_new = preview is not None
    else:
        source, is_new = follow(visitor.store, safe, visitor.platforms, name, text, now, **more)
        preview = None
    return Added(refuse_twice(source, is_new), recognised_kind, preview)


def settings_from(platforms: Platforms, kind: str, texts: Sequence[str]) -> SettingValues:
    """Returns the settings written as `key=value`. Lists, objects and booleans are JSON, except where the kind declares
    a text: an expression may begin with a bracket. Everything else is text, which the kind parses."""
    declared = platforms.kind(kind)
    plain = {field.name for field in declared.fields if field.check is not None} if declared else set()
    settings: SettingValues = {}
    for text in texts:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not key:
            raise InvalidInput("--set {text!r} is not a setting", "write it as key=value", field="set", text=text)
        is_json = key not in plain and (value in ("true", "false") or value.startswith(("{", "[")))
        try:
            settings[key] = msgspec.json.decode(value) if is_json else value
        except msgspec.DecodeError:
            raise InvalidInput(
                "{value!r} is not valid JSON", "quote it for the shell", field="set", value=value
            ) from None
    return settings


def follow(
    store: Store, safe: SecretStore, platforms: Platforms, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, bool]:
    """Adds a source. Returns it and whether it is new; `more` is passed to `source_request`."""
    source = source_request(store, safe, platforms, kind, text, now, **more)
    ((source_id, is_new),) = store.sources.follow_many([source], now)
    return _added(store, source_id, now) if is_new else store.sources.get(source_id), is_new


def follow_checked(
    visitor: Visitor, safe: SecretStore, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, Preview | None]:
    """Asks the platform first, and adds the source only if it answers; `more` is passed to `source_request`.

    Returns the source and what it would store; without a preview, the source exists already, perhaps under another
    URL.
    """
    store, hosts_before = visitor.store, _hosts(visitor.store, more)
    source = source_request(store, safe, visitor.platforms, kind, text, now, **more)
    existing = store.sources.of_target(*source.address)
    if existing is not None:
        return existing, None
    try:
        previewed = preview(visitor, draft_source(source, now))
    except CatchmentError:
        _undo(store, safe, source, now, more, hosts_before)
        raise
    if (twin := _twin(store, kind, previewed)) is not None:
        _undo(store, safe, source, now, more, hosts_before)
        return twin, None
    ((source_id, _),) = store.sources.follow_many([source], now)
    return _added(store, source_id, now), previewed


def _twin(store: Store, kind: str, shown: Preview) -> Source | None:
    """Returns the existing source for what a URL turned out to lead to, such as the feed of a site."""
    return store.sources.of_target(kind, shown.target) if shown.target is not None else None


def _added(store: Store, source_id: int, now: datetime) -> Source:
    """Returns the source a person has just added, and requests its collection; sources of a list wait for their
    turn."""
    source = store.sources.get(source_id)
    if source.state == SourceState.ACTIVE:
        _request(store, source_id, now, ADDED)
    return source


def tried(
    visitor: Visitor, safe: SecretStore, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, Preview | None]:
    """Returns what a first visit would store; adds and keeps nothing. `more` is passed to `source_request`. Without a
    preview, the source exists already, perhaps under another URL."""
    store = visitor.store
    plain, _ = strip_url(text, takes_unsure=more.get("keep_secret", False))
    existing = store.sources.of_target(kind, understand(visitor.platforms, kind, plain).address)
    if existing is not None:
        return existing, None
    hosts_before = _hosts(store, more)
    new_source = source_request(store, safe, visitor.platforms, kind, text, now, **more)
    try:
        source = draft_source(new_source, now)
        previewed = preview(visitor, source)
        twin = _twin(store, kind, previewed)
        return (source, previewed) if twin is None else (twin, None)
    finally:
        _undo(store, safe, new_source, now, more, hosts_before)


def _hosts(store: Store, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the hosts the named credential is for."""
    name = options.get("credential")
    return store.credentials.get(name).hosts if name is not None else ()


def _undo(
    store: Store,
    safe: SecretStore,
    source: SourceRequest,
    now: datetime,
    options: SettingValues,
    hosts_before: tuple[str, ...],
) -> None:
    """Deletes the secret of the URL and unbinds the credential of a source that was not added in the end."""
    named = options.get("credential")
    if source.credential is not None and source.credential != named:
        store.credentials.remove(source.credential, now)
    elif named is not None and store.credentials.get(named).hosts != hosts_before:
        safe.bind(named, hosts_before, now)


def kinds_for(platforms: Platforms, text: str) -> list[Kind]:
    """Returns the kinds that accept what a person typed; the likeliest first."""
    plain, _ = strip_url(text)
    pairs = [
        (platform, kind)
        for platform in platforms
        for kind in platform.KINDS
        if _is_understood(platform, kind.name, plain)
    ]
    return [kind for _, kind in sorted(pairs, key=lambda row: _unlikely(*row))]


def recognised(platforms: Platforms, text: str) -> tuple[Kind, str]:
    """Returns the kind and target for input without a kind; a URL gets its scheme. The kind is that of the one platform
    that recognises the URL or name as its own, else, for a URL, a feed. Raises InvalidInput if no platform accepts
    it, or several do."""
    declared = platforms.kind(text)
    if declared is not None:
        raise InvalidInput(
            "{kind} is a kind of source: its target is missing",
            "for example: `catchment sources add {kind} {example}`",
            field="target",
            kind=text,
            example=shlex.quote(declared.example),
        )
    # A host without a scheme could pass for a name.
    target = f"https://{text}" if _HOST.match(text) else text
    plain, _ = strip_url(target)
    accepting = kinds_for(platforms, target)
    own = [kind for kind in accepting if platforms.needed(kind.name).HOSTS]
    if len(own) > 1:
        commands = ", or ".join(f"`catchment sources add {kind.name} {shlex.quote(plain)}`" for kind in own)
        raise InvalidInput(
            "{text!r} is ambiguous",
            "use one of them: {commands}",
            field="target",
            text=redact(plain)[:100],
            commands=commands,
        )
    if not accepting:
        kinds = ", ".join(sorted(kind.name for kind in platforms.kinds()))
        raise InvalidInput(
            "no platform recognises {text!r}",
            "enter a URL, or the kind before the target: {kinds}",
            field="target",
            text=redact(plain)[:100],
            kinds=kinds,
        )
    return accepting[0], target


def follow_recognised(
    visitor: Visitor, safe: SecretStore, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, Preview | None]:
    """As `follow_checked`, with the kind chosen here: if the guess was wrong, the error suggests other kinds."""
    try:
        return follow_checked(visitor, safe, kind, text, now, **more)
    except Unreadable as error:
        others = [other.name for other in kinds_for(visitor.platforms, text) if other.name not in (kind, _ALSO)]
        if isinstance(error, NoFeed) or not others:
            raise
        helps = f"{error.helps}; or name its kind ({', '.join(others)}): `catchment sources add KIND ADDRESS --check`"
        raise type(error)(error.what, helps, status=error.status) from error


def _is_understood(platform: Platform, kind: str, text: str) -> bool:
    """Whether the platform recognises the text without a given kind, and as a source of that kind."""
    try:
        platform.understand(text, None)
        platform.understand(text, kind)
    except InvalidInput:
        return False
    return True


def _unlikely(platform: Platform, kind: Kind) -> tuple[bool, bool, int]:
    # Platforms whose sources have their own hosts accept any URL; among them, most people mean a feed.
    return not platform.HOSTS, kind.name != DEFAULT_KIND, len(kind.fields)


def source_request(
    store: Store,
    safe: SecretStore,
    platforms: Platforms,
    kind: str,
    text: str,
    now: datetime,
    *,
    name: str | None = None,
    settings: SettingValues | None = None,
    credential: str | None = None,
    interval_minutes: int | None = None,
    categories: Sequence[str] = (),
    priority: str = "medium",
    quality_score: float | None = None,
    is_from_list: bool = False,
    keep_secret: bool = False,
) -> SourceRequest:
    """Returns a checked source request. A secret inside the URL is moved into the credential store; with `keep_secret`,
    so is a value that only looks like one.

    A list may come from a stranger: with `is_from_list`, the secret of an existing source stays as it is.
    """
    platform_name = platforms.announced(kind)
    if platform_name is not None:
        check_pace(interval_minutes, priority)
        target, checked = _target_as_typed(kind, text, credential), dict(settings or {})
    else:
        platform, declared = platforms.needed(kind), platforms.kind(kind)
        assert declared is not None
        platform_name = platform.NAME
        plain, secret = strip_url(text, takes_unsure=keep_secret)
        target = platform.understand(plain, kind).replace(kind=kind)
        _check_length(target)
        target = target.replace(settings=checked_settings(declared, target.settings))
        checked = checked_settings(declared, settings or {})
        target = target.replace(name=own_name(platform, target.address, {**target.settings, **checked}) or target.name)
        check_pace(interval_minutes, priority)
        if secret is not None and credential is not None:
            raise InvalidInput(
                "the address contains a secret, but a credential is specified as well", "use only one of the two"
            )
        if secret is not None:
            credential = _keep_secret(store, safe, platform, target, secret, now, is_from_list=is_from_list)
        elif credential is None and declared.is_personal:
            credential = _only_credential(store, safe, platform, declared, now)
        if secret is None and credential is not None:
            bind_credential(store, safe, platform, target.address, credential, now, is_from_list=is_from_list)
            checked = _with_service(store, platform, checked, credential)
    return SourceRequest(
        target,
        platform_name,
        name=one_line(name) or None if name else None,
        settings=checked,
        credential=credential,
        interval_minutes=interval_minutes,
        categories=_clean_categories(categories),
        priority=priority,
        quality_score=quality_score,
    )


def _only_credential(store: Store, safe: SecretStore, platform: Platform, kind: Kind, now: datetime) -> str | None:
    """Returns the credential of a source that shows what belongs to a user, if none was named: the only one there is.
    None: there is none yet. Raises InvalidInput where there are several."""
    safe.announce(now)
    services = [field.choices for field in kind.fields if field.name == SERVICE]
    names = services[0] if services else (platform.NAME,)
    own = sorted(credential.name for credential in store.credentials.known() if credential.platform in names)
    if len(own) > 1:
        what = "this depends on whose credential is used, and there are several: {known}"
        raise InvalidInput(what, "name one of them", "credential", known=", ".join(own))
    return own[0] if own else None


def _target_as_typed(kind: str, text: str, credential: str | None) -> Target:
    """Returns a target that only a platform that is not installed understands: kept as typed until there is one."""
    plain, secret = strip_url(" ".join(text.split()))
    if secret is not None or credential is not None:
        raise InvalidInput(
            "{problem}: a credential cannot be checked",
            "add the source without a credential, and assign one later",
            "credential",
            problem=no_platform(kind),
        )
    if not plain or not plain.isprintable():
        raise InvalidInput("the target is missing", "use a name, such as @NAME, or an address", field="target")
    target = Target(kind, plain)
    _check_length(target)
    return target


def _check_length(target: Target) -> None:
    if len(target.address.encode()) > _LONGEST_ADDRESS:
        raise InvalidInput(
            "this address is too long",
            "at most {longest} bytes",
            field="target",
            longest=_LONGEST_ADDRESS,
        )


def check_new_credential(
    store: Store, safe: SecretStore, platforms: Platforms, source: Source, name: str | None, now: datetime
) -> None:
    """Checks that a source may change its credential; None means no credential. Raises as `bind_credential`."""
    if name is not None and name != source.credential:
        bind_credential(store, safe, platforms.needed(source.kind), source.target, name, now)


def bind_credential(
    store: Store,
    safe: SecretStore,
    platform: Platform,
    address: str,
    name: str,
    now: datetime,
    *,
    is_from_list: bool = False,
) -> None:
    """Checks that a source with this URL may use the credential. Every caller that sets one must call this.

    Binds a credential that has no host yet to the source's; a list, which may come from a stranger, binds none. Raises
    NotFound if there is none of that name, and InvalidInput if it is for another platform or another host.
    """
    credential, parsed = store.credentials.get(name), parsed_source_url(address)
    if credential.platform not in ([service.name for service in services_of(platform)] or [platform.NAME]):
        raise InvalidInput(*mismatch(credential, platform, parsed), "credential")
    if platform.HOSTS or parsed is None:
        # Its requests go to its own hosts, or to hosts that the URL does not show: checked when they are sent.
        return
    if not credential.hosts and not is_from_list:
        safe.bind(name, (bound_host(parsed),), now)
    elif not is_for(credential, platform, parsed):
        raise InvalidInput(*mismatch(credential, platform, parsed), "credential")


def _with_service(store: Store, platform: Platform, settings: SettingValues, credential: str) -> SettingValues:
    """Returns the settings with the service that the credential is for. Raises InvalidInput if they name another."""
    if not services_of(platform):
        return settings
    service = store.credentials.get(credential).platform
    if settings.get(SERVICE, service) != service:
        raise InvalidInput(
            "the credential {credential!r} is for {service}, and the source is read through {other}",
            "set service={service}, or name another credential",
            "credential",
            credential=credential,
            service=service,
            other=settings[SERVICE],
        )
    return {**settings, SERVICE: service}


def _keep_secret(
    store: Store,
    safe: SecretStore,
    platform: Platform,
    target: Target,
    secret: Secret,
    now: datetime,
    *,
    is_from_list: bool,
) -> str | None:
    """Stores the secret of a URL as a credential for its host; returns the credential's name."""
    existing = store.sources.of_target(target.kind, target.address) if is_from_list else None
    if existing is not None and existing.state != SourceState.REMOVED:
        return existing.credential
    parsed = parsed_source_url(target.address)
    name = f"{urlsplit(target.address).hostname or target.kind}-{key_of(platform.NAME, target.address)[:6]}"
    hosts = (bound_host(parsed),) if parsed is not None and not platform.HOSTS else ()
    safe.add(platform.NAME, name, secret, now, replace=True, terms=Terms(hosts=hosts))
    return name


def own_name(platform: Platform, address: str, settings: SettingValues) -> str | None:
    """Returns the platform's name for a source with these settings; None if the settings do not decide it."""
    return options(platform).name_of(address, settings) if hasattr(platform, "name_of") else None


def change(
    store: Store, safe: SecretStore, platforms: Platforms, source_id: int, now: datetime, **fields: Any
) -> Source:
    """Changes the given fields: name, settings, credential, interval_minutes, categories, priority; the rest stays.

    Within `settings`, given ones are changed, and those given as None go back to the default.
    """
    source = store.sources.get(source_id)
    check_pace(fields.get("interval_minutes"), fields.get("priority", source.priority))
    if "settings" in fields:
        fields = _with_settings(platforms, source, fields)
    check_new_credential(store, safe, platforms, source, fields.get("credential"), now)
    credential = fields.get("credential", source.credential)
    if credential is not None and (platform := platforms.of_kind(source.kind)) is not None and services_of(platform):
        settings = fields.get("settings", source.settings)
        if "credential" in fields and "settings" not in fields:
            settings = {name: value for name, value in settings.items() if name != SERVICE}
        fields["settings"] = _with_service(store, platform, settings, credential)
    if fields.get("name") is not None:
        fields["name"] = one_line(fields["name"]) or source.name
    if "categories" in fields:
        fields["categories"] = _clean_categories(fields["categories"])
    return store.sources.change(source_id, **fields)


def _clean_categories(categories: Sequence[str]) -> list[str]:
    return [line for category in categories if (line := one_line(category))]


def _with_settings(platforms: Platforms, source: Source, fields: Mapping[str, Any]) -> SettingValues:
    """Returns the change with the complete settings, and the name that follows from them."""
    if platforms.announced(source.kind) is not None:
        # Checked once there is a platform that knows them.
        settings_given = {**source.settings, **fields["settings"]}
        return {**fields, "settings": {name: value for name, value in settings_given.items() if value is not None}}
    platform, kind = platforms.needed(source.kind), platforms.kind(source.kind)
    assert kind is not None
    settings = merged_settings(kind, source.settings, fields["settings"])
    changes = {name: value for name, value in fields.items() if name != "settings"}
    if settings == source.settings:
        # Not written: new settings would have the next answer parsed again.
        return changes
    if source.name == own_name(platform, source.target, source.settings):
        # The name was never changed by hand, and the old one would no longer be true.
        changes = {"name": own_name(platform, source.target, settings), **changes}
    return {**changes, "settings": settings}


def check_pace(interval_minutes: int | None, priority: str = "medium") -> None:
    if interval_minutes is not None and not 1 <= interval_minutes <= _MOST_MINUTES:
        raise InvalidInput(
            "an interval of {minutes} minutes is not allowed",
            "1 to {most}",
            field="interval",
            minutes=interval_minutes,
            most=_MOST_MINUTES,
        )
    if priority not in PRIORITIES:
        raise InvalidInput(
            "unknown priority {priority!r}",
            "one of {priorities}",
            field="priority",
            priority=priority,
            priorities=", ".join(PRIORITIES),
        )


def pause(store: Store, source_id: int, reason: str | None, now: datetime) -> Source:
    why = as_message(reason) if reason else message("paused_by_user")
    return store.sources.set_state(source_id, SourceState.PAUSED, why, now)


def resume(store: Store, source_id: int, now: datetime) -> Source:
    return store.sources.set_state(source_id, SourceState.ACTIVE, None, now)


COLLECT_REQUESTED = "collect-requested"
"""The job that collects requested sources."""


def request_collection(store: Store, source_id: int, now: datetime) -> None:
    """Requests immediate collection by the collecting process, whatever the schedule says."""
    source = store.sources.get(source_id)
    if source.state != SourceState.ACTIVE:
        raise Conflict(
            "source {source_id} ({source}) is {state}",
            "resume it first",
            source_id=source_id,
            source=source.name,
            state=source.state,
        )
    _request(store, source_id, now, REQUESTED)


def _request(store: Store, source_id: int, now: datetime, reason: Message) -> None:
    store.sources.mark_due(source_id, now, reason)
    store.jobs.wake(COLLECT_REQUESTED, now)


def remove(store: Store, source_id: int, now: datetime) -> Source:
    """Removes the source; its items stay."""
    return store.sources.set_state(source_id, SourceState.REMOVED, message("removed_by_user"), now)
