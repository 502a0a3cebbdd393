"""Runs and their records, the jobs' times, and what can be told from them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.model import Lease
from catchment.store import leases
from catchment.store.database import Database, Transaction
from catchment.store.rows import decode, with_iso

_COUNTS = (
    "source_count", "succeeded", "failed", "skipped", "new_count", "updated_count", "duplicate_count", "invalid_count",
    "request_count",
)  # fmt: skip


class Runs:
    def __init__(self, database: Database) -> None:
        self._db = database

    def begin(self, job: str, started_by: str, owner_id: int, now: datetime, request_id: str | None = None) -> int:
        def deed(tx: Transaction) -> int:
            row = tx.one(
                f"""
                INSERT INTO runs (job, started_by, owner_id, request_id, started_at, is_cut_off, {", ".join(_COUNTS)})
                VALUES (?, ?, ?, ?, ?, ?, {", ".join("0" * len(_COUNTS))}) RETURNING id
                """,
                job,
                started_by,
                owner_id,
                request_id,
                micros(now),
                False,
            )
            assert row is not None
            return int(row[0])

        return self._db.write(deed)

    def finish(self, run_id: int, now: datetime, *, is_cut_off: bool = False) -> None:
        self._db.write(lambda tx: leases.close_run(tx, run_id, now, is_cut_off=is_cut_off))

    def page(self, limit: int = 30, before: int | None = None) -> list[dict[str, Any]]:
        """Newest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT id, job, started_by, request_id, started_at, finished_at, is_cut_off, {", ".join(_COUNTS)}
                  FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?
                """,
                2**62 if before is None else before,
                limit,
            )
        )
        return [with_iso(row, "started_at", "finished_at") | {"is_cut_off": bool(row["is_cut_off"])} for row in rows]

    def of_source(self, source_id: int, limit: int = 10) -> list[dict[str, Any]]:
        """The latest visits to one source, newest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT run_id, started_at, finished_at, outcome, new_count, updated_count, duplicate_count,
                       invalid_count, valid_count, request_count, http_status, error_code, error, watermark_before,
                       watermark_after, notes
                  FROM run_sources WHERE source_id = ? ORDER BY started_at DESC LIMIT ?
                """,
                source_id,
                limit,
            )
        )
        times = ("started_at", "finished_at", "watermark_before", "watermark_after")
        return [with_iso(row, *times) | {"notes": decode(row["notes"])} for row in rows]

    def last_day(self, now: datetime) -> dict[str, int]:
        """Visits, failures and new items of the last 24 hours."""
        row = self._db.read(
            lambda tx: tx.one(
                """
                SELECT count(*), coalesce(sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END), 0),
                       coalesce(sum(new_count), 0), coalesce(sum(request_count), 0)
                  FROM run_sources WHERE started_at >= ? AND (outcome IS NULL OR outcome <> 'skipped')
                """,
                micros(now - timedelta(days=1)),
            )
        )
        assert row is not None
        return {"fetches": int(row[0]), "errors": int(row[1]), "items": int(row[2]), "requests": int(row[3])}


class Jobs:
    """When each job runs next; claimed like sources, so that of two processes one runs it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def announce(self, name: str, now: datetime) -> None:
        """Make the job known; a new one is due at once."""
        self._db.write(
            lambda tx: tx.run(
                "INSERT INTO jobs (name, next_run_at, run_count) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING",
                name,
                micros(now),
            )
        )

    def claim(self, name: str, owner_id: int, now: datetime, period: timedelta) -> Lease | None:
        """The job, if it is due and nobody has it. Looking costs a read; only a due job costs a write."""
        due = self._db.read(lambda tx: tx.one("SELECT id, next_run_at FROM jobs WHERE name = ?", name))
        if due is None or not _is_due(due[1], now, period):
            return None

        def deed(tx: Transaction) -> Lease | None:
            lease = leases.take(tx, "job", due[0], owner_id, now)
            if lease is None:
                return None
            again = tx.one("SELECT next_run_at FROM jobs WHERE id = ?", due[0])
            if again is None or not _is_due(again[0], now, period):
                leases.release(tx, lease)
                return None
            return lease

        return self._db.write(deed)

    def done(self, lease: Lease, started_at: datetime, next_run_at: datetime, now: datetime, error: str | None) -> None:
        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            tx.run(
                """
                UPDATE jobs SET next_run_at = ?, last_started_at = ?, last_finished_at = ?, last_error = ?,
                       run_count = run_count + 1
                 WHERE id = ?
                """,
                micros(next_run_at),
                micros(started_at),
                micros(now),
                error,
                lease.resource_id,
            )
            leases.release(tx, lease)

        self._db.write(deed)

    def all(self) -> list[dict[str, Any]]:
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT name, next_run_at, last_started_at, last_finished_at, last_error, run_count FROM jobs
                 ORDER BY name
                """
            )
        )
        return [with_iso(row, "next_run_at", "last_started_at", "last_finished_at") for row in rows]


def _is_due(next_run_at: int, now: datetime, period: timedelta) -> bool:
    # Further ahead than any run could have put it: the clock was wrong then, or the period is shorter now.
    return next_run_at <= micros(now) or next_run_at > micros(now + 2 * period)
