"""Metrics: what visiting came to. Derived from the records of runs, so that they can be counted anew at any time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from catchment.clock import EPOCH, micros, moment
from catchment.model import Record
from catchment.store.database import Database, Row, Transaction
from catchment.store.rows import decode, to_json

LOOK_AGAIN = "look-again"
"""The job whose records tell of second looks at items: they are no visits."""


class Span(StrEnum):
    """What is measured together; both begin with the clock's hour, the day at 00:00 UTC."""

    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is Span.HOUR else timedelta(days=1)

    def start(self, at: datetime) -> datetime:
        """When the span began in which that moment lies."""
        return at - (at - EPOCH) % self.length


class Measure(Record, frozen=True):
    """What visiting the sources of one kind came to. Sums only, so that measures can be added."""

    kind: str
    platform: str
    source_count: int = 0
    succeeded: int = 0
    """Visits that went well …"""
    empty: int = 0
    """… and those among them that brought nothing new."""
    failed: int = 0
    put_off: int = 0
    """Visits that ended because our own budget was used up: nobody's failure."""
    skipped: int = 0
    visit_seconds: float = 0.0
    """How long the visits that went well, or failed, took together."""
    new_count: int = 0
    valid_count: int = 0
    """Of the new ones, the posts that are neither taken away nor pinned."""
    updated_count: int = 0
    duplicate_count: int = 0
    invalid_count: int = 0
    request_count: int = 0

    def __add__(self, other: Measure) -> Measure:
        return self.plus(**{name: getattr(self, name) + getattr(other, name) for name in SUMS})


class Standing(Record, frozen=True):
    """What belongs to no kind of sources."""

    hit_count: int = 0
    miss_count: int = 0
    tiers: dict[str, int] | None = None
    """How many communities there were in each tier; None: not known any more."""


SUMS = Measure.__struct_fields__[2:]
_COLUMNS = ("span", "starts_at", "kind", "platform", *SUMS, "measured_at")
_KEY = ("span", "starts_at", "kind")


class Metrics:
    def __init__(self, database: Database) -> None:
        self._db = database

    # ── from the records of runs ──────────────────────────────────────────────────────────────────────────────────

    def visits(self, since: datetime, until: datetime) -> list[Measure]:
        """What the visits that began in that time have come to so far, kind by kind."""
        rows = self._db.read(lambda tx: _visits(tx, micros(since), micros(until)))
        return [_measure(row) for row in rows]

    def errors(self, since: datetime, until: datetime) -> list[tuple[str, str, int]]:
        """Why visits failed that began in that time: platform, code, how often."""
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT s.platform, v.error_code, count(*) FROM {_VISITS}
                 WHERE v.started_at >= ? AND v.started_at < ? AND v.outcome = 'failed' AND NOT {_PUT_OFF} AND r.job <> ?
                 GROUP BY s.platform, v.error_code
                """,
                micros(since),
                micros(until),
                LOOK_AGAIN,
            )
        )
        return [(platform, code, count) for platform, code, count in rows]

    def has_visited(self, since: datetime) -> bool:
        """Whether a visit that began since then went well."""
        sql = "SELECT 1 FROM run_sources WHERE started_at >= ? AND outcome IN ('succeeded', 'unchanged') LIMIT 1"
        return self._db.read(lambda tx: tx.one(sql, micros(since))) is not None

    def next_visit(self, since: datetime) -> datetime | None:
        """When the first visit since then began."""
        row = self._db.read(
            lambda tx: tx.one(
                "SELECT started_at FROM run_sources WHERE started_at >= ? ORDER BY started_at LIMIT 1", micros(since)
            )
        )
        return moment(row[0]) if row else None

    def calls(self, since: datetime, until: datetime) -> list[tuple[str, str, datetime, int]]:
        """The attempts of that time: platform, outcome, minute, how many."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT platform, outcome, minute, count FROM attempts
                 WHERE minute >= ? AND minute < ? ORDER BY minute, platform, outcome
                """,
                micros(since),
                micros(until),
            )
        )
        return [(platform, outcome, moment(minute), count) for platform, outcome, minute, count in rows]

    def calls_since(self, since: datetime) -> dict[str, int]:
        """How many attempts were made since then, by platform."""
        rows = self._db.read(
            lambda tx: tx.all(
                "SELECT platform, sum(count) FROM attempts WHERE minute >= ? GROUP BY platform", micros(since)
            )
        )
        return {platform: int(count) for platform, count in rows}

    # ── as they are kept ──────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, span: Span, starts_at: datetime, measures: Iterable[Measure], now: datetime) -> None:
        """Write the measures of one span over what was kept of it."""
        rows = [_kept_row(span, starts_at, one, now) for one in measures]
        changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEY)
        tail = f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {changes}"
        self._db.write(lambda tx: tx.insert("crawl_metrics", _COLUMNS, rows, tail))

    def kept(self, span: Span, since: datetime, until: datetime) -> list[tuple[datetime, Measure]]:
        """Those of the spans that began in that time, oldest first."""
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT starts_at, kind, platform, {", ".join(SUMS)} FROM crawl_metrics
                 WHERE span = ? AND starts_at >= ? AND starts_at < ? ORDER BY starts_at, kind
                """,
                str(span),
                micros(since),
                micros(until),
            )
        )
        return [(moment(row[0]), Measure(*row[1:])) for row in rows]

    def keep_standing(self, span: Span, starts_at: datetime, one: Standing) -> None:
        """What is known of it; what was known before, and is not any more, stays."""
        self._db.write(
            lambda tx: tx.run(
                """
                INSERT INTO standings (span, starts_at, hit_count, miss_count, tiers) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (span, starts_at) DO UPDATE SET tiers = coalesce(standings.tiers, excluded.tiers),
                       hit_count = CASE WHEN excluded.hit_count + excluded.miss_count > 0 THEN excluded.hit_count
                                        ELSE standings.hit_count END,
                       miss_count = CASE WHEN excluded.hit_count + excluded.miss_count > 0 THEN excluded.miss_count
                                         ELSE standings.miss_count END
                """,
                str(span),
                micros(starts_at),
                one.hit_count,
                one.miss_count,
                None if one.tiers is None else to_json(one.tiers),
            )
        )

    def standings(self, span: Span, since: datetime, until: datetime) -> dict[datetime, Standing]:
        """Those of the spans that began in that time."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT starts_at, hit_count, miss_count, tiers FROM standings
                 WHERE span = ? AND starts_at >= ? AND starts_at < ? ORDER BY starts_at
                """,
                str(span),
                micros(since),
                micros(until),
            )
        )
        return {moment(at): Standing(hits, misses, tiers and decode(tiers)) for at, hits, misses, tiers in rows}

    def last(self, span: Span) -> datetime | None:
        """When the latest span began that is kept."""
        row = self._db.read(
            lambda tx: tx.one(
                "SELECT starts_at FROM crawl_metrics WHERE span = ? ORDER BY starts_at DESC LIMIT 1", str(span)
            )
        )
        return moment(row[0]) if row else None


