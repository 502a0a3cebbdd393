"""Reading items: lists by key, one item, its revisions; everything as it is shown outside."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import InvalidInput, NotFound
from catchment.model import Ordering, Record
from catchment.store import series
from catchment.store.by_reply import replied_with
from catchment.store.database import Database, Row, Transaction
from catchment.store.facets import facet_ids, kind_facet
from catchment.store.filtering import Filter, newest_with
from catchment.store.indexing import MOST_SCANNED, mark_of
from catchment.store.past import as_it_was
from catchment.store.rows import decode, with_iso
from catchment.store.shown import COLUMNS, by_ids, shown


class ItemPage(Record, frozen=True):
    """A part of a list. It may be short, even empty, and go on all the same: what is rare is looked for in steps."""

    items: list[dict[str, Any]]
    next: tuple[int, int] | None
    """Where to go on; None: this was the end."""


class Items:
    def __init__(self, database: Database) -> None:
        self._db = database

    def newest(
        self, limit: int = 30, *, source_id: int | None = None, before: tuple[int, int] | None = None
    ) -> list[dict[str, Any]]:
        """Newest first, of one source or of all. The next page is `before` the last one's `key_of`."""
        return self._db.read(lambda tx: shown(tx, _newest(tx, limit, source_id, before)))

    def listed(
        self,
        wanted: Filter,
        limit: int,
        before: tuple[int, int] | None = None,
        order: Ordering = Ordering.POSTED,
    ) -> ItemPage:
        """Newest first, by posting time or last reply, those that the filter lets through."""
        return self._db.read(lambda tx: _listed(tx, wanted, limit, before, order))

    def get(self, item_id: int) -> dict[str, Any]:
        found = self._db.read(lambda tx: shown(tx, tx.all(f"SELECT {COLUMNS} FROM items i WHERE i.id = ?", item_id)))
        if not found:
            raise _missing(item_id)
        return found[0]

    def as_of(self, item_id: int, at: datetime) -> dict[str, Any]:
        """The item as it was at that moment; `valid_to` tells until when it said so (None: it still does)."""
        found = self._db.read(lambda tx: as_it_was(tx, item_id, at))
        if found is None:
            raise _missing(item_id)
        return found

    def held(self, platform: str, external_ids: Sequence[str]) -> dict[str, int]:
        """Of these ids of a platform whose ids are unique everywhere, those that we hold, and as which items."""
        return self._db.read(
            lambda tx: dict(
                tx.among(
                    "SELECT external_id, id FROM items WHERE platform = ? AND scope = '' AND external_id IN {few}",
                    sorted(set(external_ids)),
                    before=[platform],
                )
            )
        )

    def replies(self, item_id: int, limit: int, after: tuple[int, int] | None = None) -> ItemPage:
        """What belongs to its thread, oldest first; nothing, if it is the head of none."""
        return self._db.read(lambda tx: _replies(tx, item_id, limit, after))

    def revisions(self, item_id: int) -> list[dict[str, Any]]:
        """What the item said before, oldest first."""
        self.get(item_id)
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT item_id, version, reasons, valid_from, valid_to, source_edited_at, title, text, html,
                       target_url, media, fingerprint, is_deleted, is_folded, run_id
                  FROM revisions WHERE item_id = ? ORDER BY version
                """,
                item_id,
            )
        )
        return [
            with_iso(row, "valid_from", "valid_to", "source_edited_at")
            | {
                "reasons": row["reasons"].split(";"),
                "media": decode(row["media"]),
                "fingerprint": bytes(row["fingerprint"]).hex(),
                "is_deleted": bool(row["is_deleted"]),
                "is_folded": bool(row["is_folded"]),
            }
            for row in rows
        ]

    def counters(self, item_id: int) -> list[dict[str, Any]]:
        """How its counters grew, oldest first: a sparse series; the present values are the item's own."""
        self.get(item_id)
        return self._db.read(lambda tx: series.counters(tx, item_id))

    def appearances(self, item_id: int) -> list[dict[str, Any]]:
        """Its places in listings by day, oldest first."""
        self.get(item_id)
        return self._db.read(lambda tx: series.appearances(tx, item_id))

    def stored_after(self, item_id: int, limit: int = 500) -> list[dict[str, Any]]:
        """What was stored after this one, in the order in which it was stored, whatever date it bears."""
        return self._db.read(lambda tx: _after(tx, item_id, limit))

    def edits_after(self, revision_id: int, limit: int = 500) -> list[dict[str, Any]]:
        """Which items changed after this revision was written, in order: what each is called now, and was before."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT r.id, r.item_id, r.version, r.reasons, r.valid_to, r.title AS title_before, i.title, i.text,
                       i.source_id
                  FROM revisions r JOIN items i ON i.id = r.item_id
                 WHERE r.id > ? ORDER BY r.id LIMIT ?
                """,
                revision_id,
                limit,
            )
        )
        return [with_iso(row, "valid_to") | {"reasons": row["reasons"].split(";")} for row in rows]

    def has_kind(self, kind: str) -> bool:
        """Whether any item is of this kind, or was shown by a source of this kind. (Or was: the index remembers.)"""
        return self._db.read(lambda tx: _has_kind(tx, kind))

    def count(self) -> int:
        """How many items were ever stored: from the ledger, without counting rows."""
        row = self._db.read(lambda tx: tx.one("SELECT last_item_id FROM ledger WHERE id = 1"))
        return int(row[0]) if row else 0


