"""Budgets in Redis, where there is one; in the database while anybody cannot reach it.

The rule is the same (`budgets.grant`), and so is the clock: it comes by argument. Two homes for one budget must never
grant side by side. So the database knows, span by span, whether Redis is in use; whoever cannot reach Redis says so
there, counts all that Redis may have granted, and goes on in the database; and all others follow as long as that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from catchment.clock import micros
from catchment.fetch.budgets import (
    Asked,
    Budgets,
    Grant,
    Level,
    Rows,
    StoredBudgets,
    WindowState,
    block_size,
    changed,
    grant_in_redis,
    granted,
    is_without_redis,
    key,
    level,
    life,
    merged,
    span_of,
    state_of,
    states_of,
    used_up,
)
from catchment.model import Budget
from catchment.redis_link import Away, RedisLink

T = TypeVar("T")


def budgets_in(rows: Rows, link: RedisLink | None) -> Budgets:
    """The budgets of a deployment with these rows in its database, and perhaps a Redis."""
    return StoredBudgets(rows) if link is None else RedisBudgets(RedisRows(link), rows)


class RedisRows:
    """Windows in Redis. They never expire there: an empty place counts as used up."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    def is_there(self) -> bool:
        return self._link.check() is None

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        found = self._link.ask(lambda client: client.mget([self._key(name) for name in names])) if names else []
        return {name: msgspec.json.decode(kept) for name, kept in zip(names, found, strict=True) if kept is not None}

    def _key(self, name: str) -> str:
        return f"{self._link.prefix}budget:{name}"

    def change(self, name: str, now: datetime, deed: Callable[[Any | None], tuple[Any, T]]) -> T:
        key = self._key(name)

        def step(watched: Any) -> T:
            kept = watched.get(key)
            window, result = deed(None if kept is None else msgspec.json.decode(kept))
            watched.multi()
            watched.set(key, msgspec.json.encode(window))
            return result

        def work(client: Any) -> T:
            # Done over, if somebody else was in between.
            result: T = client.transaction(step, key, value_from_callable=True)
            return result

        return self._link.ask(work)


class RedisBudgets:
    """Budgets shared by all that share the Redis and the database."""

    def __init__(self, redis: RedisRows, database: Rows) -> None:
        self._redis, self._database = redis, database
        self._without_redis = StoredBudgets(database)

    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        name = key(budget, credential)
        stored = state_of(self._database.kept([name]).get(name))
        if is_without_redis(stored, budget, now):
            return self._take_with_others(budget, credential, now)
        try:
            taken = self._take_in_redis(stored, budget, credential, now)
        except Away:
            return self._without_redis.take(budget, credential, now)
        if taken.tokens and stored.with_redis_at < micros(now) - span_of(budget):
            # Before the first of them is used. What is not used is not given back either.
            stored = self._told_of_redis(budget, credential, now)
        return taken if not is_without_redis(stored, budget, now) else self._take_with_others(budget, credential, now)

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        """What was granted in either home counts."""
        stored = states_of(self._database, asked)
        try:
            own = states_of(self._redis, asked)
        except Away:
            own = dict.fromkeys(stored, WindowState())
        return [level(merged(own[key(*one)], stored[key(*one)]), *one, now) for one in asked]

    def _told_of_redis(self, budget: Budget, credential: str | None, now: datetime) -> WindowState:
        """The database learns, once in every span, that Redis is in use; gives what it knows."""

        def deed(state: WindowState) -> tuple[WindowState, WindowState]:
            state = state.plus(with_redis_at=micros(now))
            return state, state

        return changed(self._database, key(budget, credential), now, deed)

    def _take_with_others(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        """In the database, although we may reach Redis: somebody else does not."""
        if not self._redis.is_there():
            return self._without_redis.take(budget, credential, now)
        return changed(self._database, key(budget, credential), now, lambda state: granted(state, budget, now))

    def _take_in_redis(self, stored: WindowState, budget: Budget, credential: str | None, now: datetime) -> Grant:
        def deed(kept: Any | None) -> tuple[Any, Grant]:
            own = used_up(budget, now) if kept is None else state_of(kept)
            own, tokens, wait_until = grant_in_redis(own, stored, budget, now, want=block_size(budget))
            return msgspec.to_builtins(own), Grant(tokens, now, now + life(budget), wait_until)

        return self._redis.change(key(budget, credential), now, deed)
