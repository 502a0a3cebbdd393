"""When sources post, and how long it takes until we hold it. Samples: their size is bounded, however much there is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from catchment.clock import micros, moment
from catchment.store.database import Database, Row, Transaction


class Rhythm:
    def __init__(self, database: Database) -> None:
        self._db = database

    def posted(self, source_id: int, limit: int = 2000) -> list[datetime]:
        """When the newest items of a source were posted, newest first."""
        rows = self._db.read(
            lambda tx: tx.all(
                "SELECT ordered_at FROM sightings WHERE source_id = ? ORDER BY ordered_at DESC LIMIT ?",
                source_id,
                limit,
            )
        )
        return [moment(row[0]) for row in rows]

    def delays(self, starts: Sequence[datetime], length: timedelta, limit: int = 60) -> list[list[float]]:
        """For each of these stretches: how many seconds passed until some of what was posted in it was captured.

        What was posted before its source was first visited is none of it, nor is what told no time of its own.
        """
        found = self._db.read(lambda tx: [_delays(tx, micros(at), micros(at + length), limit) for at in starts])
        return [[max(seen - created, 0) / 1_000_000 for created, seen in rows] for rows in found]


def _delays(tx: Transaction, since: int, until: int, limit: int) -> list[Row]:
    return tx.all(
        """
        WITH few AS MATERIALIZED
             (SELECT source_id, created_at, first_seen_at, is_created_at_guessed FROM items
               WHERE ordered_at >= ? AND ordered_at < ? ORDER BY ordered_at LIMIT ?)
        SELECT few.created_at, few.first_seen_at FROM few JOIN progress p ON p.source_id = few.source_id
         WHERE NOT few.is_created_at_guessed AND few.created_at >= p.first_polled_at
        """,
        since,
        until,
        limit,
    )
