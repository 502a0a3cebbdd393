"""What a response's headers and status mean: validators, cache lifetimes, waits, and errors. Pure.

A platform's own `refusal` comes first; the errors here are for answers about which it says nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from catchment.errors import Gone, LoginNeeded, Missing, PlatformError, Refused, ServerTrouble, SlowDown, Unreadable
from catchment.lazy import pattern
from catchment.messages import message
from catchment.model import Answer


def http_date(text: str) -> datetime | None:
    """Returns the UTC time of an HTTP date; None if the text is not a date."""
    try:
        moment = parsedate_to_datetime(text)
        # "-0000" gives a time without a zone; HTTP dates are always GMT.
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


_KEPT = frozenset(
    (
        "age", "cache-control", "content-encoding", "content-language", "content-length", "content-type", "date",
        "etag", "expires", "last-modified", "link", "retry-after", "vary",
    )
)  # fmt: skip
_LIMIT_HEADERS = ("x-ratelimit-", "x-rate-limit-", "ratelimit-")

_MAX_AGE = pattern(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})")
_SECONDS = pattern(r"[0-9]{1,10}")
_NEVER_STORED = pattern(r"(?:^|[\s,])no-(?:cache|store)\b")
LONGEST_CACHE_SECONDS = 30 * 86400
_LONGEST_VALIDATOR = 1000


def read_headers(lines: list[bytes]) -> dict[str, str]:
    """Returns the headers of the last answer among the lines. Names in lower case, repeated ones joined by ", "."""
    headers: dict[str, str] = {}
    is_head = False
    for line in lines:
        if line.startswith(b"HTTP/"):
            # Interim answers (100, 103) may have come before; only the last one counts.
            headers, is_head = {}, True
        elif is_head:
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                name, value = name.rstrip().lower(), value.strip()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            else:
                # The blank line. What comes after it are trailers: too late to mean anything.
                is_head = False
    return headers


def validators(headers: dict[str, str]) -> tuple[str | None, str | None]:
    """Returns ETag and Last-Modified, each if it can be sent back: some servers put line breaks into them."""
    return _validator(headers.get("etag")), _validator(headers.get("last-modified"))


def _validator(value: str | None) -> str | None:
    return value if value and len(value) <= _LONGEST_VALIDATOR and value.isprintable() else None


def keepable_headers(headers: dict[str, str]) -> dict[str, str]:
    """Returns those that may be stored with an answer: an allow-list, so that no cookie or token slips through."""
    return {name: value for name, value in headers.items() if name in _KEPT or name.startswith(_LIMIT_HEADERS)}


def cache_seconds(headers: dict[str, str], now: datetime) -> int | None:
    """Returns for how many seconds the server expects nothing new; None if it does not say."""
    if control := headers.get("cache-control", "").lower():
        if _NEVER_STORED.search(control):
            return None
        if max_age := _MAX_AGE.search(control):
            return min(int(max_age[1]), LONGEST_CACHE_SECONDS)
    # `Expires: 0` and other nonsense means "already expired", which is not a hint.
    expires = http_date(headers["expires"]) if "expires" in headers else None
    if expires is None:
        return None
    # By the server's own clock, where it sends it: a machine whose clock is wrong would get a wrong difference.
    seconds = int((expires - (http_date(headers.get("date", "")) or now)).total_seconds())
    return min(seconds, LONGEST_CACHE_SECONDS) if seconds > 0 else None


_ON_ITS_WAY = timedelta(minutes=1)
"""So long an answer may take; a smaller difference says nothing about the server's clock."""
_LONGEST_LAG = timedelta(days=1)
"""Clocks are wrong by hours, as time zones are. A header that is off by more is one that nobody looks at, and says
nothing about the dates in the body."""


def clock_lag(headers: dict[str, str], answered_at: datetime) -> timedelta:
    """Returns how far the server's clock is behind ours, by its `Date`: the dates that it gives may be as far off. Zero
    if it is not behind, or does not say. A copy out of a cache says how old it is, and nothing about the clock."""
    said_at = http_date(headers.get("date", ""))
    if said_at is None:
        return timedelta()
    age = headers.get("age", "")
    seconds = int(age) if _SECONDS.fullmatch(age) else 0
    lag = answered_at - said_at - timedelta(seconds=seconds)
    return lag if _ON_ITS_WAY <= lag <= _LONGEST_LAG else timedelta()


