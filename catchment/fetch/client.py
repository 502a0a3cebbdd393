"""HTTP client for platforms: credentials, redirects, retries and error handling."""

from __future__ import annotations

import random as chance
import secrets as unguessable
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

from catchment import messages
from catchment.clock import Clock
from catchment.credentials.pool import Use
from catchment.credentials.secret import Secret
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
from catchment.fetch.auth import (
    CredentialProvider,
    Logins,
    cookie_header,
    dressed,
    is_for,
    mismatch,
    with_cookies,
    with_token,
    without_secrets,
)
from catchment.fetch.budgets import Budgets
from catchment.fetch.responses import http_refusal, told_to_wait_until
from catchment.fetch.robots import Robots
from catchment.fetch.settings import Attempt, FetchPlatform, FetchSettings
from catchment.fetch.throttle import Slot, Throttle
from catchment.fetch.transport import COMMON_HEADERS, RawResponse, Sending, Wires
from catchment.fetch.urls import REDIRECTS, ParsedUrl, Step, Way, next_step, placed, routed, with_params, without_params
from catchment.logs import know_secret
from catchment.model import (
    Answer,
    Credential,
    FailureScope,
    Identity,
    Platform,
    Record,
    Refusal,
    Request,
    Token,
    options,
)

_JITTER = 0.1
"""Waits grow by up to this share, so that sources which failed together do not come back together."""
_TRIED_AGAIN = (NetworkError, TimedOut, ServerTrouble, SlowDown)


class Call:
    """One call: its request, platform and subject, and what was tried for it so far."""

    def __init__(
        self, request: Request, platform: FetchPlatform, attempts: list[Attempt], *, obeys_robots: bool = True
    ) -> None:
        self.asked, self.platform, self.attempts = request, platform, attempts
        self.request = request
        """In its current form: with retry changes and credential."""
        self.use: Use | None = None
        """The credential that it is sent with."""
        self.token: Token | None = None
        """The token from a login with that credential."""
        self.obeys_robots = obeys_robots and bool(getattr(platform, "OBEYS_ROBOTS", False))
        """Whether robots.txt applies to every URL on the way."""
        self.is_cure_tried = False
        self.is_renewal_tried = False

    def become(self, use: Use | None) -> None:
        """Sends the request with this credential from here on, or with none."""
        if self.use is None or use is None or self.use.name != use.name:
            self.token, self.is_renewal_tried = None, False
        self.use, self.request = use, self.request.replace(credential=use.name if use else None)

    def visit(self, place: ParsedUrl) -> Slot:
        return Slot(self.platform, self.request.credential, place)


