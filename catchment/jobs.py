"""What runs when: a table. The engines read it, and know nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from catchment import logs
from catchment.clock import EPOCH, moment
from catchment.collect import tiering
from catchment.collect.planning import alarms_of, keep_taken
from catchment.collect.rounds import emptiness
from catchment.collect.warming import warmable
from catchment.errors import StoreError
from catchment.health.monitors import HITS_LOOKED_AT
from catchment.health.silence import Late, Rhythm, alarms_for, canaries_among
from catchment.model import Record
from catchment.pace import UNKNOWN_KIND_MINUTES
from catchment.settings import Settings
from catchment.shop import Shop
from catchment.store.metrics import Span
from catchment.tell import watching

log = logs.logger(__name__)

WARM_UP, SEEDS = timedelta(hours=2), timedelta(minutes=30)


class Job(Record, frozen=True):
    """A piece of work that comes back."""

    name: str
    every: timedelta | None
    """None: with every tick of the collector."""
    run: Callable[[Shop], None]
    queue: str
    why: str
    is_off: bool = False
    """Runs only where a setting gives it a period."""
    is_on_the_clock: bool = False
    """At whole multiples of its period: an hourly one at full hours, a daily one at 00:00 UTC."""

    def period(self, settings: Settings) -> timedelta | None:
        """How often, by the settings; None: switched off."""
        if self.name in settings.jobs:
            minutes = settings.jobs[self.name]
            return None if minutes is None else timedelta(minutes=minutes)
        return None if self.is_off else self.every or timedelta(seconds=settings.tick_seconds)

    def next_run(self, started_at: datetime, now: datetime, period: timedelta) -> datetime:
        """When it runs next, after a run that began then and is over now."""
        if self.is_on_the_clock:
            return now - (now - EPOCH) % period + period
        return max(started_at + period, now)


def collect_due(shop: Shop) -> None:
    shop.rounds().due("collect-due", "schedule")


def index_items(shop: Shop) -> None:
    index, count = shop.store.index, 0
    while not shop.stop.is_set() and (indexed := index.advance()):
        count += indexed
    if count:
        index.settle()
        log.debug("indexed", items=count)


def look_again(shop: Shop) -> None:
    shop.looking().run("look-again", "schedule")


def crawl_low_quality(shop: Shop) -> None:
    settings, since = shop.settings, shop.clock.now() - timedelta(hours=shop.settings.low_quality_hours)
    kinds = [kind.name for kind in shop.platforms.kinds() if kind.is_tiered]
    ids = shop.store.tiering.left_alone(kinds, settings.low_quality_below, since, settings.low_quality_sources)
    results = shop.rounds().these(ids, "crawl-low-quality", "schedule") if ids else []
    if results:
        log.info("visited communities that were left alone", visited=len(results), **emptiness(results))


def assign_tiers(shop: Shop) -> None:
    changed = tiering.assign_tiers(shop.store, shop.tiers, shop.stop.is_set)
    if changed:
        log.info("communities are in other tiers now", communities=len(changed))


def clear_old(shop: Shop) -> None:
    gone = shop.store.clearing.clear(
        shop.clock.now(),
        raw_days=shop.settings.raw_answers_days,
        run_days=shop.settings.runs_days,
        attempt_days=shop.settings.attempts_days,
        event_days=shop.settings.events_days,
        metrics_days=shop.settings.metrics_days,
    )
    gone["items"] = shop.store.retention.clear(shop.settings.retention_days, shop.clock.now(), shop.stop.is_set)
    if any(gone.values()):
        log.info("cleared what is past its time", **gone)


def clear_expired(shop: Shop) -> None:
    if gone := shop.hot.clear_expired():
        log.info("cleared what is no longer hot", entries=gone)


def warm_up(shop: Shop) -> None:
    _warm(shop, "warm-up", WARM_UP)


def crawl_seed_communities(shop: Shop) -> None:
    _warm(shop, "crawl-seed-communities", SEEDS)


def _warm(shop: Shop, job: str, every: timedelta) -> None:
    """Cache-only, what nobody has read within half the job's period."""
    minutes = shop.settings.jobs.get(job)
    period = every if minutes is None else timedelta(minutes=minutes)
    cold = shop.store.warming.cold(warmable(shop.platforms), shop.clock.now() - period / 2)
    results = shop.warming().these(cold, job, "schedule")
    if results:
        outcomes = Counter(str(one.outcome) for one in results)
        log.info("warmed", communities=len(results), posts=sum(one.counts.duplicate for one in results), **outcomes)


def notice_silence(shop: Shop) -> None:
    alerts = shop.store.alerts
    now = shop.clock.now()
    late = [Late(one[0], one[1], one[2], moment(one[3])) for one in alerts.late_sources(now)]
    followed = [Rhythm(*one) for one in alerts.with_rhythm()]
    # Where sources bring their own hosts, one of them says nothing about the others.
    of_one_place = {platform.NAME for platform in shop.platforms if platform.HOSTS}
    canaries = canaries_among(followed, of_one_place, shop.settings.canaries)
    opened, closed = alerts.keep_open(" silent", alarms_for(late, followed, canaries), now)
    if opened or closed:
        log.warning("silence", opened=opened, closed=closed)


def monitor_api_calls(shop: Shop) -> None:
    shop.monitors().api_calls(shop.budgets())


def monitor_cache_health(shop: Shop) -> None:
    counts = shop.hot.counts(shop.clock.now() - HITS_LOOKED_AT)
    shop.monitors().cache_health(counts.hits, counts.misses)
    shop.monitors().redis(shop.redis.check() if shop.redis else None)


