"""How late we are: what is due and waits, and who waits for a first visit. The cost grows with what is due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from catchment.clock import micros, moment
from catchment.model import Record
from catchment.store.database import Database, Row, Transaction
from catchment.store.due import BY_INTERVAL, BY_TIME, Group, groups_waiting
from catchment.store.rows import to_moment

LATE = timedelta(minutes=15)
"""A tick comes every minute: who is due for longer than that waits for a budget, or for a free hand."""


class Waiting(Record, frozen=True):
    """Sources of one kind that are due."""

    kind: str
    due: int
    late: int
    """Those of them that have been due for long."""
    since: datetime
    """When the first of them became due."""


class WarmUp(Record, frozen=True):
    """How far the first visits to the sources of one kind have come."""

    kind: str
    followed: int
    visited: int
    """Visited, or warmed, at least once."""
    last_first_at: datetime | None
    """When one was visited for the first time, or warmed, the last time that this happened."""
    waiting_since: datetime
    """When the first of those was followed that have not been visited yet."""


class Lateness:
    def __init__(self, database: Database) -> None:
        self._db = database

    def waiting(self, intervals: Mapping[str, int], otherwise: int, now: datetime) -> list[Waiting]:
        """What is due, kind by kind. `intervals` are minutes by kind, `otherwise` those of kinds it does not name."""

        def question(tx: Transaction) -> list[Row]:
            rows = [_by_time(tx, group, now) for group in groups_waiting(tx, BY_TIME)]
            for group in groups_waiting(tx, BY_INTERVAL):
                rows += [_by_interval(tx, group, intervals.get(group[0], otherwise), now), _unvisited(tx, group, now)]
            return rows

        return sorted(_summed(self._db.read(question)), key=lambda one: one.kind)

    def warm_ups(self) -> list[WarmUp]:
        """The kinds of which sources wait for their first visit."""

        def question(tx: Transaction) -> list[Row]:
            kinds = {group[0] for group in groups_waiting(tx, BY_INTERVAL) if _is_any_unvisited(tx, group)}
            return [row for kind in sorted(kinds) if (row := _warm_up(tx, kind))]

        rows = self._db.read(question)
        return [
            WarmUp(kind, followed, int(visited), to_moment(last_first_at), moment(waiting_since))
            for kind, followed, visited, last_first_at, waiting_since in rows
            # All that were not visited may have been warmed.
            if waiting_since is not None
        ]


def _summed(rows: list[Row]) -> Iterator[Waiting]:
    found: dict[str, Waiting] = {}
    for kind, due, late, since in rows:
        if due:
            one = Waiting(kind, int(due), int(late), moment(since))
            known = found.get(kind, Waiting(kind, 0, 0, one.since))
            found[kind] = Waiting(kind, known.due + one.due, known.late + one.late, min(known.since, one.since))
    yield from found.values()


def _by_interval(tx: Transaction, group: Group, minutes: int, now: datetime) -> Row:
    """Those that the interval of their kind made due."""
    interval = minutes * 60_000_000
    row = tx.one(
        """
        SELECT count(*), coalesce(sum(CASE WHEN last_polled_at <= ? THEN 1 ELSE 0 END), 0), min(last_polled_at) + ?
          FROM progress
         WHERE is_active AND next_due_at IS NULL AND kind = ? AND precedence = ? AND last_polled_at <= ?
        """,
        micros(now - LATE) - interval,
        interval,
        *group,
        micros(now) - interval,
    )
    assert row is not None
    return group[0], *row


def _unvisited(tx: Transaction, group: Group, now: datetime) -> Row:
    """Those that were never visited: due since they are followed."""
    row = tx.one(
        """
        SELECT count(*), coalesce(sum(CASE WHEN s.created_at <= ? THEN 1 ELSE 0 END), 0), min(s.created_at)
          FROM progress p JOIN sources s ON s.id = p.source_id
         WHERE p.is_active AND p.next_due_at IS NULL AND p.kind = ? AND p.precedence = ? AND p.last_polled_at IS NULL
        """,
        micros(now - LATE),
        *group,
    )
    assert row is not None
    return group[0], *row


def _by_time(tx: Transaction, group: Group, now: datetime) -> Row:
    """Those with a due time of their own."""
    row = tx.one(
        """
        SELECT count(*), coalesce(sum(CASE WHEN next_due_at <= ? THEN 1 ELSE 0 END), 0), min(next_due_at)
          FROM progress
         WHERE is_active AND next_due_at IS NOT NULL AND kind = ? AND precedence = ? AND next_due_at <= ?
        """,
        micros(now - LATE),
        *group,
        micros(now),
    )
    assert row is not None
    return group[0], *row


def _is_any_unvisited(tx: Transaction, group: Group) -> bool:
    row = tx.one(
        """
        SELECT 1 FROM progress
         WHERE is_active AND next_due_at IS NULL AND kind = ? AND precedence = ? AND last_polled_at IS NULL LIMIT 1
        """,
        *group,
    )
    return row is not None


def _warm_up(tx: Transaction, kind: str) -> Row | None:
    return tx.one(
        """
        SELECT s.kind, count(*), count(coalesce(p.first_polled_at, h.last_warmed_at)),
               max(coalesce(p.first_polled_at, h.last_warmed_at)),
               min(CASE WHEN p.first_polled_at IS NULL AND h.last_warmed_at IS NULL THEN s.created_at END)
          FROM sources s JOIN progress p ON p.source_id = s.id LEFT JOIN hot_sources h ON h.source_id = s.id
         WHERE s.kind = ? AND p.is_active GROUP BY s.kind
        """,
        kind,
    )