class Fetch:
    """The only way to send requests to a platform. One per process, shared by its threads."""

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        *,
        stop: Event,
        budgets: Budgets,
        credentials: CredentialProvider,
        cut: Event | None = None,
        random: Callable[[], float] = chance.random,
        nonce: Callable[[], str] = unguessable.token_hex,
    ) -> None:
        """`stop` begins no further exchange and lets the current one finish; `cut` ends it at once."""
        self._settings, self._clock, self._credentials = settings, clock, credentials
        self._random, self._nonce = random, nonce
        self._gate = Throttle(settings, clock, stop, budgets)
        self._robots: dict[str, Robots] = {}
        """By user agent: a site may have a rule for that name."""
        self._wires = Wires(settings, (cut or Event()).is_set)
        self._logins = Logins()
        self._cured_cookies: dict[tuple[str, str | None, str], str] = {}

    def __call__(self, request: Request, platform: FetchPlatform, *, subject: str, attempts: list[Attempt]) -> Answer:
        """Returns the platform's answer. Raises the error that says what happened to `subject`, or Stopped.

        Every exchange that was begun is added to `attempts`, those of a failed call too.
        """
        try:
            return self._answer(Call(request, platform, attempts))
        except PlatformError as error:
            raise _retold(error, about=subject) from error

    def close(self) -> None:
        self._wires.close()

    def _answer(self, call: Call) -> Answer:
        for wait_seconds in self._settings.retry_waits:
            try:
                return self._attempt(call)
            except _TRIED_AGAIN as error:
                self._wait_before_next(error, wait_seconds)
        return self._attempt(call)

    def _wait_before_next(self, error: PlatformError, seconds: float) -> None:
        """Waits as the server asked, or as planned. A wait that is too long or unknown ends the call."""
        if isinstance(error, SlowDown) and (error.retry_at is None or error.is_own_limit):
            # Our own limits were already waited for as long as was sensible.
            raise error
        seconds *= 1 + _JITTER * self._random()
        now = self._clock.now()
        if error.retry_at is not None:
            seconds = max(seconds, (error.retry_at - now).total_seconds())
        if seconds > self._settings.longest_wait_seconds:
            raise _retold(error, retry_at=now + timedelta(seconds=seconds))
        self._gate.wait(seconds)

    def _attempt(self, call: Call) -> Answer:
        try:
            answer = self._accepted(call)
        except PlatformError as error:
            # "Too many requests" is nobody's fault but ours.
            if call.use is not None and error.is_credentials and not isinstance(error, SlowDown):
                self._credentials.failed(call.use, error)
            raise
        if call.use is not None:
            self._credentials.succeeded(call.use)
        return answer

    def _accepted(self, call: Call) -> Answer:
        answer = self._followed_as_somebody(call)
        refusal = _refusal(answer, call)
        # Both can help only once, so this ends.
        while refusal is not None and (self._is_cured(refusal, call) or self._is_token_given_up(refusal, call)):
            answer = self._follow(call)
            refusal = _refusal(answer, call)
        self._accept(answer, refusal, call)
        return answer

    def _followed_as_somebody(self, call: Call) -> Answer:
        """Sends the call with the best credential of the pool; while that one has used up its budget, with the next
        best."""
        busy: dict[str, SlowDown] = {}
        while True:
            self._identify(call, busy)
            try:
                return self._follow(call)
            except SlowDown as error:
                use = call.use
                if use is None or not use.is_pooled or not error.is_credentials or not error.is_own_limit:
                    raise
                busy[use.name] = error

    def _identify(self, call: Call, busy: Mapping[str, SlowDown]) -> None:
        """Chooses the credential. Raises if one is needed and none is usable."""
        asked, platform = call.asked, call.platform
        use = None
        if asked.credential is not None or self._has_pool(call):
            use = self._credentials.take(platform.NAME, asked.credential, busy)
        call.become(use)
        if use is not None:
            return
        if busy:
            raise min(busy.values(), key=_comes_back)
        if asked.identity is Identity.NEEDED:
            raise LoginNeeded("it can only be read with a login", _how_to_log_in(platform))

    @staticmethod
    def _has_pool(call: Call) -> bool:
        """Whether the pool applies: its credentials are for the platform's own hosts; sources with own hosts name
        one."""
        asked, hosts = call.asked, call.platform.HOSTS
        return asked.identity is not Identity.NONE and bool(hosts) and placed(asked.url).host in hosts

    def _accept(self, answer: Answer, refusal: Refusal | None, call: Call) -> None:
        """Applies the consequences for later requests, and raises the error if the answer is a refusal."""
        visit = call.visit(placed(answer.url))
        if refusal is None:
            self._gate.heed(visit, answer)
        else:
            self._gate.leave_alone(visit, refusal.blames, refusal.error)
            refusal.error.is_beyond_request = refusal.blames is not FailureScope.REQUEST
            refusal.error.is_credentials = _blames_credential(refusal, call)
            raise refusal.error

    def _is_cured(self, refusal: Refusal, call: Call) -> bool:
        """Whether the call goes on with a changed request. Its cookies are kept, so that the next one is not
        refused."""
        if refusal.cure is None or call.is_cure_tried:
            return False
        call.is_cure_tried = True
        cure, request = refusal.cure, refusal.cure.repeat or call.request
        call.request = request.replace(headers={**request.headers, **cure.headers})
        if cure.cookies:
            self._cured_cookies[self._jar(call)] = cookie_header(cure.cookies)
        return True

    def _is_token_given_up(self, refusal: Refusal, call: Call) -> bool:
        """Whether the refused token was an old one. A new login may help then; it would not help twice."""
        if not isinstance(refusal.error, LoginNeeded) or call.token is None or call.is_renewal_tried:
            return False
        assert call.use is not None
        call.is_renewal_tried = True
        self._logins.forget(call.platform.NAME, call.use.name, call.token)
        return True

    @staticmethod
    def _jar(call: Call) -> tuple[str, str | None, str]:
        return call.platform.NAME, call.request.credential, placed(call.request.url).site

    def _follow(self, call: Call) -> Answer:
        """Sends the request, and follows redirects."""
        step, way = self._first_step(call)
        give_up_at = time.monotonic() + self._timeout(call)
        seen = {(step.method, step.place.url)}
        for step_number in range(self._settings.max_redirects + 1):
            if call.obeys_robots:
                self._obey(step, call)
            with self._gate.passed(call.visit(step.place), step.route.is_operators):
                response = self._exchange(step, call, give_up_at if step_number else None)
            if call.use is not None:
                if "location" in response.headers:
                    # The parameters we added are added again where they belong; redacted, they would be in the way
                    # there.
                    stripped = without_params(response.headers["location"], way.secret_params)
                    response = RawResponse(response.status, {**response.headers, "location": stripped}, response.body)
                response = without_secrets(response, call.use.secret, call.token)
            location = response.headers.get("location") if response.status in REDIRECTS else None
            if location is None:
                url = way.shown(step.place)
                moved_to = url if step_number and step.is_permanent else None
                return Answer(response.status, response.headers, response.body, url, self._clock.now(), moved_to)
            step = next_step(step, response.status, location, way)
            if (step.method, step.place.url) in seen:
                raise AddressRefused(f"{step.place.host} redirects in a circle", "check the address in a browser")
            seen.add((step.method, step.place.url))
        most = self._settings.max_redirects
        what = f"more than {most} redirects" if most else f"{step.place.host}: redirects are not followed here"
        raise AddressRefused(what, "check the address in a browser")

    def _obey(self, step: Step, call: Call) -> None:
        """Obeys the site's robots.txt, which is fetched first."""

        def ask(request: Request) -> Answer:
            return self._follow(Call(request, call.platform, call.attempts, obeys_robots=False))

        wait = self._robots_for(call).check(step.place, self._clock.now(), ask)
        self._gate.keep_distance(step.place, wait, step.route.is_operators)

    def _robots_for(self, call: Call) -> Robots:
        user_agent = self._settings.user_agent_for(call.platform)
        longest_wait = timedelta(seconds=self._settings.longest_wait_seconds)
        return self._robots.get(user_agent) or self._robots.setdefault(user_agent, Robots(user_agent, longest_wait))

    def _first_step(self, call: Call) -> tuple[Step, Way]:
        platform, request = call.platform, call.request
        asked = self._dressed(call)
        added = {name: value for name, value in asked.params.items() if request.params.get(name) != value}
        target = placed(with_params(asked.url, asked.params))
        way = Way(self._settings.base_urls.get(platform.NAME), platform.HOSTS, added, target)
        return Step(target, routed(target, way.base_url, way.hosts), asked.method, asked.headers, asked.body), way

    def _dressed(self, call: Call) -> Request:
        request = call.request
        if (user_agent := self._settings.user_agent_for(call.platform)) != self._settings.user_agent:
            request = request.replace(headers={"User-Agent": user_agent, **request.headers})
        if self._cured_cookies and (cookies := self._cured_cookies.get(self._jar(call))):
            request = with_cookies(request, cookies)
        if call.use is not None and not is_for(call.use, call.platform, placed(request.url)):
            # Whatever named the credential, and however it got here: the secret goes only to the host it was given for.
            raise LoginNeeded(*mismatch(call.use, call.platform, placed(request.url)))
        secret = self._secret(call, call.use) if call.use is not None else None
        if hasattr(call.platform, "dress"):
            return options(call.platform).dress(request, secret, self._clock.now(), self._nonce())
        return dressed(request, secret) if secret is not None else request

    def _secret(self, call: Call, use: Use) -> Secret:
        """Returns the secret of this credential; where the platform logs in with it, the token the login yielded."""
        platform, secret, logins = call.platform, use.secret, self._logins
        if not hasattr(platform, "login"):
            return secret
        with logins.one_at_a_time(platform.NAME, use.name):
            token = logins.token(platform.NAME, use.name, secret, self._clock.now())
            request = options(platform).login(secret) if token is None else None
            if request is not None:
                # A fresh token that is refused would be refused again.
                call.is_renewal_tried = True
                token = self._log_in(request, call)
                logins.keep(platform.NAME, use.name, secret, token, self._clock.now())
        call.token = token
        return with_token(secret, token) if token is not None else secret

    def _log_in(self, request: Request, call: Call) -> Token:
        # With the same credential, though without its token: that is what the login is to yield.
        login = Call(request.replace(credential=call.request.credential), call.platform, call.attempts)
        answer = self._follow(login)
        self._accept(answer, _refusal(answer, login), login)
        try:
            token = options(call.platform).token(answer)
        except LoginNeeded as error:
            error.is_credentials = True
            raise
        for value in token.headers.values():
            know_secret(value.rpartition(" ")[2])
        return token

    def _exchange(self, step: Step, call: Call, give_up_at: float | None) -> RawResponse:
        sending = self._sending(step, call, give_up_at)
        wire = self._wires.mine(is_guarded=not step.route.is_operators)
        at, begun = self._clock.now(), time.perf_counter()
        outcome = "INTERNAL"
        try:
            response = wire.exchange(sending)
            outcome = str(response.status)
            return response
        except (PlatformError, Stopped) as error:
            outcome = error.code
            raise
        finally:
            call.attempts.append(Attempt(call.platform.NAME, at, outcome, time.perf_counter() - begun))

    def _timeout(self, call: Call) -> float:
        of_platform = self._settings.of(call.platform).timeout_seconds
        return call.request.timeout_seconds or of_platform or self._settings.timeout_seconds

    def _sending(self, step: Step, call: Call, give_up_at: float | None) -> Sending:
        settings, request = self._settings, call.request
        return Sending(
            url=step.route.url,
            host=step.place.host,
            method=step.method,
            headers=[*COMMON_HEADERS, *(_header_line(name, value) for name, value in step.headers.items())],
            body=step.body,
            # The first step has the whole time: a round figure, which need not be set anew for each request.
            timeout_seconds=self._timeout(call) if give_up_at is None else max(0.001, give_up_at - time.monotonic()),
            max_bytes=request.max_bytes or settings.max_bytes,
            max_wire_bytes=request.max_bytes or settings.max_wire_bytes,
        )


