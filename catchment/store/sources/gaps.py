"""Gaps: periods in which items are missing, or may be."""

from __future__ import annotations

from datetime import datetime

from catchment.clock import micros
from catchment.model import Record, Standing, View
from catchment.store.database import StorePart

_SHOWN = (
    "g.id, g.source_id, s.name AS source_name, g.is_certain, g.from_at, g.to_at, g.cause, g.opened_at, g.closed_at, "
    "g.closed_because"
)


class GapView(View, frozen=True):
    id: int
    source_id: int
    source_name: str
    is_certain: bool
    from_at: datetime
    """Time of the newest item stored before it."""
    to_at: datetime
    """Time of the oldest item shown after it."""
    cause: str
    opened_at: datetime
    closed_at: datetime | None
    closed_because: str | None

    @property
    def certainty(self) -> str:
        return "known" if self.is_certain else "possible"

    @property
    def standing(self) -> Standing:
        return Standing.of_gap(self.is_certain, self.closed_at is not None)


class SourceGaps(Record, frozen=True):
    """The open gaps of one source."""

    source_id: int
    source_name: str
    gap_count: int
    certain: int
    """How many of them are certain."""
    from_at: datetime
    to_at: datetime


class Gaps(StorePart):
    def page(
        self, *, source_id: int | None = None, include_closed: bool = False, after: int = 0, limit: int = 1000
    ) -> list[GapView]:
        """Returns gaps in order of id."""
        where, values = ("AND g.source_id = ?", [source_id]) if source_id is not None else ("", [])
        if not include_closed:
            where += " AND g.closed_at IS NULL"
        sql = f"""
            SELECT {_SHOWN} FROM gaps g JOIN sources s ON s.id = g.source_id
             WHERE g.id > ? {where} ORDER BY g.id LIMIT ?
        """
        return self._records(GapView, sql, after, *values, limit)

    def newest(
        self, limit: int = 30, *, is_open: bool = True, source_id: int | None = None, before: int | None = None
    ) -> list[GapView]:
        """Returns open or closed gaps, the last opened first."""
        where, values = ("AND g.source_id = ?", [source_id]) if source_id is not None else ("", [])
        sql = f"""
            SELECT {_SHOWN} FROM gaps g JOIN sources s ON s.id = g.source_id
             WHERE g.id < ? AND g.closed_at IS {"" if is_open else "NOT"} NULL {where} ORDER BY g.id DESC LIMIT ?
        """
        return self._records(GapView, sql, 2**62 if before is None else before, *values, limit)

    def by_source(self, limit: int = 30) -> list[SourceGaps]:
        """Returns the sources with open gaps, the latest gap first."""
        sql = """
            WITH few AS MATERIALIZED
                 (SELECT source_id, count(*) AS gap_count, sum(CASE WHEN is_certain THEN 1 ELSE 0 END) AS certain,
                         min(from_at) AS from_at, max(to_at) AS to_at
                    FROM gaps WHERE closed_at IS NULL GROUP BY source_id)
            SELECT few.source_id, s.name AS source_name, few.gap_count, few.certain, few.from_at, few.to_at
              FROM few JOIN sources s ON s.id = few.source_id ORDER BY few.to_at DESC LIMIT ?
        """
        return self._records(SourceGaps, sql, limit)

    def since(self, source_id: int, since: datetime) -> list[GapView]:
        """Returns the gaps of a source that end after that time, open and closed."""
        sql = f"""
            SELECT {_SHOWN} FROM gaps g JOIN sources s ON s.id = g.source_id
             WHERE g.source_id = ? AND g.to_at > ? ORDER BY g.id
        """
        return self._records(GapView, sql, source_id, micros(since))

    def count_open(self) -> int:
        return self._number("SELECT count(*) FROM gaps WHERE closed_at IS NULL")
