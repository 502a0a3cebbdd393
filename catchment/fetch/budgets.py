"""Request budgets of a deployment: so many in so many seconds, whoever asks.

`grant` decides, and is pure. Its state lives where all processes see it (a row of the database, a key of Redis):
whoever keeps it implements `Rows`. A process takes small blocks of tokens and hands them out to its threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol, TypeVar

import msgspec

from catchment.clock import micros, moment
from catchment.model import Budget, Record

T = TypeVar("T")

AIM = 0.97
"""Of the limit: a server that counts a little differently must not have to complain."""
_SHARE_OF_A_LIFE = 8
"""A block is an eighth of what one lifetime can hold, so that the tokens which lapse unused stay few."""
_SLOTS = 60
"""Blocks of the same sixtieth of the window are kept as one, so that the state stays small at any rate."""


class WindowState(Record, frozen=True, omit_defaults=True):
    """What was granted lately: (microseconds since 1970, tokens), oldest first. Fit for JSON."""

    blocks: tuple[tuple[int, int], ...] = ()
    with_redis_at: int = 0
    """From then on, for one span (window and life), tokens may have been granted in Redis, of which nothing is known
    here."""
    without_redis_at: int = 0
    """When tokens were last taken here by somebody who could not ask Redis."""


class Grant(Record, frozen=True):
    """A block of tokens, to be used until it lapses; or none, and when to ask again."""

    tokens: int
    granted_at: datetime
    lapses_at: datetime
    wait_until: datetime | None = None

    def is_alive(self, now: datetime) -> bool:
        # A clock that was set back ends the block as well: how old it really is can no longer be told.
        return self.tokens > 0 and self.granted_at <= now <= self.lapses_at


class Level(Record, frozen=True):
    """How full a budget is at one moment."""

    credential: str | None
    """Whose it is, where the platform counts by credentials."""
    used: int
    """So many tokens of the window that ends now are granted …"""
    limit: int
    """… of so many that the platform allows."""
    opens_at: datetime | None = None
    """When the next one can be had; None: at once."""


Asked = tuple[Budget, str | None]
"""A budget, and the credential of whom it is."""


class Budgets(Protocol):
    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        """A block of `block_size(budget)` tokens at most, of the budget that `key` names."""
        ...

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        """How full each of them is. Only looks."""
        ...


def key(budget: Budget, credential: str | None) -> str:
    """The name under which a budget's state is kept."""
    return f"{budget.name}/{credential or ''}" if budget.is_per_credential else budget.name


def life(budget: Budget) -> timedelta:
    """How long a block may be used after it was granted."""
    return timedelta(seconds=min(budget.window_seconds / 12, 5.0))


def block_size(budget: Budget) -> int:
    """How many tokens are taken at once: one for slow budgets, more where asking for each would cost too much."""
    in_a_life = _aim(budget) * life(budget).total_seconds() / budget.window_seconds
    return max(1, int(in_a_life / _SHARE_OF_A_LIFE))


