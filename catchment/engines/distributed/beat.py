"""Beat: reads the job table and tells the workers what is due.

One beat leads, by a lease in the database; others stand by. What is due is in the database, so a new leader continues
where the last one stopped, and a missed period runs once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.beat import Scheduler as CeleryBeatScheduler

from catchment import logs
from catchment.app import App, open_app
from catchment.engines.distributed.broker import NOT_SENT
from catchment.engines.distributed.limits import MISSING_SECONDS
from catchment.engines.distributed.tasks import hint_mark, send_hint
from catchment.engines.live_settings import LiveSettings
from catchment.errors import CatchmentError, LeaseLost
from catchment.jobs import COLLECT_DUE, JOBS, Job, run_if_due
from catchment.model import Lease
from catchment.redis import Away
from catchment.settings import Settings
from catchment.status import BEAT, consumers
from catchment.store.connections import BEAT_POOL

log = logs.logger(__name__)

_LOOK_SECONDS = 1.0
"""Between two reads of the job table: no other process can wake a job."""
_STANDBY_SECONDS = 5.0
_HEARTBEAT_SECONDS = 10.0
_SILENCE_SECONDS = 30.0
"""A leader that has not updated its mark for this long, by the clock of the standby, is replaced."""
_REPEAT_SECONDS = (1.0, 30.0)
"""After a tenth of its period, within these limits, a job that is still due is hinted at again, unless its hint still
waits."""
_MOST_WAITING = 100
"""A queue with this many messages gets no more."""
_COUNT_WAITING = """
local found = 0
for _, message in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[2] - 1)) do
    if string.find(message, ARGV[1], 1, true) then found = found + 1 end
