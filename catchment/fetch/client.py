"""Asking a platform: every rule of good conduct around one exchange, in the order in which they matter."""

from __future__ import annotations

import random as chance
import secrets as unguessable
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event

from catchment.clock import Clock
from catchment.errors import (
    AddressRefused,
    InvalidInput,
    LoginNeeded,
    NetworkError,
    PlatformError,
    ServerTrouble,
    SlowDown,
    Stopped,
    TimedOut,
)
from catchment.fetch.budgets import Budgets, Tokens, key
from catchment.fetch.guard import is_own
from catchment.fetch.identity import Secret, cookie_header, dressed, with_cookies
from catchment.fetch.manners import Pauses, Slots, Turns
from catchment.fetch.redirects import REDIRECTS, Step, Way, next_step
from catchment.fetch.refusals import http_refusal, is_used_up, told_to_wait_until
from catchment.fetch.settings import Attempt, FetchSettings
from catchment.fetch.urls import Place, placed, routed, with_params
from catchment.fetch.wire import COMMON_HEADERS, Came, Sending, Wires
from catchment.model import Answer, Blame, Budget, Cure, Identity, Refusal, Request
from catchment.platforms import Platform

_JITTER = 0.1
"""Waits grow by up to this share, so that sources which failed together do not come back together."""
Dress = Callable[[Request, Secret | None, datetime, str], Request]
"""A platform's own way to put a credential on: request, secret, now, a nonce."""
_TRIED_AGAIN = (NetworkError, TimedOut, ServerTrouble, SlowDown)


class Errand:
    """One call: what is asked of whom, and what was tried for it so far."""

    def __init__(self, request: Request, platform: Platform, attempts: list[Attempt]) -> None:
        self.request, self.platform, self.attempts = request, platform, attempts
        self.is_cure_tried = False


