"""Reply counts: how many replies of a thread a platform reports, and how many are stored.

The counts are kept where a page changes them, so that the worst threads are read along an index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from catchment.model import Change, ItemChange, Page, PageWrite, StoredItem, View
from catchment.store.database import StorePart, Transaction

_COLUMNS = ("item_id", "source_id", "declared_count", "stored_count", "hole_count", "missing_count")


class MissingReplies(View, frozen=True):
    """A thread with fewer stored replies than the platform reports."""

    item_id: int
    source_id: int
    source_name: str
    title: str | None
    declared_count: int
    """Replies, by the platform's own count."""
    stored_count: int
    hole_count: int
    """Numbered replies that the platform does not have (any more)."""
    missing_count: int


class ReplyCounts(StorePart):
    def worst(
        self, limit: int = 30, *, source_id: int | None = None, after: tuple[int, int] | None = None
    ) -> list[MissingReplies]:
        """Returns the threads with missing replies, those with the most first. `after`: missing replies and item of the
        last one shown."""
        of_source, values = ("c.source_id = ? AND", [source_id]) if source_id is not None else ("", [])
        sql = f"""
            SELECT c.item_id, c.source_id, s.name AS source_name, i.title, c.declared_count, c.stored_count,
                   c.hole_count, c.missing_count
              FROM reply_counts c JOIN items i ON i.id = c.item_id JOIN sources s ON s.id = c.source_id
             WHERE {of_source} c.missing_count > 0 AND (c.missing_count, c.item_id) < (?, ?)
             ORDER BY c.missing_count DESC, c.item_id DESC LIMIT ?
        """
        return self._records(MissingReplies, sql, *values, *(after or (2**31, 2**62)), limit)

    def count(self, *, source_id: int | None = None) -> int:
        """Returns how many threads have missing replies."""
        of_source, values = ("source_id = ? AND", [source_id]) if source_id is not None else ("", [])
        return self._number(f"SELECT count(*) FROM reply_counts WHERE {of_source} missing_count > 0", *values)


def write_reply_counts(tx: Transaction, page: Page, write: PageWrite) -> None:
    """Count the replies of the threads that a page changes, as a step of its transaction."""
    if not page.counts_replies:
        return
    threads: defaultdict[str, set[str]] = defaultdict(set)
    for change in write.changes:
        for thread_id in _changed_threads(change):
            threads[change.item.item.scope].add(thread_id)
    marks = write.thread_marks
    if marks is not None and page.floors is not None and (marks.holes or marks.filled):
        threads[page.floors.scope].add(marks.thread.thread_id)
    for scope, thread_ids in threads.items():
        count_replies(tx, page.source.platform, scope, thread_ids)


def _changed_threads(change: ItemChange) -> list[str]:
    """Returns the threads whose counts an item changes: as a new reply, by its own count, or because it moved."""
    item, stored = change.item.item, change.stored
    is_changed = change.change == Change.NEW or not {"reply_count", "thread_id"}.isdisjoint(change.values)
    both = (item.thread_id, stored.thread_id if isinstance(stored, StoredItem) else None)
    return [thread_id for thread_id in dict.fromkeys(both) if thread_id is not None] if is_changed else []


def count_replies(
    tx: Transaction, platform: str, scope: str, thread_ids: Iterable[str], *, is_known: bool = False
) -> None:
    """Count the replies of these threads again. `is_known`: only of those that are counted already."""
    joined = "JOIN reply_counts c ON c.item_id = h.id" if is_known else ""
    rows = tx.select_in(
        f"""
        SELECT h.id, h.source_id, h.reply_count,
               (SELECT count(*) FROM items f WHERE f.platform = h.platform AND f.scope = h.scope
                   AND f.thread_id = h.thread_id AND f.id <> h.id),
               (SELECT count(DISTINCT x.floor_number) FROM threads t JOIN thread_holes x ON x.thread_row_id = t.id
                 WHERE t.item_id = h.id)
          FROM items h {joined}
         WHERE h.platform = ? AND h.scope = ? AND h.thread_id IN {{values}} AND h.is_head
           AND h.reply_count IS NOT NULL
        """,
        sorted(thread_ids),
        before=[platform, scope],
    )
    tx.insert(
        "reply_counts",
        _COLUMNS,
        [(*row, max(0, row[2] - row[3] - row[4])) for row in sorted(rows)],
        f"ON CONFLICT (item_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS[1:])}",
    )
