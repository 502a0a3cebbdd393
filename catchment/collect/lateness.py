"""Why a source is late, or is not: decided here, once; the doors find the words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from catchment.collect.telling import next_fetch_at
from catchment.model import Progress, Record, Source, SourceState


class Why(StrEnum):
    PUNCTUAL = "punctual"
    DUE = "due"
    """Visited with the next tick."""
    FIRST = "first"
    """Never visited yet: first in line."""
    VISITING = "visiting"
    PAUSED = "paused"
    RETIRED = "retired"
    NOBODY = "nobody"
    """It was due, and no process collects."""
    BUDGET = "budget"
    """It was due, and the platform is left alone for now: its requests are used up, or it told us to wait."""
    CROWDED = "crowded"
    """It was due, and so were many others."""
    STUCK = "stuck"
    """It was due, alone, and was not visited all the same."""
    TOLD = "told"
    """The server asked us to wait."""
    PROBATION = "probation"
    FAILING = "failing"
    SILENT = "silent"
    """It is visited, and shows nothing new, against its own rhythm."""


_PUT_OFF = {"probation": Why.PROBATION, "told to wait": Why.TOLD}
LATE = frozenset((Why.NOBODY, Why.BUDGET, Why.CROWDED, Why.STUCK, Why.SILENT))


class Around(Record, frozen=True):
    """What is known of the deployment at this moment."""

    now: datetime
    patience: timedelta
    """So long after its time a source is not called late yet."""
    is_collecting: bool = True
    is_held: bool = False
    """Somebody visits the source right now."""
    closed: Mapping[str, datetime] = {}
    """The platforms that are left alone, and until when."""
    waiting_count: int = 0
    """How many sources are overdue, this one included."""


class Lateness(Record, frozen=True):
    why: Why
    at: datetime | None = None
    """When it was due, or expected, or will be visited, as the reason goes."""
    until: datetime | None = None
    """How long what keeps it waiting lasts, where that is known."""

    @property
    def is_late(self) -> bool:
        return self.why in LATE


def lateness(source: Source, progress: Progress, minutes: int, around: Around) -> Lateness:
    """The first thing that is to be said about when a source is visited."""
    due_at = next_fetch_at(source, progress, minutes)
    if source.state != SourceState.ACTIVE:
        return Lateness(Why.PAUSED if source.state == SourceState.PAUSED else Why.RETIRED)
    if around.is_held:
        return Lateness(Why.VISITING)
    if due_at is None:
        is_old = around.now - source.created_at > around.patience
        return _overdue(source, source.created_at, around) if is_old else Lateness(Why.FIRST)
    if around.now - due_at > around.patience:
        return _overdue(source, due_at, around)
    if due_at > around.now and progress.due_reason in _PUT_OFF:
        return Lateness(_PUT_OFF[progress.due_reason], due_at)
    if progress.last_error is not None:
        return Lateness(Why.FAILING, due_at)
    if is_silent(progress, around.now):
        return Lateness(Why.SILENT, progress.expected_by)
    return Lateness(Why.PUNCTUAL if due_at > around.now else Why.DUE, due_at)


def is_silent(progress: Progress, now: datetime) -> bool:
    """Whether something new should have been seen by now, and a visit since then saw nothing."""
    expected, seen = progress.expected_by, progress.last_success_at
    return expected is not None and expected < now and seen is not None and seen > expected


def _overdue(source: Source, due_at: datetime, around: Around) -> Lateness:
    if not around.is_collecting:
        return Lateness(Why.NOBODY, due_at)
    if source.platform in around.closed:
        return Lateness(Why.BUDGET, due_at, around.closed[source.platform])
    return Lateness(Why.CROWDED if around.waiting_count > 1 else Why.STUCK, due_at)
