"""Forgetting an item or an author for good: all that is held leaves, a record stays, and it is not collected again.

The record holds no content, and identities only as keyed hashes. The key lies in the same database: it keeps names from
being read, not from being tried.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import NotFound
from catchment.model import Event, Record, RefinedItem
from catchment.store import hot
from catchment.store.database import Database, Row, Transaction
from catchment.store.removing import remove_items
from catchment.store.rows import decode, to_json, with_iso

_KEY = "forgetting_key"
_LOCK_KEY = 0x666F7267  # "forg"
_BATCH = 200
# Authors are looked for row by row: so many items a read.
_WINDOW = 5_000

Name = tuple[str, ...]
"""What somebody or something is known by: ("item", platform, scope, id) or ("author", platform, name)."""


class Forget(Record, frozen=True):
    """What is to be forgotten, why, and who wants it."""

    what: str
    """item or author"""
    platform: str
    by: str
    reason: str | None = None
    item_id: int | None = None
    author: str | None = None


class Forgetting:
    def __init__(self, database: Database) -> None:
        self._db = database

    def records(self, limit: int = 100, before: int | None = None) -> list[dict[str, Any]]:
        """What was forgotten, the latest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT id, what, platform, forgotten_at, forgotten_by, reason, item_count, revision_count,
                       answer_count, event_count, is_finished
                  FROM forgotten WHERE id < ? ORDER BY id DESC LIMIT ?
                """,
                before or 2**62,
                limit,
            )
        )
        return [with_iso(row, "forgotten_at") | {"is_finished": bool(row["is_finished"])} for row in rows]

    def platform_of(self, item_id: int) -> str:
        row = self._db.read(lambda tx: tx.one("SELECT platform FROM items WHERE id = ?", item_id))
        if row is None:
            raise NotFound(f"there is no item {item_id}", "`catchment items` lists what is stored")
        return str(row[0])

    def followed_on(self, platform: str) -> tuple[str, ...]:
        """The platform, if something was ever followed on it: its package may be gone, what it showed is not."""
        row = self._db.read(lambda tx: tx.one("SELECT platform FROM sources WHERE platform = ? LIMIT 1", platform))
        return (str(row[0]),) if row else ()

    def count(self, wanted: Forget) -> int:
        """How many items it is about."""
        return sum(len(ids) for ids in self._found(wanted))

    def forget(self, wanted: Forget, now: datetime, seen: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """All of it, batch by batch; gives the record. Begun again after a kill, it finishes.

        The marks are written first: from then on it is not collected, whatever happens to the rest.
        """
        record_id = self._db.write(lambda tx: _begun(tx, wanted, micros(now)))
        found = list(self._found(wanted))
        # Before the items: once these are gone, nobody knows any more which events told of them.
        self._forget_events(record_id, {item_id for ids in found for item_id in ids})
        gone = 0
        for ids in found:
            gone += self._db.write(lambda tx, ids=ids: _forget_items(tx, record_id, ids))  # type: ignore[misc]
            seen(gone)
        if wanted.author is not None:
            self._forget_quotes(wanted.platform, wanted.author)
        self._db.write(lambda tx: tx.run("UPDATE forgotten SET is_finished = ? WHERE id = ?", True, record_id))
        (record,) = self.records(1, record_id + 1)
        return record

    def _found(self, wanted: Forget) -> Iterator[list[int]]:
        """The items in question, a few at a time."""
        if wanted.item_id is not None:
            yield [wanted.item_id]
            return
        assert wanted.author is not None
        for rows in self._windows(
            "SELECT id, author, author_id FROM items WHERE id > ? AND id <= ? AND platform = ?", wanted.platform
        ):
            ids = [row[0] for row in rows if _is_named(wanted.author, *row[1:])]
            yield from (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))

    def _forget_events(self, record_id: int, about: set[int]) -> None:
        """Events that tell of one of the items by its number."""
        sql = "SELECT id, body FROM outbox WHERE id > ? AND id <= ? AND body LIKE '%\"item%'"
        for rows in self._windows(sql, last="SELECT max(id) FROM outbox"):
            told = [(event_id,) for event_id, body in rows if _item_told(decode(body)) in about]
            if told:
                self._db.write(lambda tx, told=told: _forget_told(tx, record_id, told))  # type: ignore[misc]

    def _windows(
        self, sql: str, *values: Any, last: str = "SELECT last_item_id FROM ledger WHERE id = 1"
    ) -> Iterator[list[Row]]:
        """What `sql` finds between two numbers, up to the `last` one, in reads of so many numbers each."""
        row = self._db.read(lambda tx: tx.one(last))
        for start in range(0, int(row[0] or 0) if row else 0, _WINDOW):
            yield self._db.read(lambda tx, start=start: tx.all(sql, start, start + _WINDOW, *values))  # type: ignore[misc]

    def _forget_quotes(self, platform: str, author: str) -> None:
        """What others quoted of the author: that something is quoted stays, who and what does not."""
        sql = """
            SELECT r.item_id, r.position, r.author FROM item_references r JOIN items i ON i.id = r.item_id
             WHERE r.item_id > ? AND r.item_id <= ? AND i.platform = ? AND r.author IS NOT NULL
            """
        for rows in self._windows(sql, platform):
            keys = [(item_id, position) for item_id, position, name in rows if _is_named(author, name)]
            self._db.write(lambda tx, keys=keys: _unquote(tx, keys))  # type: ignore[misc]


# ── when it comes again ───────────────────────────────────────────────────────────────────────────────────────────


def forgotten_among(tx: Transaction, platform: str, strangers: Sequence[RefinedItem]) -> set[tuple[str, str]]:
    """Which of these, by scope and id, must not be stored. While nothing is forgotten: one look at one row."""
    items = [one.item for one in strangers]
    return forgotten_names(
        tx, platform, [(item.scope, item.external_id, item.author, item.author_id) for item in items]
    )


def forgotten_names(
    tx: Transaction, platform: str, named: Sequence[tuple[str, str, str | None, str | None]]
) -> set[tuple[str, str]]:
    """The same, of scope, id, and the author's name and id."""
    if not named:
        return set()
    _hold_off(tx, "pg_advisory_xact_lock_shared")
    key = _key(tx)
    if key is None:
        return set()
    by_mark: dict[bytes, set[tuple[str, str]]] = {}
    for scope, external_id, *authors in named:
        for mark in _marks(key, platform, scope, external_id, *authors):
            by_mark.setdefault(mark, set()).add((scope, external_id))
    found = tx.among("SELECT mark FROM forgotten_marks WHERE mark IN {few}", list(by_mark))
    return {which for row in found for which in by_mark[bytes(row[0])]}


