"""The embedded engine: one loop asks the database which jobs are due, and threads of this process run them.

The database stores when a job is due, and a job is claimed like a source: of two processes on one database, one runs
it. Asking too often is harmless, and asking late loses nothing.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread

from catchment import logs
from catchment.app import App
from catchment.engines.live_settings import LiveSettings
from catchment.jobs import JOBS, Job, run_if_due
from catchment.store.leases import HEARTBEAT

log = logs.logger(__name__)

_M_ARENA_MAX = -8
"""glibc's constant for `mallopt`."""
_ARENAS = 2


def share_memory() -> None:
    """Make all threads share a few heaps. glibc gives nearly every thread its own, and memory freed by one thread
    cannot be used by another: with thirty threads that read bodies one after another, a quarter of the process would be
    unused.

    Call it before the threads start. With another C library, or if the operator has set it, nothing changes.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


_LONGEST_SECONDS = 1.0
"""Between two reads of the table: another process has no other way to wake a job here."""
_SHORTEST_SECONDS = 0.05


class Embedded:
    """Runs the jobs in threads of this process."""

    def __init__(self, app: App, jobs: tuple[Job, ...] = JOBS) -> None:
        self._app = app
        self._live_settings = LiveSettings(app)
        self._jobs = {job.name: job for job in jobs}
        self._at_work: set[str] = set()
        self._wake = Event()
        self._pool = ThreadPoolExecutor(len(jobs) + 1, thread_name_prefix="job")
        self._loop = Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Start the engine: what is due runs immediately."""
        share_memory()
        for name in self._jobs:
            self._app.store.jobs.announce(name, self._app.clock.now())
        self._loop.start()

    def _run(self) -> None:
        heartbeat_at = time.monotonic()
        while not self._app.stop.wait(_SHORTEST_SECONDS):
            self._wake.clear()
            if time.monotonic() >= heartbeat_at:
                self._start("heartbeat", lambda: self._app.presence.heartbeat(self._app.clock.now()))
                heartbeat_at = time.monotonic() + self._app.clock.wall_seconds(HEARTBEAT.total_seconds())
            with self._logged_failures("schedule"):
                self._wake.wait(min(self._start_due(), _LONGEST_SECONDS))

    def _start_due(self) -> float:
        """Starts the jobs that are due; returns in how many seconds the next one is."""
        clock, store = self._app.clock, self._app.store
        self._live_settings.refresh()
        periods = {
            name: job.period(self._app.settings) for name, job in self._jobs.items() if name not in self._at_work
        }
        free = {name: period for name, period in periods.items() if period is not None}
        now = clock.now()
        due, next_at = store.jobs.due(now, free)
        for name in due:
            self._start(name, partial(run_if_due, self._app, self._jobs[name]))
        return clock.wall_seconds((next_at - now).total_seconds()) if next_at else _LONGEST_SECONDS

    def _start(self, name: str, work: Callable[[], object]) -> None:
        if name not in self._at_work:
            self._at_work.add(name)
            self._pool.submit(self._work, name, work)

    def _work(self, name: str, work: Callable[[], object]) -> None:
        with self._logged_failures(name):
            work()
        self._at_work.discard(name)
        self._wake.set()

    @contextmanager
    def _logged_failures(self, name: str) -> Iterator[None]:
        """The database may be briefly unavailable: the next check retries."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 — whatever failed, the others must continue
            if not getattr(error, "is_logged", False):
                log.error("internal error in the engine", work=name, error=f"{type(error).__name__}: {error}")
            self._app.stop.wait(_LONGEST_SECONDS)

    def stop(self, seconds: float) -> bool:
        """Start no new work; work in progress may take this long, then it is aborted. Returns whether nothing had to be
        aborted."""
        give_up_at = time.monotonic() + seconds
        self._app.stop.set()
        self._wake.set()
        self._loop.join(seconds)
        while self._at_work and time.monotonic() < give_up_at and not self._app.cut.wait(0.05):
            pass
        # Work that an earlier abort has ended counts as aborted.
        is_clean = not self._at_work and not self._app.cut.is_set()
        self._app.cut.set()
        self._loop.join()
        self._pool.shutdown()
        return is_clean
