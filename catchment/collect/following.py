"""Following: what a person types becomes a source, its secrets go to the vault at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from catchment.collect.lists import UNTOLD_KIND
from catchment.collect.previewing import Preview, preview, unfollowed
from catchment.collect.visit import Visitor
from catchment.errors import CatchmentError, Conflict, InvalidInput
from catchment.logs import redact
from catchment.model import PRIORITIES, Field, Kind, Platform, Source, SourceState, Target
from catchment.platforms import Platforms
from catchment.store import Store
from catchment.store.sources import Wanted, key_of
from catchment.vault import Safe, strip_url

_MOST_MINUTES = 525_600
# What PostgreSQL can still put into an index.
_LONGEST_ADDRESS = 2_000


def understand(platforms: Platforms, kind: str, text: str) -> Target:
    """The target that a person meant; an error that says what would be right. Asks nobody."""
    platform = platforms.needed(kind)
    return platform.understand(text).plus(kind=kind)


def follow(
    store: Store, safe: Safe, platforms: Platforms, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, bool]:
    """The source, and whether it is new; `more` is what `wanted` takes."""
    one = wanted(store, safe, platforms, kind, text, now, **more)
    ((source_id, is_new),) = store.sources.follow_many([one], now)
    return store.sources.get(source_id), is_new


def follow_checked(
    visitor: Visitor, safe: Safe, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, Preview | None]:
    """Ask the platform first, and follow the source only if it answers; `more` is what `wanted` takes.

    Gives the source and what it would store; no preview: it is followed already, and nobody was asked.
    """
    store = visitor.store
    one = wanted(store, safe, visitor.platforms, kind, text, now, **more)
    known = store.sources.of_target(*one.address)
    if known is not None:
        return known, None
    try:
        found = preview(visitor, unfollowed(one, now))
    except CatchmentError:
        _forget_secret(store, one, now, more)
        raise
    ((source_id, _),) = store.sources.follow_many([one], now)
    return store.sources.get(source_id), found


def tried(
    visitor: Visitor, safe: Safe, kind: str, text: str, now: datetime, **more: Any
) -> tuple[Source, Preview | None]:
    """What a first visit would store, asked for; nothing is followed, and nothing is kept. `more` is what `wanted`
    takes. No preview: it is followed already, by this source, and nobody was asked."""
    store = visitor.store
    plain, _ = strip_url(text)
    known = store.sources.of_target(kind, understand(visitor.platforms, kind, plain).address)
    if known is not None:
        return known, None
    one = wanted(store, safe, visitor.platforms, kind, text, now, **more)
    try:
        source = unfollowed(one, now)
        return source, preview(visitor, source)
    finally:
        _forget_secret(store, one, now, more)


def _forget_secret(store: Store, one: Wanted, now: datetime, given: Mapping[str, Any]) -> None:
    """What was taken out of the address of a source that is not followed in the end."""
    if one.credential is not None and one.credential != given.get("credential"):
        store.credentials.remove(one.credential, now)


def kinds_for(platforms: Platforms, text: str) -> list[Kind]:
    """The kinds that can make something of what a person typed; the likeliest ones first."""
    plain, _ = strip_url(text)
    found = [(platform, kind) for platform in platforms for kind in platform.KINDS if _is_understood(platform, plain)]
    return [kind for _, kind in sorted(found, key=lambda one: _unlikely(*one))]


def _is_understood(platform: Platform, text: str) -> bool:
    try:
        platform.understand(text)
    except InvalidInput:
        return False
    return True


def _unlikely(platform: Platform, kind: Kind) -> tuple[bool, bool, int]:
    # Platforms whose sources bring their own hosts take any address; of these a feed is what most people mean.
    return not platform.HOSTS, kind.name != UNTOLD_KIND, len(kind.fields)


def wanted(
    store: Store,
    safe: Safe,
    platforms: Platforms,
    kind: str,
    text: str,
    now: datetime,
    *,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    credential: str | None = None,
    interval_minutes: int | None = None,
    categories: Sequence[str] = (),
    priority: str = "medium",
    quality_score: float | None = None,
) -> Wanted:
    """A source that can be followed, checked. A secret inside the address is taken out and kept in the vault."""
    platform = platforms.needed(kind)
    declared = platforms.kind(kind)
    assert declared is not None
    plain, secret = strip_url(text)
    target = platform.understand(plain).plus(kind=kind)
    if len(target.address.encode()) > _LONGEST_ADDRESS:
        raise InvalidInput(
            "this address is too long to be followed", f"at most {_LONGEST_ADDRESS} bytes", field="target"
        )
    checked = checked_settings(declared, settings or {})
    check_pace(interval_minutes, priority)
    if credential is not None:
        store.credentials.sealed(credential)  # raises if there is none of that name
    if secret is not None:
        if credential is not None:
            raise InvalidInput("the address holds a secret, and a credential is named as well", "give one of the two")
        credential = f"{urlsplit(target.address).hostname or kind}-{key_of(platform.NAME, target.address)[:6]}"
        safe.add(platform.NAME, credential, secret, now, replace=True)
    return Wanted(
        target,
        platform.NAME,
        name=name,
        settings=checked,
        credential=credential,
        interval_minutes=interval_minutes,
        categories=categories,
        priority=priority,
        quality_score=quality_score,
    )


def check_pace(interval_minutes: int | None, priority: str) -> None:
    if interval_minutes is not None and not 1 <= interval_minutes <= _MOST_MINUTES:
        raise InvalidInput(
            f"an interval of {interval_minutes} minutes is not possible", f"1 to {_MOST_MINUTES}", field="interval"
        )
    if priority not in PRIORITIES:
        raise InvalidInput(f"unknown priority {priority!r}", f"one of {', '.join(PRIORITIES)}", field="priority")


def checked_settings(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a source, each of the right sort; refuses names that its kind does not have."""
    fields = {field.name: field for field in kind.fields}
    for name in given:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InvalidInput(f"{kind.name} has no setting {name!r}", f"its settings: {known}", field=name)
    return {name: _checked(fields[name], value) for name, value in given.items()}


