"""/api/gaps, /api/runs, /api/metrics, /api/plan and /api/alerts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.app import App
from catchment.collect.budget_plan import PlanView, plan_view
from catchment.health.metrics import MetricPoint
from catchment.model import Outcome, as_json
from catchment.sources.describe import GapReport, gap_reports
from catchment.store.items.floor_audits import AuditFloorView, AuditView
from catchment.store.items.items import key_from, key_text
from catchment.store.items.reply_counts import MissingReplies
from catchment.store.items.threads import BoardRunView, ThreadRunView
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.gaps import GapRepairView
from catchment.store.sources.metrics import MetricSpan
from catchment.store.sources.runs import RunView
from catchment.web.api.params import (
    After,
    AfterKey,
    AuditId,
    GapId,
    Name,
    OfSource,
    ResourcePage,
    RunId,
    SourceId,
    ThreadId,
    limit,
    paged,
    place,
)
from catchment.web.api.schemas.common import PageSchema, failure
from catchment.web.api.schemas.runs import (
    Alert,
    Audit,
    AuditFloor,
    AuditRequest,
    AuditStory,
    BoardRun,
    BudgetPlan,
    GapRepair,
    GapSchema,
    MetricsSchema,
    MissingRepliesSchema,
    Run,
    RunStory,
    ThreadRun,
)
from catchment.web.dependencies import AppDep

router = APIRouter(prefix="/api", tags=["records"])

MISSING = failure(404, "There is no such run, or it was deleted.")
NO_AUDIT = failure(404, "There is no such audit, or it was deleted.")
NO_AUDIT_THREAD = failure(404, "There is no such record of a thread in this audit, or it was deleted.")
NO_SOURCE = failure(404, "There is no such source.")
_MOST_WITHIN = 1000
"""Floors of a thread and attempts to repair gaps that the answer about an audit lists; lists of their own have all."""


@router.get("/gaps", response_model=PageSchema[GapSchema])
def list_gaps(
    app: AppDep,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    source_id: OfSource = None,
    include_closed: Annotated[bool, Query(description="Include closed gaps.")] = False,
) -> ResourcePage[GapReport]:
    """Periods with missing items, known or possible, ordered by id."""
    rows = app.store.gaps.page(
        source_id=source_id, include_closed=include_closed, after=place(after) or 0, limit=most + 1
    )
    return paged(gap_reports(rows, app.platforms), most, lambda gap: gap.id)


@router.get("/gaps/{gap_id}/repairs", response_model=PageSchema[GapRepair])
def list_gap_repairs(
    app: AppDep, gap_id: GapId, after: After = None, most: Annotated[int, limit(200)] = 30
) -> ResourcePage[GapRepairView]:
    """The attempts to repair a gap, newest first."""
    return paged(app.store.gaps.repairs(gap_id, most + 1, before=place(after)), most, lambda repair: repair.id)


@router.get("/runs", response_model=PageSchema[Run])
def list_runs(app: AppDep, after: After = None, most: Annotated[int, limit(200)] = 30) -> ResourcePage[RunView]:
    """Runs and their results, newest first. A tick with nothing due leaves no run."""
    runs = app.store.runs.page(most + 1, before=place(after))
    return paged(app.store.runs.up_to_now(runs), most, lambda run: run.id)


@router.get("/runs/{run_id}", response_model=RunStory, responses=MISSING)
def get_run(
    app: AppDep,
    run_id: RunId,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    outcome: Annotated[Outcome | None, Query(description="Only results with this outcome.")] = None,
) -> dict[str, Any]:
    """A run and the result of each source in it; if it is still running, the results so far."""
    start = place(after) or 0
    (run,) = app.store.runs.up_to_now([app.store.runs.get(run_id)])
    visits = app.store.runs.results(run_id, start, most + 1, outcome=outcome)
    page = paged(visits, most, lambda visit: visit.source_id)
    return {**as_json(run), "results": page.items, "next": page.next}


@router.get("/runs/{run_id}/threads", response_model=PageSchema[ThreadRun], responses=MISSING)
def list_thread_runs(
    app: AppDep, run_id: RunId, after: After = None, most: Annotated[int, limit(1000)] = 100
) -> ResourcePage[ThreadRunView]:
    """The threads that a run read, with their results."""
    app.store.runs.get(run_id)
    rows = app.store.threads.thread_runs(run_id, most + 1, after=place(after) or 0)
    return paged(rows, most, lambda run: run.thread_row_id)


@router.get("/sources/{source_id}/board-runs", response_model=PageSchema[BoardRun], responses=NO_SOURCE)
def list_board_runs(
    app: AppDep, source_id: SourceId, after: After = None, most: Annotated[int, limit(200)] = 30
) -> ResourcePage[BoardRunView]:
    """The runs of a board, newest first."""
    app.store.sources.get(source_id)
    rows = app.store.threads.board_runs(source_id, most + 1, before=place(after))
    return paged(rows, most, lambda run: run.run_id)


@router.get("/audits", response_model=PageSchema[Audit])
def list_audits(app: AppDep, after: After = None, most: Annotated[int, limit(200)] = 30) -> ResourcePage[AuditView]:
    """Audits of threads and gaps, newest first."""
    return paged(app.store.floor_audits.page(most + 1, before=place(after)), most, lambda audit: audit.id)


@router.post("/audits", response_model=Audit, status_code=202, responses=NO_SOURCE)
def request_audit(app: AppDep, request: AuditRequest) -> AuditView:
    """Request an audit of floors of threads and of gaps in time. A job runs it within a tick."""
    if request.source_id is not None:
        app.store.sources.get(request.source_id)
    audit = app.store.floor_audits.request(
        "manual", app.clock.now(), is_repairing=request.repair, source_id=request.source_id
    )
    app.store.jobs.wake("audit-floors", app.clock.now())
    return audit


@router.get("/audits/{audit_id}", response_model=AuditStory, responses=NO_AUDIT)
def get_audit(
    app: AppDep, audit_id: AuditId, after: After = None, most: Annotated[int, limit(200)] = 100
) -> dict[str, Any]:
    """An audit, the threads with missing floors that it found, and the gaps that it tried to repair.

    Lists up to 1,000 floors of each thread and up to 1,000 attempts to repair gaps; `floors_next` and
    `gap_repairs_next` are the cursors to continue.
    """
    audits = app.store.floor_audits
    audit = audits.get(audit_id)
    page = paged(audits.threads(audit_id, most + 1, place(after) or 0), most, lambda thread: thread.thread_row_id)
    floors = {thread.id: _floors(app, thread.id) for thread in page.items}
    repairs = _gap_repairs(app, audit_id)
    return {
        **as_json(audit),
        "threads": [
            as_json(thread) | {"floors": as_json(floors[thread.id].items), "floors_next": floors[thread.id].next}
            for thread in page.items
        ],
        "gap_repairs": as_json(repairs.items),
        "gap_repairs_next": repairs.next,
        "next": page.next,
    }


@router.get(
    "/audits/{audit_id}/threads/{thread_id}/floors", response_model=PageSchema[AuditFloor], responses=NO_AUDIT_THREAD
)
def list_audit_floors(
    app: AppDep, audit_id: AuditId, thread_id: ThreadId, after: After = None, most: Annotated[int, limit(1000)] = 100
) -> ResourcePage[AuditFloorView]:
    """The missing floors of a thread that an audit found, by number. `thread_id` is the `id` of the thread's record."""
    app.store.floor_audits.thread(audit_id, thread_id)
    return _floors(app, thread_id, most, place(after))


