"""Composition root: builds the store, HTTP client, credentials and collector from the settings, and closes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from threading import Event, RLock

from catchment import logs
from catchment.cache import Cache, open_cache
from catchment.clock import Clock, clock_from
from catchment.collect import outages
from catchment.collect.budget_plan import plans, taken_lately
from catchment.collect.cache_warmup import CacheWarmup
from catchment.collect.queue import KindLimit
from catchment.collect.rechecks import Rechecks
from catchment.collect.scheduler import Scheduler
from catchment.collect.source_client import CollectContext, Send
from catchment.collect.visit import Visitor
from catchment.credentials.cipher import Cipher, cipher_of
from catchment.credentials.manager import CredentialManager, rules_from
from catchment.credentials.pool import CredentialPool
from catchment.credentials.secrets import (
    SecretStore,
    declared,
    incomplete,
    lent,
    names,
)
from catchment.events import delivery
from catchment.events.delivery import MOST_LISTENERS, Deliverer
from catchment.events.webhooks import Webhook
from catchment.fetch.budgets import Asked, Budgets, Level, budgets_in
from catchment.fetch.client import Fetch
from catchment.fetch.settings import FetchSettings, PlatformSettings
from catchment.health.metrics import Measuring
from catchment.health.monitors import Monitors
from catchment.lazy import part
from catchment.model import Budget
from catchment.platforms import Platforms, installed
from catchment.policy.budget_plan import PlatformPlan
from catchment.policy.outages import OutageRules
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES, Wish, kind_intervals
from catchment.policy.tiers import Tier, Tiers
from catchment.policy.visit import VisitRules
from catchment.redis import RedisLink, open_link
from catchment.settings import Settings, read_settings
from catchment.sources.kinds import Names
from catchment.store import Presence, Store, open_store
from catchment.store.sources.stats import Taken
from catchment.text.clean import fingerprint

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
        return cipher_of(self.settings, self.store.encrypted)

    @part
    def secrets(self) -> SecretStore:
        return SecretStore(self.store.credentials, self.cipher, lent(declared(self.platforms), self.settings.declared))

    @part
    def credential_manager(self) -> CredentialManager:
        return CredentialManager(self.store.credentials, self.secrets, rules_from(self.settings), self.clock)

    @part
    def pool(self) -> CredentialPool:
        return CredentialPool(self.credential_manager, self.secrets, self.clock)

    @part
    def fetch(self) -> Fetch:
        return Fetch(
            fetch_settings(self.settings),
            self.clock,
            stop=self.stop,
            cut=self.cut,
            budgets=self.windows,
            credentials=self.pool,
        )

    @part
    def post(self) -> Fetch:
        """The client for webhooks: one attempt per call, since events can wait longer than sources; no redirects."""
        return Fetch(
            post_settings(self.settings),
            self.clock,
            stop=self.stop,
            cut=self.cut,
            budgets=self.windows,
            credentials=self.pool,
        )

    def webhook(self, webhook_id: int) -> Webhook:
        return Webhook(self.store.webhooks.sealed(webhook_id), self.cipher, self.post, self.clock.now)

    @part
    def deliverer(self) -> Deliverer:
        return Deliverer(
            self.store,
            self.presence,
            self.clock,
            self.stop,
            webhook=self.webhook,
            hooks=delivery.installed_hooks(),
            patience=timedelta(days=self.settings.events_days),
        )

    @part
    def presence(self) -> Presence:
        return self.store.enter(self._work, self.clock.now())

    @part
    def collect_context(self) -> CollectContext:
        fetch = self._send or self.fetch
        return CollectContext(self.store, self.platforms, fetch, self.clock, self.cache, self.stop)

    def visitor(self) -> Visitor:
        """A visitor for one run: settings changed in the database apply from here on."""
        return Visitor(self.collect_context, self.rules())

    @part
    def cache(self) -> Cache:
        return open_cache(self.settings, self.store, self.clock, self.redis)

    @part
    def redis(self) -> RedisLink | None:
        """None if the settings name no Redis."""
        return open_link(self.settings, self.store, self.clock)

    @part
    def names(self) -> Names:
        return Names(self.store, lambda: self.platforms)

    @part
    def tiers(self) -> Tiers:
        return tiers_of(self.settings)

    @part
    def windows(self) -> Budgets:
        """The windows of all budgets, shared by the whole deployment."""
        return budgets_in(self.store.budgets, self.redis)

    def budgets_by_credential(self) -> dict[str, list[Asked]]:
        """The budgets of each platform that declares one, with the credentials that are usable now."""
        usable, settings = self.credential_manager.usable(), fetch_settings(self.settings)
        budgets = {
            platform.NAME: budget for platform in self.platforms if (budget := settings.budget(platform)) is not None
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
        found = iter(
            self.windows.levels([budget for budgets in asked.values() for budget in budgets], self.clock.now())
        )
        return {name: list(islice(found, len(budgets))) for name, budgets in asked.items()}

    def plans(self, taken: Taken | None = None) -> list[PlatformPlan]:
        """Whether the budgets suffice for the sources. `taken`: requests used by past visits, where that is known."""
        intervals, now = self.intervals(), self.clock.now()
        return plans(
            self.store,
            self.platforms,
            lambda kind: intervals.get(kind, UNKNOWN_KIND_MINUTES),
            self.budgets(),
            taken or taken_lately(self.store, now),
        )

    @property
    def measuring(self) -> Measuring:
        return Measuring(self.store.metrics, self.cache.counts, self.store.tier_stats.counts)

    def monitors(self) -> Monitors:
        return Monitors(self.store, self.settings, self.clock.now())

    @property
    def watching_period(self) -> timedelta:
        """How often the collecting monitor runs."""
        minutes = self.settings.jobs.get(outages.JOB)
        return outages.PERIOD if minutes is None else timedelta(minutes=minutes)

    def collecting_monitor(self) -> outages.CollectingMonitor:
        """The monitor that checks whether collecting succeeds, with the current rules."""
        intervals, settings = self.intervals(), self.settings
        rules = OutageRules(timedelta(minutes=settings.monitor_stale_minutes), settings.failures_before_probation)
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

    def rules(self) -> VisitRules:
        return VisitRules(
            self.intervals(),
            self.tiers,
            keyed=self.credential_manager.platforms(),
            failures_before_probation=self.settings.failures_before_probation,
            text_limit=self.settings.text_limit,
            keeps_raw=self.settings.raw_answers_days > 0,
            wish=wish_of(self.settings),
        )

    def scheduler(self) -> Scheduler:
        """A scheduler for one run: settings changed in the database apply from here on."""
        limit = KindLimit(self.settings.crawler_batch_size, self.settings.crawler_concurrency)
        limits = {kind.name: limit for kind in self.platforms.kinds() if kind.newest is not None}
        slot = self.collect_context.reading_slot
        return Scheduler(
            self.visitor(), self.presence, self.stop, self.settings.concurrency, limits, lambda: slot.readers
        )

    def cache_warmup(self) -> Scheduler:
        """A scheduler for cache-only crawls."""
        return Scheduler(CacheWarmup(self.visitor()), self.presence, self.stop, self.settings.crawler_concurrency)

    def rechecks(self) -> Rechecks:
        """Rechecks with the current rules."""
        return Rechecks(self.collect_context, self.rules(), self.presence, self.stop)

    def close(self) -> None:
        """Release claims, then close connections, in order. If one step fails, the others still run."""
        built = self.__dict__
        with ExitStack() as stack:
            stack.callback(self.store.close)
            for name in ("redis", "cache", "pool", "presence", "fetch", "post", "deliverer"):
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
    return FetchSettings(
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
    timeouts, names = settings.platform_timeouts, settings.user_agents
    return {
        name: PlatformSettings(
            limits.get(name), windows.get(name), at_once.get(name), timeouts.get(name), names.get(name)
        )
        for name in sorted({*limits, *windows, *at_once, *timeouts, *names})
    }


def post_settings(settings: Settings) -> FetchSettings:
    return fetch_settings(settings).replace(
        timeout_seconds=min(settings.timeout_seconds, _POST_SECONDS),
        retry_waits=(),
        max_redirects=0,
        base_urls={},
        # Each webhook gets its events one after the other, as fast as it accepts them.
        per_host_per_second=0.0,
        per_host_concurrency=MOST_LISTENERS,
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
) -> App:
    """Open the database and build the app. `creates`: set up the database if there is none. Nothing is claimed or
    requested yet."""
    clock = clock or clock_from(settings.clock, settings.home)
    # One connection for each worker, and a few for requests in the meantime.
    pool_size = settings.concurrency + 8
    store = open_store(
        settings.database_url,
        settings.home,
        clock.now(),
        fingerprint,
        may_migrate=may_migrate,
        creates=creates,
        pool_size=pool_size,
        tells_ready=settings.is_ready_told,
    )
    return App(settings, store, clock, platforms or installed(), work, fetch=fetch)


def settings_from(environ: Mapping[str, str], folder: Path, jobs: list[str]) -> Settings:
    """Read the settings once, at start, and set up logging by them."""
    platforms = installed()
    kinds = [*kind_intervals(platforms.kinds())]
    declarations = declared(platforms)
    settings = read_settings(
        environ,
        folder,
        kinds=kinds,
        platforms=[platform.NAME for platform in platforms],
        jobs=jobs,
        declared=names(declarations.values()),
    )
    logs.configure(settings.log_format, settings.log_level)
    for secret in (settings.api_key, *settings.declared.values()):
        if secret:
            logs.know_secret(secret)
    return replace(settings, warnings=(*settings.warnings, *incomplete(declarations, settings.declared)))
