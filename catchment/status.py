"""The status of the deployment, computed once for the CLI, the API, the pages, /health and Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property

from msgspec.structs import asdict

from catchment import __version__
from catchment.app import App
from catchment.cache import has_cached_kinds
from catchment.clock import Clock
from catchment.collect import outages
from catchment.collect.budget_plan import PlanView, is_tight, plan_view, taken_of_late
from catchment.collect.cooldowns import SharedCooldowns
from catchment.credentials.manager import credential_view, rules_from
from catchment.errors import StoreError
from catchment.fetch.budgets import Level
from catchment.jobs import JOBS, JobView, job_views
from catchment.model import Record, View
from catchment.policy.budget_plan import PlatformPlan
from catchment.policy.outages import CommonCause, OutageView
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES
from catchment.redis import Away
from catchment.settings.table import QUEUES, without_password
from catchment.sources.describe import DeploymentFacts
from catchment.store.leases import ProcessView, is_silent, living
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.runs import DayView, RunView
from catchment.store.sources.stats import FailingSource, FailureCounts
from catchment.store.version import HEAD, engine_version

MOST_WAITING = 200
"""Waiting sources are counted up to this number."""
# Wall time: a scheduler that does nothing for this long is stuck. Long-running work is in progress, not late.
_PATIENCE_SECONDS = 120.0
_TICKS_OF_PATIENCE = 10
# More failing sources than a person reads, but enough to match alerts with them.
_MOST_FAILING = 50
_SHOWN_FAILING = 10
_SHOWN_LATE = 3
_STATES = ("active", "paused", "retired")
# The work that processes which visit sources register with the store.
WORKER, BEAT = "worker", "beat"
_COLLECTORS = ("serve", "collect", WORKER, "demo")


def consumers(app: App) -> dict[str, int]:
    """Returns how many children of workers take tasks from each queue that any of them consumes."""
    return consumed(living(app.store.database, app.store.home, app.clock.now()), app.clock)


def consumed(processes: Sequence[ProcessView], clock: Clock) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for process in processes:
        work, _, queues = process.work.partition(" ")
        if work == WORKER and not is_silent(process, clock):
            counts.update(f"{name}_queue" for name in queues.split(",") if name)
    return dict(counts)


class JobStatus(JobView, frozen=True):
    is_late: bool
    """It should have run long ago, and is not in progress."""


class PoolStatus(View, frozen=True):
    """The credentials that are shared by all sources of a platform."""

    shared: int
    usable: int
    exhausted: tuple[str, ...]
    """The platforms that have some, but no usable one."""


class CollectorView(View, frozen=True):
    is_running: bool
    processes: tuple[ProcessView, ...]


class QueueView(View, frozen=True):
    """A queue of the distributed engine."""

    name: str
    waiting: int | None
    """Messages that no worker has taken yet; None: the broker is unavailable."""
    workers: int
    """Child processes that take tasks from it."""


class EngineView(View, frozen=True):
    """The distributed engine: who works, and what waits."""

    broker: str
    is_broker_available: bool
    beat: ProcessView | None
    """The one that leads; None: there is none, or it hangs, and workers get nothing to do."""
    workers: tuple[ProcessView, ...]
    """The child processes of the workers."""
    queues: tuple[QueueView, ...]

    @property
    def is_working(self) -> bool:
        return self.is_broker_available and self.beat is not None and all(queue.workers for queue in self.queues)


class DatabaseView(View, frozen=True):
    url: str
    engine: str
    schema: str
    home: str


class StatusView(View, frozen=True):
    """The state of the deployment on one page."""

    sources: dict[str, int]
    outages: tuple[OutageView, ...]
    failing: tuple[FailingSource, ...]
    failing_count: int
    items: int
    open_gaps: int
    alerts: tuple[AlertView, ...]
    credentials: PoolStatus
    last_24_hours: DayView
    tight_budgets: tuple[PlanView, ...]
    jobs: tuple[JobView, ...]
    collector: CollectorView
    engine: EngineView | None
    """None: jobs run inside the collecting process."""
    database: DatabaseView


class CollectorStatsView(View, frozen=True):
    """Sources by state, and the last 24 hours. The three states add up to the total."""

    total_sources: int
    active_sources: int
    paused_sources: int
    paused_by_error: int
    """On probation after failures, or retired."""
    fetches_24h: int
    errors_24h: int
    deferred_24h: int
    items_24h: int

    @property
    def raw_items_24h(self) -> int:
        return self.items_24h


class DatabaseHealth(View, frozen=True):
    ok: bool
    kind: str


class SchedulerHealth(View, frozen=True):
    ok: bool
    is_collecting: bool
    jobs: tuple[JobStatus, ...]


class CollectingHealth(View, frozen=True):
    ok: bool
    limit_minutes: int


class EngineHealth(View, frozen=True):
    """The distributed engine: whether there is a broker, a beat, and a worker for each queue."""

    ok: bool
    is_broker_available: bool
    has_beat: bool
    workers: int
    unconsumed: tuple[str, ...]


class HealthView(View, frozen=True):
    ok: bool
    version: str
    database: DatabaseHealth
    scheduler: SchedulerHealth | None = None
    """None: not known while the database is unavailable."""
    engine: EngineHealth | None = None
    """None: jobs run inside the collecting process."""
    collecting: CollectingHealth | None = None
    last_runs: tuple[RunView, ...] | None = None
    failed_tasks: int | None = None
    """Of the last 24 hours."""


class BudgetStatus(Record, frozen=True):
    """How much of a platform's request budget is used, and the forecast."""

    platform: str
    window_seconds: float
    is_per_credential: bool
    used: float
    """The share used lately."""
    levels: Sequence[Level]
    day_used: int
    plan: PlatformPlan


