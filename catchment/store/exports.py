"""Items for an export: all, or some, by key, in short reads: no transaction is held open while a file is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.model import Record
from catchment.store.database import Database, Row, Transaction
from catchment.store.shown import COLUMNS, shown

_KEYS = 2000


class Chosen(Record, frozen=True):
    """Which items are exported: all, unless something is said."""

    source_id: int | None = None
    """Those that this source showed."""
    kind: str | None = None
    """Those that a source of this kind showed first."""
    since: datetime | None = None
    """Those from then on, by their place in the lists."""

    @property
    def is_all(self) -> bool:
        return self == Chosen()


class Exports:
    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, chosen: Chosen, batch: int = 500) -> Iterator[dict[str, Any]]:
        """The chosen items, as they are shown outside."""
        of_kind = self._of_kind(chosen.kind) if chosen.kind is not None else None
        for keys in self._keys(chosen):
            ids = [item_id for _, item_id, source_id in keys if of_kind is None or source_id in of_kind]
            for start in range(0, len(ids), batch):
                yield from self._shown(ids[start : start + batch])

    def _keys(self, chosen: Chosen) -> Iterator[list[Row]]:
        """(place, id, first source) of the items that may be wanted, a few thousand at a time."""
        place: tuple[int, int] = (0 if chosen.since is None else micros(chosen.since), 0)
        while rows := self._db.read(lambda tx, place=place: _keys(tx, chosen, place)):  # type: ignore[misc]
            yield rows
            place = rows[-1][0], rows[-1][1]

    def _shown(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        sql = f"SELECT {COLUMNS} FROM items i WHERE i.id IN {{few}}"
        found = {one["id"]: one for one in self._db.read(lambda tx: shown(tx, tx.among(sql, ids)))}
        # What was removed since its key was read is missed, and not missing.
        return [found[item_id] for item_id in ids if item_id in found]

    def _of_kind(self, kind: str) -> set[int]:
        return {row[0] for row in self._db.read(lambda tx: tx.all("SELECT id FROM sources WHERE kind = ?", kind))}


def _keys(tx: Transaction, chosen: Chosen, place: tuple[int, int]) -> list[Row]:
    if chosen.source_id is not None:
        return tx.all(
            f"""
            SELECT s.ordered_at, s.item_id, i.source_id FROM sightings s JOIN items i ON i.id = s.item_id
             WHERE s.source_id = ? AND (s.ordered_at, s.item_id) > (?, ?)
             ORDER BY s.ordered_at, s.item_id LIMIT {_KEYS}
            """,
            chosen.source_id,
            *place,
        )
    if chosen.since is not None:
        return tx.all(
            f"""
            SELECT ordered_at, id, source_id FROM items
             WHERE (ordered_at, id) > (?, ?) ORDER BY ordered_at, id LIMIT {_KEYS}
            """,
            *place,
        )
    # By number, which nothing ever changes.
    return tx.all(f"SELECT 0, id, source_id FROM items WHERE id > ? ORDER BY id LIMIT {_KEYS}", place[1])
