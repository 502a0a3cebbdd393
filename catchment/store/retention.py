"""Items past their time: what a kind of source is kept for, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from catchment.clock import micros
from catchment.store.database import Database, Row, Transaction
from catchment.store.removing import remove_items

# So many sightings a transaction, so many items a run; what is left waits for the next one.
_BATCH = 200
MOST = 50_000
# A visit of many pages takes a while: what its first page showed is shown still.
_ONE_VISIT = timedelta(hours=1)
_NEWEST = 300


class Retention:
    """Removes items that are older than their kind is kept for and no longer shown.

    What a source still shows stays: removed, it would come back as new with the next visit. And what several sources
    showed stays as long as one of them wants it.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def clear(
        self, days: Mapping[str, int], now: datetime, is_over: Callable[[], bool] = lambda: False, most: int = MOST
    ) -> int:
        """Remove what is past its time, oldest first; gives how many items went."""
        before = {kind: micros(now - timedelta(days=kept)) for kind, kept in days.items()}
        gone = 0
        for source_id, kind in self._sources(list(days)):
            for removed in self._of_source(source_id, before[kind], before):
                gone += removed
                if gone >= most or is_over():
                    return gone
        return gone

    def _sources(self, kinds: list[str]) -> list[Row]:
        """Those of these kinds, whether they are followed still or not."""
        return self._db.read(
            lambda tx: tx.among("SELECT id, kind FROM sources WHERE kind IN {few} ORDER BY kind, id", kinds)
        )

    def _of_source(self, source_id: int, until: int, before: Mapping[str, int]) -> Iterator[int]:
        place = (-(2**62), 0)
        while rows := self._db.read(lambda tx, place=place: _past(tx, source_id, place, until)):  # type: ignore[misc]
            ids = [item_id for _, item_id in rows]
            yield self._db.write(lambda tx, ids=ids: remove_items(tx, _unwanted(tx, ids, before)))  # type: ignore[misc]
            place = rows[-1][0], rows[-1][1]


def _past(tx: Transaction, source_id: int, place: tuple[int, int], until: int) -> list[Row]:
    return tx.all(
        f"""
        SELECT ordered_at, item_id FROM sightings
         WHERE source_id = ? AND (ordered_at, item_id) > (?, ?) AND ordered_at < ?
         ORDER BY ordered_at, item_id LIMIT {_BATCH}
        """,
        source_id,
        *place,
        until,
    )


def _unwanted(tx: Transaction, ids: list[int], before: Mapping[str, int]) -> list[int]:
    """Those of them that no source wants any more."""
    rows = tx.among(
        """
        SELECT g.item_id, g.source_id, g.ordered_at, g.last_seen_at, s.kind, p.is_active
          FROM sightings g JOIN sources s ON s.id = g.source_id LEFT JOIN progress p ON p.source_id = s.id
         WHERE g.item_id IN {few}
        """,
        ids,
    )
    active = sorted({row[1] for row in rows if row[5]})
    shown_since = {source_id: _shown_since(tx, source_id) for source_id in active}
    wanted = {
        item_id
        for item_id, source_id, ordered_at, last_seen_at, kind, _ in rows
        if ordered_at >= before.get(kind, -(2**62)) or last_seen_at >= shown_since.get(source_id, 2**62)
    }
    return [item_id for item_id in ids if item_id not in wanted]


def _shown_since(tx: Transaction, source_id: int) -> int:
    """When the last visit began that showed anything: what was seen since then, the source shows still."""
    row = tx.one(
        f"""
        SELECT max(last_seen_at) FROM
               (SELECT last_seen_at FROM sightings WHERE source_id = ?
                 ORDER BY ordered_at DESC, item_id DESC LIMIT {_NEWEST}) newest
        """,
        source_id,
    )
    return int(row[0]) - _ONE_VISIT // timedelta(microseconds=1) if row and row[0] is not None else 2**62
