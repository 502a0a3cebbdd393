"""Request budgets of a deployment: a number of requests per window, for all processes together.

`grant` decides, and is pure. Its state lives where all processes see it (a row of the database, a key of Redis)
behind the protocol `WindowRows`. A process takes small blocks of tokens and hands them out to its threads.

With Redis the rule is the same. Two backends of one budget must never grant at the same time. So the database knows,
span by span, whether Redis is in use; a process that cannot reach Redis records that there, counts all that Redis may
have granted, and continues in the database; all other processes do the same for as long as that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol, TypeVar, cast

import msgspec

from catchment.clock import Clock, micros, moment
from catchment.decoders import converted
from catchment.model import Budget, Record
from catchment.redis import Away, RedisLink

T = TypeVar("T")

AIM = 0.97
"""Share of the limit that is used: a server that counts a little differently must not have to complain."""
_SHARE_OF_A_LIFE = 8
"""A block is an eighth of what one lifetime can hold, so that few tokens lapse unused."""
_USUAL_SECONDS = 0.25
"""Of wall time: a token that took no longer to get is always used. Some windows are so short that no token would be."""
_SLOTS = 60
"""Blocks of the same sixtieth of the window are merged, so that the state stays small at any rate."""


class WindowState(Record, frozen=True, omit_defaults=True):
    """Recent grants: (microseconds since 1970, tokens), oldest first. JSON-serializable."""

    blocks: tuple[tuple[int, int], ...] = ()
    with_redis_at: int = 0
    """From then on, for one span (window and life), Redis may have granted tokens that are not known here."""
    without_redis_at: int = 0
    """When a process that could not reach Redis last took tokens here."""


class Grant(Record, frozen=True):
    """A block of tokens, to be used until it lapses; or none, and when to ask again."""

    tokens: int
    granted_at: datetime
    lapses_at: datetime
    wait_until: datetime | None = None

    def is_alive(self, now: datetime) -> bool:
        # A clock that was set back ends the block as well: its real age can no longer be known.
        return self.tokens > 0 and self.granted_at <= now <= self.lapses_at


class Level(Record, frozen=True):
    """How full a budget is at one moment."""

    credential: str | None
    """The credential it belongs to, where the platform counts by credentials."""
    used: int
    """Tokens granted in the window that ends now …"""
    limit: int
    """… of the number that the platform allows."""
    opens_at: datetime | None = None
    """When the next one can be had; None: at once."""


Asked = tuple[Budget, str | None]
"""A budget, and the credential it belongs to."""


class Budgets(Protocol):
    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        """Returns a block of at most `block_size(budget)` tokens of the budget that `key` names."""
        ...

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        """Returns how full each of them is. Read-only."""
        ...


def key(budget: Budget, credential: str | None) -> str:
    """Returns the name under which a budget's state is stored."""
    return f"{budget.name}/{credential or ''}" if budget.is_per_credential else budget.name


def life(budget: Budget) -> timedelta:
    """Returns the longest time between a grant and the arrival of its requests."""
    return timedelta(seconds=min(budget.window_seconds / 12, 5.0))


def use(budget: Budget) -> timedelta:
    """Returns how long the tokens of a block may be issued; the rest of its life allows for latency."""
    return life(budget) / 2


def block_size(budget: Budget) -> int:
    """Returns how many tokens are taken at once: one for slow budgets, more where a call for each would cost too
    much."""
    in_a_life = _aim(budget) * life(budget).total_seconds() / budget.window_seconds
    return max(1, int(in_a_life / _SHARE_OF_A_LIFE))