def _refusal(answer: Answer, call: Call) -> Refusal | None:
    """Returns the platform's refusal for an answer; if it has none, that of the status."""
    refusal = call.platform.refusal(answer, call.request)
    if refusal is None and hasattr(call.platform, "accepts") and options(call.platform).accepts(answer, call.request):
        return None
    if refusal is None:
        error = http_refusal(answer, answer.answered_at)
        blamed = call.visit(placed(answer.url)).counted_by if isinstance(error, SlowDown) else FailureScope.REQUEST
        return Refusal(error, blamed) if error is not None else None
    retry_at = refusal.error.retry_at
    if retry_at is None and isinstance(refusal.error, SlowDown):
        retry_at = told_to_wait_until(answer.headers, answer.answered_at)
    status = refusal.error.status or answer.status
    return refusal.replace(error=_retold(refusal.error, status=status, retry_at=retry_at))


def _blames_credential(refusal: Refusal, call: Call) -> bool:
    is_refused = refusal.blames is FailureScope.CREDENTIAL or isinstance(refusal.error, LoginNeeded)
    return is_refused and call.request.credential is not None


def _comes_back(error: SlowDown) -> datetime:
    return error.retry_at or datetime.max.replace(tzinfo=UTC)


def _how_to_log_in(platform: FetchPlatform) -> str:
    if not platform.HOSTS:
        return "add a credential and name it in the source"
    declared = options(platform).CREDENTIAL_SETTINGS.fields if hasattr(platform, "CREDENTIAL_SETTINGS") else ()
    also = f", or set {' and '.join(field.name for field in declared)}" if declared else ""
    return f"add a credential: `catchment credentials add {platform.NAME} NAME`{also}"


