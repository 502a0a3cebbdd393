"""What an HTTP status means when the platform itself has nothing to say about it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.fetch.times import http_date
from catchment.model import Answer

LONGEST_PAUSE = timedelta(days=1)
"""A server that asks for more is taken to mean this: a typing error there must not silence a source for a year."""

_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e11
"""A reset time below the first is in seconds from now (Reddit); above it is a moment (GitHub, X), beyond the second one
in milliseconds."""
_LIMIT_HEADERS = ("x-ratelimit-", "x-rate-limit-", "ratelimit-")


def http_refusal(answer: Answer, now: datetime) -> PlatformError | None:
    """The error that this answer's status stands for; None: it is an answer."""
    status = answer.status
    if status == 304 or (200 <= status < 300 and status != 206):
        return None
    error, what, helps = _meaning(answer)
    retry_at = told_to_wait_until(answer.headers, now) if error in (SlowDown, ServerTrouble) else None
    return error(f"{what} (HTTP {status}{_phrase(status)})", helps, status=status, retry_at=retry_at)


def _meaning(answer: Answer) -> tuple[type[PlatformError], str, str]:
    status, headers = answer.status, answer.headers
    if status in (420, 429) or (status in (403, 503) and _asks_for_patience(headers)):
        return SlowDown, "too many requests", "it is asked again later; a longer interval avoids this"
    if status >= 500 or status in (408, 425):
        return ServerTrouble, "the server is in trouble", "it is asked again later"
    return _MEANINGS.get(status) or (
        _REDIRECT_TO_NOWHERE if 300 <= status < 400 else _PART_ONLY if status == 206 else _NOT_ACCEPTED
    )


_MEANINGS: dict[int, tuple[type[PlatformError], str, str]] = {
    401: (LoginNeeded, "a login is needed, or the one given is not accepted", "add or renew the credential"),
    402: (Refused, "payment is demanded", "check the account at the platform"),
    403: (Refused, "access is refused", "check in a browser whether it is public; it may need a credential"),
    404: (Missing, "nothing is there", "check the address; it is asked again with growing pauses"),
    407: (Refused, "the proxy wants a login", "put it into the proxy setting"),
    410: (Gone, "it is gone for good", "remove the source, or give it a new address"),
    451: (Refused, "access is refused for legal reasons", "it may be reachable from another country"),
}
_REDIRECT_TO_NOWHERE = (Unreadable, "a redirect that does not say where to", "the server is at fault")
_PART_ONLY = (Unreadable, "only a part came, though the whole was asked for", "the server is at fault")
_NOT_ACCEPTED = (Refused, "the request is not accepted", "check the source's target and settings")


def _asks_for_patience(headers: dict[str, str]) -> bool:
    """Some servers say 403 or 503 where 429 is meant; the other headers give them away."""
    return "retry-after" in headers or is_used_up(headers)


def is_used_up(headers: dict[str, str]) -> bool:
    """Whether the server says that no request is left in its present window."""
    remaining = _limit(headers, "remaining")
    return remaining is not None and remaining < 1


def _limit(headers: dict[str, str], name: str) -> float | None:
    return next((_number(headers[each + name]) for each in _LIMIT_HEADERS if each + name in headers), None)


def told_to_wait_until(headers: dict[str, str], now: datetime) -> datetime | None:
    """The moment that the server asks to wait for, at most a day away; None: it names none that makes sense."""
    told = headers.get("retry-after")
    if told is not None:
        seconds = _number(told)
        until = http_date(told) if seconds is None else _after(now, seconds)
    else:
        reset = _limit(headers, "reset") if is_used_up(headers) else None
        until = None if reset is None else _reset(reset, now)
    # A date that is over means: now.
    return None if until is None else min(max(until, now), now + LONGEST_PAUSE)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    # "nan" and "inf" are numbers to float(), and nonsense in a header.
    return number if 0 <= number < float("inf") else None


def _after(now: datetime, seconds: float) -> datetime:
    return now + min(timedelta(seconds=min(seconds, 1e9)), LONGEST_PAUSE)


def _reset(number: float, now: datetime) -> datetime:
    if number < _EPOCH_SECONDS:
        return _after(now, number)
    seconds = number / 1000 if number > _EPOCH_MILLISECONDS else number
    return datetime.fromtimestamp(min(seconds, _EPOCH_MILLISECONDS), UTC)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
