"""Cache tables: the stamp that invalidates a source's cached set, counts of reads, and a backend without Redis.

A cached set is the top of a source's list, ready to be shown. It is built from the archive and can be lost at any
moment. Every change of the list gives the source another stamp, in the same transaction; a set built under another
stamp is not read. So a cached answer equals the archive's, wherever the set is stored and whenever its writer died.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict
from zlib import crc32

from catchment import __version__
from catchment.clock import micros
from catchment.model import Lease, Record, Source, VisitResult
from catchment.store import leases
from catchment.store.database import Database, StorePart, Transaction, writes
from catchment.store.item_fields import ItemView, to_moment
from catchment.store.items.deletion import forgotten_names
from catchment.store.items.items import Items
from catchment.store.items.views import COLUMNS
from catchment.store.sources.metrics import count_attempts
from catchment.store.sources.runs import note_results

MOST = 201
"""Size of a cached set: the largest first page that clients request, plus one, which shows whether the list
continues."""
# Another version of this program may show items differently: its sets are not read by this one.
_SHAPE = crc32(f"{__version__} {COLUMNS}".encode())
_LOCK_KEY = 0x686F7473  # "hots": starting to cache a source, against concurrent writers


class CacheCounts(Record, frozen=True):
    """Hits and misses of reads that the cache could answer, and failed writes."""

    hits: int = 0
    misses: int = 0
    failures: int = 0

    def __add__(self, other: CacheCounts) -> CacheCounts:
        return CacheCounts(self.hits + other.hits, self.misses + other.misses, self.failures + other.failures)


class CacheKey(NamedTuple):
    """Names a cached set: the newest stored items of a source, or what cache-only crawls saw of it."""

    source_id: int
    is_cached_only: bool


class CachedSet(NamedTuple):
    stamp: int
    """The stamp of the source when the set was read from the archive; 0: it was not."""
    entries: list[str]
    """One JSON document each."""


class CacheTable(StorePart):
    """Database backend of the cache. See `catchment.cache.Backend`."""

    name = "database"

    def put(self, key: CacheKey, made: CachedSet, now: datetime, expires_at: datetime) -> None:
        sql = """
            INSERT INTO hot_sets (source_id, is_cached_only, stamp, entry_count, expires_at, entries)
            VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (source_id, is_cached_only) DO UPDATE SET stamp = excluded.stamp,
                   entry_count = excluded.entry_count, expires_at = excluded.expires_at, entries = excluded.entries
        """
        self._run(sql, *key, made.stamp, len(made.entries), micros(expires_at), "\n".join(made.entries))

    def get(self, key: CacheKey, now: datetime) -> CachedSet | None:
        sql = "SELECT stamp, entries FROM hot_sets WHERE source_id = ? AND is_cached_only = ? AND expires_at > ?"
        row = self._one(sql, *key, micros(now))
        return CachedSet(row[0], row[1].split("\n") if row[1] else []) if row else None

    def drop(self, source_ids: Sequence[int]) -> None:
        self._db.write(lambda tx: tx.many("DELETE FROM hot_sets WHERE source_id = ?", [(id_,) for id_ in source_ids]))

    def clear_expired(self, now: datetime) -> int:
        rows = self._db.write(
            lambda tx: tx.all("DELETE FROM hot_sets WHERE expires_at <= ? RETURNING entry_count", micros(now))
        )
        return sum(count for (count,) in rows)

    def entry_count(self, now: datetime) -> int:
        row = self._one("SELECT sum(entry_count) FROM hot_sets WHERE expires_at > ?", micros(now))
        return int(row[0] or 0) if row else 0


def changed(tx: Transaction, source_ids: Iterable[int]) -> None:
    """Invalidate the cached lists of these sources."""
    stamp = _drawn()
    rows = [(stamp, id_) for id_ in sorted(set(source_ids))]
    if rows:
        _hold_off(tx, "pg_advisory_xact_lock_shared")
        tx.many("UPDATE hot_sources SET stamp = ? WHERE source_id = ? AND stamp IS NOT NULL", rows)


def changed_items(tx: Transaction, item_ids: Sequence[int], source_ids: Sequence[int] = ()) -> None:
    """Invalidate the lists that show these items: those of these sources, and of every source that shows them."""
    showing = tx.select_in("SELECT DISTINCT source_id FROM sightings WHERE item_id IN {values}", item_ids)
    changed(tx, [*(row[0] for row in showing), *source_ids])


def gone_items(tx: Transaction, source_ids: Sequence[int]) -> None:
    """Drop the cached sets of these sources, in the same transaction that deletes their items."""
    rows = [(source_id, False) for source_id in source_ids]
    tx.many("DELETE FROM hot_sets WHERE source_id = ? AND is_cached_only = ?", rows)
    changed(tx, source_ids)


def _begin(tx: Transaction, source_id: int) -> None:
    _hold_off(tx, "pg_advisory_xact_lock")
    sql = """
        INSERT INTO hot_sources (source_id, stamp, cached_count) VALUES (?, ?, 0)
        ON CONFLICT (source_id) DO UPDATE SET stamp = excluded.stamp WHERE hot_sources.stamp IS NULL
    """
    tx.run(sql, source_id, _drawn())


def _drawn() -> int:
    return secrets.randbits(62)


def _hold_off(tx: Transaction, lock: str) -> None:
    """Makes a transaction that starts to cache a source wait for those that found no stamp to change. SQLite has only
    one writer."""
    if tx.is_postgres:
        tx.run(f"SELECT {lock}(?)", _LOCK_KEY)


_COMMUNITIES = """
    FROM sources s JOIN progress p ON p.source_id = s.id LEFT JOIN hot_sources h ON h.source_id = s.id
   WHERE s.kind IN {values} AND s.state = 'active'
