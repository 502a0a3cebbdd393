"""What is under way at this moment, looked at once a second for all who want to see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from catchment.shop import Shop

MOST_LISTENERS = 32
_FRESH_SECONDS = 0.9
_VISITS, _RESULTS = 12, 6
_LATEST = 40
"""So many visits that began last are looked at for those that ended last."""


class Pulse:
    """Shared by all who listen. Safe for threads."""

    def __init__(self) -> None:
        self.listeners = 0
        self._lock = Lock()
        self._at = float("-inf")
        self._seen: dict[str, Any] | None = None

    def seen(self, look: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """What was seen last, if that is not old, or if somebody looks right now; else what is seen now. None: nothing
        was seen yet."""
        if self._lock.acquire(blocking=False):
            try:
                if time.monotonic() - self._at > _FRESH_SECONDS:
                    self._seen, self._at = look(), time.monotonic()
            finally:
                self._lock.release()
        return self._seen

    @contextmanager
    def listening(self) -> Iterator[None]:
        self.listeners += 1
        try:
            yield
        finally:
            self.listeners -= 1


def seen_in(shop: Shop) -> dict[str, Any]:
    """The visits under way, and those that ended last."""
    visits = shop.store.runs.under_way()
    ended = [one for one in shop.store.runs.latest(_LATEST) if one["finished_at"] is not None]
    ended.sort(key=lambda one: one["finished_at"], reverse=True)
    return {"visit_count": len(visits), "visits": visits[:_VISITS], "results": ended[:_RESULTS]}
