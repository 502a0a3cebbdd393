"""When items were last answered: kept with the page that tells it, or that brings a reply. Steps of its transaction.

What the platform tells of an item counts, whichever way it moves. Where it tells nothing, a reply that is stored counts
for the head of its thread. Nothing is ever looked for among the replies that are held, but when their head comes after
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from catchment.model import Item, Judged
from catchment.store.database import Row, Transaction
from catchment.store.facets import kind_facet, platform_facet
from catchment.store.rows import to_micros

ALL = "all"
"""The list of everything that has been answered."""

Thread = tuple[str, str]
"""What tells threads of one platform apart: scope and thread id."""


def source_list(source_id: int) -> str:
    """The list of what a source showed, among those by last reply; facets have theirs by their own names."""
    return f"source:{source_id}"


def newest_replies(new: Sequence[Judged], now: int) -> dict[Thread, int]:
    """When each thread was last answered by one of these items; what was taken away before we saw it is no reply."""
    found: dict[Thread, int] = {}
    for item in (one.item.item for one in new):
        if item.thread_id is not None and not item.is_head and not item.is_deleted:
            at, thread = to_micros(item.created_at), (item.scope, item.thread_id)
            # A date in the future must not head the list for ever.
            ordered = now if at is None else min(at, now)
            found[thread] = max(found.get(thread, ordered), ordered)
    return found


def locked_heads(tx: Transaction, platform: str, threads: Collection[Thread]) -> dict[Thread, int]:
    """The heads of these threads that are held; ours until the transaction ends."""
    found: dict[Thread, int] = {}
    for scope in sorted({scope for scope, _ in threads}):
        rows = tx.among(
            f"""
            SELECT id, thread_id FROM items
             WHERE is_head AND platform = ? AND scope = ? AND thread_id IN {{few}} ORDER BY id {tx.lock_rows()}
            """,
            sorted(thread_id for of, thread_id in threads if of == scope),
            before=[platform, scope],
        )
        found |= {(scope, thread_id): item_id for item_id, thread_id in rows}
    return found


def held_replies(tx: Transaction, platform: str, heads: Sequence[Item]) -> dict[Thread, int]:
    """When each of these was last answered, by the replies that are held. For heads that come after their replies."""
    threads = [(item.scope, item.thread_id) for item in heads if item.thread_id is not None and item.reply_count != 0]
    found: dict[Thread, int] = {}
    for scope in sorted({scope for scope, _ in threads}):
        rows = tx.among(
            """
            SELECT thread_id, max(ordered_at) FROM items
             WHERE platform = ? AND scope = ? AND thread_id IN {few} AND NOT is_head AND NOT is_deleted
             GROUP BY thread_id
            """,
            [thread_id for of, thread_id in threads if of == scope],
            before=[platform, scope],
        )
        found |= {(scope, thread_id): at for thread_id, at in rows}
    return found


def raise_heads(tx: Transaction, answered: Mapping[int, int], number: int) -> None:
    """These items were answered at these times, if nothing newer is known."""
    tx.many(
        """
        UPDATE items SET last_reply_at = ?, change_number = ?
         WHERE id = ? AND (last_reply_at IS NULL OR last_reply_at < ?)
        """,
        [(at, number, item_id, at) for item_id, at in sorted(answered.items())],
    )


def relist(tx: Transaction, item_ids: Collection[int]) -> None:
    """Each of these in the lists by last reply, where it belongs by now."""
    ids = sorted(item_ids)
    tx.many("DELETE FROM replied WHERE item_id = ?", [(item_id,) for item_id in ids])
    rows = tx.among(
        """
        SELECT i.id, i.last_reply_at, i.platform, i.kind, s.kind FROM items i JOIN sources s ON s.id = i.source_id
         WHERE i.id IN {few} AND i.last_reply_at IS NOT NULL
        """,
        ids,
    )
    showing: dict[int, list[int]] = {}
    for item_id, source_id in tx.among("SELECT item_id, source_id FROM sightings WHERE item_id IN {few}", ids):
        showing.setdefault(item_id, []).append(source_id)
    listed = sorted((name, row[1], row[0]) for row in rows for name in _lists(row, showing.get(row[0], ())))
    tx.insert("replied", ("list", "last_reply_at", "item_id"), listed)


def _lists(row: Row, source_ids: Sequence[int]) -> Iterator[str]:
    _, _, platform, kind, source_kind = row
    yield ALL
    yield platform_facet(platform)
    yield from map(kind_facet, dict.fromkeys((kind, source_kind)))
    yield from map(source_list, source_ids)
