"""HTTP client for platforms: credentials, redirects, retries and error handling."""

from __future__ import annotations

import random as chance
import secrets as unguessable
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from typing import Any

from msgspec import Struct

from catchment import messages
from catchment.clock import Clock
from catchment.credentials.pool import CookieHost, Use
from catchment.credentials.secret import Secret
from catchment.errors import (
    AddressRefused,
    CredentialsExhausted,
    LoginNeeded,
    NetworkError,
    OutOfCredits,
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
    has_cookies_per_host,
    is_for,
    mismatch,
    with_cookies,
    without_secrets,
)
from catchment.fetch.budgets import Budgets
from catchment.fetch.paid_calls import CallCosts, PaidCalls, charged
from catchment.fetch.responses import http_refusal, told_to_wait_until
from catchment.fetch.robots import Robots
from catchment.fetch.settings import Attempt, FetchPlatform, FetchSettings
from catchment.fetch.throttle import Slot, Throttle
from catchment.fetch.transport import COMMON_HEADERS, CurlConnections, RawResponse, header_line
from catchment.fetch.urls import REDIRECTS, RedirectRules, Step, next_step, parse_url, without_params
from catchment.logs import know_secret
from catchment.messages import Message, message
from catchment.model import (
    Answer,
    Booking,
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


class Call(Struct):
    """One call: its request and platform, and what was tried for it so far."""

    asked: Request
    platform: FetchPlatform
    attempts: list[Attempt]
    request: Request
    """What was asked, in its current form: with retry changes and credential."""
    obeys_robots: bool = False
    """Whether robots.txt applies to every URL on the way."""
    costs: CallCosts | None = None
    """Where its costs are noted; None: they are booked at once."""
    use: Use | None = None
    """The credential that it is sent with."""
    token: Token | None = None
    """The token from a login with that credential."""
    changes_tried: int = 0
    is_renewal_tried: bool = False
    spent: dict[str, OutOfCredits] = {}
    """By credential of the pool whose account has nothing left, the error that said so."""
    bookings: list[Booking] = []
    """What its exchanges cost, one by one, at services that cost money."""


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
        paid_calls: PaidCalls | None = None,
        cut: Event | None = None,
        random: Callable[[], float] = chance.random,
        nonce: Callable[[], str] = unguessable.token_hex,
    ) -> None:
        """`stop` begins no further exchange and lets the current one finish; `cut` ends it at once. `paid_calls`:
        for services that charge money."""
        self._settings, self._clock, self._credentials = settings, clock, credentials
        self._random, self._nonce, self._paid_calls = random, nonce, paid_calls
        self._throttle = Throttle(settings, clock, stop, budgets)
        self._robots: dict[str, Robots] = {}
        """By user agent: a site may have a rule for that name."""
        self._wires = CurlConnections(settings, (cut or Event()).is_set)
        self._logins = Logins()
        self._cured_cookies: dict[tuple[str, str | None, str], str] = {}

    def __call__(
        self,
        request: Request,
        platform: FetchPlatform,
        *,
        subject: str,
        attempts: list[Attempt],
        costs: CallCosts | None = None,
    ) -> Answer:
        """Returns the platform's answer. Raises the error that says what happened to `subject`, or Stopped.

        Every exchange that was begun is added to `attempts`, and what it cost to `costs`, those of a failed call too.
        """
        call = Call(request, platform, attempts, request, getattr(platform, "OBEYS_ROBOTS", False), costs)
        waits = iter(self._settings.retry_waits)
        try:
            while True:
                try:
                    return self._attempt(call)
                except _TRIED_AGAIN as error:
                    seconds = next(waits, None)
                    if seconds is None:
                        raise
                    self._wait_before_next(error, seconds)
        except PlatformError as error:
            raise _with_detail(error, about=subject) from error

    def close(self) -> None:
        self._wires.close()

    def _wait_before_next(self, error: PlatformError, seconds: float) -> None:
        """Waits as the server asked, or as planned. A wait that is too long or unknown ends the call."""
        if isinstance(error, SlowDown) and (error.retry_at is None or error.is_own_limit):
            # We have already waited for our own limits as long as is sensible.
            raise error
        seconds *= 1 + _JITTER * self._random()
        now = self._clock.now()
        if error.retry_at is not None:
            seconds = max(seconds, (error.retry_at - now).total_seconds())
        if seconds > self._settings.longest_wait_seconds:
            raise _with_detail(error, retry_at=now + timedelta(seconds=seconds))
        self._throttle.wait(seconds)

    def _attempt(self, call: Call) -> Answer:
        """Returns the answer if it is not a refusal. If the account of a credential of the pool has nothing left, the
        request is sent with the next one."""
        while True:
            try:
                return self._answer(call)
            except OutOfCredits as error:
                if call.use is None or not call.use.is_pooled or call.use.name in call.spent:
                    raise
                call.spent[call.use.name] = error

    def _answer(self, call: Call) -> Answer:
        """Returns the answer if it is not a refusal, and reports to the credential that was used."""
        try:
            answer, slot = self._send(call)
            while (refusal := _refusal(answer, call.request, slot)) is not None:
                # Each can help only so often, so this ends.
                if not (self._retries_with_change(refusal, call) or self._is_token_given_up(refusal, call)):
                    raise self._blamed(refusal, slot)
                answer, slot = self._follow(call)
        except PlatformError as error:
            # "Too many requests" is our own fault only.
            is_news = not isinstance(error, SlowDown) and error not in call.spent.values()
            if call.use is not None and error.is_credentials and is_news:
                self._credentials.failed(call.use, error)
            raise
        self._throttle.note_limits(slot, answer)
        if call.use is not None:
            self._credentials.succeeded(call.use)
        if call.costs is not None and len(call.bookings) > 1 and not call.bookings[-1].uncertain_amount:
            call.costs.bound(call.bookings[:-1], call.bookings[-1].amount)
        return answer

    def _send(self, call: Call) -> tuple[Answer, Slot]:
        """Sends the call without a credential, with the one that it names, or with the best of the pool; while that
        one has used up its budget, or its account has nothing left, with the next best."""
        asked, platform = call.asked, call.platform
        # The pool's credentials are for the platform's own hosts; a source with a host of its own names one.
        place = parse_url(asked.url)
        is_pooled = asked.identity is not Identity.NONE and place.host in platform.HOSTS
        busy: dict[str, SlowDown] = {}
        cookie_host = (
            CookieHost(place.host, place.host == platform.HOSTS[0]) if has_cookies_per_host(platform) else None
        )
        while True:
            use = None
            if asked.credential is not None or is_pooled:
                use = self._take(call, busy, cookie_host)
            if use is None and busy:
                raise min(busy.values(), key=lambda error: error.retry_at or datetime.max.replace(tzinfo=UTC))
            if use is None and asked.identity is Identity.NEEDED:
                raise LoginNeeded("it can only be read with a login", _how_to_log_in(platform))
            if call.use is None or use is None or call.use.name != use.name:
                call.token, call.is_renewal_tried = None, False
            call.use, name = use, use.name if use else None
            if call.request.credential != name:
                call.request = call.request.replace(credential=name)
            try:
                return self._follow(call)
            except SlowDown as error:
                if use is None or not use.is_pooled or not error.is_credentials or not error.is_own_limit:
                    raise
                busy[use.name] = error

    def _take(self, call: Call, busy: Collection[str], host: CookieHost | None) -> Use | None:
        """Returns the credential to send the call with. Raises the error of an account that has nothing left if no
        other credential is usable."""
        try:
            use = self._credentials.take(call.platform.NAME, call.asked.credential, {*busy, *call.spent}, host)
        except CredentialsExhausted:
            if not call.spent:
                raise
            use = None
        if use is None and call.spent and not busy:
            raise next(iter(call.spent.values()))
        return use

    def _blamed(self, refusal: Refusal, slot: Slot) -> PlatformError:
        """Starts the cooldown that a refusal asks for, and returns its error."""
        error, scope = refusal.error, refusal.blames
        self._throttle.start_cooldown(slot, scope, error)
        error.is_beyond_request = scope is not FailureScope.REQUEST
        is_refused = scope is FailureScope.CREDENTIAL or isinstance(error, LoginNeeded)
        error.is_credentials = is_refused and slot.credential is not None
        return error

    def _retries_with_change(self, refusal: Refusal, call: Call) -> bool:
        """Whether the call continues with a changed request. Its cookies are kept, so that the next one is not
        refused."""
        if refusal.cure is None or call.changes_tried >= refusal.cure.most_retries:
            return False
        call.changes_tried += 1
        cure, request = refusal.cure, refusal.cure.repeat or call.request
        if cure.wait_seconds:
            self._throttle.wait(cure.wait_seconds * cure.growth ** (call.changes_tried - 1))
        call.request = request.replace(headers={**request.headers, **cure.headers})
        if cure.cookies:
            self._cured_cookies[_jar(call)] = cookie_header(cure.cookies)
        return True

    def _is_token_given_up(self, refusal: Refusal, call: Call) -> bool:
        """Whether the refused token was an old one. A new login may help then; it would not help twice."""
        if not isinstance(refusal.error, LoginNeeded) or call.token is None or call.is_renewal_tried:
            return False
        assert call.use is not None
        call.is_renewal_tried = True
        self._logins.of(call.platform.NAME, call.use.name).forget(call.token)
        return True

    def _follow(self, call: Call) -> tuple[Answer, Slot]:
        """Sends the request, and follows redirects. Returns the last answer, and where it came from."""
        settings, platform, request = self._settings, call.platform, self._dressed(call)
        params, secret_params = call.request.params, {}
        if request.params is not params:
            secret_params = {name: value for name, value in request.params.items() if params.get(name) != value}
        place = parse_url(request.url).with_params(request.params)
        way = RedirectRules(settings.base_urls.get(platform.NAME), platform.HOSTS, secret_params, place)
        step = way.step(place, request.method, request.headers, request.body)
        timeout = request.timeout_seconds or settings.of(platform).timeout_seconds or settings.timeout_seconds
        begun, seen = time.monotonic(), {(step.method, place.url)}
        for _ in range(settings.max_redirects + 1):
            if call.obeys_robots:
                self._obey(step, call)
            slot = Slot(platform, call.request.credential, step.place, request.budget)
            with self._throttle.admission(slot, step.is_operators):
                # The first step has the whole time: a round figure, which need not be set for each request.
                left = timeout if len(seen) == 1 else max(0.001, begun + timeout - time.monotonic())
                exchange = self._paid_exchange if hasattr(platform, "PRICES") else self._exchange
                response = exchange(step, call, left)
            if call.use is not None:
                response = without_secrets(response, call.use.secret, call.token, secret_params)
            location = response.headers.get("location") if response.status in REDIRECTS else None
            if location is None:
                url = without_params(step.place.url, secret_params)
                moved_to = url if step.is_permanent and len(seen) > 1 else None
                answer = Answer(response.status, response.headers, response.body, url, self._clock.now(), moved_to)
                return answer, slot
            step = next_step(step, response.status, location, way)
            if (step.method, step.place.url) in seen:
                raise AddressRefused(
                    "{host} redirects in a loop", "check the address in a browser", host=step.place.host
                )
            seen.add((step.method, step.place.url))
        most = settings.max_redirects
        what = "more than {most} redirects" if most else "{host}: redirects are not followed here"
        raise AddressRefused(what, "check the address in a browser", most=most, host=step.place.host)

    def _obey(self, step: Step, call: Call) -> None:
        """Obeys the site's robots.txt, which is fetched first."""

        def ask(request: Request) -> Answer:
            return self._follow(Call(request, call.platform, call.attempts, request, costs=call.costs))[0]

        user_agent = self._settings.user_agent_for(call.platform)
        robots = self._robots.get(user_agent)
        if robots is None:
            longest_wait = timedelta(seconds=self._settings.longest_wait_seconds)
            robots = self._robots.setdefault(user_agent, Robots(user_agent, longest_wait))
        wait = robots.check(step.place, self._clock.now(), ask)
        self._throttle.keep_distance(step.place, wait, step.is_operators)

    def _dressed(self, call: Call) -> Request:
        """Returns the request with its credential, cookies and user agent."""
        request, platform, use = call.request, call.platform, call.use
        if (user_agent := self._settings.user_agent_for(platform)) != self._settings.user_agent:
            request = request.replace(headers={"User-Agent": user_agent, **request.headers})
        if self._cured_cookies and (cookies := self._cured_cookies.get(_jar(call))):
            request = with_cookies(request, cookies)
        secret = None
        if use is not None:
            # Whatever named the credential, and however it got here: the secret goes only to the host it was given for.
            place = parse_url(request.url)
            if not is_for(use, platform, place):
                use = call.use = self._credentials.renewed(use)
            if not is_for(use, platform, place):
                raise LoginNeeded(*mismatch(use, platform, place))
            secret = self._secret(call, use)
        if hasattr(platform, "dress"):
            return options(platform).dress(request, secret, self._clock.now(), self._nonce())
        return dressed(request, secret) if secret is not None else request

    def _secret(self, call: Call, use: Use) -> Secret:
        """Returns the secret of this credential; where the platform logs in with it, the token the login yielded."""
        if not hasattr(call.platform, "login"):
            return use.secret
        login = self._logins.of(call.platform.NAME, use.name)
        with login.one_at_a_time:
            token = login.token_of(use.secret, self._clock.now())
            request = options(call.platform).login(use.secret) if token is None else None
            if request is not None:
                # A fresh token that is refused would be refused again.
                call.is_renewal_tried = True
                token = self._log_in(request, call)
                login.keep(use.secret, token, self._clock.now())
        call.token = token
        # The token takes the place of the login data, which is not sent again.
        return (
            use.secret if token is None else use.secret.replace(basic=None, headers=use.secret.headers | token.headers)
        )

    def _log_in(self, request: Request, call: Call) -> Token:
        # With the same credential, but without a token, which the login has yet to return.
        request = request.replace(credential=call.request.credential)
        answer, slot = self._follow(Call(request, call.platform, call.attempts, request, call.obeys_robots, call.costs))
        if (refusal := _refusal(answer, request, slot)) is not None:
            raise self._blamed(refusal, slot)
        self._throttle.note_limits(slot, answer)
        try:
            token = options(call.platform).token(answer)
        except LoginNeeded as error:
            error.is_credentials = True
            raise
        for value in token.headers.values():
            know_secret(value.rpartition(" ")[2])
        return token

    def _paid_exchange(self, step: Step, call: Call, timeout_seconds: float) -> RawResponse:
        """Makes the exchange. If it costs money, the most that it may cost is reserved first. Raises
        SpendingCapReached."""
        paid_calls, source_id = self._paid_calls, call.costs.source_id if call.costs else None
        reservation = paid_calls.reserve(call.platform, call.request, source_id) if paid_calls else None
        if paid_calls is None or reservation is None:
            return self._exchange(step, call, timeout_seconds)
        # Unless the answer says otherwise, it may have been charged: a kill or a bug must not make it free.
        booking = reservation.booking(None)
        try:
            response = self._exchange(step, call, timeout_seconds)
            answer = Answer(response.status, response.headers, response.body, step.place.url, self._clock.now())
            booking = charged(call.platform, call.request, answer, reservation)
            return response
        except PlatformError as error:
            booking = reservation.unsent() if error.is_unsent else booking
            raise
        finally:
            call.bookings.append(booking)
            paid_calls.book(booking, call.costs)

    def _exchange(self, step: Step, call: Call, timeout_seconds: float) -> RawResponse:
        request, settings = call.request, self._settings
        headers = [*COMMON_HEADERS, *(header_line(name, value) for name, value in step.headers.items())]
        max_bytes = request.max_bytes or settings.max_bytes
        max_wire_bytes = request.max_bytes or settings.max_wire_bytes
        wire = self._wires.mine(is_guarded=not step.is_operators)
        at, begun = self._clock.now(), time.perf_counter()
        outcome = "INTERNAL"
        try:
            response = wire.exchange(step, headers, timeout_seconds, max_bytes, max_wire_bytes)
            outcome = str(response.status)
            return response
        except (PlatformError, Stopped) as error:
            outcome = error.code
            raise
        finally:
            call.attempts.append(Attempt(call.platform.NAME, at, outcome, time.perf_counter() - begun))