LONGEST_PAUSE = timedelta(days=1)
"""A server that asks for more gets this: a typing error there must not silence a source for a year."""

_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e11
"""A reset time below the first is in seconds from now (Reddit); above it is a moment (GitHub, X), beyond the second one
in milliseconds."""


def http_refusal(answer: Answer, now: datetime) -> PlatformError | None:
    """Returns the error that this answer's status means; None: it is an answer."""
    status, headers = answer.status, answer.headers
    if status == 304 or (200 <= status < 300 and status != 206):
        return None
    # Some servers say 403 or 503 where they mean 429; the other headers show it.
    asks_for_patience = status in (403, 503) and ("retry-after" in headers or is_used_up(headers))
    if status in (420, 429) or asks_for_patience:
        error, what, helps = _TOO_MANY
    elif status >= 500 or status in (408, 425):
        error, what, helps = _TROUBLE
    else:
        error, what, helps = _MEANINGS.get(status) or (_REDIRECT_TO_NOWHERE if 300 <= status < 400 else _NOT_ACCEPTED)
    retry_at = told_to_wait_until(headers, now) if error in (SlowDown, ServerTrouble) else None
    phrase = f" {HTTPStatus(status).phrase}" if status in _STATUSES else ""
    problem = message("http.status", what=message(f"http.{what}"), status=f"{status}{phrase}")
    return error(problem, message(f"http.helps.{helps}"), status=status, retry_at=retry_at)


_Meaning = tuple[type[PlatformError], str, str]
"""An error, with the codes of its message and its remedy."""
_STATUSES = frozenset(HTTPStatus)
_TOO_MANY: _Meaning = (SlowDown, "too_many", "longer_interval")
_TROUBLE: _Meaning = (ServerTrouble, "trouble", "retried")
_MEANINGS: dict[int, _Meaning] = {
    206: (Unreadable, "partial", "server"),
    401: (LoginNeeded, "login", "credential"),
    402: (Refused, "payment", "account"),
    403: (Refused, "refused", "public"),
    404: (Missing, "missing", "address"),
    407: (Refused, "proxy", "proxy"),
    410: (Gone, "gone", "remove"),
    451: (Refused, "legal", "country"),
}
_REDIRECT_TO_NOWHERE: _Meaning = (Unreadable, "redirect", "server")
_NOT_ACCEPTED: _Meaning = (Refused, "not_accepted", "settings")


def is_used_up(headers: dict[str, str]) -> bool:
    """Whether the server says that no request is left in its present window."""
    remaining = _limit(headers, "remaining")
    return remaining is not None and remaining < 1


def _limit(headers: dict[str, str], name: str) -> float | None:
    for prefix in _LIMIT_HEADERS:
        if (text := headers.get(prefix + name)) is not None:
            return _number(text)
    return None


def told_to_wait_until(headers: dict[str, str], now: datetime) -> datetime | None:
    """Returns the moment that the server asks to wait for, at most a day away; None if it names none that makes
    sense."""
    until: datetime | None = None
    seconds: float | None = None
    if (retry_after := headers.get("retry-after")) is not None:
        seconds = _number(retry_after)
        until = http_date(retry_after) if seconds is None else None
    elif is_used_up(headers):
        seconds = _limit(headers, "reset")
        if seconds is not None and seconds >= _EPOCH_SECONDS:
            moment = seconds / 1000 if seconds > _EPOCH_MILLISECONDS else seconds
            until = datetime.fromtimestamp(min(moment, _EPOCH_MILLISECONDS), UTC)
    if until is None and seconds is not None:
        until = now + timedelta(seconds=min(seconds, LONGEST_PAUSE.total_seconds()))
    # A date in the past means: now.
    return None if until is None else min(max(until, now), now + LONGEST_PAUSE)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # "nan" and "inf" are numbers to float(), and nonsense in a header.
    return number if 0 <= number < float("inf") else None
