"""Gaps: periods in which items are missing, or may be."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import asdict

from catchment.clock import micros
from catchment.messages import Message, encode
from catchment.model import CoverageState, Gap, Lease, Page, PageWrite, Record, View
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, placeholders, writes
from catchment.store.item_fields import to_json, to_micros
from catchment.store.row_mappers import columns

_SHOWN = """
    g.id, g.source_id, s.name AS source_name, s.kind AS source_kind, g.is_certain, g.from_at, g.to_at, g.cause,
    g.opened_at, g.closed_at, g.closed_because, g.repaired_from_at, g.attempt_count, r.started_at AS last_attempt_at,
    r.result AS last_result, r.stopped_by, r.error AS last_error
"""
_TABLES = "gaps g JOIN sources s ON s.id = g.source_id LEFT JOIN gap_repairs r ON r.id = g.last_repair_id"
_GAP = ", ".join(columns(Gap))


class GapView(View, frozen=True):
    id: int
    source_id: int
    source_name: str
    source_kind: str
    is_certain: bool
    from_at: datetime
    """Time of the newest item stored before it."""
    to_at: datetime
    """Time of the oldest item shown after it."""
    cause: str
    opened_at: datetime
    closed_at: datetime | None
    closed_because: Message | None
    repaired_from_at: datetime | None
    """What is newer than this was repaired, the rest is missing."""
    attempt_count: int
    """Attempts to repair it since the last one that made progress."""
    last_attempt_at: datetime | None
    last_result: str | None
    stopped_by: str | None
    last_error: Message | None

    @property
    def certainty(self) -> str:
        return "known" if self.is_certain else "possible"

    @property
    def standing(self) -> CoverageState:
        return CoverageState.of_gap(self.is_certain, self.closed_at is not None)


class GapRepairView(View, frozen=True):
    """One attempt to repair a gap."""

    id: int
    gap_id: int
    source_id: int
    audit_id: int | None
    run_id: int | None
    from_at: datetime
    to_at: datetime
    """What was missing when it began."""
    left_to_at: datetime | None
    """The upper edge of what is missing since; null: nothing was repaired."""
    result: str | None
    stopped_by: str | None
    page_count: int
    request_count: int
    shown_count: int
    new_count: int
    http_status: int | None
    error_code: str | None
    error: Message | None
    started_at: datetime
    finished_at: datetime | None


_REPAIR = ", ".join(GapRepairView.__struct_fields__)


class ClaimedGap(Record, frozen=True):
    """A gap that this process repairs, and the record of the attempt."""

    gap: Gap
    lease: Lease
    repair_id: int


class RepairEnd(Record, frozen=True):
    """What became of an attempt to repair a gap."""

    left_to_at: datetime | None
    result: str
    stopped_by: str | None
    page_count: int
    request_count: int
    shown_count: int
    new_count: int
    http_status: int | None
    error_code: str | None
    error: str | None


class SourceGaps(Record, frozen=True):
    """The open gaps of one source."""

    source_id: int
    source_name: str
    gap_count: int
    certain: int
    """How many of them are certain."""
    from_at: datetime
    to_at: datetime


class Gaps(StorePart):
    def page(
        self, *, source_id: int | None = None, include_closed: bool = False, after: int = 0, limit: int = 1000
    ) -> list[GapView]:
        """Returns gaps in order of id."""
        where, values = ("AND g.source_id = ?", [source_id]) if source_id is not None else ("", [])
        if not include_closed:
            where += " AND g.closed_at IS NULL"
        sql = f"""
            SELECT {_SHOWN} FROM {_TABLES}
             WHERE g.id > ? {where} ORDER BY g.id LIMIT ?
        """
        return self._records(GapView, sql, after, *values, limit)

    def newest(
        self, limit: int = 30, *, is_open: bool = True, source_id: int | None = None, before: int | None = None
    ) -> list[GapView]:
        """Returns open or closed gaps, the last opened first."""
        where, values = ("AND g.source_id = ?", [source_id]) if source_id is not None else ("", [])
        sql = f"""
            SELECT {_SHOWN} FROM {_TABLES}
             WHERE g.id < ? AND g.closed_at IS {"" if is_open else "NOT"} NULL {where} ORDER BY g.id DESC LIMIT ?
        """
        return self._records(GapView, sql, 2**62 if before is None else before, *values, limit)

    def by_source(self, limit: int = 30) -> list[SourceGaps]:
        """Returns the sources with open gaps, the latest gap first."""
        sql = """
            WITH few AS MATERIALIZED
                 (SELECT source_id, count(*) AS gap_count, sum(CASE WHEN is_certain THEN 1 ELSE 0 END) AS certain,
                         min(from_at) AS from_at, max(to_at) AS to_at
                    FROM gaps WHERE closed_at IS NULL GROUP BY source_id)
            SELECT few.source_id, s.name AS source_name, few.gap_count, few.certain, few.from_at, few.to_at
              FROM few JOIN sources s ON s.id = few.source_id ORDER BY few.to_at DESC LIMIT ?
        """
        return self._records(SourceGaps, sql, limit)

    def since(self, source_id: int, since: datetime) -> list[GapView]:
        """Returns the gaps of a source that end after that time, open and closed."""
        sql = f"""
            SELECT {_SHOWN} FROM {_TABLES}
             WHERE g.source_id = ? AND g.to_at > ? ORDER BY g.id
        """
        return self._records(GapView, sql, source_id, micros(since))

    def count_open(self) -> int:
        return self._number("SELECT count(*) FROM gaps WHERE closed_at IS NULL")

    # Repairing

    def repairs(self, gap_id: int, limit: int = 100, before: int | None = None) -> list[GapRepairView]:
        """Returns the attempts to repair a gap, newest first."""
        sql = f"SELECT {_REPAIR} FROM gap_repairs WHERE gap_id = ? AND id < ? ORDER BY gap_id, id DESC LIMIT ?"
        return self._records(GapRepairView, sql, gap_id, 2**62 if before is None else before, limit)

    def repairs_of_audit(self, audit_id: int, limit: int = 1000, after: int = 0) -> list[GapRepairView]:
        """Returns the attempts that an audit made, in their order."""
        sql = f"SELECT {_REPAIR} FROM gap_repairs WHERE audit_id = ? AND id > ? ORDER BY audit_id, id LIMIT ?"
        return self._records(GapRepairView, sql, audit_id, after, limit)

    @writes
    def claim(
        self, tx: Transaction, gap_id: int, audit_id: int, run_id: int, owner_id: int, now: datetime, most: int
    ) -> ClaimedGap | None:
        """Claim a gap and count an attempt; None: another process is repairing it, it is closed, or it has had its
        attempts.

        Before the first request, so that no process and no kill can exceed their number.
        """
        lease = leases.claim_one(tx, "gap", gap_id, owner_id, now)
        if lease is None:
            return None
        sql = f"SELECT {_GAP} FROM gaps WHERE id = ? AND closed_at IS NULL AND attempt_count < ?"
        gap = tx.record(Gap, sql, gap_id, most)
        if gap is None:
            leases.release(tx, lease)
            return None
        repair_id = tx.number(
            """
            INSERT INTO gap_repairs (gap_id, source_id, audit_id, run_id, from_at, to_at, started_at)
            SELECT id, source_id, ?, ?, from_at, coalesce(repaired_from_at, to_at), ? FROM gaps WHERE id = ?
            RETURNING id
            """,
            audit_id,
            run_id,
            micros(now),
            gap_id,
        )
        sql = "UPDATE gaps SET attempt_count = attempt_count + 1, last_repair_id = ? WHERE id = ?"
        tx.run(sql, repair_id, gap_id)
        return ClaimedGap(gap, lease, repair_id)

    @writes
    def end_repair(self, tx: Transaction, claimed: ClaimedGap, end: RepairEnd, now: datetime, *, is_free: bool) -> None:
        """Record the result of an attempt, and release the gap. `is_free`: it does not count."""
        leases.check(tx, claimed.lease)
        values = asdict(end) | {
            "left_to_at": to_micros(end.left_to_at),
            "error": encode(end.error) if end.error is not None else None,
            "finished_at": micros(now),
        }
        sql = f"UPDATE gap_repairs SET {placeholders(values)} WHERE id = ?"
        tx.run(sql, *values.values(), claimed.repair_id)
        if is_free:
            sql = "UPDATE gaps SET attempt_count = attempt_count - 1 WHERE id = ? AND attempt_count > 0"
            tx.run(sql, claimed.gap.id)
        leases.release(tx, claimed.lease)

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))


def write_gaps(tx: Transaction, page: Page, write: PageWrite, now: int) -> None:
    """Open, close and narrow the gaps of a source, as a step of a page's transaction."""
    if write.gap is not None:
        gap = write.gap
        tx.run(
            """
            INSERT INTO gaps (source_id, is_certain, from_at, to_at, from_ids, to_ids, cause, opened_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            page.source.id,
            gap.is_certain,
            micros(gap.from_at),
            micros(gap.to_at),
            to_json(gap.from_ids),
            to_json(gap.to_ids),
            gap.cause,
            now,
        )
    sql = "UPDATE gaps SET closed_at = ?, closed_because = ? WHERE id = ? AND closed_at IS NULL"
    tx.many(sql, [(now, because.code, gap_id) for gap_id, because in write.closed])
    if write.narrowed is not None:
        # What is left is another stretch, which gets attempts of its own.
        tx.run(
            "UPDATE gaps SET repaired_from_at = ?, to_ids = ?, attempt_count = 0 WHERE id = ? AND closed_at IS NULL",
            micros(write.narrowed.to_at),
            to_json(write.narrowed.to_ids),
            write.narrowed.gap_id,
        )
