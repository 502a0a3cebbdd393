"""What is still to be asked for about items: noted with the page that showed the change, settled with the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from catchment.clock import micros
from catchment.model import Request, Source
from catchment.store.database import Database, Transaction
from catchment.store.visits import Owed


class Owing:
    def __init__(self, database: Database) -> None:
        self._db = database

    def of_source(self, source_id: int, limit: int) -> list[Owed]:
        """Whoever waited longest comes first."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT o.item_id, i.external_id, o.requests, o.asked_count
                  FROM owed o JOIN items i ON i.id = o.item_id
                 WHERE o.source_id = ? ORDER BY o.owed_at, o.item_id LIMIT ?
                """,
                source_id,
                limit,
            )
        )
        return [Owed(row[0], row[1], _requests_from(row[2]), row[3]) for row in rows]

    def count(self, source_id: int) -> int:
        """About how many items something is owed."""
        row = self._db.read(lambda tx: tx.one("SELECT count(*) FROM owed WHERE source_id = ?", source_id))
        return int(row[0]) if row else 0


def owe(tx: Transaction, source: Source, wanted: Sequence[tuple[int, Sequence[Request]]], now: int) -> None:
    """From now on this is owed about these items. Asked for anew, all of it is: what was left of the old is in it."""
    tx.insert(
        "owed",
        ("item_id", "source_id", "owed_at", "asked_count", "requests"),
        [(item_id, source.id, now, 0, _requests_text(requests)) for item_id, requests in wanted],
        "ON CONFLICT (item_id, source_id) DO UPDATE SET asked_count = 0, requests = excluded.requests",
    )


def settle(tx: Transaction, source: Source, owed: Sequence[Owed], at: datetime) -> None:
    """How these stand after an answer: what is left of them waits behind the others."""
    tx.many(
        "DELETE FROM owed WHERE item_id = ? AND source_id = ?",
        [(one.item_id, source.id) for one in owed if not one.requests],
    )
    tx.many(
        "UPDATE owed SET owed_at = ?, asked_count = ?, requests = ? WHERE item_id = ? AND source_id = ?",
        [
            (micros(at), one.asked_count, _requests_text(one.requests), one.item_id, source.id)
            for one in owed
            if one.requests
        ],
    )


def _requests_text(requests: Sequence[Request]) -> str:
    return msgspec.json.encode(requests).decode()


def _requests_from(text: str) -> tuple[Request, ...]:
    return msgspec.json.decode(text, type=tuple[Request, ...])
