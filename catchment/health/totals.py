"""Counters that only grow, from records that come and go: as one serving process has seen them grow since it began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from threading import Lock

from catchment.store.hot import HotCounts
from catchment.store.metrics import Metrics, Span

Key = tuple[str, ...]
"""What is counted, and of what: ("attempts", platform, outcome), ("visits", platform, kind, fate) …"""
HotCounted = Callable[[datetime, datetime], HotCounts]


class Totals:
    """Safe for threads. The hours that may still change are counted anew each time; what is past is only added up, so
    that the cost does not grow with the time that it has run."""

    def __init__(self, metrics: Metrics, hot: HotCounted, began: datetime) -> None:
        self._metrics, self._hot = metrics, hot
        self._past: Counter[Key] = Counter()
        self._open = {Span.HOUR.start(began): Counter[Key]()}
        self._lock = Lock()

    def counted(self, now: datetime) -> Counter[Key]:
        """All that was counted from the hour on in which it began."""
        with self._lock:
            newest = Span.HOUR.start(now)
            hour = min(self._open)
            while hour <= newest:
                self._open[hour] = _larger(self._open.get(hour, Counter()), self._of(hour))
                hour += Span.HOUR.length
            # A visit that began in an hour may end in the next one.
            for over in [one for one in self._open if one < newest - Span.HOUR.length]:
                self._past.update(self._open.pop(over))
            total = self._past.copy()
            for counts in self._open.values():
                total.update(counts)
            return total

    def _of(self, hour: datetime) -> Counter[Key]:
        until = hour + Span.HOUR.length
        counts: Counter[Key] = Counter()
        for platform, outcome, _, count in self._metrics.calls(hour, until):
            counts["attempts", platform, outcome] += count
        for one in self._metrics.visits(hour, until):
            of = (one.platform, one.kind)
            for fate in ("succeeded", "failed", "put_off", "skipped"):
                counts["visits", *of, fate] = getattr(one, fate)
            for deed in ("new", "updated", "duplicate", "invalid"):
                counts["items", *of, deed] = getattr(one, f"{deed}_count")
            counts["microseconds", *of] = round(one.visit_seconds * 1_000_000)
        hot = self._hot(hour, until)
        counts["hot", "hit"], counts["hot", "miss"] = hot.hits, hot.misses
        return counts


def _larger(before: Counter[Key], after: Counter[Key]) -> Counter[Key]:
    """What was told once stays told, whatever was cleared meanwhile; a count of zero is told, too."""
    return Counter({key: max(before[key], after[key]) for key in {*before, *after}})
