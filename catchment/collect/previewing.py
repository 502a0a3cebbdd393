"""A dry run: what a first visit to a source would store, asked for and not stored."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import msgspec

from catchment.collect.asking import Asking
from catchment.collect.details import Details
from catchment.collect.visit import Visitor
from catchment.errors import Unreadable
from catchment.model import Item, Platform, Progress, Reading, Record, Skipped, Source
from catchment.refine import refine
from catchment.store.sources import Wanted, key_of

FIRST_ITEMS = 10
"""So many are shown; where a listing gives ids alone, so many are asked for."""
_MOST_STEPS = 10
"""Pages that only point on: a site's page, which names its feed."""
_NOT_SHOWN = ("scope", "base_url")


class Preview(Record, frozen=True):
    """What the first page of a source would leave in the archive."""

    items: tuple[Item, ...]
    """The first of them, as they would be stored."""
    shown: int
    """How many the page showed, usable or not."""
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


def unfollowed(wanted: Wanted, now: datetime) -> Source:
    """The source that somebody wants, before anybody follows it."""
    target = wanted.target
    return Source(
        id=0,
        key=key_of(wanted.platform, target.address),
        platform=wanted.platform,
        kind=target.kind,
        target=target.address,
        name=wanted.name or target.name or target.address,
        created_at=now,
        settings={**target.settings, **wanted.settings},
        credential=wanted.credential,
    )


def preview(visitor: Visitor, source: Source) -> Preview:
    """Ask the platform as a first visit would: with its limits, as whom the source says. Raises what that fails with,
    and where there are items of which none can be used."""
    platform, kind = visitor.platforms.needed(source.kind), visitor.platforms.kind(source.kind)
    assert kind is not None
    asking = Asking(visitor, source, keep=lambda at, raw: None)
    waiting = platform.first(source, Progress(), visitor.rules.asks(kind, source, Progress())[0])
    for _ in range(_MOST_STEPS):
        came = asking.ask(waiting[0], platform)
        reading = asking.read(came)
        if reading.items or reading.skipped or reading.listed or not reading.follow:
            return _previewed(_with_details(reading, asking, platform), visitor, source, came.answer.url)
        waiting = list(reading.follow)
    raise Unreadable(f"{source.name}: it leads on and on without showing anything", "look at it in a browser")


def _with_details(reading: Reading, asking: Asking, platform: Platform) -> Reading:
    """The reading with the first of what it lists by id alone."""
    wanted = [one for one in reading.follow if one.asks_for is not None][:FIRST_ITEMS]
    for batch in Details(asking, platform, wanted).batches() if wanted else ():
        if batch.broke is not None:
            raise batch.broke
        came = batch.reading
        reading = reading.plus(
            items=(*reading.items, *came.items), skipped=(*reading.skipped, *came.skipped), listed=reading.listed
        )
    return reading


def _previewed(reading: Reading, visitor: Visitor, source: Source, url: str) -> Preview:
    refined = refine(reading, scope=source.key, answer_url=url, text_limit=visitor.rules.text_limit)
    if refined.skipped and not refined.items:
        why = ", ".join(f"{reason} ({count})" for reason, count in _reasons(refined.skipped))
        raise Unreadable(f"{source.name}: none of its items can be used: {why}", "check the source's settings")
    shown = max(len(refined.items) + len(refined.skipped), len(reading.listed))
    items = tuple(one.item for one in refined.items[:FIRST_ITEMS])
    return Preview(items, shown, refined.skipped, reading.notes)


def _reasons(skipped: tuple[Skipped, ...]) -> list[tuple[str, int]]:
    return Counter(one.reason for one in skipped).most_common()


def told(preview: Preview) -> dict[str, Any]:
    """One shape for all doors."""
    examples = {one.reason: one.excerpt for one in reversed(preview.skipped)}
    return {
        "shown": preview.shown,
        "items": [_shown(item) for item in preview.items],
        "skipped": [
            {"reason": reason, "count": count, "example": examples[reason]}
            for reason, count in _reasons(preview.skipped)
        ],
        "notes": list(preview.notes),
    }


def _shown(item: Item) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(item)
    return {name: value for name, value in shown.items() if name not in _NOT_SHOWN}
