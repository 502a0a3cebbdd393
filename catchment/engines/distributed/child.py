"""A child of a worker: its app, its heartbeat, its time limits, and how a stop of the worker reaches it.

Children hear no signal: only the worker does. Two pipes are made before the first fork. When the worker closes its end
of the first, no child begins anything; when it closes the second, what is under way is aborted. A worker that dies
closes both.
"""

from __future__ import annotations

import itertools
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, Timer
from typing import Any

from billiard.process import active_children
from celery import signals
from celery.exceptions import Reject

from catchment import logs
from catchment.app import App, open_app
from catchment.engines.distributed.beat_watch import BeatWatch
from catchment.engines.distributed.limits import CLEAN_SECONDS, MISSING_SECONDS, TASK_SECONDS
from catchment.engines.embedded import share_memory
from catchment.engines.live_settings import LiveSettings
from catchment.errors import CatchmentError
from catchment.settings import Settings
from catchment.status import WORKER
from catchment.store.connections import CHILD_POOL
from catchment.store.leases import HEARTBEAT

log = logs.logger(__name__)

_SHORTEST_SECONDS = 1.0
"""Between two heartbeats, however fast a simulated clock runs."""
_THOROUGH = 3
"""At this interval of heartbeats, a child also looks for dead processes of its machine, and for the beat."""
KILL_SECONDS = 3.0
"""How long after the abort a child that does not end is killed."""


class StopPipes:
    """How a worker tells all its children to stop, no matter when they were forked."""

    def __init__(self) -> None:
        (self._stop, tell_stop), (self._cut, tell_cut) = os.pipe(), os.pipe()
        self._ends = {"stop": tell_stop, "cut": tell_cut}
        self._owner = os.getpid()
        # One byte that all processes share: whether a child aborted something.
        self._is_unclean = mmap.mmap(-1, 1)

    def tell_stop(self) -> None:
        self._close("stop")

    def tell_cut(self) -> None:
        self._close("cut")

    def _close(self, name: str) -> None:
        # The signal handler and the thread of the time limit may come at once: `pop` gives the end to one of them.
        end = self._ends.pop(name, None)
        if end is not None:
            os.close(end)

    def leave_to_worker(self) -> None:
        """Closes the end of the pipe that a child inherited: while any process keeps it, no reader sees its end."""
        if os.getpid() != self._owner:
            self.tell_stop()
            self.tell_cut()

    def wait_for_stop(self) -> None:
        select.select([self._stop], [], [])

    def wait_for_cut(self) -> None:
        select.select([self._cut], [], [])

    def note_unclean(self) -> None:
        self._is_unclean[0] = 1

    @property
    def is_unclean(self) -> bool:
        return self._is_unclean[0] == 1


class Child:
    """This process, if it is a child of a worker. Opens its app after the fork, and again after a failure."""

    def __init__(
        self,
        settings: Settings,
        task_seconds: float = TASK_SECONDS,
        clean_seconds: float = CLEAN_SECONDS,
        missing_seconds: float = MISSING_SECONDS,
    ) -> None:
        """`clean_seconds` before the end of its time, a task begins no new work; after half of them it is aborted.
        `missing_seconds`: how long the beat may be missing before an alert opens."""
        self._settings = settings
        self._stop_seconds, self._cut_seconds = task_seconds - clean_seconds, task_seconds - clean_seconds / 2
        self.queues: tuple[str, ...] = settings.queue_names
        self.pipes: StopPipes | None = None
        self._app: App | None = None
        self._live_settings: LiveSettings | None = None
        self._opening = Lock()
        self._is_checked = False
        self._beat_watch = BeatWatch(missing_seconds)
        self._stopping, self._cutting, self._closed = Event(), Event(), Event()

    def check_database(self) -> None:
        """Call it before the fork. Raises if the database is unavailable, is empty, or needs `migrate`."""
        if not self._is_checked:
            with open_app(self._settings, WORKER, creates=False, connections=1):
                self._is_checked = True

    def start(self) -> None:
        """Call it after the fork."""
        share_memory()
        if self.pipes is not None:
            self.pipes.leave_to_worker()
            Thread(target=self._hear_stop, name="stop", daemon=True).start()
        Thread(target=self._keep_present, name="heartbeat", daemon=True).start()

    def app(self) -> App:
        with self._opening:
            if self._app is None:
                app = open_app(self._settings, work_of(self.queues), creates=False, connections=CHILD_POOL)
                # Registered before it gets work; this frees what dead processes held.
                app.presence  # noqa: B018
                self._app, self._live_settings = app, LiveSettings(app)
            return self._app

    def _hear_stop(self) -> None:
        assert self.pipes is not None
        self.pipes.wait_for_stop()
        self.stop()
        self.pipes.wait_for_cut()
        self.cut()

    def stop(self) -> None:
        self._stopping.set()
        if self._app is not None:
            self._app.stop.set()

    def cut(self) -> None:
        self._cutting.set()
        if self._app is not None:
            self._app.cut.set()

    def _keep_present(self) -> None:
        wait, count = _SHORTEST_SECONDS, itertools.count()
        while not self._closed.wait(wait):
            try:
                app = self.app()
                wait = max(_SHORTEST_SECONDS, app.clock.wall_seconds(HEARTBEAT.total_seconds()))
                # Beat looks for dead processes, too, and with many children all of them need not do it every time.
                is_thorough = next(count) % _THOROUGH == 0
                app.presence.heartbeat(app.clock.now(), buries=is_thorough)
                if is_thorough:
                    self._beat_watch.look(app)
            except Exception as error:  # noqa: BLE001 — the database may be unavailable: the next heartbeat retries
                if not getattr(error, "is_logged", False):
                    log.warning("no heartbeat", error=f"{type(error).__name__}: {error}")

    @contextmanager
    def working(self) -> Iterator[App]:
        """The app for one task, which ends in time. While the worker stops, the message goes back to the queue."""
        try:
            app = self.app()
        except CatchmentError as error:
            log.warning("the database is unavailable for a task; the next tick retries it", error=str(error))
            raise Reject("the database is unavailable", requeue=False) from None
        if self._stopping.is_set():
            raise Reject("the worker stops", requeue=True)
        app.stop.clear()
        app.cut.clear()
        if self._live_settings is not None:
            self._live_settings.refresh()
        limits = (
            Timer(self._stop_seconds, app.stop.set),
            Timer(self._cut_seconds, app.cut.set),
        )
        for limit in limits:
            limit.daemon = True
            limit.start()
        try:
            # A stop and an abort may have come before the events were cleared.
            if self._stopping.is_set():
                app.stop.set()
            if self._cutting.is_set():
                app.cut.set()
            yield app
        finally:
            for limit in limits:
                limit.cancel()
            if self._stopping.is_set() and app.cut.is_set() and self.pipes is not None:
                self.pipes.note_unclean()

    def close(self) -> None:
        self._closed.set()
        with self._opening:
            app, self._app = self._app, None
            if app is not None:
                app.close()