class Fetch:
    """The only door to a platform. One for a process; its threads share it."""

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        *,
        stop: Event,
        budgets: Budgets,
        secrets: Callable[[str], Secret],
        cut: Event | None = None,
        random: Callable[[], float] = chance.random,
        nonce: Callable[[], str] = unguessable.token_hex,
    ) -> None:
        """`stop` lets a transfer finish within its grace; `cut` ends it at once."""
        self._settings, self._clock, self._secrets = settings, clock, secrets
        self._stop, self._cut, self._stopping_since = stop, cut or Event(), 0.0
        self._random, self._nonce = random, nonce
        self._tokens = Tokens(budgets)
        self._wires = Wires(settings, self._is_cut)
        self._pauses = Pauses()
        self._slots = Slots(settings.longest_wait_seconds, stop.is_set)
        self._longest_wait = timedelta(seconds=settings.longest_wait_seconds)
        self._turns = Turns(settings.per_host_per_second, settings.per_host_burst, self._longest_wait)
        self._cured_cookies: dict[tuple[str, str | None, str], str] = {}

    def __call__(self, request: Request, platform: Platform, *, subject: str, attempts: list[Attempt]) -> Answer:
        """The platform's answer. Raises the error that says what happened to `subject`, or Stopped.

        Every attempt that was really sent is added to `attempts`, those of a failed call too.
        """
        try:
            return self._answer(Errand(request, platform, attempts))
        except PlatformError as error:
            raise _about(subject, error) from error

    def close(self) -> None:
        self._wires.close()

    # ── trying, and trying again ──────────────────────────────────────────────────────────────────────────────────

    def _answer(self, errand: Errand) -> Answer:
        for wait_seconds in self._settings.retry_waits:
            try:
                return self._attempt(errand)
            except _TRIED_AGAIN as error:
                self._wait_before_next(error, wait_seconds)
        return self._attempt(errand)

    def _wait_before_next(self, error: PlatformError, seconds: float) -> None:
        """Wait as told, or as planned. A wait that is too long, or that nobody can tell, ends the call."""
        if isinstance(error, SlowDown) and (error.retry_at is None or error.status is None):
            # Without a status the error is our own restraint: it was waited for as long as was sensible.
            raise error
        seconds *= 1 + _JITTER * self._random()
        now = self._clock.now()
        if error.retry_at is not None:
            seconds = max(seconds, (error.retry_at - now).total_seconds())
        if seconds > self._settings.longest_wait_seconds:
            error.retry_at = now + timedelta(seconds=seconds)
            raise error
        self._wait(seconds)

    def _attempt(self, errand: Errand) -> Answer:
        answer = self._follow(errand)
        refusal = self._refusal(answer, errand)
        if refusal is not None and refusal.cure is not None and not errand.is_cure_tried:
            self._take(refusal.cure, errand)
            answer = self._follow(errand)
            refusal = self._refusal(answer, errand)
        if refusal is not None:
            self._leave_alone(refusal, answer, errand)
            raise refusal.error
        self._heed(answer, errand)
        return answer

    def _refusal(self, answer: Answer, errand: Errand) -> Refusal | None:
        refusal = errand.platform.refusal(answer, errand.request)
        if refusal is None:
            error = http_refusal(answer, answer.answered_at)
            blames = _blamed(errand) if isinstance(error, SlowDown) else Blame.REQUEST
            return Refusal(error, blames) if error is not None else None
        error = refusal.error
        error.status = error.status or answer.status
        if isinstance(error, SlowDown):
            error.retry_at = error.retry_at or told_to_wait_until(answer.headers, answer.answered_at)
        return refusal

    def _take(self, cure: Cure, errand: Errand) -> None:
        """Go on with the cured request. Its cookies are kept: the next request need not be refused first."""
        errand.is_cure_tried = True
        request = cure.repeat or errand.request
        errand.request = request.plus(headers={**request.headers, **cure.headers})
        if cure.cookies:
            self._cured_cookies[self._jar(errand)] = cookie_header(cure.cookies)

    @staticmethod
    def _jar(errand: Errand) -> tuple[str, str | None, str]:
        return errand.platform.NAME, errand.request.credential, placed(errand.request.url).site

    # ── what was told to be left alone ────────────────────────────────────────────────────────────────────────────

    def _leave_alone(self, refusal: Refusal, answer: Answer, errand: Errand) -> None:
        until = refusal.error.retry_at
        if until is None and isinstance(refusal.error, SlowDown):
            until = self._clock.now() + timedelta(seconds=self._settings.pause_seconds)
        if until is not None and refusal.blames is not Blame.REQUEST:
            self._pauses.begin(_pausable(errand, placed(answer.url))[refusal.blames], until)

    def _heed(self, answer: Answer, errand: Errand) -> None:
        """A good answer that says "this was the last one for now" is believed before the next one is refused."""
        if is_used_up(answer.headers):
            until = told_to_wait_until(answer.headers, answer.answered_at)
            if until is not None:
                self._pauses.begin(_pausable(errand, placed(answer.url))[_blamed(errand)], until)

    def _check_pauses(self, errand: Errand, place: Place) -> None:
        if not self._pauses:
            return
        now = self._clock.now()
        for name in _pausable(errand, place).values():
            until = self._pauses.until(name, now)
            if until is not None:
                raise _not_now(f"{name} asked to be left alone", until)

    # ── the way to an answer ──────────────────────────────────────────────────────────────────────────────────────

    def _follow(self, errand: Errand) -> Answer:
        """Send the request, and follow where it is redirected to."""
        step, way = self._first_step(errand)
        give_up_at = time.monotonic() + (errand.request.timeout_seconds or self._settings.timeout_seconds)
        seen = {step.place.url}
        for number in range(self._settings.max_redirects + 1):
            came = self._send(step, errand, give_up_at if number else None)
            location = came.headers.get("location") if came.status in REDIRECTS else None
            if location is None:
                url = way.shown(step.place)
                moved_to = url if number and step.is_permanent else None
                return Answer(came.status, came.headers, came.body, url, self._clock.now(), moved_to)
            step = next_step(step, came.status, location, way)
            if step.place.url in seen and step.method == "GET":
                raise AddressRefused(f"{step.place.host} redirects in a circle", "check the address in a browser")
            seen.add(step.place.url)
        raise AddressRefused(f"more than {self._settings.max_redirects} redirects", "check the address in a browser")

    def _first_step(self, errand: Errand) -> tuple[Step, Way]:
        platform, request = errand.platform, errand.request
        asked = self._dressed(errand)
        added = {name: value for name, value in asked.params.items() if request.params.get(name) != value}
        way = Way(self._settings.base_urls.get(platform.NAME), platform.HOSTS, added)
        place = placed(with_params(asked.url, asked.params))
        return Step(place, routed(place, way.base_url, way.hosts), asked.method, asked.headers, asked.body), way

    def _dressed(self, errand: Errand) -> Request:
        request = errand.request
        if request.identity is Identity.NEEDED and request.credential is None:
            raise LoginNeeded("it can only be read with a login", "add a credential and name it in the source")
        if self._cured_cookies and (cookies := self._cured_cookies.get(self._jar(errand))):
            request = with_cookies(request, cookies)
        secret = self._secrets(request.credential) if request.credential is not None else None
        dress: Dress | None = getattr(errand.platform, "dress", None)
        if dress is not None:
            return dress(request, secret, self._clock.now(), self._nonce())
        return dressed(request, secret) if secret is not None else request

    # ── one exchange ──────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, step: Step, errand: Errand, give_up_at: float | None) -> Came:
        """Exchange when all agree: nobody asked for peace, a slot is free, it is our turn, the budget has a token."""
        self._check_stop()
        self._check_pauses(errand, step.place)
        budget = errand.platform.BUDGET if _is_counted(step, errand.platform) else None
        if budget is not None:
            return self._send_within(budget, step, errand, give_up_at)
        if step.route.is_operators or is_own(step.place.host):
            # Own machines need no politeness.
            return self._exchange(step, errand, give_up_at)
        with self._slot(f"host {step.place.site}", self._settings.per_host_concurrency):
            self._wait_for_turn(step.place.site)
            return self._exchange(step, errand, give_up_at)

    def _send_within(self, budget: Budget, step: Step, errand: Errand, give_up_at: float | None) -> Came:
        """A platform that declares what it bears knows better than our general caution."""
        credential = errand.request.credential
        with self._slot(f"budget {key(budget, credential)}", budget.concurrency or sys.maxsize):
            # The token comes last: it lives for a few seconds only.
            self._wait_for_token(budget, credential)
            return self._exchange(step, errand, give_up_at)

    @contextmanager
    def _slot(self, name: str, count: int) -> Iterator[None]:
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
            self._wait(wait.total_seconds())

    def _wait_for_token(self, budget: Budget, credential: str | None) -> None:
        give_up_at = self._clock.now() + self._longest_wait
        while True:
            now = self._clock.now()
            until = self._tokens.take(budget, credential, now)
            if until is None:
                return
            if until > give_up_at:
                raise _not_now(f"the budget of {budget.name} is used up", until)
            self._wait((until - now).total_seconds())

    def _exchange(self, step: Step, errand: Errand, give_up_at: float | None) -> Came:
        sending = self._sending(step, errand.request, give_up_at)
        wire = self._wires.mine(is_guarded=not step.route.is_operators)
        at, begun = self._clock.now(), time.perf_counter()
        outcome = "INTERNAL"
        try:
            came = wire.exchange(sending)
            outcome = str(came.status)
            return came
        except (PlatformError, Stopped) as error:
            outcome = error.code
            raise
        finally:
            errand.attempts.append(Attempt(errand.platform.NAME, at, outcome, time.perf_counter() - begun))

    def _sending(self, step: Step, request: Request, give_up_at: float | None) -> Sending:
        settings = self._settings
        timeout = request.timeout_seconds or settings.timeout_seconds
        return Sending(
            url=step.route.url,
            host=step.place.host,
            method=step.method,
            headers=[*COMMON_HEADERS, *(_header_line(name, value) for name, value in step.headers.items())],
            body=step.body,
            # The first step has the whole time: a round figure, which need not be set anew for each request.
            timeout_seconds=timeout if give_up_at is None else max(0.001, give_up_at - time.monotonic()),
            max_bytes=request.max_bytes or settings.max_bytes,
            max_wire_bytes=request.max_bytes or settings.max_wire_bytes,
        )

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _stopped()

    def _wait(self, seconds: float) -> None:
        if self._clock.wait(seconds, self._stop):
            raise _stopped()

    def _is_cut(self) -> bool:
        """Whether transfers must end now. Asked many times a second, by each of them."""
        if self._cut.is_set():
            return True
        if not self._stop.is_set():
            return False
        # Wall time: sockets know no other.
        self._stopping_since = self._stopping_since or time.monotonic()
        return time.monotonic() - self._stopping_since >= self._settings.stop_grace_seconds


