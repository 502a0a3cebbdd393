"""Throttle before every exchange: waits until there is no cooldown, a slot is free, it is our turn and the budget has a
token. A wait that is too long is refused instead, with the time at which to come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from threading import Condition, Event, Lock
from typing import NamedTuple

from catchment.clock import Clock
from catchment.errors import PlatformError, SlowDown, Stopped
from catchment.fetch.address_guard import is_own
from catchment.fetch.budgets import Budgets, Tokens, key
from catchment.fetch.responses import is_used_up, told_to_wait_until
from catchment.fetch.settings import FetchPlatform, FetchSettings
from catchment.fetch.urls import ParsedUrl
from catchment.messages import Message, message
from catchment.model import Answer, Budget, FailureScope


class HostPacing:
    """When each host may be requested next: a burst at once, then one by one."""

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
        """Returns how long to wait for this turn. A turn that is further away than the longest wait is not taken."""
        with self._lock:
            # Nothing further ahead was ever handed out: if it is, the clock was set back, and the value is ignored.
            furthest = now + self._ahead + self._longest_wait + self._spacing
            turn = min(max(self._next.get(host, now), now), furthest)
            wait = max(turn - self._ahead - now, timedelta(0))
            self._next[host] = turn + self._spacing if wait <= self._longest_wait else turn
            return wait


class Cooldowns:
    """Cooldowns (of a host, a credential, a platform), with their ends."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._until)

    def begin(self, what: str, until: datetime) -> None:
        """Starts a cooldown. The later end wins: a second answer of a burst must not shorten the first one's."""
        with self._lock:
            self._until[what] = max(until, self._until.get(what, until))

    def until(self, what: str, now: datetime) -> datetime | None:
        """Returns the end of the cooldown; None: there is none."""
        with self._lock:
            until = self._until.get(what)
            if until is None or now < until:
                return until
            del self._until[what]
            return None


class Slots:
    """A limited number of slots for each name. Waits by real time: a transfer that ends frees a slot in real time."""

    def __init__(self, longest_wait_seconds: float, is_stopped: Callable[[], bool]) -> None:
        self._longest_wait_seconds, self._is_stopped = longest_wait_seconds, is_stopped
        self._used: dict[str, int] = {}
        self._freed = Condition()

    @contextmanager
    def one_of(self, name: str, count: int) -> Iterator[bool]:
        """Holds a slot. Yields False if none came free in time, or a stop was requested; nothing is held then."""
        give_up_at = time.monotonic() + self._longest_wait_seconds
        with self._freed:
            while not (is_free := self._used.get(name, 0) < count):
                left = give_up_at - time.monotonic()
                if left <= 0 or self._is_stopped():
                    break
                # In short stretches: a stop does not wake a condition.
                self._freed.wait(min(left, 0.1))
            if is_free:
                self._used[name] = self._used.get(name, 0) + 1
        try:
            yield is_free
        finally:
            if is_free:
                with self._freed:
                    self._used[name] -= 1
                    if not self._used[name]:
                        del self._used[name]
                    self._freed.notify_all()


class Slot(NamedTuple):
    """Platform, host and credential of an exchange."""

    platform: FetchPlatform
    credential: str | None
    place: ParsedUrl
    budget: Budget | None = None
    """The request's own budget, besides the platform's."""

    @property
    def is_at_home(self) -> bool:
        """Whether it goes to the platform's own hosts; where sources have their own, all of them count as such."""
        return not self.platform.HOSTS or self.place.host in self.platform.HOSTS

    @property
    def counted_by(self) -> FailureScope:
        """Returns the scope of "too many requests": the credential, where the platform counts by it."""
        budget = self.platform.BUDGET
        return FailureScope.CREDENTIAL if budget is not None and budget.is_per_credential else FailureScope.HOST

    @property
    def pausable(self) -> dict[FailureScope, str]:
        """Returns what may be in cooldown, with its name in words."""
        host = f"host {self.place.site}"
        return {
            FailureScope.PLATFORM: f"platform {self.platform.NAME}",
            FailureScope.HOST: host,
            # Without a credential, the host identifies us.
            FailureScope.CREDENTIAL: f"credential {self.credential}" if self.credential else host,
        }


RACES = 12
"""How many times as long to wait for a budget whose window is shorter than the longest wait."""


