"""A clock that goes on when somebody waits, and stands still while anybody works."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock

from catchment.clock import micros, moment


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


class SharedClock:
    """The same for several processes: whoever waits moves it for all of them."""

    def __init__(self, file: Path, start: datetime | None = None) -> None:
        """`start`: None, if another process has set it."""
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        if start is not None:
            os.pwrite(self._file, micros(start).to_bytes(8, "little"), 0)
        self._memory = mmap.mmap(self._file, 8)
        self._lock = Lock()

    def now(self) -> datetime:
        return moment(int.from_bytes(self._memory[:8], "little"))

    def go_on(self, until: datetime) -> None:
        with self._alone():
            self._set(max(self.now(), until))

    def wait(self, seconds: float, stop: Event) -> bool:
        if not stop.is_set():
            with self._alone():
                self._set(self.now() + timedelta(seconds=max(0.0, seconds)))
        return stop.is_set()

    def wall_seconds(self, seconds: float) -> float:
        return 0.0

    def _set(self, now: datetime) -> None:
        self._memory[:8] = micros(now).to_bytes(8, "little")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
