"""A clock that goes on when somebody waits, and stands still while anybody works."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Event, Lock


class PatientClock:
    """On it, all work takes no time: whatever is asked for at once arrives at once, and every rule about "so many in so
    long" is put to its hardest test."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._lock = Lock()

    def now(self) -> datetime:
        return self._now

    def go_on(self, until: datetime) -> None:
        with self._lock:
            self._now = max(self._now, until)

    def wait(self, seconds: float, stop: Event) -> bool:
        if not stop.is_set():
            with self._lock:
                self._now += timedelta(seconds=max(0.0, seconds))
        return stop.is_set()

    def wall_seconds(self, seconds: float) -> float:
        return 0.0
