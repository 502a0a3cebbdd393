"""The hot store's part of the database: whether a source's list has changed since its hot set was made, and a home for
hot sets where no Redis holds them.

A hot set is what the list of a source says at its top, ready to be shown. It is made from the archive and can be lost
at any moment. Whatever changes what the list says gives the source another stamp, in the same transaction; a hot set
that was made under another stamp is not read. So a hot answer is the cold one, wherever the set lies and whenever its
writer died.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from catchment import __version__
from catchment.clock import micros
from catchment.model import Record
from catchment.store.database import Database, Transaction
from catchment.store.items import Items
from catchment.store.rows import decode, to_json
from catchment.store.shown import COLUMNS

MOST = 201
"""In a hot set: the largest first page that anybody asks for, and one more, which tells whether the list goes on."""
# Another version of this program may show items otherwise: what it made is not read by this one.
_SHAPE = crc32(f"{__version__} {COLUMNS}".encode())
_LOCK_KEY = 0x686F7473  # "hots": whoever begins to keep a source hot, and those who write meanwhile
_DELETE = "DELETE FROM hot_items WHERE source_id = ? AND is_cached_only = ? AND scope = ? AND external_id = ?"
# So many rows at a time: clearing must never hold the database for long.
_BATCH = 500


class HotSet(Record, frozen=True):
    """Items of one source, as they are shown: the newest that are stored, or what a cache-only crawl saw."""

    source_id: int
    items: list[dict[str, Any]]
    made_at: datetime
    lives: timedelta
    stamp: int = 0

    @property
    def expires_at(self) -> datetime:
        return self.made_at + self.lives


class HotCounts(Record, frozen=True):
    """What became of reads that a hot set could answer, and of the writing of hot sets."""

    hits: int = 0
    misses: int = 0
    failures: int = 0

    def __add__(self, other: HotCounts) -> HotCounts:
        return HotCounts(self.hits + other.hits, self.misses + other.misses, self.failures + other.failures)


class HotSources:
    """Which sources are kept hot, and whether what is hot of them is still true."""

    def __init__(self, database: Database, items: Items) -> None:
        self._db, self._items = database, items

    def stamp(self, source_id: int) -> int | None:
        """What a hot set of this source must have been made under; None: it is not kept hot."""
        row = self._db.read(lambda tx: tx.one("SELECT stamp FROM hot_sources WHERE source_id = ?", source_id))
        return None if row is None or row[0] is None else int(row[0]) ^ _SHAPE

    def made(self, source_id: int, now: datetime, lives: timedelta) -> HotSet | None:
        """The hot set of this source, made from the archive; None: the list changed while it was read."""
        before = self.stamp(source_id)
        if before is None:
            self._db.write(lambda tx: _begin(tx, source_id))
            before = self.stamp(source_id)
        items = self._items.newest(MOST, source_id=source_id)
        if before is None or self.stamp(source_id) != before:
            return None
        return HotSet(source_id, items, now, lives, before)


class HotHome:
    """The database as a home for hot entries."""

    name = "database"

    def __init__(self, database: Database) -> None:
        self._db = database

    def keep(self, made: HotSet) -> None:
        """Put the set in the place of the one that was there."""

        def deed(tx: Transaction) -> None:
            _drop(tx, [made.source_id])
            tx.run(
                "INSERT INTO hot_sets (source_id, stamp, entry_count, expires_at) VALUES (?, ?, ?, ?)",
                made.source_id,
                made.stamp,
                len(made.items),
                micros(made.expires_at),
            )
            _put(tx, made, is_cached_only=False)

        self._db.write(deed)

    def cache(self, seen: HotSet) -> None:
        """Put what was seen beside what was seen before; what is seen again lives longer."""

        def deed(tx: Transaction) -> None:
            keys = [(seen.source_id, True, item["scope"], item["external_id"]) for item in seen.items]
            tx.many(_DELETE, keys)
            _put(tx, seen, is_cached_only=True)

        self._db.write(deed)

    def cached(self, source_id: int, limit: int, now: datetime) -> list[dict[str, Any]]:
        """What is cached of this source and not past its time, newest first."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT item FROM hot_items WHERE source_id = ? AND is_cached_only = ? AND expires_at > ?
                """,
                source_id,
                True,
                micros(now),
            )
        )
        return newest_first([decode(item) for (item,) in rows])[:limit]

    def newest(self, source_id: int, stamp: int, limit: int, now: datetime) -> list[dict[str, Any]] | None:
        """Up to so many, newest first; None: there is no set that can tell."""
        return self._db.read(lambda tx: _newest(tx, source_id, stamp, limit, micros(now)))

    def drop(self, source_ids: Sequence[int]) -> None:
        """All that is hot of these sources."""

        def deed(tx: Transaction) -> None:
            _drop(tx, source_ids)
            tx.many("DELETE FROM hot_items WHERE source_id = ?", [(one,) for one in source_ids])

        self._db.write(deed)

    def count(self, minute: datetime, counts: HotCounts) -> None:
        self._db.write(
            lambda tx: tx.run(
                """
                INSERT INTO hot_counts (minute, hit_count, miss_count, failure_count) VALUES (?, ?, ?, ?)
                ON CONFLICT (minute) DO UPDATE SET
                       hit_count = hot_counts.hit_count + excluded.hit_count,
                       miss_count = hot_counts.miss_count + excluded.miss_count,
                       failure_count = hot_counts.failure_count + excluded.failure_count
                """,
                micros(minute),
                counts.hits,
                counts.misses,
                counts.failures,
            )
        )

    def counted(self, since: datetime, until: datetime) -> HotCounts:
        """All that was counted from the minute of `since` on, and before `until`."""
        row = self._db.read(
            lambda tx: tx.one(
                """
                SELECT coalesce(sum(hit_count), 0), coalesce(sum(miss_count), 0), coalesce(sum(failure_count), 0)
                  FROM hot_counts WHERE minute >= ? AND minute < ?
                """,
                micros(since.replace(second=0, microsecond=0)),
                micros(until),
            )
        )
        assert row is not None
        return HotCounts(*(int(count) for count in row))

    def clear_expired(self, now: datetime, counted_before: datetime) -> int:
        """Take away what is past its time; gives how many entries went."""
        self._db.write(lambda tx: tx.run("DELETE FROM hot_counts WHERE minute < ?", micros(counted_before)))
        self._db.write(lambda tx: tx.run("DELETE FROM hot_sets WHERE expires_at <= ?", micros(now)))
        total = 0
        while gone := self._db.write(lambda tx: _clear(tx, micros(now))):
            total += gone
        return total

    def entry_count(self, now: datetime) -> int:
        """How many entries are hot."""
        row = self._db.read(lambda tx: tx.one("SELECT count(*) FROM hot_items WHERE expires_at > ?", micros(now)))
        return int(row[0]) if row else 0


def newest_first(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what is not stored: there is no number to tell two of the same time apart."""
    return sorted(
        items, key=lambda item: (datetime.fromisoformat(item["ordered_at"]), item["external_id"]), reverse=True
    )


