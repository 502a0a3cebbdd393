"""Repair of gaps: a walk down the stretch of time that a gap covers. Pure.

A gap is closed when the walk has shown an item below its lower edge: everything newer was shown before it. Until then
each page proves what it shows, so that a walk that is cut leaves a smaller gap, and the next one begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from catchment.model import (
    Gap,
    GapRemainder,
    ItemChange,
    Listing,
    Order,
    PageFacts,
    PageWrite,
    Reading,
    Record,
    RefinedItem,
    Request,
    Watermark,
)
from catchment.policy import continuity
from catchment.policy.coverage import REPAIRED
from catchment.policy.page import all_calmed, changes_of, counts_of, shows_forgotten, with_follow_ups
from catchment.policy.visit import MOST_PAGES


class RepairResult(StrEnum):
    REPAIRED = "repaired"
    PARTIAL = "partial"
    """Its upper part was repaired."""
    FAILED = "failed"
    DEFERRED = "deferred"
    """Somebody asked to wait, or a stop was requested: it costs no attempt."""


class StoppedBy(StrEnum):
    """Why a walk ended above the lower edge of its gap."""

    ERROR = "error"
    ENDED = "ended"
    """The platform shows nothing older, and nothing as old as the lower edge."""
    REPEATS = "repeats"
    TORN = "torn"
    CAP = "cap"
    UNREACHABLE = "unreachable"
    """The platform has no request for this gap."""


class RepairWalk(Record, frozen=True):
    """How far down a gap a repair has come."""

    gap: Gap
    position: continuity.Walk
    open_to_at: datetime
    """The upper edge of what is missing."""
    pages: int = 0
    shown: int = 0
    new: int = 0
    is_repaired: bool = False
    stopped_by: StoppedBy | None = None

    @property
    def is_over(self) -> bool:
        return self.is_repaired or self.stopped_by is not None

    @property
    def is_progress(self) -> bool:
        """Whether a part of the gap was repaired."""
        return self.is_repaired or self.open_to_at < self.gap.open_to_at


def begin_repair(gap: Gap, listing: Listing) -> RepairWalk:
    """Returns the walk before its first page. The lower edge is to it what the watermark is to a visit."""
    listing = listing.replace(order=Order.NEWEST_FIRST, is_window=False)
    position = continuity.Walk(listing, Watermark(gap.from_at, gap.from_ids))
    return RepairWalk(gap, position, gap.open_to_at)


class RepairPage(PageWrite, frozen=True, kw_only=True):
    """What a page of a repair changes, and how the repair continues."""

    walk: RepairWalk
    next_pages: tuple[Request, ...] = ()


def decide_repair_page(
    walk: RepairWalk,
    reading: Reading,
    items: Sequence[RefinedItem],
    skipped: int,
    at: datetime,
    recheck_ages: Sequence[timedelta],
    facts: PageFacts,
    *,
    clock_lag: timedelta = timedelta(),
) -> RepairPage:
    """Decides what a page changes: its items, and how much of the gap is left. The source's progress stays.

    `clock_lag`: how far the clock of the answer is behind ours.
    """
    gap_id = walk.gap.id
    assert gap_id is not None
    changes = changes_of(items, facts, at, recheck_ages)
    is_raw_kept = not shows_forgotten(changes)
    changes = with_follow_ups(all_calmed(changes, facts, at), reading)
    counts = counts_of(changes, skipped)
    is_repeat = continuity.is_repeat(walk.position, [change.item.item.external_id for change in changes])
    if not reading.is_torn:
        position = continuity.step(walk.position, changes, at, skipped, clock_lag=clock_lag)
        walk = walk.replace(position=position)
    pages = tuple(request for request in reading.follow if request.item_id is None and request.about_item is None)
    walk = walk.replace(pages=walk.pages + 1, shown=walk.shown + counts.shown, new=walk.new + counts.new)
    is_end = reading.is_end and not pages
    # The lowest page of all shows nothing older; that the edge itself was met is enough there.
    if not reading.is_torn and (walk.position.is_satisfied or (is_end and walk.position.is_reached)):
        closed = ((gap_id, REPAIRED),)
        walk = walk.replace(is_repaired=True, open_to_at=walk.gap.from_at)
        return RepairPage(changes, counts, is_raw_kept=is_raw_kept, closed=closed, walk=walk)
    edge = None if reading.is_torn or is_repeat else _lowest(walk, changes, at, clock_lag)
    narrowed = GapRemainder(gap_id, *edge) if edge is not None and edge[0] < walk.open_to_at else None
    walk = walk.replace(
        open_to_at=narrowed.to_at if narrowed else walk.open_to_at,
        stopped_by=_stopped_by(walk, reading, has_pages=bool(pages), is_repeat=is_repeat),
    )
    return RepairPage(
        changes,
        counts,
        is_raw_kept=is_raw_kept,
        narrowed=narrowed,
        walk=walk,
        next_pages=() if walk.is_over else pages,
    )


def _stopped_by(walk: RepairWalk, reading: Reading, *, has_pages: bool, is_repeat: bool) -> StoppedBy | None:
    if reading.is_torn:
        return StoppedBy.TORN
    if not has_pages and reading.is_end:
        return StoppedBy.ENDED
    # A parser that leads no further although there is more has met a cursor that goes in circles.
    if is_repeat or not has_pages:
        return StoppedBy.REPEATS
    return StoppedBy.CAP if walk.pages >= MOST_PAGES else None


def _lowest(
    walk: RepairWalk, changes: Sequence[ItemChange], at: datetime, clock_lag: timedelta
) -> tuple[datetime, tuple[str, ...]] | None:
    """Returns how far down the page goes for certain, and the items there; None: it does not say.

    Where single items may stand too high for their date, the last one says nothing: the newest of the last few does.
    """
    shown = [
        (min(latest, at), (item.external_id, *item.aliases))
        for change in changes
        if (latest := continuity.latest_time((item := change.item.item).created_at, at, clock_lag))
    ]
    last = shown[-1 - walk.position.listing.overlap :]
    if not last:
        return None
    edge = max(date for date, _ in last)
    if edge <= walk.gap.from_at:
        return None
    return edge, tuple(sorted(id_ for date, ids in shown if date == edge for id_ in ids))


def result_of(walk: RepairWalk, *, is_deferred: bool) -> RepairResult:
    if walk.is_repaired:
        return RepairResult.REPAIRED
    if walk.is_progress:
        return RepairResult.PARTIAL
    return RepairResult.DEFERRED if is_deferred else RepairResult.FAILED