def grant(state: WindowState, budget: Budget, now: datetime, want: int) -> tuple[WindowState, int, datetime | None]:
    """Returns the new state, how many of the wanted tokens are granted, and if none: when to ask again.

    The requests of a block granted at t arrive between t and t + life. Counting all blocks of window + life before now
    therefore bounds what arrives in any stretch of one window. Tokens are never given back.
    """
    at, span = micros(now), span_of(budget)
    blocks = _counted(state, at, span)
    granted = max(0, min(want, _aim(budget) - sum(count for _, count in blocks)))
    if granted == 0:
        return state.replace(blocks=blocks), 0, moment(blocks[0][0] + span + 1)
    slot = span // _SLOTS
    if blocks and blocks[-1][0] // slot == at // slot:
        # Merged under the later time: counted a little longer than needed, never shorter.
        blocks = (*blocks[:-1], (max(at, blocks[-1][0]), blocks[-1][1] + granted))
    else:
        blocks = tuple(sorted((*blocks, (at, granted))))
    return state.replace(blocks=blocks), granted, None


def level(state: WindowState, budget: Budget, credential: str | None, now: datetime) -> Level:
    """Returns how full the window of this state is."""
    used = sum(count for _, count in _counted(state, micros(now), span_of(budget)))
    opens_at = grant(state, budget, now, want=1)[2]
    # What may have been granted elsewhere counts as granted: the sum can exceed the limit.
    return Level(credential, min(used, budget.limit), budget.limit, opens_at)


def _counted(state: WindowState, at: int, span: int) -> tuple[tuple[int, int], ...]:
    """Returns the blocks that count at that moment, oldest first."""
    # A block from the near future was granted by a process whose clock is ahead, or that was quicker than one that had
    # read the time before: it counts by its own time. If it is further ahead, the clock was set back: it counts from
    # now on, so that a clock that was once a year ahead does not block the budget for a year.
    kept = ((when if when <= at + span else at, count) for when, count in state.blocks if when >= at - span)
    return tuple(sorted(kept))


def is_without_redis(state: WindowState, budget: Budget, now: datetime) -> bool:
    """Whether a process that could not reach Redis has taken tokens lately: then all processes take them here."""
    # Two spans: a process that found the budget used up asks again after one.
    return state.without_redis_at >= micros(now) - 2 * span_of(budget)


def left_redis(state: WindowState, budget: Budget, now: datetime) -> WindowState:
    """Records that a process cannot reach Redis and takes tokens here, from now on or as before. What Redis may have
    granted before counts as granted."""
    at, span = micros(now), span_of(budget)
    latest = min(at, state.with_redis_at + span)
    blocks = state.blocks
    if not is_without_redis(state, budget, now) and state.with_redis_at and latest >= at - span:
        blocks = tuple(sorted((*blocks, (latest, _aim(budget)))))
    return state.replace(blocks=blocks, with_redis_at=min(at, state.with_redis_at), without_redis_at=at)


def merged(own: WindowState, stored: WindowState) -> WindowState:
    """Returns what was granted in either backend."""
    return own.replace(blocks=tuple(sorted((*own.blocks, *stored.blocks))))


def _aim(budget: Budget) -> int:
    # Rounded: of three requests a second, one less would be a third. What such a budget leaves is the life of a block.
    return max(1, round(budget.limit * AIM))


def span_of(budget: Budget) -> int:
    """Returns for how many microseconds a grant counts: until the last of its tokens has left the window."""
    return (timedelta(seconds=budget.window_seconds) + life(budget)) // timedelta(microseconds=1)


