"""Which job runs when: a table that every engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from catchment import logs
from catchment.app import App
from catchment.clock import EPOCH
from catchment.collect import outages
from catchment.collect.budget_plan import budget_alerts, keep_taken
from catchment.collect.cache_warmup import warmable
from catchment.collect.scheduler import emptiness
from catchment.errors import StoreError
from catchment.events import watches
from catchment.health.monitors import HITS_LOOKED_AT, canaries_among, silence_alerts
from catchment.model import Record, View, VisitResult, as_dict
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES
from catchment.settings import Settings
from catchment.sources import intervals as source_intervals
from catchment.sources.add import COLLECT_REQUESTED
from catchment.store.sources.metrics import MetricSpan
from catchment.store.sources.runs import JobState

log = logs.logger(__name__)

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WARM_UP, SEEDS = 2 * HOUR, 30 * MINUTE
COLLECT_DUE, INCREMENTAL = "collect-due", "auto-crawl-incremental"
MONITOR_SPENDING = "monitor-spending"
CRAWL_SEEDS = "tasks.crawler.crawl_seed_communities"


class Job(Record, frozen=True):
    """A recurring job."""

    name: str
    every: timedelta | None
    """None: on every tick of the collector."""
    run: Callable[[App], object]
    queue: str
    why: str
    """What it does, as pages and JSON name it."""
    is_off: bool = False
    """Runs only if a setting gives it a period."""
    is_on_the_clock: bool = False
    """Runs at whole multiples of its period: hourly on the hour, daily at 00:00 UTC."""
    task: str = ""
    """The name of its Celery task, where it is not `catchment.` and the job's name."""
    expires: timedelta | None = None
    """How long a message about it is worth reading; None: for a period."""

    @property
    def task_name(self) -> str:
        return self.task or f"catchment.{self.name}"

    @property
    def queue_name(self) -> str:
        """Its Celery queue."""
        return "analysis_queue" if self.queue == "events" else f"{self.queue}_queue"

    def period(self, settings: Settings) -> timedelta | None:
        """How often the job runs, by the settings; None if it is switched off."""
        if self.name in settings.jobs:
            minutes = settings.jobs[self.name]
            return None if minutes is None else timedelta(minutes=minutes)
        return None if self.is_off else self.every or timedelta(seconds=settings.tick_seconds)

    def next_run(self, started_at: datetime, now: datetime, period: timedelta) -> datetime:
        """When the job runs next, after a run that started at `started_at` and ended `now`."""
        if self.is_on_the_clock:
            return now - (now - EPOCH) % period + period
        return max(started_at + period, now)


def communities(app: App) -> list[str]:
    """Returns the kinds of communities, as specified for Reddit."""
    return [kind.name for kind in app.platforms.kinds() if kind.is_tiered]


def crawl_incremental(app: App) -> None:
    """Collect the communities that are due. The tick does so, too: this run is for schedules that rely on its name."""
    app.scheduler().due(INCREMENTAL, "schedule", kinds=communities(app))


def index_items(app: App) -> None:
    index, count = app.store.index, 0
    while not app.stop.is_set() and (indexed := index.advance()):
        count += indexed
    if count:
        index.update_planner_statistics()
        log.debug("indexed", items=count)


def crawl_low_quality(app: App) -> None:
    settings, since = app.settings, app.clock.now() - timedelta(hours=app.settings.low_quality_hours)
    ids = app.store.tier_stats.neglected(
        communities(app), settings.low_quality_below, since, settings.low_quality_sources
    )
    results = app.scheduler().these(ids, "crawl-low-quality", "schedule") if ids else []
    if results:
        log.info("collected low-activity communities", visited=len(results), **emptiness(results))


def assign_tiers(app: App) -> None:
    changed = source_intervals.assign_tiers(app.store, app.tiers, app.stop.is_set)
    if changed:
        log.info("communities changed tier", communities=len(changed))


def clear_old(app: App) -> None:
    cleared = app.store.cleanup.clear(
        app.clock.now(),
        raw_days=app.settings.raw_answers_days,
        run_days=app.settings.runs_days,
        attempt_days=app.settings.attempts_days,
        event_days=app.settings.events_days,
        metrics_days=app.settings.metrics_days,
    )
    cleared["items"] = app.store.retention.clear(app.settings.retention_days, app.clock.now(), app.stop.is_set)
    if any(cleared.values()):
        log.info("deleted expired records", **cleared)


def measure(app: App, span: MetricSpan) -> None:
    app.metrics_recorder.measure(span, app.clock.now(), app.stop.is_set)


def clear_expired(app: App) -> None:
    if cleared := app.cache.clear_expired():
        log.info("deleted expired cache entries", entries=cleared)


