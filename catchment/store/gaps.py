"""Gaps: what is known to be missing, or possibly is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from catchment.clock import micros, moment
from catchment.model import Standing
from catchment.store.database import Database
from catchment.store.rows import with_iso

_SHOWN = (
    "g.id, g.source_id, s.name AS source_name, g.is_certain, g.from_at, g.to_at, g.cause, g.opened_at, g.closed_at, "
    "g.closed_because"
)


class Gaps:
    def __init__(self, database: Database) -> None:
        self._db = database

    def page(
        self, *, source_id: int | None = None, include_closed: bool = False, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """In order of id."""
        where, values = "", []
        if source_id is not None:
            where, values = "AND g.source_id = ?", [source_id]
        if not include_closed:
            where += " AND g.closed_at IS NULL"
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT {_SHOWN} FROM gaps g JOIN sources s ON s.id = g.source_id
                 WHERE g.id > ? {where} ORDER BY g.id LIMIT ?
                """,
                after,
                *values,
                limit,
            )
        )
        return [_shown(row) for row in rows]

    def newest(
        self, limit: int = 30, *, is_open: bool = True, source_id: int | None = None, before: int | None = None
    ) -> list[dict[str, Any]]:
        """Those that are open, or those that are closed; the ones that were opened last come first."""
        where, values = ("AND g.source_id = ?", [source_id]) if source_id is not None else ("", [])
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT {_SHOWN} FROM gaps g JOIN sources s ON s.id = g.source_id
                 WHERE g.id < ? AND g.closed_at IS {"" if is_open else "NOT"} NULL {where} ORDER BY g.id DESC LIMIT ?
                """,
                2**62 if before is None else before,
                *values,
                limit,
            )
        )
        return [_shown(row) for row in rows]

    def by_source(self, limit: int = 30) -> list[dict[str, Any]]:
        """The sources that have open gaps: how many, how many of them certain, and from when to when."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                WITH few AS MATERIALIZED
                     (SELECT source_id, count(*) AS gap_count, sum(CASE WHEN is_certain THEN 1 ELSE 0 END) AS certain,
                             min(from_at) AS from_at, max(to_at) AS to_at
                        FROM gaps WHERE closed_at IS NULL GROUP BY source_id)
                SELECT few.source_id, s.name AS source_name, few.gap_count, few.certain, few.from_at, few.to_at
                  FROM few JOIN sources s ON s.id = few.source_id ORDER BY few.to_at DESC LIMIT ?
                """,
                limit,
            )
        )
        return [with_iso(row, "from_at", "to_at") for row in rows]

    def since(self, source_id: int, since: datetime) -> list[tuple[int, bool, datetime, datetime, str, str | None]]:
        """Those of a source that reach beyond that moment: id, whether certain, from, to, cause, why closed."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT id, is_certain, from_at, to_at, cause, closed_at, closed_because FROM gaps
                 WHERE source_id = ? AND to_at > ? ORDER BY id
                """,
                source_id,
                micros(since),
            )
        )
        return [
            (row[0], bool(row[1]), moment(row[2]), moment(row[3]), row[4], row[5] and (row[6] or "closed"))
            for row in rows
        ]

    def count_open(self) -> int:
        row = self._db.read(lambda tx: tx.one("SELECT count(*) FROM gaps WHERE closed_at IS NULL"))
        return int(row[0]) if row else 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return with_iso(row, "from_at", "to_at", "opened_at", "closed_at") | {
        "is_certain": bool(row["is_certain"]),
        "certainty": "known" if row["is_certain"] else "possible",
        "standing": Standing.of_gap(bool(row["is_certain"]), row["closed_at"] is not None),
    }
