"""A feed that does what feeds do: it is edited, cut, sorted anew, cached on the way, and now and then broken."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.stateful.truth import Entry, Shown
from tests.town import Feed


@dataclass
class WildFeed(Feed):
    is_reversed: bool = False
    hollow: int = 0
    """So many entries with nothing in them come along."""
    ttl_minutes: int | None = None
    stuck: Shown | None = None
    """What a cache on the way answers in its place."""

    def put(self, link: str, text: str, at: datetime | None) -> None:
        self.entries[link] = {"text": text, "title": f"About {link}", "at": at, "link": link}

    def shown(self) -> list[str]:
        newest_first = super().shown()
        return newest_first[::-1] if self.is_reversed else newest_first

    def now_shown(self) -> Shown:
        """What the next answer will show."""
        if self.stuck is not None:
            return self.stuck
        entries = tuple(_entry(key, self.entries[key]) for key in self.shown())
        ttl = None if self.ttl_minutes is None else timedelta(minutes=self.ttl_minutes)
        return Shown(entries, self.hollow, self._body(), ttl)

    def body(self) -> bytes:
        return self.now_shown().body

    def _body(self) -> bytes:
        ttl = f"<ttl>{self.ttl_minutes}</ttl>" if self.ttl_minutes is not None else ""
        hollow = '<item><guid isPermaLink="false">hollow</guid></item>' * self.hollow
        items = "".join(self._item(key) for key in self.shown())
        return f'<rss version="2.0"><channel><title>{self.title}</title>{ttl}{items}{hollow}</channel></rss>'.encode()


def _entry(key: str, entry: dict[str, Any]) -> Entry:
    return Entry(key, f"https://feeds.example/{entry['link']}", entry["title"], entry["text"], entry["at"])
