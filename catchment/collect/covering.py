"""A source's coverage, as the outside sees it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from catchment import coverage, pace
from catchment.coverage import Day, Hole, Stretch
from catchment.model import Order, Progress, Source, Standing
from catchment.platforms import Platforms, listing_of
from catchment.store import Store


def coverage_of(store: Store, platforms: Platforms, source_id: int, now: datetime, days: int) -> dict[str, Any]:
    """The last so many days of a source: stretches, a calendar, and how much of the time stands how."""
    source, progress = store.sources.with_progress(source_id)
    since = now - timedelta(days=days)
    order = _order(platforms, source, progress)
    holes = [Hole(*row) for row in store.gaps.since(source_id, since)]
    found = coverage.stretches(source, progress, order, holes, since, now)
    return {
        "source_id": source.id,
        "source_name": source.name,
        "order": str(order),
        "from_at": since.isoformat(),
        "to_at": now.isoformat(),
        "seconds": {str(standing): _seconds(found, standing) for standing in Standing},
        "stretches": [_shown(one) for one in found],
        "calendar": [_shown_day(one) for one in coverage.calendar(found, coverage.known_until(found, progress, now))],
    }


def _order(platforms: Platforms, source: Source, progress: Progress) -> Order:
    kind = platforms.kind(source.kind)
    # Of a kind that is not installed nothing can be said.
    return listing_of(kind, pace.asks(kind, source, progress)[0].listing).order if kind else Order.SNAPSHOT


def _seconds(found: list[Stretch], standing: Standing) -> int:
    return round(sum((one.to_at - one.from_at).total_seconds() for one in found if one.standing == standing))


def _shown(one: Stretch) -> dict[str, Any]:
    return {
        "from_at": one.from_at.isoformat(),
        "to_at": one.to_at.isoformat(),
        "standing": str(one.standing),
        "why": one.why,
        "gap_id": one.gap_id,
    }


def _shown_day(one: Day) -> dict[str, Any]:
    return {"day": one.day.isoformat(), "standing": str(one.standing), "share": one.share}
