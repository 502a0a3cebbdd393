"""Queue of item rechecks: which are due, and the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from catchment.clock import micros, moment
from catchment.model import Lease, NextRecheck, Record, Source, SourceState, VisitResult
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, reads, writes
from catchment.store.item_fields import to_micros, to_moment
from catchment.store.row_mappers import columns
from catchment.store.sources.metrics import count_attempts
from catchment.store.sources.runs import note_results

_SOURCE = ", ".join(f"s.{name}" for name in columns(Source))


class DueRecheck(Record, frozen=True):
    """An item that is due for a recheck."""

    item_id: int
    external_id: str
    scope: str
    url: str | None
    created_at: datetime
    count: int
    failure_count: int
    gone_since: datetime | None
    source: Source
    thread_id: str | None = None
    floor_number: int | None = None
    text_at: str | None = None
    """The id of the post that it replies to, if its own text is not stored."""

    @property
    def key(self) -> tuple[str, str]:
        return self.scope, self.external_id


class RecheckQueue(StorePart):
    @reads
    def is_any_due(self, tx: Transaction, platforms: Sequence[str], now: datetime) -> bool:
        """Whether a recheck is due. Costs an index read per platform; nothing is locked or written."""
        sql = "SELECT 1 FROM rechecks WHERE platform = ? AND next_recheck_at <= ? LIMIT 1"
        return any(tx.one(sql, platform, micros(now)) for platform in platforms)

    def claim(self, platform: str, owner_id: int, now: datetime) -> Lease | None:
        """Claim the rechecks of a platform; returns None if another process has them."""
        return self._db.write(lambda tx: leases.claim_one(tx, f"rechecks of {platform}", 0, owner_id, now))

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    @writes
    def due(self, tx: Transaction, lease: Lease, platform: str, now: datetime, limit: int) -> list[DueRecheck]:
        """Returns the most overdue items, each with a source that showed it.

        Items that were deleted permanently, or that no remaining source shows, are not rechecked again. Items of a
        source that a user has paused wait.
        """
        leases.check(tx, lease)
        sql = """
            SELECT r.item_id, i.external_id, i.scope, i.url, i.created_at, r.recheck_count, r.failure_count,
                   r.gone_since, r.source_id, i.thread_id, i.floor_number,
                   CASE WHEN i.is_partial THEN i.parent_id END
              FROM rechecks r LEFT JOIN items i ON i.id = r.item_id
             WHERE r.platform = ? AND r.next_recheck_at <= ? ORDER BY r.next_recheck_at LIMIT ?
        """
        rows = tx.all(sql, platform, micros(now), limit)
        existing = {row[0]: row for row in rows if row[1] is not None}
        sources = _sources(tx, [(row[0], row[8]) for row in existing.values()])
        ended = [item_id for (item_id, *_) in rows if item_id not in sources]
        tx.many("UPDATE rechecks SET next_recheck_at = NULL WHERE item_id = ?", [(item_id,) for item_id in ended])
        paused = [item_id for item_id, source in sources.items() if source.state == SourceState.PAUSED]
        tx.many(
            "UPDATE rechecks SET next_recheck_at = ? WHERE item_id = ?",
            [(micros(now) + _DAY, item_id) for item_id in paused],
        )
        return [
            DueRecheck(
                item_id,
                external_id,
                scope,
                url,
                moment(created_at),
                count,
                failures,
                to_moment(since),
                sources[item_id],
                *place,
            )
            for item_id, external_id, scope, url, created_at, count, failures, since, _, *place in existing.values()
            if item_id in sources and item_id not in paused
        ]

    @writes
    def reschedule(self, tx: Transaction, lease: Lease, rechecks: Sequence[NextRecheck]) -> None:
        """Reschedule rechecks that got no answer."""
        leases.check(tx, lease)
        set_rechecks(tx, rechecks)

    @writes
    def note(
        self,
        tx: Transaction,
        lease: Lease,
        run_id: int,
        source: Source,
        result: VisitResult,
        outcomes: Mapping[tuple[str, datetime], int],
    ) -> None:
        """Record the result of rechecking one source's items in the run."""
        leases.check(tx, lease)
        count_attempts(tx, source.platform, outcomes)
        note_results(tx, [(run_id, result)])


_DAY = 24 * 60 * 60 * 1_000_000


def _sources(tx: Transaction, shown_first: Sequence[tuple[int, int]]) -> dict[int, Source]:
    """Returns, for each item, a source to request it with: the one that first showed it, else another."""
    sql = f"SELECT {_SOURCE} FROM sources s WHERE s.id IN {{values}} AND s.state <> 'removed'"
    rows = tx.select_in(sql, sorted({source_id for _, source_id in shown_first}))
    sources = {source.id: source for source in tx.as_records(Source, rows)}
    by_item = {item_id: sources[source_id] for item_id, source_id in shown_first if source_id in sources}
    sql = f"""
        SELECT {_SOURCE}, g.item_id FROM sightings g JOIN sources s ON s.id = g.source_id
         WHERE g.item_id IN {{values}} AND s.state <> 'removed' ORDER BY g.item_id, s.id
    """
    others = tx.select_in(sql, [item_id for item_id, _ in shown_first if item_id not in by_item])
    for row, source in zip(others, tx.as_records(Source, others), strict=True):
        by_item.setdefault(row[-1], source)
    return by_item


def set_rechecks(tx: Transaction, rechecks: Sequence[NextRecheck]) -> None:
    sql = """
        UPDATE rechecks SET next_recheck_at = ?, recheck_count = ?, failure_count = ?, gone_since = ? WHERE item_id = ?
    """
    tx.many(
        sql,
        [
            (
                to_micros(recheck.at),
                recheck.count,
                recheck.failure_count,
                to_micros(recheck.gone_since),
                recheck.item_id,
            )
            for recheck in rechecks
        ],
    )
