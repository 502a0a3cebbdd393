"""Communities by how lively they are: their averages, their tiers, and which of them were left alone too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from catchment.clock import micros
from catchment.model import Progress, Source
from catchment.store.database import Database, Row, Transaction
from catchment.store.rows import to_json
from catchment.store.sources import joined_columns, set_pace, split

Place = tuple[float, int]
"""A community's place in the list: its average, and its number."""
_TOP: Place = (1e300, 0)


class Tiering:
    def __init__(self, database: Database) -> None:
        self._db = database

    def by_average(self, limit: int, after: Place | None = None) -> list[tuple[Source, Progress]]:
        """Active communities that were visited, the liveliest first."""

        def question(tx: Transaction) -> list[Row]:
            return tx.all(
                f"""
                SELECT {joined_columns()} FROM progress p JOIN sources s ON s.id = p.source_id
                 WHERE p.is_active AND p.average_valid IS NOT NULL AND (p.average_valid, p.source_id) < (?, ?)
                 ORDER BY p.average_valid DESC, p.source_id DESC LIMIT ?
                """,
                *(after or _TOP),
                limit,
            )

        return [split(row) for row in self._db.read(question)]

    def counts(self) -> dict[str | None, int]:
        """How many active communities there are in each tier; None: in none yet."""
        sql = """
            SELECT tier, count(*) FROM progress WHERE is_active AND average_valid IS NOT NULL GROUP BY tier
            """
        return dict(self._db.read(lambda tx: tx.all(sql)))

    def assign(self, assigned: Sequence[tuple[Source, Progress]]) -> list[int]:
        """Put communities into the tiers that these progresses name, and make them due by that; gives which of them.

        One that was visited meanwhile has its tier from that visit.
        """

        def deed(tx: Transaction) -> list[int]:
            return [source.id for source, progress in assigned if _assign(tx, source, progress)]

        return self._db.write(deed)

    def left_alone(self, kinds: Iterable[str], below: float, since: datetime, limit: int) -> list[int]:
        """Communities with an average below that, not visited since then; the oldest visit first.

        Whom a person, a server or probation makes wait, is not left alone: that is meant.
        """

        def question(tx: Transaction) -> list[Row]:
            return [row for kind in kinds for row in _left_alone(tx, kind, below, micros(since), limit)]

        rows = sorted(self._db.read(question), key=lambda row: (row[1], row[0]))
        return [row[0] for row in rows[:limit]]


def _assign(tx: Transaction, source: Source, progress: Progress) -> bool:
    # What waits by its tier waits by the new one from now on; what waits for another reason goes on waiting.
    is_done = tx.run(
        """
        UPDATE progress SET tier = ?, tier_minutes = ?, tier_reason = ?,
               due_reason = CASE WHEN due_reason = tier_reason THEN NULL ELSE due_reason END
         WHERE source_id = ? AND recent_valid = ?
        """,
        progress.tier,
        progress.tier_minutes,
        progress.tier_reason,
        source.id,
        to_json(progress.recent_valid),
    )
    if is_done:
        set_pace(tx, source.id, source.interval_minutes)
    return bool(is_done)


def _left_alone(tx: Transaction, kind: str, below: float, since: int, limit: int) -> list[Row]:
    return tx.all(
        """
        SELECT source_id, last_polled_at FROM progress
         WHERE is_active AND average_valid IS NOT NULL AND kind = ? AND last_polled_at < ? AND average_valid < ?
           AND (due_reason IS NULL OR due_reason = tier_reason)
         ORDER BY last_polled_at LIMIT ?
        """,
        kind,
        since,
        below,
        limit,
    )
