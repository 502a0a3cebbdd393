"""Runs, gaps, metrics, budgets, alerts and health."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from catchment.collect.budget_plan import LateSourceView, PlanView
from catchment.health.metrics import KindMetrics, MetricPoint, VisitFigures
from catchment.status import CollectingHealth, DatabaseHealth, EngineHealth, JobStatus, SchedulerHealth
from catchment.store.items.floor_audits import AuditFloorView, AuditThreadView, AuditView
from catchment.store.items.threads import BoardRunView, ThreadRunView
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.gaps import GapView
from catchment.store.sources.runs import RunView, VisitView
from catchment.web.api.params import LARGEST
from catchment.web.api.schemas.common import RequestBody, Resource, example, shows

_UNDER_WAY = "Null: under way."


@shows(
    GapView,
    certainty=(Literal["known", "possible"], None),
    standing=(Literal["repaired", "suspect", "unreachable"], "As in the source's coverage."),
    from_at="The newest that is stored before it …",
    to_at="… and the oldest that was shown after it.",
)
class GapSchema(Resource):
    """A stretch of time of which something is missing, or may be."""


@shows(
    RunView, finished_at=_UNDER_WAY, deferred="Sources that our own limits made wait: neither successes nor failures."
)
class Run(Resource):
    """One execution of a job."""


@shows(
    VisitView,
    finished_at=_UNDER_WAY,
    outcome="Null: under way. Deferred: our own limits (a budget, politeness, a cooldown) made it wait.",
    http_status="Of the answer that failed it, where there was one.",
)
class RunResult(Resource):
    """What became of one source in a run."""


class RunStory(Run):
    """A run, and what became of each source in it, in order of the sources' ids."""

    results: list[RunResult]
    next: str | None = Field(description="Given as `after` to get the results that follow; null: these were the last.")


@shows(BoardRunView)
class BoardRun(Resource):
    """What a run did with a board of a forum."""


@shows(ThreadRunView, finished_at=_UNDER_WAY)
class ThreadRun(Resource):
    """What a run did with a thread."""


@shows(AuditView, finished_at="Null: requested, or under way.")
class Audit(Resource):
    """An audit of the floors of threads."""


@shows(AuditFloorView)
class AuditFloor(Resource):
    """A missing floor, and what became of its repair."""


@shows(AuditThreadView)
class AuditThread(Resource):
    """A thread with missing floors, and what became of its repair."""

    floors: list[AuditFloor]


class AuditStory(Audit):
    """An audit, and what it found."""

    threads: list[AuditThread]
    next: str | None = Field(description="Given as `after` to get the threads that follow; null: these were the last.")


class AuditRequest(RequestBody):
    """Which threads are audited."""

    source_id: Annotated[int | None, Field(strict=True, ge=1, le=LARGEST, description="Only those of this source.")] = (
        None
    )
    repair: Annotated[bool, Field(strict=True, description="Request missing floors again.")] = False


@shows(
    VisitFigures,
    source_count="How many sources were visited.",
    succeeded="Visits that went well …",
    empty="… and those among them that brought nothing new.",
    deferred="Visits that our own limits made wait: neither successes nor failures.",
    success_rate="succeeded / (succeeded + failed); null: there were none.",
    mean_seconds="How long a visit took, on average.",
    valid_count="Of the new ones, the posts that are neither taken away nor pinned.",
)
class Figures(Resource):
    """What visits came to."""


@shows(KindMetrics)
class KindFigures(Figures):
    """The same of one kind of sources."""


@shows(
    MetricPoint,
    is_over="False: it is under way.",
    valid_24h="Valid posts of the 24 hours that end with it.",
    hit_rate="Of reads that the hot store could answer; null: none, or not known.",
    tiers="Communities in each tier at its end; null: not known.",
)
class MetricsSchema(Figures):
    """One hour, or one day, of visiting."""


@shows(
    LateSourceView,
    interval_minutes="The interval that holds.",
    requests_per_visit="On average, lately.",
    late_minutes="Null: never, while those of higher priority use all there is.",
)
class LateSource(Resource):
    """A source for which the budget does not suffice."""


@shows(
    PlanView,
    needed_per_minute="Requests for visits at their intervals.",
    besides_per_minute="For everything else: second looks, extra rounds.",
    allowed_per_minute="With all usable credentials; null: no budget is declared.",
    share="Needed, and besides, of what is allowed.",
    late_count="How many sources will be late.",
    late="The worst of them.",
)
class BudgetPlan(Resource):
    """What the sources of one platform need of its budget."""

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
    subject="Whom or what it is about; there is one open alert for each.",
    severity="Look at it now, today, or when there is time.",
    closed_at="Null: it is open.",
)
class Alert(Resource):
    """Something that a person should look at. It closes by itself once it is over."""


@shows(JobStatus, period_seconds="Null: switched off.", is_late="It should have run long ago, and is not under way.")
class JobSchema(Resource):
    pass


@shows(DatabaseHealth, kind=(Literal["sqlite", "postgresql"], None))
class DatabaseSchema(Resource):
    pass


@shows(SchedulerHealth, is_collecting="Whether this very process runs the jobs.")
class SchedulerSchema(Resource):
    pass


@shows(
    CollectingHealth,
    ok="False: nothing has succeeded for longer than the limit, although it was due.",
    limit_minutes="`MONITOR_CRAWL_STALE_MINUTES`.",
)
class Collecting(Resource):
    pass


@shows(
    EngineHealth,
    ok="False: there is no broker, no beat, or a queue without a worker.",
    has_beat="Whether a `catchment beat` leads.",
    workers="Child processes of all workers.",
    unconsumed="Queues without a worker: their jobs do not run.",
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
    engine: Engine | None = Field(None, description="Only where `CELERY_BROKER_URL` is set.")
    collecting: Collecting | None = None
    last_runs: list[Run] | None = None
    failed_tasks: int | None = Field(default=None, description="Of the last 24 hours.")
