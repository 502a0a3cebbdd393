"""Watches: their rules, positions and hits.

New items are matched in the order of their ids, which is that of commits; an edit does not move them there, so each is
seen once, in its current state. Edits are matched along content changes, by (change number, item). A position, the hits
and their events are written in one transaction, and only from the position that was read: of two processes that do the
same work one has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Record, View, Watch
from catchment.store.database import Row, StorePart, Transaction, reads, writes
from catchment.store.delivery import events
from catchment.store.item_fields import iso, to_json
from catchment.store.row_mappers import columns, values

KEPT_HITS = 100
"""How many hits of each watch are kept; all are counted."""
_RULE = ", ".join(columns(Watch))
_SEEN = (
    "i.id, i.content_change_number, i.version, i.kind, s.kind, i.source_id, i.author, i.author_id, "
    "i.author_display_name, i.title, i.text, i.url, i.created_at, i.is_deleted"
)

Place = tuple[int, int]
"""A position: a content change and the item within it."""


class WatchView(View, frozen=True):
    """A watch and how often it matched."""

    id: int
    name: str
    words: tuple[str, ...]
    is_any_enough: bool
    kinds: tuple[str, ...]
    source_ids: tuple[int, ...]
    authors: tuple[str, ...]
    is_for_edits: bool
    is_active: bool
    created_at: datetime
    from_change_number: int
    """It looks at items that changed after this."""
    hit_count: int
    last_hit_at: datetime | None


class WatchHitView(View, frozen=True):
    """An item that matched. Of an item that was deleted since, only its id is left."""

    item_id: int
    change_number: int
    words: tuple[str, ...]
    """Which of the watch's words were found."""
    is_edit: bool
    matched_at: datetime
    title: str | None
    url: str | None
    source_id: int | None
    author: str | None


_SHOWN = ", ".join(columns(WatchView))


class PendingWatch(Record, frozen=True):
    """A watch and its positions."""

    id: int
    watch: Watch
    last_item_id: int
    """The last item that it has seen as new."""
    last_edit: Place
    """The last content change that it has checked for edits."""


class Seen(Record, frozen=True):
    """An item, as a watch matches it."""

    id: int
    change_number: int
    version: int
    kinds: tuple[str, str]
    """Its own kind and its source's."""
    source_id: int
    source_ids: frozenset[int]
    """All sources that showed it so far."""
    authors: tuple[str, ...]
    """All names of its author."""
    title: str | None
    text: str | None
    url: str | None
    created_at: str
    is_deleted: bool

    @property
    def place(self) -> Place:
        return self.change_number, self.id


class StoredWatchHit(Record, frozen=True):
    item: Seen
    words: tuple[str, ...]
    """Which of the watch's words were found in it."""
    is_edit: bool


