"""Which stretches of time a source is proven to be complete for, and which not, and why. Pure: derived from what is
stored already, so that no visit has to write a word more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from catchment.model import Order, Progress, Record, Source, SourceState, Standing

_WORSE = list(Standing)
_CAUSES = {
    "window": "the feed turned over completely between two visits",
    "reach": "the platform shows no more than this",
    "cap": "our own limit of pages ended the walk",
    "money": "the budget of paid requests ended the walk",
    "repeats": "the platform's pages go in circles",
}


class Hole(Record, frozen=True):
    """A gap, open or closed."""

    id: int
    is_certain: bool
    from_at: datetime
    to_at: datetime
    cause: str
    closed_because: str | None = None
    """None: it is open."""


class Stretch(Record, frozen=True):
    """From when to when, how it stands, and why so."""

    from_at: datetime
    to_at: datetime
    standing: Standing
    why: str
    gap_id: int | None = None


class Day(Record, frozen=True):
    """A day in UTC: the worst of what it holds, and how much of it is verified or repaired."""

    day: date
    standing: Standing
    share: float


def stretches(
    source: Source, progress: Progress, order: Order, holes: Sequence[Hole], since: datetime, now: datetime
) -> list[Stretch]:
    """The time from `since` until `now`, without a seam, in order."""
    ground = [one for one in _ground(source, progress, order, since, now) if one.from_at < one.to_at]
    gaps = [_stretch_of(hole) for hole in holes]
    edges = sorted(
        {since, now, *(at for one in (*ground, *gaps) for at in (one.from_at, one.to_at) if since < at < now)}
    )
    pieces = [_at(start, end, ground, gaps) for start, end in pairwise(edges)]
    return list(_joined(pieces))


def calendar(found: Sequence[Stretch], until: datetime) -> list[Day]:
    """Day by day, up to the moment until which something is known."""
    days: dict[date, list[tuple[Standing, timedelta]]] = {}
    for one in found:
        for day, part in _by_day(one.from_at, min(one.to_at, until)):
            days.setdefault(day, []).append((one.standing, part))
    return [_day(day, parts) for day, parts in sorted(days.items())]


def known_until(found: Sequence[Stretch], progress: Progress, now: datetime) -> datetime:
    """What comes after the last good visit is open yet, and no mark against the day; unless it cannot be asked for."""
    if found and found[-1].standing == Standing.UNREACHABLE:
        return now
    return progress.last_success_at or now


def _ground(source: Source, progress: Progress, order: Order, since: datetime, now: datetime) -> Iterator[Stretch]:
    """What holds where there is no gap."""
    began, last = progress.first_polled_at, progress.last_success_at
    if began is None or last is None:
        yield _tail(source, progress, since, now, "never read")
        return
    yield Stretch(since, max(began, since), Standing.UNPROVEN, "before the first visit")
    if order == Order.NEWEST_FIRST:
        yield Stretch(began, last, Standing.VERIFIED, "walked down to what was stored before")
    else:
        yield Stretch(began, last, Standing.UNPROVEN, f"a {order} listing shows some, and proves nothing")
    yield _tail(source, progress, max(last, since), now, "not asked since")


def _tail(source: Source, progress: Progress, start: datetime, now: datetime, otherwise: str) -> Stretch:
    if source.state != SourceState.ACTIVE:
        why = f"{source.state}: {source.state_reason}" if source.state_reason else str(source.state)
        return Stretch(start, now, Standing.UNREACHABLE, why)
    if progress.last_error is not None:
        return Stretch(start, now, Standing.UNREACHABLE, progress.last_error)
    return Stretch(start, now, Standing.UNPROVEN, otherwise)


def _stretch_of(hole: Hole) -> Stretch:
    standing = Standing.of_gap(hole.is_certain, hole.closed_because is not None)
    why = _CAUSES.get(hole.cause, hole.cause)
    if hole.closed_because is not None:
        why += f"; {hole.closed_because}"
    return Stretch(hole.from_at, hole.to_at, standing, why, hole.id)


def _at(start: datetime, end: datetime, ground: Sequence[Stretch], gaps: Sequence[Stretch]) -> Stretch:
    """What holds between two neighbouring edges: the worst gap there, else the ground."""
    here = [one for one in gaps if one.from_at <= start and end <= one.to_at]
    if not here:
        here = [one for one in ground if one.from_at <= start and end <= one.to_at]
    return max(here, key=lambda one: _WORSE.index(one.standing)).plus(from_at=start, to_at=end)


def _joined(pieces: Sequence[Stretch]) -> Iterator[Stretch]:
    """Neighbours that say the same are one."""
    before: Stretch | None = None
    for one in pieces:
        if before is not None and one.plus(from_at=before.from_at, to_at=before.to_at) == before:
            before = before.plus(to_at=one.to_at)
            continue
        if before is not None:
            yield before
        before = one
    if before is not None:
        yield before


def _by_day(start: datetime, end: datetime) -> Iterator[tuple[date, timedelta]]:
    while start < end:
        midnight = datetime.combine(start.date() + timedelta(days=1), time(), tzinfo=UTC)
        part = min(end, midnight)
        yield start.date(), part - start
        start = part


def _day(day: date, parts: Sequence[tuple[Standing, timedelta]]) -> Day:
    worst = max((standing for standing, _ in parts), key=_WORSE.index)
    whole = sum((part for _, part in parts), timedelta())
    good = sum((part for one, part in parts if one in (Standing.VERIFIED, Standing.REPAIRED)), timedelta())
    return Day(day, worst, round(good / whole, 4))
