"""Notices that no beat leads, or that the one that leads hangs. Workers and servers watch; needs no Celery."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from catchment import logs
from catchment.app import App
from catchment.engines.distributed.limits import MISSING_SECONDS
from catchment.store.leases import HEARTBEAT

log = logs.logger(__name__)


class BeatWatch:
    """A beat is there as long as its heartbeat moves, whatever its clock says."""

    def __init__(self, seconds: float = MISSING_SECONDS) -> None:
        """`seconds`: how long it may be missing before an alert opens. The beat itself closes the alert."""
        self._seconds = seconds
        self._moved: tuple[object, float] = (None, time.monotonic())

    def look(self, app: App) -> None:
        leader, now = app.store.leadership.leader(), time.monotonic()
        if leader is not None and leader != self._moved[0]:
            self._moved = leader, now
        elif now - self._moved[1] > self._seconds:
            app.monitors().beat(is_missing=True)


@contextmanager
def watched_beat(app: App, every: float = HEARTBEAT.total_seconds()) -> Iterator[None]:
    """Watch within this block, in a thread: if all workers are gone as well, a server is the only one left to tell."""
    watch, ended = BeatWatch(), Event()

    def run() -> None:
        while not ended.wait(every):
            try:
                watch.look(app)
            except Exception as error:  # noqa: BLE001 — the database may be unavailable: the next check retries
                if not getattr(error, "is_logged", False):
                    log.warning("could not check for a beat", error=f"{type(error).__name__}: {error}")

    thread = Thread(target=run, name="beat watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
