"""Reads threads: the replies to an item as a tree, what an item replies to, and how much of a thread is stored."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.model import Record
from catchment.store.database import StorePart, Transaction, reads
from catchment.store.item_fields import ItemView
from catchment.store.items.items import key_from, key_of
from catchment.store.items.views import COLUMNS, by_ids, shown

_MOST_BELOW = 300
"""Replies to replies that one page shows; the others are on the page of the reply that they belong to."""
_DEEPEST = 6
_MOST_ABOVE = 20
_MOST_COUNTED = 100_000


class Branch(Record, frozen=True):
    """A reply with the replies to it."""

    item: ItemView
    replies: tuple[Branch, ...] = ()
    hidden_count: int = 0
    """Direct replies that are stored, but not shown here."""


class BranchPage(Record, frozen=True):
    branches: list[Branch]
    next: tuple[int, int] | None
    """Cursor of the next page; None: this was the end."""


class Context(Record, frozen=True):
    """What an item replies to, the outermost first."""

    items: list[ItemView]
    is_complete: bool
    """Whether the first of them opens the thread; otherwise, what is above it is not stored or left out."""


class Replies(StorePart):
    @reads
    def tree(self, tx: Transaction, item: ItemView, limit: int, after: tuple[int, int] | None = None) -> BranchPage:
        """Returns the direct replies to the item, oldest first, each with the replies below it."""
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.parent_id = ? AND (i.ordered_at, i.id) > (?, ?)
             ORDER BY i.ordered_at, i.id LIMIT ?
        """
        start = after or (-(2**63), 0)
        rows = tx.all(sql, item.platform, item.scope, item.external_id, *start, limit + 1)
        return _branch_page(tx, item, shown(tx, rows[:limit]), has_more=len(rows) > limit)

    @reads
    def orphans(self, tx: Transaction, item: ItemView, limit: int, after: tuple[int, int] | None = None) -> BranchPage:
        """Returns the replies of a thread whose parent is not stored, oldest first, each with the replies below it."""
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.id <> ? AND (i.ordered_at, i.id) > (?, ?)
               AND NOT EXISTS (SELECT 1 FROM items p
                                WHERE p.platform = i.platform AND p.scope = i.scope AND p.external_id = i.parent_id)
             ORDER BY i.ordered_at, i.id LIMIT ?
        """
        start = after or (-(2**63), 0)
        rows = tx.all(sql, item.platform, item.scope, item.thread_id, item.id, *start, limit + 1)
        return _branch_page(tx, item, shown(tx, rows[:limit]), has_more=len(rows) > limit)

    @reads
    def floors(self, tx: Transaction, item: ItemView, start: int, limit: int) -> list[ItemView]:
        """Returns the numbered replies of a thread from that number on, in order; not the item that opens it."""
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.floor_number >= ? AND i.id <> ?
             ORDER BY i.floor_number LIMIT ?
        """
        return shown(tx, tx.all(sql, item.platform, item.scope, item.thread_id, start, item.id, limit))

    @reads
    def unnumbered(
        self, tx: Transaction, item: ItemView, limit: int, after: tuple[int, int] | None = None
    ) -> BranchPage:
        """Returns the replies of a thread that have no number, oldest first, as branches without replies."""
        # Both are counted within an index: of most threads, no row has to be read to know that there are none.
        counted = """
            SELECT count(*), (SELECT count(*) FROM items WHERE platform = ? AND scope = ? AND thread_id = ?
                                 AND floor_number IS NOT NULL)
              FROM items WHERE platform = ? AND scope = ? AND thread_id = ?
        """
        thread = (item.platform, item.scope, item.thread_id)
        row = tx.one(counted, *thread, *thread)
        if row is None or row[0] == row[1]:
            return BranchPage([], None)
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.floor_number IS NULL AND i.id <> ?
               AND (i.ordered_at, i.id) > (?, ?)
             ORDER BY i.ordered_at, i.id LIMIT ?
        """
        replies = shown(tx, tx.all(sql, *thread, item.id, *(after or (-(2**63), 0)), limit + 1))
        more = key_from(key_of(replies[limit - 1])) if len(replies) > limit else None
        return BranchPage([Branch(reply) for reply in replies[:limit]], more)

    @reads
    def context(self, tx: Transaction, item: ItemView) -> Context:
        """Returns the items above a reply."""
        above: list[ItemView] = []
        seen, current = {item.external_id}, item
        while current.parent_id is not None and current.parent_id not in seen and len(above) < _MOST_ABOVE:
            seen.add(current.parent_id)
            parent = _by_external_id(tx, current, current.parent_id)
            if parent is None:
                break
            above.insert(0, parent)
            current = parent
        return Context(above, is_complete=current.is_head or current.parent_id is None)

    @reads
    def root(self, tx: Transaction, item: ItemView) -> ItemView | None:
        """Returns the item that opens the thread, if it is stored."""
        if item.thread_id is None:
            return None
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.is_head LIMIT 1
        """
        rows = shown(tx, tx.all(sql, item.platform, item.scope, item.thread_id))
        return rows[0] if rows else None

    @reads
    def stored_count(self, tx: Transaction, item: ItemView) -> int:
        """Returns how many replies of a thread are stored; beyond a bound, that bound."""
        row = tx.one(
            f"""
            SELECT count(*) FROM (SELECT 1 FROM items WHERE platform = ? AND scope = ? AND thread_id = ? AND id <> ?
                                   LIMIT {_MOST_COUNTED}) AS few
            """,
            item.platform,
            item.scope,
            item.thread_id,
            item.id,
        )
        return int(row[0]) if row else 0

    @reads
    def has_pending(self, tx: Transaction, item_id: int) -> bool:
        """Whether requests for more replies are waiting to be sent."""
        return tx.one("SELECT 1 FROM follow_ups WHERE item_id = ? LIMIT 1", item_id) is not None


