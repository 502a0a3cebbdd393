"""A clock that goes on when somebody waits, and stands still while anybody works."""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock, get_ident
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
STUCK_SECONDS = 60.0
"""Nothing takes so long, on the slowest machine."""
_PAUSES = (0.0005, 0.004)
"""Between two looks at the clock, at first and in the end."""
BEFORE_A_TOKEN = ("fetch/robots.py", "fetch/auth.py")
"""Where a request waits for another one of its process, before it may be sent."""


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
        self._slot, self._lock = slot, Lock()
        self._sending, self._wakes = set[int](), list[int]()
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
        with self._lock:
            self._sending.add(get_ident())
            self._tell()
        try:
            yield
        finally:
            with self._lock:
                self._sending.discard(get_ident())
                self._tell()

    def idle(self, until: datetime) -> None:
        """Waits until then."""
        wake, thread = micros(until), get_ident()
        with self._lock:
            is_sending = thread in self._sending
            self._sending.discard(thread)
            self._wakes.append(wake)
            self._tell()
        seen, since, pause = self._get(0), monotonic(), _PAUSES[0]
        while (now := self._get(0)) < wake:
            if now != seen:
                seen, since = now, monotonic()
            self._go_on(is_stuck=is_sending and (self._wait_for_this() or monotonic() - since > STUCK_SECONDS))
            sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
        with self._lock:
            if is_sending:
                self._sending.add(thread)
            self._wakes.remove(wake)
            self._tell()

    def _wait_for_this(self) -> bool:
        """Whether all that this process sends waits for what the thread that asks is about to send: the site's
        robots.txt. Both would wait for ever."""
        with self._lock:
            # The interpreter holds a lock of its own while it looks at the threads. Garbage that is collected then may
            # call back, which lets another thread run, and that one could wait for this lock for ever.
            gc.disable()
            try:
                frames = sys._current_frames()
            finally:
                gc.enable()
        places = [frames[thread].f_code.co_filename for thread in list(self._sending) if thread in frames]
        return all(place.endswith(BEFORE_A_TOKEN) for place in places)

    def now(self) -> datetime:
        return moment(self._get(0))

    def wait(self, seconds: float, stop: Event) -> bool:
        if not stop.is_set():
            self.idle(self.now() + timedelta(seconds=max(0.0, seconds)))
        return stop.is_set()

    def wall_seconds(self, seconds: float) -> float:
        return 0.0

    def _tell(self) -> None:
        self._set(self._slot, BUSY if self._sending or not self._wakes else min(self._wakes))

    def _go_on(self, *, is_stuck: bool) -> None:
        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                told = {slot: self._get(slot) for slot in range(1, self._processes + 1)}
                if is_stuck:
                    told[self._slot] = min(self._wakes)
                self._set(0, max(self._get(0), min(told.values())))
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _get(self, place: int) -> int:
        return self._shared[place]

    def _set(self, place: int, value: int) -> None:
        self._shared[place] = value
