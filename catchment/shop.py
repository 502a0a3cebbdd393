"""The parts put together: what every door opens first, and closes last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Event, RLock

from catchment import logs
from catchment.clock import Clock, clock_from
from catchment.collect.asking import Rules
from catchment.collect.line import Lane
from catchment.collect.looking import Looking
from catchment.collect.naming import Names
from catchment.collect.planning import plans, taken_lately
from catchment.collect.rounds import Rounds
from catchment.collect.visit import Visitor
from catchment.collect.warming import Warmer
from catchment.fetch import Asked, Budgets, Fetch, FetchSettings, Level, PlatformSettings, budgets_in
from catchment.health.measuring import Measuring
from catchment.health.watching import Monitors
from catchment.hot import Hot, open_hot
from catchment.model import Budget
from catchment.pace import UNKNOWN_KIND_MINUTES, Wish, kind_intervals
from catchment.plan import Plan
from catchment.platforms import Platforms, installed
from catchment.redis_link import RedisLink, open_link
from catchment.refine import fingerprint
from catchment.settings import Settings, read_settings
from catchment.store import Presence, Store, open_store
from catchment.store.planning import Taken
from catchment.tell import hooks
from catchment.tell.delivering import MOST_LISTENERS, Deliverer
from catchment.tell.webhooks import Webhook
from catchment.tiers import Tier, Tiers
from catchment.vault import Box, Keeper, Pool, Safe, rules_from
from catchment.vault.environment import declared, incomplete, lent, names

_POST_SECONDS = 10.0
"""So long may a webhook's receiver take: it should note the event down, and work on it later."""