class CacheFigures(Record, frozen=True):
    """The cache in the last 24 hours."""

    hits: int
    misses: int
    home: str
    entries: int


class DeploymentStatus:
    """The status at one moment. Each part is read when it is first asked for, and its cost is bounded.

    `collects`: whether this process runs the jobs; `opened_at`: since when.
    """

    def __init__(self, app: App, *, collects: bool = False, opened_at: datetime | None = None) -> None:
        self._app, self._store = app, app.store
        self.now = app.clock.now()
        self.is_collecting = collects
        self._opened_at = opened_at or self.now

    # Sources

    @cached_property
    def source_counts(self) -> dict[str, int]:
        """Sources by state; without removed ones, unless there are any."""
        return dict.fromkeys(_STATES, 0) | self._store.sources.counts()

    @cached_property
    def failing(self) -> list[FailingSource]:
        return self._store.failure_stats.failing(_MOST_FAILING)

    @cached_property
    def failures(self) -> FailureCounts:
        return self._store.failure_stats.counts(self._app.settings.failures_before_probation)

    @cached_property
    def causes(self) -> list[CommonCause]:
        """Common causes of the failures of several sources."""
        return outages.causes_among(self._store, self._app.platforms, self.failing)

    @cached_property
    def explained_ids(self) -> set[int]:
        """The sources that fail for a common cause."""
        return {source_id for cause in self.causes for source_id in cause.source_ids}

    def overdue(self, limit: int) -> list[int]:
        """The sources that should have been visited a while ago, and were not."""
        at = self.now - self._patience
        unscheduled = dict.fromkeys(self._app.unscheduled_kinds(), 0)
        ids = self._store.sources.overdue(self._app.intervals(), UNKNOWN_KIND_MINUTES, at, limit, most=unscheduled)
        # A new source has as much time for its first visit.
        sources = self._store.sources.these(ids)
        return [source.id for source, progress in sources if progress.last_polled_at or source.created_at < at]

    @property
    def _patience(self) -> timedelta:
        """How long after its due time a source is not yet late: it is visited on one of the next ticks."""
        return timedelta(seconds=_TICKS_OF_PATIENCE * self._app.settings.tick_seconds)

    @cached_property
    def facts(self) -> DeploymentFacts:
        """What may keep sources waiting."""
        cooldowns = SharedCooldowns(self._store.budgets)
        return DeploymentFacts(
            now=self.now,
            patience=self._patience,
            is_collecting=self.is_collected,
            closed=cooldowns.until(self._app.platforms.without_services, self.now),
            unscheduled=self._app.unscheduled_kinds(),
            waiting_count=len(self.overdue(MOST_WAITING)),
        )

    # Items, runs, alerts

    @cached_property
    def item_count(self) -> int:
        return self._store.items.count()

    @cached_property
    def open_gap_count(self) -> int:
        return self._store.gaps.count_open()

    @cached_property
    def day(self) -> DayView:
        return self._store.runs.last_day(self.now)

    # Processes and jobs

    @cached_property
    def processes(self) -> list[ProcessView]:
        return living(self._store.database, self._store.home, self.now)

    @cached_property
    def engine(self) -> EngineView | None:
        """The distributed engine, if the settings name a broker."""
        app, broker = self._app, self._app.broker
        if broker is None:
            return None
        jobs = [job for job in JOBS if job.period(app.settings) is not None]
        names = [name for name in QUEUES if any(job.queue_name == name for job in jobs)]
        waiting: list[int | None]
        try:
            waiting = [*broker.ask(lambda client: [int(client.llen(name)) for name in names])]
        except Away:
            waiting = [None] * len(names)
        leader, workers = self._store.leadership.leader(), consumed(self.processes, app.clock)
        beats = {
            (process.machine, process.pid): process
            for process in self.processes
            if process.work == BEAT and not is_silent(process, app.clock)
        }
        return EngineView(
            broker=broker.shown_url,
            is_broker_available=None not in waiting,
            beat=beats.get((leader.machine, leader.pid)) if leader else None,
            workers=tuple(process for process in self.processes if process.work.partition(" ")[0] == WORKER),
            queues=tuple(
                QueueView(name, count, workers.get(name, 0)) for name, count in zip(names, waiting, strict=True)
            ),
        )

    @cached_property
    def is_collected(self) -> bool:
        """Whether any process collects."""
        return self.is_collecting or any(process.work.startswith(_COLLECTORS) for process in self.processes)

    @cached_property
    def jobs(self) -> list[JobStatus]:
        under_way = {run.job for run in self._store.runs.page(20) if run.finished_at is None}
        return [
            JobStatus(**asdict(job), is_late=job.name not in under_way and self._is_late(job))
            for job in job_views(self._app)
        ]

    def _is_late(self, job: JobView) -> bool:
        if job.period_seconds is None:
            return False
        # Before this process started, there may have been none to run the job.
        late = self.now - (max(job.next_run_at, self._opened_at) if job.next_run_at else self._opened_at)
        return (
            late.total_seconds() > job.period_seconds
            and self._app.clock.wall_seconds(late.total_seconds()) > _PATIENCE_SECONDS
        )

    # Budgets, credentials, cache

    def budgets(self) -> list[BudgetStatus]:
        """The platforms that have sources and declare a budget."""
        app, platforms = self._app, self._store.sources.platforms()
        budgets = {name: budget for name, budget in app.budgets().items() if name in platforms}
        if not budgets:
            return []
        used, levels = app.monitors().budgets_used(budgets), app.levels(budgets)
        plans = {plan.platform: plan for plan in app.plans(taken_of_late(self._store, self.now))}
        day = self._store.metrics.calls_since(self.now - timedelta(days=1))
        return [
            BudgetStatus(
                platform=name,
                window_seconds=budget.window_seconds,
                is_per_credential=budget.is_per_credential,
                used=used[name],
                levels=levels[name],
                day_used=day.get(name, 0),
                plan=plans[name],
            )
            for name, budget in sorted(budgets.items())
            # The last source of a platform may have been paused in the meantime.
            if name in plans
        ]

    def credentials(self) -> PoolStatus:
        rules = rules_from(self._app.settings)
        views = [credential_view(stored, rules, self.now) for stored in self._store.credentials.page()]
        pool = [credential for credential in views if credential.is_shared]
        usable = [credential for credential in pool if credential.is_usable]
        exhausted = {credential.platform for credential in pool} - {credential.platform for credential in usable}
        return PoolStatus(len(pool), len(usable), tuple(sorted(exhausted)))

    def cache(self) -> CacheFigures | None:
        """None if no source is cached."""
        platforms = self._store.sources.platforms()
        if not any(has_cached_kinds(platform) for platform in self._app.platforms if platform.NAME in platforms):
            return None
        counts = self._app.cache.counts(self.now - timedelta(days=1))
        home, entries = self._app.cache.standing()
        return CacheFigures(counts.hits, counts.misses, home, entries)

    # Whole views

    def view(self) -> StatusView:
        database = self._store.database
        return StatusView(
            sources=self.source_counts,
            outages=tuple(cause.view for cause in self.causes),
            failing=tuple(self.failing[:_SHOWN_FAILING]),
            failing_count=self.failures.failing,
            items=self.item_count,
            open_gaps=self.open_gap_count,
            alerts=tuple(self._store.alerts.open()),
            credentials=self.credentials(),
            last_24_hours=self.day,
            tight_budgets=tuple(plan_view(plan, _SHOWN_LATE) for plan in self._app.plans() if is_tight(plan)),
            jobs=tuple(job_views(self._app)),
            collector=CollectorView(bool(self.processes), tuple(self.processes)),
            engine=self.engine,
            database=DatabaseView(
                without_password(database.shown_url), engine_version(database), HEAD, str(self._app.settings.home)
            ),
        )

    def collector_stats(self) -> CollectorStatsView:
        active, paused, retired = (self.source_counts[state] for state in _STATES)
        probation = self.failures.probation
        return CollectorStatsView(
            total_sources=active + paused + retired,
            # A source on probation is counted once.
            active_sources=active - probation,
            paused_sources=paused,
            paused_by_error=probation + retired,
            fetches_24h=self.day.fetches,
            errors_24h=self.day.errors,
            deferred_24h=self.day.deferred,
            items_24h=self.day.items,
        )

    def _engine_health(self) -> EngineHealth | None:
        engine = self.engine
        if engine is None:
            return None
        return EngineHealth(
            ok=engine.is_working,
            is_broker_available=engine.is_broker_available,
            has_beat=engine.beat is not None,
            workers=len(engine.workers),
            unconsumed=tuple(queue.name for queue in engine.queues if not queue.workers),
        )

    def health(self) -> HealthView:
        """Never raises if the database is unavailable: the result says so."""
        app = self._app
        database = DatabaseHealth(ok=True, kind="postgresql" if self._store.database.is_postgres else "sqlite")
        try:
            runs, jobs, engine = self._store.runs.page(5), self.jobs, self._engine_health()
            tasks = self._store.tasks.counts()
            is_succeeding = outages.is_succeeding(self._store, app.watching_period, self.now)
        except StoreError:
            return HealthView(ok=False, version=__version__, database=database.replace(ok=False))
        is_punctual = not self.is_collecting or not any(job.is_late for job in jobs)
        return HealthView(
            ok=is_punctual and is_succeeding and (engine is None or engine.ok),
            version=__version__,
            database=database,
            scheduler=SchedulerHealth(is_punctual, self.is_collecting, tuple(jobs)),
            engine=engine,
            collecting=CollectingHealth(is_succeeding, app.settings.monitor_stale_minutes),
            last_runs=tuple(runs),
            failed_tasks=tasks["failed"],
        )
