"""The outbox: events that are written with what they tell of, in its transaction, and leave for their listeners later.

Their numbers come from the ledger, whose row stays locked until the commit: they have no holes and follow the order of
commits. So one number says how far a listener is, and reading on from it misses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.clock import moment
from catchment.model import Event
from catchment.store.database import Database, Transaction
from catchment.store.rows import decode, to_json


def tell(tx: Transaction, event: str, data: Mapping[str, Any], now: int) -> None:
    """Write an event that leaves once this transaction is committed."""
    row = tx.one("UPDATE ledger SET last_event_id = last_event_id + 1 WHERE id = 1 RETURNING last_event_id")
    assert row is not None
    tx.run("INSERT INTO outbox (id, event, body, created_at) VALUES (?, ?, ?, ?)", row[0], event, to_json(data), now)


def head(tx: Transaction) -> int:
    """The number of the newest event."""
    row = tx.one("SELECT last_event_id FROM ledger WHERE id = 1")
    assert row is not None
    return int(row[0])


class Outbox:
    def __init__(self, database: Database) -> None:
        self._db = database

    def after(self, position: int, limit: int) -> tuple[list[Event], int]:
        """The events that follow, and how many in between were cleared before anybody asked for them."""

        def question(tx: Transaction) -> tuple[list[Event], int]:
            # The head first: what is written after this look belongs to the next one.
            newest = head(tx)
            rows = tx.all(
                "SELECT id, event, body, created_at FROM outbox WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                position,
                newest,
                limit,
            )
            first = rows[0][0] if rows else newest + 1
            return [_event(*row) for row in rows], max(0, first - position - 1)

        return self._db.read(question)


def _event(number: int, name: str, body: str, created_at: int) -> Event:
    return Event(number, name, moment(created_at), decode(body))