def grant(state: WindowState, budget: Budget, now: datetime, want: int) -> tuple[WindowState, int, datetime | None]:
    """The new state, how many of the wanted tokens are granted, and if none: when to ask again.

    A block granted at t is used between t and t + life. Counting all blocks of window + life before now therefore
    bounds what is sent in any stretch of one window. Tokens are never given back.
    """
    at, span = micros(now), span_of(budget)
    counted = _counted(state, at, span)
    free = _aim(budget) - sum(count for _, count in counted)
    granted = max(0, min(want, free))
    if granted == 0:
        return state.plus(blocks=counted), 0, moment(counted[0][0] + span + 1)
    return state.plus(blocks=_with(counted, at, granted, slot=span // _SLOTS)), granted, None


def level(state: WindowState, budget: Budget, credential: str | None, now: datetime) -> Level:
    """How full the window is in which that was granted."""
    used = sum(count for _, count in _counted(state, micros(now), span_of(budget)))
    opens_at = grant(state, budget, now, want=1)[2]
    # What may have been granted elsewhere counts as granted: together that can be more than there is.
    return Level(credential, min(used, budget.limit), budget.limit, opens_at)


def _counted(state: WindowState, at: int, span: int) -> tuple[tuple[int, int], ...]:
    """The blocks that count at that moment."""
    # A block from the future: the clock was set back. It counts from now on, for a whole window: that never opens the
    # gate early, and a clock that was once a year ahead does not close it for a year.
    return tuple((min(when, at), count) for when, count in state.blocks if when >= at - span)


def _with(blocks: tuple[tuple[int, int], ...], at: int, count: int, slot: int) -> tuple[tuple[int, int], ...]:
    if blocks and blocks[-1][0] // slot == at // slot:
        # Merged under the later time: counted a little longer than needed, never shorter.
        return (*blocks[:-1], (at, blocks[-1][1] + count))
    return (*blocks, (at, count))


def used_up(budget: Budget, now: datetime) -> WindowState:
    """A window of which nothing is known: all of it may have been granted, up to this moment."""
    return WindowState(((micros(now), _aim(budget)),))


# ── in Redis, or without it ───────────────────────────────────────────────────────────────────────────────────────


def is_without_redis(state: WindowState, budget: Budget, now: datetime) -> bool:
    """Whether somebody who could not ask Redis has taken tokens lately: then everybody takes them here."""
    # Two spans: who found the budget used up comes again after one.
    return state.without_redis_at >= micros(now) - 2 * span_of(budget)


def left_redis(state: WindowState, budget: Budget, now: datetime) -> WindowState:
    """Somebody cannot ask Redis and begins, or goes on, to take tokens here. What Redis may have granted before counts
    as granted."""
    at, span = micros(now), span_of(budget)
    latest = min(at, state.with_redis_at + span)
    blocks = state.blocks
    if not is_without_redis(state, budget, now) and state.with_redis_at and latest >= at - span:
        blocks = tuple(sorted((*blocks, (latest, _aim(budget)))))
    return state.plus(blocks=blocks, with_redis_at=min(at, state.with_redis_at), without_redis_at=at)


def grant_in_redis(
    own: WindowState, stored: WindowState, budget: Budget, now: datetime, want: int
) -> tuple[WindowState, int, datetime | None]:
    """As `grant`, of what is kept in Redis; what was granted lately in the database counts as well."""
    _, granted, wait_until = grant(merged(own, stored), budget, now, want)
    return (grant(own, budget, now, granted)[0] if granted else own), granted, wait_until


def merged(own: WindowState, stored: WindowState) -> WindowState:
    """What was granted in either home."""
    return own.plus(blocks=tuple(sorted((*own.blocks, *stored.blocks))))


def _aim(budget: Budget) -> int:
    return max(1, math.floor(budget.limit * AIM))


def span_of(budget: Budget) -> int:
    """For so many microseconds a grant counts: until the last of its tokens has left the window."""
    return (timedelta(seconds=budget.window_seconds) + life(budget)) // timedelta(microseconds=1)


class Rows(Protocol):
    """Where windows are kept, by name."""

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """What is kept under these names at this moment."""
        ...

    def change(self, name: str, now: datetime, deed: Callable[[Any | None], tuple[Any, T]]) -> T:
        """Alone with it: give `deed` what is kept (None at first), keep what it makes of it, give on its result."""
        ...


class StoredBudgets:
    """Budgets shared by all that share the rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        def deed(state: WindowState) -> tuple[WindowState, Grant]:
            return granted(left_redis(state, budget, now), budget, now)

        return changed(self._rows, key(budget, credential), now, deed)

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        kept = states_of(self._rows, asked)
        return [level(kept[key(*one)], *one, now) for one in asked]


def granted(state: WindowState, budget: Budget, now: datetime) -> tuple[WindowState, Grant]:
    state, tokens, wait_until = grant(state, budget, now, want=block_size(budget))
    return state, Grant(tokens, now, now + life(budget), wait_until)


def state_of(kept: Any | None) -> WindowState:
    return WindowState() if kept is None else msgspec.convert(kept, WindowState)


def states_of(rows: Rows, asked: Sequence[Asked]) -> dict[str, WindowState]:
    """The windows of all these budgets, by their keys."""
    names = [key(*one) for one in asked]
    kept = rows.kept(names)
    return {name: state_of(kept.get(name)) for name in names}


def changed(rows: Rows, name: str, now: datetime, deed: Callable[[WindowState], tuple[WindowState, T]]) -> T:
    def with_kept(kept: Any | None) -> tuple[Any, T]:
        state, result = deed(state_of(kept))
        return msgspec.to_builtins(state), result

    return rows.change(name, now, with_kept)


class MemoryRows:
    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._lock = Lock()

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self._kept[name] for name in names if name in self._kept}

    def change(self, name: str, now: datetime, deed: Callable[[Any | None], tuple[Any, T]]) -> T:
        with self._lock:
            self._kept[name], result = deed(self._kept.get(name))
            return result


class MemoryBudgets(StoredBudgets):
    """Budgets of one process alone, for tests and for commands without a store."""

    def __init__(self) -> None:
        super().__init__(MemoryRows())


class Tokens:
    """The blocks that this process holds, handed out to its threads one token at a time."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._held: dict[str, Grant] = {}
        self._lock = Lock()

    def take(self, budget: Budget, credential: str | None, now: datetime) -> datetime | None:
        """Use one token. None: it is there, send now. Otherwise: when to try again."""
        name = key(budget, credential)
        # Under the lock, the asking too: threads that find nothing wait for one block rather than take one each.
        with self._lock:
            held = self._held.get(name)
            if held is None or not held.is_alive(now):
                held = self._budgets.take(budget, credential, now)
            self._held[name] = held.plus(tokens=max(0, held.tokens - 1))
            return None if held.tokens else held.wait_until or held.lapses_at
