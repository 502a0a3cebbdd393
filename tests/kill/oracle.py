"""An oracle: feeds that grow while they are read, fail one time in five, and remember everything they said.

Truth is what was sent whole. What an entry said, version by version, is known for ever; so it can be told afterwards
whether anything was lost, stored twice, or made up.
"""

from __future__ import annotations

import os
import random
import select
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WINDOW = 10


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Whoever asked was killed in the middle: nothing to say about it."""


@dataclass
class Entry:
    at: datetime
    versions: list[str]


@dataclass
class OracleFeed:
    entries: dict[str, Entry] = field(default_factory=dict)
    requests: int = 0
    whole: int = 0
    """Answers that were sent to their end."""
    ends: set[datetime] = field(default_factory=set)
    """The times of the oldest entries in the full windows that were shown."""

    def shown(self) -> list[str]:
        return list(self.entries)[-WINDOW:][::-1]

    def show(self) -> list[str]:
        """The same, and it is noted how far down the window reached."""
        shown = self.shown()
        if len(shown) == WINDOW:
            self.ends.add(self.entries[shown[-1]].at)
        return shown


class Oracle:
    """Serves `/f/<n>` for each of its feeds on 127.0.0.1."""

    def __init__(self, feeds: int, seed: int, fault_rate: float) -> None:
        self.random = random.Random(seed)
        self.feeds = [OracleFeed() for _ in range(feeds)]
        self.fault_rate = fault_rate
        self.faults = 0
        self.requests = 0
        self._due = 0
        self._heard, self._bell = os.pipe()
        self.lock = threading.Lock()
        self._last = datetime.now(UTC)
        for feed in self.feeds:
            self._grow(feed, 5)
        oracle = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                oracle.serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        os.close(self._heard)
        os.close(self._bell)

    def ring_after(self, requests: int) -> int:
        """A descriptor that becomes readable when so many more requests have come."""
        with self.lock:
            while select.select([self._heard], [], [], 0)[0]:
                os.read(self._heard, 1)
            self._due = self.requests + requests
        return self._heard

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/f/{number}"

    # ── the world moves on ────────────────────────────────────────────────────────────────────────────────────────

    def _now(self) -> datetime:
        """No two entries of the same moment, and none in the future."""
        self._last = max(self._last + timedelta(microseconds=1), datetime.now(UTC))
        return self._last

    def _grow(self, feed: OracleFeed, count: int) -> None:
        for _ in range(count):
            feed.entries[f"e{len(feed.entries)}"] = Entry(self._now(), ["version 1"])

    def _live(self, feed: OracleFeed) -> None:
        """What happens between two visits: mostly a few posts, at times a burst beyond the window, at times an edit."""
        draw = self.random.random()
        self._grow(feed, 25 if draw < 0.05 else self.random.randint(1, 3) if draw < 0.5 else 0)
        if draw > 0.8:
            entry = feed.entries[self.random.choice(feed.shown())]
            entry.versions.append(f"version {len(entry.versions) + 1}")

    # ── answering ─────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        with self.lock:
            feed = self.feeds[int(handler.path.rsplit("/", 1)[1])]
            feed.requests += 1
            self.requests += 1
            if self.requests == self._due:
                os.write(self._bell, b".")
            if feed.requests > 1:
                self._live(feed)
            fault = self.random.choice(FAULTS) if self.random.random() < self.fault_rate else None
            self.faults += fault is not None
            body = self._body(feed)
        if fault is not None:
            fault(handler, body)
            return
        _send(handler, 200, body)
        feed.whole += 1

    def _body(self, feed: OracleFeed) -> bytes:
        entries = "".join(
            f"<entry><id>{key}</id><title>{key}</title><published>{entry.at.isoformat()}</published>"
            f"<updated>{entry.at.isoformat()}</updated><content>{entry.versions[-1]}</content></entry>"
            for key, entry in ((key, feed.entries[key]) for key in feed.show())
        )
        return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>oracle</title>{entries}</feed>'.encode()


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _cut(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def _reset(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.close_connection = True


FAULTS = (
    lambda handler, body: _send(handler, 500, b"oops"),
    lambda handler, body: _send(handler, 503, b""),
    lambda handler, body: _send(handler, 404, b"not here"),
    lambda handler, body: _send(handler, 200, b""),
    lambda handler, body: _send(handler, 200, b"<!doctype html><html><body>maintenance</body></html>"),
    _cut,
    _reset,
)
