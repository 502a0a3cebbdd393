"""Changes feed: items in the order of their change numbers, for clients that page through changes with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.store.database import StorePart, Transaction, reads
from catchment.store.item_fields import ItemView
from catchment.store.items.views import COLUMNS, shown

LARGEST = 2**63 - 1


class ChangeCursor(Record, frozen=True):
    """A client's position: everything up to this number, and within that number up to this item.

    The items of one collected page share a number, and a client may stop among them.
    """

    number: int
    item_id: int = LARGEST

    def __str__(self) -> str:
        return f"{self.number}" if self.item_id == LARGEST else f"{self.number}-{self.item_id}"


class Changed(Record, frozen=True):
    """A page of changes, oldest first."""

    items: list[ItemView]
    next: ChangeCursor
    """The cursor to continue with, now or later."""
    newest: int
    """The newest change number."""
    is_end: bool
    """There are no more changes so far."""


class Changes(StorePart):
    @reads
    def after(self, tx: Transaction, place: ChangeCursor, limit: int, *, counters: bool = False) -> Changed:
        """Returns changes after that cursor: content and flags; with `counters` also counter updates.

        Each item comes once, at its last change. An item that changes while a client is paging comes again later.
        """
        number = "change_number" if counters else "content_change_number"
        # Read first: what is committed after it has a greater number, and is either among the rows or on a later page.
        newest = tx.number("SELECT change_number FROM ledger WHERE id = 1")
        sql = f"""
            SELECT {COLUMNS} FROM items i WHERE (i.{number}, i.id) > (?, ?) ORDER BY i.{number}, i.id LIMIT ?
        """
        rows = tx.all(sql, place.number, place.item_id, limit + 1)
        items = shown(tx, rows[:limit])
        is_end = len(rows) <= limit
        last = cursor_after(items[-1], counters=counters) if items else place
        newest = max(newest, last.number)
        return Changed(items, max(place, ChangeCursor(newest), key=_order) if is_end else last, newest, is_end)


MOST_IDS = 1_000
"""In an event: a client with more to read pages through the changes."""


def changed_items(tx: Transaction, source_ids: Sequence[int], after: int) -> dict[str, Any]:
    """Returns, for an event, which items of these sources are new or edited since that change number."""
    sql = """
        SELECT i.id, i.content_change_number FROM items i
         WHERE i.content_change_number > ?
           AND EXISTS (SELECT 1 FROM sightings s WHERE s.item_id = i.id AND s.source_id IN {values})
         ORDER BY i.content_change_number, i.id LIMIT ?
    """
    rows = tx.select_in(sql, source_ids, before=[after], after=[MOST_IDS + 1])
    ids = [row[0] for row in sorted(rows, key=lambda row: (row[1], row[0]))]
    newest = tx.number("SELECT change_number FROM ledger WHERE id = 1")
    return {
        "item_ids": ids[:MOST_IDS],
        "is_every_id": len(ids) <= MOST_IDS,
        "from_change_number": after,
        "to_change_number": newest,
    }


def _order(place: ChangeCursor) -> tuple[int, int]:
    return place.number, place.item_id


def cursor_after(item: ItemView, *, counters: bool) -> ChangeCursor:
    """Returns the cursor right after this item."""
    return ChangeCursor(item.change_number if counters else item.content_change_number, item.id)


def parse_cursor(text: str) -> ChangeCursor:
    """Parses a cursor: a number, or a number and an item. Raises InvalidInput."""
    parts = text.split("-")
    if not (1 <= len(parts) <= 2 and all(part.isascii() and part.isdecimal() and len(part) <= 19 for part in parts)):
        raise _bad_cursor()
    numbers = [int(part) for part in parts]
    if max(numbers) > LARGEST:
        raise _bad_cursor()
    return ChangeCursor(*numbers)


def _bad_cursor() -> InvalidInput:
    return InvalidInput("this is not a change number", "start with 0, or use `next` from the previous answer", "after")