def monitor_crawler_health(shop: Shop) -> None:
    shop.monitors().crawler_health(shop.intervals(), UNKNOWN_KIND_MINUTES)


def monitor_success(shop: Shop) -> None:
    shop.monitors().success()


def monitor_warm_up(shop: Shop) -> None:
    shop.monitors().warm_up()


def plan_budgets(shop: Shop) -> None:
    taken = keep_taken(shop.store, shop.clock.now())
    shop.monitors().budgets(alarms_of(shop.plans(taken)))


def measure_hours(shop: Shop) -> None:
    shop.measuring.measure(Span.HOUR, shop.clock.now(), shop.stop.is_set)


def daily_metrics(shop: Shop) -> None:
    shop.measuring.measure(Span.DAY, shop.clock.now(), shop.stop.is_set)


def recover_leases(shop: Shop) -> None:
    now = shop.clock.now()
    freed, ahead = shop.presence.bury(now), shop.store.sources.forget_the_future(now)
    if freed or ahead:
        log.warning("recovered", dead_processes=freed, sources_visited_in_the_future=ahead)


def run_watches(shop: Shop) -> None:
    watching.run_watches(shop.store.watches, shop.clock.now, shop.stop)


def deliver_events(shop: Shop) -> None:
    shop.deliverer.round()


def watch_credentials(shop: Shop) -> None:
    shop.keeper.settle_all()


JOBS = (
    Job("collect-due", None, collect_due, "crawler", "the tick; silent when nothing is due"),
    Job("index-items", None, index_items, "maintenance", "what came is found by words and facets, soon after"),
    Job("run-watches", None, run_watches, "events", "what came in is held against the rules of those who watch"),
    Job("deliver-events", None, deliver_events, "events", "what happened reaches those who listen"),
    Job(
        "crawl-low-quality",
        timedelta(hours=4),
        crawl_low_quality,
        "crawler",
        "quiet communities that nobody has visited for long",
    ),
    Job("assign-tiers", timedelta(days=1), assign_tiers, "maintenance", "communities where their visits put them"),
    Job("look-again", timedelta(minutes=5), look_again, "crawler", "edits and removals after an item left its listing"),
    Job(
        "recover-leases",
        timedelta(minutes=15),
        recover_leases,
        "maintenance",
        "what the dead and wrong clocks left",
    ),
    Job("notice-silence", timedelta(minutes=5), notice_silence, "monitoring", "stale but green is a failure"),
    Job("monitor-api-calls", timedelta(minutes=1), monitor_api_calls, "monitoring", "a budget that is nearly used up"),
    Job("monitor-cache-health", timedelta(minutes=5), monitor_cache_health, "monitoring", "a hot store that is cold"),
    Job("monitor-success", timedelta(minutes=5), monitor_success, "monitoring", "a platform where too much fails"),
    Job(
        "monitor-crawler-health",
        timedelta(minutes=5),
        monitor_crawler_health,
        "monitoring",
        "nothing is visited although something is due",
    ),
    Job(
        "monitor-warmup-metrics",
        timedelta(minutes=15),
        monitor_warm_up,
        "monitoring",
        "first visits that were begun and do not go on",
    ),
    Job(
        "watch-credentials",
        timedelta(minutes=1),
        watch_credentials,
        "monitoring",
        "who has rested is used again; who ends soon, or is missing, is told of",
    ),
    Job("plan-budgets", timedelta(hours=1), plan_budgets, "monitoring", "budgets that do not suffice for all"),
    Job(
        "measure-hours",
        timedelta(hours=1),
        measure_hours,
        "monitoring",
        "what each full hour came to",
        is_on_the_clock=True,
    ),
    Job(
        "daily-metrics",
        timedelta(days=1),
        daily_metrics,
        "monitoring",
        "what each full day came to",
        is_on_the_clock=True,
    ),
    Job(
        "clear-old",
        timedelta(hours=1),
        clear_old,
        "cleanup",
        "what we keep about running, and of some kinds, is bounded",
    ),
    Job("warm-up", WARM_UP, warm_up, "crawler", "what ranked listings show, kept hot and not stored", is_off=True),
    Job(
        "crawl-seed-communities",
        SEEDS,
        crawl_seed_communities,
        "crawler",
        "the same, more often",
        is_off=True,
    ),
    Job("clear-expired", timedelta(hours=6), clear_expired, "cleanup", "what is hot is hot for its time only"),
)
NAMES = [job.name for job in JOBS]


def tell_others(shop: Shop) -> None:
    """What an engine does with every tick for those who watch and listen, once, unless the settings switch it off."""
    for job in JOBS:
        if job.queue == "events" and job.period(shop.settings) is not None and not shop.stop.is_set():
            job.run(shop)


def run_if_due(shop: Shop, job: Job) -> bool:
    """Run the job if it is due and nobody else does; gives whether it ran. Its failure is written down, and it comes
    back at its next time."""
    period = job.period(shop.settings)
    if period is None or shop.stop.is_set():
        return False
    started_at = shop.clock.now()
    lease = shop.store.jobs.claim(job.name, shop.presence.owner_id, started_at, period)
    if lease is None:
        return False
    error = None
    try:
        job.run(shop)
    except Exception as failure:  # noqa: BLE001 — a job that fails must come back, and the others must go on
        error = logs.redact(f"{type(failure).__name__}: {failure}")
        log.error("job failed", job=job.name, error=error)
    now = shop.clock.now()
    try:
        shop.store.jobs.done(lease, started_at, job.next_run(started_at, now, period), now, error)
    except StoreError:
        # Freed once the database is back; otherwise nobody alive could ever run it again.
        shop.presence.owe(lease)
        raise
    return True
