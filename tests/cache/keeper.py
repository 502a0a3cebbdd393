"""A desk whose communities are kept hot, and what can be asked of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from catchment.cache import Backend, Cache
from catchment.model import (
    Item,
    Kind,
    Listing,
    Order,
    Source,
)
from catchment.store.items.items import ItemPage
from catchment.store.search.lists import Filter
from tests.store.desk import Desk

COMMUNITY = Kind("reddit", "a community", 60, "r/x", (Listing("new", Order.NEWEST_FIRST),), is_tiered=True)
FEED = Kind("rss", "a feed", 240, "https://x.example", (Listing("feed", Order.NEWEST_FIRST, is_window=True),))


class Keeper:
    def __init__(self, desk: Desk, redis: Backend | None) -> None:
        self.desk, self.store, self.clock, self.redis = desk, desk.store, desk.clock, redis
        self.hot = self.another()

    def another(self) -> Cache:
        """The hot store of one more process."""
        return Cache(self.store, self.redis, self.clock, timedelta(hours=24), timedelta(days=7))

    def entries(self) -> int:
        return self.hot.standing()[1]

    def follow(self, name: str = "r/one") -> Source:
        return self.desk.follow(name, "reddit")

    def show(self, source: Source, *items: Item, **more: Any) -> None:
        """A visit, and what follows it."""
        self.desk.show(source, *items, **more)
        self.refresh(source)

    def refresh(self, source: Source) -> None:
        self.hot.refresh(source.id, COMMUNITY)

    def read(self, source: Source, limit: int = 10) -> ItemPage:
        return self.hot.listed(Filter(source.id), limit)

    def cold(self, source: Source, limit: int = 10) -> ItemPage:
        return self.store.items.listed(Filter(source.id), limit)

    def hits(self) -> int:
        return self.hot.counts(self.clock.now() - timedelta(days=7)).hits

    def is_hit(self, source: Source, limit: int = 10) -> bool:
        """Whether the hot set answered; and that it said what the archive says."""
        before = self.hits()
        assert self.read(source, limit) == self.cold(source, limit)
        return self.hits() > before