class WindowRows(Protocol):
    """Storage of windows, by name."""

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns what is stored under these names at this moment."""
        ...

    def change(self, name: str, now: datetime, decide: Callable[[Any | None], tuple[Any, T]]) -> T:
        """Atomically passes the stored value (None at first) to `decide`, stores the new one, returns the result."""
        ...


Now = Callable[[datetime], datetime]


def by_clock(clock: Clock | None) -> Now:
    """Returns the function that gives the time of a decision, from the time of the request for it.

    A process may wait long for its turn, or be stopped before. If it then decided by the time it had read before, it
    would take the newer grants of others for those of a clock that was set back.
    """
    return (lambda asked_at: asked_at) if clock is None else (lambda asked_at: max(asked_at, clock.now()))


class StoredBudgets:
    """Budgets shared by all processes that share the rows."""

    def __init__(self, rows: WindowRows, clock: Clock | None = None) -> None:
        self._rows, self._now = rows, by_clock(clock)

    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        def decide(state: WindowState) -> tuple[WindowState, Grant]:
            at = self._now(now)
            return granted(left_redis(state, budget, at), budget, at)

        return changed(self._rows, key(budget, credential), now, decide)

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        states = states_of(self._rows, asked)
        return [level(state, *budget, now) for state, budget in zip(states, asked, strict=True)]


def granted(state: WindowState, budget: Budget, now: datetime) -> tuple[WindowState, Grant]:
    state, tokens, wait_until = grant(state, budget, now, want=block_size(budget))
    return state, Grant(tokens, now, now + use(budget), wait_until)


def state_of(kept: Any | None) -> WindowState:
    return WindowState() if kept is None else converted(kept, WindowState)


def states_of(rows: WindowRows, asked: Sequence[Asked]) -> list[WindowState]:
    """Returns the windows of these budgets."""
    names = [key(*budget) for budget in asked]
    kept = rows.kept(names)
    return [state_of(kept.get(name)) for name in names]


def changed(rows: WindowRows, name: str, now: datetime, decide: Callable[[WindowState], tuple[WindowState, T]]) -> T:
    def with_kept(kept: Any | None) -> tuple[Any, T]:
        state, result = decide(state_of(kept))
        return msgspec.to_builtins(state), result

    return rows.change(name, now, with_kept)


class Tokens:
    """The blocks that this process holds, handed out to its threads one token at a time."""

    def __init__(self, budgets: Budgets, clock: Clock | None = None) -> None:
        """`clock`: with it, a token that has lapsed by the time it is here is not used. Where many processes wait for
        the same row, that can take seconds."""
        self._budgets, self._clock = budgets, clock
        self._held: dict[str, Grant] = {}
        self._lock = Lock()

    def take(self, budget: Budget, credential: str | None, now: datetime) -> datetime | None:
        """Takes one token. Returns None if there is one (send now), otherwise when to try again."""
        missing = self.take_each([budget], credential, now)
        return missing[1] if missing else None

    def take_each(
        self, budgets: Sequence[Budget], credential: str | None, now: datetime
    ) -> tuple[Budget, datetime] | None:
        """Takes a token of each budget. Returns None if all have one (send now), otherwise a budget without one and
        when to try again."""
        # The calls are under the lock, too: threads that find no token wait for one block rather than take one each.
        with self._lock:
            # A token that waits for another budget's lapses unused. So with several budgets, the later ones are looked
            # at before anything is taken from the first.
            for budget in budgets[1:]:
                if (until := self._opens_at(budget, credential, now)) is not None:
                    return budget, until
            for budget in budgets:
                if (until := self._take(budget, credential, now)) is not None:
                    return budget, until
            return self._late(budgets, credential, now)

    def _take(self, budget: Budget, credential: str | None, now: datetime) -> datetime | None:
        name = key(budget, credential)
        share = self._held.get(name)
        if share is None or not share.is_alive(now):
            share = self._budgets.take(budget, credential, now)
        self._held[name] = share.replace(tokens=max(0, share.tokens - 1))
        return None if share.tokens else share.wait_until or share.lapses_at

    def _late(
        self, budgets: Sequence[Budget], credential: str | None, asked_at: datetime
    ) -> tuple[Budget, datetime] | None:
        """Returns the budget whose token has lapsed on its way here, and when to try again: now."""
        if self._clock is None or not (a_second := self._clock.wall_seconds(1.0)):
            return None
        now, usual = self._clock.now(), asked_at + timedelta(seconds=_USUAL_SECONDS / a_second)
        for budget in budgets:
            if now > max(usual, self._held[key(budget, credential)].lapses_at):
                return budget, now
        return None

    def _opens_at(self, budget: Budget, credential: str | None, now: datetime) -> datetime | None:
        share = self._held.get(key(budget, credential))
        if share is not None and share.is_alive(now):
            return None
        return self._budgets.levels([(budget, credential)], now)[0].opens_at


def budgets_in(rows: WindowRows, link: RedisLink | None, clock: Clock | None = None) -> Budgets:
    """Returns the budgets of a deployment with these rows in its database, and perhaps a Redis. `clock`: see
    `by_clock`."""
    return StoredBudgets(rows, clock) if link is None else RedisBudgets(RedisRows(link), rows, clock)


class RedisRows:
    """Windows in Redis. They never expire there: a missing one counts as used up."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    def is_there(self) -> bool:
        return self._link.check() is None

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        kept = self._link.ask(lambda client: client.mget([self._key(name) for name in names])) if names else []
        return {name: msgspec.json.decode(text) for name, text in zip(names, kept, strict=True) if text is not None}

    def change(self, name: str, now: datetime, decide: Callable[[Any | None], tuple[Any, T]]) -> T:
        key = self._key(name)

        def step(watched: Any) -> T:
            kept = watched.get(key)
            window, result = decide(None if kept is None else msgspec.json.decode(kept))
            new = msgspec.json.encode(window)
            if new == kept:
                # Not written: of many processes that find nothing, each write would make all the others try again.
                watched.unwatch()
            else:
                watched.multi()
                watched.set(key, new)
            return result

        # Repeated if another process changed it meanwhile.
        return self._link.ask(lambda client: cast(T, client.transaction(step, key, value_from_callable=True)))

    def _key(self, name: str) -> str:
        return f"{self._link.prefix}budget:{name}"


