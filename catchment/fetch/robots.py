"""What sites ask of programs, by their robots.txt: asked for once a day and site, and obeyed.

What cannot be had because it is not there (4xx) forbids nothing; what cannot be had because the site is in trouble
forbids everything until it is well again. A pause between two pages (Crawl-delay) is kept, if it is not too long a one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from protego import Protego

from catchment.errors import Disallowed, PlatformError, ServerTrouble, SlowDown
from catchment.fetch.manners import Turns
from catchment.fetch.refusals import http_refusal
from catchment.fetch.urls import Place
from catchment.model import Answer, Identity, Record, Request

KEPT = timedelta(days=1)
MOST_SITES = 10_000
"""Kept at once; the one asked for longest ago goes first."""
MOST_BYTES = 1_000_000
READ_BYTES = 500 * 1024
"""So much is read of what came; the rest is passed over, as RFC 9309 allows."""
LONGEST_DELAY_SECONDS = 60.0
"""A site that asks for more is asked once in so many: a slip there (an hour between two pages) must not starve us."""
_LOCKS = 64
US, THEM = "us", "them"
_AGENT = re.compile(r"\s*user[-\s]?agent\s*[:\s]([^#]*)", re.IGNORECASE)


class Rules(Record, frozen=True):
    """What one site asks for."""

    said: Protego
    turns: Turns | None
    """Of those who keep to its pause; None: it asks for none."""
    until: datetime

    def allows(self, place: Place) -> bool:
        return bool(self.said.can_fetch(place.url, US))


class Robots:
    """The rules of all sites that were asked. One for a process; its threads share it."""

    def __init__(self, user_agent: str, longest_wait: timedelta) -> None:
        self._user_agent, self._longest_wait = user_agent, longest_wait
        self._kept: dict[str, Rules] = {}
        # One asks, the others wait for what it learns. A few locks for all sites: hardly ever do two share one.
        self._asking = [Lock() for _ in range(_LOCKS)]

    def check(self, place: Place, now: datetime, ask: Callable[[Request], Answer]) -> timedelta:
        """How long to wait before this place may be asked. Raises if the site wants it left alone.

        `ask` follows the request to its answer; it raises what keeps it from one.
        """
        rules = self._rules(place, now, ask)
        if not rules.allows(place):
            raise Disallowed(
                f"the robots.txt of {place.site} asks programs to stay away from this address",
                "follow a page that it allows, or ask the site's operator",
            )
        return rules.turns.take(place.site, now) if rules.turns else timedelta(0)

    def _rules(self, place: Place, now: datetime, ask: Callable[[Request], Answer]) -> Rules:
        origin = f"{place.scheme}://{place.site}"
        with self._asking[hash(origin) % _LOCKS]:
            known = self._kept.get(origin)
            # Kept for longer than it may be: the clock was set back.
            if known is None or not now < known.until <= now + KEPT:
                known = self._read(_answer(place, ask), now)
                self._keep(origin, known)
            return known

    def _read(self, answer: Answer, now: datetime) -> Rules:
        said = Protego.parse(addressed(text_of(answer, now), self._user_agent))
        delay = min(said.crawl_delay(US) or 0.0, LONGEST_DELAY_SECONDS)
        turns = Turns(1 / delay, 1, self._longest_wait) if delay > 0 else None
        return Rules(said, turns, now + KEPT)

    def _keep(self, origin: str, rules: Rules) -> None:
        self._kept.pop(origin, None)
        self._kept[origin] = rules
        while len(self._kept) > MOST_SITES:
            self._kept.pop(next(iter(self._kept)), None)


def request(place: Place) -> Request:
    """Asks for the rules of a place's site, as nobody in particular."""
    return Request(
        url=f"{place.scheme}://{place.site}/robots.txt",
        headers={"Accept": "text/plain, */*;q=0.1"},
        step="robots",
        max_bytes=MOST_BYTES,
        identity=Identity.NONE,
        is_keepable=False,
    )


def text_of(answer: Answer, now: datetime) -> str:
    """The rules as they are written; none where there is no such file."""
    error = http_refusal(answer, now)
    if isinstance(error, ServerTrouble | SlowDown):
        raise _about_robots(error)
    return "" if error is not None else _whole_lines(answer.body).decode("utf-8-sig", "replace")


def _whole_lines(body: bytes) -> bytes:
    """As much as is read. Half a line might forbid what the whole one does not."""
    return body if len(body) <= READ_BYTES else body[: body.rfind(b"\n", 0, READ_BYTES) + 1]


def addressed(text: str, user_agent: str) -> str:
    """The same rules for two agents in place of all that are named: us, and all others.

    Every rule is kept once for each agent of its group: ten thousand of both would be a hundred million.
    """
    lines = text.splitlines()
    named = [_agent(line) for line in lines]
    best = max(dict.fromkeys(filter(None, named)), key=lambda name: _likeness(name, user_agent.lower()), default="")
    ours = best if _likeness(best, user_agent.lower()) else None
    return "\n".join(
        line if name is None else f"User-agent: {US if name == ours else THEM}"
        for line, name in zip(lines, named, strict=True)
    )


def _agent(line: str) -> str | None:
    """Whom a line names, in small letters; None: it is none of those that name somebody."""
    match = _AGENT.match(line)
    if match is None:
        return None
    name = match[1].strip().lower()
    # Some write `somebody*`.
    return name if name == "*" else name.replace("*", "")


def _likeness(name: str, user_agent: str) -> int:
    """How closely somebody who is called so is meant to be us: the longest name counts, any name more than a star."""
    if name in ("", "*"):
        return len(name)
    # Where a word begins: "bot" is not meant for a "robot".
    return len(name) + 1 if re.search(rf"(?<![\w-]){re.escape(name)}", user_agent) else 0


def _answer(place: Place, ask: Callable[[Request], Answer]) -> Answer:
    try:
        return ask(request(place))
    except PlatformError as error:
        raise _about_robots(error) from error


def _about_robots(error: PlatformError) -> PlatformError:
    what = f"its robots.txt cannot be read: {error.what}"
    retold = type(error)(what, error.helps, status=error.status, retry_at=error.retry_at)
    retold.is_contact = error.is_contact
    return retold