def warm(app: App, job: str, every: timedelta, *, is_forced: bool = False) -> list[VisitResult]:
    """Crawl, into the cache only, what has not been read within half the job's period, or everything."""
    minutes = app.settings.jobs.get(job)
    period = every if minutes is None else timedelta(minutes=minutes)
    since = app.clock.now() - (timedelta() if is_forced else period / 2)
    cold = app.store.cached_sources.cold(warmable(app.platforms), since)
    results = app.cache_warmup().these(cold, job, "schedule")
    if results:
        outcomes = Counter(str(result.outcome) for result in results)
        log.info(
            "warmed", communities=len(results), posts=sum(result.counts.duplicate for result in results), **outcomes
        )
    return results


def notice_silence(app: App) -> None:
    alerts = app.store.alerts
    now = app.clock.now()
    rhythms = alerts.with_rhythm()
    # Where sources bring their own hosts, one of them says nothing about the others.
    single_host = {platform.NAME for platform in app.platforms if platform.HOSTS}
    canaries = canaries_among(rhythms, single_host, app.settings.canaries)
    opened, closed = alerts.keep_open(" silent", silence_alerts(alerts.late_sources(now), rhythms, canaries), now)
    if opened or closed:
        log.warning("silence alerts changed", opened=opened, closed=closed)


def monitor_cache_health(app: App) -> None:
    counts = app.cache.counts(app.clock.now() - HITS_LOOKED_AT)
    app.monitors().cache_health(counts.hits, counts.misses)
    app.monitors().redis(app.redis.check() if app.redis else None)


def monitor_crawler_health(app: App) -> None:
    now, intervals = app.clock.now(), app.intervals()
    app.collecting_monitor().watch(lambda: app.store.lateness_stats.waiting(intervals, UNKNOWN_KIND_MINUTES, now))


def plan_budgets(app: App) -> None:
    taken = keep_taken(app.store, app.clock.now())
    app.monitors().budgets(budget_alerts(app.plans(taken)))


def recover_leases(app: App) -> None:
    now = app.clock.now()
    freed, ahead = app.presence.bury(now), app.store.sources.reset_future_times(now)
    if freed or ahead:
        log.warning("recovered", dead_processes=freed, times_reset=ahead)


def run_watches(app: App) -> None:
    watches.run_watches(app.store.watches, app.clock.now, app.stop)


def deliver_events(app: App) -> None:
    app.deliverer.deliver_pending()


def watch_credentials(app: App) -> None:
    app.credential_manager.apply_elapsed_time()
    app.monitors().guessing()