class Watches(StorePart):
    @writes
    def add(self, tx: Transaction, watch: Watch, now: datetime) -> int:
        """Add a watch; it begins with items stored after it. Raises Conflict."""
        if tx.one("SELECT 1 FROM watches WHERE name = ?", watch.name):
            helps = "enter another name, or remove that one first"
            raise Conflict("there is already a watch named {name!r}", helps, name=watch.name)
        change_number, item_id = _head(tx)
        sql = f"""
            INSERT INTO watches ({_RULE}, is_active, created_at, from_change_number, item_position, edit_position,
                                 edit_position_item_id, hit_count)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING id
        """
        return tx.number(sql, *values(watch), True, micros(now), change_number, item_id, change_number, item_id)

    def page(self) -> list[WatchView]:
        return self._records(WatchView, f"SELECT {_SHOWN} FROM watches ORDER BY id")

    def get(self, watch_id: int) -> WatchView:
        watch = self._record(WatchView, f"SELECT {_SHOWN} FROM watches WHERE id = ?", watch_id)
        if watch is None:
            raise _missing(f"{watch_id}")
        return watch

    def id_of(self, name: str) -> int:
        row = self._one("SELECT id FROM watches WHERE name = ?", name)
        if row is None:
            raise _missing(repr(name))
        return int(row[0])

    def pause(self, watch_id: int) -> None:
        if not self._run("UPDATE watches SET is_active = ? WHERE id = ?", False, watch_id):
            raise _missing(f"{watch_id}")

    @writes
    def resume(self, tx: Transaction, watch_id: int) -> None:
        """Resume with items stored from now on; those of the pause are skipped. An active watch is not changed. Raises
        NotFound."""
        row = tx.one("SELECT is_active FROM watches WHERE id = ?", watch_id)
        if row is None:
            raise _missing(f"{watch_id}")
        if not row[0]:
            change_number, item_id = _head(tx)
            sql = """
                UPDATE watches SET is_active = ?, item_position = ?, edit_position = ?, edit_position_item_id = ?
                 WHERE id = ?
            """
            tx.run(sql, True, item_id, change_number, item_id, watch_id)

    @writes
    def remove(self, tx: Transaction, watch_id: int) -> None:
        tx.run("DELETE FROM watch_hits WHERE watch_id = ?", watch_id)
        if not tx.run("DELETE FROM watches WHERE id = ?", watch_id):
            raise _missing(f"{watch_id}")

    def hits(self, watch_id: int, limit: int = 30) -> list[WatchHitView]:
        """Returns the hits, the latest first."""
        sql = """
            SELECT h.item_id, h.change_number, h.words, h.is_edit, h.matched_at, i.title, i.url, i.source_id,
                   i.author
              FROM watch_hits h LEFT JOIN items i ON i.id = h.item_id
             WHERE h.watch_id = ? ORDER BY h.change_number DESC, h.item_id DESC LIMIT ?
        """
        return self._records(WatchHitView, sql, watch_id, limit)

    @reads
    def waiting_for_new(self, tx: Transaction) -> list[PendingWatch]:
        """Returns the active watches that have not seen all items, the furthest behind first."""
        pending = _waiting(tx, "item_position < ?", _head(tx)[1])
        return sorted(pending, key=lambda watch: (watch.last_item_id, watch.id))

    @reads
    def waiting_for_edits(self, tx: Transaction) -> list[PendingWatch]:
        """Returns the watches for edits that have not seen all changes."""
        pending = _waiting(tx, "is_for_edits AND (edit_position, edit_position_item_id) < (?, ?)", *_head(tx))
        return sorted(pending, key=lambda watch: (watch.last_edit, watch.id))

    def stored_after(self, item_id: int, limit: int) -> list[Seen]:
        """Returns the next items, in the order of storing, in their current state."""
        sql = f"""
            SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
             WHERE i.id > ? ORDER BY i.id LIMIT ?
        """
        return self._db.read(lambda tx: _seen(tx, tx.all(sql, item_id, limit)))

    @reads
    def changed_after(self, tx: Transaction, place: Place, limit: int) -> tuple[list[Seen], Place]:
        """Returns the next content changes, in order, and the position after them."""
        # The head first: up to there nothing is left once the rows run out, even if only counters changed.
        head = _head(tx)
        sql = f"""
            SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
             WHERE (i.content_change_number, i.id) > (?, ?) ORDER BY i.content_change_number, i.id LIMIT ?
        """
        rows = tx.all(sql, *place, limit)
        seen = _seen(tx, rows)
        last = seen[-1].place if seen else place
        return seen, last if len(seen) == limit else max(last, head)

    def newest(self, limit: int) -> list[Seen]:
        """Returns the latest changed items, the latest first."""
        sql = f"""
            SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
             ORDER BY i.content_change_number DESC, i.id DESC LIMIT ?
        """
        return self._db.read(lambda tx: _seen(tx, tx.all(sql, limit)))

    @writes
    def saw_new(
        self, tx: Transaction, looked: Sequence[tuple[PendingWatch, Sequence[StoredWatchHit]]], to: int, now: datetime
    ) -> None:
        """Move these watches to that item and record their hits. All or nothing."""
        for waiting, hits in looked:
            sql = "UPDATE watches SET item_position = ? WHERE id = ? AND is_active AND item_position = ?"
            is_ours = tx.run(sql, to, waiting.id, waiting.last_item_id)
            # Otherwise another process has matched these, or the watch was paused or removed meanwhile.
            if is_ours:
                _note(tx, waiting, hits, micros(now))

    @writes
    def saw_edits(
        self, tx: Transaction, looked: Sequence[tuple[PendingWatch, Sequence[StoredWatchHit]]], to: Place, now: datetime
    ) -> None:
        """The same for content changes up to that position."""
        for waiting, hits in looked:
            sql = """
                UPDATE watches SET edit_position = ?, edit_position_item_id = ?
                 WHERE id = ? AND is_active AND edit_position = ? AND edit_position_item_id = ?
            """
            is_ours = tx.run(sql, *to, waiting.id, *waiting.last_edit)
            if is_ours:
                _note(tx, waiting, hits, micros(now))


