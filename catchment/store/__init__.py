"""Database access: the only package with SQL. One object per topic; each method answers one question of the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from catchment.errors import StoreError
from catchment.model import Media
from catchment.store import migrate
from catchment.store.access import ApiKeys, Sessions, SignInLinks
from catchment.store.cache import CachedSources, CacheTable
from catchment.store.cleanup import Cleanup
from catchment.store.credentials import Credentials, EncryptedValues
from catchment.store.database import Database
from catchment.store.delivery.events import Outbox
from catchment.store.delivery.watches import Watches
from catchment.store.delivery.webhooks import Deliveries, Webhooks
from catchment.store.items.changes import Changes
from catchment.store.items.deletion import Deletion, Retention
from catchment.store.items.item_writer import FollowUpQueue
from catchment.store.items.items import Exports, Items
from catchment.store.items.page_writer import PageWriter
from catchment.store.items.raw_items import RawItems
from catchment.store.items.rechecks import RecheckQueue
from catchment.store.items.reparse import Reparses
from catchment.store.leases import Presence
from catchment.store.search.index import SearchIndex
from catchment.store.search.search import Search
from catchment.store.secret_scan import SecretScanRows
from catchment.store.settings import BudgetRows, StoredSettings
from catchment.store.sources.alerts import Alerts
from catchment.store.sources.gaps import Gaps
from catchment.store.sources.metrics import Metrics
from catchment.store.sources.runs import Jobs, Runs
from catchment.store.sources.sources import Sources
from catchment.store.sources.stats import FailureStats, LatenessStats, PlanStats, RhythmStats, TierStats

__all__ = ["Presence", "Store", "open_store"]

Fingerprint = Callable[[str | None, str | None, str | None, Sequence[Media]], bytes]


class Store:
    """An open catchment database, with one object per topic."""

    def __init__(self, database: Database, home: Path, fingerprint: Fingerprint, *, tells_ready: bool = False) -> None:
        self.database, self.home = database, home
        self.sources = Sources(database)
        self.tier_stats = TierStats(database)
        self.page_writer = PageWriter(database, fingerprint, tells_ready=tells_ready)
        self.reparses = Reparses(database, self.page_writer)
        self.items = Items(database)
        self.cached_sources = CachedSources(database, self.items)
        self.cache_table = CacheTable(database)
        self.changes = Changes(database)
        self.raw_items = RawItems(database)
        self.exports = Exports(database)
        self.gaps = Gaps(database)
        self.index = SearchIndex(database)
        self.rechecks = RecheckQueue(database)
        self.follow_ups = FollowUpQueue(database)
        self.search = Search(database)
        self.runs = Runs(database)
        self.rhythm_stats = RhythmStats(database)
        self.jobs = Jobs(database)
        self.alerts = Alerts(database)
        self.metrics = Metrics(database)
        self.lateness_stats = LatenessStats(database)
        self.plan_stats = PlanStats(database)
        self.failure_stats = FailureStats(database)
        self.credentials = Credentials(database)
        self.encrypted = EncryptedValues(database)
        self.secret_scans = SecretScanRows(database)
        self.api_keys = ApiKeys(database)
        self.sessions = Sessions(database)
        self.sign_in_links = SignInLinks(database)
        self.settings = StoredSettings(database)
        self.budgets = BudgetRows(database)
        self.cleanup = Cleanup(database)
        self.outbox = Outbox(database)
        self.webhooks = Webhooks(database)
        self.deliveries = Deliveries(database)
        self.watches = Watches(database)
        self.retention = Retention(database)
        self.deletion = Deletion(database)

    def enter(self, work: str, now: datetime) -> Presence:
        """Register this process as one that may hold leases."""
        presence = Presence(self.database, self.home, work, now)
        presence.bury(now)
        return presence

    def close(self) -> None:
        # The note only helps the next start: a full disk or an unavailable database must not make closing fail.
        with suppress(OSError, StoreError):
            migrate.remember(self.database, self.home)
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
    tells_ready: bool = False,
) -> Store:
    """Open the database; migrate it if `may_migrate`.

    `creates`: whether a missing or empty database is set up; otherwise it raises NotFound. `tells_ready`: whether the
    end of a visit that brought something is an event of its own.
    """
    database = Database(url, pool_size=pool_size, creates=creates)
    try:
        migrate.ready(database, home, now, may_migrate=may_migrate, creates=creates)
    except BaseException:
        database.close()
        raise
    return Store(database, home, fingerprint, tells_ready=tells_ready)