def _jar(call: Call) -> tuple[str, str | None, str]:
    """Returns the key of the cookie jar for retries."""
    return call.platform.NAME, call.request.credential, parse_url(call.request.url).site


def _refusal(answer: Answer, request: Request, slot: Slot) -> Refusal | None:
    """Returns the platform's refusal for an answer; if it has none, that of the status."""
    platform = slot.platform
    refusal = platform.refusal(answer, request)
    if refusal is None:
        error = http_refusal(answer, answer.answered_at)
        if error is None or (hasattr(platform, "accepts") and options(platform).accepts(answer, request)):
            return None
        return Refusal(error, slot.counted_by if isinstance(error, SlowDown) else FailureScope.REQUEST)
    retry_at = refusal.error.retry_at
    if retry_at is None and isinstance(refusal.error, SlowDown):
        retry_at = told_to_wait_until(answer.headers, answer.answered_at)
    status = refusal.error.status or answer.status
    return refusal.replace(error=_with_detail(refusal.error, status=status, retry_at=retry_at))


def _how_to_log_in(platform: FetchPlatform) -> Message:
    if not platform.HOSTS:
        return message("add a credential and name it in the source")
    declared = options(platform).CREDENTIAL_SETTINGS.fields if hasattr(platform, "CREDENTIAL_SETTINGS") else ()
    how = message("add a credential: `catchment credentials add {platform} NAME`", platform=platform.NAME)
    if not declared:
        return how
    return message("{how}, or set {settings}", how=how, settings=", ".join(field.name for field in declared))


