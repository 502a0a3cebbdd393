"""How items grew: their counters over time, and where they appeared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catchment.clock import moment
from catchment.model import Deed, Judged, Point
from catchment.store.database import Transaction
from catchment.store.rows import with_iso


def last_points(tx: Transaction, judged: Sequence[Judged]) -> dict[int, Point]:
    """The newest point of each item whose counters were told and have changed."""
    moved = (Deed.EDITED, Deed.COUNTED)
    ids = [one.known.id for one in judged if one.known and one.verdict.deed in moved and one.item.item.is_counted]
    rows = tx.among(
        """
        SELECT p.item_id, p.at, p.score, p.reply_count, p.view_count FROM counter_points p
         WHERE p.item_id IN {few} AND p.at = (SELECT max(l.at) FROM counter_points l WHERE l.item_id = p.item_id)
        """,
        ids,
    )
    return {item_id: Point(moment(at), *counters) for item_id, at, *counters in rows}


def add_points(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of item, time, score, replies, views."""
    tx.insert(
        "counter_points",
        ("item_id", "at", "score", "reply_count", "view_count"),
        rows,
        """
        ON CONFLICT (item_id, at) DO UPDATE
           SET score = excluded.score, reply_count = excluded.reply_count, view_count = excluded.view_count
        """,
    )


def add_appearances(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of item, day, source, time, rank, score, gained; the last of a day takes the place of the others."""
    tx.insert(
        "appearances",
        ("item_id", "day", "source_id", "at", "rank", "score", "gained"),
        rows,
        """
        ON CONFLICT (item_id, day, source_id) DO UPDATE
           SET at = excluded.at, rank = excluded.rank, score = excluded.score, gained = excluded.gained
         WHERE appearances.at <= excluded.at
        """,
    )


def counters(tx: Transaction, item_id: int) -> list[dict[str, Any]]:
    """Oldest first."""
    rows = tx.dicts(
        "SELECT at, score, reply_count, view_count FROM counter_points WHERE item_id = ? ORDER BY at", item_id
    )
    return [with_iso(row, "at") for row in rows]


def appearances(tx: Transaction, item_id: int) -> list[dict[str, Any]]:
    """Oldest day first."""
    rows = tx.dicts(
        """
        SELECT day, source_id, at, rank, score, gained FROM appearances
         WHERE item_id = ? ORDER BY day, source_id
        """,
        item_id,
    )
    return [with_iso(row, "at") for row in rows]
