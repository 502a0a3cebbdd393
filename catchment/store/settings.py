"""Settings and request budgets in the database, shared by all processes of a deployment."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from catchment.clock import micros
from catchment.store.database import StorePart, Transaction, writes
from catchment.store.item_fields import decode, to_json

_INTERVAL = "fetch_interval."
DEPLOYMENT = "deployment"
"""The setting that holds the name of the deployment."""


class StoredSettings(StorePart):
    def put(self, name: str, value: Any, now: datetime) -> None:
        sql = """
            INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
        """
        self._run(sql, name, to_json(value), micros(now))

    def deployment(self, now: datetime) -> str:
        """Returns a name that all processes on this database share, and no others: for shared state outside the
        database."""
        name = self.get(DEPLOYMENT)
        if name is None:
            row = (DEPLOYMENT, to_json(secrets.token_hex(8)), micros(now))
            # Of two concurrent inserts, the first one counts.
            self._db.write(
                lambda tx: tx.insert(
                    "settings", ("name", "value", "updated_at"), [row], "ON CONFLICT (name) DO NOTHING"
                )
            )
            name = self.get(DEPLOYMENT)
        return str(name)

    def get(self, name: str) -> Any | None:
        row = self._one("SELECT value FROM settings WHERE name = ?", name)
        return decode(row[0]) if row else None

    def intervals(self) -> dict[str, int]:
        """Returns minutes by kind, as set in the database."""
        rows = self._all("SELECT name, value FROM settings WHERE name LIKE ?", f"{_INTERVAL}%")
        return {name.removeprefix(_INTERVAL): int(decode(value)) for name, value in rows}

    def put_interval(self, kind: str, minutes: int, now: datetime) -> None:
        self.put(f"{_INTERVAL}{kind}", minutes, now)

    def remove_interval(self, kind: str) -> None:
        """The environment's value or the default of this kind applies again."""
        self._run("DELETE FROM settings WHERE name = ?", f"{_INTERVAL}{kind}")


T = TypeVar("T")


class BudgetRows(StorePart):
    """One row per budget, changed under its lock: the window that all processes of a deployment share."""

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns the current windows of these names; unused ones are left out."""
        rows = self._select_in("SELECT name, blocks FROM budgets WHERE name IN {values}", names)
        return {name: decode(blocks) for name, blocks in rows}

    @writes
    def change(self, tx: Transaction, name: str, now: datetime, decide: Callable[[Any | None], tuple[Any, T]]) -> T:
        """`decide` gets the stored window (None at first) and returns the next one with its own result."""
        row = tx.one(f"SELECT blocks FROM budgets WHERE name = ? {tx.lock_rows()}", name)
        window, result = decide(decode(row[0]) if row else None)
        if row:
            tx.run("UPDATE budgets SET blocks = ?, updated_at = ? WHERE name = ?", to_json(window), micros(now), name)
        else:
            # There is no row to lock yet. Of two concurrent inserts one fails here, and its transaction is
            # repeated.
            tx.insert("budgets", ("name", "blocks", "updated_at"), [(name, to_json(window), micros(now))])
        return result