def _branch_page(tx: Transaction, above: ItemView, items: list[ItemView], *, has_more: bool) -> BranchPage:
    return BranchPage(_grown(tx, above, items), key_from(key_of(items[-1])) if has_more else None)


def _grown(tx: Transaction, above: ItemView, roots: Sequence[ItemView]) -> list[Branch]:
    """Returns the items as branches, with what is stored below them, level by level, up to the limits of a page."""
    if not roots:
        return []
    below: dict[str, list[ItemView]] = {}
    level, room, shown_ids = list(roots), _MOST_BELOW, {above.id, *(item.id for item in roots)}
    for _ in range(_DEEPEST):
        # Two items may claim to answer each other: each is shown once.
        level = [item for item in _replies_to(tx, level, room) if item.id not in shown_ids] if level and room else []
        shown_ids.update(item.id for item in level)
        room -= len(level)
        for item in level:
            below.setdefault(item.parent_id or "", []).append(item)
    everything = [*roots, *(item for items in below.values() for item in items)]
    counts = _reply_counts(tx, everything)

    def branch(item: ItemView) -> Branch:
        replies = tuple(branch(reply) for reply in below.get(item.external_id, ()))
        return Branch(item, replies, counts.get(item.external_id, 0) - len(replies))

    return [branch(item) for item in roots]


def _replies_to(tx: Transaction, items: Sequence[ItemView], limit: int) -> list[ItemView]:
    # Ten thousand may answer one of them: these are compared within the index, and only a few are read.
    sql = f"""
        SELECT ordered_at, id FROM items
         WHERE platform = ? AND scope = ? AND parent_id IN {{values}} ORDER BY ordered_at, id LIMIT {limit}
    """
    first = items[0]
    rows = tx.select_in(sql, [item.external_id for item in items], before=[first.platform, first.scope])
    return by_ids(tx, [item_id for _, item_id in sorted(rows)[:limit]])


def _reply_counts(tx: Transaction, items: Sequence[ItemView]) -> dict[str, int]:
    sql = """
        SELECT parent_id, count(*) FROM items
         WHERE platform = ? AND scope = ? AND parent_id IN {values} GROUP BY parent_id
    """
    first = items[0]
    return dict(tx.select_in(sql, [item.external_id for item in items], before=[first.platform, first.scope]))


def _by_external_id(tx: Transaction, item: ItemView, external_id: str) -> ItemView | None:
    """Returns another item of the same platform and scope."""
    sql = f"SELECT {COLUMNS} FROM items i WHERE i.platform = ? AND i.scope = ? AND i.external_id = ?"
    rows = shown(tx, tx.all(sql, item.platform, item.scope, external_id))
    return rows[0] if rows else None
