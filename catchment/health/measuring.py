"""Measuring: what visiting came to in each hour and each day; kept once a span is over, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

import msgspec

from catchment.clock import EPOCH
from catchment.store.metrics import Measure, Metrics, Span

NOTHING = Measure("", "")
Measured = tuple[datetime, Sequence[Measure]]
"""When a span began, and what it came to, kind by kind."""


def measure(metrics: Metrics, span: Span, now: datetime, is_stopped: Callable[[], bool] = lambda: False) -> int:
    """Keep the measures of all spans that are over; gives how many were measured.

    Begins with the last one that is kept, once more: a visit that was under way when the span ended has ended since. So
    it also takes up where it was left off, however long nobody was there to measure.
    """
    count = 0
    for starts_at, measures in _counted(metrics, span, metrics.last(span) or EPOCH):
        if starts_at + span.length > now or is_stopped():
            break
        metrics.keep(span, starts_at, measures, now)
        count += 1
    return count


def told(metrics: Metrics, span: Span, count: int, now: datetime, kind: str | None = None) -> list[dict[str, Any]]:
    """The latest so many spans, oldest first, the one under way included; those with nothing in them, too.

    Of one kind of sources, or of all.
    """
    newest = span.start(now)
    first = newest - (count - 1) * span.length
    found: dict[datetime, list[Measure]] = {}
    for starts_at, one in metrics.kept(span, first, newest):
        found.setdefault(starts_at, []).append(one)
    # What is under way, and what is over but not kept yet, is counted here and now.
    uncounted = max(first, (metrics.last(span) or EPOCH) + span.length)
    found |= {starts_at: list(ones) for starts_at, ones in _counted(metrics, span, uncounted) if starts_at <= newest}
    spans = [first + number * span.length for number in range(count)]
    return [_shown(span, starts_at, _of(kind, found.get(starts_at, [])), now) for starts_at in spans]


def _of(kind: str | None, measures: Sequence[Measure]) -> list[Measure]:
    return [one for one in measures if kind in (None, one.kind)]


def _counted(metrics: Metrics, span: Span, since: datetime) -> Iterator[Measured]:
    """Every span in which a visit began, from then on: stretches without any cost nothing."""
    at = metrics.next_visit(since)
    while at is not None:
        starts_at = span.start(at)
        yield starts_at, metrics.visits(starts_at, starts_at + span.length)
        at = metrics.next_visit(starts_at + span.length)


def _shown(span: Span, starts_at: datetime, measures: Sequence[Measure], now: datetime) -> dict[str, Any]:
    ends_at = starts_at + span.length
    return {
        "starts_at": starts_at.isoformat(),
        "ends_at": ends_at.isoformat(),
        "is_over": ends_at <= now,
        **_figures(reduce(add, measures, NOTHING)),
        "kinds": [{"kind": one.kind, "platform": one.platform, **_figures(one)} for one in measures],
    }


def _figures(one: Measure) -> dict[str, Any]:
    """The sums, and what follows from them. Of nothing there is neither share nor mean."""
    sums = msgspec.structs.asdict(one)
    for name in ("kind", "platform", "visit_seconds"):
        del sums[name]
    visits = one.succeeded + one.failed
    return sums | {
        "success_rate": round(one.succeeded / visits, 4) if visits else None,
        "mean_seconds": round(one.visit_seconds / visits, 3) if visits else None,
    }
