"""Hourly and daily metrics: stored when a span is over, and shown with the current one.

Metrics of visits are derived from run records and can be recomputed at any time. Global ones cannot: cache reads are
counted for some days only, and tiers are a snapshot. Those are stored when a span is over, and never overwritten with
unknown values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from threading import Lock
from typing import Any, TypeVar

from catchment.clock import EPOCH
from catchment.model import View
from catchment.store.cache import CacheCounts
from catchment.store.sources.metrics import SUMS, GlobalMetrics, Measure, Metrics, MetricSpan

NOTHING, UNKNOWN = Measure("", ""), GlobalMetrics()
_BACKFILLED_FOR = timedelta(days=7)
"""How far back cache reads are queried: their counts are kept no longer."""
_DAY = timedelta(days=1)

HotCounted = Callable[[datetime, datetime], CacheCounts]
"""Returns the counts of cache reads in that time."""
Tiers = Callable[[], Mapping[str | None, int]]
"""Returns how many communities there are in each tier now; None: those without a tier."""


class VisitFigures(View, frozen=True):
    """The results of visits: sums, and ratios derived from them; None where nothing was counted."""

    source_count: int
    succeeded: int
    empty: int
    failed: int
    deferred: int
    skipped: int
    success_rate: float | None
    mean_seconds: float | None
    new_count: int
    valid_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class KindMetrics(VisitFigures, frozen=True):
    """The results of visits to the sources of one kind."""

    kind: str
    platform: str


class MetricPoint(VisitFigures, frozen=True):
    """The metrics of one hour or day."""

    starts_at: datetime
    ends_at: datetime
    is_over: bool
    valid_24h: int
    """New valid items in the 24 hours that end with it."""
    hit_rate: float | None
    """Of the cache; None: no reads, or not known."""
    tiers: dict[str, int] | None
    """How many communities were in each tier at its end; None: not known."""
    kinds: tuple[KindMetrics, ...]


F = TypeVar("F", bound=VisitFigures)


def _figures(view: type[F], measure: Measure, **others: Any) -> F:
    sums = {name: getattr(measure, name) for name in SUMS if name != "visit_seconds"}
    visits = measure.succeeded + measure.failed
    success_rate = round(measure.succeeded / visits, 4) if visits else None
    mean_seconds = round(measure.visit_seconds / visits, 3) if visits else None
    return view(**sums, success_rate=success_rate, mean_seconds=mean_seconds, **others)


class MetricsRecorder:
    def __init__(self, metrics: Metrics, hot: HotCounted, tiers: Tiers) -> None:
        self._metrics, self._hot, self._tiers = metrics, hot, tiers

    def measure(self, span: MetricSpan, now: datetime, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Store the metrics of all completed spans; returns how many had visits.

        Begins with the last stored one, again: a visit that was running when the span ended has ended since. So it also
        continues where it stopped, however long no process was running.
        """
        count = 0
        for starts_at, measures in self._counted(span, self._metrics.last(span) or EPOCH):
            if starts_at + span.length > now or is_stopped():
                break
            self._metrics.keep(span, starts_at, measures)
            count += 1
        last, since = span.start(now) - span.length, span.start(now - _BACKFILLED_FOR)
        # The last stored one, again: processes report their reads with a delay.
        starts_at = max(self._metrics.global_metrics(span, since, last), default=since)
        while starts_at <= last:
            tiers = self._assigned() if starts_at == last else None
            global_metrics = self._global_metrics(span, starts_at).replace(tiers=tiers)
            if global_metrics != UNKNOWN:
                self._metrics.keep_global_metrics(span, starts_at, global_metrics)
            starts_at += span.length
        return count

    def latest(self, span: MetricSpan, count: int, now: datetime, kind: str | None = None) -> list[MetricPoint]:
        """Returns the latest `count` spans, oldest first, including the current one and empty ones.

        For one kind of sources, or for all; global values are included only for all.
        """
        newest = span.start(now)
        spans = [newest - steps * span.length for steps in reversed(range(count))]
        # Each hour includes a sum over the 24 hours that end with it.
        measures = self._measures(span, spans[0] - _DAY + span.length, newest, kind)
        by_start: dict[datetime, GlobalMetrics] = {}
        if kind is None:
            by_start = self._metrics.global_metrics(span, spans[0], newest)
            last = max(by_start, default=now - _BACKFILLED_FOR)
            by_start |= {at: self._global_metrics(span, at) for at in spans if at > last}
            by_start[newest] = by_start[newest].replace(tiers=self._assigned())
        points = []
        for starts_at in spans:
            day = [starts_at - steps * span.length for steps in range(_DAY // span.length)]
            of_span, global_metrics = measures.get(starts_at, []), by_start.get(starts_at, UNKNOWN)
            reads = global_metrics.hit_count + global_metrics.miss_count
            point = _figures(
                MetricPoint,
                reduce(add, of_span, NOTHING),
                starts_at=starts_at,
                ends_at=starts_at + span.length,
                is_over=starts_at + span.length <= now,
                valid_24h=sum(measure.valid_count for at in day for measure in measures.get(at, ())),
                hit_rate=round(global_metrics.hit_count / reads, 4) if reads else None,
                tiers=global_metrics.tiers,
                kinds=tuple(
                    _figures(KindMetrics, measure, kind=measure.kind, platform=measure.platform) for measure in of_span
                ),
            )
            points.append(point)
        return points

    def _measures(
        self, span: MetricSpan, first: datetime, newest: datetime, kind: str | None
    ) -> dict[datetime, list[Measure]]:
        """Returns stored metrics; the current span, and completed ones that are not stored yet, are computed here."""
        by_span: dict[datetime, list[Measure]] = {}
        for starts_at, measure in self._metrics.kept(span, first, newest):
            by_span.setdefault(starts_at, []).append(measure)
        uncounted = max(first, (self._metrics.last(span) or EPOCH) + span.length)
        for starts_at, measures in self._counted(span, uncounted):
            if starts_at <= newest:
                by_span[starts_at] = list(measures)
        return {
            at: [measure for measure in measures if kind in (None, measure.kind)] for at, measures in by_span.items()
        }

    def _counted(self, span: MetricSpan, since: datetime) -> Iterator[tuple[datetime, Sequence[Measure]]]:
        """Yields every span in which a visit began, from then on: periods without visits cost nothing."""
        at = self._metrics.next_visit(since)
        while at is not None:
            starts_at = span.start(at)
            yield starts_at, self._metrics.visits(starts_at, starts_at + span.length)
            at = self._metrics.next_visit(starts_at + span.length)

    def _global_metrics(self, span: MetricSpan, starts_at: datetime) -> GlobalMetrics:
        counts = self._hot(starts_at, starts_at + span.length)
        return GlobalMetrics(counts.hits, counts.misses)

    def _assigned(self) -> dict[str, int]:
        return dict(sorted((tier, count) for tier, count in self._tiers().items() if tier is not None))


Key = tuple[str, ...]
"""What is counted, with its labels: ("attempts", platform, outcome), ("visits", platform, kind, fate) …"""


class Totals:
    """Monotonic counters for Prometheus. Thread-safe.

    Hours that may still change are recomputed each time; past ones are only added up, so that the cost does not grow
    with uptime.
    """

    def __init__(self, metrics: Metrics, hot: HotCounted, began: datetime) -> None:
        self._metrics, self._hot = metrics, hot
        self._past: Counter[Key] = Counter()
        self._open = {MetricSpan.HOUR.start(began): Counter[Key]()}
        self._lock = Lock()

    def counted(self, now: datetime) -> Counter[Key]:
        """Returns all counts since the hour in which it began."""
        with self._lock:
            newest = MetricSpan.HOUR.start(now)
            hour = min(self._open)
            while hour <= newest:
                # A reported count never decreases, whatever was cleaned up meanwhile; zero counts are reported, too.
                before, after = self._open.get(hour, Counter()), self._of(hour)
                self._open[hour] = Counter({key: max(before[key], after[key]) for key in {*before, *after}})
                hour += MetricSpan.HOUR.length
            # A visit that began in an hour may end in the next one.
            for over in [at for at in self._open if at < newest - MetricSpan.HOUR.length]:
                self._past.update(self._open.pop(over))
            total = self._past.copy()
            for counts in self._open.values():
                total.update(counts)
            return total

    def _of(self, hour: datetime) -> Counter[Key]:
        until = hour + MetricSpan.HOUR.length
        counts: Counter[Key] = Counter()
        for platform, outcome, _, count in self._metrics.calls(hour, until):
            counts["attempts", platform, outcome] += count
        for visit in self._metrics.visits(hour, until):
            of = (visit.platform, visit.kind)
            for fate in ("succeeded", "failed", "deferred", "skipped"):
                counts["visits", *of, fate] = getattr(visit, fate)
            for result in ("new", "updated", "duplicate", "invalid"):
                counts["items", *of, result] = getattr(visit, f"{result}_count")
            counts["microseconds", *of] = round(visit.visit_seconds * 1_000_000)
        hot = self._hot(hour, until)
        counts["hot", "hit"], counts["hot", "miss"] = hot.hits, hot.misses
        return counts