def merged_settings(kind: Kind, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with those given changed, and those given as None taken away."""
    checked = checked_settings(kind, {name: value for name, value in given.items() if value is not None})
    return {name: value for name, value in {**known, **checked}.items() if name not in given or name in checked}


def _checked(field: Field, value: Any) -> Any:
    if field.choices and value not in field.choices:
        raise InvalidInput(f"{field.name}={value!r}", f"one of {', '.join(field.choices)}", field=field.name)
    if field.check is not None:
        try:
            return field.check(value)
        except ValueError as error:
            # The value of a header may be a secret, given in the wrong place.
            raise InvalidInput(f"{field.name}={redact(repr(value))[:100]}", str(error), field=field.name) from None
    if field.minimum is None and field.maximum is None:
        return value
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{field.name}={value!r} is not a whole number", field=field.name) from None
    low, high = field.minimum, field.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        raise InvalidInput(f"{field.name}={number}", f"from {low} to {high}", field=field.name)
    return number


def pause(store: Store, source_id: int, reason: str | None, now: datetime) -> Source:
    return store.sources.set_state(source_id, SourceState.PAUSED, reason or "paused by a person", now)


def resume(store: Store, source_id: int, now: datetime) -> Source:
    return store.sources.set_state(source_id, SourceState.ACTIVE, None, now)


def ask_now(store: Store, source_id: int, now: datetime) -> None:
    """Have it visited at the next tick, whatever its schedule says."""
    source = store.sources.get(source_id)
    if source.state != SourceState.ACTIVE:
        raise Conflict(f"source {source_id} ({source.name}) is {source.state}", "resume it first")
    store.sources.mark_due(source_id, now)


def remove(store: Store, source_id: int, now: datetime) -> Source:
    """No longer followed; its items stay."""
    return store.sources.set_state(source_id, SourceState.REMOVED, "removed by a person", now)