def _about(subject: str, error: PlatformError) -> PlatformError:
    """The same error, saying whom it is about."""
    return type(error)(f"{subject}: {error.what}", error.helps, status=error.status, retry_at=error.retry_at)


def _blamed(errand: Errand) -> Blame:
    """Who is meant by "too many requests": the credential, if the platform counts by it."""
    budget = errand.platform.BUDGET
    return Blame.CREDENTIAL if budget is not None and budget.is_per_credential else Blame.HOST


def _pausable(errand: Errand, place: Place) -> dict[Blame, str]:
    """What of this errand may have been told to be left alone, in words."""
    host, credential = f"host {place.site}", errand.request.credential
    return {
        Blame.PLATFORM: f"platform {errand.platform.NAME}",
        Blame.HOST: host,
        # Without a credential it is the host that knows us.
        Blame.CREDENTIAL: f"credential {credential}" if credential else host,
    }


def _is_counted(step: Step, platform: Platform) -> bool:
    """Whether a step is at the platform's own hosts: only there its budget is used."""
    return not platform.HOSTS or step.place.host in platform.HOSTS


def _not_now(what: str, until: datetime) -> SlowDown:
    return SlowDown(f"{what} until {until:%Y-%m-%d %H:%M:%S} UTC", "it goes on by itself then", retry_at=until)


def _stopped() -> Stopped:
    return Stopped("a stop was asked for", "the work goes on next time")


def _header_line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\n" in line or "\r" in line:
        raise InvalidInput(f"the header {name[:40]!r} has a line break in it", "check the source's settings")
    # Latin-1 is how headers are read: what a server gave (an ETag) goes back to it byte by byte.
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode()