def changed(tx: Transaction, source_ids: Iterable[int]) -> None:
    """The lists of these sources say something else from here on."""
    stamp = _drawn()
    rows = [(stamp, one) for one in sorted(set(source_ids))]
    if rows:
        _hold_off(tx, "pg_advisory_xact_lock_shared")
        tx.many("UPDATE hot_sources SET stamp = ? WHERE source_id = ? AND stamp IS NOT NULL", rows)


def changed_items(tx: Transaction, item_ids: Sequence[int], source_id: int | None = None) -> None:
    """These items are shown otherwise from here on: in the list of this source, and of every one that shows them."""
    showing = tx.among("SELECT DISTINCT source_id FROM sightings WHERE item_id IN {few}", item_ids)
    changed(tx, [*(row[0] for row in showing), *([] if source_id is None else [source_id])])


def gone_items(tx: Transaction, source_ids: Sequence[int]) -> None:
    """Items leave the archive that these sources have shown: what is hot of them goes in the same transaction."""
    _drop(tx, source_ids)
    changed(tx, source_ids)


def _begin(tx: Transaction, source_id: int) -> None:
    _hold_off(tx, "pg_advisory_xact_lock")
    tx.run(
        """
        INSERT INTO hot_sources (source_id, stamp, cached_count) VALUES (?, ?, 0)
        ON CONFLICT (source_id) DO UPDATE SET stamp = excluded.stamp WHERE hot_sources.stamp IS NULL
        """,
        source_id,
        _drawn(),
    )


def _drawn() -> int:
    return secrets.randbits(62)


def _hold_off(tx: Transaction, lock: str) -> None:
    """Who begins to keep a source hot waits for those who found no stamp to change. SQLite has but one writer."""
    if tx.is_postgres:
        tx.run(f"SELECT {lock}(?)", _LOCK_KEY)


def _newest(tx: Transaction, source_id: int, stamp: int, limit: int, now: int) -> list[dict[str, Any]] | None:
    # The mark is looked at by the statement that reads the entries: both were written together.
    rows = tx.all(
        """
        SELECT item FROM hot_items
         WHERE source_id = ? AND is_cached_only = ?
           AND EXISTS (SELECT 1 FROM hot_sets WHERE source_id = ? AND stamp = ? AND expires_at > ?)
         ORDER BY ordered_at DESC, item_id DESC LIMIT ?
        """,
        source_id,
        False,
        source_id,
        stamp,
        now,
        limit,
    )
    if rows:
        return [decode(item) for (item,) in rows]
    empty = tx.one(
        "SELECT 1 FROM hot_sets WHERE source_id = ? AND stamp = ? AND expires_at > ? AND entry_count = 0",
        source_id,
        stamp,
        now,
    )
    return [] if empty else None


def _drop(tx: Transaction, source_ids: Sequence[int]) -> None:
    tx.many("DELETE FROM hot_sets WHERE source_id = ?", [(one,) for one in source_ids])
    tx.many("DELETE FROM hot_items WHERE source_id = ? AND is_cached_only = ?", [(one, False) for one in source_ids])


def _put(tx: Transaction, hot: HotSet, *, is_cached_only: bool) -> None:
    expires = micros(hot.expires_at)
    tx.insert(
        "hot_items",
        ("source_id", "is_cached_only", "scope", "external_id", "ordered_at", "item_id", "expires_at", "item"),
        [
            (
                hot.source_id,
                is_cached_only,
                item["scope"],
                item["external_id"],
                micros(datetime.fromisoformat(item["ordered_at"])),
                item.get("id"),
                expires,
                to_json(item),
            )
            for item in hot.items
        ],
    )


def _clear(tx: Transaction, now: int) -> int:
    rows = tx.all(
        f"""
        SELECT source_id, is_cached_only, scope, external_id FROM hot_items WHERE expires_at <= ? LIMIT {_BATCH}
        """,
        now,
    )
    tx.many(_DELETE, rows)
    return len(rows)
