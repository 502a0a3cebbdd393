"""An open database: one object per topic, each built when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import RLock

from catchment.errors import StoreError
from catchment.lazy import lazy_imports, part
from catchment.model import Media
from catchment.store.connections import OVERFLOW
from catchment.store.database import Database
from catchment.store.leases import Presence
from catchment.store.version import HEAD, is_current, remember

with lazy_imports():
    from catchment.store import access, cache, credentials, leadership, migrate, secret_scan, settings, spending
    from catchment.store.delivery import events, watches, webhooks
    from catchment.store.items import (
        change_feed,
        deletion,
        floor_audits,
        follow_ups,
        items,
        page_writer,
        raw_items,
        rechecks,
        reparse,
        replies,
        reply_counts,
        shown_entries,
        threads,
    )
    from catchment.store.search import index, search
    from catchment.store.sources import alerts, gaps, metrics, runs, sources, stats, tasks

Fingerprint = Callable[[str | None, str | None, str | None, Sequence[Media]], bytes]


class Store:
    """An open catchment database, with one object per topic."""

    sources = part(lambda store: sources.Sources(store.database))
    tier_stats = part(lambda store: stats.TierStats(store.database))
    page_writer = part(
        lambda store: page_writer.PageWriter(store.database, store.fingerprint, tells_ready=store.tells_ready)
    )
    reparses = part(lambda store: reparse.Reparses(store.database, store.page_writer))
    items = part(lambda store: items.Items(store.database))
    cached_sources = part(lambda store: cache.CachedSources(store.database, store.items))
    cache_table = part(lambda store: cache.CacheTable(store.database))
    changes = part(lambda store: change_feed.Changes(store.database))
    raw_items = part(lambda store: raw_items.RawItems(store.database))
    exports = part(lambda store: items.Exports(store.database))
    gaps = part(lambda store: gaps.Gaps(store.database))
    index = part(lambda store: index.SearchIndex(store.database))
    rechecks = part(lambda store: rechecks.RecheckQueue(store.database))
    replies = part(lambda store: replies.Replies(store.database))
    reply_counts = part(lambda store: reply_counts.ReplyCounts(store.database))
    floor_audits = part(lambda store: floor_audits.FloorAudits(store.database))
    threads = part(lambda store: threads.Threads(store.database))
    shown_entries = part(lambda store: shown_entries.ShownEntryRows(store.database))
    follow_ups = part(lambda store: follow_ups.FollowUpQueue(store.database))
    search = part(lambda store: search.Search(store.database))
    runs = part(lambda store: runs.Runs(store.database))
    rhythm_stats = part(lambda store: stats.RhythmStats(store.database))
    jobs = part(lambda store: runs.Jobs(store.database))
    leadership = part(lambda store: leadership.Leadership(store.database))
    alerts = part(lambda store: alerts.Alerts(store.database))
    metrics = part(lambda store: metrics.Metrics(store.database))
    lateness_stats = part(lambda store: stats.LatenessStats(store.database))
    plan_stats = part(lambda store: stats.PlanStats(store.database))
    failure_stats = part(lambda store: stats.FailureStats(store.database))
    credentials = part(lambda store: credentials.Credentials(store.database))
    encrypted = part(lambda store: credentials.EncryptedValues(store.database))
    secret_scans = part(lambda store: secret_scan.SecretScanRows(store.database))
    api_keys = part(lambda store: access.ApiKeys(store.database))
    sessions = part(lambda store: access.Sessions(store.database))
    sign_in_links = part(lambda store: access.SignInLinks(store.database))
    settings = part(lambda store: settings.StoredSettings(store.database))
    budgets = part(lambda store: settings.BudgetRows(store.database))
    spending = part(lambda store: spending.SpendingLedger(store.database))
    unfinished_walks = part(lambda store: spending.UnfinishedWalks(store.database))
    cleanup = part(lambda store: deletion.Cleanup(store.database))
    outbox = part(lambda store: events.Outbox(store.database))
    webhooks = part(lambda store: webhooks.Webhooks(store.database))
    tasks = part(lambda store: tasks.Tasks(store.database))
    deliveries = part(lambda store: webhooks.Deliveries(store.database))
    watches = part(lambda store: watches.Watches(store.database))
    retention = part(lambda store: deletion.Retention(store.database))
    deletion = part(lambda store: deletion.Deletion(store.database))

    def __init__(
        self,
        database: Database,
        home: Path,
        fingerprint: Fingerprint,
        *,
        tells_ready: bool = False,
        version: str | None = None,
    ) -> None:
        """`version`: the schema without which no process may register; None: any."""
        self.database, self.home, self.fingerprint, self.tells_ready = database, home, fingerprint, tells_ready
        self._version = version
        self.building = RLock()

    def enter(self, work: str, now: datetime) -> Presence:
        """Register this process as one that may hold leases."""
        presence = Presence(self.database, self.home, work, now, self._version)
        presence.bury(now)
        return presence

    def close(self) -> None:
        # The note only helps the next start: a full disk or an unavailable database must not make closing fail.
        with suppress(OSError, StoreError):
            remember(self.database, self.home)
        self.database.close()


def open_store(
    url: str,
    home: Path,
    now: datetime,
    fingerprint: Fingerprint,
    *,
    may_migrate: bool = False,
    creates: bool = True,
    pool_size: int = 12,
    overflow: int = OVERFLOW,
    trusted_seconds: float = 0.0,
    tells_ready: bool = False,
) -> Store:
    """Open the database; migrate it if `may_migrate`.

    `creates`: whether a missing or empty database is set up; otherwise it raises NotFound. `tells_ready`: whether the
    end of a visit with new or edited items is an event of its own.
    """
    database = Database(url, pool_size=pool_size, overflow=overflow, trusted_seconds=trusted_seconds, creates=creates)
    try:
        if not is_current(database):
            migrate.ready(database, home, now, may_migrate=may_migrate, creates=creates)
        elif creates or home.is_dir():
            remember(database, home)
    except BaseException:
        database.close()
        raise
    return Store(database, home, fingerprint, tells_ready=tells_ready, version=HEAD)
