"""Queue of item rechecks: which are due, and the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros, moment
from catchment.model import (
    Lease,
    NextRecheck,
    Record,
    Source,
    SourceState,
    VisitResult,
)
from catchment.store import leases
from catchment.store.database import StorePart, Transaction
from catchment.store.item_fields import to_micros, to_moment
from catchment.store.items.item_writer import count_attempts
from catchment.store.row_mappers import columns
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

    @property
    def key(self) -> tuple[str, str]:
        return self.scope, self.external_id


class RecheckQueue(StorePart):
    def is_any_due(self, platforms: Sequence[str], now: datetime) -> bool:
        """Whether a recheck is due. Costs an index read per platform; nothing is locked or written."""

        def query(tx: Transaction) -> bool:
            sql = "SELECT 1 FROM looks WHERE platform = ? AND next_look_at <= ? LIMIT 1"
            return any(tx.one(sql, platform, micros(now)) for platform in platforms)

        return self._db.read(query)

    def claim(self, platform: str, owner_id: int, now: datetime) -> Lease | None:
        """Claim the rechecks of a platform; returns None if another process has them."""
        return self._db.write(lambda tx: leases.take(tx, f"looks at {platform}", 0, owner_id, now))

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    def due(self, lease: Lease, platform: str, now: datetime, limit: int) -> list[DueRecheck]:
        """Returns the most overdue items, each with a source that showed it.

        Items that were deleted for good, or that no remaining source shows, are not rechecked again. Items of a source
        that a user has paused wait.
        """

        def change(tx: Transaction) -> list[DueRecheck]:
            leases.check(tx, lease)
            rows = _due(tx, platform, micros(now), limit)
            found = {row[0]: row for row in rows if row[1] is not None}
            sources = _sources(tx, [(row[0], row[8]) for row in found.values()])
            ended = [item_id for (item_id, *_) in rows if item_id not in sources]
            tx.many("UPDATE looks SET next_look_at = NULL WHERE item_id = ?", [(item_id,) for item_id in ended])
            paused = [item_id for item_id, source in sources.items() if source.state == SourceState.PAUSED]
            tx.many(
                "UPDATE looks SET next_look_at = ? WHERE item_id = ?",
                [(micros(now) + _DAY, item_id) for item_id in paused],
            )
            return [
                _due_recheck(row, sources[item_id])
                for item_id, row in found.items()
                if item_id in sources and item_id not in paused
            ]

        return self._db.write(change)

    def put_off(self, lease: Lease, rechecks: Sequence[NextRecheck]) -> None:
        """Reschedule rechecks that got no answer."""

        def change(tx: Transaction) -> None:
            leases.check(tx, lease)
            set_rechecks(tx, rechecks)

        self._db.write(change)

    def note(
        self,
        lease: Lease,
        run_id: int,
        source: Source,
        result: VisitResult,
        outcomes: Mapping[tuple[str, datetime], int],
    ) -> None:
        """Record the result of rechecking one source's items in the run."""

        def change(tx: Transaction) -> None:
            leases.check(tx, lease)
            count_attempts(tx, source.platform, outcomes)
            note_results(tx, [(run_id, result)])

        self._db.write(change)


_DAY = 24 * 60 * 60 * 1_000_000


def _due(tx: Transaction, platform: str, now: int, limit: int) -> list[tuple[Any, ...]]:
    return tx.all(
        """
        SELECT l.item_id, i.external_id, i.scope, i.url, i.created_at, l.look_count, l.failure_count, l.gone_since,
               l.source_id
          FROM looks l LEFT JOIN items i ON i.id = l.item_id
         WHERE l.platform = ? AND l.next_look_at <= ? ORDER BY l.next_look_at LIMIT ?
        """,
        platform,
        now,
        limit,
    )


def _sources(tx: Transaction, wanted: Sequence[tuple[int, int]]) -> dict[int, Source]:
    """Returns, for each item, a source to request it with: the one that brought it, else another that showed it."""
    rows = tx.select_in(
        f"SELECT {_SOURCE} FROM sources s WHERE s.id IN {{values}} AND s.state <> 'removed'",
        sorted({source_id for _, source_id in wanted}),
    )
    known = {source.id: source for source in tx.as_records(Source, rows)}
    found = {item_id: known[source_id] for item_id, source_id in wanted if source_id in known}
    others = tx.select_in(
        f"""
        SELECT {_SOURCE}, g.item_id FROM sightings g JOIN sources s ON s.id = g.source_id
         WHERE g.item_id IN {{values}} AND s.state <> 'removed' ORDER BY g.item_id, s.id
        """,
        [item_id for item_id, _ in wanted if item_id not in found],
    )
    for row, source in zip(others, tx.as_records(Source, others), strict=True):
        found.setdefault(row[-1], source)
    return found


def _due_recheck(row: tuple[Any, ...], source: Source) -> DueRecheck:
    return DueRecheck(row[0], row[1], row[2], row[3], moment(row[4]), row[5], row[6], to_moment(row[7]), source)


def set_rechecks(tx: Transaction, rechecks: Sequence[NextRecheck]) -> None:
    tx.many(
        """
        UPDATE looks SET next_look_at = ?, look_count = ?, failure_count = ?, gone_since = ? WHERE item_id = ?
        """,
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
