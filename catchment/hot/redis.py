"""Redis as a home for hot entries.

    {prefix}sets                   zset   the sources that have a hot set, by its end
    {prefix}set:{source}           hash   the set: its stamp and its end, and its entries by their places
    {prefix}cached                 zset   the sources of which something is cached only, by its last end
    {prefix}cached:{source}        hash   what cache-only crawls saw, by scope and external id
    {prefix}cached:{source}:ends   zset   the same keys by their ends
    {prefix}counts                 zset   the hours in which something was counted
    {prefix}counts:{hour}          hash   what was counted, by minute

Whether something is past its time is decided by our clock, which comes by argument. Redis expires by its own, which is
there only so that nothing stays behind those who never come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.redis_link import RedisLink
from catchment.store.hot import HotCounts, HotSet, newest_first
from catchment.store.rows import decode, encode

_HOUR = timedelta(hours=1)
# Longer than anybody asks back; by Redis's own clock.
_COUNTS_LEFT = timedelta(days=60)
_COUNTED = ("hits", "misses", "failures")


class RedisHome:
    """See `Home`."""

    name = "redis"

    def __init__(self, link: RedisLink) -> None:
        self._link, self._prefix = link, f"{link.prefix}hot:"
        self._sets, self._cached, self._counts = (f"{self._prefix}{name}" for name in ("sets", "cached", "counts"))

    # ── sets ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, made: HotSet) -> None:
        name, end = self._set_of(made.source_id), micros(made.expires_at)
        entries = {str(place): encode(item) for place, item in enumerate(made.items)}

        def deed(client: Any) -> None:
            with client.pipeline() as together:
                together.delete(name)
                together.hset(name, mapping={"stamp": made.stamp, "end": end, **entries})
                together.pexpire(name, made.lives)
                together.zadd(self._sets, {str(made.source_id): end})
                together.execute()

        self._link.ask(deed)

    def newest(self, source_id: int, stamp: int, limit: int, now: datetime) -> list[dict[str, Any]] | None:
        asked = ["stamp", "end", *map(str, range(limit))]
        # One command: what it reads was written together.
        kept, end, *entries = self._link.ask(lambda client: client.hmget(self._set_of(source_id), asked))
        if kept != b"%d" % stamp or int(end) <= micros(now):
            return None
        return [decode(entry) for entry in entries if entry is not None]

    # ── what is cached only ───────────────────────────────────────────────────────────────────────────────────────

    def cache(self, seen: HotSet) -> None:
        name, ends, end = *self._cached_of(seen.source_id), micros(seen.expires_at)
        entries = {"\x1f".join((item["scope"], item["external_id"])): encode(item) for item in seen.items}

        def deed(client: Any) -> None:
            self._prune(client, seen.source_id, micros(seen.made_at))
            with client.pipeline() as together:
                if entries:
                    together.hset(name, mapping=entries)
                    together.zadd(ends, dict.fromkeys(entries, end))
                for one in (name, ends):
                    together.pexpire(one, seen.lives)
                together.zadd(self._cached, {str(seen.source_id): end})
                together.execute()

        self._link.ask(deed)

    def cached(self, source_id: int, limit: int, now: datetime) -> list[dict[str, Any]]:
        name, ends = self._cached_of(source_id)

        def deed(client: Any) -> list[bytes | None]:
            alive = client.zrangebyscore(ends, f"({micros(now)}", "+inf")
            return list(client.hmget(name, alive)) if alive else []

        found = [decode(entry) for entry in self._link.ask(deed) if entry is not None]
        return newest_first(found)[:limit]

    def _prune(self, client: Any, source_id: int, now: int) -> int:
        name, ends = self._cached_of(source_id)
        old = client.zrangebyscore(ends, "-inf", now)
        if old:
            with client.pipeline() as together:
                together.hdel(name, *old)
                together.zrem(ends, *old)
                together.execute()
        return len(old)

    # ── all of it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def drop(self, source_ids: Sequence[int]) -> None:
        ids = list(map(str, source_ids))
        names = [name for one in source_ids for name in (self._set_of(one), *self._cached_of(one))]

        def deed(client: Any) -> None:
            with client.pipeline() as together:
                together.delete(*names)
                together.zrem(self._sets, *ids)
                together.zrem(self._cached, *ids)
                together.execute()

        if ids:
            self._link.ask(deed)

    def clear_expired(self, now: datetime, counted_before: datetime) -> int:
        at, hours = micros(now), micros(counted_before - _HOUR)

        def deed(client: Any) -> int:
            over = [int(one) for one in client.zrangebyscore(self._sets, "-inf", at)]
            gone = sum(_lengths(client, map(self._set_of, over)))
            if over:
                client.delete(*map(self._set_of, over))
                client.zrem(self._sets, *over)
            gone += sum(self._prune(client, int(one), at) for one in client.zrange(self._cached, 0, -1))
            client.zremrangebyscore(self._cached, "-inf", at)
            if old := client.zrangebyscore(self._counts, "-inf", hours):
                client.delete(*old)
                client.zrem(self._counts, *old)
            return gone

        return self._link.ask(deed)

    def entry_count(self, now: datetime) -> int:
        after = f"({micros(now)}"

        def deed(client: Any) -> int:
            alive = [int(one) for one in client.zrangebyscore(self._sets, after, "+inf")]
            cached = [int(one) for one in client.zrangebyscore(self._cached, after, "+inf")]
            with client.pipeline() as together:
                for one in cached:
                    together.zcount(self._cached_of(one)[1], after, "+inf")
                counts: list[int] = together.execute()
            return sum(counts) + sum(_lengths(client, map(self._set_of, alive)))

        return self._link.ask(deed)

    # ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def count(self, minute: datetime, counts: HotCounts) -> None:
        name = self._counts_of(minute)

        def deed(client: Any) -> None:
            with client.pipeline() as together:
                for what in _COUNTED:
                    together.hincrby(name, f"{micros(minute)} {what}", getattr(counts, what))
                together.zadd(self._counts, {name: micros(minute.replace(minute=0))})
                together.expire(name, _COUNTS_LEFT)
                together.execute()

        self._link.ask(deed)

    def counted(self, since: datetime, until: datetime) -> HotCounts:
        first = since.replace(second=0, microsecond=0)

        def deed(client: Any) -> list[dict[bytes, bytes]]:
            with client.pipeline() as together:
                for hour in _hours(first, until):
                    together.hgetall(self._counts_of(hour))
                return list(together.execute())

        totals = dict.fromkeys(_COUNTED, 0)
        for field, count in (pair for hour in self._link.ask(deed) for pair in hour.items()):
            minute, _, what = field.decode().partition(" ")
            if micros(first) <= int(minute) < micros(until):
                totals[what] += int(count)
        return HotCounts(**totals)

    # ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _set_of(self, source_id: int) -> str:
        return f"{self._prefix}set:{source_id}"

    def _cached_of(self, source_id: int) -> tuple[str, str]:
        name = f"{self._prefix}cached:{source_id}"
        return name, f"{name}:ends"

    def _counts_of(self, moment: datetime) -> str:
        return f"{self._prefix}counts:{moment:%Y-%m-%dT%H}"


def _lengths(client: Any, names: Iterator[str]) -> list[int]:
    """How many entries each set has: its stamp and its end are none."""
    with client.pipeline() as together:
        for name in names:
            together.hlen(name)
        return [max(0, length - 2) for length in together.execute()]


def _hours(first: datetime, until: datetime) -> Iterator[datetime]:
    hour = first.replace(minute=0)
    while hour < until:
        yield hour
        hour += _HOUR
