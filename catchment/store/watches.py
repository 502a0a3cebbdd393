"""Watches: their rules, how far each has looked, what they hit.

New items are looked at in the order of their numbers, which is that of commits; an edit does not move them there, so
each is seen once, as it stands then. Edits are looked at along content changes, by (change number, item). A position,
the hits and the events about them move in one transaction, and only from the position that was read: of two that do the
same work one has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Record, Watch
from catchment.store import outbox
from catchment.store.database import Database, Row, Transaction
from catchment.store.rows import decode, iso, to_json, with_iso

KEPT_HITS = 100
"""So many of each watch can be looked at; all are counted."""
_RULE = "name, words, is_any_enough, kinds, source_ids, authors, is_for_edits"
_SHOWN = f"id, {_RULE}, is_active, created_at, from_change_number, hit_count, last_hit_at"
_SEEN = (
    "i.id, i.content_change_number, i.version, i.kind, s.kind, i.source_id, i.author, i.author_id, "
    "i.author_display_name, i.title, i.text, i.url, i.created_at, i.is_deleted"
)

Place = tuple[int, int]
"""A content change and the item within it."""


class Waiting(Record, frozen=True):
    """A watch, and what it has looked at."""

    id: int
    watch: Watch
    last_item_id: int
    """The last one that it has seen as new."""
    last_edit: Place
    """The last content change that it has looked at for edits."""


class Seen(Record, frozen=True):
    """An item, as a watch looks at it."""

    id: int
    change_number: int
    version: int
    kinds: tuple[str, str]
    """Its own and its source's."""
    source_id: int
    source_ids: frozenset[int]
    """All sources that showed it so far."""
    authors: tuple[str, ...]
    """All names by which its author is known."""
    title: str | None
    text: str | None
    url: str | None
    created_at: str
    is_deleted: bool

    @property
    def place(self) -> Place:
        return self.change_number, self.id


class Hit(Record, frozen=True):
    item: Seen
    words: tuple[str, ...]
    """Which of the watch's words were found in it."""
    is_edit: bool


