"""Runs, gaps, metrics, budgets, alerts and health."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from catchment.collect.budget_plan import LateSourceView, PlanView
from catchment.health.metrics import KindMetrics, MetricPoint, VisitFigures
from catchment.sources.describe import GapReport
from catchment.status import CollectingHealth, DatabaseHealth, EngineHealth, JobStatus, SchedulerHealth
from catchment.store.items.floor_audits import AuditFloorView, AuditThreadView, AuditView
from catchment.store.items.reply_counts import MissingReplies
from catchment.store.items.threads import BoardRunView, ThreadRunView
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.gaps import GapRepairView
from catchment.store.sources.runs import RunView, VisitView
from catchment.web.api.params import LARGEST
from catchment.web.api.schemas.common import RequestBody, Resource, example, shows

_UNDER_WAY = "Null: still running."


@shows(
    GapReport,
    certainty=(Literal["known", "possible"], None),
    standing=(Literal["repaired", "suspect", "unreachable"], "As in the source's coverage."),
    from_at="The newest stored item before it.",
    to_at="The oldest item shown after it.",
)
class GapSchema(Resource):
    """A period with missing items, known or possible."""


@shows(
    GapRepairView,
    finished_at="Null: still running, or interrupted.",
    result=(Literal["repaired", "partial", "failed", "deferred"] | None, "Null: still running, or interrupted."),
    left_to_at="The end of the period that is still missing. Null: nothing was repaired.",
    stopped_by="Why it ended before it reached the start of the gap.",
)
class GapRepair(Resource):
    """An attempt to repair a gap."""


@shows(RunView, finished_at=_UNDER_WAY, deferred="Sources postponed by our own limits: neither successes nor failures.")
class Run(Resource):
    """One execution of a job."""


@shows(
    VisitView,
    finished_at=_UNDER_WAY,
    outcome="Null: still running. Deferred: postponed by our own limits (a budget, politeness, a cooldown).",
    http_status="The HTTP status of the failed answer, if there was one.",
)
class RunResult(Resource):
    """The result of one source in a run."""


class RunStory(Run):
    """A run and the result of each source in it, ordered by source id."""

    results: list[RunResult]
    next: str | None = Field(description="Pass it as `after` to get the next results. Null: there are no more.")


@shows(BoardRunView)
class BoardRun(Resource):
    """The result of a board in a run."""


@shows(ThreadRunView, finished_at=_UNDER_WAY)
class ThreadRun(Resource):
    """The result of a thread in a run."""


@shows(AuditView, finished_at="Null: requested or still running.")
class Audit(Resource):
    """An audit of the floors of threads."""


@shows(AuditFloorView)
class AuditFloor(Resource):
    """A missing floor and the result of its repair."""


@shows(AuditThreadView)
class AuditThread(Resource):
    """A thread with missing floors and the result of its repair."""

    floors: list[AuditFloor]
    floors_next: str | None = Field(
        description="Pass it as `after` to `/api/audits/{audit_id}/threads/{thread_id}/floors` to get the next floors. "
        "Null: these are all."
    )


@shows(MissingReplies)
class MissingRepliesSchema(Resource):
    """A thread with fewer stored replies than its platform reports."""


class AuditStory(Audit):
    """An audit and its findings."""

    threads: list[AuditThread]
    gap_repairs: list[GapRepair] = Field(description="Attempts to repair gaps in time.")
    gap_repairs_next: str | None = Field(
        description="Pass it as `after` to `/api/audits/{audit_id}/gap-repairs` to get the next attempts. Null: these "
        "are all."
    )
    next: str | None = Field(description="Pass it as `after` to get the next threads. Null: there are no more.")


class AuditRequest(RequestBody):
    """What to audit."""

    source_id: Annotated[int | None, Field(strict=True, ge=1, le=LARGEST, description="Only this source.")] = None
    repair: Annotated[
        bool, Field(strict=True, description="Request missing floors again, and items of gaps in time.")
    ] = False


@shows(
    VisitFigures,
    source_count="The number of sources collected.",
    succeeded="Successful collections.",
    empty="Successful collections without new items.",
    deferred="Collections postponed by our own limits: neither successes nor failures.",
    success_rate="succeeded / (succeeded + failed). Null: there were none.",
    mean_seconds="The average duration of a collection.",
    valid_count="New posts that are neither removed nor pinned.",
)
class Figures(Resource):
    """Results of collections."""


@shows(KindMetrics)
class KindFigures(Figures):
    """Results of collections of one kind of source."""


@shows(
    MetricPoint,
    is_over="False: the period is not over yet.",
    valid_24h="Valid posts of the 24 hours before its end.",
    hit_rate="Hit rate of the reads that the cache can answer. Null: there were none, or it is unknown.",
    tiers="Communities in each tier at its end. Null: unknown.",
)
class MetricsSchema(Figures):
    """Results of collections in an hour or a day."""


@shows(
    LateSourceView,
    interval_minutes="The interval in effect.",
    requests_per_visit="The recent average.",
    late_minutes="Null: never, as long as sources of higher priority use the whole budget.",
)
class LateSource(Resource):
    """A source that will be late because the budget is too small."""


@shows(
    PlanView,
    needed_per_minute="Requests needed to collect all sources on schedule.",
    besides_per_minute="Requests for everything else, such as rechecks.",
    allowed_per_minute="With all usable credentials. Null: no budget is declared.",
    share="The share of the allowed requests that is needed.",
    late_count="The number of sources that will be late.",
    late="The sources that will be latest.",
)
class BudgetPlan(Resource):
    """The requests that the sources of a platform need, and its budget."""

    model_config = example(
        platform="reddit",
        source_count=400,
        needed_per_minute=90.5,
        besides_per_minute=1.5,
        allowed_per_minute=100.0,
        share=0.92,
        summary="reddit: 400 sources need 92 of 100 requests a minute",
        late_count=0,
        late=[],
    )


@shows(
    AlertView,
    subject="What the alert is about; there is at most one open alert for each.",
    severity="P0: act now. P1: act today. P2: act when there is time.",
    closed_at="Null: still open.",
)
class Alert(Resource):
    """A problem that needs attention. It closes automatically when it ends."""


@shows(JobStatus, period_seconds="Null: switched off.", is_late="It is long overdue and not running.")
class JobSchema(Resource):
    pass


@shows(DatabaseHealth, kind=(Literal["sqlite", "postgresql"], None))
class DatabaseSchema(Resource):
    pass


@shows(SchedulerHealth, is_collecting="Whether this process runs the jobs.")
class SchedulerSchema(Resource):
    pass


@shows(
    CollectingHealth,
    ok="False: sources are due, but none has succeeded for longer than the limit.",
    limit_minutes="`MONITOR_CRAWL_STALE_MINUTES`.",
)
class Collecting(Resource):
    pass


@shows(
    EngineHealth,
    ok="False: the broker or the beat is missing, or a queue has no worker.",
    has_beat="Whether a `catchment beat` leads.",
    workers="The child processes of all workers.",
    unconsumed="Queues without a worker. Their jobs do not run.",
)
class Engine(Resource):
    """The distributed engine."""


class Health(Resource):
    """`ok` alone without a key; the rest with one."""

    model_config = example(ok=True)
    ok: bool
    version: str | None = None
    database: DatabaseSchema | None = None
    scheduler: SchedulerSchema | None = None
    engine: Engine | None = Field(None, description="Only if `CELERY_BROKER_URL` is set.")
    collecting: Collecting | None = None
    last_runs: list[Run] | None = None
    failed_tasks: int | None = Field(default=None, description="In the last 24 hours.")
