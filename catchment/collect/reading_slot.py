"""Serializes parsing and cleaning: one thread of a process at a time, the smallest answer first.

Threads overlap I/O; CPU-bound work in parallel only contends for the interpreter, and costs a fifth more. Small
answers go first, so that a large one delays the others by no more than its own time.
`work_limits.WorkLimit` limits the cost of parsing one answer; time limits are the last resort.
"""

from __future__ import annotations

import ctypes
import heapq
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition, Event, Lock

from catchment import work_limits
from catchment.errors import Stopped, TooComplex

SECONDS_AN_ANSWER = 20.0
SECONDS_A_VISIT = 120.0
"""CPU time of the thread alone, so that a busy machine takes nothing away."""
STOP_GRACE_SECONDS = 1.0
"""An answer that is being parsed when a stop is requested may take this much longer: most take far less."""
LARGE_BYTES = 1_000_000
"""A process holds only one answer of this size, with what is made of it, at a time."""
_PATIENCE_SECONDS = 0.1
_TIMED_EVERY = 8
"""Checks, one before each item: reading the thread's clock takes as long as cleaning several fields."""


def _return_memory() -> None:
    """Returns a large answer's memory to the system. glibc keeps it, in pieces into which the next may not fit."""
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)


_LIBC = ctypes.CDLL(None)


class Effort:
    """The CPU time that a visit has spent on parsing."""

    def __init__(self) -> None:
        self.seconds = 0.0


class ReadingSlot:
    """One per process, shared by its threads."""

    def __init__(self, stop: Event) -> None:
        self._stop, self._stopping_since = stop, 0.0
        self._free, self._is_taken = Condition(), False
        self._waiting: list[tuple[int, int]] = []
        """Ordered by size, then by arrival."""
        self._turns = count()
        self._large = Lock()
        self._readers: Counter[Effort] = Counter()
        """By visit: one that requests details has several answers at a time."""

    @property
    def waiting(self) -> int:
        """How many threads are waiting."""
        with self._free:
            return len(self._waiting)

    @property
    def readers(self) -> int:
        """How many visits are reading an answer, or waiting to read one."""
        with self._free:
            return len(self._readers)

    @contextmanager
    def taken(self, size: int, effort: Effort) -> Iterator[None]:
        """Holds the slot while an answer of `size` bytes is parsed or cleaned; the work within is limited."""
        with self._counted(effort), self._held(size, effort):
            yield

    @contextmanager
    def _counted(self, effort: Effort) -> Iterator[None]:
        with self._free:
            self._readers[effort] += 1
        try:
            yield
        finally:
            with self._free:
                self._readers[effort] -= 1
                if not self._readers[effort]:
                    del self._readers[effort]

    @contextmanager
    def _held(self, size: int, effort: Effort) -> Iterator[None]:
        self._take(size)
        begun = time.thread_time()

        calls = count()

        def check() -> None:
            self._check_stop()
            if next(calls) % _TIMED_EVERY:
                return
            spent = time.thread_time() - begun
            if spent > SECONDS_AN_ANSWER or effort.seconds + spent > SECONDS_A_VISIT:
                raise TooComplex("parsing the answer takes too long", "check the address in a browser")

        @contextmanager
        def waiting() -> Iterator[None]:
            self._give_back()
            try:
                yield
            finally:
                self._take(size)

        try:
            with work_limits.limited(work_limits.WorkLimit(check, waiting)):
                yield
        finally:
            effort.seconds += time.thread_time() - begun
            self._give_back()

    @contextmanager
    def room_for(self, size: int, effort: Effort) -> Iterator[None]:
        """Reserves memory for an answer of `size` bytes, and what is made of it, until it is written."""
        if size <= LARGE_BYTES:
            yield
            return
        with self._counted(effort):
            while not self._large.acquire(timeout=_PATIENCE_SECONDS):
                self._check_stop()
            try:
                yield
            finally:
                _return_memory()
                self._large.release()

    def _take(self, size: int) -> None:
        with self._free:
            turn = (size, next(self._turns))
            heapq.heappush(self._waiting, turn)
            while self._is_taken or self._waiting[0] != turn:
                self._free.wait()
            heapq.heappop(self._waiting)
            self._is_taken = True

    def _give_back(self) -> None:
        with self._free:
            self._is_taken = False
            if self._waiting:
                self._free.notify_all()

    def _check_stop(self) -> None:
        if not self._stop.is_set():
            return
        self._stopping_since = self._stopping_since or time.monotonic()
        if time.monotonic() - self._stopping_since > STOP_GRACE_SECONDS:
            raise Stopped("parsing was interrupted by a stop", "it will be requested again next time")
