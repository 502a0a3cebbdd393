"""/api/sources: the sources; /api/tiers: how active communities are; /api/collector/status: the state of collecting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from catchment.app import App
from catchment.errors import InvalidInput, NotFound
from catchment.model import Progress, Source, SourceState, as_json
from catchment.sources import add
from catchment.sources.describe import CoverageView, SourceView, coverage_of, health_of, source_view
from catchment.sources.intervals import tier_change_view, tier_tally, tier_views
from catchment.sources.preview import preview_view
from catchment.web.api.errors import AlreadyFollowed
from catchment.web.api.params import After, Name, OfCategory, ResourcePage, SourceId, limit, paged, place
from catchment.web.api.params import after as cursor
from catchment.web.api.schemas.common import PageSchema, failure
from catchment.web.api.schemas.sources import (
    AddedSource,
    ChangedSource,
    CollectorStatus,
    Communities,
    Coverage,
    NewSource,
    Pause,
    SourceSchema,
)
from catchment.web.dependencies import AppDep, WebContextDep

router = APIRouter(prefix="/api", tags=["sources"])

MISSING = failure(404, "There is no such source.")
TAKEN = failure(409, "The source exists already; `existing_id` has its id.")
UNANSWERED = {
    **failure(502, "`check`: the platform does not answer, or its answer cannot be used."),
    **failure(504, "`check`: the platform is too slow."),
}
STILL = failure(409, "It is paused or retired.")


@router.get("/sources", response_model=PageSchema[SourceSchema])
def list_sources(
    app: AppDep,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    kind: Annotated[Name, Query(description="Only sources of this kind.")] = None,
    state: Annotated[
        SourceState | None, Query(description="Only sources in this state. Removed sources are listed only on request.")
    ] = None,
    category: OfCategory = None,
) -> ResourcePage[SourceView]:
    """Sources, ordered by id."""
    if kind is not None:
        app.names.source_kind(kind)
    states = [state] if state else []
    if category is not None:
        app.names.category(category)
    rows = app.store.sources.page(place(after) or 0, most + 1, kind=kind, states=states, category=category)
    return paged(_views(app, rows), most, lambda source: source.id)


def _views(app: App, rows: Sequence[tuple[Source, Progress]]) -> list[SourceView]:
    intervals = app.intervals()
    return [source_view(source, progress, intervals) for source, progress in rows]


@router.post("/sources", status_code=201, response_model=AddedSource, responses=TAKEN | UNANSWERED)
def add_source(app: AppDep, body: NewSource, response: Response) -> dict[str, Any]:
    """Add a source. With `check`, it is requested first. The collecting process starts on it within a second."""
    more = body.model_dump(exclude={"kind", "target", "check"})
    now, preview = app.clock.now(), None
    with _naming_credential():
        if body.check:
            source, preview = add.follow_checked(app.visitor(), app.secrets, body.kind, body.target, now, **more)
            is_new = preview is not None
        else:
            source, is_new = add.follow(app.store, app.secrets, app.platforms, body.kind, body.target, now, **more)
    if not is_new:
        raise AlreadyFollowed(f"{source.target} is followed already, as source {source.id} ({source.name})", source.id)
    response.headers["Location"] = f"/api/sources/{source.id}"
    return {**as_json(_view(app, source.id)), "preview": preview_view(preview) if preview else None}


@router.get("/sources/{source_id}", response_model=SourceSchema, responses=MISSING)
def show_source(app: AppDep, source_id: SourceId) -> SourceView:
    """A source with its state, and when and why it is due."""
    return _view(app, source_id)


@router.patch("/sources/{source_id}", response_model=SourceSchema, responses=MISSING)
def change_source(app: AppDep, source_id: SourceId, body: ChangedSource) -> SourceView:
    """Change the fields in the body; the others stay. Takes effect at the next tick."""
    app.store.sources.get(source_id)  # raises if there is no such source: a missing credential is reported differently
    with _naming_credential():
        add.change(
            app.store, app.secrets, app.platforms, source_id, app.clock.now(), **body.model_dump(exclude_unset=True)
        )
    return _view(app, source_id)


@router.delete("/sources/{source_id}", status_code=204, response_class=Response, responses=MISSING)
def remove_source(app: AppDep, source_id: SourceId) -> None:
    """Remove a source. Its items stay; if it is added again, collecting continues where it stopped."""
    add.remove(app.store, source_id, app.clock.now())


@router.post("/sources/{source_id}/pause", response_model=SourceSchema, responses=MISSING)
def pause_source(app: AppDep, source_id: SourceId, body: Pause | None = None) -> SourceView:
    """Stop collecting it until it is resumed."""
    add.pause(app.store, source_id, body.reason if body else None, app.clock.now())
    return _view(app, source_id)


@router.post("/sources/{source_id}/resume", response_model=SourceSchema, responses=MISSING)
def resume_source(app: AppDep, source_id: SourceId) -> SourceView:
    """Collect a paused or retired source, or one on probation, again; earlier failures no longer count."""
    add.resume(app.store, source_id, app.clock.now())
    return _view(app, source_id)


@router.post("/sources/{source_id}/run", status_code=202, response_model=SourceSchema, responses=MISSING | STILL)
def run_source(app: AppDep, source_id: SourceId) -> SourceView:
    """Collect it now, even if it is not due. Returns immediately; the collecting process starts within a second."""
    add.request_collection(app.store, source_id, app.clock.now())
    return _view(app, source_id)


@router.get("/sources/{source_id}/coverage", response_model=Coverage, responses=MISSING)
def show_coverage(
    app: AppDep, source_id: SourceId, days: Annotated[int, Query(ge=1, le=3660, description="How far back.")] = 90
) -> CoverageView:
    """The periods for which a source is proven complete, those for which it is not and why, and a calendar."""
    return coverage_of(app.store, app.platforms, source_id, app.clock.now(), days)


def _view(app: App, source_id: int) -> SourceView:
    return source_view(*app.store.sources.with_progress(source_id), app.intervals())


@contextmanager
def _naming_credential() -> Iterator[None]:
    """An unknown credential is an error in the body, not a 404."""
    try:
        yield
    except NotFound as error:
        raise InvalidInput(error.what, error.helps, "credential") from error


_PLACE = r"([0-9]{1,12}(?:\.[0-9]{1,20})?)-([0-9]{1,18})"
AfterCommunity = Annotated[str | None, cursor(f"^{_PLACE}$")]


@router.get("/tiers", response_model=Communities)
def list_tiers(app: AppDep, after: AfterCommunity = None, most: Annotated[int, limit(1000)] = 100) -> dict[str, Any]:
    """Tiers with their current and expected numbers of communities, pending changes, and communities by activity, the
    most active first."""
    tally = tier_tally(app.store, app.tiers)
    rows = app.store.tier_stats.by_average(most + 1, _place(after))
    page = paged(rows, most, lambda row: f"{row[1].average_valid!r}-{row[0].id}")
    return {
        "items": _views(app, page.items),
        "next": page.next,
        "tiers": tier_views(app.tiers, tally),
        "unassigned": tally.are[None],
        "changes": [tier_change_view(change) for change in tally.changes[:most]],
    }


def _place(after: str | None) -> tuple[float, int] | None:
    if after is None:
        return None
    match = re.fullmatch(_PLACE, after)
    if match is None:
        raise InvalidInput("this is not a valid cursor", "use `next` of the previous page", "after")
    return float(match[1]), int(match[2])


@router.get("/collector/status", response_model=CollectorStatus, tags=["collector"])
def collector_status(
    context: WebContextDep, after: After = None, most: Annotated[int, limit(1000)] = 1000
) -> dict[str, Any]:
    """The state of every source, its last and next collection, and figures of the last 24 hours."""
    app = context.app
    intervals, failures_limit = app.intervals(), app.settings.failures_before_probation
    page = paged(app.store.sources.page(place(after) or 0, most + 1), most, lambda row: row[0].id)
    sources = []
    for source, progress in page.items:
        view, status = source_view(source, progress, intervals), health_of(source, progress, failures_limit)
        more = {"type": view.kind, "interval_minutes": view.fetch_interval_minutes, "status": status}
        sources.append(as_json(view) | more)
    return {"sources": sources, "stats": context.status().collector_stats(), "next": page.next}
