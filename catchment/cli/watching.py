"""Watching a shop at work: what stands in its database now, and what has happened since the last look."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from catchment.collect.telling import health_of
from catchment.model import Progress, Record, Source
from catchment.shop import Shop

_MOST_REMEMBERED = 60
_MOST_SOURCES = 1000
# Posts of the last minutes are news; older ones came late.
_LATE = timedelta(minutes=60)
_TITLE = 36


class Happening(StrEnum):
    EDITED = "edited"
    LATE = "late"
    GAP = "gap"
    FAILED = "failed"
    RECOVERED = "recovered"
    MOVED = "moved"
    RETIRED = "retired"


class Event(Record, frozen=True):
    """Something that happened, in a few words."""

    at: datetime
    what: Happening
    source: str
    words: str


class Sighted(Record, frozen=True):
    """A source, and how it fared when it was looked at."""

    source: Source
    progress: Progress
    health: str
    """As `health_of` tells it."""

    @property
    def is_well(self) -> bool:
        return self.health in ("ok", "waiting")


class Look(Record, frozen=True):
    """How everything stands at one moment."""

    at: datetime
    item_count: int
    newest: tuple[dict[str, Any], ...]
    sources: tuple[Sighted, ...]
    alerts: tuple[dict[str, Any], ...]
    counts: Mapping[Happening, int]
    """How often each sort of thing has happened so far."""
    events: tuple[Event, ...]
    """The latest first."""

    @property
    def failing_count(self) -> int:
        return sum(1 for one in self.sources if one.health in ("failing", "probation"))

    @property
    def visit_count(self) -> int:
        return sum(one.progress.poll_count for one in self.sources)

    def count(self, what: str) -> int:
        """How often something of this sort has happened."""
        return self.counts.get(Happening(what), 0)

    def name(self, source_id: int | None) -> str:
        return next((one.source.name for one in self.sources if one.source.id == source_id), "–")


class Scene(Record, frozen=True):
    """What a view tells besides what it sees."""

    rate: float
    """How many times as fast as on the wall time runs."""
    announced: tuple[str, ...] = ()
    """What the server had to say at its start: where it listens, the link."""
    is_stopping: bool = False
    kept: str | None = None
    """The folder that stays; None: everything is removed at the end."""


class Watch:
    """Looks again and again. It only reads: the database says all that is to be known."""

    def __init__(self, shop: Shop, newest: int = 40) -> None:
        self._shop, self._newest = shop, newest
        self._before: dict[int, Sighted] = {}
        self._failing_since: dict[int, datetime] = {}
        self._last_item = self._last_edit = self._last_gap = 0
        self._counts: Counter[Happening] = Counter()
        self._events: deque[Event] = deque(maxlen=_MOST_REMEMBERED)

    def look(self) -> Look:
        store, now = self._shop.store, self._shop.clock.now()
        sighted = self._sighted()
        names = {one.source.id: one.source.name for one in sighted}
        # Items before sources: who has failed, and who is known already, is judged by the last look.
        found = [*self._late(names), *self._edits(names), *self._gaps(), *self._changes(sighted, now)]
        self._counts.update(one.what for one in found)
        self._events.extendleft(sorted(found, key=lambda one: one.at))
        self._before = {one.source.id: one for one in sighted}
        return Look(
            at=now,
            item_count=store.items.count(),
            newest=tuple(store.items.newest(self._newest)),
            sources=tuple(sighted),
            alerts=tuple(store.alerts.open()),
            counts=dict(self._counts),
            events=tuple(self._events),
        )

    def _sighted(self) -> list[Sighted]:
        limit = self._shop.settings.failures_before_probation
        rows = self._shop.store.sources.page(0, _MOST_SOURCES)
        return [Sighted(source, progress, health_of(source, progress, limit)) for source, progress in rows]

    def _late(self, names: Mapping[int, str]) -> Iterator[Event]:
        for item in self._shop.store.items.stored_after(self._last_item):
            self._last_item = item["id"]
            before = self._before.get(item["source_id"])
            lateness = _lateness(item, before.progress, is_window=self._is_window(before.source)) if before else None
            if lateness is not None:
                words = f"“{_called(item)}” came {_span(lateness)} late, and is kept"
                at = datetime.fromisoformat(item["first_seen_at"])
                yield Event(at, Happening.LATE, names.get(item["source_id"], ""), words)

    def _is_window(self, source: Source) -> bool:
        """Whether it shows its newest alone, and no way leads further down."""
        kind = self._shop.platforms.kind(source.kind)
        return kind is not None and kind.listings[0].is_window

    def _edits(self, names: Mapping[int, str]) -> Iterator[Event]:
        for edit in self._shop.store.items.edits_after(self._last_edit):
            self._last_edit = edit["id"]
            at = datetime.fromisoformat(edit["valid_to"])
            yield Event(at, Happening.EDITED, names.get(edit["source_id"], ""), _edited(edit))

    def _gaps(self) -> Iterator[Event]:
        for gap in self._shop.store.gaps.page(include_closed=True, after=self._last_gap):
            self._last_gap = gap["id"]
            words = f"a gap: posts of {gap['from_at'][11:16]}–{gap['to_at'][11:16]} may be missing"
            yield Event(datetime.fromisoformat(gap["opened_at"]), Happening.GAP, gap["source_name"], words)

    def _changes(self, sighted: list[Sighted], now: datetime) -> Iterator[Event]:
        for one in sighted:
            before = self._before.get(one.source.id)
            if before is not None:
                yield from self._changed(before, one, now)

    def _changed(self, before: Sighted, one: Sighted, now: datetime) -> Iterator[Event]:
        name, source_id = one.source.name, one.source.id
        if one.source.state != before.source.state:
            self._failing_since.pop(source_id, None)
            yield Event(now, Happening.RETIRED, name, "is gone for good; its items stay")
        elif one.progress.failure_count > before.progress.failure_count and source_id not in self._failing_since:
            self._failing_since[source_id] = now
            yield Event(now, Happening.FAILED, name, f"fails: {_without_name(one) or 'what came was no answer'}")
        if source_id in self._failing_since and one.progress.last_error is None:
            span = _span(now - self._failing_since.pop(source_id))
            yield Event(now, Happening.RECOVERED, name, f"is back after {span}")
        if one.source.target != before.source.target:
            yield Event(now, Happening.MOVED, name, "has moved; followed to its new address")


def _lateness(item: Mapping[str, Any], progress: Progress, *, is_window: bool) -> timedelta | None:
    """How long after its own date a post was shown, if that is no first visit's look into the past, nor our delay."""
    if item["created_at"] is None or progress.first_polled_at is None or progress.last_success_at is None:
        return None
    created_at = datetime.fromisoformat(item["created_at"])
    # Where one can read on, what was written before we came only stands further down; and replies are asked for later.
    is_of_our_time = is_window or (created_at >= progress.first_polled_at and item["kind"] != "comment")
    if created_at >= progress.last_success_at or not is_of_our_time:
        return None
    lateness = datetime.fromisoformat(item["first_seen_at"]) - created_at
    return lateness if lateness >= _LATE else None


def _edited(edit: Mapping[str, Any]) -> str:
    if edit["title"] != edit["title_before"]:
        return f"“{_cut(edit['title_before'])}” → “{_cut(edit['title'])}”"
    return f"the text of “{_called(edit)}” has changed; both versions are kept"


def _called(item: Mapping[str, Any]) -> str:
    return _cut(item["title"] or item["text"] or "")


def _cut(words: str | None) -> str:
    """Short enough that two of them stand on a line."""
    words = words or ""
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…"


def _without_name(one: Sighted) -> str | None:
    """The error without what stands before it already."""
    words = one.progress.last_error
    return words and words.removeprefix(f"{one.source.name} (source {one.source.id}): ").partition(" — ")[0]


def _span(length: timedelta) -> str:
    minutes = max(1, round(length.total_seconds() / 60))
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"