def _marks(key: bytes, platform: str, scope: str, external_id: str, *authors: str | None) -> Iterator[bytes]:
    yield _mark(key, ("item", platform, scope, external_id))
    for name in authors:
        if name:
            yield _mark(key, ("author", platform, name.casefold()))


def _mark(key: bytes, name: Name) -> bytes:
    return hmac.digest(key, "\x1f".join(name).encode("utf-8", "surrogatepass"), hashlib.sha256)


def _key(tx: Transaction) -> bytes | None:
    row = tx.one("SELECT value FROM settings WHERE name = ?", _KEY)
    return None if row is None else bytes.fromhex(decode(row[0]))


def _is_named(author: str, *names: str | None) -> bool:
    return any(name is not None and name.casefold() == author.casefold() for name in names)


# ── the deed ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _hold_off(tx: Transaction, lock: str) -> None:
    """Whoever writes a page and whoever begins to forget wait for each other: a page that does not know yet who is to
    be forgotten is committed before anybody looks for what there is of him. SQLite has but one writer."""
    if tx.is_postgres:
        tx.run(f"SELECT {lock}(?)", _LOCK_KEY)


def _begun(tx: Transaction, wanted: Forget, now: int) -> int:
    _hold_off(tx, "pg_advisory_xact_lock")
    key = _key(tx)
    if key is None:
        key = secrets.token_bytes(32)
        tx.run("INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)", _KEY, to_json(key.hex()), now)
    row = tx.one(
        """
        INSERT INTO forgotten (what, platform, forgotten_at, forgotten_by, reason, item_count, revision_count,
                               answer_count, event_count, is_finished)
        VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, ?) RETURNING id
        """,
        wanted.what,
        wanted.platform,
        now,
        wanted.by,
        wanted.reason,
        False,
    )
    assert row is not None
    if wanted.author is not None:
        _remember(tx, row[0], [_mark(key, ("author", wanted.platform, wanted.author.casefold()))])
    return int(row[0])


