"""Reading items: lists by key, one item, its revisions; everything as it is shown outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from catchment.errors import InvalidInput, NotFound
from catchment.store.database import Database, Row, Transaction
from catchment.store.rows import decode, iso, with_iso

_SHOWN = (
    "id", "platform", "external_id", "kind", "source_id", "author", "title", "text", "html", "url", "created_at",
    "edited_at", "score", "reply_count", "view_count", "thread_id", "floor_number", "is_deleted", "is_folded",
    "is_pinned", "is_digest", "version", "fingerprint", "first_seen_at", "content_last_changed_at", "author_id",
    "author_display_name", "media", "tags", "scope", "target_url", "is_adult", "is_created_at_guessed",
    "is_zone_guessed", "is_text_cut", "language", "ordered_at", "change_number", "rounded",
)  # fmt: skip
_COLUMNS = ", ".join(f"i.{name}" for name in _SHOWN)
_TIMES = ("created_at", "edited_at", "first_seen_at", "content_last_changed_at", "ordered_at")
_FLAGS = tuple(name for name in _SHOWN if name.startswith("is_"))
_LISTS = ("media", "tags", "rounded")


class Items:
    def __init__(self, database: Database) -> None:
        self._db = database

    def newest(
        self, limit: int = 30, *, source_id: int | None = None, before: tuple[int, int] | None = None
    ) -> list[dict[str, Any]]:
        """Newest first, of one source or of all. The next page is `before` the last one's `key_of`."""
        return self._db.read(lambda tx: _shown(tx, _newest(tx, limit, source_id, before)))

    def get(self, item_id: int) -> dict[str, Any]:
        found = self._db.read(lambda tx: _shown(tx, tx.all(f"SELECT {_COLUMNS} FROM items i WHERE i.id = ?", item_id)))
        if not found:
            raise NotFound(f"there is no item {item_id}", "`catchment items` lists what is stored")
        return found[0]

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

    def in_order(self, batch: int = 500) -> Iterator[dict[str, Any]]:
        """All items by id, in short reads: an export holds no transaction open."""
        after = 0
        while rows := self._db.read(lambda tx, after=after: _after(tx, after, batch)):  # type: ignore[misc]
            yield from rows
            after = rows[-1]["id"]

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

    def count(self) -> int:
        """How many items were ever stored: from the ledger, without counting rows."""
        row = self._db.read(lambda tx: tx.one("SELECT last_item_id FROM ledger WHERE id = 1"))
        return int(row[0]) if row else 0


def key_of(item: dict[str, Any]) -> str:
    """Where the page after this item begins; opaque outside."""
    from datetime import datetime

    from catchment.clock import micros

    return f"{micros(datetime.fromisoformat(item['ordered_at']))}-{item['id']}"


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


def _newest(tx: Transaction, limit: int, source_id: int | None, before: tuple[int, int] | None) -> list[Row]:
    # A row value comparison runs along the index: page 1,000 costs as much as page 1.
    if source_id is None:
        where = "WHERE (i.ordered_at, i.id) < (?, ?)" if before else ""
        return tx.all(
            f"SELECT {_COLUMNS} FROM items i {where} ORDER BY i.ordered_at DESC, i.id DESC LIMIT ?",
            *(before or ()),
            limit,
        )
    where = "AND (s.ordered_at, s.item_id) < (?, ?)" if before else ""
    return tx.all(
        f"""
        SELECT {_COLUMNS} FROM sightings s JOIN items i ON i.id = s.item_id
         WHERE s.source_id = ? {where} ORDER BY s.ordered_at DESC, s.item_id DESC LIMIT ?
        """,
        source_id,
        *(before or ()),
        limit,
    )


def _after(tx: Transaction, after: int, batch: int) -> list[dict[str, Any]]:
    rows = tx.all(f"SELECT {_COLUMNS} FROM items i WHERE i.id > ? ORDER BY i.id LIMIT ?", after, batch)
    return _shown(tx, rows)


def _shown(tx: Transaction, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as the outside sees them, with what stands in other tables fetched once for all."""
    ids = [row[0] for row in rows]
    seen: dict[int, int] = dict(
        tx.among("SELECT item_id, max(last_seen_at) FROM sightings WHERE item_id IN {few} GROUP BY item_id", ids)
    )
    references: dict[int, list[dict[str, Any]]] = {}
    for item_id, *told in tx.among(
        """
        SELECT item_id, relation, external_id, url, author, text FROM item_references
         WHERE item_id IN {few} ORDER BY item_id, position
        """,
        ids,
    ):
        named = zip(("relation", "external_id", "url", "author", "text"), told, strict=True)
        references.setdefault(item_id, []).append({name: value for name, value in named if value is not None})
    return [_one_shown(row, seen.get(row[0]), references.get(row[0], [])) for row in rows]


def _one_shown(row: Row, last_seen_at: int | None, references: list[dict[str, Any]]) -> dict[str, Any]:
    item = dict(zip(_SHOWN, row, strict=True))
    for name in _TIMES:
        item[name] = iso(item[name])
    for name in _FLAGS:
        item[name] = bool(item[name])
    for name in _LISTS:
        item[name] = decode(item[name])
    item["fingerprint"] = bytes(item["fingerprint"]).hex()
    item["last_seen_at"] = iso(last_seen_at)
    item["references"] = references
    return item