class Shop:
    """Everything that a verb needs. Parts are made when they are first used: `sources list` opens no connection."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, platforms: Platforms, work: str) -> None:
        self.settings, self.store, self.clock, self.platforms, self._work = settings, store, clock, platforms, work
        self.stop = Event()
        """No new work."""
        self.cut = Event()
        """Nor may what is under way go on."""
        self._presence: Presence | None = None
        self._pool: Pool | None = None
        self._fetch: Fetch | None = None
        self._visitor: Visitor | None = None
        self._redis: RedisLink | None = None
        self._hot: Hot | None = None
        self._post: Fetch | None = None
        self._deliverer: Deliverer | None = None
        # Jobs start side by side, and each may be the first to need a part.
        self._making = RLock()

    @cached_property
    def box(self) -> Box:
        return Box(self.settings.master_key)

    @cached_property
    def safe(self) -> Safe:
        return Safe(self.store.credentials, self.box, lent(declared(self.platforms), self.settings.declared))

    @cached_property
    def keeper(self) -> Keeper:
        return Keeper(self.store.credentials, self.safe, rules_from(self.settings), self.clock)

    @property
    def pool(self) -> Pool:
        with self._making:
            if self._pool is None:
                self._pool = Pool(self.keeper, self.safe, self.clock)
            return self._pool

    @property
    def fetch(self) -> Fetch:
        with self._making:
            if self._fetch is None:
                self._fetch = Fetch(
                    fetch_settings(self.settings),
                    self.clock,
                    stop=self.stop,
                    cut=self.cut,
                    budgets=self.windows,
                    credentials=self.pool,
                )
            return self._fetch

    @property
    def post(self) -> Fetch:
        """The client for webhooks: one attempt a call, since events wait longer than a source may, and no redirects."""
        with self._making:
            if self._post is None:
                self._post = Fetch(
                    post_settings(self.settings),
                    self.clock,
                    stop=self.stop,
                    cut=self.cut,
                    budgets=self.windows,
                    credentials=self.pool,
                )
            return self._post

    def webhook(self, webhook_id: int) -> Webhook:
        return Webhook(self.store.webhooks.sealed(webhook_id), self.box, self.post, self.clock.now)

    @property
    def deliverer(self) -> Deliverer:
        with self._making:
            if self._deliverer is None:
                self._deliverer = Deliverer(
                    self.store,
                    self.presence,
                    self.clock,
                    self.stop,
                    webhook=self.webhook,
                    hooks=hooks.installed(),
                    patience=timedelta(days=self.settings.events_days),
                )
            return self._deliverer

    @property
    def presence(self) -> Presence:
        with self._making:
            if self._presence is None:
                self._presence = self.store.enter(self._work, self.clock.now())
            return self._presence

    @property
    def visitor(self) -> Visitor:
        with self._making:
            if self._visitor is None:
                self._visitor = Visitor(self.store, self.platforms, self.fetch, self.clock, self.rules(), self.hot)
            return self._visitor

    @property
    def hot(self) -> Hot:
        with self._making:
            if self._hot is None:
                self._hot = open_hot(self.settings, self.store, self.clock, self.redis)
            return self._hot

    @property
    def redis(self) -> RedisLink | None:
        """None: the settings name none."""
        with self._making:
            if self._redis is None:
                self._redis = open_link(self.settings, self.store, self.clock)
            return self._redis

    @cached_property
    def names(self) -> Names:
        return Names(self.store, lambda: self.platforms)

    @cached_property
    def tiers(self) -> Tiers:
        return tiers_of(self.settings)

    @cached_property
    def windows(self) -> Budgets:
        """The windows of all budgets, as the whole deployment shares them."""
        return budgets_in(self.store.budgets, self.redis)

    def budgets_by_credential(self) -> dict[str, list[Asked]]:
        """The budgets of each platform that declares one, with the credentials that are usable at this moment."""
        usable, given = self.keeper.usable(), fetch_settings(self.settings)
        budgets = {one.NAME: budget for one in self.platforms if (budget := given.budget(one)) is not None}
        return {name: _counted_by(budget, usable.get(name, [])) for name, budget in budgets.items()}

    def budgets(self) -> dict[str, Budget]:
        """What the whole deployment may ask of each platform that declares a budget, with all of its credentials."""
        return {
            name: one.plus(limit=sum(budget.limit for budget, _ in asked))
            for name, asked in self.budgets_by_credential().items()
            for one, _ in asked[:1]
        }

    def levels(self, platforms: Collection[str]) -> dict[str, list[Level]]:
        """How full the budgets of these platforms are at this moment."""
        asked = {name: those for name, those in self.budgets_by_credential().items() if name in platforms}
        found = iter(self.windows.levels([one for those in asked.values() for one in those], self.clock.now()))
        return {name: list(islice(found, len(those))) for name, those in asked.items()}

    def plans(self, taken: Taken | None = None) -> list[Plan]:
        """Whether the budgets suffice for what is followed. `taken`: by what visits took, where that is known."""
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
        return Measuring(self.store.metrics, self.hot.counts, self.store.tiering.counts)

    def monitors(self) -> Monitors:
        return Monitors(self.store, self.settings, self.clock.now())

    def intervals(self) -> dict[str, int]:
        """Minutes by kind, as they are at this moment."""
        return kind_intervals(self.platforms.kinds(), self.store.settings.intervals(), self.settings.intervals)

    def rules(self) -> Rules:
        return Rules(
            self.intervals(),
            self.tiers,
            keyed=self.keeper.platforms(),
            failures_before_probation=self.settings.failures_before_probation,
            text_limit=self.settings.text_limit,
            keeps_raw=self.settings.raw_answers_days > 0,
            wish=wish_of(self.settings),
        )

    def rounds(self) -> Rounds:
        """A fresh round: a setting that was changed in the database counts from here on."""
        self.visitor.rules = self.rules()
        lane = Lane(self.settings.crawler_batch_size, self.settings.crawler_concurrency)
        lanes = {kind.name: lane for kind in self.platforms.kinds() if kind.newest is not None}
        return Rounds(self.visitor, self.presence, self.stop, self.settings.concurrency, lanes)

    def warming(self) -> Rounds:
        """Rounds of cache-only crawls."""
        self.visitor.rules = self.rules()
        return Rounds(Warmer(self.visitor), self.presence, self.stop, self.settings.crawler_concurrency)

    def looking(self) -> Looking:
        """Second looks, by the rules of this moment."""
        self.visitor.rules = self.rules()
        return Looking(self.visitor, self.platforms, self.presence, self.stop)

    def close(self) -> None:
        """Leave in order: what was claimed is free, connections are closed. One failing leaves none of it out."""
        with ExitStack() as leaving:
            leaving.callback(self.store.close)
            if self._redis is not None:
                leaving.callback(self._redis.close)
            if self._hot is not None:
                leaving.callback(self._hot.close)
            if self._pool is not None:
                leaving.callback(self._pool.close)
            if self._presence is not None:
                leaving.callback(self._presence.leave, self.clock.now())
            for client in (self._fetch, self._post):
                if client is not None:
                    leaving.callback(client.close)
            if self._deliverer is not None:
                leaving.callback(self._deliverer.close)

    def __enter__(self) -> Shop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _counted_by(budget: Budget, credentials: Sequence[str]) -> list[Asked]:
    """What a platform counts us by: each of these credentials, or all that we ask. To a stranger it may allow less."""
    if not credentials:
        return [(budget.of(None), None)]
    return [(budget, name) for name in credentials] if budget.is_per_credential else [(budget, None)]


def wish_of(settings: Settings) -> Wish:
    """What is read beside the newest of a community, unless its own settings or its tier say otherwise."""
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
        stop_grace_seconds=max(0.0, settings.stop_seconds - 5),
        platforms=platform_settings(settings),
    )


def platform_settings(settings: Settings) -> dict[str, PlatformSettings]:
    """What the operator decides about single platforms, by their names."""
    limits, windows, at_once = settings.rate_limits, settings.rate_windows, settings.platform_concurrency
    timeouts, names = settings.platform_timeouts, settings.user_agents
    return {
        one: PlatformSettings(limits.get(one), windows.get(one), at_once.get(one), timeouts.get(one), names.get(one))
        for one in sorted({*limits, *windows, *at_once, *timeouts, *names})
    }


def post_settings(settings: Settings) -> FetchSettings:
    return fetch_settings(settings).plus(
        timeout_seconds=min(settings.timeout_seconds, _POST_SECONDS),
        retry_waits=(),
        max_redirects=0,
        base_urls={},
        # Each webhook gets its events one after the other, as fast as it takes them.
        per_host_per_second=0.0,
        per_host_concurrency=MOST_LISTENERS,
    )


def open_shop(settings: Settings, work: str, *, may_migrate: bool = False, platforms: Platforms | None = None) -> Shop:
    """Open the database and stand ready. Nothing is claimed or asked yet."""
    clock = clock_from(settings.clock, settings.home)
    # One connection for each hand, and a few for whoever asks meanwhile.
    pool_size = settings.concurrency + 8
    store = open_store(
        settings.database_url,
        settings.home,
        clock.now(),
        fingerprint,
        may_migrate=may_migrate,
        pool_size=pool_size,
        tells_ready=settings.is_ready_told,
    )
    return Shop(settings, store, clock, platforms or installed(), work)


def settings_from(environ: Mapping[str, str], folder: Path, jobs: list[str]) -> Settings:
    """Read the settings once, at the door, and set up logging by them."""
    platforms = installed()
    kinds = [*kind_intervals(platforms.kinds())]
    theirs = declared(platforms)
    settings = read_settings(
        environ,
        folder,
        kinds=kinds,
        platforms=[one.NAME for one in platforms],
        jobs=jobs,
        declared=names(theirs.values()),
    )
    logs.configure(settings.log_format, settings.log_level)
    for secret in (settings.api_key, *settings.declared.values()):
        if secret:
            logs.know_secret(secret)
    return replace(settings, warnings=(*settings.warnings, *incomplete(theirs, settings.declared)))
