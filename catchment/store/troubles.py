"""What is not well: sources whose last visit failed. Answers for whoever looks after the deployment."""

from __future__ import annotations

from typing import Any

from catchment.store.database import Database
from catchment.store.rows import with_iso


class Troubles:
    def __init__(self, database: Database) -> None:
        self._db = database

    def failing(self, limit: int) -> list[dict[str, Any]]:
        """Active sources whose last visit failed, those that have failed longest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT s.id, s.name, s.kind, p.last_error, p.last_error_code, p.failures_in_a_row, p.last_polled_at
                  FROM progress p JOIN sources s ON s.id = p.source_id
                 WHERE p.is_active AND p.last_error IS NOT NULL
                 ORDER BY p.failures_in_a_row DESC, p.source_id DESC LIMIT ?
                """,
                limit,
            )
        )
        return [with_iso(row, "last_polled_at") for row in rows]

    def counts(self, failures_limit: int) -> dict[str, int]:
        """How many active sources fail, and how many of them have failed so often that they are on probation."""
        row = self._db.read(
            lambda tx: tx.one(
                """
                SELECT count(*), coalesce(sum(CASE WHEN failures_in_a_row >= ? THEN 1 ELSE 0 END), 0)
                  FROM progress WHERE is_active AND last_error IS NOT NULL
                """,
                failures_limit,
            )
        )
        assert row is not None
        return {"failing": int(row[0]), "probation": int(row[1])}
