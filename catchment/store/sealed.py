"""Everything that is sealed, wherever it lies, for those who change the key."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.model import Record
from catchment.store.database import Database, Transaction
from catchment.store.schema import metadata


def tables() -> list[str]:
    """The tables with something sealed in them, found in the schema: who adds one need not remember this place."""
    return sorted(name for name, table in metadata.tables.items() if {"key_id", "sealed"} <= {*table.c.keys()})


class SealedRow(Record, frozen=True):
    """Something sealed, and where it lies."""

    table: str
    id: int
    name: str
    key_id: str
    sealed: bytes


class SealedThings:
    def __init__(self, database: Database) -> None:
        self._db = database

    def count(self, key_id: str) -> int:
        """How many are sealed with another key."""
        return self._db.read(lambda tx: sum(_count(tx, table, key_id) for table in tables()))

    def others(self, table: str, key_id: str, after: int, limit: int) -> list[SealedRow]:
        """Those of a table that are sealed with another key, in order of id. What is empty is not sealed at all."""
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT id, name, key_id, sealed FROM {table}
                 WHERE id > ? AND key_id <> ? AND length(sealed) > 0 ORDER BY id LIMIT ?
                """,
                after,
                key_id,
                limit,
            )
        )
        return [SealedRow(table, row[0], row[1], row[2], bytes(row[3])) for row in rows]

    def exchange(self, pairs: Sequence[tuple[SealedRow, SealedRow]]) -> int:
        """Put the second of each pair in the place of the first, if that still lies there; gives how many were put."""

        def deed(tx: Transaction) -> int:
            return sum(
                tx.run(
                    f"UPDATE {old.table} SET key_id = ?, sealed = ? WHERE id = ? AND sealed = ?",
                    new.key_id,
                    new.sealed,
                    old.id,
                    old.sealed,
                )
                for old, new in pairs
            )

        return self._db.write(deed)


def _count(tx: Transaction, table: str, key_id: str) -> int:
    row = tx.one(f"SELECT count(*) FROM {table} WHERE key_id <> ? AND length(sealed) > 0", key_id)
    return int(row[0]) if row else 0
