"""Items as the outside sees them: the one place that knows how a row of `items` is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catchment.store.database import Row, Transaction
from catchment.store.rows import decode, iso

SHOWN = (
    "id", "platform", "external_id", "kind", "source_id", "author", "title", "text", "html", "url", "created_at",
    "edited_at", "score", "reply_count", "view_count", "last_reply_at", "thread_id", "floor_number", "is_head",
    "is_deleted", "deleted_by",
    "is_folded", "is_pinned", "is_digest", "version", "fingerprint", "first_seen_at", "content_last_changed_at",
    "author_id", "author_display_name", "media", "tags", "scope", "target_url", "is_adult", "is_created_at_guessed",
    "is_zone_guessed", "is_text_cut", "is_brief", "language", "ordered_at", "change_number",
    "content_change_number", "rounded",
)  # fmt: skip
COLUMNS = ", ".join(f"i.{name}" for name in SHOWN)
TIMES = ("created_at", "edited_at", "first_seen_at", "content_last_changed_at", "ordered_at", "last_reply_at")
FLAGS = tuple(name for name in SHOWN if name.startswith("is_"))
LISTS = ("media", "tags", "rounded")
NUMBERS = (
    "id", "source_id", "score", "reply_count", "view_count", "floor_number", "version", "change_number",
    "content_change_number",
)  # fmt: skip


def shown(tx: Transaction, rows: Sequence[Row]) -> list[dict[str, Any]]:
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


def by_ids(tx: Transaction, ids: Sequence[int]) -> list[dict[str, Any]]:
    """The items with these ids, in this order; what is not there is left out."""
    rows = {row[0]: row for row in tx.among(f"SELECT {COLUMNS} FROM items i WHERE i.id IN {{few}}", ids)}
    return shown(tx, [rows[one] for one in ids if one in rows])


def _one_shown(row: Row, last_seen_at: int | None, references: list[dict[str, Any]]) -> dict[str, Any]:
    item = dict(zip(SHOWN, row, strict=True))
    for name in TIMES:
        item[name] = iso(item[name])
    for name in FLAGS:
        item[name] = bool(item[name])
    for name in LISTS:
        item[name] = decode(item[name])
    item["fingerprint"] = bytes(item["fingerprint"]).hex()
    item["last_seen_at"] = iso(last_seen_at)
    item["references"] = references
    return item
