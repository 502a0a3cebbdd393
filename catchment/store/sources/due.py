"""Due sources and the order in which they are claimed.

Never visited first; then by the user's priority, high before low; then by how late each is relative to its interval;
then the shorter interval. Uses indexes: the cost grows with the number of sources requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from catchment.clock import micros
from catchment.model import ADDED, REQUESTED, precedence
from catchment.store.database import Row, Transaction

Group = tuple[str, int]
"""A kind and a precedence."""
BY_INTERVAL, BY_TIME = "next_due_at IS NULL", "next_due_at IS NOT NULL"
"""Sources that are due by the interval of their kind, and those with a due time of their own."""
_COMPARED = 300
"""How many sources with a due time of their own are compared, the longest overdue: their intervals differ."""
_FREE = "LEFT JOIN leases l ON l.resource = 'source' AND l.resource_id = p.source_id"
_MINUTE = 60_000_000
_REQUESTS_FOR = 60 * _MINUTE
"""A user's request older than this has no precedence any more: its source is due, like others."""


def set_precedence(tx: Transaction, priorities: Mapping[int, str]) -> None:
    """Apply the users' priorities of these sources to the order in which they are claimed."""
    rows = [(precedence(priority), source_id) for source_id, priority in priorities.items()]
    tx.many("UPDATE progress SET precedence = ? WHERE source_id = ?", rows)


def requested(tx: Transaction, now: datetime, limit: int) -> dict[int, int | None]:
    """Returns ids of sources that a user asked to collect now, the earliest request first, each with the time of its
    last visit."""
    at = micros(now)
    rows: list[Row] = []
    for group in groups_waiting(tx, BY_TIME):
        rows += tx.all(
            f"""
            SELECT p.next_due_at, p.source_id, p.last_polled_at FROM progress p {_FREE}
             WHERE p.is_active AND p.next_due_at IS NOT NULL AND p.kind = ? AND p.precedence = ?
               AND p.next_due_at BETWEEN ? AND ? AND p.due_reason IN (?, ?) AND l.owner_id IS NULL
             ORDER BY p.next_due_at LIMIT ?
            """,
            *group,
            at - _REQUESTS_FOR,
            at,
            REQUESTED.code,
            ADDED.code,
            limit,
        )
    return {row[1]: row[2] for row in sorted(rows, key=lambda row: (row[0], row[1]))[:limit]}


class Due(NamedTuple):
    """A source that is due; the smallest comes first."""

    is_known: bool
    """It was visited before; never visited ones come first."""
    precedence: int
    earliness: float
    """How late it is, relative to its interval; negative, so that the latest comes first."""
    interval: int
    source_id: int
    last_polled_at: int | None


def first_due(
    tx: Transaction, intervals: Mapping[str, int], fallback: int, now: datetime, limit: int, most: Mapping[str, int]
) -> dict[int, int | None]:
    """Returns ids of due sources, in order, each with the time of its last visit."""
    at, others, lanes = micros(now), list[Due](), list[Due]()
    waiting = sorted({*groups_waiting(tx, BY_INTERVAL), *groups_waiting(tx, BY_TIME)})
    for kind, groups in groupby(waiting, key=lambda group: group[0]):
        count = most.get(kind, limit)
        if count > 0:
            due = _of_kind(tx, list(groups), intervals.get(kind, fallback) * _MINUTE, at, count)
            (lanes if kind in most else others).extend(sorted(due)[:count])
    chosen = sorted((*sorted(others)[: max(0, limit)], *lanes))
    return {due.source_id: due.last_polled_at for due in chosen}


def groups_waiting(tx: Transaction, pace: str) -> list[Group]:
    """Returns the kinds of active sources and the precedences among them; skips along an index from one to the next."""
    groups: list[Group] = []
    kind, precedence = "", 0
    while row := _next_group(tx, pace, "kind = ? AND precedence > ?", kind, precedence) or _next_group(
        tx, pace, "kind > ?", kind
    ):
        kind, precedence = row
        groups.append((kind, precedence))
    return groups


def _next_group(tx: Transaction, pace: str, condition: str, *values: str | int) -> Row | None:
    # Two seeks, column by column: for `(kind, precedence) > (?, ?)` SQLite walks through all sources of the kind.
    return tx.one(
        f"""
        SELECT kind, precedence FROM progress WHERE is_active AND {pace} AND {condition}
         ORDER BY kind, precedence LIMIT 1
        """,
        *values,
    )


def _of_kind(tx: Transaction, groups: list[Group], interval: int, at: int, limit: int) -> list[Due]:
    """Returns at least the first `limit` of a kind; its groups come in the order of their precedence."""
    due: list[Due] = []
    for group in groups:
        due += [Due(False, group[1], 0.0, 0, row[0], None) for row in _never(tx, group, limit - len(due))]
        if len(due) >= limit:
            return due
    for group in groups:
        rows = [(row[0], row[1] + interval, row[1], None) for row in _by_interval(tx, group, at - interval, limit)]
        due += [_due(group[1], row, interval, at) for row in (*rows, *_by_time(tx, group, at, limit))]
        if len(due) >= limit:
            break
    return due


def _due(precedence: int, row: Row, kind_interval: int, at: int) -> Due:
    source_id, due_at, last_polled_at, minutes = row
    interval = max(_MINUTE, kind_interval if minutes is None else minutes * _MINUTE)
    # A source that was deferred before its first visit has a due time, and still goes first.
    return Due(last_polled_at is not None, precedence, (due_at - at) / interval, interval, source_id, last_polled_at)


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


def next_due(tx: Transaction, intervals: Mapping[str, int], fallback: int) -> int | None:
    """Returns the earliest due time of all active sources that were visited or have a due time of their own."""
    times: list[int] = []
    for kind, first in groups_waiting(tx, BY_INTERVAL):
        row = tx.one(
            """
            SELECT last_polled_at FROM progress
             WHERE is_active AND next_due_at IS NULL AND kind = ? AND precedence = ? AND last_polled_at > 0
             ORDER BY last_polled_at LIMIT 1
            """,
            kind,
            first,
        )
        times += [row[0] + intervals.get(kind, fallback) * _MINUTE] if row else []
    for kind, first in groups_waiting(tx, BY_TIME):
        row = tx.one(
            """
            SELECT next_due_at FROM progress
             WHERE is_active AND next_due_at IS NOT NULL AND kind = ? AND precedence = ? ORDER BY next_due_at LIMIT 1
            """,
            kind,
            first,
        )
        times += [row[0]] if row else []
    return min(times, default=None)
