"""Read-through cache of communities' newest items; falls back to the archive whenever the cache cannot answer.

Nothing depends on it. A cached set is built from the archive after a visit; one that is missing, expired, or older than
the archive is not read; one that cannot be written is logged and counted, and the visit still succeeds.

A set is a list of JSON lines: the newest stored items of a source, or, with the time at which each expires, what
cache-only crawls saw of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol, TypedDict, TypeVar

from catchment.clock import Clock, micros
from catchment.decoders import json_decoder
from catchment.errors import StoreError
from catchment.model import LABELS, Item, Kind, Ordering, Platform, RefinedItem, Source, as_json
from catchment.redis import Away, RedisLink
from catchment.settings import Settings
from catchment.store import Store
from catchment.store.cache import MOST, CacheCounts, CachedSet, CacheKey
from catchment.store.item_fields import SHOWN, ItemView, decode, to_json
from catchment.store.items.deletion import Forget, ForgottenView
from catchment.store.items.items import ItemPage, page_of
from catchment.store.search.lists import Filter

T = TypeVar("T")


class Backend(Protocol):
    """Stores cached sets: Redis or the database.

    Callers pass the time; an expired set is never returned, whether or not it was cleared. Redis raises Away when it is
    not available.
    """

    name: str

    def put(self, key: CacheKey, made: CachedSet, now: datetime, expires_at: datetime) -> None:
        """Replace the set; all of it or nothing."""

    def get(self, key: CacheKey, now: datetime) -> CachedSet | None:
        """Returns the set; None: there is none, or it has expired."""

    def drop(self, source_ids: Sequence[int]) -> None:
        """Remove everything cached for these sources."""

    def clear_expired(self, now: datetime) -> int:
        """Remove expired sets; returns how many entries were removed."""

    def entry_count(self, now: datetime) -> int:
        """Returns how many entries the unexpired sets hold."""


class RedisBackend:
    """Redis backend of the cache: a string per set, and a hash with the expiry and size of each.

    Our own clock, passed as an argument, decides whether something has expired. Redis's expiry is only a safety net, so
    that nothing stays behind after a deployment that never runs again.
    """

    name = "redis"

    def __init__(self, link: RedisLink) -> None:
        self._link, self._prefix, self._index = link, f"{link.prefix}hot:", f"{link.prefix}hot:index"

    def put(self, key: CacheKey, made: CachedSet, now: datetime, expires_at: datetime) -> None:
        name, end = self._name(key), micros(expires_at)

        def call(client: Any) -> None:
            with client.pipeline() as pipeline:
                pipeline.set(name, "\n".join((str(end), str(made.stamp), *made.entries)), px=expires_at - now)
                pipeline.hset(self._index, name, f"{end} {len(made.entries)}")
                pipeline.execute()

        self._link.ask(call)

    def get(self, key: CacheKey, now: datetime) -> CachedSet | None:
        value: bytes | None = self._link.ask(lambda client: client.get(self._name(key)))
        if value is None:
            return None
        end, stamp, *entries = value.decode().split("\n")
        return CachedSet(int(stamp), entries) if int(end) > micros(now) else None

    def drop(self, source_ids: Sequence[int]) -> None:
        self._remove([self._name(CacheKey(id_, is_only)) for id_ in source_ids for is_only in (False, True)])

    def clear_expired(self, now: datetime) -> int:
        over = {name: count for name, (end, count) in self._sets().items() if end <= micros(now)}
        self._remove([*over])
        return sum(over.values())

    def entry_count(self, now: datetime) -> int:
        return sum(count for end, count in self._sets().values() if end > micros(now))

    def _sets(self) -> dict[str, tuple[int, int]]:
        """Returns the expiry and size of each set."""
        rows: dict[bytes, bytes] = self._link.ask(lambda client: client.hgetall(self._index))
        return {name.decode(): (int(end), int(count)) for name, row in rows.items() for end, count in [row.split()]}

    def _remove(self, names: Sequence[str]) -> None:
        if names:
            self._link.ask(lambda client: (client.delete(*names), client.hdel(self._index, *names)))

    def _name(self, key: CacheKey) -> str:
        return f"{self._prefix}{'cached' if key.is_cached_only else 'set'}:{key.source_id}"


_decode_item = json_decoder(ItemView).decode
_PLATFORM_FIELDS = [name for name in SHOWN if name in Item.__struct_fields__]


def _seen_entry(refined: RefinedItem, source: Source, at: datetime) -> dict[str, Any]:
    """Returns a cache-only entry, with the field names of stored items."""
    item = refined.item
    return {
        "platform": source.platform,
        "source_id": source.id,
        **{name: as_json(getattr(item, name)) for name in _PLATFORM_FIELDS},
        # As in the archive: what was not stated is not set.
        **{name: bool(getattr(item, name)) for name in LABELS},
        "tags": list(item.all_tags),
        "references": as_json(item.references),
        # As in the archive: a future date must not stay at the top of the list.
        "ordered_at": (at if item.created_at is None else min(item.created_at, at)).isoformat(),
        "cached_at": at.isoformat(),
    }


def is_cached(kind: Kind) -> bool:
    """Whether the newest items of such a source are cached.

    Communities are: they are read again and again between two visits, and a visit costs a request of a scarce budget,
    so the write is comparatively cheap. Feeds are read seldom and visited by the thousand: there the writes would cost
    more than all reads together.
    """
    return kind.is_tiered


def has_cached_kinds(platform: Platform) -> bool:
    """Whether any source of the platform may be cached, so that its items may be in cached sets."""
    return any(is_cached(kind) for kind in platform.KINDS)


def open_cache(settings: Settings, store: Store, clock: Clock, link: RedisLink | None) -> Cache:
    """Returns the cache that the settings ask for: in Redis if there is one, else in the database."""
    redis = None if link is None else RedisBackend(link)
    return Cache(store, redis, clock, timedelta(hours=settings.hot_hours), timedelta(days=settings.attempts_days))


class CacheReads(TypedDict):
    """How reads went during a period."""

    hits: int
    misses: int
    hit_rate: float | None
    failed_writes: int


class CacheWarmth(TypedDict):
    """How many communities are warm."""

    communities: int
    warm: int
    cached_posts: int
    last_warmed_at: str | None


class CacheReport(TypedDict):
    """Statistics of the cache."""

    home: str
    entries: int
    last_hour: CacheReads
    last_24_hours: CacheReads
    warmth: CacheWarmth


class Cache:
    """The cache of one process. Thread-safe."""

    def __init__(
        self, store: Store, redis: Backend | None, clock: Clock, lives: timedelta, counts_kept: timedelta
    ) -> None:
        """`redis` is used while it is available, otherwise the database."""
        self._store, self._clock = store, clock
        self._backends = [backend for backend in (redis, store.cache_table) if backend]
        self._lives, self._counts_kept = lives, counts_kept
        self._counts: dict[datetime, CacheCounts] = {}
        self._counting = Lock()

    def refresh(self, source_id: int, kind: Kind | None) -> None:
        """Rebuild the cached set of a source from the archive, if its kind is cached. Store errors are logged, not
        raised."""
        if kind is None or not is_cached(kind):
            return
        try:
            # None: another process is writing at this moment; the set is built after that visit or the next.
            if made := self._store.cached_sources.newest(source_id):
                stamp, items = made
                self._put(CacheKey(source_id, False), CachedSet(stamp, [*map(to_json, items)]))
        except StoreError as error:
            _warn("cached list could not be written", source=source_id, error=str(error))
            self._count(CacheCounts(failures=1))

    def cache(self, source: Source, items: Sequence[RefinedItem], at: datetime) -> int:
        """Add what a cache-only crawl saw of a source to what earlier ones saw; returns how many. Items that were
        deleted permanently are left out."""
        entries = self._store.cached_sources.unforgotten(
            source.platform, [_seen_entry(item, source, at) for item in items]
        )
        expires_at = micros(self._clock.now() + self._lives)
        kept = self._cached_only(source.id) | {_key(entry): (expires_at, entry) for entry in entries}
        self._put(CacheKey(source.id, True), CachedSet(0, [to_json(pair) for pair in kept.values()]))
        return len(entries)

    def cached(self, source: Source, limit: int) -> list[dict[str, Any]]:
        """Returns the unexpired entries that cache-only crawls saw of a source, newest first."""
        entries = [entry for _, entry in self._cached_only(source.id).values()]
        # They are not stored: no row id breaks ties of time.
        entries.sort(key=lambda entry: (datetime.fromisoformat(entry["ordered_at"]), *_key(entry)), reverse=True)
        return self._store.cached_sources.unforgotten(source.platform, entries[:limit])

    def _cached_only(self, source_id: int) -> dict[tuple[str, str], tuple[int, dict[str, Any]]]:
        now = self._clock.now()
        cached = self._at_backend(lambda backend: backend.get(CacheKey(source_id, True), now))
        pairs = [decode(entry) for entry in cached.entries] if cached else []
        return {_key(entry): (expires_at, entry) for expires_at, entry in pairs if expires_at > micros(now)}

    def forget(self, platform: str) -> None:
        """Drop everything cached for a platform from which something was deleted permanently. It is not read in any
        case; what an unavailable Redis still holds expires."""
        source_ids = self._store.cached_sources.known_of(platform)
        for backend in self._backends:
            try:
                backend.drop(source_ids)
            except Away:
                hours = self._lives / timedelta(hours=1)
                _warn("deleted items may remain in Redis until they expire", hours=hours)

    def clear_expired(self) -> int:
        """Remove expired sets from every backend; returns how many entries were removed."""
        now, gone = self._clock.now(), 0
        self._store.cached_sources.clear_counts(now - self._counts_kept)
        for backend in self._backends:
            with suppress(Away):
                gone += backend.clear_expired(now)
        return gone

    def listed(
        self, filter: Filter, limit: int, before: tuple[int, int] | None = None, order: Ordering = Ordering.POSTED
    ) -> ItemPage:
        """Same answer as `store.items.listed`, from the cached set where possible."""
        if filter.is_plain and order == Ordering.POSTED and before is None and limit < MOST and filter.source_id:
            cached = self._newest(filter.source_id, limit)
            if cached is not None:
                return cached
        return self._store.items.listed(filter, limit, before, order)

    def _newest(self, source_id: int, limit: int) -> ItemPage | None:
        stamp, now = self._store.cached_sources.stamp(source_id), self._clock.now()
        if stamp is None:
            return None
        cached = self._at_backend(lambda backend: backend.get(CacheKey(source_id, False), now))
        if cached is None or cached.stamp != stamp:
            self._count(CacheCounts(misses=1))
            return None
        self._count(CacheCounts(hits=1))
        return page_of([_decode_item(entry) for entry in cached.entries[: limit + 1]], limit)

    def hit_rate(self, since: datetime) -> float | None:
        """Returns the share of cacheable reads that the cache answered; None: there were none."""
        return self._reads(since)["hit_rate"]

    def counts(self, since: datetime, until: datetime | None = None) -> CacheCounts:
        """Returns the counts since then (and before `until`) of all processes, each of which reports once a minute."""
        self._report_counts()
        return self._store.cached_sources.counted(since, until or self._clock.now() + timedelta(minutes=1))

    def standing(self) -> tuple[str, int]:
        """Returns the name of the backend in use and how many entries it holds."""
        now = self._clock.now()
        return self._at_backend(lambda backend: (backend.name, backend.entry_count(now)))

    def report(self, kinds: Sequence[str]) -> CacheReport:
        """Returns the cache's statistics: backend, size, hit rate, and which communities of these kinds are warm."""
        now, (home, entries) = self._clock.now(), self.standing()
        return {
            "home": home,
            "entries": entries,
            "last_hour": self._reads(now - timedelta(hours=1)),
            "last_24_hours": self._reads(now - timedelta(days=1)),
            "warmth": as_json(self._store.cached_sources.warmth(kinds, now - self._lives)),
        }

    def _reads(self, since: datetime) -> CacheReads:
        counts = self.counts(since)
        reads = counts.hits + counts.misses
        rate = counts.hits / reads if reads else None
        return {"hits": counts.hits, "misses": counts.misses, "hit_rate": rate, "failed_writes": counts.failures}

    def close(self) -> None:
        self._report_counts()

    def _count(self, counts: CacheCounts) -> None:
        minute = self._clock.now().replace(second=0, microsecond=0)
        if self._counts and minute not in self._counts:
            # Once a minute, by the first read after it: a write for every read would cost more than the read.
            self._report_counts()
        with self._counting:
            self._counts[minute] = self._counts.get(minute, CacheCounts()) + counts

    def _report_counts(self) -> None:
        with self._counting:
            unreported, self._counts = self._counts, {}
        for minute, counts in unreported.items():
            try:
                self._store.cached_sources.count(minute, counts)
            except StoreError as error:
                # Statistics are not worth a failed or slow read.
                _warn("cache statistics could not be saved", error=str(error))

    def _put(self, key: CacheKey, made: CachedSet) -> None:
        now = self._clock.now()
        try:
            self._backends[0].put(key, made, now, now + self._lives)
        except Away:
            self._count(CacheCounts(failures=1))
            self._backends[-1].put(key, made, now, now + self._lives)

    def _at_backend(self, call: Callable[[Backend], T]) -> T:
        """Run the call on the first available backend."""
        try:
            return call(self._backends[0])
        except Away:
            return call(self._backends[-1])


def _key(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["external_id"], entry["scope"]


def _warn(words: str, **more: object) -> None:
    # Imported here: read-only commands start without the logging setup.
    from catchment import logs

    logs.logger(__name__).warning(words, **more)


def forget_for_good(
    store: Store, cache: Cache, request: Forget, now: datetime, seen: Callable[[int], None] = lambda _: None
) -> ForgottenView:
    """Delete permanently, in the archive and in the cache; returns the record."""
    record = store.deletion.forget(request, now, seen)
    cache.forget(request.platform)
    return record