class Watches:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, watch: Watch, now: datetime) -> int:
        """It begins with what comes after it."""

        def deed(tx: Transaction) -> int:
            if tx.one("SELECT 1 FROM watches WHERE name = ?", watch.name):
                raise Conflict(f"there is a watch named {watch.name!r} already", "remove it first")
            number, item_id = _head(tx)
            row = tx.one(
                f"""
                INSERT INTO watches ({_RULE}, is_active, created_at, from_change_number, item_position, edit_position,
                                     edit_position_item_id, hit_count)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING id
                """,
                watch.name,
                to_json(watch.words),
                watch.is_any_enough,
                to_json(watch.kinds),
                to_json(watch.source_ids),
                to_json(watch.authors),
                watch.is_for_edits,
                True,
                micros(now),
                number,
                item_id,
                number,
                item_id,
            )
            assert row is not None
            return int(row[0])

        return self._db.write(deed)

    def page(self) -> list[dict[str, Any]]:
        return [_shown(row) for row in self._db.read(lambda tx: tx.dicts(f"SELECT {_SHOWN} FROM watches ORDER BY id"))]

    def get(self, watch_id: int) -> dict[str, Any]:
        rows = self._db.read(lambda tx: tx.dicts(f"SELECT {_SHOWN} FROM watches WHERE id = ?", watch_id))
        if not rows:
            raise _missing(f"{watch_id}")
        return _shown(rows[0])

    def id_of(self, name: str) -> int:
        row = self._db.read(lambda tx: tx.one("SELECT id FROM watches WHERE name = ?", name))
        if row is None:
            raise _missing(repr(name))
        return int(row[0])

    def pause(self, watch_id: int) -> None:
        if not self._db.write(lambda tx: tx.run("UPDATE watches SET is_active = ? WHERE id = ?", False, watch_id)):
            raise _missing(f"{watch_id}")

    def resume(self, watch_id: int) -> None:
        """Look again, at what comes from now on: what came meanwhile was not wanted. One that is active goes on."""

        def deed(tx: Transaction) -> None:
            row = tx.one("SELECT is_active FROM watches WHERE id = ?", watch_id)
            if row is None:
                raise _missing(f"{watch_id}")
            if not row[0]:
                number, item_id = _head(tx)
                tx.run(
                    """
                    UPDATE watches SET is_active = ?, item_position = ?, edit_position = ?, edit_position_item_id = ?
                     WHERE id = ?
                    """,
                    True,
                    item_id,
                    number,
                    item_id,
                    watch_id,
                )

        self._db.write(deed)

    def remove(self, watch_id: int) -> None:
        def deed(tx: Transaction) -> None:
            tx.run("DELETE FROM watch_hits WHERE watch_id = ?", watch_id)
            if not tx.run("DELETE FROM watches WHERE id = ?", watch_id):
                raise _missing(f"{watch_id}")

        self._db.write(deed)

    def hits(self, watch_id: int, limit: int = 30) -> list[dict[str, Any]]:
        """The latest first. Of an item that was forgotten since, only its number is left."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT h.item_id, h.change_number, h.words, h.is_edit, h.matched_at, i.title, i.url, i.source_id,
                       i.author
                  FROM watch_hits h LEFT JOIN items i ON i.id = h.item_id
                 WHERE h.watch_id = ? ORDER BY h.change_number DESC, h.item_id DESC LIMIT ?
                """,
                watch_id,
                limit,
            )
        )
        return [
            with_iso(row, "matched_at") | {"words": decode(row["words"]), "is_edit": bool(row["is_edit"])}
            for row in rows
        ]

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def waiting_for_new(self) -> list[Waiting]:
        """The active watches that have not seen all items; those that are furthest behind come first."""

        def question(tx: Transaction) -> list[Waiting]:
            _, item_id = _head(tx)
            return _waiting(tx, "item_position < ?", item_id)

        return sorted(self._db.read(question), key=lambda one: (one.last_item_id, one.id))

    def waiting_for_edits(self) -> list[Waiting]:
        """Those of the watches for edits that have not seen all changes."""

        def question(tx: Transaction) -> list[Waiting]:
            return _waiting(tx, "is_for_edits AND (edit_position, edit_position_item_id) < (?, ?)", *_head(tx))

        return sorted(self._db.read(question), key=lambda one: (one.last_edit, one.id))

    def stored_after(self, item_id: int, limit: int) -> list[Seen]:
        """The next items, in the order in which they were stored, as they stand now."""
        return self._db.read(
            lambda tx: _seen(
                tx,
                tx.all(
                    f"""
                    SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
                     WHERE i.id > ? ORDER BY i.id LIMIT ?
                    """,
                    item_id,
                    limit,
                ),
            )
        )

    def changed_after(self, place: Place, limit: int) -> tuple[list[Seen], Place]:
        """The next content changes, in their order, and where whoever has looked at them is."""

        def question(tx: Transaction) -> tuple[list[Seen], Place]:
            # The head first: up to there nothing is left once the rows run out, even if only counters changed.
            head = _head(tx)
            rows = tx.all(
                f"""
                SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
                 WHERE (i.content_change_number, i.id) > (?, ?) ORDER BY i.content_change_number, i.id LIMIT ?
                """,
                *place,
                limit,
            )
            seen = _seen(tx, rows)
            last = seen[-1].place if seen else place
            return seen, last if len(seen) == limit else max(last, head)

        return self._db.read(question)

    def newest(self, limit: int) -> list[Seen]:
        """What changed last, the latest first."""
        return self._db.read(
            lambda tx: _seen(
                tx,
                tx.all(
                    f"""
                    SELECT {_SEEN} FROM items i JOIN sources s ON s.id = i.source_id
                     ORDER BY i.content_change_number DESC, i.id DESC LIMIT ?
                    """,
                    limit,
                ),
            )
        )

    def saw_new(self, looked: Sequence[tuple[Waiting, Sequence[Hit]]], to: int, now: datetime) -> None:
        """These watches have seen all items up to that one, and hit these. All of it or nothing."""

        def deed(tx: Transaction) -> None:
            for waiting, hits in looked:
                is_ours = tx.run(
                    "UPDATE watches SET item_position = ? WHERE id = ? AND is_active AND item_position = ?",
                    to,
                    waiting.id,
                    waiting.last_item_id,
                )
                # Otherwise somebody else has looked, or it was paused or removed meanwhile.
                if is_ours:
                    _note(tx, waiting, hits, micros(now))

        self._db.write(deed)

    def saw_edits(self, looked: Sequence[tuple[Waiting, Sequence[Hit]]], to: Place, now: datetime) -> None:
        """The same for content changes up to there."""

        def deed(tx: Transaction) -> None:
            for waiting, hits in looked:
                is_ours = tx.run(
                    """
                    UPDATE watches SET edit_position = ?, edit_position_item_id = ?
                     WHERE id = ? AND is_active AND edit_position = ? AND edit_position_item_id = ?
                    """,
                    *to,
                    waiting.id,
                    *waiting.last_edit,
                )
                if is_ours:
                    _note(tx, waiting, hits, micros(now))

        self._db.write(deed)


