"""robots.txt of sites: fetched once a day per site, and obeyed.

A file that does not exist (4xx) forbids nothing; one that cannot be had because the site is in trouble forbids
everything until it recovers. A pause between two pages (Crawl-delay) is kept, if it is not too long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from protego import Protego

from catchment.errors import Disallowed, PlatformError, ServerTrouble, SlowDown
from catchment.fetch.responses import http_refusal
from catchment.fetch.throttle import HostPacing
from catchment.fetch.urls import ParsedUrl
from catchment.lazy import pattern
from catchment.messages import message
from catchment.model import Answer, Identity, Record, Request

KEPT = timedelta(days=1)
MOST_SITES = 10_000
"""Kept at once; the one fetched longest ago goes first."""
MOST_BYTES = 1_000_000
READ_BYTES = 500 * 1024
"""How much of the file is parsed; the rest is ignored, as RFC 9309 allows."""
LONGEST_DELAY_SECONDS = 60.0
"""A site that asks for more is requested once in this time: a mistake there (an hour between two pages) must not starve
us."""
_LOCKS = 64
US, THEM = "us", "them"
_AGENT = pattern(r"\s*user[-\s]?agent\s*[:\s]([^#]*)", re.IGNORECASE)


class RobotsRules(Record, frozen=True):
    """The rules of one site."""

    rules: Protego
    turns: HostPacing | None
    """Spacing by its Crawl-delay; None: it has none."""
    until: datetime


class Robots:
    """The rules of all sites that were fetched. One per process, shared by its threads."""

    def __init__(self, user_agent: str, longest_wait: timedelta) -> None:
        self._user_agent, self._longest_wait = user_agent, longest_wait
        self._kept: dict[str, RobotsRules] = {}
        # One thread fetches, the others wait for the result. A few locks for all sites: hardly ever do two share one.
        self._asking = [Lock() for _ in range(_LOCKS)]

    def check(self, place: ParsedUrl, now: datetime, ask: Callable[[Request], Answer]) -> timedelta:
        """Returns how long to wait before this URL may be requested. Raises if the site forbids it.

        `ask` follows the request to its answer; it raises what prevents one.
        """
        origin = f"{place.scheme}://{place.site}"
        with self._asking[hash(origin) % _LOCKS]:
            rules = self._kept.get(origin)
            # Kept for longer than it may be: the clock was set back.
            if rules is None or not now < rules.until <= now + KEPT:
                rules = self._read(origin, now, ask)
                self._kept.pop(origin, None)
                self._kept[origin] = rules
                while len(self._kept) > MOST_SITES:
                    self._kept.pop(next(iter(self._kept)), None)
        if not rules.rules.can_fetch(place.url, US):
            raise Disallowed(
                "the robots.txt of {site} asks programs to stay away from this address",
                "add a page that it allows, or ask the site's operator",
                site=place.site,
            )
        return rules.turns.take(place.site, now) if rules.turns else timedelta(0)

    def _read(self, origin: str, now: datetime, ask: Callable[[Request], Answer]) -> RobotsRules:
        request = Request(
            url=f"{origin}/robots.txt",
            headers={"Accept": "text/plain, */*;q=0.1"},
            step="robots",
            max_bytes=MOST_BYTES,
            identity=Identity.NONE,
            is_keepable=False,
        )
        try:
            text = text_of(ask(request), now)
        except PlatformError as error:
            what = message("robots.unreadable", why=error.what)
            retold = type(error)(what, error.helps, status=error.status, retry_at=error.retry_at)
            retold.is_contact = error.is_contact
            raise retold from error
        rules = Protego.parse(addressed(text, self._user_agent))
        delay = min(rules.crawl_delay(US) or 0.0, LONGEST_DELAY_SECONDS)
        turns = HostPacing(1 / delay, 1, self._longest_wait) if delay > 0 else None
        return RobotsRules(rules, turns, now + KEPT)


def text_of(answer: Answer, now: datetime) -> str:
    """Returns the text of the rules; empty where there is no such file."""
    error = http_refusal(answer, now)
    if isinstance(error, ServerTrouble | SlowDown):
        raise error
    body = answer.body
    if len(body) > READ_BYTES:
        # In whole lines: half a line might forbid what the whole one does not.
        body = body[: body.rfind(b"\n", 0, READ_BYTES) + 1]
    return "" if error is not None else body.decode("utf-8-sig", "replace")


def addressed(text: str, user_agent: str) -> str:
    """Returns the same rules for two agents instead of all that are named: us, and all others.

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
    """Returns the agent a line names, in lower case; None if the line names none."""
    match = _AGENT.match(line)
    if match is None:
        return None
    agent = match[1].strip().lower()
    # Some write `somebody*`.
    return agent if agent == "*" else agent.replace("*", "")


def _likeness(name: str, user_agent: str) -> int:
    """Returns how closely an agent name matches us: the longest name counts, any name more than a star."""
    if name in ("", "*"):
        return len(name)
    # Where a word begins: "bot" is not meant for a "robot".
    return len(name) + 1 if re.search(rf"(?<![\w-]){re.escape(name)}", user_agent) else 0
