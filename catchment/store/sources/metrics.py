"""Metrics of visits. Derived from run records, so that they can be recomputed at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from catchment.clock import EPOCH, micros, moment
from catchment.model import Record, Source
from catchment.store.database import StorePart, Transaction
from catchment.store.item_fields import decode, to_json

RECHECK_JOB = "recheck"
"""The job that rechecks items: its records are not visits."""


class MetricSpan(StrEnum):
    """The length of a metric period; both start with the clock's hour, the day at 00:00 UTC."""

    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is MetricSpan.HOUR else timedelta(days=1)

    def start(self, at: datetime) -> datetime:
        """Returns when the span that contains that moment began."""
        return at - (at - EPOCH) % self.length


class Measure(Record, frozen=True):
    """Results of visits to the sources of one kind. Sums only, so that measures can be added."""

    kind: str
    platform: str
    source_count: int = 0
    succeeded: int = 0
    """Successful visits."""
    empty: int = 0
    """Successful visits without new items."""
    failed: int = 0
    deferred: int = 0
    """Visits that our own limits (a budget, politeness, a cooldown) ended: neither successes nor failures."""
    skipped: int = 0
    visit_seconds: float = 0.0
    """Total duration of the visits that succeeded or failed."""
    new_count: int = 0
    valid_count: int = 0
    """The new posts that are neither deleted nor pinned."""
    updated_count: int = 0
    duplicate_count: int = 0
    invalid_count: int = 0
    request_count: int = 0

    def __add__(self, other: Measure) -> Measure:
        return self.replace(**{name: getattr(self, name) + getattr(other, name) for name in SUMS})


class GlobalMetrics(Record, frozen=True):
    """Metrics that belong to no kind of sources."""

    hit_count: int = 0
    miss_count: int = 0
    tiers: dict[str, int] | None = None
    """How many communities there were in each tier; None: not known any more."""


SUMS = Measure.__struct_fields__[2:]
_COLUMNS = ("span", "starts_at", "kind", "platform", *SUMS)
_KEY = ("span", "starts_at", "kind")


