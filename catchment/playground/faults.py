"""The faults of the playground: which there are, and which request gets which of them.

The fault of each request is derived from the seed, the path, the credential and the number of the request, so that the
same run gets the same faults; or it is scripted by cues, which take precedence. Hosts have outages, too: for a whole
hour every connection is closed immediately. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random

import msgspec

from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import (
    STRAIGHT,
    Ask,
    Distortion,
    Page,
)


class Wire(StrEnum):
    """How an answer is sent."""

    WHOLE = "whole"
    LATE = "late"
    """After a delay, then at once."""
    DRIP = "drip"
    """Immediately, then piece by piece."""
    CUT = "cut"
    """Half of the declared length; then the connection is closed."""
    TORN = "torn"
    """Half of it, without a declared length: a client takes the half for the whole."""
    RESET = "reset"
    """Not at all: the connection is reset."""


class Fault(Record, frozen=True):
    """One fault of one request."""

    name: str
    what: str
    weight: float = 1.0
    """Its share of the random faults; 0: only by cue."""
    wire: Wire = Wire.WHOLE
    distortion: Distortion = STRAIGHT
    status: int | None = None
    """The status sent instead of the listing."""
    retry_after: timedelta | None = None
    is_date: bool = False
    """`Retry-After` is a date."""
    spoils: str | None = None
    """What is done to the body: a name of `SPOILED`."""
    paths: tuple[str, ...] = ("*",)
    spares: tuple[str, ...] = ()
    """Paths at which it does not occur by chance."""

    def may_meet(self, path: str) -> bool:
        """Whether it may occur there by chance."""
        is_there, is_spared = (
            any(fnmatchcase(path, pattern) for pattern in paths) for paths in (self.paths, self.spares)
        )
        return bool(self.weight) and is_there and not is_spared

    @property
    def is_whole(self) -> bool:
        """Whether a parser still gets every entry, unbroken."""
        return self.status is None and self.spoils is None and self.wire in (Wire.WHOLE, Wire.LATE, Wire.DRIP)


XS = ("/2/*", "/twitter/*", "/oapi/*")
"""X accepts a key until it is revoked, and we trust X: nobody could store the key again."""
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("login_needed", "401, although a login does not help", 0.5, status=401, spares=XS),
        Fault("forbidden", "403", 0.5, status=403, spares=XS),
        Fault("missing", "404, but it will be back", status=404),
        Fault("gone", "410: permanently gone", 0, status=410),
        Fault("slow_down", "429 with Retry-After in seconds", status=429, retry_after=timedelta(minutes=5)),
        Fault(
            "slow_down_until",
            "429 with Retry-After as a date",
            0.5,
            status=429,
            retry_after=timedelta(minutes=5),
            is_date=True,
        ),
        Fault("slow_down_somehow", "429 without Retry-After", status=429),
        Fault("server_error", "500", 2, status=500),
        Fault("bad_gateway", "502", status=502),
        Fault("unavailable", "503", status=503),
        Fault("unavailable_for", "503 with Retry-After", 0.5, status=503, retry_after=timedelta(minutes=2)),
        Fault("slow_first_byte", "a long silence, then the answer", 0.5, wire=Wire.LATE),
        Fault("slow_drip", "the answer in small pieces", 0.5, wire=Wire.DRIP),
        Fault("reset", "the connection is reset", 2, wire=Wire.RESET),
        Fault("cut_body", "the body is shorter than its Content-Length", 2, wire=Wire.CUT),
        Fault("torn_body", "the body is cut off, and there is no Content-Length", wire=Wire.TORN),
        Fault("gzip_garbage", "the body claims to be gzip, but is not", spoils="gzip_garbage"),
        Fault("malformed", "XML with an unclosed tag, JSON with a trailing comma", spoils="malformed"),
        Fault("empty", "200 and no body", spoils="empty"),
        Fault("html_page", "an HTML page instead of data", spoils="html_page"),
        Fault("captcha", "a bot check", 0.5, spoils="captcha"),
        Fault("stale", "200 with a listing that is some hours old", distortion=Distortion(ago=timedelta(hours=6))),
        Fault("reordered", "the entries in random order", distortion=Distortion(is_reordered=True)),
        Fault("repeated", "every entry twice", distortion=Distortion(is_repeated=True)),
        Fault("clock_skew", "all dates are off by hours", 0.5, distortion=Distortion(skew=timedelta(hours=5))),
        Fault(
            "looping_cursor",
            "the next page leads back to the first",
            distortion=Distortion(is_looping=True),
            paths=("*.json", *XS),
        ),
        Fault("outage", "for an hour the host closes every connection at once", 0, wire=Wire.RESET),
    )
}

REDDITS = ("/r/*",)
REDDIT_FAULTS = {
    fault.name: fault
    for fault in (
        Fault("private", "403: the community is for its members", 0, status=403),
        Fault("banned", "404: the community was closed by the site", 0, status=404),
        Fault("quarantined", "403: the community is shown only to those who agreed to see it", 0, status=403),
        Fault("narrow_scope", "403: the token lacks the scope", 0, status=403),
        Fault("blocked", "403 with a page that blocks bots", 0, status=403),
        Fault("over_18", "200 with a page that asks for our age", 0, status=200),
        Fault("unknown_name", "302 to a search, as for communities that do not exist", 0, status=302),
        Fault("legal", "451: unavailable in this country", 0, status=451),
        Fault("login_refused", "200 with an error instead of a token", 0, status=200),
        Fault("challenge", "200 with a bot check", 0.1, status=200, paths=REDDITS),
        Fault("truncated", "200 with JSON that lacks its last brackets", 0.5, spoils="truncated", paths=REDDITS),
        Fault(
            "deleted_anchor",
            "the post that the cursor refers to is gone: an empty page without a next one",
            0.5,
            distortion=Distortion(is_anchor_gone=True),
            paths=REDDITS,
        ),
    )
}
"""Faults of one platform: no other has private or quarantined communities."""
ALL_FAULTS = FAULTS | REDDIT_FAULTS


class Cue(Record, frozen=True, forbid_unknown_fields=True):
    """A scripted fault: for which client, and for which of its requests (counted from 1) or during which time."""

    fault: str = msgspec.field(name="mood")
    """A name of `ALL_FAULTS`."""
    path: str = "*"
    host: str = "*"
    credential: str | None = None
    first: int = 1
    last: int | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None

    def calls(self, path: str, credential: str | None, number: int, at: datetime, host: str) -> bool:
        return (
            fnmatchcase(path, self.path)
            and fnmatchcase(host, self.host)
            and self.credential in (None, credential)
            and number >= self.first
            and (self.last is None or number <= self.last)
            and (self.from_at is None or at >= self.from_at)
            and (self.to_at is None or at < self.to_at)
        )


class FaultPlan:
    """The plan of faults: a function of the seed, the script, the client and the number of its request."""

    def __init__(
        self, seed: int = 0, rate: float = 0.0, script: Sequence[Cue] = (), outage_rate: float | None = None
    ) -> None:
        self.seed, self.rate, self.script = seed, rate, tuple(script)
        # Share of a host's hours. Rare compared to single faults: an outage affects everything on that host.
        self.outage_rate = rate / 20 if outage_rate is None else outage_rate
        for cue in self.script:
            if cue.fault not in ALL_FAULTS:
                raise InvalidInput(
                    f"there is no fault {cue.fault!r}", f"there are: {', '.join(ALL_FAULTS)}", field="mood"
                )

    def of(
        self, path: str, credential: str | None, request_number: int, at: datetime, host: str = "127.0.0.1"
    ) -> Fault | None:
        """The fault of this request; None if it has none."""
        for cue in self.script:
            if cue.calls(path, credential, request_number, at, host):
                return ALL_FAULTS[cue.fault]
        if self._is_out(host, at):
            return FAULTS["outage"]
        if not self.rate:
            return None
        chance = chance_of(self.seed, path, credential, request_number)
        return self._drawn(chance, path) if chance.random() < self.rate else None

    def _is_out(self, host: str, at: datetime) -> bool:
        if not self.outage_rate:
            return False
        return chance_of(self.seed, "outage", host, f"{at:%Y-%m-%d %H}").random() < self.outage_rate

    def _drawn(self, chance: Random, path: str) -> Fault:
        able = [fault for fault in ALL_FAULTS.values() if fault.may_meet(path)]
        return _varied(chance.choices(able, [fault.weight for fault in able])[0], chance)


def _varied(fault: Fault, chance: Random) -> Fault:
    """How stale, how skewed, how long to wait: different every time."""
    if fault.retry_after is not None:
        return fault.replace(retry_after=timedelta(seconds=chance.randint(1, 900)))
    if fault.distortion.ago:
        return fault.replace(distortion=fault.distortion.replace(ago=timedelta(hours=chance.uniform(1, 24))))
    if fault.distortion.skew:
        return fault.replace(
            distortion=fault.distortion.replace(skew=timedelta(hours=chance.choice((-8, -5, -1, 1, 2, 8))))
        )
    return fault


# ── effects on an answer ──────────────────────────────────────────────────────────────────────────────────────────


def refused(fault: Fault, ask: Ask) -> Page:
    """The answer that replaces the listing."""
    assert fault.status is not None
    headers = {"Content-Type": "text/html; charset=utf-8"}
    if fault.retry_after is not None:
        seconds = int(fault.retry_after.total_seconds())
        until = (ask.at + fault.retry_after).astimezone(UTC)
        headers["Retry-After"] = format_datetime(until, usegmt=True) if fault.is_date else str(seconds)
    if fault.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="playground"'
    return Page(fault.status, headers, f"<html><body><h1>{fault.status}</h1></body></html>".encode())


def spoiled(fault: Fault, page: Page) -> Page:
    """The page with its body spoiled. Its validators stay: a client that stores them without having parsed the body
    loses entries."""
    if fault.spoils is None or page.status != 200:
        return page
    return SPOILED[fault.spoils](page.replace(packed=None))


def _gzip_garbage(page: Page) -> Page:
    return page.replace(headers=page.headers | {"Content-Encoding": "gzip"}, body=b"\x1f\x8b\x08\x00" + page.body[:400])


def _malformed(page: Page) -> Page:
    """Broken outside of the entries, so that a tolerant parser finds every entry unchanged."""
    if "json" in page.headers["Content-Type"]:
        return page.replace(body=page.body[:-1] + b",]}")
    return page.replace(body=page.body.replace(b"<title>", b"<title><br>&nbsp;& ", 1))


def _truncated(page: Page) -> Page:
    """Cut so late that all entries are there: a tolerant parser has them."""
    return page.replace(body=page.body[:-2])


def _empty(page: Page) -> Page:
    return page.replace(body=b"", entries=())


def _as_page(title: str, words: str) -> Callable[[Page], Page]:
    body = f"<!doctype html>\n<html><head><title>{title}</title></head><body><p>{words}</p></body></html>\n".encode()

    def instead(page: Page) -> Page:
        return page.replace(headers=page.headers | {"Content-Type": "text/html; charset=utf-8"}, body=body, entries=())

    return instead


SPOILED: dict[str, Callable[[Page], Page]] = {
    "gzip_garbage": _gzip_garbage,
    "malformed": _malformed,
    "truncated": _truncated,
    "empty": _empty,
    "html_page": _as_page("Maintenance", "We are back soon."),
    "captcha": _as_page("Just a moment...", 'Checking that you are human. <span id="px-captcha"></span>'),
}
