"""Coverage: for which periods a source is proven complete, for which not, and why. Pure.

Derived from stored data, so that visits need not write anything more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import pairwise

from catchment.messages import Message, message
from catchment.model import (
    CoverageState,
    Kind,
    Order,
    Progress,
    Record,
    Source,
    SourceState,
)

MOST_ATTEMPTS = 3
"""Per gap, without any progress. A part that was repaired gives what is left as many again."""
REPAIRED = Message("gap.repaired")
"""Why a gap was closed."""
_WORSE = list(CoverageState)
_CAUSES = {
    "window": "the feed turned over completely between two visits",
    "reach": "the platform shows no more than this",
    "cap": "our own limit of pages ended the walk",
    "money": "a spending cap ended the walk",
    "repeats": "the platform's pages go in circles",
    "incomplete": "the platform announced a further page, and it was empty",
}


class Hole(Record, frozen=True):
    """A gap, open or closed."""

    id: int
    is_certain: bool
    from_at: datetime
    to_at: datetime
    cause: str
    closed_because: Message | None = None
    """None: it is open."""


class Stretch(Record, frozen=True):
    """A period with its standing and the reason."""

    from_at: datetime
    to_at: datetime
    standing: CoverageState
    why: str
    gap_id: int | None = None


class Day(Record, frozen=True):
    """A day in UTC: its worst standing, and the share of it that is verified or repaired."""

    day: date
    standing: CoverageState
    share: float


def stretches(
    source: Source, progress: Progress, order: Order, holes: Sequence[Hole], since: datetime, now: datetime
) -> list[Stretch]:
    """Returns adjoining periods from `since` until `now`, in order."""
    ground = [stretch for stretch in _ground(source, progress, order, since, now) if stretch.from_at < stretch.to_at]
    gaps = [_stretch_of(hole) for hole in holes]
    edges = sorted(
        {
            since,
            now,
            *(at for stretch in (*ground, *gaps) for at in (stretch.from_at, stretch.to_at) if since < at < now),
        }
    )
    pieces = [_at(start, end, ground, gaps) for start, end in pairwise(edges)]
    return list(_joined(pieces))


def calendar(stretches: Sequence[Stretch], until: datetime) -> list[Day]:
    """Returns the standing per day, up to the time until which something is known."""
    days: dict[date, list[tuple[CoverageState, timedelta]]] = {}
    for stretch in stretches:
        for day, part in _by_day(stretch.from_at, min(stretch.to_at, until)):
            days.setdefault(day, []).append((stretch.standing, part))
    return [_day(day, parts) for day, parts in sorted(days.items())]


def known_until(stretches: Sequence[Stretch], progress: Progress, now: datetime) -> datetime:
    """Returns the last success: time after it is still open and does not count against the day, unless it is
    unreachable."""
    if stretches and stretches[-1].standing == CoverageState.UNREACHABLE:
        return now
    return progress.last_success_at or now


def _ground(source: Source, progress: Progress, order: Order, since: datetime, now: datetime) -> Iterator[Stretch]:
    """Yields the standing where there is no gap."""
    began, last = progress.first_polled_at, progress.last_success_at
    if began is None or last is None:
        # A failure says nothing about the time before the source was added.
        start = min(max(source.created_at, since), now)
        yield Stretch(since, start, CoverageState.UNPROVEN, "before it was added")
        yield _tail(source, progress, start, now, "never read")
        return
    yield Stretch(since, max(began, since), CoverageState.UNPROVEN, "before the first visit")
    if order == Order.NEWEST_FIRST:
        yield Stretch(began, last, CoverageState.VERIFIED, "walked down to what was stored before")
    else:
        yield Stretch(began, last, CoverageState.UNPROVEN, f"a {order} listing shows some, and proves nothing")
    yield _tail(source, progress, max(last, since), now, "not asked since")


def _tail(source: Source, progress: Progress, start: datetime, now: datetime, fallback: str) -> Stretch:
    if source.state != SourceState.ACTIVE:
        why = f"{source.state}: {source.state_reason}" if source.state_reason else str(source.state)
        return Stretch(start, now, CoverageState.UNREACHABLE, why)
    if progress.last_error is not None:
        return Stretch(start, now, CoverageState.UNREACHABLE, progress.last_error)
    return Stretch(start, now, CoverageState.UNPROVEN, fallback)


def _stretch_of(hole: Hole) -> Stretch:
    standing = CoverageState.of_gap(hole.is_certain, hole.closed_because is not None)
    why = _CAUSES.get(hole.cause, hole.cause)
    if hole.closed_because is not None:
        why += f"; {hole.closed_because}"
    return Stretch(hole.from_at, hole.to_at, standing, why, hole.id)


def _at(start: datetime, end: datetime, ground: Sequence[Stretch], gaps: Sequence[Stretch]) -> Stretch:
    """Returns the standing between two neighbouring edges: the worst gap there, else the ground."""
    here = [gap for gap in gaps if gap.from_at <= start and end <= gap.to_at]
    if not here:
        here = [stretch for stretch in ground if stretch.from_at <= start and end <= stretch.to_at]
    return max(here, key=lambda stretch: _WORSE.index(stretch.standing)).replace(from_at=start, to_at=end)


def _joined(pieces: Sequence[Stretch]) -> Iterator[Stretch]:
    """Merges neighbouring periods that are otherwise equal."""
    before: Stretch | None = None
    for piece in pieces:
        if before is not None and piece.replace(from_at=before.from_at, to_at=before.to_at) == before:
            before = before.replace(to_at=piece.to_at)
            continue
        if before is not None:
            yield before
        before = piece
    if before is not None:
        yield before


def _by_day(start: datetime, end: datetime) -> Iterator[tuple[date, timedelta]]:
    while start < end:
        midnight = datetime.combine(start.date() + timedelta(days=1), time(), tzinfo=UTC)
        part = min(end, midnight)
        yield start.date(), part - start
        start = part


def _day(day: date, parts: Sequence[tuple[CoverageState, timedelta]]) -> Day:
    worst = max((standing for standing, _ in parts), key=_WORSE.index)
    whole = sum((part for _, part in parts), timedelta())
    good = sum(
        (part for standing, part in parts if standing in (CoverageState.VERIFIED, CoverageState.REPAIRED)),
        timedelta(),
    )
    return Day(day, worst, round(good / whole, 4))


# Repair of gaps


class Repairability(StrEnum):
    """Whether a gap can be repaired."""

    CLOSED = "closed"
    """Its items were shown again by the usual listing."""
    REPAIRED = "repaired"
    POSSIBLE = "possible"
    GIVEN_UP = "given_up"
    IMPOSSIBLE = "impossible"


def outlook_of(kind: Kind | None, attempt_count: int, closed_because: Message | None) -> Repairability:
    if closed_because is not None:
        return Repairability.REPAIRED if closed_because == REPAIRED else Repairability.CLOSED
    if kind is None or not kind.gap_repair:
        return Repairability.IMPOSSIBLE
    return Repairability.GIVEN_UP if attempt_count >= MOST_ATTEMPTS else Repairability.POSSIBLE


def repair_message(
    outlook: Repairability, kind: Kind | None, stopped_by: str | None, error: str | None
) -> Message | None:
    """Returns a sentence about the repair of a gap: what may be missing although it is closed, what the last attempt
    came to, or why there is none."""
    why = error or (message(f"gap.{stopped_by}") if stopped_by else None)
    match outlook:
        case Repairability.REPAIRED:
            return Message(kind.gap_repair) if kind and kind.gap_repair else None
        case Repairability.IMPOSSIBLE:
            return message("gap.impossible")
        case Repairability.GIVEN_UP:
            return message("gap.given_up", count=MOST_ATTEMPTS, why=why or message("gap.cut"))
        case Repairability.POSSIBLE:
            return message("gap.tried", why=why) if why else message("gap.possible")
    return None