def _remember(tx: Transaction, record_id: int, marks: Iterable[bytes]) -> None:
    rows = [(mark, record_id) for mark in sorted(set(marks))]
    tx.insert("forgotten_marks", ("mark", "forgotten_id"), rows, "ON CONFLICT DO NOTHING")


def _forget_items(tx: Transaction, record_id: int, ids: Sequence[int]) -> int:
    """The items, and whatever else holds something of them; all in one transaction."""
    key = _key(tx)
    assert key is not None
    names = [
        *tx.among("SELECT platform, scope, external_id FROM items WHERE id IN {few}", ids),
        *tx.among("SELECT platform, scope, external_id FROM aliases WHERE item_id IN {few}", ids),
    ]
    _remember(tx, record_id, [_mark(key, ("item", *name)) for name in names])
    counts = {
        "revision_count": _count(tx, "SELECT count(*) FROM revisions WHERE item_id IN {few}", ids),
        "answer_count": _forget_answers(tx, ids),
    }
    _unquote(tx, _quotes_of(tx, names))
    counts["item_count"] = remove_items(tx, ids)
    added = ", ".join(f"{name} = {name} + ?" for name in counts)
    tx.run(f"UPDATE forgotten SET {added} WHERE id = ?", *counts.values(), record_id)
    return counts["item_count"]


def _count(tx: Transaction, sql: str, ids: Sequence[int]) -> int:
    return sum(row[0] for row in tx.among(sql, ids))


def _forget_answers(tx: Transaction, ids: Sequence[int]) -> int:
    """Every kept answer of the sources that showed them: which of them show what, only a reader could tell."""
    sources = {row[0] for row in tx.among("SELECT source_id FROM sightings WHERE item_id IN {few}", ids)}
    return sum(tx.run("DELETE FROM raw_answers WHERE source_id = ?", source_id) for source_id in sorted(sources))


def _forget_told(tx: Transaction, record_id: int, events: Sequence[tuple[int]]) -> None:
    # Its number stays: a hole would look like an event that nobody took in time.
    tx.many(f"UPDATE outbox SET event = '{Event.FORGOTTEN}', body = '{{}}' WHERE id = ?", events)
    tx.run("UPDATE forgotten SET event_count = event_count + ? WHERE id = ?", len(events), record_id)


def _item_told(body: dict[str, Any]) -> object:
    item = body.get("item")
    return item.get("id") if isinstance(item, dict) else body.get("item_id")


def _quotes_of(tx: Transaction, names: Sequence[Row]) -> list[tuple[int, int]]:
    """Where others quote these items."""
    platforms = {platform for platform, _, _ in names}
    rows = tx.among(
        """
        SELECT r.item_id, r.position, i.platform FROM item_references r JOIN items i ON i.id = r.item_id
         WHERE r.external_id IN {few}
        """,
        sorted({external_id for _, _, external_id in names}),
    )
    return [(item_id, position) for item_id, position, platform in rows if platform in platforms]


def _unquote(tx: Transaction, keys: Sequence[tuple[int, int]]) -> None:
    tx.many("UPDATE item_references SET author = NULL, text = NULL WHERE item_id = ? AND position = ?", keys)
    hot.changed_items(tx, [item_id for item_id, _ in keys])