JOBS = (
    Job(
        COLLECT_DUE, None, lambda app: app.scheduler().due(COLLECT_DUE, "schedule"), "crawler",
        "Collect due sources",
    ),
    Job(
        COLLECT_REQUESTED, None, lambda app: app.scheduler().requested(COLLECT_REQUESTED, "request"), "crawler",
        "Collect new and requested sources",
    ),
    Job(
        "read-threads", None, lambda app: app.visitor().read_threads("schedule", app.presence.owner_id),
        "crawler", "Read forum threads that a collection left unread",
    ),
    Job(
        "audit-floors", None, lambda app: app.floor_audit().requested(), "crawler",
        "Audit threads on request",
    ),
    Job(
        "repair-floors", DAY, lambda app: app.floor_audit().run("schedule", is_repairing=True), "crawler",
        "Find and repair missing floors and gaps",
    ),
    Job("run-tasks", None, lambda app: app.task_runner().run(), "crawler", "Run requested tasks"),
    Job("index-items", None, index_items, "maintenance", "Index new items for search and filters"),
    Job("run-watches", None, run_watches, "events", "Match new items against watches"),
    Job("deliver-events", None, deliver_events, "events", "Deliver events to webhooks, notifications and hooks"),
    Job(
        INCREMENTAL, 30 * MINUTE, crawl_incremental, "crawler", "Collect due communities",
        is_on_the_clock=True, task="tasks.crawler.crawl_seed_communities_incremental", expires=30 * MINUTE,
    ),
    Job(
        "crawl-low-quality", 4 * HOUR, crawl_low_quality, "crawler",
        "Collect low-activity communities", is_on_the_clock=True,
        task="tasks.crawler.crawl_low_quality_communities", expires=HOUR,
    ),
    Job("assign-tiers", DAY, assign_tiers, "maintenance", "Assign communities to tiers"),
    Job(
        "recheck", 5 * MINUTE, lambda app: app.rechecks().run("schedule"), "crawler",
        "Recheck older items for edits and deletions",
    ),
    Job(
        "recover-leases", 15 * MINUTE, recover_leases, "maintenance",
        "Free leases of dead processes, and correct times in the future",
    ),
    Job("notice-silence", 5 * MINUTE, notice_silence, "monitoring", "Detect sources without new items"),
    Job(
        "monitor-api-calls", MINUTE, lambda app: app.monitors().api_calls(app.budgets()), "monitoring",
        "Monitor requests to platforms", task="tasks.monitoring.monitor_api_calls",
    ),
    Job(
        "monitor-cache-health", 5 * MINUTE, monitor_cache_health, "monitoring", "Monitor the hit rate of the cache",
        task="tasks.monitoring.monitor_cache_health",
    ),
    Job(
        "monitor-success", 5 * MINUTE, lambda app: app.monitors().success(app.collecting_monitor().explained),
        "monitoring", "Monitor the success rate",
    ),
    Job(
        outages.JOB, outages.PERIOD, monitor_crawler_health, "monitoring",
        "Monitor outages, and whether collecting continues",
        task="tasks.monitoring.monitor_crawler_health",
    ),
    Job(
        "monitor-warmup-metrics", 15 * MINUTE, lambda app: app.monitors().warm_up(), "monitoring",
        "Monitor first collections", task="tasks.monitoring.monitor_warmup_metrics",
    ),
    Job(
        "watch-credentials", MINUTE, watch_credentials, "monitoring",
        "End cooldowns of credentials, and check which expire or are missing",
    ),
    Job(
        MONITOR_SPENDING, MINUTE, lambda app: app.monitor_spending(), "monitoring",
        "Monitor spending",
    ),
    Job("plan-budgets", HOUR, plan_budgets, "monitoring", "Check that request budgets cover all sources"),
    Job(
        "measure-hours", HOUR, lambda app: measure(app, MetricSpan.HOUR), "monitoring",
        "Compute hourly metrics", is_on_the_clock=True,
    ),
    Job(
        "daily-metrics", DAY, lambda app: measure(app, MetricSpan.DAY), "monitoring",
        "Compute daily metrics", is_on_the_clock=True, task="tasks.metrics.generate_daily",
    ),
    Job("clear-old", HOUR, clear_old, "cleanup", "Delete expired records and items"),
    Job(
        "warm-up", WARM_UP, lambda app: warm(app, "warm-up", WARM_UP), "crawler",
        "Read ranked listings into the cache, without storing them", is_off=True, is_on_the_clock=True,
        task=CRAWL_SEEDS,
    ),
    Job(
        "crawl-seed-communities", SEEDS, lambda app: warm(app, "crawl-seed-communities", SEEDS), "crawler",
        "Read ranked listings into the cache, more often", is_off=True, is_on_the_clock=True, task=CRAWL_SEEDS,
    ),
    Job(
        "clear-expired", 6 * HOUR, clear_expired, "cleanup", "Delete expired cache entries",
        task="tasks.maintenance.cleanup_expired_posts_hot",
    ),
)  # fmt: skip
NAMES = [job.name for job in JOBS]


class JobView(View, frozen=True):
    """A job and its state in the database. A job that is switched off has no period and no next run."""

    name: str
    why: str
    period_seconds: float | None
    next_run_at: datetime | None
    last_started_at: datetime | None
    last_finished_at: datetime | None
    last_error: str | None
    run_count: int


def job_views(app: App) -> list[JobView]:
    """Returns every job of this program."""
    states = {state.name: state for state in app.store.jobs.all()}
    views = []
    for job in JOBS:
        period, state = job.period(app.settings), states.get(job.name, JobState(job.name))
        if period is None:
            state = state.replace(next_run_at=None)
        views.append(JobView(why=job.why, period_seconds=period.total_seconds() if period else None, **as_dict(state)))
    return views


def tell_others(app: App) -> None:
    """Check the spending caps, run the watches and deliver events once, as an engine does regularly, unless the
    settings switch that off."""
    spending = [job for job in JOBS if job.name == MONITOR_SPENDING]
    for job in (*spending, *(job for job in JOBS if job.queue == "events")):
        if job.period(app.settings) is not None and not app.stop.is_set():
            job.run(app)


def run_if_due(app: App, job: Job, *, is_requested: bool = False) -> bool:
    """Run the job if it is due, or `is_requested`, and no other process runs it; returns whether it ran. A failure is
    recorded, and the job runs again at its next time."""
    period = job.period(app.settings) or (job.every if is_requested else None)
    if period is None or app.stop.is_set():
        return False
    started_at = app.clock.now()
    if is_requested:
        app.store.jobs.announce(job.name, started_at)
        app.store.jobs.wake(job.name, started_at)
    lease = app.store.jobs.claim(job.name, app.presence.owner_id, started_at, period)
    if lease is None:
        return False
    error = None
    try:
        job.run(app)
    except Exception as failure:  # noqa: BLE001 — a failed job must run again, and the others must continue
        error = logs.redact(f"{type(failure).__name__}: {failure}")
        if not getattr(failure, "is_logged", False):
            log.error("job failed", job=job.name, error=error)
    now = app.clock.now()
    try:
        app.store.jobs.done(lease, started_at, job.next_run(started_at, now, period), now, error)
    except StoreError:
        # Released once the database is back; otherwise no live process could ever run the job again.
        app.presence.release_later(lease)
        raise
    return True
