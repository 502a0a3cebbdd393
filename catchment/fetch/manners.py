"""How one process treats others' hosts: not too many requests at once, not too close together, none where it was told
to stay away. Deployment-wide budgets are apart, in `budgets`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Condition, Lock


class Turns:
    """When each host may be asked next: a burst at once, then one by one."""

    def __init__(self, per_second: float, burst: int, longest_wait: timedelta) -> None:
        """`per_second` 0: every turn is now."""
        self._spacing = timedelta(seconds=1 / per_second if per_second else 0)
        self._longest_wait = longest_wait
        self._ahead = self._spacing * (burst - 1)
        """How far turns may run ahead of their spacing."""
        self._next: dict[str, datetime] = {}
        """By host: when its next turn would be if all had been spaced."""
        self._lock = Lock()

    def take(self, host: str, now: datetime) -> timedelta:
        """How long to wait for this turn. A turn that is further away than the longest wait is not taken."""
        with self._lock:
            # Nothing further ahead was ever handed out: if it is, the clock was set back, and it is not believed.
            furthest = now + self._ahead + self._longest_wait + self._spacing
            turn = min(max(self._next.get(host, now), now), furthest)
            wait = max(turn - self._ahead - now, timedelta(0))
            self._next[host] = turn + self._spacing if wait <= self._longest_wait else turn
            return wait


class Pauses:
    """What was told to be left alone (a host, a credential, a platform), and until when."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._until)

    def begin(self, what: str, until: datetime) -> None:
        """The later end wins: a second answer of the same burst must not shorten what the first one said."""
        with self._lock:
            self._until[what] = max(until, self._until.get(what, until))

    def until(self, what: str, now: datetime) -> datetime | None:
        """None: it may be asked."""
        with self._lock:
            until = self._until.get(what)
            if until is None or now < until:
                return until
            del self._until[what]
            return None


class Slots:
    """So many at once, for each name. A slot is waited for on the wall: it is freed by a transfer that ends there."""

    def __init__(self, longest_wait_seconds: float, is_stopped: Callable[[], bool]) -> None:
        self._longest_wait_seconds, self._is_stopped = longest_wait_seconds, is_stopped
        self._used: dict[str, int] = {}
        self._freed = Condition()

    @contextmanager
    def one_of(self, name: str, count: int) -> Iterator[bool]:
        """Hold a slot. False: none came free in time, or a stop was asked for; nothing is held then."""
        is_held = self._take(name, count)
        try:
            yield is_held
        finally:
            if is_held:
                self._free(name)

    def _take(self, name: str, count: int) -> bool:
        give_up_at = time.monotonic() + self._longest_wait_seconds
        with self._freed:
            while self._used.get(name, 0) >= count:
                left = give_up_at - time.monotonic()
                if left <= 0 or self._is_stopped():
                    return False
                # In short stretches: a stop does not wake a condition.
                self._freed.wait(min(left, 0.1))
            self._used[name] = self._used.get(name, 0) + 1
            return True

    def _free(self, name: str) -> None:
        with self._freed:
            self._used[name] -= 1
            if not self._used[name]:
                del self._used[name]
            self._freed.notify_all()
