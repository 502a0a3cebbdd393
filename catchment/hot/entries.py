"""What a cache-only crawl saw of an item, as it is shown: what the platform said, nothing that the archive knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from catchment.model import Item, RefinedItem, Source
from catchment.store.shown import SHOWN

_SAID = [name for name in SHOWN if name in Item.__struct_fields__]


def seen_entry(one: RefinedItem, source: Source, at: datetime) -> dict[str, Any]:
    """By the names that stored items have."""
    item = one.item
    said = {name: _shown(getattr(item, name)) for name in _SAID}
    created = item.created_at
    return {
        "platform": source.platform,
        "source_id": source.id,
        **said,
        "references": [_shown(reference) for reference in item.references],
        # As in the archive: a date in the future must not head the list.
        "ordered_at": (at if created is None else min(created, at)).isoformat(),
        "cached_at": at.isoformat(),
    }


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_shown(one) for one in value]
    return msgspec.to_builtins(value)
