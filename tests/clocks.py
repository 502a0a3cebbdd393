"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event, Lock


class HandClock:
    """Waiting on it moves it: nobody sleeps, and what was waited for can be read afterwards."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._lock = Lock()
        self.waits: list[float] = []

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += timedelta(seconds=seconds)

    def wait(self, seconds: float, stop: Event) -> bool:
        if stop.is_set():
            return True
        self.waits.append(seconds)
        self.advance(max(0.0, seconds))
        return stop.is_set()

    def wall_seconds(self, seconds: float) -> float:
        return 0.0
