"""When items are looked at again: what is due, and what follows from a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros, moment
from catchment.model import Lease, Record, Result, Source, SourceState
from catchment.store import leases
from catchment.store.database import Database, Transaction
from catchment.store.endings import note_result
from catchment.store.rows import SOURCE_COLUMNS, source_from, to_micros, to_moment
from catchment.store.visits import NextLook
from catchment.store.writing import count_attempts

_SOURCE = ", ".join(f"s.{name.strip()}" for name in SOURCE_COLUMNS.split(","))
_WIDTH = len(SOURCE_COLUMNS.split(","))


class DueLook(Record, frozen=True):
    """An item whose time has come."""

    item_id: int
    external_id: str
    scope: str
    url: str | None
    created_at: datetime
    look_count: int
    failure_count: int
    gone_since: datetime | None
    source: Source

    @property
    def key(self) -> tuple[str, str]:
        return self.scope, self.external_id


class Looks:
    def __init__(self, database: Database) -> None:
        self._db = database

    def is_any_due(self, platforms: Sequence[str], now: datetime) -> bool:
        """Costs a look at the index of each platform; nothing is locked or written."""

        def question(tx: Transaction) -> bool:
            sql = "SELECT 1 FROM looks WHERE platform = ? AND next_look_at <= ? LIMIT 1"
            return any(tx.one(sql, one, micros(now)) for one in platforms)

        return self._db.read(question)

    def claim(self, platform: str, owner_id: int, now: datetime) -> Lease | None:
        """The right to look again at a platform's items; None: somebody else has it."""
        return self._db.write(lambda tx: leases.take(tx, f"looks at {platform}", 0, owner_id, now))

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    def due(self, lease: Lease, platform: str, now: datetime, limit: int) -> list[DueLook]:
        """The most overdue, each with a source that showed it.

        What was forgotten, and what no followed source shows any more, is not looked at again. A source that a person
        has paused is left alone: its items wait.
        """

        def deed(tx: Transaction) -> list[DueLook]:
            leases.check(tx, lease)
            rows = _due(tx, platform, micros(now), limit)
            found = {row[0]: row for row in rows if row[1] is not None}
            sources = _sources(tx, [(row[0], row[8]) for row in found.values()])
            ended = [item_id for (item_id, *_) in rows if item_id not in sources]
            tx.many("UPDATE looks SET next_look_at = NULL WHERE item_id = ?", [(one,) for one in ended])
            paused = [one for one, source in sources.items() if source.state == SourceState.PAUSED]
            tx.many(
                "UPDATE looks SET next_look_at = ? WHERE item_id = ?", [(micros(now) + _DAY, one) for one in paused]
            )
            return [_due_look(row, sources[one]) for one, row in found.items() if one in sources and one not in paused]

        return self._db.write(deed)

    def put_off(self, lease: Lease, looks: Sequence[NextLook]) -> None:
        """What follows from looks that brought no answer."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            set_looks(tx, looks)

        self._db.write(deed)

    def note(
        self, lease: Lease, run_id: int, source: Source, result: Result, outcomes: Mapping[tuple[str, datetime], int]
    ) -> None:
        """What looking at one source's items came to, in the record of the run."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            count_attempts(tx, source.platform, outcomes)
            note_result(tx, run_id, result)

        self._db.write(deed)


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
    """For each item a source to ask for it: the one that brought it, else another that showed it."""
    rows = tx.among(
        f"SELECT {_SOURCE} FROM sources s WHERE s.id IN {{few}} AND s.state <> 'removed'",
        sorted({source_id for _, source_id in wanted}),
    )
    known = {row[0]: source_from(row) for row in rows}
    found = {item_id: known[source_id] for item_id, source_id in wanted if source_id in known}
    others = tx.among(
        f"""
        SELECT {_SOURCE}, g.item_id FROM sightings g JOIN sources s ON s.id = g.source_id
         WHERE g.item_id IN {{few}} AND s.state <> 'removed' ORDER BY g.item_id, s.id
        """,
        [item_id for item_id, _ in wanted if item_id not in found],
    )
    for row in others:
        found.setdefault(row[_WIDTH], source_from(row[:_WIDTH]))
    return found


def _due_look(row: tuple[Any, ...], source: Source) -> DueLook:
    return DueLook(row[0], row[1], row[2], row[3], moment(row[4]), row[5], row[6], to_moment(row[7]), source)


def set_looks(tx: Transaction, looks: Sequence[NextLook]) -> None:
    tx.many(
        """
        UPDATE looks SET next_look_at = ?, look_count = ?, failure_count = ?, gone_since = ? WHERE item_id = ?
        """,
        [
            (to_micros(one.at), one.look_count, one.failure_count, to_micros(one.gone_since), one.item_id)
            for one in looks
        ],
    )
