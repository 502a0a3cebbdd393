"""The gate before every exchange. It opens when nobody asked to be left alone, a slot is free, it is our turn, and the
budget has a token; a wait that is too long is refused instead, with the time at which to come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event
from typing import NamedTuple

from catchment.clock import Clock
from catchment.errors import PlatformError, SlowDown, Stopped
from catchment.fetch.budgets import Budgets, Tokens, key
from catchment.fetch.guard import is_own
from catchment.fetch.manners import Pauses, Slots, Turns
from catchment.fetch.platform import Platform
from catchment.fetch.refusals import is_used_up, told_to_wait_until
from catchment.fetch.settings import FetchSettings
from catchment.fetch.urls import Place
from catchment.model import Answer, Blame, Budget


class Visit(NamedTuple):
    """Who goes where."""

    platform: Platform
    credential: str | None
    place: Place

    @property
    def is_at_home(self) -> bool:
        """Whether it goes to the platform's own hosts; where sources bring theirs, all of them are."""
        return not self.platform.HOSTS or self.place.host in self.platform.HOSTS

    @property
    def counted_by(self) -> Blame:
        """Who is meant by "too many requests": the credential, where the platform counts by it."""
        budget = self.platform.BUDGET
        return Blame.CREDENTIAL if budget is not None and budget.is_per_credential else Blame.HOST

    @property
    def pausable(self) -> dict[Blame, str]:
        """What of it may have asked to be left alone, in words."""
        host = f"host {self.place.site}"
        return {
            Blame.PLATFORM: f"platform {self.platform.NAME}",
            Blame.HOST: host,
            # Without a credential it is the host that knows us.
            Blame.CREDENTIAL: f"credential {self.credential}" if self.credential else host,
        }


class Gate:
    def __init__(self, settings: FetchSettings, clock: Clock, stop: Event, budgets: Budgets) -> None:
        self._settings, self._clock, self._stop = settings, clock, stop
        self._longest_wait = timedelta(seconds=settings.longest_wait_seconds)
        self._pause = timedelta(seconds=settings.pause_seconds)
        self._pauses = Pauses()
        self._slots = Slots(settings.longest_wait_seconds, stop.is_set)
        self._turns = Turns(settings.per_host_per_second, settings.per_host_burst, self._longest_wait)
        self._tokens = Tokens(budgets)

    @contextmanager
    def passed(self, visit: Visit, is_operators: bool) -> Iterator[None]:
        """Inside it, one exchange may be made."""
        self._check_stop()
        self._check_pauses(visit)
        budget = self._budget(visit)
        if budget is not None:
            # What a platform declares takes the place of our general caution.
            with self._slot(f"budget {key(budget, visit.credential)}", budget.concurrency):
                # The token comes last: it lives for a few seconds only.
                self._wait_for_token(budget, visit.credential)
                yield
        elif is_operators or is_own(visit.place.host):
            # Own machines need no politeness.
            yield
        else:
            with self._slot(f"host {visit.place.site}", self._settings.per_host_concurrency):
                self._wait_for_turn(visit.place.site)
                yield

    def _budget(self, visit: Visit) -> Budget | None:
        """The declared budget that this visit uses: the platform's, but only at its own hosts."""
        budget = self._settings.budget(visit.platform) if visit.is_at_home else None
        return budget and budget.of(visit.credential)

    def keep_distance(self, place: Place, wait: timedelta, is_operators: bool) -> None:
        """Wait as long as the site asks for between two pages; own machines are asked as fast as they answer."""
        if not wait or is_operators or is_own(place.host):
            return
        if wait > self._longest_wait:
            raise _not_now(f"{place.site} asks for a pause between two pages", self._clock.now() + wait)
        self.wait(wait.total_seconds())

    def wait(self, seconds: float) -> None:
        if self._clock.wait(seconds, self._stop):
            raise _stopped()

    def leave_alone(self, visit: Visit, blamed: Blame, error: PlatformError) -> None:
        """From now on refuse whatever has to do with the blamed one, until the time that the error tells."""
        until = error.retry_at
        if until is None and isinstance(error, SlowDown):
            until = self._clock.now() + self._pause
        if until is not None and blamed is not Blame.REQUEST:
            self._pauses.begin(visit.pausable[blamed], until)

    def heed(self, visit: Visit, answer: Answer) -> None:
        """A good answer that says "this was the last one for now" is believed before the next one is refused."""
        if is_used_up(answer.headers):
            until = told_to_wait_until(answer.headers, answer.answered_at)
            if until is not None:
                self._pauses.begin(visit.pausable[visit.counted_by], until)

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _stopped()

    def _check_pauses(self, visit: Visit) -> None:
        if not self._pauses:
            return
        now = self._clock.now()
        for blamed, name in visit.pausable.items():
            until = self._pauses.until(name, now)
            if until is not None:
                is_credentials = blamed is Blame.CREDENTIAL and visit.credential is not None
                raise _not_now(f"{name} asked to be left alone", until, is_credentials=is_credentials)

    @contextmanager
    def _slot(self, name: str, count: int | None) -> Iterator[None]:
        if count is None:
            yield
            return
        with self._slots.one_of(name, count) as is_held:
            if not is_held:
                self._check_stop()
                raise _not_now("enough requests are under way", self._clock.now() + self._longest_wait)
            yield

    def _wait_for_turn(self, site: str) -> None:
        now = self._clock.now()
        wait = self._turns.take(site, now)
        if wait > self._longest_wait:
            raise _not_now(f"{site} is asked by others just now", now + wait)
        if wait:
            self.wait(wait.total_seconds())

    def _wait_for_token(self, budget: Budget, credential: str | None) -> None:
        give_up_at = self._clock.now() + self._longest_wait
        while True:
            now = self._clock.now()
            until = self._tokens.take(budget, credential, now)
            if until is None:
                return
            if until > give_up_at:
                is_credentials = budget.is_per_credential and credential is not None
                raise _not_now(f"the budget of {budget.name} is used up", until, is_credentials=is_credentials)
            self.wait((until - now).total_seconds())


def _not_now(what: str, until: datetime, *, is_credentials: bool = False) -> SlowDown:
    error = SlowDown(f"{what} until {until:%Y-%m-%d %H:%M:%S} UTC", "it goes on by itself then", retry_at=until)
    error.is_credentials = is_credentials
    return error


def _stopped() -> Stopped:
    return Stopped("a stop was asked for", "the work goes on next time")
