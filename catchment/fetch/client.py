"""Asking a platform: as whom, by which way, and what to do when the answer is none."""

from __future__ import annotations

import random as chance
import secrets as unguessable
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

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
from catchment.fetch.budgets import Budgets
from catchment.fetch.gate import Gate, Visit
from catchment.fetch.identity import (
    Credentials,
    Logins,
    cookie_header,
    dressed,
    with_cookies,
    with_token,
    without_secrets,
)
from catchment.fetch.platform import Dress, Login, Platform, ReadToken
from catchment.fetch.redirects import REDIRECTS, Step, Way, next_step
from catchment.fetch.refusals import http_refusal, told_to_wait_until
from catchment.fetch.robots import Robots
from catchment.fetch.settings import Attempt, FetchSettings
from catchment.fetch.urls import Place, placed, routed, with_params
from catchment.fetch.wire import COMMON_HEADERS, Came, Sending, Wires
from catchment.logs import know_secret
from catchment.model import Answer, Blame, CredentialSettings, Identity, Refusal, Request, Token
from catchment.vault.pool import Use
from catchment.vault.secret import Secret

_JITTER = 0.1
"""Waits grow by up to this share, so that sources which failed together do not come back together."""
_TRIED_AGAIN = (NetworkError, TimedOut, ServerTrouble, SlowDown)


class Errand:
    """One call: what is asked of whom, and what was tried for it so far."""

    def __init__(
        self, request: Request, platform: Platform, attempts: list[Attempt], *, obeys_robots: bool = True
    ) -> None:
        self.asked, self.platform, self.attempts = request, platform, attempts
        self.request = request
        """As it stands by now: cured, and as somebody."""
        self.use: Use | None = None
        """The credential that it is sent with."""
        self.token: Token | None = None
        """What a login with that has yielded."""
        self.obeys_robots = obeys_robots and bool(getattr(platform, "OBEYS_ROBOTS", False))
        """Every place on the way is one that robots.txt may forbid."""
        self.is_cure_tried = False
        self.is_renewal_tried = False

    def become(self, use: Use | None) -> None:
        """Be sent with this credential from here on, or with none."""
        if self.use is None or use is None or self.use.name != use.name:
            self.token, self.is_renewal_tried = None, False
        self.use, self.request = use, self.request.plus(credential=use.name if use else None)

    def visit(self, place: Place) -> Visit:
        return Visit(self.platform, self.request.credential, place)


