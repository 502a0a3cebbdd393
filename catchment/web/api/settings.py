"""/api/settings: settings that are stored in the database rather than in the environment; /api/sessions: signed-in
browsers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from catchment.app import App
from catchment.clock import SystemClock
from catchment.errors import InvalidInput, NotFound
from catchment.sources.intervals import KindIntervalView, interval_views, set_interval
from catchment.store.access import SessionView
from catchment.web.api.params import ResourcePage, SessionId
from catchment.web.api.schemas.common import PageSchema, Resource, failure, shows
from catchment.web.api.schemas.sources import ChangedInterval, KindInterval
from catchment.web.dependencies import AppDep

router = APIRouter(prefix="/api")


@shows(
    SessionView,
    created_at="When it signed in.",
    last_used_at="To the minute.",
    opened_by="link or key.",
    browser="The user agent of the browser.",
)
class BrowserSession(Resource):
    """A browser that is signed in to the pages."""


KindName = Annotated[str, Path(pattern=r"^[a-z0-9_]{1,64}$", description="A kind of sources.", examples=["rss"])]


@router.get("/settings/intervals", response_model=PageSchema[KindInterval], tags=["settings"])
def list_intervals(app: AppDep) -> ResourcePage[KindIntervalView]:
    """The interval of each kind and where it comes from; all kinds on one page."""
    return ResourcePage(_intervals(app))


@router.put(
    "/settings/intervals/{kind}",
    response_model=KindInterval,
    responses=failure(404, "There is no such kind."),
    tags=["settings"],
)
def set_kind_interval(app: AppDep, kind: KindName, body: ChangedInterval) -> KindIntervalView:
    """Set the interval of a kind for all processes on this database; null removes it. Takes effect at the next tick."""
    try:
        set_interval(app.store, app.names, kind, body.interval_minutes, app.clock.now())
    except InvalidInput as error:
        if error.field == "kind":
            raise NotFound(error.what, error.helps) from error
        raise
    return next(interval for interval in _intervals(app) if interval.kind == kind)


def _intervals(app: App) -> list[KindIntervalView]:
    return interval_views(app.platforms, app.store.settings.intervals(), app.settings.intervals)


@router.get("/sessions", response_model=PageSchema[BrowserSession], tags=["records"])
def list_sessions(app: AppDep) -> ResourcePage[SessionView]:
    """Signed-in browsers, most recent first."""
    return ResourcePage(app.store.sessions.page(SystemClock().now()))


@router.delete(
    "/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses=failure(404, "There is no such session."),
    tags=["records"],
)
def end_session(app: AppDep, session_id: SessionId) -> None:
    """Sign a browser out immediately."""
    app.store.sessions.end(session_id)