class Metrics(StorePart):
    def visits(self, since: datetime, until: datetime) -> list[Measure]:
        """Returns the results so far of the visits that began in that time, by kind."""
        sql = f"""
            WITH few AS MATERIALIZED
                 (SELECT s.kind, s.platform, v.source_id, v.finished_at - v.started_at AS micros, v.new_count,
                         v.valid_count, v.updated_count, v.duplicate_count, v.invalid_count, v.request_count,
                         CASE WHEN v.outcome IN ('succeeded', 'unchanged')
                                   THEN CASE WHEN v.new_count = 0 THEN 'empty' ELSE 'well' END
                              WHEN {_DEFERRED} THEN 'deferred'
                              ELSE v.outcome END AS fate
                    FROM {_VISITS}
                   WHERE v.started_at >= ? AND v.started_at < ? AND v.outcome IS NOT NULL AND r.job <> ?)
            SELECT kind, platform, count(DISTINCT source_id),
                   sum(CASE WHEN fate IN ('well', 'empty') THEN 1 ELSE 0 END),
                   sum(CASE WHEN fate = 'empty' THEN 1 ELSE 0 END),
                   sum(CASE WHEN fate = 'failed' THEN 1 ELSE 0 END),
                   sum(CASE WHEN fate = 'deferred' THEN 1 ELSE 0 END),
                   sum(CASE WHEN fate = 'skipped' THEN 1 ELSE 0 END),
                   sum(CASE WHEN fate IN ('well', 'empty', 'failed') THEN micros ELSE 0 END),
                   sum(new_count), sum(valid_count), sum(updated_count), sum(duplicate_count), sum(invalid_count),
                   sum(request_count)
              FROM few GROUP BY kind, platform ORDER BY kind
        """
        measures = []
        for kind, platform, *sums in self._all(sql, micros(since), micros(until), RECHECK_JOB):
            fields: dict[str, Any] = dict(zip(SUMS, map(int, sums), strict=True))
            fields["visit_seconds"] /= 1_000_000
            measures.append(Measure(kind, platform, **fields))
        return measures

    def errors(self, since: datetime, until: datetime) -> list[tuple[str, str, int]]:
        """Returns why visits that began in that time failed: platform, code, how often."""
        sql = f"""
            SELECT s.platform, v.error_code, count(*) FROM {_VISITS}
             WHERE v.started_at >= ? AND v.started_at < ? AND v.outcome = 'failed' AND NOT {_DEFERRED}
               AND r.job <> ?
             GROUP BY s.platform, v.error_code
        """
        rows = self._all(sql, micros(since), micros(until), RECHECK_JOB)
        return [(platform, code, count) for platform, code, count in rows]

    def has_visited(self, since: datetime) -> bool:
        """Whether a visit that began since then succeeded. Rechecks of single items are not visits."""
        sql = """
            SELECT 1 FROM run_sources v JOIN runs r ON r.id = v.run_id
             WHERE v.started_at >= ? AND v.outcome IN ('succeeded', 'unchanged') AND r.job <> ? LIMIT 1
        """
        return self._one(sql, micros(since), RECHECK_JOB) is not None

    def visited_targets(self, since: datetime) -> list[str]:
        """Returns the targets of sources with a visit that began since then succeeded; of many, some."""
        sql = f"""
            SELECT DISTINCT s.target FROM {_VISITS}
             WHERE v.started_at >= ? AND v.outcome IN ('succeeded', 'unchanged') AND r.job <> ? LIMIT 1000
        """
        return [target for (target,) in self._all(sql, micros(since), RECHECK_JOB)]

    def last_outcomes(self, since: datetime, until: datetime) -> list[tuple[str, int, bool]]:
        """Returns the sources with visits that began in that time: platform, source, whether the last of these
        failed."""
        sql = f"""
            SELECT s.platform, v.source_id,
                   max(CASE WHEN v.outcome = 'failed' THEN v.started_at ELSE 0 END),
                   max(CASE WHEN v.outcome <> 'failed' THEN v.started_at ELSE 0 END)
              FROM {_VISITS}
             WHERE v.started_at >= ? AND v.started_at < ? AND v.outcome IN ('succeeded', 'unchanged', 'failed')
               AND NOT (v.outcome = 'failed' AND {_DEFERRED}) AND r.job <> ?
             GROUP BY s.platform, v.source_id
        """
        rows = self._all(sql, micros(since), micros(until), RECHECK_JOB)
        return [(platform, source_id, failed_at > well_at) for platform, source_id, failed_at, well_at in rows]

    def next_visit(self, since: datetime) -> datetime | None:
        """Returns when the first visit since then began."""
        row = self._one(
            "SELECT started_at FROM run_sources WHERE started_at >= ? ORDER BY started_at LIMIT 1", micros(since)
        )
        return moment(row[0]) if row else None

    def calls(self, since: datetime, until: datetime) -> list[tuple[str, str, datetime, int]]:
        """Returns the attempts of that time: platform, outcome, minute, how many."""
        sql = """
            SELECT platform, outcome, minute, count FROM attempts
             WHERE minute >= ? AND minute < ? ORDER BY minute, platform, outcome
        """
        rows = self._all(sql, micros(since), micros(until))
        return [(platform, outcome, moment(minute), count) for platform, outcome, minute, count in rows]

    def calls_since(self, since: datetime) -> dict[str, int]:
        """Returns how many attempts were made since then, by platform."""
        rows = self._all("SELECT platform, sum(count) FROM attempts WHERE minute >= ? GROUP BY platform", micros(since))
        return {platform: int(count) for platform, count in rows}

    def keep(self, span: MetricSpan, starts_at: datetime, measures: Iterable[Measure]) -> None:
        """Store the measures of one span, replacing earlier ones."""
        rows = [
            (str(span), micros(starts_at), measure.kind, measure.platform, *(getattr(measure, name) for name in SUMS))
            for measure in measures
        ]
        changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEY)
        tail = f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {changes}"
        self._db.write(lambda tx: tx.insert("crawl_metrics", _COLUMNS, rows, tail))

    def kept(self, span: MetricSpan, since: datetime, until: datetime) -> list[tuple[datetime, Measure]]:
        """Returns the measures of the spans that began in that time, oldest first."""
        sql = f"""
            SELECT starts_at, kind, platform, {", ".join(SUMS)} FROM crawl_metrics
             WHERE span = ? AND starts_at >= ? AND starts_at < ? ORDER BY starts_at, kind
        """
        rows = self._all(sql, str(span), micros(since), micros(until))
        return [(moment(row[0]), Measure(*row[1:])) for row in rows]

    def keep_global_metrics(self, span: MetricSpan, starts_at: datetime, global_metrics: GlobalMetrics) -> None:
        """Store what is known; a value that was known before and is unknown now stays."""
        sql = """
            INSERT INTO global_metrics (span, starts_at, hit_count, miss_count, tiers) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (span, starts_at) DO UPDATE SET tiers = coalesce(global_metrics.tiers, excluded.tiers),
                   hit_count = CASE WHEN excluded.hit_count + excluded.miss_count > 0 THEN excluded.hit_count
                                    ELSE global_metrics.hit_count END,
                   miss_count = CASE WHEN excluded.hit_count + excluded.miss_count > 0 THEN excluded.miss_count
                                     ELSE global_metrics.miss_count END
        """
        self._run(
            sql,
            str(span),
            micros(starts_at),
            global_metrics.hit_count,
            global_metrics.miss_count,
            None if global_metrics.tiers is None else to_json(global_metrics.tiers),
        )

    def global_metrics(self, span: MetricSpan, since: datetime, until: datetime) -> dict[datetime, GlobalMetrics]:
        """Returns those of the spans that began in that time."""
        sql = """
            SELECT starts_at, hit_count, miss_count, tiers FROM global_metrics
             WHERE span = ? AND starts_at >= ? AND starts_at < ? ORDER BY starts_at
        """
        rows = self._all(sql, str(span), micros(since), micros(until))
        return {moment(at): GlobalMetrics(hits, misses, tiers and decode(tiers)) for at, hits, misses, tiers in rows}

    def last(self, span: MetricSpan) -> datetime | None:
        """Returns when the latest stored span began."""
        row = self._one("SELECT starts_at FROM crawl_metrics WHERE span = ? ORDER BY starts_at DESC LIMIT 1", str(span))
        return moment(row[0]) if row else None


