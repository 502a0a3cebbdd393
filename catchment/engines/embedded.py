"""The embedded engine: APScheduler wakes, the database decides.

When a job is due stands in the database, and it is claimed like a source is: of two processes on one database, one
runs it. Waking too often is harmless, and waking late loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from catchment import logs
from catchment.engines.memory import share_memory
from catchment.errors import CatchmentError
from catchment.jobs import JOBS, Job, run_if_due
from catchment.shop import Shop

log = logs.logger(__name__)

# Several looks a period, so that a wake that comes a moment early does not cost a whole period.
_LOOKS_A_TICK = 10
_HEARTBEAT_SECONDS = 20.0


class Embedded:
    """Runs the jobs in threads of this process."""

    def __init__(self, shop: Shop, jobs: tuple[Job, ...] = JOBS) -> None:
        self._shop, self._jobs = shop, jobs
        self._at_work: set[str] = set()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(len(jobs) + 1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def start(self) -> None:
        """Begin: every job is looked at once right away."""
        share_memory()
        shop, now = self._shop, self._shop.clock.now()
        for job in self._jobs:
            shop.store.jobs.announce(job.name, now)
            self._wake(partial(run_if_due, shop, job), self._look_seconds(job), job.name)
        self._wake(
            lambda: shop.presence.heartbeat(shop.clock.now()), shop.clock.wall_seconds(_HEARTBEAT_SECONDS), "heartbeat"
        )
        self._scheduler.start()

    def _look_seconds(self, job: Job) -> float:
        period = job.period(self._shop.settings)
        tick = min(period.total_seconds(), self._shop.settings.tick_seconds) if period else 3600.0
        return self._shop.clock.wall_seconds(tick) / _LOOKS_A_TICK

    def _wake(self, deed: Callable[[], object], seconds: float, name: str) -> None:
        self._scheduler.add_job(
            self._guarded(deed, name),
            "interval",
            seconds=max(0.05, min(seconds, 30.0)),
            id=name,
            # The scheduler lives by the wall: it only wakes.
            next_run_time=datetime.now(UTC),
        )

    def _guarded(self, deed: Callable[[], object], name: str) -> Callable[[], None]:
        def run() -> None:
            self._at_work.add(name)
            try:
                deed()
            except CatchmentError as error:
                # The database is away for a moment, or the like: the next wake tries again.
                log.error("the engine could not do its work", work=name, code=error.code, error=str(error))
            finally:
                self._at_work.discard(name)

        return run

    def stop(self, seconds: float) -> bool:
        """No new work; what is under way may finish for so long, then it is cut. True if nothing had to be cut."""
        self._shop.stop.set()
        self._scheduler.pause()
        give_up_at = time.monotonic() + seconds
        while self._at_work and time.monotonic() < give_up_at and not self._shop.cut.wait(0.05):
            pass
        # What a cut has ended already was cut all the same.
        is_clean = not self._at_work and not self._shop.cut.is_set()
        self._shop.cut.set()
        self._scheduler.shutdown(wait=True)
        return is_clean
