"""Where hot entries live: one interface. The database is a home (`store.hot_home`), Redis is another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from catchment.store.hot import HotCounts, HotSet


class Home(Protocol):
    """Times come by argument; what is past its time is not there, whether it was cleared or not. Redis raises Away
    where it cannot be asked."""

    name: str

    def keep(self, made: HotSet) -> None:
        """Put the set in the place of the one that was there; all of it or nothing."""

    def newest(self, source_id: int, stamp: int, limit: int, now: datetime) -> list[dict[str, Any]] | None:
        """Up to so many of the set that was made under this stamp, newest first; None: there is none."""

    def cache(self, seen: HotSet) -> None:
        """Put what a cache-only crawl saw beside what others saw before; what is seen again lives longer."""

    def cached(self, source_id: int, limit: int, now: datetime) -> list[dict[str, Any]]:
        """What is cached only of this source, newest first."""

    def drop(self, source_ids: Sequence[int]) -> None:
        """All that is hot of these sources."""

    def count(self, minute: datetime, counts: HotCounts) -> None:
        """Add to what was counted in that minute."""

    def counted(self, since: datetime, until: datetime) -> HotCounts:
        """All that was counted from the minute of `since` on, and before `until`."""

    def clear_expired(self, now: datetime, counted_before: datetime) -> int:
        """Take away what is past its time, and counts from before; gives how many entries went."""

    def entry_count(self, now: datetime) -> int:
        """How many entries are hot."""
