"""What budgets are planned from: who is followed, at which interval, and how many requests visits took lately."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import convert, to_builtins

from catchment.clock import micros
from catchment.model import Record
from catchment.store.database import Database
from catchment.store.kept import KeptSettings
from catchment.store.metrics import LOOK_AGAIN


class Followed(Record, frozen=True):
    """An active source, as far as it asks for a budget."""

    id: int
    name: str
    platform: str
    kind: str
    priority: str
    interval_minutes: int | None
    """Its own, or else its tier's; None: its kind's."""


class Taken(Record, frozen=True):
    """How many requests things took lately."""

    a_visit: Mapping[int, float]
    """By source, on average."""
    besides: Mapping[str, int]
    """By platform, in a day: all that was not asked for at an interval."""


_TAKEN = "requests_taken"


class Planning:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._settings = KeptSettings(database)

    def followed(self) -> list[Followed]:
        """All active sources."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT s.id, s.name, s.platform, s.kind, s.priority, coalesce(s.interval_minutes, p.tier_minutes)
                  FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.state = 'active' ORDER BY s.id
                """
            )
        )
        return [Followed(*row) for row in rows]

    def requests_per_visit(self, since: datetime) -> dict[int, float]:
        """By source: how many requests a visit that went well took on average."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT v.source_id, avg(v.request_count) FROM run_sources v JOIN runs r ON r.id = v.run_id
                 WHERE v.started_at >= ? AND v.outcome IN ('succeeded', 'unchanged') AND r.job <> ?
                 GROUP BY v.source_id
                """,
                micros(since),
                LOOK_AGAIN,
            )
        )
        return {source_id: float(mean) for source_id, mean in rows}

    def requests_besides(self, job: str, since: datetime) -> dict[str, int]:
        """By platform: how many requests the runs since then have made, of all scheduled jobs but this one."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT s.platform, sum(v.request_count) FROM run_sources v JOIN sources s ON s.id = v.source_id
                 WHERE v.started_at >= ?
                   AND (SELECT r.started_by = 'schedule' AND r.job <> ? FROM runs r WHERE r.id = v.run_id)
                 GROUP BY s.platform
                """,
                micros(since),
                job,
            )
        )
        return {platform: int(count) for platform, count in rows}

    def keep(self, taken: Taken, now: datetime) -> None:
        """Have it at hand: to count it anew takes longer than a page may."""
        rounded = {source_id: round(requests, 2) for source_id, requests in taken.a_visit.items()}
        self._settings.put(_TAKEN, to_builtins(taken.plus(a_visit=rounded), str_keys=True), now)

    def kept(self) -> Taken | None:
        """As it was counted last; None: it never was."""
        known = self._settings.get(_TAKEN)
        return None if known is None else convert(known, Taken, strict=False)
