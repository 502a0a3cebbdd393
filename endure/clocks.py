"""A clock that goes on when somebody waits, and stands still while anybody works."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock, local
from time import monotonic, sleep

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


BUSY, NEVER = 0, 2**62
STUCK_SECONDS = 2.0


class LockstepClock:
    """A clock for several processes that were forked from one: it stands still while any of them sends a request.

    Each process says until when nothing happens in it: until the first of its threads that wait goes on, or not at all
    while a request is on its way. The clock goes on to the earliest of these moments. So a request arrives at the
    moment at which it was allowed.
    """

    def __init__(self, file: Path, start: datetime, processes: int) -> None:
        file.write_bytes(bytes(8 * (processes + 1)))
        self._path, self._processes = file, processes
        with file.open("r+b") as opened:
            # Numbers that are written at once. `struct.pack_into` clears the place first, and others would read 0.
            self._shared = memoryview(mmap.mmap(opened.fileno(), 0)).cast("q")
        self._slot = 0
        self._start(start)

    def _start(self, start: datetime) -> None:
        self._set(0, micros(start))
        for slot in range(1, self._processes + 1):
            self._set(slot, NEVER)

    def take(self, slot: int) -> None:
        """Called by a process before anything else: what happens in it is told in this slot."""
        self._slot, self._lock, self._local = slot, Lock(), local()
        self._sending, self._wakes = 0, list[int]()
        # Opened anew: a lock on a file belongs to the opening, and ends with the process.
        self._descriptor = os.open(self._path, os.O_RDWR)
        self._set(slot, BUSY)

    def begin(self, slot: int) -> None:
        """A process is about to take this slot: the clock must not go on before."""
        self._set(slot, BUSY)

    def leave(self, slot: int) -> None:
        """The process of this slot has ended."""
        self._set(slot, NEVER)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """A request is on its way: the clock stands still, unless the request has to wait."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def idle(self, until: datetime) -> None:
        """Waits until then."""
        wake, is_sending = micros(until), getattr(self._local, "is_sending", False)
        with self._lock:
            self._sending -= is_sending
            self._wakes.append(wake)
            self._tell()
        seen, since = self._get(0), monotonic()
        while (now := self._get(0)) < wake:
            if now != seen:
                seen, since = now, monotonic()
            # A request that waits may hold what another one of this process needs first (the site's robots.txt): both
            # would wait for ever.
            self._go_on(is_stuck=is_sending and monotonic() - since > STUCK_SECONDS)
            sleep(0.0005)
        with self._lock:
            self._sending += is_sending
            self._wakes.remove(wake)
            self._tell()

    def now(self) -> datetime:
        return moment(self._get(0))

    def wait(self, seconds: float, stop: Event) -> bool:
        if not stop.is_set():
            self.idle(self.now() + timedelta(seconds=max(0.0, seconds)))
        return stop.is_set()

    def wall_seconds(self, seconds: float) -> float:
        return 0.0

    def _count(self, change: int) -> None:
        self._local.is_sending = change > 0
        with self._lock:
            self._sending += change
            self._tell()

    def _tell(self) -> None:
        self._set(self._slot, BUSY if self._sending or not self._wakes else min(self._wakes))

    def _go_on(self, *, is_stuck: bool) -> None:
        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                first = min(self._get(slot) for slot in range(1, self._processes + 1))
                self._set(0, max(self._get(0), min(self._wakes) if is_stuck else first))
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _get(self, place: int) -> int:
        return self._shared[place]

    def _set(self, place: int, value: int) -> None:
        self._shared[place] = value