class Throttle:
    def __init__(self, settings: FetchSettings, clock: Clock, stop: Event, budgets: Budgets) -> None:
        self._settings, self._clock, self._stop = settings, clock, stop
        self._longest_wait = timedelta(seconds=settings.longest_wait_seconds)
        self._pause = timedelta(seconds=settings.pause_seconds)
        self._pauses = Cooldowns()
        self._slots = Slots(settings.longest_wait_seconds, stop.is_set)
        self._turns = HostPacing(settings.per_host_per_second, settings.per_host_burst, self._longest_wait)
        self._tokens = Tokens(budgets, clock)

    @contextmanager
    def admission(self, slot: Slot, is_operators: bool) -> Iterator[None]:
        """Waits until one exchange may be made, within the context."""
        if self._stop.is_set():
            raise _stopped()
        if self._pauses:
            self._check_pauses(slot)
        budget = self._settings.budget(slot.platform) if slot.is_at_home else None
        if budget is None and slot.budget is None and (is_operators or is_own(slot.place.host)):
            # Own machines need no politeness.
            yield
            return
        # A platform's declared budget replaces our general caution.
        budget = budget and budget.of(slot.credential)
        name = f"budget {key(budget, slot.credential)}" if budget else f"host {slot.place.site}"
        count = budget.concurrency if budget else self._settings.per_host_concurrency
        with nullcontext(True) if count is None else self._slots.one_of(name, count) as is_held:
            if not is_held:
                if self._stop.is_set():
                    raise _stopped()
                raise _not_now(message("wait.enough"), self._clock.now() + self._longest_wait)
            if budget is None and not (is_operators or is_own(slot.place.host)):
                self._wait_for_turn(slot.place.site)
            # The tokens come last: they live for a few seconds only.
            if budgets := [limit for limit in (slot.budget, budget) if limit is not None]:
                self._wait_for_tokens(budgets, slot.credential)
            yield

    def keep_distance(self, place: ParsedUrl, wait: timedelta, is_operators: bool) -> None:
        """Waits as long as the site asks for between two pages; own machines are requested as fast as they answer."""
        if not wait or is_operators or is_own(place.host):
            return
        if wait > self._longest_wait:
            raise _not_now(message("wait.between_pages", name=place.site), self._clock.now() + wait)
        self.wait(wait.total_seconds())

    def wait(self, seconds: float) -> None:
        if self._clock.wait(seconds, self._stop):
            raise _stopped()

    def start_cooldown(self, slot: Slot, blamed: FailureScope, error: PlatformError) -> None:
        """Starts a cooldown of the blamed scope, until the time in the error."""
        until = error.retry_at
        if until is None and isinstance(error, SlowDown):
            until = self._clock.now() + self._pause
        if until is not None and blamed is not FailureScope.REQUEST:
            self._pauses.begin(slot.pausable[blamed], until)

    def note_limits(self, slot: Slot, answer: Answer) -> None:
        """Starts a cooldown when the rate-limit headers of a good answer say that the window is exhausted."""
        if is_used_up(answer.headers):
            until = told_to_wait_until(answer.headers, answer.answered_at)
            if until is not None:
                self._pauses.begin(slot.pausable[slot.counted_by], until)

    def _check_pauses(self, slot: Slot) -> None:
        now = self._clock.now()
        for blamed, name in slot.pausable.items():
            until = self._pauses.until(name, now)
            if until is not None:
                is_credentials = blamed is FailureScope.CREDENTIAL and slot.credential is not None
                raise _not_now(message("wait.asked", name=name), until, is_credentials=is_credentials)

    def _wait_for_turn(self, site: str) -> None:
        now = self._clock.now()
        wait = self._turns.take(site, now)
        if wait > self._longest_wait:
            raise _not_now(message("wait.busy", name=site), now + wait)
        if wait:
            self.wait(wait.total_seconds())

    def _wait_for_tokens(self, budgets: Sequence[Budget], credential: str | None) -> None:
        # A window of a second opens again at once, for whoever asks first: to lose some of these races is no reason to
        # put a walk of many pages off.
        is_soon_open = all(budget.window_seconds <= self._longest_wait.total_seconds() for budget in budgets)
        # The next turn of a pace: its window, and the margin to it.
        paces = (timedelta(seconds=1.2 * budget.window_seconds) for budget in budgets if budget.is_pace)
        give_up_at = self._clock.now() + max(self._longest_wait * (RACES if is_soon_open else 1), *paces, timedelta())
        while True:
            missing = self._tokens.take_each(budgets, credential, self._clock.now())
            if missing is None:
                return
            (budget, until), now = missing, self._clock.now()
            # A token that came too late, or a wait that is over by now, is not a reason to give up: a new one is
            # requested.
            if until > max(now, give_up_at):
                is_credentials = budget.is_per_credential and credential is not None
                raise _not_now(message("wait.budget", name=budget.name), until, is_credentials=is_credentials)
            self.wait((until - now).total_seconds())


def _not_now(what: Message, until: datetime, *, is_credentials: bool = False) -> SlowDown:
    error = SlowDown(
        "{subject} until {until} UTC",
        "collecting then continues automatically",
        retry_at=until,
        subject=what,
        until=f"{until:%Y-%m-%d %H:%M:%S}",
    )
    error.is_credentials = is_credentials
    return error


def _stopped() -> Stopped:
    return Stopped("a stop was requested", "the work continues next time")
