"""Keeping the newest of communities hot, and reading them: hot first, cold whenever the hot set cannot tell.

Nothing depends on it. A hot set is made from the archive after a visit; one that is missing, expired, or older than the
archive is not read; one that cannot be written is logged and counted, and the visit is none the worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from operator import methodcaller
from threading import Lock
from typing import Any, TypeVar

from catchment.clock import Clock
from catchment.errors import StoreError
from catchment.hot.entries import seen_entry
from catchment.hot.homes import Home
from catchment.hot.redis import RedisHome
from catchment.model import Kind, Ordering, Platform, RefinedItem, Source
from catchment.redis_link import Away, RedisLink
from catchment.settings import Settings
from catchment.store import Store
from catchment.store.filtering import Filter
from catchment.store.hot import MOST, HotCounts, HotSet
from catchment.store.items import ItemPage, page_of
from catchment.store.warming import Warmth

T = TypeVar("T")
_HOUR = timedelta(hours=1)


def is_kept_hot(kind: Kind) -> bool:
    """Whether the newest of such a source are kept hot.

    Communities are: between two visits they are read again and again, and a visit, which costs a request of a scarce
    budget, can well bear the writing. A feed is read seldom, and visited by the thousand: there the writing would cost
    more than all reads together.
    """
    return kind.is_tiered


def keeps_hot(platform: Platform) -> bool:
    """Whether any source of the platform may be kept hot: its items may stand in hot sets."""
    return any(is_kept_hot(kind) for kind in platform.KINDS)


def open_hot(settings: Settings, store: Store, clock: Clock, link: RedisLink | None) -> Hot:
    """The hot store as the settings want it: in Redis, where there is one, else in the database."""
    homes: list[Home] = [store.hot_home] if link is None else [RedisHome(link), store.hot_home]
    return Hot(store, homes, clock, timedelta(hours=settings.hot_hours), timedelta(days=settings.attempts_days))


class Hot:
    """The hot store of one process. Safe for threads."""

    def __init__(
        self, store: Store, homes: Sequence[Home], clock: Clock, lives: timedelta, counts_kept: timedelta
    ) -> None:
        """`homes`: the first one that can be asked is used; the last one is the database."""
        self._store, self._homes, self._clock = store, tuple(homes), clock
        self._lives, self._counts_kept = lives, counts_kept
        self._counts: dict[datetime, HotCounts] = {}
        self._counting = Lock()

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def refresh(self, source_id: int, kind: Kind | None) -> None:
        """Make the hot set of a source of this kind anew from the archive, if it has one. Fails nobody."""
        if kind is None or not is_kept_hot(kind):
            return
        try:
            made = self._store.hot.made(source_id, self._clock.now(), self._lives)
            # None: somebody is writing at this moment, and it is made after that visit, or the next.
            if made is not None:
                self._at_home(lambda home: home.keep(made), is_writing=True)
        except StoreError as error:
            _warn("the hot set could not be written", source=source_id, error=str(error))
            self._count(HotCounts(failures=1))

    def cache(self, source: Source, items: Sequence[RefinedItem], at: datetime) -> int:
        """Keep hot what a cache-only crawl saw of a source; gives how many. What was forgotten is left out."""
        entries = self._store.warming.unforgotten(source.platform, [seen_entry(one, source, at) for one in items])
        seen = HotSet(source.id, entries, self._clock.now(), self._lives)
        self._at_home(lambda home: home.cache(seen), is_writing=True)
        return len(entries)

    def forget(self, platform: str) -> None:
        """Let go of all that is hot of a platform, where something was forgotten. It is not read in any case; and what
        a Redis that is away still holds ends by itself."""
        source_ids = self._store.warming.known_of(platform)
        for home in self._homes:
            try:
                home.drop(source_ids)
            except Away:
                _warn("what was forgotten may lie in Redis until it is past its time", hours=self._lives / _HOUR)

    def clear_expired(self) -> int:
        """Take away what is past its time, in every home; gives how many entries went."""
        now, gone = self._clock.now(), 0
        for home in self._homes:
            with suppress(Away):
                gone += home.clear_expired(now, now - self._counts_kept)
        return gone

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def listed(
        self,
        wanted: Filter,
        limit: int,
        before: tuple[int, int] | None = None,
        order: Ordering = Ordering.POSTED,
    ) -> ItemPage:
        """What `store.items.listed` answers, from the hot set where that can tell."""
        is_hot = wanted.is_plain and order == Ordering.POSTED and before is None and limit < MOST
        if is_hot and wanted.source_id is not None:
            found = self._newest(wanted.source_id, limit)
            if found is not None:
                return found
        return self._store.items.listed(wanted, limit, before, order)

    def _newest(self, source_id: int, limit: int) -> ItemPage | None:
        stamp = self._store.hot.stamp(source_id)
        if stamp is None:
            return None
        now = self._clock.now()
        found = self._at_home(lambda home: home.newest(source_id, stamp, limit + 1, now))
        self._count(HotCounts(misses=1) if found is None else HotCounts(hits=1))
        return None if found is None else page_of(found, limit)

    def cached(self, source: Source, limit: int) -> list[dict[str, Any]]:
        """What cache-only crawls saw of a source and is not past its time, newest first."""
        now = self._clock.now()
        found = self._at_home(lambda home: home.cached(source.id, limit, now))
        return self._store.warming.unforgotten(source.platform, found)

    def warmth(self, kinds: Sequence[str]) -> Warmth:
        """How many of the communities of these kinds were read within the time to live."""
        return self._store.warming.warmth(kinds, self._clock.now() - self._lives)

    # ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def hit_rate(self, since: datetime) -> float | None:
        """The share of reads that the hot store answered, of those that it could have; None: there were none."""
        counts = self.counts(since)
        reads = counts.hits + counts.misses
        return counts.hits / reads if reads else None

    def counts(self, since: datetime, until: datetime | None = None) -> HotCounts:
        """What was counted since then (and before `until`) by all processes, each of which tells once a minute."""
        self._tell_counts()
        until, total = until or self._clock.now() + timedelta(minutes=1), HotCounts()
        for home in self._homes:
            with suppress(Away):
                total += home.counted(since, until)
        return total

    def standing(self) -> tuple[str, int]:
        """Which home is used now, and how many entries are hot there."""
        now = self._clock.now()
        return self._at_home(lambda home: (home.name, home.entry_count(now)))

    def close(self) -> None:
        self._tell_counts()

    def _count(self, one: HotCounts) -> None:
        minute = self._clock.now().replace(second=0, microsecond=0)
        with self._counting:
            # Told once a minute, by whoever reads first: a write for every read would cost more than the read.
            is_time_to_tell = bool(self._counts) and minute not in self._counts
            untold = self._taken() if is_time_to_tell else {}
            self._counts[minute] = self._counts.get(minute, HotCounts()) + one
        self._tell(untold)

    def _tell_counts(self) -> None:
        with self._counting:
            untold = self._taken()
        self._tell(untold)

    def _taken(self) -> dict[datetime, HotCounts]:
        untold, self._counts = self._counts, {}
        return untold

    def _tell(self, untold: Mapping[datetime, HotCounts]) -> None:
        for minute, counts in untold.items():
            try:
                self._at_home(methodcaller("count", minute, counts))
            except StoreError as error:
                # Figures are not worth a failure, nor a reader's time.
                _warn("reads of the hot store were not counted", error=str(error))

    # ── homes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _at_home(self, deed: Callable[[Home], T], *, is_writing: bool = False) -> T:
        """Done in the first home that can be asked."""
        for home in self._homes[:-1]:
            try:
                return deed(home)
            except Away:
                if is_writing:
                    self._count(HotCounts(failures=1))
        return deed(self._homes[-1])


def _warn(words: str, **more: object) -> None:
    # Whoever only reads starts without the machinery of logs.
    from catchment import logs

    logs.logger(__name__).warning(words, **more)
