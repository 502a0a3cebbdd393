"""A database that notes down what it is told, to count statements and to read their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catchment.store.database import Database, Transaction

Statement = tuple[str, tuple[Any, ...]]


class WatchingDatabase(Database):
    """As the real one; `told` are the statements, as they were sent."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.told: list[Statement] = []
        self.transaction = self._watched  # type: ignore[assignment]

    def _watched(self, connection: Any, is_postgres: bool) -> Transaction:
        tx = Transaction(connection, is_postgres)
        tx.cursor = WatchingCursor(tx.cursor, self.told)
        return tx


class WatchingCursor:
    def __init__(self, cursor: Any, told: list[Statement]) -> None:
        self._cursor, self._told = cursor, told

    def execute(self, sql: str, values: Sequence[Any] = (), **more: Any) -> Any:
        self._told.append((sql, tuple(values)))
        return self._cursor.execute(sql, values, **more)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        self._told.append((sql, tuple(rows[0])))
        return self._cursor.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)
