"""Composition root: builds the store, HTTP client, credentials and collector from the settings, and closes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from threading import Event, RLock
from typing import TYPE_CHECKING

from catchment import logs
from catchment.clock import Clock, clock_from
from catchment.lazy import lazy_imports, part
from catchment.model import Budget, Prices
from catchment.platforms import Platforms, installed
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES, Wish, kind_intervals
from catchment.policy.spending import Caps, affordable_items, day_of
from catchment.policy.tiers import Tier, Tiers
from catchment.settings import Settings, read_settings
from catchment.store import Presence, Store, open_store
from catchment.store.connections import OVERFLOW, SERVER_POOL, TRUSTED_SECONDS

# A command pays only for the parts that it uses: `sources add` needs neither the HTTP client nor the collector.
with lazy_imports():
    from catchment import cache as item_cache
    from catchment import redis as redis_link
    from catchment.collect import audit, budget_plan, outages, source_client, tasks, visit
    from catchment.collect import cache_warmup as warmup
    from catchment.collect import rechecks as recheck
    from catchment.collect import scheduler as scheduling
    from catchment.credentials import cipher as encryption
    from catchment.credentials import manager, secret_store
    from catchment.credentials import pool as credential_pool
    from catchment.events import delivery, notifications, webhooks
    from catchment.fetch import budgets as request_budgets
    from catchment.fetch import client, paid_calls
    from catchment.fetch import settings as fetching
    from catchment.health import metrics
    from catchment.health import monitors as monitoring
    from catchment.health import spending as spending_report
    from catchment.policy import outages as outage_policy
    from catchment.policy import visit as visit_policy
    from catchment.sources import add as sources_add
    from catchment.sources import kinds
    from catchment.text import clean

if TYPE_CHECKING:
    from catchment.cache import Cache
    from catchment.collect.audit import FloorAudit
    from catchment.collect.rechecks import Rechecks
    from catchment.collect.scheduler import Scheduler
    from catchment.collect.source_client import CollectContext, Send
    from catchment.collect.tasks import TaskRunner
    from catchment.collect.visit import Visitor
    from catchment.credentials.cipher import Cipher
    from catchment.credentials.manager import CredentialManager
    from catchment.credentials.pool import CredentialPool
    from catchment.credentials.secret_store import SecretStore
    from catchment.events.delivery import Deliverer, Listener
    from catchment.events.notifications import Notification
    from catchment.events.webhooks import Webhook
    from catchment.fetch.budgets import Asked, Budgets, Level
    from catchment.fetch.client import Fetch
    from catchment.fetch.paid_calls import PaidCalls
    from catchment.fetch.settings import FetchSettings, PlatformSettings
    from catchment.health.metrics import MetricsRecorder
    from catchment.health.monitors import Monitors
    from catchment.health.spending import SpendingView
    from catchment.policy.budget_plan import PlatformPlan
    from catchment.policy.visit import VisitRules
    from catchment.redis import RedisLink
    from catchment.sources.kinds import NameResolver
    from catchment.store.sources.stats import RequestsUsed

X_USERS = "twitter_feed"
"""The kind that the settings SCRAPER_… are about."""
_POST_SECONDS = 10.0
"""How long a webhook's receiver may take: it should record the event and process it later."""


