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
        if not starts:
            return []
        found: list[list[float]] = [[] for _ in starts]
        stretches = [(micros(at), micros(at + length)) for at in starts]
        for place, created, seen in self._db.read(lambda tx: _delays(tx, stretches, limit)):
            found[place].append(max(seen - created, 0) / 1_000_000)
        return found


def _delays(tx: Transaction, stretches: Sequence[tuple[int, int]], limit: int) -> list[Row]:
    # Each stretch has its own few rows, along the index; all of them are asked for at once, since what costs most is
    # to ask a server dozens of times.
    few = " UNION ALL ".join(_STRETCH.format(place=place) for place in range(len(stretches)))
    return tx.all(
        f"""
        WITH few AS MATERIALIZED ({few})
        SELECT few.place, few.created_at, few.first_seen_at FROM few JOIN progress p ON p.source_id = few.source_id
         WHERE NOT few.is_created_at_guessed AND few.created_at >= p.first_polled_at
        """,
        *(value for since, until in stretches for value in (since, until, limit)),
    )


_STRETCH = """
    SELECT * FROM (SELECT {place} AS place, source_id, created_at, first_seen_at, is_created_at_guessed FROM items
                    WHERE ordered_at >= ? AND ordered_at < ? ORDER BY ordered_at LIMIT ?) AS told
"""
