"""Preview: a dry run of the first visit to a source, which stores nothing."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from catchment.collect.detail_fetch import Details
from catchment.collect.source_client import SourceClient
from catchment.collect.visit import Visitor
from catchment.errors import (
    Gone,
    Missing,
    NetworkError,
    PlatformError,
    ServerTrouble,
    SlowDown,
    TimedOut,
    Unreadable,
)
from catchment.model import (
    Item,
    Platform,
    Progress,
    Reading,
    Record,
    Skipped,
    Source,
    View,
)
from catchment.store.sources.sources import SourceRequest, key_of
from catchment.text.clean import refine

FIRST_ITEMS = 10
"""How many are shown; where a listing gives ids alone, how many are requested."""
_MOST_STEPS = 10
"""Pages that only link on: a site's page that names its feed."""
_NOT_SHOWN = ("scope", "base_url")


PreviewItem: TypeAlias = dict[str, Any]
"""An item as JSON data."""


class Preview(Record, frozen=True):
    """What collecting the first page of a source would store."""

    items: tuple[Item, ...]
    """The first items, as they would be stored."""
    shown: int
    """How many the page showed, usable or not."""
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    title: str | None = None
    """The title the source gives itself."""
    target: str | None = None
    """Its true URL, where the request found another one than given: the feed of a site."""


def draft_source(request: SourceRequest, now: datetime) -> Source:
    """Returns the requested source as a record, before it is added."""
    target = request.target
    return Source(
        id=0,
        key=key_of(request.platform, target.address),
        platform=request.platform,
        kind=target.kind,
        target=target.address,
        name=request.name or target.name or target.address,
        created_at=now,
        settings={**target.settings, **request.settings},
        credential=request.credential,
    )


_HELPS_BEFORE_SAVING: dict[type[PlatformError], str] = {
    NetworkError: "check how the address is written, and whether this machine is online",
    TimedOut: "try again later",
    ServerTrouble: "try again later",
    SlowDown: "try again later",
    Missing: "check how the address is written, or open it in a browser",
    Gone: "look for another address",
}
"""Hints for a source that is not added yet. Elsewhere these speak of later attempts, and of moving."""


def preview(visitor: Visitor, source: Source) -> Preview:
    """Sends the requests of a first visit: with its limits and with the source's credential. Raises the errors of a
    visit, and an error if no item can be used."""
    try:
        return _asked(visitor, source)
    except tuple(_HELPS_BEFORE_SAVING) as error:
        helps = next(words for sort, words in _HELPS_BEFORE_SAVING.items() if isinstance(error, sort))
        raise type(error)(error.what, helps, status=error.status, retry_at=error.retry_at) from error


def _asked(visitor: Visitor, source: Source) -> Preview:
    platform, kind = visitor.platforms.needed(source.kind), visitor.platforms.kind(source.kind)
    assert kind is not None
    client = SourceClient(visitor.context, visitor.rules, source)
    waiting = platform.first(source, Progress(), visitor.rules.walk_plans(kind, source, Progress())[0])
    try:
        for _ in range(_MOST_STEPS):
            exchange = client.send(waiting[0], platform)
            reading = client.read(exchange)
            if reading.items or reading.skipped or reading.listed or not reading.follow:
                return _previewed(_with_details(reading, client, platform), visitor, source, exchange.answer.url)
            waiting = list(reading.follow)
    finally:
        client.book()
    raise Unreadable("{source}: several pages in a row contain no items", "check it in a browser", source=source.name)


def _with_details(reading: Reading, client: SourceClient, platform: Platform) -> Reading:
    """Returns the reading with the first of the items that it lists by id alone."""
    requests = [request for request in reading.follow if request.item_id is not None][:FIRST_ITEMS]
    for batch in Details(client, platform, requests).batches() if requests else ():
        if batch.broke is not None:
            raise batch.broke
        details = batch.reading
        reading = reading.replace(
            items=(*reading.items, *details.items), skipped=(*reading.skipped, *details.skipped), listed=reading.listed
        )
    return reading


def _previewed(reading: Reading, visitor: Visitor, source: Source, url: str) -> Preview:
    refined = refine(reading, scope=source.key, answer_url=url, text_limit=visitor.rules.text_limit)
    if refined.skipped and not refined.items:
        why = ", ".join(f"{reason} ({count})" for reason, count in _reasons(refined.skipped))
        raise Unreadable(
            "{source}: none of its items is usable: {why}", "check the source's settings", source=source.name, why=why
        )
    shown = max(len(refined.items) + len(refined.skipped), len(reading.listed))
    items = tuple(item.item for item in refined.items[:FIRST_ITEMS])
    return Preview(items, shown, refined.skipped, reading.notes, reading.title, reading.target)


def _reasons(skipped: tuple[Skipped, ...]) -> list[tuple[str, int]]:
    return Counter(skip.reason for skip in skipped).most_common()


class SkippedView(View, frozen=True):
    reason: str
    count: int
    example: str


class PreviewView(View, frozen=True):
    """A preview as CLI, API and pages show it."""

    title: str | None
    shown: int
    items: tuple[PreviewItem, ...]
    skipped: tuple[SkippedView, ...]
    notes: tuple[str, ...]


def preview_view(preview: Preview) -> PreviewView:
    examples = {skipped.reason: skipped.excerpt for skipped in reversed(preview.skipped)}
    return PreviewView(
        preview.title,
        preview.shown,
        tuple(_without_internals(item) for item in preview.items),
        tuple(SkippedView(reason, count, examples[reason]) for reason, count in _reasons(preview.skipped)),
        preview.notes,
    )


def _without_internals(item: Item) -> PreviewItem:
    return {name: value for name, value in msgspec.to_builtins(item).items() if name not in _NOT_SHOWN}