class Fetch:
    """The only door to a platform. One for a process; its threads share it."""

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        *,
        stop: Event,
        budgets: Budgets,
        credentials: Credentials,
        cut: Event | None = None,
        random: Callable[[], float] = chance.random,
        nonce: Callable[[], str] = unguessable.token_hex,
    ) -> None:
        """`stop` lets a transfer finish within its grace; `cut` ends it at once."""
        self._settings, self._clock, self._credentials = settings, clock, credentials
        self._stop, self._cut, self._stopping_since = stop, cut or Event(), 0.0
        self._random, self._nonce = random, nonce
        self._gate = Gate(settings, clock, stop, budgets)
        self._robots: dict[str, Robots] = {}
        """By what we call ourselves: a site may have a rule for that name."""
        self._wires = Wires(settings, self._is_cut)
        self._logins = Logins()
        self._cured_cookies: dict[tuple[str, str | None, str], str] = {}

    def __call__(self, request: Request, platform: Platform, *, subject: str, attempts: list[Attempt]) -> Answer:
        """The platform's answer. Raises the error that says what happened to `subject`, or Stopped.

        Every exchange that was begun is added to `attempts`, those of a failed call too.
        """
        try:
            return self._answer(Errand(request, platform, attempts))
        except PlatformError as error:
            raise _retold(error, about=subject) from error

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
            raise _retold(error, retry_at=now + timedelta(seconds=seconds))
        self._gate.wait(seconds)

    def _attempt(self, errand: Errand) -> Answer:
        try:
            answer = self._accepted(errand)
        except PlatformError as error:
            # "Too many requests" is nobody's fault but ours.
            if errand.use is not None and error.is_credentials and not isinstance(error, SlowDown):
                self._credentials.failed(errand.use, error)
            raise
        if errand.use is not None:
            self._credentials.succeeded(errand.use)
        return answer

    def _accepted(self, errand: Errand) -> Answer:
        answer = self._followed_as_somebody(errand)
        refusal = _refusal(answer, errand)
        # Both can help only once, so this ends.
        while refusal is not None and (self._is_cured(refusal, errand) or self._is_token_given_up(refusal, errand)):
            answer = self._follow(errand)
            refusal = _refusal(answer, errand)
        self._accept(answer, refusal, errand)
        return answer

    def _followed_as_somebody(self, errand: Errand) -> Answer:
        """With the best of the pool; while that one has used up its share, with the next best."""
        busy: dict[str, SlowDown] = {}
        while True:
            self._identify(errand, busy)
            try:
                return self._follow(errand)
            except SlowDown as error:
                use = errand.use
                # With a status it is an answer, not our own restraint.
                if use is None or not use.is_pooled or not error.is_credentials or error.status is not None:
                    raise
                busy[use.name] = error

    def _identify(self, errand: Errand, busy: Mapping[str, SlowDown]) -> None:
        """Find out as whom to ask. Raises if that must be somebody and there is nobody."""
        asked, platform = errand.asked, errand.platform
        use = None
        if asked.credential is not None or self._has_pool(errand):
            use = self._credentials.take(platform.NAME, asked.credential, busy)
        errand.become(use)
        if use is not None:
            return
        if busy:
            raise min(busy.values(), key=_comes_back)
        if asked.identity is Identity.NEEDED:
            raise LoginNeeded("it can only be read with a login", _how_to_log_in(platform))

    @staticmethod
    def _has_pool(errand: Errand) -> bool:
        """Credentials of a pool are for the platform's own hosts; where sources bring theirs, they name one."""
        asked, hosts = errand.asked, errand.platform.HOSTS
        return asked.identity is not Identity.NONE and bool(hosts) and placed(asked.url).host in hosts

    def _accept(self, answer: Answer, refusal: Refusal | None, errand: Errand) -> None:
        """Draw the conclusions for those who come after, and raise what the answer really is, if it is none."""
        visit = errand.visit(placed(answer.url))
        if refusal is None:
            self._gate.heed(visit, answer)
        else:
            self._gate.leave_alone(visit, refusal.blames, refusal.error)
            refusal.error.is_beyond_request = refusal.blames is not Blame.REQUEST
            refusal.error.is_credentials = _blames_credential(refusal, errand)
            raise refusal.error

    def _is_cured(self, refusal: Refusal, errand: Errand) -> bool:
        """Whether the errand goes on with a cured request. Its cookies are kept: the next one need not be refused."""
        if refusal.cure is None or errand.is_cure_tried:
            return False
        errand.is_cure_tried = True
        cure, request = refusal.cure, refusal.cure.repeat or errand.request
        errand.request = request.plus(headers={**request.headers, **cure.headers})
        if cure.cookies:
            self._cured_cookies[self._jar(errand)] = cookie_header(cure.cookies)
        return True

    def _is_token_given_up(self, refusal: Refusal, errand: Errand) -> bool:
        """Whether the refused token was an old one. A new login may help then; it would not help twice."""
        if not isinstance(refusal.error, LoginNeeded) or errand.token is None or errand.is_renewal_tried:
            return False
        assert errand.use is not None
        errand.is_renewal_tried = True
        self._logins.forget(errand.platform.NAME, errand.use.name, errand.token)
        return True

    @staticmethod
    def _jar(errand: Errand) -> tuple[str, str | None, str]:
        return errand.platform.NAME, errand.request.credential, placed(errand.request.url).site

    # ── the way to an answer ──────────────────────────────────────────────────────────────────────────────────────

    def _follow(self, errand: Errand) -> Answer:
        """Send the request, and follow where it is redirected to."""
        step, way = self._first_step(errand)
        give_up_at = time.monotonic() + self._timeout(errand)
        seen = {(step.method, step.place.url)}
        for number in range(self._settings.max_redirects + 1):
            if errand.obeys_robots:
                self._obey(step, errand)
            with self._gate.passed(errand.visit(step.place), step.route.is_operators):
                came = self._exchange(step, errand, give_up_at if number else None)
            if errand.use is not None:
                came = without_secrets(came, errand.use.secret, errand.token)
            location = came.headers.get("location") if came.status in REDIRECTS else None
            if location is None:
                url = way.shown(step.place)
                moved_to = url if number and step.is_permanent else None
                return Answer(came.status, came.headers, came.body, url, self._clock.now(), moved_to)
            step = next_step(step, came.status, location, way)
            if (step.method, step.place.url) in seen:
                raise AddressRefused(f"{step.place.host} redirects in a circle", "check the address in a browser")
            seen.add((step.method, step.place.url))
        most = self._settings.max_redirects
        what = f"more than {most} redirects" if most else f"{step.place.host}: redirects are not followed here"
        raise AddressRefused(what, "check the address in a browser")

    def _obey(self, step: Step, errand: Errand) -> None:
        """Keep to what the site asks of programs; it is asked for that first."""

        def ask(request: Request) -> Answer:
            return self._follow(Errand(request, errand.platform, errand.attempts, obeys_robots=False))

        wait = self._robots_for(errand).check(step.place, self._clock.now(), ask)
        self._gate.keep_distance(step.place, wait, step.route.is_operators)

    def _robots_for(self, errand: Errand) -> Robots:
        name = self._settings.user_agent_for(errand.platform)
        longest_wait = timedelta(seconds=self._settings.longest_wait_seconds)
        return self._robots.get(name) or self._robots.setdefault(name, Robots(name, longest_wait))

    def _first_step(self, errand: Errand) -> tuple[Step, Way]:
        platform, request = errand.platform, errand.request
        asked = self._dressed(errand)
        added = {name: value for name, value in asked.params.items() if request.params.get(name) != value}
        way = Way(self._settings.base_urls.get(platform.NAME), platform.HOSTS, added)
        place = placed(with_params(asked.url, asked.params))
        return Step(place, routed(place, way.base_url, way.hosts), asked.method, asked.headers, asked.body), way

    def _dressed(self, errand: Errand) -> Request:
        request = errand.request
        if (name := self._settings.user_agent_for(errand.platform)) != self._settings.user_agent:
            request = request.plus(headers={"User-Agent": name, **request.headers})
        if self._cured_cookies and (cookies := self._cured_cookies.get(self._jar(errand))):
            request = with_cookies(request, cookies)
        secret = self._secret(errand, errand.use) if errand.use is not None else None
        dress: Dress | None = getattr(errand.platform, "dress", None)
        if dress is not None:
            return dress(request, secret, self._clock.now(), self._nonce())
        return dressed(request, secret) if secret is not None else request

    def _secret(self, errand: Errand, use: Use) -> Secret:
        """What the vault has for this credential; where the platform logs in with it, what the login yielded."""
        platform, secret, logins = errand.platform, use.secret, self._logins
        login: Login | None = getattr(platform, "login", None)
        if login is None:
            return secret
        with logins.one_at_a_time(platform.NAME, use.name):
            token = logins.token(platform.NAME, use.name, secret, self._clock.now())
            request = login(secret) if token is None else None
            if request is not None:
                # What is fresh and refused all the same would be refused again.
                errand.is_renewal_tried = True
                token = self._log_in(request, errand)
                logins.keep(platform.NAME, use.name, secret, token, self._clock.now())
        errand.token = token
        return with_token(secret, token) if token is not None else secret

    def _log_in(self, request: Request, errand: Errand) -> Token:
        # On its account, though without its token: that is what it is to yield.
        login = Errand(request.plus(credential=errand.request.credential), errand.platform, errand.attempts)
        answer = self._follow(login)
        self._accept(answer, _refusal(answer, login), login)
        read_token: ReadToken = getattr(errand.platform, "token")  # noqa: B009 — optional, so not of the protocol
        try:
            token = read_token(answer)
        except LoginNeeded as error:
            error.is_credentials = True
            raise
        for value in token.headers.values():
            know_secret(value.rpartition(" ")[2])
        return token

    # ── one exchange ──────────────────────────────────────────────────────────────────────────────────────────────

    def _exchange(self, step: Step, errand: Errand, give_up_at: float | None) -> Came:
        sending = self._sending(step, errand, give_up_at)
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

    def _timeout(self, errand: Errand) -> float:
        of_platform = self._settings.of(errand.platform).timeout_seconds
        return errand.request.timeout_seconds or of_platform or self._settings.timeout_seconds

    def _sending(self, step: Step, errand: Errand, give_up_at: float | None) -> Sending:
        settings, request = self._settings, errand.request
        return Sending(
            url=step.route.url,
            host=step.place.host,
            method=step.method,
            headers=[*COMMON_HEADERS, *(_header_line(name, value) for name, value in step.headers.items())],
            body=step.body,
            # The first step has the whole time: a round figure, which need not be set anew for each request.
            timeout_seconds=self._timeout(errand) if give_up_at is None else max(0.001, give_up_at - time.monotonic()),
            max_bytes=request.max_bytes or settings.max_bytes,
            max_wire_bytes=request.max_bytes or settings.max_wire_bytes,
        )

    def _is_cut(self) -> bool:
        """Whether transfers must end now. Asked many times a second, by each of them."""
        if self._cut.is_set():
            return True
        if not self._stop.is_set():
            return False
        # Wall time: sockets know no other.
        self._stopping_since = self._stopping_since or time.monotonic()
        return time.monotonic() - self._stopping_since >= self._settings.stop_grace_seconds


