"""Reads items as views, with what other tables say about them: revisions, counters, daily positions in listings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from catchment.clock import moment
from catchment.model import Media, Point, Reference, View
from catchment.store.database import Row, Transaction
from catchment.store.item_fields import SHOWN, ItemView
from catchment.store.row_mappers import mapper

COLUMNS = ", ".join(f"i.{name}" for name in SHOWN)
"""SELECT list for `shown`."""
_id_of = itemgetter(SHOWN.index("id"))
_item = mapper(ItemView, SHOWN, ("last_seen_at", "references"))
_REFERENCE = Reference.__struct_fields__
_reference = mapper(Reference, _REFERENCE)


def shown(tx: Transaction, rows: Sequence[Row]) -> list[ItemView]:
    """Returns the views of rows of `COLUMNS`, with the data of other tables fetched once for all."""
    ids = [_id_of(row) for row in rows]
    seen: dict[int, int] = dict(
        tx.select_in("SELECT item_id, max(last_seen_at) FROM sightings WHERE item_id IN {values} GROUP BY item_id", ids)
    )
    references: dict[int, list[Reference]] = {}
    sql = f"""
        SELECT item_id, {", ".join(_REFERENCE)} FROM item_references
         WHERE item_id IN {{values}} ORDER BY item_id, position
    """
    for item_id, *values in tx.select_in(sql, ids):
        references.setdefault(item_id, []).append(_reference(*values))
    return [
        _item(*row, moment(seen[item_id]) if item_id in seen else None, tuple(references.get(item_id, ())))
        for item_id, row in zip(ids, rows, strict=True)
    ]


def by_ids(tx: Transaction, ids: Sequence[int]) -> list[ItemView]:
    """Returns the items with these ids, in this order; missing ones are left out."""
    rows = tx.select_in(f"SELECT {COLUMNS} FROM items i WHERE i.id IN {{values}}", ids)
    items = {item.id: item for item in shown(tx, rows)}
    return [items[id_] for id_ in ids if id_ in items]


class RevisionView(View, frozen=True):
    """An earlier version of an item."""

    item_id: int
    version: int
    reasons: tuple[str, ...]
    valid_from: datetime
    valid_to: datetime
    source_edited_at: datetime | None
    title: str | None
    text: str | None
    html: str | None
    target_url: str | None
    media: tuple[Media, ...]
    fingerprint: bytes
    is_deleted: bool
    is_folded: bool
    run_id: int | None


_REVISION = tuple(name for name in RevisionView.__struct_fields__ if name != "reasons")
_revision = mapper(RevisionView, _REVISION, ("reasons",))


def revisions(tx: Transaction, where: str, *values: object) -> list[RevisionView]:
    """Returns revisions, oldest first."""
    rows = tx.all(f"SELECT reasons, {', '.join(_REVISION)} FROM revisions WHERE {where} ORDER BY version", *values)
    return [_revision(*row, tuple(reasons.split(";"))) for reasons, *row in rows]


_POINT = Point.__struct_fields__
_point = mapper(Point, _POINT)


class AppearanceView(View, frozen=True):
    """An item's position in a listing, the last one of a day (UTC)."""

    day: str
    source_id: int
    at: datetime
    rank: int | None
    score: int | None
    gained: int | None


_APPEARANCE = AppearanceView.__struct_fields__
_appearance = mapper(AppearanceView, _APPEARANCE)


def last_points(tx: Transaction, item_ids: Sequence[int]) -> dict[int, Point]:
    """Returns the newest point of each of these items."""
    sql = """
        SELECT p.item_id, p.at, p.score, p.reply_count, p.view_count FROM counter_points p
         WHERE p.item_id IN {values} AND p.at = (SELECT max(l.at) FROM counter_points l WHERE l.item_id = p.item_id)
    """
    rows = tx.select_in(sql, item_ids)
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
    """Rows of item, day, source, time, rank, score, gained; the last of a day replaces the others."""
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


def counters(tx: Transaction, item_id: int) -> list[Point]:
    """Returns the points, oldest first."""
    rows = tx.all(f"SELECT {', '.join(_POINT)} FROM counter_points WHERE item_id = ? ORDER BY at", item_id)
    return [_point(*row) for row in rows]


def appearances(tx: Transaction, item_id: int) -> list[AppearanceView]:
    """Returns the appearances, oldest day first."""
    rows = tx.all(
        f"SELECT {', '.join(_APPEARANCE)} FROM appearances WHERE item_id = ? ORDER BY day, source_id", item_id
    )
    return [_appearance(*row) for row in rows]
