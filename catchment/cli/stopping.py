"""Signals: the first asks for a stop, the second cuts at once, and so does patience when it ends."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from threading import Event, Thread
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LEAVE = b"."


class Stopping:
    """Within this block a signal no longer kills: it is passed on to whoever is watched.

    What Python does about a signal happens in the main thread, once that thread wakes up, and may interrupt it while it
    holds any lock; and the system may give the signal to another thread, so that the main one sleeps on. So nothing is
    done there: the interpreter itself writes a byte into a pipe, and a thread that waits at the other end does the
    rest. Signals that come before anybody is watched wait in the pipe.
    """

    def __init__(self, *more: int) -> None:
        """`more`: signals that mean the same here, besides SIGTERM and SIGINT."""
        self._numbers = (*_SIGNALS, *more)
        self._count = 0
        self._watcher: Thread | None = None
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._before: dict[int, Any] = {}
        self._woken_before = -1

    def __enter__(self) -> Self:
        self._woken_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._before = {one: signal.signal(one, self._heard) for one in self._numbers}
        return self

    def watch(self, stop: Event, cut: Event, patience_seconds: float, say: Callable[[str], object]) -> None:
        """From now on a signal sets `stop`; a second one, or the end of patience, sets `cut`. `say` hears of it."""
        self._watcher = Thread(target=self._wait, args=(stop, cut, patience_seconds, say), name="signals", daemon=True)
        self._watcher.start()

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._watcher is None and self._count > 1:
            # Nothing is under way yet that could be hurt.
            raise KeyboardInterrupt

    def _wait(self, stop: Event, cut: Event, patience_seconds: float, say: Callable[[str], object]) -> None:
        if os.read(self._read_end, 1) == _LEAVE:
            return
        stop.set()
        say(f"stopping: what is under way may go on for {patience_seconds:g} s; another signal cuts it off")
        is_heard, _, _ = select.select([self._read_end], [], [], patience_seconds)
        if not is_heard or os.read(self._read_end, 1) != _LEAVE:
            cut.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(self._woken_before)
        if self._watcher is not None:
            os.write(self._write_end, _LEAVE)
            self._watcher.join()
        os.close(self._read_end)
        os.close(self._write_end)