end
return {redis.call('LLEN', KEYS[1]), found}
"""
"""How many messages are in a queue, and how many of the first ones contain a text: counted by Redis, since messages may
be large."""


class Beat:
    """The scheduler of one process. `tick` is called again after the seconds that it returns."""

    def __init__(
        self, app: App, celery: Celery, jobs: tuple[Job, ...] = JOBS, missing_seconds: float = MISSING_SECONDS
    ) -> None:
        """`missing_seconds`: how long a queue may be without workers before an alert opens."""
        self._app, self._celery = app, celery
        self._live_settings = LiveSettings(app)
        self._jobs = {job.name: job for job in jobs}
        self._lease: Lease | None = None
        self._heartbeat_at = 0.0
        self._hinted_at: dict[str, float] = {}
        self._leader_moved: tuple[object, float] = (None, 0.0)
        self._is_standing_by = False
        self._missing_seconds, self._missing_since = missing_seconds, dict[str, float]()
        self._is_refused = False

    @property
    def is_leading(self) -> bool:
        return self._lease is not None

    def tick(self) -> float:
        """Tell the workers what is due; returns the seconds until the next check. If the database or broker is
        unavailable, this is logged once and retried."""
        app = self._app
        try:
            if time.monotonic() >= self._heartbeat_at:
                self._heartbeat_at = time.monotonic() + _HEARTBEAT_SECONDS
                self._be_present()
            if self._lease is None:
                return _STANDBY_SECONDS
            self._live_settings.refresh()
            periods = {
                name: period for name, job in self._jobs.items() if (period := job.period(app.settings)) is not None
            }
            now = app.clock.now()
            due, next_at = app.store.jobs.due(now, periods)
            self._hinted_at = {name: at for name, at in self._hinted_at.items() if name in due}
            for name in due:
                self._hint(self._jobs[name], periods[name])
            wait = app.clock.wall_seconds((next_at - now).total_seconds()) if next_at else _LOOK_SECONDS
            return min(max(wait, 0.02), _LOOK_SECONDS)
        except CatchmentError as error:
            if not getattr(error, "is_logged", False):
                log.error("beat could not check the jobs", error=str(error))
        return _LOOK_SECONDS

    def _be_present(self) -> None:
        app, now = self._app, self._app.clock.now()
        app.presence.heartbeat(now)
        if self._lease is not None:
            try:
                app.store.leadership.confirm(self._lease, now)
            except LeaseLost:
                log.warning("another beat has taken over")
                self._lease = None
        if self._lease is None:
            self._take_over(now)
        if self._lease is not None:
            app.monitors().beat(is_missing=False)
            app.monitors().broker(app.broker.check() if app.broker else None)
            app.monitors().queues(self._unconsumed())

    def _take_over(self, now: datetime) -> None:
        """Become the leader if there is none. A leader whose heartbeat does not change does not count, whatever its
        clock says."""
        app = self._app
        leader = app.store.leadership.leader()
        if leader is not None and leader != self._leader_moved[0]:
            self._leader_moved = leader, time.monotonic()
        is_silent = leader is not None and time.monotonic() - self._leader_moved[1] > _SILENCE_SECONDS
        self._lease = app.store.leadership.claim(app.presence.owner_id, now, is_forced=is_silent)
        if self._lease is not None:
            for name in self._jobs:
                app.store.jobs.announce(name, now)
            log.info("this beat is leading")
        elif not self._is_standing_by:
            self._is_standing_by = True
            log.info("another beat is leading; this one stands by")

    def _unconsumed(self) -> dict[str, list[str]]:
        """Queues that no worker consumes, with the jobs that wait there."""
        waiting: dict[str, list[str]] = {}
        for job in self._jobs.values():
            if job.period(self._app.settings) is not None:
                waiting.setdefault(job.queue_name, []).append(job.name)
        living, now = consumers(self._app), time.monotonic()
        self._missing_since = {queue: self._missing_since.get(queue, now) for queue in waiting if not living.get(queue)}
        return {
            queue: waiting[queue] for queue, since in self._missing_since.items() if now - since > self._missing_seconds
        }

    def _hint(self, job: Job, period: timedelta) -> None:
        least, most = _REPEAT_SECONDS
        patience = min(max(self._app.clock.wall_seconds(period.total_seconds()) / 10, least), most)
        last = self._hinted_at.get(job.name)
        if last is not None and time.monotonic() - last < patience:
            return
        if job.name == COLLECT_DUE:
            # The run of this job is the sending: many workers may collect at once.
            run_if_due(self._app, job.replace(run=lambda _: self._hint_collectors(job)))
            return
        self._hinted_at[job.name] = time.monotonic()
        self._send(job, 1)

    def _hint_collectors(self, job: Job) -> None:
        """As many hints as there is work, and no more than workers can use."""
        workers = max(1, consumers(self._app).get(job.queue_name, 0))
        batch = self._app.settings.crawler_batch_size
        due = self._app.scheduler().count_due(workers * batch)
        self._send(job, -(-due // batch), most=workers)

    def _send(self, job: Job, count: int, most: int = 1) -> None:
        """Send this many hints, but let no more than `most` about this job wait."""
        if count < 1 or self._app.broker is None:
            return
        try:
            length, waiting = self._app.broker.ask(
                lambda client: client.eval(_COUNT_WAITING, 1, job.queue_name, hint_mark(job), _MOST_WAITING)
            )
            for _ in range(min(count, most - waiting, _MOST_WAITING - length)):
                send_hint(self._celery, self._app, job)
                if self._is_refused:
                    self._is_refused = False
                    log.info("the message broker accepts hints again")
        except Away:
            # Logged by the connection.
            self._hinted_at.pop(job.name, None)
        except NOT_SENT as error:
            if not self._is_refused:
                self._is_refused = True
                log.warning("the message broker does not accept hints; beat will retry", error=logs.redact(str(error)))

    def leave(self) -> None:
        """Another beat may lead at once."""
        lease, self._lease = self._lease, None
        if lease is not None:
            self._app.store.leadership.leave(lease)


def run_beat(app: App, celery: Celery, wait: Callable[[float], bool]) -> None:
    """Run until `wait`, which waits for some seconds, returns true."""
    beat = Beat(app, celery)
    try:
        while not wait(beat.tick()):
            pass
    finally:
        # If the database is away, the lease is free when the others notice that this process has ended.
        with suppress(CatchmentError):
            beat.leave()


def open_beat_app(settings: Settings) -> App:
    return open_app(settings, BEAT, creates=False, connections=BEAT_POOL)


class CeleryScheduler(CeleryBeatScheduler):  # type: ignore[misc]
    """The same for `celery -A catchment.engines.distributed beat`."""

    def __init__(self, app: Celery, *args: Any, **kwargs: Any) -> None:
        self._beat: Beat | None = None
        self._opened: App | None = None
        self._is_ticking = False
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        self.install_default_entries({})
        try:
            self._opened = open_beat_app(self.app.catchment_settings)
        except CatchmentError as error:
            raise SystemExit(f"catchment: {error}") from None
        self._beat = Beat(self._opened, self.app)

    def tick(self, *_: Any, **__: Any) -> float:
        assert self._beat is not None
        self._is_ticking = True
        try:
            return self._beat.tick()
        finally:
            self._is_ticking = False

    def close(self) -> None:
        """Closing the app gives the lease back. Celery calls this twice: in its signal handler, which may have
        interrupted a tick and what that holds, and again when the tick has ended."""
        super().close()
        if self._opened is not None and not self._is_ticking:
            opened, self._opened = self._opened, None
            opened.close()