def key_of(item: dict[str, Any], order: Ordering = Ordering.POSTED) -> str:
    """Where the page after this item begins, in a list of that order; opaque outside."""
    at = item["ordered_at" if order == Ordering.POSTED else "last_reply_at"]
    return key_text((micros(datetime.fromisoformat(at)), item["id"]))


def key_text(key: tuple[int, int]) -> str:
    """A time and an id, as a place in a list is told outside."""
    return f"{key[0]}-{key[1]}"


def key_from(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        ordered_at, item_id = text.split("-")
        key = int(ordered_at), int(item_id)
        if not all(0 <= part < 2**63 for part in key):
            raise ValueError
    except ValueError:
        raise InvalidInput(f"{text!r} is not a place in a list", "use the `next` of the page before", "after") from None
    return key


def _missing(item_id: int) -> NotFound:
    return NotFound(f"there is no item {item_id}", "`catchment items` lists what is stored")


def _newest(tx: Transaction, limit: int, source_id: int | None, before: tuple[int, int] | None) -> list[Row]:
    # A row value comparison runs along the index: page 1,000 costs as much as page 1.
    if source_id is None:
        where = "WHERE (i.ordered_at, i.id) < (?, ?)" if before else ""
        return tx.all(
            f"SELECT {COLUMNS} FROM items i {where} ORDER BY i.ordered_at DESC, i.id DESC LIMIT ?",
            *(before or ()),
            limit,
        )
    where = "AND (s.ordered_at, s.item_id) < (?, ?)" if before else ""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM sightings s JOIN items i ON i.id = s.item_id
         WHERE s.source_id = ? {where} ORDER BY s.ordered_at DESC, s.item_id DESC LIMIT ?
        """,
        source_id,
        *(before or ()),
        limit,
    )


def _replies(tx: Transaction, item_id: int, limit: int, after: tuple[int, int] | None) -> ItemPage:
    head = tx.one("SELECT is_head, platform, scope, thread_id FROM items WHERE id = ?", item_id)
    if head is None:
        raise _missing(item_id)
    is_head, *thread = head
    if not is_head:
        return ItemPage([], None)
    rows = tx.all(
        f"""
        SELECT {COLUMNS} FROM items i
         WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.id <> ? AND (i.ordered_at, i.id) > (?, ?)
         ORDER BY i.ordered_at, i.id LIMIT ?
        """,
        *thread,
        item_id,
        *(after or (-(2**63), 0)),
        limit + 1,
    )
    items = shown(tx, rows[:limit])
    return ItemPage(items, key_from(key_of(items[-1])) if len(rows) > limit else None)


def _listed(tx: Transaction, wanted: Filter, limit: int, before: tuple[int, int] | None, order: Ordering) -> ItemPage:
    if order == Ordering.REPLIED:
        found = replied_with(tx, wanted.wanted(tx), limit, before)
    elif wanted.is_plain:
        return page_of(shown(tx, _newest(tx, limit + 1, wanted.source_id, before)), limit)
    else:
        found = newest_with(tx, wanted.wanted(tx), limit, before)
    return ItemPage(by_ids(tx, [item_id for _, item_id in found.keys]), found.next)


def _has_kind(tx: Transaction, kind: str) -> bool:
    if facet_ids(tx, [kind_facet(kind)]):
        return True
    # What waits to be indexed, as far as a list looks it through.
    row = tx.one(
        f"""
        SELECT 1 FROM (SELECT kind FROM items WHERE (content_change_number, id) > (?, ?)
                        ORDER BY content_change_number, id LIMIT {MOST_SCANNED}) AS few
         WHERE kind = ? LIMIT 1
        """,
        *mark_of(tx).position,
        kind,
    )
    return row is not None


def page_of(items: list[dict[str, Any]], limit: int) -> ItemPage:
    """A page of so many, given one more than that, if there is one."""
    return ItemPage(items[:limit], key_from(key_of(items[limit - 1])) if len(items) > limit else None)


def _after(tx: Transaction, after: int, batch: int) -> list[dict[str, Any]]:
    rows = tx.all(f"SELECT {COLUMNS} FROM items i WHERE i.id > ? ORDER BY i.id LIMIT ?", after, batch)
    return shown(tx, rows)
