"""Snapshots of the demo's app: the current state of its database, and the events since the last snapshot."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from catchment.app import App
from catchment.model import Progress, Record, Source
from catchment.sources.describe import health_of
from catchment.store.item_fields import ItemView
from catchment.store.items.items import EditView
from catchment.store.sources.alerts import AlertView

_MOST_REMEMBERED = 60
_MOST_SOURCES = 1000
# Posts of the last minutes are news; older ones arrived late.
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
    """A source and its state in a snapshot."""

    source: Source
    progress: Progress
    health: str
    """As returned by `health_of`."""

    @property
    def is_well(self) -> bool:
        return self.health in ("ok", "waiting")


class Look(Record, frozen=True):
    """A snapshot of everything."""

    at: datetime
    item_count: int
    newest: tuple[ItemView, ...]
    sources: tuple[Sighted, ...]
    alerts: tuple[AlertView, ...]
    counts: Mapping[Happening, int]
    """How often each type of event has happened so far."""
    events: tuple[Event, ...]
    """The latest first."""

    @property
    def failing_count(self) -> int:
        return sum(1 for sighted in self.sources if sighted.health in ("failing", "probation"))

    @property
    def visit_count(self) -> int:
        return sum(sighted.progress.poll_count for sighted in self.sources)

    def count(self, what: str) -> int:
        """How often an event of this type has happened."""
        return self.counts.get(Happening(what), 0)

    def name(self, source_id: int | None) -> str:
        return next((sighted.source.name for sighted in self.sources if sighted.source.id == source_id), "–")


class Scene(Record, frozen=True):
    """What a view shows besides the snapshot."""

    rate: float
    """How many times faster than wall time the clock runs."""
    announced: tuple[str, ...] = ()
    """The server's messages at start: its address, the link."""
    is_stopping: bool = False
    kept: str | None = None
    """The folder that is kept; None if everything is removed at the end."""


class Watch:
    """Takes snapshots. It only reads: the database contains everything needed."""

    def __init__(self, app: App, newest: int = 40) -> None:
        self._app, self._newest = app, newest
        self._before: dict[int, Sighted] = {}
        self._failing_since: dict[int, datetime] = {}
        self._last_item = self._last_edit = self._last_gap = 0
        self._counts: Counter[Happening] = Counter()
        self._events: deque[Event] = deque(maxlen=_MOST_REMEMBERED)

    def look(self) -> Look:
        store, now = self._app.store, self._app.clock.now()
        sighted = self._sighted()
        names = {state.source.id: state.source.name for state in sighted}
        # Items before sources: whether a source has failed, and is known already, is decided by the last snapshot.
        found = [*self._late(names), *self._edits(names), *self._gaps(), *self._changes(sighted, now)]
        self._counts.update(event.what for event in found)
        self._events.extendleft(sorted(found, key=lambda event: event.at))
        self._before = {state.source.id: state for state in sighted}
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
        limit = self._app.settings.failures_before_probation
        rows = self._app.store.sources.page(0, _MOST_SOURCES)
        return [Sighted(source, progress, health_of(source, progress, limit)) for source, progress in rows]

    def _late(self, names: Mapping[int, str]) -> Iterator[Event]:
        for item in self._app.store.items.stored_after(self._last_item):
            self._last_item = item.id
            before = self._before.get(item.source_id)
            lateness = _lateness(item, before.progress, is_window=self._is_window(before.source)) if before else None
            if lateness is not None:
                words = f"“{_called(item)}” arrived {_span(lateness)} late, and is stored"
                yield Event(item.first_seen_at, Happening.LATE, names.get(item.source_id, ""), words)

    def _is_window(self, source: Source) -> bool:
        """Whether it shows only its newest items, without paging."""
        kind = self._app.platforms.kind(source.kind)
        return kind is not None and kind.listings[0].is_window

    def _edits(self, names: Mapping[int, str]) -> Iterator[Event]:
        for edit in self._app.store.items.edits_after(self._last_edit):
            self._last_edit = edit.id
            yield Event(edit.valid_to, Happening.EDITED, names.get(edit.source_id, ""), _edited(edit))

    def _gaps(self) -> Iterator[Event]:
        for gap in self._app.store.gaps.page(include_closed=True, after=self._last_gap):
            self._last_gap = gap.id
            words = f"a gap: posts of {gap.from_at:%H:%M}–{gap.to_at:%H:%M} may be missing"
            yield Event(gap.opened_at, Happening.GAP, gap.source_name, words)

    def _changes(self, sighted: list[Sighted], now: datetime) -> Iterator[Event]:
        for state in sighted:
            before = self._before.get(state.source.id)
            if before is not None:
                yield from self._changed(before, state, now)

    def _changed(self, before: Sighted, sighted: Sighted, now: datetime) -> Iterator[Event]:
        name, source_id = sighted.source.name, sighted.source.id
        if sighted.source.state != before.source.state:
            self._failing_since.pop(source_id, None)
            yield Event(now, Happening.RETIRED, name, "is permanently gone; its items are kept")
        elif sighted.progress.failure_count > before.progress.failure_count and source_id not in self._failing_since:
            self._failing_since[source_id] = now
            yield Event(
                now, Happening.FAILED, name, f"fails: {_without_name(sighted) or 'the answer could not be read'}"
            )
        if source_id in self._failing_since and sighted.progress.last_error is None:
            span = _span(now - self._failing_since.pop(source_id))
            yield Event(now, Happening.RECOVERED, name, f"is back after {span}")
        if sighted.source.target != before.source.target:
            yield Event(now, Happening.MOVED, name, "has moved; followed to its new address")


def _lateness(item: ItemView, progress: Progress, *, is_window: bool) -> timedelta | None:
    """How long after its own date a post was shown, unless it is from a first visit's backlog or the delay is ours."""
    if progress.first_polled_at is None or progress.last_success_at is None:
        return None
    # With paging, what was written before the first visit is just further down; and replies are requested later.
    is_of_our_time = is_window or (item.created_at >= progress.first_polled_at and item.kind != "comment")
    if item.created_at >= progress.last_success_at or not is_of_our_time:
        return None
    lateness = item.first_seen_at - item.created_at
    return lateness if lateness >= _LATE else None


def _edited(edit: EditView) -> str:
    if edit.title != edit.title_before:
        return f"“{_cut(edit.title_before)}” → “{_cut(edit.title)}”"
    return f"the text of “{_called(edit)}” has changed; both versions are kept"


def _called(item: ItemView | EditView) -> str:
    return _cut(item.title or item.text or "")


def _cut(words: str | None) -> str:
    """Short enough that two of them fit on a line."""
    words = words or ""
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…"


def _without_name(sighted: Sighted) -> str | None:
    """The error without the source's name, which is shown before it."""
    words = sighted.progress.last_error
    return words and words.removeprefix(f"{sighted.source.name} (source {sighted.source.id}): ").partition(" — ")[0]


def _span(length: timedelta) -> str:
    minutes = max(1, round(length.total_seconds() / 60))
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"