def _retold(error: PlatformError, about: str = "", **changes: Any) -> PlatformError:
    """Returns a copy of the error with more detail: a platform may raise the same instance again and again."""
    what = messages.about(about, error.what) if about else error.what
    retold = type(error)(what, error.helps, **{"status": error.status, "retry_at": error.retry_at, **changes})
    for name in ("is_contact", "is_beyond_request", "is_credentials"):
        setattr(retold, name, getattr(error, name))
    return retold


def _header_line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\n" in line or "\r" in line:
        raise InvalidInput(f"the header {name[:40]!r} has a line break in it", "check the source's settings")
    # Headers are decoded as Latin-1: a server's value (an ETag) goes back to it byte by byte.
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode()


class Proof(Record, frozen=True):
    """The result of a check."""

    platform: str
    name: str
    is_accepted: bool | None
    """None: there is nothing to test it with."""
    message: str


def prove(fetch: Fetch, platform: Platform, credential: Credential) -> Proof:
    """Sends a request with this credential, and logs in with it where that is needed.

    The result counts for the credential, like the answer to any request. Errors that are not about it are raised.
    """
    probe: Request | None = getattr(platform, "PROBE", None)
    if probe is None:
        helps = "collect a source that names it, and see"
        return _proof(credential, None, f"{platform.NAME} has nothing to test a credential with: {helps}")
    asked = probe.replace(identity=Identity.NEEDED, credential=credential.name, is_keepable=False)
    subject = f"credential {credential.name}"
    try:
        answer = fetch(asked, platform, subject=subject, attempts=[])
    except PlatformError as error:
        if not error.is_credentials or isinstance(error, SlowDown):
            raise
        return _proof(credential, False, str(error).removeprefix(f"{subject}: "))
    return _proof(credential, True, f"{platform.NAME} accepts it (HTTP {answer.status})")


def _proof(credential: Credential, is_accepted: bool | None, message: str) -> Proof:
    return Proof(credential.platform, credential.name, is_accepted, message)