@router.get("/audits/{audit_id}/gap-repairs", response_model=PageSchema[GapRepair], responses=NO_AUDIT)
def list_audit_gap_repairs(
    app: AppDep, audit_id: AuditId, after: After = None, most: Annotated[int, limit(1000)] = 100
) -> ResourcePage[GapRepairView]:
    """The attempts of an audit to repair gaps, in their order."""
    app.store.floor_audits.get(audit_id)
    return _gap_repairs(app, audit_id, most, place(after))


def _floors(
    app: App, audit_thread_id: int, most: int = _MOST_WITHIN, after: int | None = None
) -> ResourcePage[AuditFloorView]:
    floors = app.store.floor_audits.floors(audit_thread_id, most + 1, -1 if after is None else after)
    return paged(floors, most, lambda floor: floor.floor_number)


def _gap_repairs(
    app: App, audit_id: int, most: int = _MOST_WITHIN, after: int | None = None
) -> ResourcePage[GapRepairView]:
    return paged(app.store.gaps.repairs_of_audit(audit_id, most + 1, after or 0), most, lambda repair: repair.id)


@router.get("/missing-replies", response_model=PageSchema[MissingRepliesSchema])
def list_missing_replies(
    app: AppDep, after: AfterKey = None, most: Annotated[int, limit(1000)] = 100, source_id: OfSource = None
) -> ResourcePage[MissingReplies]:
    """Threads with fewer stored replies than the platform reports, the largest difference first.

    Only for sources whose replies are collected.
    """
    rows = app.store.reply_counts.worst(most + 1, source_id=source_id, after=key_from(after))
    return paged(rows, most, lambda row: key_text((row.missing_count, row.item_id)))


@router.get("/metrics", response_model=PageSchema[MetricsSchema])
def list_metrics(
    app: AppDep,
    span: Annotated[
        MetricSpan, Query(description="The length of a period: an hour, or a day in UTC.")
    ] = MetricSpan.HOUR,
    most: Annotated[int, limit(2000)] = 24,
    kind: Annotated[Name, Query(description="Only sources of this kind.")] = None,
) -> ResourcePage[MetricPoint]:
    """Results of collecting by hour or day, oldest first, in total and by kind.

    Every period is listed, even if nothing was collected in it; the last one is not over yet.
    """
    if kind is not None:
        app.names.source_kind(kind)
    return ResourcePage(app.metrics_recorder.latest(span, most, app.clock.now(), kind))


@router.get("/plan", response_model=PageSchema[BudgetPlan])
def list_plans(
    app: AppDep,
    platform: Annotated[Name, Query(description="Only this platform.")] = None,
    most: Annotated[
        int, Query(alias="limit", ge=1, le=1000, description="How many late sources to list per platform.")
    ] = 100,
) -> ResourcePage[PlanView]:
    """Whether the budgets are sufficient: requests needed and allowed per minute, and which sources will be late."""
    if platform is not None:
        app.names.platform(platform)
    return ResourcePage([plan_view(plan, most) for plan in app.plans() if platform in (None, plan.platform)])


@router.get("/alerts", response_model=PageSchema[Alert])
def list_alerts(
    app: AppDep,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    include_closed: Annotated[bool, Query(description="Include closed alerts.")] = False,
) -> ResourcePage[AlertView]:
    """Open alerts, newest first. An alert closes automatically when the problem ends."""
    rows = app.store.alerts.page(most + 1, before=place(after), include_closed=include_closed)
    return paged(rows, most, lambda alert: alert.id)
