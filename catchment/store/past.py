"""An item as it was at a moment: what it said then is in its revisions, or in the item itself if that still holds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import NotFound
from catchment.store.database import Transaction
from catchment.store.rows import decode, iso
from catchment.store.shown import COLUMNS, shown

_COUNTERS = ("score", "reply_count", "view_count")


def as_it_was(tx: Transaction, item_id: int, at: datetime) -> dict[str, Any] | None:
    """The item with the content and marks that it had then; None if there is no such item.

    Counters are updated in place: those that a later answer brought are not what was known then, and are null.
    """
    times = tx.one("SELECT first_seen_at, content_last_changed_at, applied_at FROM items WHERE id = ?", item_id)
    if times is None:
        return None
    first_seen_at, changed_at, applied_at = times
    if micros(at) < first_seen_at:
        raise NotFound(
            f"item {item_id} was first seen at {iso(first_seen_at)}: what it said before, if anything, is not known",
            "ask for that moment or a later one",
        )
    (item,) = shown(tx, tx.all(f"SELECT {COLUMNS} FROM items i WHERE i.id = ?", item_id))
    # Looked for after the item: what was edited in between is found here, as it was in the item.
    said = _said(tx, item_id, micros(at))
    if said is None and micros(at) < changed_at:
        raise NotFound(f"what item {item_id} said at {at.isoformat()} is not kept any more")
    item |= said or {"valid_to": None}
    if not item["is_deleted"]:
        # Somebody did take it away, but later.
        item["deleted_by"] = None
    if micros(at) < applied_at:
        item |= dict.fromkeys((*_COUNTERS, "last_reply_at")) | {"rounded": []}
    if item["last_seen_at"] is not None and datetime.fromisoformat(item["last_seen_at"]) > at:
        item["last_seen_at"] = None
    return item


def _said(tx: Transaction, item_id: int, at: int) -> dict[str, Any] | None:
    """The revision that held at that moment, under the names that an item has for it."""
    found = tx.dicts(
        """
        SELECT version, fingerprint, valid_from, valid_to, source_edited_at, is_deleted, is_folded, title, target_url,
               media, text, html
          FROM revisions WHERE item_id = ? AND valid_from <= ? AND valid_to > ? ORDER BY version DESC LIMIT 1
        """,
        item_id,
        at,
        at,
    )
    if not found:
        return None
    said = found[0]
    return {
        **{name: said[name] for name in ("version", "title", "target_url", "text", "html")},
        "fingerprint": bytes(said["fingerprint"]).hex(),
        "media": decode(said["media"]),
        "is_deleted": bool(said["is_deleted"]),
        "is_folded": bool(said["is_folded"]),
        "edited_at": iso(said["source_edited_at"]),
        "content_last_changed_at": iso(said["valid_from"]),
        "valid_to": iso(said["valid_to"]),
    }