def _waiting(tx: Transaction, where: str, *values: int) -> list[Waiting]:
    rows = tx.all(
        f"""
        SELECT id, item_position, edit_position, edit_position_item_id, {_RULE} FROM watches
         WHERE is_active AND {where}
        """,
        *values,
    )
    return [Waiting(row[0], _watch(*row[4:]), row[1], (row[2], row[3])) for row in rows]


def _note(tx: Transaction, waiting: Waiting, hits: Sequence[Hit], now: int) -> None:
    hits = _untold(tx, waiting, hits)
    if not hits:
        return
    for hit in hits:
        outbox.tell(tx, "watch.matched", _told(waiting, hit), now)
    tx.insert(
        "watch_hits",
        ("watch_id", "change_number", "item_id", "words", "is_edit", "matched_at"),
        [(waiting.id, *hit.item.place, to_json(hit.words), hit.is_edit, now) for hit in hits],
    )
    tx.run("UPDATE watches SET hit_count = hit_count + ?, last_hit_at = ? WHERE id = ?", len(hits), now, waiting.id)
    _forget_hits(tx, waiting.id)


def _untold(tx: Transaction, waiting: Waiting, hits: Sequence[Hit]) -> list[Hit]:
    """Those that were not told of as they stand: an item that was new and edited at once is in both orders."""
    rows = tx.among(
        "SELECT change_number, item_id FROM watch_hits WHERE watch_id = ? AND item_id IN {few}",
        [hit.item.id for hit in hits],
        before=[waiting.id],
    )
    told = {(number, item_id) for number, item_id in rows}
    return [hit for hit in hits if hit.item.place not in told]


def _forget_hits(tx: Transaction, watch_id: int) -> None:
    """Keep the latest, and those that the look for edits has still to come to."""
    tx.run(
        f"""
        DELETE FROM watch_hits WHERE watch_id = ? AND (change_number, item_id) <=
               (SELECT change_number, item_id FROM watch_hits WHERE watch_id = ?
                 ORDER BY change_number DESC, item_id DESC LIMIT 1 OFFSET {KEPT_HITS})
           AND EXISTS (SELECT 1 FROM watches w WHERE w.id = ? AND
                       (w.is_for_edits = ? OR w.edit_position > watch_hits.change_number))
        """,
        watch_id,
        watch_id,
        watch_id,
        False,
    )


def _told(waiting: Waiting, hit: Hit) -> dict[str, Any]:
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
    for item_id, source_id in tx.among(
        "SELECT item_id, source_id FROM sightings WHERE item_id IN {few}", [row[0] for row in rows]
    ):
        shown_by.setdefault(item_id, set()).add(source_id)
    return [_one_seen(row, shown_by.get(row[0], set())) for row in rows]


def _one_seen(row: Row, shown_by: set[int]) -> Seen:
    item_id, number, version, kind, source_kind, source_id, *names, title, text, url, created_at, is_deleted = row
    return Seen(
        id=item_id,
        change_number=number,
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


def _watch(
    name: str, words: str, is_any_enough: bool, kinds: str, source_ids: str, authors: str, is_for_edits: bool
) -> Watch:
    return Watch(
        name,
        tuple(decode(words)),
        bool(is_any_enough),
        tuple(decode(kinds)),
        tuple(decode(source_ids)),
        tuple(decode(authors)),
        bool(is_for_edits),
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return with_iso(row, "created_at", "last_hit_at") | {
        **{name: decode(row[name]) for name in ("words", "kinds", "source_ids", "authors")},
        **{name: bool(row[name]) for name in ("is_any_enough", "is_for_edits", "is_active")},
    }


def _missing(which: str) -> NotFound:
    return NotFound(f"there is no watch {which}", "`catchment watches list` shows them")