def _waiting(tx: Transaction, where: str, *values: int) -> list[PendingWatch]:
    sql = f"""
        SELECT id, item_position, edit_position, edit_position_item_id, {_RULE} FROM watches
         WHERE is_active AND {where}
    """
    rows = tx.all(sql, *values)
    watches = tx.as_records(Watch, rows)
    return [PendingWatch(row[0], watch, row[1], (row[2], row[3])) for row, watch in zip(rows, watches, strict=True)]


def _note(tx: Transaction, waiting: PendingWatch, hits: Sequence[StoredWatchHit], now: int) -> None:
    sql = "SELECT change_number, item_id FROM watch_hits WHERE watch_id = ? AND item_id IN {values}"
    rows = tx.select_in(sql, [hit.item.id for hit in hits], before=[waiting.id])
    # An item that was new and edited at once is in both orders.
    hits = [hit for hit in hits if hit.item.place not in {*rows}]
    if not hits:
        return
    for hit in hits:
        events.tell(tx, "watch.matched", _told(waiting, hit), now)
    tx.insert(
        "watch_hits",
        ("watch_id", "change_number", "item_id", "words", "is_edit", "matched_at"),
        [(waiting.id, *hit.item.place, to_json(hit.words), hit.is_edit, now) for hit in hits],
    )
    tx.run("UPDATE watches SET hit_count = hit_count + ?, last_hit_at = ? WHERE id = ?", len(hits), now, waiting.id)
    # The latest hits are kept, and those that the check for edits has yet to reach.
    sql = f"""
        DELETE FROM watch_hits WHERE watch_id = ? AND (change_number, item_id) <=
               (SELECT change_number, item_id FROM watch_hits WHERE watch_id = ?
                 ORDER BY change_number DESC, item_id DESC LIMIT 1 OFFSET {KEPT_HITS})
           AND EXISTS (SELECT 1 FROM watches w WHERE w.id = ? AND
                       (w.is_for_edits = ? OR w.edit_position > watch_hits.change_number))
    """
    tx.run(sql, waiting.id, waiting.id, waiting.id, False)


def _told(waiting: PendingWatch, hit: StoredWatchHit) -> dict[str, Any]:
    item = hit.item
    return {
        "watch_id": waiting.id,
        "watch": waiting.watch.name,
        "words": hit.words,
        "is_edit": hit.is_edit,
        "item": {
            "id": item.id,
            "title": item.title,
            "url": item.url,
            "author": item.authors[0] if item.authors else None,
            "source_id": item.source_id,
            "created_at": item.created_at,
            "change_number": item.change_number,
        },
    }


def _head(tx: Transaction) -> Place:
    row = tx.one("SELECT change_number, last_item_id FROM ledger WHERE id = 1")
    assert row is not None
    return row[0], row[1]


def _seen(tx: Transaction, rows: Sequence[Row]) -> list[Seen]:
    shown_by: dict[int, set[int]] = {}
    for item_id, source_id in tx.select_in(
        "SELECT item_id, source_id FROM sightings WHERE item_id IN {values}", [row[0] for row in rows]
    ):
        shown_by.setdefault(item_id, set()).add(source_id)
    return [_one_seen(row, shown_by.get(row[0], set())) for row in rows]


def _one_seen(row: Row, shown_by: set[int]) -> Seen:
    item_id, change, version, kind, source_kind, source_id, *names, title, text, url, created_at, is_deleted = row
    return Seen(
        id=item_id,
        change_number=change,
        version=version,
        kinds=(kind, source_kind),
        source_id=source_id,
        source_ids=frozenset(shown_by | {source_id}),
        authors=tuple(name for name in names if name),
        title=title,
        text=text,
        url=url,
        created_at=iso(created_at) or "",
        is_deleted=bool(is_deleted),
    )


def _missing(which: str) -> NotFound:
    return NotFound("there is no watch {id}", "`catchment watches list` shows them", id=which)