def _refusal(answer: Answer, errand: Errand) -> Refusal | None:
    """What the platform says about an answer; if nothing, what its status says."""
    refusal = errand.platform.refusal(answer, errand.request)
    if refusal is None:
        error = http_refusal(answer, answer.answered_at)
        blamed = errand.visit(placed(answer.url)).counted_by if isinstance(error, SlowDown) else Blame.REQUEST
        return Refusal(error, blamed) if error is not None else None
    retry_at = refusal.error.retry_at
    if retry_at is None and isinstance(refusal.error, SlowDown):
        retry_at = told_to_wait_until(answer.headers, answer.answered_at)
    status = refusal.error.status or answer.status
    return refusal.plus(error=_retold(refusal.error, status=status, retry_at=retry_at))


def _blames_credential(refusal: Refusal, errand: Errand) -> bool:
    is_refused = refusal.blames is Blame.CREDENTIAL or isinstance(refusal.error, LoginNeeded)
    return is_refused and errand.request.credential is not None


def _comes_back(error: SlowDown) -> datetime:
    return error.retry_at or datetime.max.replace(tzinfo=UTC)


def _how_to_log_in(platform: Platform) -> str:
    if not platform.HOSTS:
        return "add a credential and name it in the source"
    declared: CredentialSettings | None = getattr(platform, "CREDENTIAL_SETTINGS", None)
    also = f", or set {' and '.join(field.name for field in declared.fields)}" if declared is not None else ""
    return f"add a credential: `catchment credentials add {platform.NAME} NAME`{also}"


def _retold(error: PlatformError, about: str = "", **changes: Any) -> PlatformError:
    """The same error with more said: a new one, since a platform may raise one and the same again and again."""
    what = f"{about}: {error.what}" if about else error.what
    retold = type(error)(what, error.helps, **{"status": error.status, "retry_at": error.retry_at, **changes})
    for name in ("is_contact", "is_beyond_request", "is_credentials"):
        setattr(retold, name, getattr(error, name))
    return retold


def _header_line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\n" in line or "\r" in line:
        raise InvalidInput(f"the header {name[:40]!r} has a line break in it", "check the source's settings")
    # Latin-1 is how headers are read: what a server gave (an ETag) goes back to it byte by byte.
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode()