class RedisBudgets:
    """Budgets shared by all processes that share the Redis and the database."""

    def __init__(self, redis: RedisRows, database: WindowRows, clock: Clock | None = None) -> None:
        self._redis, self._database, self._now = redis, database, by_clock(clock)
        self._without_redis = StoredBudgets(database, clock)

    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        name = key(budget, credential)
        [stored] = states_of(self._database, [(budget, credential)])

        def in_redis(kept: Any | None) -> tuple[Any, Grant]:
            at = self._now(now)
            # A window of unknown history: all of it may have been granted, up to this moment.
            own = WindowState(((micros(at), _aim(budget)),)) if kept is None else state_of(kept)
            # Recent grants in the database count as well.
            _, block = granted(merged(own, stored), budget, at)
            if block.tokens:
                own = grant(own, budget, at, block.tokens)[0]
            return msgspec.to_builtins(own), block

        def told_of_redis(state: WindowState) -> tuple[WindowState, WindowState]:
            state = state.replace(with_redis_at=micros(self._now(now)))
            return state, state

        if not is_without_redis(stored, budget, self._now(now)):
            try:
                block = self._redis.change(name, now, in_redis)
            except Away:
                return self._without_redis.take(budget, credential, now)
            at = self._now(block.granted_at)
            if block.tokens and stored.with_redis_at < micros(at) - span_of(budget):
                # Once in every span, and before the first of them is used. Unused tokens are not given back either.
                stored = changed(self._database, name, now, told_of_redis)
            if not is_without_redis(stored, budget, at):
                return block
        # Another process does not reach Redis, so all of them take tokens in the database.
        if not self._redis.is_there():
            return self._without_redis.take(budget, credential, now)
        return changed(self._database, name, now, lambda state: granted(state, budget, self._now(now)))

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        """Returns the levels; grants in either backend count."""
        states = states_of(self._database, asked)
        with suppress(Away):
            states = [merged(own, stored) for own, stored in zip(states_of(self._redis, asked), states, strict=True)]
        return [level(state, *budget, now) for state, budget in zip(states, asked, strict=True)]
