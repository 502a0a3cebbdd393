"""FastAPI dependencies of every handler: the application, the signed-in user and the API key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Annotated, cast

from fastapi import Depends, Request

from catchment.app import App
from catchment.clock import EPOCH, SystemClock
from catchment.errors import CatchmentError
from catchment.health.metrics import Totals
from catchment.logs import logger
from catchment.model import Record
from catchment.status import DeploymentStatus
from catchment.store.sources.runs import ActiveVisit, VisitView
from catchment.web.auth import BrowserSessions, Guard, Guesses, Keys, signing_key

MOST_LISTENERS = 32
_FRESH_SECONDS = 0.9
_VISITS, _RESULTS = 12, 6
_LATEST = 40
"""The ones that ended last are selected from this many visits that started last."""


class Activity(Record, frozen=True):
    """The visits in progress, and those that ended last."""

    visit_count: int
    visits: Sequence[ActiveVisit]
    results: Sequence[VisitView]


class Pulse:
    """The latest activity, shared by all live connections. Thread-safe."""

    def __init__(self) -> None:
        self.listeners = 0
        self._lock = Lock()
        self._at = float("-inf")
        self._seen: Activity | None = None

    def seen(self, look: Callable[[], Activity]) -> Activity | None:
        """The last result if it is recent or another thread is fetching one, else a new one. None: none yet."""
        if self._lock.acquire(blocking=False):
            try:
                if time.monotonic() - self._at > _FRESH_SECONDS:
                    self._seen, self._at = look(), time.monotonic()
            finally:
                self._lock.release()
        return self._seen

    @contextmanager
    def listening(self) -> Iterator[None]:
        self.listeners += 1
        try:
            yield
        finally:
            self.listeners -= 1


def seen_in(app: App) -> Activity:
    visits = app.store.runs.under_way()
    ended = [visit for visit in app.store.runs.latest(_LATEST) if visit.finished_at is not None]
    ended.sort(key=lambda visit: visit.finished_at or EPOCH, reverse=True)
    return Activity(len(visits), visits[:_VISITS], ended[:_RESULTS])


log = logger(__name__)


@dataclass(frozen=True)
class WebContext:
    app: App
    keys: Keys
    sessions: BrowserSessions
    guard: Guard
    opened_at: datetime
    collects: bool
    """Whether this process runs the jobs itself and reports on their health."""
    totals: Totals
    """Counters of this process since its start."""
    demo_rate: float | None = None
    """How many times faster time runs in a demo; None outside of one."""
    pulse: Pulse = field(default_factory=Pulse)

    def status(self) -> DeploymentStatus:
        """The status of the deployment now."""
        return DeploymentStatus(self.app, collects=self.collects, opened_at=self.opened_at)


def open_web_context(app: App, *, collects: bool, demo_rate: float | None = None) -> WebContext:
    now, store = app.clock.now(), app.store
    keys = Keys(store.api_keys, app.settings.api_key, app.clock.now)
    # By the machine's time: in a demo, days pass in minutes.
    sessions = BrowserSessions(signing_key(app.settings.home), store.sessions, store.sign_in_links, SystemClock().now)
    return WebContext(
        app,
        keys,
        sessions,
        Guard(keys, sessions, Guesses(partial(_report_guessing, app))),
        now,
        collects,
        Totals(app.store.metrics, app.cache.counts, now),
        demo_rate,
    )


def _report_guessing(app: App, address: str, count: int) -> None:
    """Write a log line and open an alert. A failure of either must not prevent the response."""
    log.warning("too many wrong keys or links; throttling this address", address=address, count=count)
    try:
        app.monitors().note_guessing(address, count)
    except CatchmentError as error:
        log.error("failed attempts could not be recorded", code=error.code, error=str(error))


# Asynchronous although they await nothing: otherwise FastAPI would use a thread for each.
async def _context(request: Request) -> WebContext:
    return cast(WebContext, request.state.context)


async def _app(request: Request) -> App:
    return cast(WebContext, request.state.context).app


WebContextDep = Annotated[WebContext, Depends(_context)]
AppDep = Annotated[App, Depends(_app)]
