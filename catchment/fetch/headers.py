"""Headers: from the wire to a dictionary, which of them may be kept, and what they say about polling. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from catchment.fetch.times import http_date

_KEPT = frozenset(
    (
        "age", "cache-control", "content-encoding", "content-language", "content-length", "content-type", "date",
        "etag", "expires", "last-modified", "link", "retry-after", "vary",
    )
)  # fmt: skip
_KEPT_BEGINNINGS = ("x-ratelimit-", "x-rate-limit-", "ratelimit-")

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})")
_NEVER_STORED = re.compile(r"(?:^|[\s,])no-(?:cache|store)\b")
LONGEST_CACHE_SECONDS = 30 * 86400
_LONGEST_VALIDATOR = 1000


def read_headers(lines: list[bytes]) -> dict[str, str]:
    """The headers of the last answer among the lines. Names in lower case, repeated ones joined by ", "."""
    headers: dict[str, str] = {}
    # Interim answers (100, 103) may have come before; only the last one counts.
    begin = max((number for number, line in enumerate(lines) if line.startswith(b"HTTP/")), default=-1)
    for line in lines[begin + 1 :]:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            # The blank line. What comes after it are trailers: too late to mean anything.
            break
        name, value = name.rstrip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def validators(headers: dict[str, str]) -> tuple[str | None, str | None]:
    """ETag and Last-Modified, each if it can be sent back: servers have been seen to put line breaks into them."""
    return _validator(headers.get("etag")), _validator(headers.get("last-modified"))


def _validator(value: str | None) -> str | None:
    return value if value and len(value) <= _LONGEST_VALIDATOR and value.isprintable() else None


def keepable_headers(headers: dict[str, str]) -> dict[str, str]:
    """Those that may be stored with an answer: a list of what is allowed, so that no cookie or token slips through."""
    return {name: value for name, value in headers.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)}


def cache_seconds(headers: dict[str, str], now: datetime) -> int | None:
    """For how long, by the server's word, nothing new is to be expected; None: there is no such word."""
    control = headers.get("cache-control", "").lower()
    if _NEVER_STORED.search(control):
        return None
    if told := _MAX_AGE.search(control):
        return min(int(told[1]), LONGEST_CACHE_SECONDS)
    # `Expires: 0` and other nonsense means "already expired", which is no hint.
    expires = http_date(headers.get("expires", ""))
    if expires is None:
        return None
    # The server's own clock, where it tells it: a machine whose clock is wrong would get a wrong difference.
    seconds = int((expires - (http_date(headers.get("date", "")) or now)).total_seconds())
    return min(seconds, LONGEST_CACHE_SECONDS) if seconds > 0 else None
