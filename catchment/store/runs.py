"""Runs and their records, the jobs' times, and what can be told from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.errors import NotFound
from catchment.model import Lease, Outcome
from catchment.store import leases
from catchment.store.database import Database, Transaction
from catchment.store.rows import decode, with_iso

_COUNTS = (
    "source_count", "succeeded", "failed", "skipped", "new_count", "updated_count", "duplicate_count", "invalid_count",
    "request_count",
)  # fmt: skip
_SHOWN = f"id, job, started_by, request_id, started_at, finished_at, is_cut_off, {', '.join(_COUNTS)}"
_RESULT = (
    "v.run_id, v.source_id, s.name AS source_name, s.kind, v.started_at, v.finished_at, v.outcome, v.new_count, "
    "v.updated_count, v.duplicate_count, v.invalid_count, v.request_count, v.http_status, v.error_code, v.error"
)


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
                f"SELECT {_SHOWN} FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?",
                2**62 if before is None else before,
                limit,
            )
        )
        return [_shown(row) for row in rows]

    def get(self, run_id: int) -> dict[str, Any]:
        rows = self._db.read(lambda tx: tx.dicts(f"SELECT {_SHOWN} FROM runs WHERE id = ?", run_id))
        if not rows:
            raise NotFound(f"there is no run {run_id}", "records of runs are kept for a while only")
        return _shown(rows[0])

    def results(
        self, run_id: int, after: int = 0, limit: int = 100, *, outcome: Outcome | None = None
    ) -> list[dict[str, Any]]:
        """What became of each source in a run, in order of the sources' ids."""
        where, values = ("AND v.outcome = ?", [str(outcome)]) if outcome else ("", [])
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT {_RESULT} FROM run_sources v JOIN sources s ON s.id = v.source_id
                 WHERE v.run_id = ? AND v.source_id > ? {where} ORDER BY v.source_id LIMIT ?
                """,
                run_id,
                after,
                *values,
                limit,
            )
        )
        return [with_iso(row, "started_at", "finished_at") for row in rows]

    def so_far(self, run_ids: Sequence[int]) -> dict[int, dict[str, int]]:
        """What runs under way have come to by now: their own records are summed up when they end."""
        rows = self._db.read(
            lambda tx: tx.among(
                """
                SELECT run_id, count(*), sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END), sum(new_count),
                       sum(updated_count), sum(request_count)
                  FROM run_sources WHERE run_id IN {few} GROUP BY run_id
                """,
                run_ids,
            )
        )
        names = ("source_count", "failed", "new_count", "updated_count", "request_count")
        return {run_id: dict(zip(names, map(int, sums), strict=True)) for run_id, *sums in rows}

    def visits_since(self, source_ids: Sequence[int], since: datetime) -> dict[int, tuple[int, int, int]]:
        """Of these sources: visits, failed ones, and new items since then."""
        rows = self._db.read(
            lambda tx: tx.among(
                """
                SELECT source_id, count(*), sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END), sum(new_count)
                  FROM run_sources WHERE source_id IN {few} AND started_at >= ? GROUP BY source_id
                """,
                source_ids,
                after=[micros(since)],
            )
        )
        return {source_id: (int(visits), int(failed), int(new)) for source_id, visits, failed, new in rows}

    def under_way(self, limit: int = 50) -> list[dict[str, Any]]:
        """The sources that are being visited at this moment, the longest first, and what came of it so far."""
        return self._db.read(lambda tx: _under_way(tx, limit))

    def latest(self, limit: int = 30) -> list[dict[str, Any]]:
        """The visits that began last, newest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT {_RESULT} FROM run_sources v JOIN sources s ON s.id = v.source_id
                 ORDER BY v.started_at DESC LIMIT ?
                """,
                limit,
            )
        )
        return [with_iso(row, "started_at", "finished_at") for row in rows]

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


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return with_iso(row, "started_at", "finished_at") | {"is_cut_off": bool(row["is_cut_off"])}


def _under_way(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    held = tx.dicts(
        """
        SELECT s.id AS source_id, s.name AS source_name, s.kind, l.taken_at
          FROM leases l JOIN sources s ON s.id = l.resource_id
         WHERE l.owner_id IS NOT NULL AND l.resource = 'source' LIMIT ?
        """,
        limit,
    )
    # Of a visit that has stored nothing yet there is no record.
    rows = tx.among(
        """
        SELECT v.source_id, v.new_count, v.updated_count, v.request_count
          FROM runs r JOIN run_sources v ON v.run_id = r.id
         WHERE r.finished_at IS NULL AND v.finished_at IS NULL AND v.source_id IN {few}
        """,
        [row["source_id"] for row in held],
    )
    came = {source_id: counts for source_id, *counts in rows}
    names = ("new_count", "updated_count", "request_count")
    return [
        with_iso(row, "taken_at") | dict(zip(names, came.get(row["source_id"], (0, 0, 0)), strict=True))
        for row in sorted(held, key=lambda row: (row["taken_at"], row["source_id"]))
    ]


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
