"""Measuring: what visiting came to in each hour and each day, and how things stood; kept once a span is over, and told.

What visits came to follows from the records of runs, and can be counted anew at any time. How things stood cannot:
reads of the hot store are counted for some days, and tiers are what they are. That is noted down when a span is over,
and what is known no more is not written over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import Any

import msgspec

from catchment.clock import EPOCH
from catchment.store.hot import HotCounts
from catchment.store.metrics import Measure, Metrics, Span, Standing

NOTHING, UNKNOWN = Measure("", ""), Standing()
_MADE_UP_FOR = timedelta(days=7)
"""So far back it is asked how often the hot store was read: its counts are kept no longer."""
_DAY = timedelta(days=1)

HotCounted = Callable[[datetime, datetime], HotCounts]
"""What became of the reads of the hot store in that time."""
Tiers = Callable[[], Mapping[str | None, int]]
"""How many communities there are in each tier at this moment; None: those in none."""


class Measuring:
    def __init__(self, metrics: Metrics, hot: HotCounted, tiers: Tiers) -> None:
        self._metrics, self._hot, self._tiers = metrics, hot, tiers

    # ── keeping ───────────────────────────────────────────────────────────────────────────────────────────────────

    def measure(self, span: Span, now: datetime, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Keep the measures of all spans that are over; gives how many there were visits in.

        Begins with the last one that is kept, once more: a visit that was under way when the span ended has ended
        since. So it also takes up where it was left off, however long nobody was there to measure.
        """
        count = 0
        for starts_at, measures in self._counted(span, self._metrics.last(span) or EPOCH):
            if starts_at + span.length > now or is_stopped():
                break
            self._metrics.keep(span, starts_at, measures, now)
            count += 1
        self._note_standings(span, now)
        return count

    def _note_standings(self, span: Span, now: datetime) -> None:
        last = span.start(now) - span.length
        since = span.start(now - _MADE_UP_FOR)
        known = self._metrics.standings(span, since, last)
        # The last one that was noted, once more: processes tell of their reads some time later.
        starts_at = max(known, default=since)
        while starts_at <= last:
            found = self._standing(span, starts_at).plus(tiers=self._assigned() if starts_at == last else None)
            if found != UNKNOWN:
                self._metrics.keep_standing(span, starts_at, found)
            starts_at += span.length

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────

    def told(self, span: Span, count: int, now: datetime, kind: str | None = None) -> list[dict[str, Any]]:
        """The latest so many spans, oldest first, the one under way included; those with nothing in them, too.

        Of one kind of sources, or of all; what belongs to no kind is told with all of them only.
        """
        newest = span.start(now)
        spans = [newest - number * span.length for number in reversed(range(count))]
        # Each hour tells of the 24 that end with it.
        found = self._found(span, spans[0] - _DAY + span.length, newest, kind)
        standings = self._standings(span, spans, now) if kind is None else {}
        shown = []
        for starts_at in spans:
            day = [starts_at - number * span.length for number in range(_DAY // span.length)]
            figures = {"valid_24h": sum(one.valid_count for at in day for one in found.get(at, ()))}
            figures |= _shown_standing(standings.get(starts_at, UNKNOWN))
            shown.append(_shown(span, starts_at, found.get(starts_at, []), now) | figures)
        return shown

    def _found(self, span: Span, first: datetime, newest: datetime, kind: str | None) -> dict[datetime, list[Measure]]:
        """As they are kept; what is under way, and what is over but not kept yet, is counted here and now."""
        found: dict[datetime, list[Measure]] = {}
        for starts_at, one in self._metrics.kept(span, first, newest):
            found.setdefault(starts_at, []).append(one)
        uncounted = max(first, (self._metrics.last(span) or EPOCH) + span.length)
        for starts_at, measures in self._counted(span, uncounted):
            if starts_at <= newest:
                found[starts_at] = list(measures)
        return {at: [one for one in measures if kind in (None, one.kind)] for at, measures in found.items()}

    def _standings(self, span: Span, spans: Sequence[datetime], now: datetime) -> dict[datetime, Standing]:
        noted, newest = self._metrics.standings(span, spans[0], spans[-1]), spans[-1]
        last = max(noted, default=now - _MADE_UP_FOR)
        found = noted | {one: self._standing(span, one) for one in spans if one > last}
        return found | {newest: found[newest].plus(tiers=self._assigned())}

    # ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _counted(self, span: Span, since: datetime) -> Iterator[tuple[datetime, Sequence[Measure]]]:
        """Every span in which a visit began, from then on: stretches without any cost nothing."""
        at = self._metrics.next_visit(since)
        while at is not None:
            starts_at = span.start(at)
            yield starts_at, self._metrics.visits(starts_at, starts_at + span.length)
            at = self._metrics.next_visit(starts_at + span.length)

    def _standing(self, span: Span, starts_at: datetime) -> Standing:
        counts = self._hot(starts_at, starts_at + span.length)
        return Standing(counts.hits, counts.misses)

    def _assigned(self) -> dict[str, int]:
        return dict(sorted((tier, count) for tier, count in self._tiers().items() if tier is not None))


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


def _shown_standing(one: Standing) -> dict[str, Any]:
    reads = one.hit_count + one.miss_count
    return {"hit_rate": round(one.hit_count / reads, 4) if reads else None, "tiers": one.tiers}
