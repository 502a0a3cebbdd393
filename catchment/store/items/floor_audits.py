"""Audits of floors: which floors of a thread are missing, and the results of attempts to repair them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from catchment.clock import micros
from catchment.errors import NotFound
from catchment.model import Record, View
from catchment.policy.floor_audits import audit_counts, missing_floors, next_attempts
from catchment.store.database import StorePart, Transaction, placeholders, reads, writes
from catchment.store.item_fields import to_micros

_THREADS_AT_ONCE = 500


class AuditView(View, frozen=True):
    """One audit of the floors of threads."""

    id: int
    source_id: int | None
    run_id: int | None
    run_trigger: str
    is_repairing: bool
    started_at: datetime
    finished_at: datetime | None
    thread_count: int
    missing_thread_count: int
    repaired_thread_count: int
    partial_thread_count: int
    failed_thread_count: int
    failed_http_count: int
    failed_parse_count: int
    failed_db_count: int
    failed_unknown_count: int
    missing_floor_count: int
    repaired_floor_count: int
    ignored_floor_count: int
    gap_count: int
    """Gaps in time that were open."""
    repaired_gap_count: int
    partial_gap_count: int
    failed_gap_count: int
    unreachable_gap_count: int
    """Those that cannot be repaired, or for which all attempts were made."""


class AuditThreadView(View, frozen=True):
    """A thread with missing floors, and the result of its repair."""

    id: int
    audit_id: int
    thread_row_id: int
    thread_id: str
    source_id: int
    max_floor: int
    floor_count: int
    missing_count: int
    ignored_count: int
    result: str
    repair_started_at: datetime | None = None
    repair_finished_at: datetime | None = None
    after_max_floor: int | None = None
    after_floor_count: int | None = None
    remaining_count: int | None = None
    error_category: str | None = None
    http_status: int | None = None
    error: str | None = None


class AuditFloorView(View, frozen=True):
    """A missing floor, and the result of its repair."""

    audit_thread_id: int
    floor_number: int
    result: str
    attempts_before: int
    attempts_after: int | None = None
    error_category: str | None = None
    http_status: int | None = None
    error: str | None = None


class IncompleteThread(Record, frozen=True):
    """A thread some of whose floors are neither stored nor known as holes."""

    row_id: int
    source_id: int
    thread_id: str
    max_floor: int
    floors: tuple[int, ...]
    missing: tuple[int, ...]


_AUDIT = ", ".join(AuditView.__struct_fields__)
_COUNTS = tuple(name for name in AuditView.__struct_fields__ if name.endswith("_count"))
_OF_THREAD = ", ".join(AuditThreadView.__struct_fields__)
_OF_FLOOR = ", ".join(AuditFloorView.__struct_fields__)


class FloorAudits(StorePart):
    def request(self, trigger: str, now: datetime, *, is_repairing: bool, source_id: int | None = None) -> AuditView:
        """Record a requested audit; returns it."""
        sql = f"""
            INSERT INTO floor_audits (source_id, run_trigger, is_repairing, started_at, {", ".join(_COUNTS)})
            VALUES (?, ?, ?, ?, {", ".join("0" * len(_COUNTS))}) RETURNING {_AUDIT}
        """
        values = (source_id, trigger, is_repairing, micros(now))
        (audit,) = self._db.write(lambda tx: tx.records(AuditView, sql, *values))
        return audit

    def requested(self) -> list[AuditView]:
        """Returns the audits that have not been started, the oldest first."""
        sql = f"SELECT {_AUDIT} FROM floor_audits WHERE run_id IS NULL AND finished_at IS NULL ORDER BY id"
        return self._records(AuditView, sql)

    def begin(self, audit_id: int, run_id: int, now: datetime) -> bool:
        """Begin an audit that was requested; returns False if another process has begun it."""
        sql = "UPDATE floor_audits SET run_id = ?, started_at = ? WHERE id = ? AND run_id IS NULL"
        return bool(self._run(sql, run_id, micros(now), audit_id))

    def get(self, audit_id: int) -> AuditView:
        audit = self._record(AuditView, f"SELECT {_AUDIT} FROM floor_audits WHERE id = ?", audit_id)
        if audit is None:
            raise NotFound("there is no audit {id}", "records of audits are kept for a limited time", id=audit_id)
        return audit

    def page(self, limit: int = 30, before: int | None = None) -> list[AuditView]:
        """Returns audits, newest first."""
        sql = f"SELECT {_AUDIT} FROM floor_audits WHERE id < ? ORDER BY id DESC LIMIT ?"
        return self._records(AuditView, sql, 2**62 if before is None else before, limit)

    def threads(self, audit_id: int, limit: int = 100, after: int = 0) -> list[AuditThreadView]:
        """Returns the incomplete threads that an audit found."""
        sql = f"""
            SELECT {_OF_THREAD} FROM floor_audit_threads WHERE audit_id = ? AND thread_row_id > ?
             ORDER BY audit_id, thread_row_id LIMIT ?
        """
        return self._records(AuditThreadView, sql, audit_id, after, limit)

    def thread(self, audit_id: int, audit_thread_id: int) -> AuditThreadView:
        """Returns one of the incomplete threads that an audit found."""
        sql = f"SELECT {_OF_THREAD} FROM floor_audit_threads WHERE audit_id = ? AND id = ?"
        thread = self._record(AuditThreadView, sql, audit_id, audit_thread_id)
        if thread is None:
            raise NotFound("audit {audit_id} has no thread {id}", audit_id=audit_id, id=audit_thread_id)
        return thread

    def floors(self, audit_thread_id: int, limit: int = 1000, after: int = -1) -> list[AuditFloorView]:
        """Returns the missing floors of a thread."""
        sql = f"""
            SELECT {_OF_FLOOR} FROM floor_audit_floors WHERE audit_thread_id = ? AND floor_number > ?
             ORDER BY audit_thread_id, floor_number LIMIT ?
        """
        return self._records(AuditFloorView, sql, audit_thread_id, after, limit)

    # Finding

    @reads
    def incomplete(
        self, tx: Transaction, source_id: int, first_floor: int, after: int = 0
    ) -> tuple[int, int | None, list[IncompleteThread]]:
        """Looks at some threads of a source; returns how many, the cursor to continue with (None: these were the last),
        and the incomplete ones among them.

        One floor counts once, whether it is stored, known as a hole, or both.
        """
        sql = f"""
            SELECT t.id, t.thread_id, t.max_floor, i.platform, i.scope,
                   (SELECT count(DISTINCT f.floor_number) FROM items f
                     WHERE f.platform = i.platform AND f.scope = i.scope AND f.thread_id = t.thread_id
                       AND f.floor_number BETWEEN ? AND t.max_floor)
                   + (SELECT count(*) FROM thread_holes h
                       WHERE h.thread_row_id = t.id AND h.floor_number BETWEEN ? AND t.max_floor
                         AND NOT EXISTS (SELECT 1 FROM items g
                                          WHERE g.platform = i.platform AND g.scope = i.scope
                                            AND g.thread_id = t.thread_id AND g.floor_number = h.floor_number))
              FROM threads t JOIN items i ON i.id = t.item_id
             WHERE t.source_id = ? AND t.id > ? AND t.max_floor IS NOT NULL AND t.skipped_since IS NULL
             ORDER BY t.source_id, t.id LIMIT {_THREADS_AT_ONCE}
        """
        rows = tx.all(sql, first_floor, first_floor, source_id, after)
        incomplete = []
        for row_id, thread_id, max_floor, platform, scope, accounted_count in rows:
            if accounted_count < max_floor - first_floor + 1:
                floors, holes = _known(tx, row_id, platform, scope, thread_id)
                if missing := missing_floors(first_floor, max_floor, floors, holes):
                    incomplete.append(
                        IncompleteThread(row_id, source_id, thread_id, max_floor, tuple(sorted(floors)), missing)
                    )
        return len(rows), (rows[-1][0] if len(rows) == _THREADS_AT_ONCE else None), incomplete

    @writes
    def note(
        self, tx: Transaction, audit_id: int, thread: IncompleteThread
    ) -> tuple[AuditThreadView, dict[int, AuditFloorView]]:
        """Record an incomplete thread and its missing floors."""
        attempts = _attempts(tx, thread.row_id)
        ignored = set(thread.missing) - next_attempts(thread.missing, attempts).keys()
        sql = f"""
            INSERT INTO floor_audit_threads (audit_id, thread_row_id, thread_id, source_id, max_floor, floor_count,
                                             missing_count, ignored_count, result)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'missing') RETURNING {_OF_THREAD}
        """
        values = (
            *(audit_id, thread.row_id, thread.thread_id, thread.source_id, thread.max_floor, len(thread.floors)),
            *(len(thread.missing), len(ignored)),
        )
        (noted,) = tx.records(AuditThreadView, sql, *values)
        floors = {
            number: AuditFloorView(
                noted.id, number, "ignored" if number in ignored else "missing", attempts.get(number, 0)
            )
            for number in thread.missing
        }
        names = ("audit_thread_id", "floor_number", "result", "attempts_before")
        rows = [(noted.id, floor.floor_number, floor.result, floor.attempts_before) for floor in floors.values()]
        tx.insert("floor_audit_floors", names, rows)
        return noted, floors

    # Repairing

    @writes
    def reserve(self, tx: Transaction, row_id: int, floors: Sequence[int], now: datetime) -> dict[int, int]:
        """Count an attempt for those of the floors that have one left; returns these, with the attempts so far.

        Before the request, so that no process and no kill can exceed the limit.
        """
        # Two processes may audit two boards that show the thread: the second one waits here.
        tx.one(f"SELECT 1 FROM items WHERE id = (SELECT item_id FROM threads WHERE id = ?) {tx.lock_rows()}", row_id)
        taken = next_attempts(floors, _attempts(tx, row_id))
        tx.insert(
            "floor_repairs",
            ("thread_row_id", "floor_number", "attempt_count", "first_attempted_at", "last_attempted_at"),
            [(row_id, number, 1, micros(now), micros(now)) for number in sorted(taken)],
            """
            ON CONFLICT (thread_row_id, floor_number) DO UPDATE
               SET attempt_count = floor_repairs.attempt_count + 1, last_attempted_at = excluded.last_attempted_at
            """,
        )
        return taken

    @writes
    def give_back(self, tx: Transaction, row_id: int, floors: Sequence[int]) -> None:
        """Take back attempts that were counted and never made."""
        sql = """
            UPDATE floor_repairs SET attempt_count = attempt_count - 1 WHERE thread_row_id = ? AND floor_number = ?
        """
        tx.many(sql, [(row_id, number) for number in floors])

    @writes
    def end_thread(self, tx: Transaction, thread: AuditThreadView, floors: Sequence[AuditFloorView]) -> None:
        """Record the result of repairing a thread."""
        names = (
            *("result", "repair_started_at", "repair_finished_at", "after_max_floor", "after_floor_count"),
            *("remaining_count", "ignored_count", "error_category", "http_status", "error"),
        )
        values = [getattr(thread, name) for name in names]
        values[1], values[2] = to_micros(thread.repair_started_at), to_micros(thread.repair_finished_at)
        tx.run(f"UPDATE floor_audit_threads SET {placeholders(names)} WHERE id = ?", *values, thread.id)
        tx.many(
            """
            UPDATE floor_audit_floors SET result = ?, attempts_after = ?, error_category = ?, http_status = ?, error = ?
             WHERE audit_thread_id = ? AND floor_number = ?
            """,
            [
                (
                    *(floor.result, floor.attempts_after, floor.error_category, floor.http_status, floor.error),
                    *(floor.audit_thread_id, floor.floor_number),
                )
                for floor in floors
            ],
        )

    @writes
    def end_abandoned(self, tx: Transaction, now: datetime) -> None:
        """End the audits whose processes were killed, with what they have recorded."""
        sql = """
            SELECT a.id FROM floor_audits a JOIN runs r ON r.id = a.run_id
             WHERE a.finished_at IS NULL AND r.finished_at IS NOT NULL
        """
        for audit_id in tx.column(sql):
            threads = tx.all(
                "SELECT result, error_category, count(*) FROM floor_audit_threads WHERE audit_id = ? GROUP BY 1, 2",
                audit_id,
            )
            floors: dict[str, int] = dict(
                tx.all(
                    """
                    SELECT f.result, count(*) FROM floor_audit_threads t
                      JOIN floor_audit_floors f ON f.audit_thread_id = t.id
                     WHERE t.audit_id = ? GROUP BY f.result
                    """,
                    audit_id,
                )
            )
            counts = audit_counts(threads, floors)
            # Only incomplete threads are recorded one by one.
            _end(tx, audit_id, counts | {"thread_count": counts["missing_thread_count"]}, now)

    @writes
    def end(self, tx: Transaction, audit_id: int, counts: Mapping[str, int], now: datetime) -> None:
        _end(tx, audit_id, counts, now)


def _end(tx: Transaction, audit_id: int, counts: Mapping[str, int], now: datetime) -> None:
    sql = f"UPDATE floor_audits SET finished_at = ?, {placeholders(counts)} WHERE id = ?"
    tx.run(sql, micros(now), *counts.values(), audit_id)


# A thread has a row for each board that shows it.
_ROWS_OF_THREAD = "SELECT other.id FROM threads t JOIN threads other ON other.item_id = t.item_id WHERE t.id = ?"


def _known(tx: Transaction, row_id: int, platform: str, scope: str, thread_id: str) -> tuple[set[int], set[int]]:
    """Returns the floors that are stored, and those that are known as holes, by whichever board."""
    sql = """
        SELECT floor_number FROM items
         WHERE platform = ? AND scope = ? AND thread_id = ? AND floor_number IS NOT NULL
    """
    holes = tx.column(f"SELECT floor_number FROM thread_holes WHERE thread_row_id IN ({_ROWS_OF_THREAD})", row_id)
    return set(tx.column(sql, platform, scope, thread_id)), set(holes)


def _attempts(tx: Transaction, row_id: int) -> dict[int, int]:
    sql = f"""
        SELECT floor_number, sum(attempt_count) FROM floor_repairs
         WHERE thread_row_id IN ({_ROWS_OF_THREAD}) GROUP BY floor_number
    """
    return {number: int(count) for number, count in tx.all(sql, row_id)}
