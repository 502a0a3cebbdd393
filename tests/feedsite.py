"""A site of feeds on 127.0.0.1, over real HTTP, that a test writes by hand.

with FeedSite() as site:
    news = site.feed("news")
    news.post("1", text="first")
    … collect news.url …
    news.post("1", text="second thoughts")      # an edit
    news.remove("1"); news.status = 503; news.hold()
    assert news.requests == 2
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from threading import Event
from types import TracebackType
from typing import Any, Self
from xml.sax.saxutils import escape

from tests.hostile import Connection, Hostile, Seen, reply

BEGINNING = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Feed:
    """One feed of the site: RSS, newest entry first."""

    def __init__(self, site: FeedSite, name: str, title: str) -> None:
        self._site, self.path, self.title = site, f"/{name}.xml", title
        self.entries: dict[str, dict[str, Any]] = {}
        self.status = 200
        self.is_conditional = True
        """Whether it gives an ETag, and answers 304."""
        self.requests = 0
        self.asked: list[Seen] = []
        self._may_answer = Event()
        self._may_answer.set()
        self.url = site.server.on(self.path, self._answer)

    def post(self, key: str, *, title: str | None = None, text: str = "text", at: datetime | None = None) -> None:
        """An entry, or another version of one."""
        known = self.entries.get(key)
        posted_at = at or (known["at"] if known else BEGINNING + timedelta(minutes=len(self.entries)))
        self.entries[key] = {"title": title or f"About {key}", "text": text, "at": posted_at}

    def remove(self, key: str) -> None:
        del self.entries[key]

    def hold(self) -> None:
        """Take requests, and do not answer until `release`."""
        self._may_answer.clear()

    def release(self) -> None:
        self._may_answer.set()

    def body(self) -> bytes:
        newest_first = sorted(self.entries, key=lambda key: self.entries[key]["at"], reverse=True)
        entries = "".join(self._entry(key) for key in newest_first)
        head = f"<title>{escape(self.title)}</title><link>{self._site.url}/</link>"
        return f'<?xml version="1.0"?><rss version="2.0"><channel>{head}{entries}</channel></rss>'.encode()

    def _entry(self, key: str) -> str:
        entry = self.entries[key]
        return (
            f'<item><guid isPermaLink="false">{escape(key)}</guid><link>{self._site.url}/{escape(key)}</link>'
            f"<title>{escape(entry['title'])}</title><description>{escape(entry['text'])}</description>"
            f"<pubDate>{format_datetime(entry['at'])}</pubDate></item>"
        )

    def _answer(self, connection: Connection, seen: Seen) -> bool:
        self.requests += 1
        self.asked.append(seen)
        while not self._may_answer.wait(0.02):
            if connection.closing.is_set():
                return False
        if self.status != 200:
            return reply(b"", self.status)(connection, seen)
        body = self.body()
        etag = f'"{sha256(body).hexdigest()[:16]}"'
        if self.is_conditional and seen.headers.get("if-none-match") == etag:
            return reply(b"", 304, etag=etag)(connection, seen)
        more = {"etag": etag} if self.is_conditional else {}
        return reply(body, content_type="application/rss+xml", **more)(connection, seen)


class FeedSite:
    def __init__(self) -> None:
        self.server = Hostile()
        self.url = self.server.url
        self.feeds: dict[str, Feed] = {}

    def feed(self, name: str, title: str = "A feed", posts: int = 0) -> Feed:
        """The feed of that name; made, with so many posts in it, if there is none."""
        if name not in self.feeds:
            self.feeds[name] = Feed(self, name, title)
            for number in range(1, posts + 1):
                self.feeds[name].post(f"{name}-{number}")
        return self.feeds[name]

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for feed in self.feeds.values():
            feed.release()
        self.server.__exit__(kind, error, trace)
