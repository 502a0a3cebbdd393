"""Runs, gaps, metrics, budgets, alerts and health."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from catchment.web.api.schemas.common import Moment, Resource, example


class GapSchema(Resource):
    """A stretch of time of which something is missing, or may be."""

    id: int
    source_id: int
    source_name: str
    is_certain: bool
    certainty: Literal["known", "possible"]
    standing: Literal["repaired", "suspect", "unreachable"] = Field(description="As in the source's coverage.")
    from_at: Moment = Field(description="The newest that is stored before it …")
    to_at: Moment = Field(description="… and the oldest that was shown after it.")
    cause: str
    opened_at: Moment
    closed_at: Moment | None
    closed_because: str | None


class Run(Resource):
    """One execution of a job."""

    id: int
    job: str
    started_by: str
    request_id: str | None
    started_at: Moment
    finished_at: Moment | None = Field(description="Null: under way.")
    is_cut_off: bool
    source_count: int
    succeeded: int
    failed: int
    deferred: int = Field(description="Sources that our own limits made wait: neither successes nor failures.")
    skipped: int
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class RunResult(Resource):
    """What became of one source in a run."""

    run_id: int
    source_id: int
    source_name: str
    kind: str
    started_at: Moment
    finished_at: Moment | None = Field(description="Null: under way.")
    outcome: Literal["succeeded", "unchanged", "failed", "deferred", "skipped"] | None = Field(
        description="Null: under way. Deferred: our own limits (a budget, politeness, a cooldown) made it wait."
    )
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int
    http_status: int | None = Field(description="Of the answer that failed it, where there was one.")
    error_code: str | None
    error: str | None


class RunStory(Run):
    """A run, and what became of each source in it, in order of the sources' ids."""

    results: list[RunResult]
    next: str | None = Field(description="Given as `after` to get the results that follow; null: these were the last.")


class Figures(Resource):
    """What visits came to."""

    source_count: int = Field(description="How many sources were visited.")
    succeeded: int = Field(description="Visits that went well …")
    empty: int = Field(description="… and those among them that brought nothing new.")
    failed: int
    deferred: int = Field(description="Visits that our own limits made wait: neither successes nor failures.")
    skipped: int
    success_rate: float | None = Field(description="succeeded / (succeeded + failed); null: there were none.")
    mean_seconds: float | None = Field(description="How long a visit took, on average.")
    new_count: int
    valid_count: int = Field(description="Of the new ones, the posts that are neither taken away nor pinned.")
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class KindFigures(Figures):
    """The same of one kind of sources."""

    kind: str
    platform: str


class MetricsSchema(Figures):
    """One hour, or one day, of visiting."""

    starts_at: Moment
    ends_at: Moment
    is_over: bool = Field(description="False: it is under way.")
    valid_24h: int = Field(description="Valid posts of the 24 hours that end with it.")
    hit_rate: float | None = Field(description="Of reads that the hot store could answer; null: none, or not known.")
    tiers: dict[str, int] | None = Field(description="Communities in each tier at its end; null: not known.")
    kinds: list[KindFigures]


class LateSource(Resource):
    """A source for which the budget does not suffice."""

    source_id: int
    name: str
    priority: str
    interval_minutes: int = Field(description="The interval that holds.")
    requests_per_visit: float = Field(description="On average, lately.")
    late_minutes: int | None = Field(description="Null: never, while those of higher priority use all there is.")
    summary: str


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
    platform: str
    source_count: int
    needed_per_minute: float = Field(description="Requests for visits at their intervals.")
    besides_per_minute: float = Field(description="For everything else: second looks, extra rounds.")
    allowed_per_minute: float | None = Field(description="With all usable credentials; null: no budget is declared.")
    share: float | None = Field(description="Needed, and besides, of what is allowed.")
    summary: str
    late_count: int = Field(description="How many sources will be late.")
    late: list[LateSource] = Field(description="The worst of them.")


class Alert(Resource):
    """Something that a person should look at. It closes by itself once it is over."""

    id: int
    subject: str = Field(description="Whom or what it is about; there is one open alert for each.")
    severity: Literal["P0", "P1", "P2"] = Field(description="Look at it now, today, or when there is time.")
    source_id: int | None
    message: str
    opened_at: Moment
    closed_at: Moment | None = Field(description="Null: it is open.")


class JobSchema(Resource):
    name: str
    why: str
    period_seconds: float | None = Field(description="Null: switched off.")
    last_started_at: Moment | None
    last_finished_at: Moment | None
    next_run_at: Moment | None
    last_error: str | None
    run_count: int
    is_late: bool = Field(description="It should have run long ago, and is not under way.")


class DatabaseSchema(Resource):
    ok: bool
    kind: Literal["sqlite", "postgresql"]


class SchedulerSchema(Resource):
    ok: bool
    is_collecting: bool = Field(description="Whether this very process runs the jobs.")
    jobs: list[JobSchema]


class Collecting(Resource):
    ok: bool = Field(description="False: nothing has succeeded for longer than the limit, although it was due.")
    limit_minutes: int = Field(description="`MONITOR_CRAWL_STALE_MINUTES`.")


class Health(Resource):
    """`ok` alone without a key; the rest with one."""

    model_config = example(ok=True)
    ok: bool
    version: str | None = None
    database: DatabaseSchema | None = None
    scheduler: SchedulerSchema | None = None
    collecting: Collecting | None = None
    last_runs: list[Run] | None = None