class App:
    """Everything that a command or request needs. Parts are built on first use: `sources list` opens no connection."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        platforms: Platforms,
        work: str,
        *,
        fetch: Send | None = None,
    ) -> None:
        """`fetch`: sends requests to platforms instead of the HTTP client."""
        self.settings, self.store, self.clock, self.platforms, self._work = settings, store, clock, platforms, work
        self._send = fetch
        self.stop = Event()
        """Start no new work."""
        self.cut = Event()
        """Abort work in progress, too."""
        self.building = RLock()

    @part
    def cipher(self) -> Cipher:
        return encryption.cipher_of(self.settings, self.store.encrypted)

    @part
    def secrets(self) -> SecretStore:
        return secret_store.SecretStore(
            self.store.credentials,
            self.cipher,
            secret_store.lent(secret_store.declared(self.platforms.services.values()), self.settings.declared),
        )

    @part
    def credential_manager(self) -> CredentialManager:
        return manager.CredentialManager(
            self.store.credentials, self.secrets, manager.rules_from(self.settings), self.clock
        )

    @part
    def pool(self) -> CredentialPool:
        return credential_pool.CredentialPool(self.credential_manager, self.secrets, self.clock)

    @part
    def fetch(self) -> Fetch:
        settings = fetch_settings(self.settings)
        calls = paid_calls.PaidCalls(self.store.spending, lambda: self.presence.owner_id, settings, self.clock)
        return self._client(settings, paid_calls=calls)

    @part
    def post(self) -> Fetch:
        """The client for webhooks: one attempt per call, since events can wait longer than sources; no redirects."""
        return self._client(post_settings(self.settings))

    def _client(self, settings: FetchSettings, paid_calls: PaidCalls | None = None) -> Fetch:
        return client.Fetch(
            settings,
            self.clock,
            stop=self.stop,
            cut=self.cut,
            budgets=self.windows,
            credentials=self.pool,
            paid_calls=paid_calls,
        )

    def webhook(self, webhook_id: int) -> Webhook:
        return webhooks.Webhook(self.store.webhooks.sealed(webhook_id), self.cipher, self.post, self.clock.now)

    def notification(self, notification_id: int) -> Notification:
        return notifications.Notification(
            self.store.webhooks.sealed(notification_id),
            self.cipher,
            self.store.alerts.message,
            allows_private=self.settings.is_private_allowed,
        )

    def _listener(self, webhook_id: int) -> Listener:
        is_notification = self.store.webhooks.sealed(webhook_id).is_notification
        return self.notification(webhook_id) if is_notification else self.webhook(webhook_id)

    @part
    def deliverer(self) -> Deliverer:
        return delivery.Deliverer(
            self.store,
            self.presence,
            self.clock,
            self.stop,
            webhook=self._listener,
            hooks=delivery.installed_hooks(),
            patience=timedelta(days=self.settings.events_days),
        )

    @part
    def presence(self) -> Presence:
        return self.store.enter(self._work, self.clock.now())

    @part
    def collect_context(self) -> CollectContext:
        fetch = self._send or self.fetch
        return source_client.CollectContext(self.store, self.platforms, fetch, self.clock, self.cache, self.stop)

    def visitor(self) -> Visitor:
        """A visitor for one run: settings changed in the database apply from here on."""
        return visit.Visitor(self.collect_context, self.rules())

    @part
    def cache(self) -> Cache:
        return item_cache.open_cache(self.settings, self.store, self.clock, self.redis)

    @part
    def redis(self) -> RedisLink | None:
        """None if the settings name no Redis."""
        return redis_link.open_link(self.settings, self.store, self.clock)

    @part
    def broker(self) -> RedisLink | None:
        """The message broker of the distributed engine; None: the jobs run inside `serve`."""
        if self.settings.broker_url is None:
            return None
        return redis_link.RedisLink(self.settings.broker_url, "", away="message broker unavailable; workers are idle")

    @part
    def names(self) -> NameResolver:
        return kinds.NameResolver(self.store, lambda: self.platforms)

    @part
    def tiers(self) -> Tiers:
        return tiers_of(self.settings)

    @part
    def windows(self) -> Budgets:
        """The windows of all budgets, shared by the whole deployment."""
        return request_budgets.budgets_in(self.store.budgets, self.redis, self.clock)

    def budgets_by_credential(self) -> dict[str, list[Asked]]:
        """The budgets of each platform or service that declares one, with the credentials that are usable now."""
        usable, settings = self.credential_manager.usable(), fetch_settings(self.settings)
        budgets = {
            name: budget
            for name, service in self.platforms.services.items()
            if (budget := settings.budget(service)) is not None
        }
        return {name: _counted_by(budget, usable.get(name, [])) for name, budget in budgets.items()}

    def budgets(self) -> dict[str, Budget]:
        """The whole deployment's budget for each platform that declares one, over all of its credentials."""
        return {
            name: first.replace(limit=sum(budget.limit for budget, _ in asked))
            for name, asked in self.budgets_by_credential().items()
            for first, _ in asked[:1]
        }

    def levels(self, platforms: Collection[str]) -> dict[str, list[Level]]:
        """How full the budgets of these platforms are now."""
        asked = {name: budgets for name, budgets in self.budgets_by_credential().items() if name in platforms}
        levels = iter(
            self.windows.levels([budget for budgets in asked.values() for budget in budgets], self.clock.now())
        )
        return {name: list(islice(levels, len(budgets))) for name, budgets in asked.items()}

    def plans(self, taken: RequestsUsed | None = None) -> list[PlatformPlan]:
        """Whether the budgets suffice for the sources. `taken`: requests used by past visits, where that is known."""
        intervals, now = self.intervals(), self.clock.now()
        return budget_plan.plans(
            self.store,
            self.platforms,
            lambda kind: intervals.get(kind, UNKNOWN_KIND_MINUTES),
            # Which service a source is read through is decided by each visit.
            {name: budget for name, budget in self.budgets().items() if name in self.platforms.without_services},
            taken or budget_plan.taken_lately(self.store, now),
        )

    @property
    def metrics_recorder(self) -> MetricsRecorder:
        return metrics.MetricsRecorder(self.store.metrics, self.cache.counts, self.store.tier_stats.counts)

    def spending(self, most_sources: int = 20) -> SpendingView:
        """What paid services cost today and this month."""
        return spending_report.spending_report(
            self.store, self.keyed_services(), spending_caps(self.settings), self.clock.now(), most_sources
        )

    def keyed_services(self) -> set[str]:
        """Paid services that have a credential."""
        paid = {name for name, service in self.platforms.services.items() if hasattr(service, "PRICES")}
        return paid & self.credential_manager.platforms()

    def monitor_spending(self) -> None:
        """Updates the alerts about spending caps, and books reservations of dead processes."""
        now = self.clock.now()
        self.store.spending.recover(now)
        self.monitors().spending(spending_caps(self.settings))

    def monitors(self) -> Monitors:
        return monitoring.Monitors(self.store, self.settings, self.clock.now())

    @property
    def watching_period(self) -> timedelta:
        """How often the collecting monitor runs."""
        minutes = self.settings.jobs.get(outages.JOB)
        return outages.PERIOD if minutes is None else timedelta(minutes=minutes)

    def collecting_monitor(self) -> outages.CollectingMonitor:
        """The monitor that checks whether collecting succeeds, with the current rules."""
        intervals, settings = self.intervals(), self.settings
        rules = outage_policy.OutageRules(
            timedelta(minutes=settings.monitor_stale_minutes), settings.failures_before_probation
        )
        return outages.CollectingMonitor(
            self.store,
            self.platforms,
            lambda kind: intervals.get(kind, UNKNOWN_KIND_MINUTES),
            rules,
            self.watching_period,
            self.clock.now(),
        )

    def intervals(self) -> dict[str, int]:
        """Current minutes between visits, by kind."""
        return kind_intervals(self.platforms.kinds(), self.store.settings.intervals(), self.settings.intervals)

    def follow_configured(self) -> None:
        """Adds the users of SCRAPER_USERNAMES as sources, unless they are or were sources already."""
        for name in self.settings.scraper_usernames:
            target = self.platforms.needed(X_USERS).understand(name, X_USERS)
            if self.store.sources.of_target(X_USERS, target.address) is not None:
                continue
            known, now = (self.store, self.secrets, self.platforms), self.clock.now()
            if self.settings.is_scraper_enabled:
                sources_add.follow(*known, X_USERS, target.address, now)
            else:
                # Not collected at once either: nobody asked for it, and it costs money.
                request = sources_add.source_request(*known, X_USERS, target.address, now)
                self.store.sources.follow_many([request], now)

    def unscheduled_kinds(self) -> frozenset[str]:
        """Kinds that are collected on request only."""
        return frozenset() if self.settings.is_scraper_enabled else frozenset((X_USERS,))

    def rules(self) -> VisitRules:
        return visit_policy.VisitRules(
            self.intervals(),
            self.tiers,
            keyed=self.credential_manager.platforms(),
            affordable=self._affordable(),
            failures_before_probation=self.settings.failures_before_probation,
            text_limit=self.settings.text_limit,
            keeps_raw=self.settings.raw_answers_days > 0,
            wish=wish_of(self.settings),
            first_limits={X_USERS: self.settings.scraper_limit},
            unscheduled=self.unscheduled_kinds(),
        )

    def _affordable(self) -> dict[str, int]:
        """How many items one call to a service with spending caps may ask for now."""
        services = self.platforms.services
        caps = {name: cap for name, cap in spending_caps(self.settings).items() if name in services}
        if not caps:
            return {}
        settings = fetch_settings(self.settings)
        totals = self.store.spending.totals(sorted(caps), day_of(self.clock.now()))
        prices = {name: settings.prices(services[name]) or Prices() for name in caps}
        items = {name: affordable_items(totals[name], caps[name], prices[name]) for name in caps}
        return {name: most for name, most in items.items() if most is not None}

    def scheduler(self, item_limit: int | None = None) -> Scheduler:
        """A scheduler for one run: settings changed in the database apply from here on. `item_limit`: how many items
        each source is asked for."""
        limit = scheduling.KindLimit(self.settings.crawler_batch_size, self.settings.crawler_concurrency)
        limits = {kind.name: limit for kind in self.platforms.kinds() if kind.newest is not None}
        slot = self.collect_context.reading_slot
        return scheduling.Scheduler(
            visit.Visitor(self.collect_context, self.rules().replace(limit=item_limit)),
            self.presence,
            self.stop,
            self.settings.concurrency,
            limits,
            lambda: slot.readers,
        )

    def task_runner(self) -> TaskRunner:
        return tasks.TaskRunner(
            self.store,
            self.presence,
            self.clock,
            self.stop,
            self.scheduler,
            lambda kind, address: sources_add.source_request(
                self.store, self.secrets, self.platforms, kind, address, self.clock.now()
            ),
            patience=timedelta(minutes=self.settings.task_minutes),
            tells_ready=self.settings.is_ready_told,
        )

    def cache_warmup(self) -> Scheduler:
        """A scheduler for cache-only crawls."""
        return scheduling.Scheduler(
            warmup.CacheWarmup(self.visitor()), self.presence, self.stop, self.settings.crawler_concurrency
        )

    def rechecks(self) -> Rechecks:
        """Rechecks with the current rules."""
        return recheck.Rechecks(self.collect_context, self.rules(), self.presence, self.stop)

    def floor_audit(self) -> FloorAudit:
        """The audit of the floors of threads, with the current rules."""
        return audit.FloorAudit(self.collect_context, self.rules(), self.presence.owner_id)

    def close(self) -> None:
        """Release claims, then close connections, in order. If one step fails, the others still run."""
        built = self.__dict__
        with ExitStack() as stack:
            stack.callback(self.store.close)
            for name in ("broker", "redis", "cache", "pool", "presence", "fetch", "post", "deliverer"):
                if name == "presence" and name in built:
                    stack.callback(self.presence.leave, self.clock.now())
                elif built.get(name) is not None:
                    stack.callback(built[name].close)

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _counted_by(budget: Budget, credentials: Sequence[str]) -> list[Asked]:
    """What a platform's budget counts: each of these credentials, or all requests. Anonymous ones may get less."""
    if not credentials:
        return [(budget.of(None), None)]
    return [(budget, name) for name in credentials] if budget.is_per_credential else [(budget, None)]


