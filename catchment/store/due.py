"""Who is due, and who goes first: never visited before; then by what a person gave, high before low; then by how late
each is, measured by its own interval; then the shorter interval. Along indexes: the cost grows with what is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from catchment.clock import micros
from catchment.model import precedence
from catchment.store.database import Row, Transaction

Group = tuple[str, int]
"""A kind, and a precedence."""
BY_INTERVAL, BY_TIME = "next_due_at IS NULL", "next_due_at IS NOT NULL"
"""Sources that the interval of their kind makes due, and those with a due time of their own."""
_COMPARED = 300
"""Of those with a due time of their own so many are compared, the longest overdue: their intervals differ."""
_FREE = "LEFT JOIN leases l ON l.resource = 'source' AND l.resource_id = p.source_id"
_MINUTE = 60_000_000


def set_precedence(tx: Transaction, priorities: Mapping[int, str]) -> None:
    """What a person gave these sources decides from now on who goes first."""
    rows = [(precedence(priority), source_id) for source_id, priority in priorities.items()]
    tx.many("UPDATE progress SET precedence = ? WHERE source_id = ?", rows)


class Due(NamedTuple):
    """A source that is due; the first in line is the smallest."""

    is_known: bool
    """It was visited before: those that never were come first."""
    precedence: int
    earliness: float
    """How late it is, measured by its interval; negative, so that the latest comes first."""
    interval: int
    source_id: int
    last_polled_at: int | None


def first_due(
    tx: Transaction, intervals: Mapping[str, int], otherwise: int, now: datetime, limit: int, most: Mapping[str, int]
) -> dict[int, int | None]:
    """Source ids that are due, in order, each with the time of its last visit."""
    at, others, lanes = micros(now), list[Due](), list[Due]()
    waiting = sorted({*groups_waiting(tx, BY_INTERVAL), *groups_waiting(tx, BY_TIME)})
    for kind, groups in groupby(waiting, key=lambda group: group[0]):
        wanted = most.get(kind, limit)
        if wanted > 0:
            found = _of_kind(tx, list(groups), intervals.get(kind, otherwise) * _MINUTE, at, wanted)
            (lanes if kind in most else others).extend(sorted(found)[:wanted])
    chosen = sorted((*sorted(others)[: max(0, limit)], *lanes))
    return {one.source_id: one.last_polled_at for one in chosen}


def groups_waiting(tx: Transaction, pace: str) -> list[Group]:
    """The kinds of active sources, and the precedences there are among them; jumps along an index from one to the
    next."""
    groups: list[Group] = []
    while row := tx.one(
        f"""
        SELECT kind, precedence FROM progress WHERE is_active AND {pace} AND (kind, precedence) > (?, ?)
         ORDER BY kind, precedence LIMIT 1
        """,
        *(groups[-1] if groups else ("", 0)),
    ):
        groups.append((row[0], row[1]))
    return groups


def _of_kind(tx: Transaction, groups: list[Group], interval: int, at: int, limit: int) -> list[Due]:
    """At least the first so many of a kind; its groups come in the order of their precedence."""
    found: list[Due] = []
    for group in groups:
        found += [Due(False, group[1], 0.0, 0, row[0], None) for row in _never(tx, group, limit - len(found))]
        if len(found) >= limit:
            return found
    for group in groups:
        rows = [(row[0], row[1] + interval, row[1], None) for row in _by_interval(tx, group, at - interval, limit)]
        found += [_due(group[1], row, interval, at) for row in (*rows, *_by_time(tx, group, at, limit))]
        if len(found) >= limit:
            break
    return found


def _due(precedence: int, row: Row, kind_interval: int, at: int) -> Due:
    source_id, due_at, last_polled_at, minutes = row
    interval = max(_MINUTE, kind_interval if minutes is None else minutes * _MINUTE)
    return Due(True, precedence, (due_at - at) / interval, interval, source_id, last_polled_at)


def _never(tx: Transaction, group: Group, limit: int) -> list[Row]:
    return tx.all(
        f"""
        SELECT p.source_id FROM progress p {_FREE}
         WHERE p.is_active AND p.next_due_at IS NULL AND p.kind = ? AND p.precedence = ? AND p.last_polled_at IS NULL
           AND l.owner_id IS NULL
         LIMIT ?
        """,
        *group,
        limit,
    )


def _by_interval(tx: Transaction, group: Group, until: int, limit: int) -> list[Row]:
    return tx.all(
        f"""
        SELECT p.source_id, p.last_polled_at FROM progress p {_FREE}
         WHERE p.is_active AND p.next_due_at IS NULL AND p.kind = ? AND p.precedence = ? AND p.last_polled_at <= ?
           AND l.owner_id IS NULL
         ORDER BY p.last_polled_at LIMIT ?
        """,
        *group,
        until,
        limit,
    )


def _by_time(tx: Transaction, group: Group, at: int, limit: int) -> list[Row]:
    return tx.all(
        f"""
        SELECT p.source_id, p.next_due_at, p.last_polled_at, coalesce(s.interval_minutes, p.tier_minutes)
          FROM progress p JOIN sources s ON s.id = p.source_id {_FREE}
         WHERE p.is_active AND p.next_due_at IS NOT NULL AND p.kind = ? AND p.precedence = ? AND p.next_due_at <= ?
           AND l.owner_id IS NULL
         ORDER BY p.next_due_at LIMIT ?
        """,
        *group,
        at,
        max(limit, _COMPARED),
    )
