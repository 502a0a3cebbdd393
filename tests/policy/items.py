"""A stored item, and the same item as an answer shows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from catchment.model import Item, RefinedItem, StoredItem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HELD = b"what we hold"


def known(**more: Any) -> StoredItem:
    usual: dict[str, Any] = {
        "id": 1,
        "external_id": "a",
        "fingerprint": HELD,
        "version": 1,
        "ordered_at": 0,
        "shown_at": NOW - timedelta(hours=1),
        "title": "Title",
        "url": "https://one.example/a",
        "author": "ann",
        "author_display_name": "Ann",
        "edited_at": None,
        "score": 10,
        "reply_count": None,
        "view_count": 1200,
        "rounded": ("view_count",),
        "is_deleted": False,
        "is_folded": False,
        "is_pinned": False,
        "is_digest": False,
        "tags": ("x", "y"),
        "volatile_until": None,
        "is_shown_by_source": True,
    }
    return StoredItem(**usual | more)


def shown(fingerprint: bytes = HELD, **more: Any) -> RefinedItem:
    return RefinedItem(Item("a", title=more.pop("title", "Title"), text=more.pop("text", "text"), **more), fingerprint)