def wish_of(settings: Settings) -> Wish:
    """What is read besides a community's newest posts, unless its own settings or its tier say otherwise."""
    return Wish(settings.crawler_sort, settings.crawler_time_filter, settings.crawler_post_limit)


def tiers_of(settings: Settings) -> Tiers:
    rows = {"tier1": settings.tier1, "tier2": settings.tier2, "tier3": settings.tier3}
    return Tiers(
        tuple(Tier(name, *row) for name, row in rows.items()), settings.tier_crawls, settings.tier_least_crawls
    )


def fetch_settings(settings: Settings) -> FetchSettings:
    return fetching.FetchSettings(
        user_agent=settings.user_agent,
        is_user_agent_given="CATCHMENT_USER_AGENT" in settings.origins,
        timeout_seconds=settings.timeout_seconds,
        max_bytes=settings.max_bytes,
        max_wire_bytes=settings.max_bytes,
        retry_waits=settings.retry_waits,
        allow_private_networks=settings.is_private_allowed,
        base_urls=dict(settings.base_urls),
        proxy=settings.proxy,
        per_host_concurrency=settings.host_concurrency,
        per_host_per_second=settings.host_requests_per_second,
        platforms=platform_settings(settings),
    )


def platform_settings(settings: Settings) -> dict[str, PlatformSettings]:
    """The operator's settings for individual platforms, by platform name."""
    limits, windows, at_once = settings.rate_limits, settings.rate_windows, settings.platform_concurrency
    timeouts, names, prices = settings.platform_timeouts, settings.user_agents, settings.prices
    caps = spending_caps(settings)
    return {
        name: fetching.PlatformSettings(
            limits.get(name),
            windows.get(name),
            at_once.get(name),
            timeouts.get(name),
            names.get(name),
            prices.get(name, {}),
            caps.get(name, Caps()),
        )
        for name in sorted({*limits, *windows, *at_once, *timeouts, *names, *prices, *caps})
    }