_VISITS = "run_sources v JOIN runs r ON r.id = v.run_id JOIN sources s ON s.id = v.source_id"
# Older records store a deferral as a failure without an answer.
_DEFERRED = "(v.outcome = 'deferred' OR (v.error_code = 'SLOW_DOWN' AND v.http_status IS NULL))"


def count_all_attempts(tx: Transaction, attempts: Sequence[tuple[Source, Mapping[tuple[str, datetime], int]]]) -> None:
    """Count the attempts of several sources: one statement for each platform."""
    by_platform: dict[str, dict[tuple[str, datetime], int]] = {}
    for source, outcomes in attempts:
        if outcomes:
            counts = by_platform.setdefault(source.platform, {})
            for outcome, count in outcomes.items():
                counts[outcome] = counts.get(outcome, 0) + count
    for platform, outcomes in sorted(by_platform.items()):
        count_attempts(tx, platform, outcomes)


def count_attempts(tx: Transaction, platform: str, outcomes: Mapping[tuple[str, datetime], int]) -> None:
    tx.insert(
        "attempts",
        ("minute", "platform", "outcome", "count"),
        [(micros(minute), platform, outcome, count) for (outcome, minute), count in sorted(outcomes.items())],
        "ON CONFLICT (minute, platform, outcome) DO UPDATE SET count = attempts.count + excluded.count",
    )
