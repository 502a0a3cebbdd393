"""What changed: items in the order of their change numbers, for whoever reads on from where he was."""

from __future__ import annotations

from typing import Any

from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.store.database import Database, Transaction
from catchment.store.shown import COLUMNS, shown

LARGEST = 2**63 - 1


class Place(Record, frozen=True):
    """Up to where somebody has read: everything up to this number, of the number itself up to this item.

    The items of one page that was collected share a number, and a reader may stop among them.
    """

    number: int
    item_id: int = LARGEST

    def __str__(self) -> str:
        return f"{self.number}" if self.item_id == LARGEST else f"{self.number}-{self.item_id}"


class Changed(Record, frozen=True):
    """Some of what changed, oldest change first."""

    items: list[dict[str, Any]]
    next: Place
    """Where to go on, now or later."""
    newest: int
    """The newest change number there is."""
    is_end: bool
    """Nothing else has changed since, so far."""


class Changes:
    def __init__(self, database: Database) -> None:
        self._db = database

    def after(self, place: Place, limit: int, *, counters: bool = False) -> Changed:
        """What changed after that place: content and marks; with `counters` also what was only counted anew.

        Each item comes once, at its last change. One that changes while somebody reads comes again further on.
        """
        return self._db.read(lambda tx: _after(tx, place, limit, "change_number" if counters else _CONTENT))


_CONTENT = "content_change_number"


def _after(tx: Transaction, place: Place, limit: int, number: str) -> Changed:
    # Asked first: what is committed after it has a greater number, and is either among the rows or still to come.
    newest = _newest(tx)
    rows = tx.all(
        f"""
        SELECT {COLUMNS} FROM items i WHERE (i.{number}, i.id) > (?, ?) ORDER BY i.{number}, i.id LIMIT ?
        """,
        place.number,
        place.item_id,
        limit + 1,
    )
    items = shown(tx, rows[:limit])
    is_end = len(rows) <= limit
    last = Place(items[-1][number], items[-1]["id"]) if items else place
    newest = max(newest, last.number)
    return Changed(items, max(place, Place(newest), key=_order) if is_end else last, newest, is_end)


def _newest(tx: Transaction) -> int:
    row = tx.one("SELECT change_number FROM ledger WHERE id = 1")
    assert row is not None
    return int(row[0])


def _order(place: Place) -> tuple[int, int]:
    return place.number, place.item_id


def place_of(item: dict[str, Any], *, counters: bool) -> Place:
    """The place right behind this item."""
    return Place(item["change_number" if counters else _CONTENT], item["id"])


def place_from(text: str) -> Place:
    """A place as it is told outside: a number, or a number and an item."""
    parts = text.split("-")
    if not (1 <= len(parts) <= 2 and all(one.isascii() and one.isdecimal() and len(one) <= 19 for one in parts)):
        raise _no_place()
    numbers = [int(one) for one in parts]
    if max(numbers) > LARGEST:
        raise _no_place()
    return Place(*numbers)


def _no_place() -> InvalidInput:
    return InvalidInput(
        "this is not a place among the changes", "give 0 to begin, or the `next` of the answer before", "after"
    )