_VISITS = "run_sources v JOIN runs r ON r.id = v.run_id JOIN sources s ON s.id = v.source_id"
# Our own budget, or a pause that somebody asked for: without a request, there is no answer that could fail.
_PUT_OFF = "(v.error_code = 'SLOW_DOWN' AND v.http_status IS NULL)"


def _visits(tx: Transaction, since: int, until: int) -> Sequence[Row]:
    return tx.all(
        f"""
        WITH few AS MATERIALIZED
             (SELECT s.kind, s.platform, v.source_id, v.finished_at - v.started_at AS micros, v.new_count,
                     v.valid_count, v.updated_count, v.duplicate_count, v.invalid_count, v.request_count,
                     CASE WHEN v.outcome IN ('succeeded', 'unchanged')
                               THEN CASE WHEN v.new_count = 0 THEN 'empty' ELSE 'well' END
                          WHEN {_PUT_OFF} THEN 'put off'
                          ELSE v.outcome END AS fate
                FROM {_VISITS}
               WHERE v.started_at >= ? AND v.started_at < ? AND v.outcome IS NOT NULL AND r.job <> ?)
        SELECT kind, platform, count(DISTINCT source_id),
               sum(CASE WHEN fate IN ('well', 'empty') THEN 1 ELSE 0 END),
               sum(CASE WHEN fate = 'empty' THEN 1 ELSE 0 END),
               sum(CASE WHEN fate = 'failed' THEN 1 ELSE 0 END),
               sum(CASE WHEN fate = 'put off' THEN 1 ELSE 0 END),
               sum(CASE WHEN fate = 'skipped' THEN 1 ELSE 0 END),
               sum(CASE WHEN fate IN ('well', 'empty', 'failed') THEN micros ELSE 0 END),
               sum(new_count), sum(valid_count), sum(updated_count), sum(duplicate_count), sum(invalid_count),
               sum(request_count)
          FROM few GROUP BY kind, platform ORDER BY kind
        """,
        since,
        until,
        LOOK_AGAIN,
    )


def _measure(row: Row) -> Measure:
    kind, platform, *sums = row
    told: dict[str, Any] = dict(zip(SUMS, (int(one) for one in sums), strict=True))
    told["visit_seconds"] /= 1_000_000
    return Measure(kind, platform, **told)


def _kept_row(span: Span, starts_at: datetime, one: Measure, now: datetime) -> Row:
    sums = [getattr(one, name) for name in SUMS]
    return (str(span), micros(starts_at), one.kind, one.platform, *sums, micros(now))