def spending_caps(settings: Settings) -> dict[str, Caps]:
    """The spending caps of services that have one, by name."""
    daily, monthly = settings.daily_caps, settings.monthly_caps
    return {name: Caps(daily.get(name), monthly.get(name)) for name in sorted({*daily, *monthly})}


def post_settings(settings: Settings) -> FetchSettings:
    return fetch_settings(settings).replace(
        timeout_seconds=min(settings.timeout_seconds, _POST_SECONDS),
        retry_waits=(),
        max_redirects=0,
        base_urls={},
        # Each webhook gets its events one after the other, as fast as it accepts them.
        per_host_per_second=0.0,
        per_host_concurrency=delivery.MOST_LISTENERS,
    )


def open_app(
    settings: Settings,
    work: str,
    *,
    may_migrate: bool = False,
    creates: bool = True,
    platforms: Platforms | None = None,
    clock: Clock | None = None,
    fetch: Send | None = None,
    connections: int | None = None,
) -> App:
    """Open the database and build the app. `creates`: set up the database if there is none. `connections`: at most this
    many, plus one for the process lock. Nothing is claimed or requested yet."""
    clock = clock or clock_from(settings.clock, settings.home)
    # One connection for each worker, and a few for requests in the meantime.
    pool_size = connections or settings.concurrency + SERVER_POOL
    store = open_store(
        settings.database_url,
        settings.home,
        clock.now(),
        lambda *values: clean.fingerprint(*values),
        may_migrate=may_migrate,
        creates=creates,
        pool_size=pool_size,
        overflow=OVERFLOW if connections is None else 0,
        trusted_seconds=0.0 if connections is None else TRUSTED_SECONDS,
        tells_ready=settings.is_ready_told,
    )
    return App(settings, store, clock, platforms or installed(), work, fetch=fetch)


def settings_from(environ: Mapping[str, str], folder: Path, jobs: list[str]) -> Settings:
    """Read the settings once, at start, and set up logging by them."""
    platforms = installed()
    kinds = [*kind_intervals(platforms.kinds())]
    declarations = secret_store.declared(platforms.services.values())
    settings = read_settings(
        environ,
        folder,
        kinds=kinds,
        platforms=sorted({*platforms.by_name, *platforms.services}),
        jobs=jobs,
        declared=secret_store.names(declarations.values()),
    )
    logs.configure(settings.log_format, settings.log_level)
    for secret in (settings.api_key, *settings.declared.values()):
        if secret:
            logs.know_secret(secret)
    return replace(settings, warnings=(*settings.warnings, *secret_store.incomplete(declarations, settings.declared)))