def _with_detail(error: PlatformError, about: str = "", **changes: Any) -> PlatformError:
    """Returns a copy of the error with more detail: a platform may raise the same instance again and again."""
    what = messages.about(about, error.what) if about else error.what
    retold = type(error)(what, error.helps, **{"status": error.status, "retry_at": error.retry_at, **changes})
    for name in ("is_contact", "is_beyond_request", "is_credentials", "is_unsent", "is_final", "is_passing"):
        setattr(retold, name, getattr(error, name))
    return retold


class CredentialCheck(Record, frozen=True):
    """The result of a check."""

    platform: str
    name: str
    is_accepted: bool | None
    """None: there is nothing to test it with."""
    message: str


def prove(fetch: Fetch, platform: Platform, credential: Credential) -> CredentialCheck:
    """Sends a request with this credential, and logs in with it where that is needed.

    The result counts for the credential, like the answer to any request. Errors that are not about it are raised.
    """
    proof = partial(CredentialCheck, credential.platform, credential.name)
    probe: Request | None = getattr(platform, "PROBE", None)
    if probe is None:
        helps = "collect a source that names it, and see"
        return proof(None, f"{platform.NAME} has nothing to test a credential with: {helps}")
    asked = probe.replace(identity=Identity.NEEDED, credential=credential.name, is_keepable=False)
    subject = f"credential {credential.name}"
    try:
        answer = fetch(asked, platform, subject=subject, attempts=[])
    except PlatformError as error:
        if not error.is_credentials or isinstance(error, SlowDown):
            raise
        return proof(False, str(error).removeprefix(f"{subject}: "))
    return proof(True, f"{platform.NAME} accepts it (HTTP {answer.status})")