def work_of(queues: tuple[str, ...]) -> str:
    """How a child is registered with the store: with the queues that it serves."""
    return f"{WORKER} {','.join(name.removesuffix('_queue') for name in queues)}"


def connect_signals(child: Child, settings: Settings) -> None:
    """Make Celery's worker behave: its logging is ours, its children open their own app, a stop reaches them."""

    def begin(**_: Any) -> None:
        try:
            child.check_database()
        except CatchmentError as error:
            # Celery logs exceptions of receivers, and starts nevertheless.
            raise SystemExit(f"catchment: {error}") from None
        child.pipes = StopPipes()

    def consume(instance: Any, **_: Any) -> None:
        child.queues = tuple(instance.app.amqp.queues.consume_from)

    def start_child(**_: Any) -> None:
        if child.pipes is not None and os.getpid() != child.pipes._owner:
            # The worker says when to stop. A signal to the whole group must not end a child in the middle of a visit.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.start()

    def end_child(**_: Any) -> None:
        child.close()

    def keep_logging(**_: Any) -> None:
        """Our logging is already configured; Celery does not change it if a receiver is connected to this signal."""

    stopping = Stopping(child, settings.stop_seconds)
    signals.setup_logging.connect(keep_logging, weak=False, dispatch_uid="catchment")
    signals.worker_init.connect(begin, weak=False, dispatch_uid="catchment")
    signals.celeryd_after_setup.connect(consume, weak=False, dispatch_uid="catchment")
    signals.worker_process_init.connect(start_child, weak=False, dispatch_uid="catchment")
    signals.worker_process_shutdown.connect(end_child, weak=False, dispatch_uid="catchment")
    signals.worker_shutting_down.connect(stopping.heard, weak=False, dispatch_uid="catchment")


class Stopping:
    """What the worker does on a stop signal: at the first one, children finish their work; at the second, or at the
    time limit, they abort."""

    def __init__(self, child: Child, seconds: float) -> None:
        self._child, self._seconds = child, seconds
        self._count = 0

    def heard(self, **_: Any) -> None:
        self._count += 1
        pipes = self._child.pipes
        if pipes is None:
            return
        if self._count == 1:
            pipes.tell_stop()
            Thread(target=self._end, name="stopping", daemon=True).start()
        else:
            pipes.tell_cut()

    def _end(self) -> None:
        pipes = self._child.pipes
        assert pipes is not None
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline and self._count == 1:
            time.sleep(min(0.1, self._seconds))
        pipes.tell_cut()
        time.sleep(KILL_SECONDS)
        log.error("the worker did not stop in time and was killed")
        sys.stderr.flush()
        # Most children end with their worker. One that is stopped, or stuck in a computation, would not.
        for process in active_children():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        os._exit(1)