"""


class Warmth(Record, frozen=True):
    """How many communities are warm: read lately, by a visit or by a cache-only crawl."""

    communities: int
    warm: int
    cached_posts: int
    """Sum of what the last cache-only crawl of each one cached."""
    last_warmed_at: datetime | None


class LastWarmUp(TypedDict):
    """When a cache-only crawl last read a community, and how much it cached then."""

    last_warmed_at: str | None
    cached_count: int


class CachedSources(StorePart):
    """Which sources are cached, whether their cached sets are still valid, and how often they were read."""

    def __init__(self, database: Database, items: Items) -> None:
        super().__init__(database)
        self._items = items

    def stamp(self, source_id: int) -> int | None:
        """Returns the stamp that a valid cached set of this source has; None: it is not cached."""
        row = self._one("SELECT stamp FROM hot_sources WHERE source_id = ?", source_id)
        return None if row is None or row[0] is None else int(row[0]) ^ _SHAPE

    def newest(self, source_id: int) -> tuple[int, list[ItemView]] | None:
        """Returns the source's stamp with its newest items from the archive; None: they changed while they were
        read."""
        before = self.stamp(source_id)
        if before is None:
            self._db.write(lambda tx: _begin(tx, source_id))
            before = self.stamp(source_id)
        items = self._items.newest(MOST, source_id=source_id)
        return None if before is None or self.stamp(source_id) != before else (before, items)

    def count(self, minute: datetime, counts: CacheCounts) -> None:
        sql = """
            INSERT INTO hot_counts (minute, hit_count, miss_count, failure_count) VALUES (?, ?, ?, ?)
            ON CONFLICT (minute) DO UPDATE SET
                   hit_count = hot_counts.hit_count + excluded.hit_count,
                   miss_count = hot_counts.miss_count + excluded.miss_count,
                   failure_count = hot_counts.failure_count + excluded.failure_count
        """
        self._run(sql, micros(minute), counts.hits, counts.misses, counts.failures)

    def counted(self, since: datetime, until: datetime) -> CacheCounts:
        """Returns the sum of the counts from the minute of `since` on, before `until`."""
        sql = """
            SELECT coalesce(sum(hit_count), 0), coalesce(sum(miss_count), 0), coalesce(sum(failure_count), 0)
              FROM hot_counts WHERE minute >= ? AND minute < ?
        """
        row = self._one(sql, micros(since.replace(second=0, microsecond=0)), micros(until))
        assert row is not None
        return CacheCounts(*(int(count) for count in row))

    def clear_counts(self, before: datetime) -> None:
        self._run("DELETE FROM hot_counts WHERE minute < ?", micros(before))

    def cold(self, kinds: Sequence[str], before: datetime) -> list[int]:
        """Returns active sources of these kinds that were not read since then, the coldest first."""
        sql = f"""
            SELECT s.id {_COMMUNITIES}
               AND coalesce(h.last_warmed_at, 0) <= ? AND coalesce(p.last_success_at, 0) <= ?
             ORDER BY coalesce(h.last_warmed_at, 0), s.id
        """
        return self._db.read(
            lambda tx: [row[0] for row in tx.select_in(sql, kinds, after=[micros(before), micros(before)])]
        )

    def warmth(self, kinds: Sequence[str], since: datetime) -> Warmth:
        """Returns the warmth of the active sources of these kinds."""
        rows = self._select_in(f"SELECT h.last_warmed_at, h.cached_count, p.last_success_at {_COMMUNITIES}", kinds)
        read = [max(warmed or 0, visited or 0) for warmed, _, visited in rows]
        return Warmth(
            len(rows),
            sum(at >= micros(since) for at in read),
            sum(count or 0 for _, count, _ in rows),
            to_moment(max((warmed for warmed, _, _ in rows if warmed), default=None)),
        )

    def of_source(self, source_id: int) -> LastWarmUp:
        """Returns when a cache-only crawl last read it, and how much it cached then."""
        row = self._one("SELECT last_warmed_at, cached_count FROM hot_sources WHERE source_id = ?", source_id)
        at = to_moment(row[0]) if row else None
        return {"last_warmed_at": at.isoformat() if at else None, "cached_count": row[1] if row else 0}

    def known_of(self, platform: str) -> list[int]:
        """Returns the sources of this platform that may have cached entries."""
        return self._column(
            "SELECT h.source_id FROM hot_sources h JOIN sources s ON s.id = h.source_id WHERE s.platform = ?", platform
        )

    def unforgotten(self, platform: str, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns those of these items that were not deleted permanently."""
        names = [(item["scope"], item["external_id"], item["author"], item["author_id"]) for item in items]
        gone = self._db.read(lambda tx: forgotten_names(tx, platform, names))
        return [item for item in items if (item["scope"], item["external_id"]) not in gone]

    @writes
    def ended(
        self,
        tx: Transaction,
        source: Source,
        lease: Lease,
        run_id: int,
        result: VisitResult,
        outcomes: Mapping[tuple[str, datetime], int],
        cached: int | None,
    ) -> None:
        """Record the end of a cache-only crawl; `cached` is the number of posts, or None: nothing was read. The
        source's progress is not changed."""
        leases.check(tx, lease)
        count_attempts(tx, source.platform, outcomes)
        note_results(tx, [(run_id, result)])
        if cached is not None and result.finished_at is not None:
            sql = """
                INSERT INTO hot_sources (source_id, last_warmed_at, cached_count) VALUES (?, ?, ?)
                ON CONFLICT (source_id) DO UPDATE SET
                       last_warmed_at = excluded.last_warmed_at, cached_count = excluded.cached_count
            """
            tx.run(sql, source.id, micros(result.finished_at), cached)
        leases.release(tx, lease)
