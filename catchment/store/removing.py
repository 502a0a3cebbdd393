"""Taking items out of the archive, with everything that hangs on them. Nothing else deletes items."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.store import hot, indexing
from catchment.store.database import Transaction
from catchment.store.schema import metadata

ELSEWHERE = {
    "index_mark": "how far the index is; no item's own",
    "postings": "of the index, which lets go of items",
    "hot_items": "of the hot store, which lets go of whole sets",
}
"""Tables with an item's number that are not cleared by it, and why."""


def hanging() -> list[str]:
    """The tables whose rows belong to one item each, found in the schema: who adds one need not remember this place."""
    return [name for name, table in metadata.tables.items() if "item_id" in table.c and name not in ELSEWHERE]


def remove_items(tx: Transaction, item_ids: Sequence[int]) -> int:
    """Delete these items and all that hangs on them, in this transaction; gives how many there were."""
    ids = [
        row[0] for row in tx.among(f"SELECT id FROM items WHERE id IN {{few}} ORDER BY id {tx.lock_rows()}", item_ids)
    ]
    indexing.remove(tx, ids)
    shown = tx.among("SELECT source_id, count(*) FROM sightings WHERE item_id IN {few} GROUP BY source_id", ids)
    tx.many(
        "UPDATE source_counts SET item_count = item_count - ? WHERE source_id = ?",
        [(count, source_id) for source_id, count in sorted(shown)],
    )
    hot.gone_items(tx, [source_id for source_id, _ in sorted(shown)])
    for table in hanging():
        tx.many(f"DELETE FROM {table} WHERE item_id = ?", [(item_id,) for item_id in ids])
    tx.many("DELETE FROM items WHERE id = ?", [(item_id,) for item_id in ids])
    return len(ids)
