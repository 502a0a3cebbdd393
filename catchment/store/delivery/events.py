"""Outbox: events that are written in the transaction of their cause, and delivered later.

Their numbers come from the ledger, whose row stays locked until the commit: they have no holes and follow the order of
commits. So one number is a listener's position, and reading on from it misses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.clock import moment
from catchment.model import Event
from catchment.store.database import StorePart, Transaction, reads
from catchment.store.item_fields import decode, to_json


def tell(tx: Transaction, event: str, data: Mapping[str, Any], now: int) -> None:
    """Write an event that is delivered once this transaction is committed."""
    number = tx.number("UPDATE ledger SET last_event_id = last_event_id + 1 WHERE id = 1 RETURNING last_event_id")
    tx.run("INSERT INTO outbox (id, event, body, created_at) VALUES (?, ?, ?, ?)", number, event, to_json(data), now)


def head(tx: Transaction) -> int:
    """Returns the number of the newest event."""
    return tx.number("SELECT last_event_id FROM ledger WHERE id = 1")


class Outbox(StorePart):
    @reads
    def after(self, tx: Transaction, position: int, limit: int) -> tuple[list[Event], int]:
        """Returns the following events, and how many in between were cleaned up before they were read."""
        # The head first: what is written after it belongs to the next read.
        newest = head(tx)
        sql = "SELECT id, event, body, created_at FROM outbox WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        rows = tx.all(sql, position, newest, limit)
        first = rows[0][0] if rows else newest + 1
        return [_event(*row) for row in rows], max(0, first - position - 1)


def _event(number: int, name: str, body: str, created_at: int) -> Event:
    return Event(number, name, moment(created_at), decode(body))
