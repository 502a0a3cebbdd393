"""Feeds that a test writes by hand, and an app that collects them: real store, real parsers, no network.

Only the border to the platforms is played: `Town` stands where the fetch client would, and answers as a server does,
with status, headers and bytes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

from catchment.app import App, open_app
from catchment.collect.source_client import Send
from catchment.errors import PlatformError, SlowDown
from catchment.fetch.responses import http_refusal
from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Platform,
    Request,
    Source,
    VisitResult,
    as_json,
)
from catchment.platforms import Platforms
from catchment.settings import Settings
from catchment.store.sources.gaps import GapView
from tests.clocks import HandClock
from tests.databases import sqlite_ready
from tests.playing import Answering

Said = Callable[[Request, datetime], Answer]


@dataclass
class Feed:
    """One feed: entries by id, the newest `window` of them shown."""

    url: str
    window: int = 10
    title: str = "A feed"
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    says: deque[PlatformError | Said] = field(default_factory=deque)
    """What it does instead of answering, once each, in this order."""
    is_conditional: bool = True

    def post(self, key: str, text: str = "text", *, title: str | None = None, at: datetime | None = None) -> None:
        """Write an entry, or write it anew."""
        old = self.entries.get(key, {})
        self.entries[key] = {"text": text, "title": title or f"About {key}", "at": at or old.get("at")}

    def remove(self, key: str) -> None:
        del self.entries[key]

    def shown(self) -> list[str]:
        def age(key: str) -> tuple[bool, Any]:
            at = self.entries[key]["at"]
            return at is not None, at or 0

        return sorted(self.entries, key=age)[::-1][: self.window]

    def body(self) -> bytes:
        items = "".join(self._item(key) for key in self.shown())
        return f'<rss version="2.0"><channel><title>{self.title}</title>{items}</channel></rss>'.encode()

    def _item(self, key: str) -> str:
        entry = self.entries[key]
        date = f"<pubDate>{format_datetime(entry['at'])}</pubDate>" if entry["at"] else ""
        return (
            f'<item><guid isPermaLink="false">{key}</guid><link>https://feeds.example/{entry.get("link", key)}</link>'
            f"<title>{escape(entry['title'])}</title>{date}<description>{escape(entry['text'])}</description></item>"
        )


class Town(Answering):
    """Feeds by address. Called like the fetch client."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.feeds: dict[str, Feed] = {}
        self.asked: dict[str, list[Request]] = defaultdict(list)
        self.at_once = 0
        self.most_at_once = 0
        self._lock = Lock()

    def feed(self, name: str = "one", **more: Any) -> Feed:
        url = f"https://{name}.example/feed"
        return self.feeds.setdefault(url, Feed(url, **more))

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._answer(request, platform, attempts)
        finally:
            with self._lock:
                self.at_once -= 1

    def _answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        self.asked[request.url].append(request)
        feed, now = self.feeds[request.url], self.clock.now()
        says = feed.says.popleft() if feed.says else None
        if isinstance(says, PlatformError):
            if not (isinstance(says, SlowDown) and says.is_own_limit):
                attempts.append(Attempt(platform.NAME, now, says.code, 0.0))
            raise says
        answer = says(request, now) if says else _served(feed, request, now)
        attempts.append(Attempt(platform.NAME, now, str(answer.status), 0.0))
        refused = http_refusal(answer, now)
        if refused is not None:
            raise refused
        return answer


def _served(feed: Feed, request: Request, now: datetime) -> Answer:
    body = feed.body()
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    if feed.is_conditional and request.headers.get("If-None-Match") == tag:
        return Answer(304, {"etag": tag}, b"", request.url, now)
    headers = {"content-type": "application/rss+xml"} | ({"etag": tag} if feed.is_conditional else {})
    return Answer(200, headers, body, request.url, now)


class TownApp:
    """An app that collects the town, on a clock that the test moves."""

    def __init__(self, home: Path, database_url: str, **settings: Any) -> None:
        self.clock = HandClock()
        self.town = Town(self.clock)
        self._site: Send = self.town
        self.settings = Settings(home=home, database_url=sqlite_ready(database_url), **settings)
        self.app: App = self.another("test")

    def another(self, work: str, site: Send | None = None, platforms: Platforms | None = None) -> App:
        """One more process of the same deployment, as far as one can tell from inside one."""
        return open_app(self.settings, work, clock=self.clock, fetch=site or self.town, platforms=platforms)

    def play(self, site: Send, *platforms: Platform) -> None:
        """Let somebody else answer, for platforms of their own."""
        self._site = site
        self.restart(Platforms(platforms))

    def restart(self, platforms: Platforms | None = None) -> None:
        """Go on as another process that knows nothing but the database."""
        self.app = App(
            self.settings, self.app.store, self.clock, platforms or self.app.platforms, "test", fetch=self._site
        )

    def follow(self, feed: Feed, kind: str = "rss", **more: Any) -> Source:
        from catchment.sources.add import follow

        app = self.app
        source, _ = follow(app.store, app.secrets, app.platforms, kind, feed.url, self.clock.now(), **more)
        return source

    def collect(self, *sources: Source, after: timedelta = timedelta(minutes=1)) -> list[VisitResult]:
        """Visit these (or all that is due), some time later."""
        self.clock.advance(after.total_seconds())
        rounds = self.app.scheduler()
        return (
            rounds.these([source.id for source in sources], "test", "test") if sources else rounds.due("test", "test")
        )

    def items(self, source: Source | None = None) -> list[dict[str, Any]]:
        """In their JSON form."""
        return as_json(self.app.store.items.newest(1000, source_id=source.id if source else None))

    def item(self, external_id: str) -> dict[str, Any]:
        (found,) = [item for item in self.items() if item["external_id"] == external_id]
        return found

    def revisions(self, external_id: str) -> list[dict[str, Any]]:
        return as_json(self.app.store.items.revisions(self.item(external_id)["id"]))

    def gaps(self, *, include_closed: bool = False) -> list[GapView]:
        return self.app.store.gaps.page(include_closed=include_closed)

    def progress(self, source: Source) -> Any:
        return self.app.store.sources.with_progress(source.id)[1]

    def close(self) -> None:
        self.app.close()
