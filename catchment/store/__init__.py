"""The only place with SQL. One object a topic; each method answers one question the product asks, in its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from catchment.errors import StoreError
from catchment.model import Media
from catchment.store import opening
from catchment.store.alerts import Alerts
from catchment.store.auditing import Auditing
from catchment.store.changes import Changes
from catchment.store.credentials import ApiKeys, Credentials
from catchment.store.database import Database
from catchment.store.deliveries import Deliveries, Webhooks
from catchment.store.exports import Exports
from catchment.store.forgetting import Forgetting
from catchment.store.gaps import Gaps
from catchment.store.hot import HotHome, HotSources
from catchment.store.indexing import Indexing
from catchment.store.items import Items
from catchment.store.kept import BudgetRows, Clearing, KeptSettings
from catchment.store.lateness import Lateness
from catchment.store.leases import Presence
from catchment.store.looks import Looks
from catchment.store.mending import Mending
from catchment.store.metrics import Metrics
from catchment.store.outbox import Outbox
from catchment.store.owing import Owing
from catchment.store.pages import Pages
from catchment.store.planning import Planning
from catchment.store.raw import RawItems
from catchment.store.retention import Retention
from catchment.store.rhythm import Rhythm
from catchment.store.runs import Jobs, Runs
from catchment.store.sealed import SealedThings
from catchment.store.search import Search
from catchment.store.sources import Sources
from catchment.store.tiering import Tiering
from catchment.store.troubles import Troubles
from catchment.store.warming import Warming
from catchment.store.watches import Watches

__all__ = ["Presence", "Store", "open_store"]

Fingerprint = Callable[[str | None, str | None, str | None, Sequence[Media]], bytes]


class Store:
    """One database of catchment, opened."""

    def __init__(self, database: Database, home: Path, fingerprint: Fingerprint, *, tells_ready: bool = False) -> None:
        self.database, self.home = database, home
        self.sources = Sources(database)
        self.tiering = Tiering(database)
        self.pages = Pages(database, fingerprint, tells_ready=tells_ready)
        self.mending = Mending(database, self.pages)
        self.items = Items(database)
        self.hot = HotSources(database, self.items)
        self.hot_home = HotHome(database)
        self.warming = Warming(database)
        self.changes = Changes(database)
        self.raw_items = RawItems(database)
        self.exports = Exports(database)
        self.gaps = Gaps(database)
        self.index = Indexing(database)
        self.looks = Looks(database)
        self.owing = Owing(database)
        self.search = Search(database)
        self.runs = Runs(database)
        self.rhythm = Rhythm(database)
        self.jobs = Jobs(database)
        self.alerts = Alerts(database)
        self.metrics = Metrics(database)
        self.lateness = Lateness(database)
        self.planning = Planning(database)
        self.troubles = Troubles(database)
        self.credentials = Credentials(database)
        self.sealed = SealedThings(database)
        self.auditing = Auditing(database)
        self.api_keys = ApiKeys(database)
        self.settings = KeptSettings(database)
        self.budgets = BudgetRows(database)
        self.clearing = Clearing(database)
        self.outbox = Outbox(database)
        self.webhooks = Webhooks(database)
        self.deliveries = Deliveries(database)
        self.watches = Watches(database)
        self.retention = Retention(database)
        self.forgetting = Forgetting(database)

    def enter(self, work: str, now: datetime) -> Presence:
        """Become one of the processes that may hold leases."""
        presence = Presence(self.database, self.home, work, now)
        presence.bury(now)
        return presence

    def close(self) -> None:
        # The note is a courtesy to the next start: a full disk, or a database that is away, must not spoil the leaving.
        with suppress(OSError, StoreError):
            opening.remember(self.database, self.home)
        self.database.close()


def open_store(
    url: str,
    home: Path,
    now: datetime,
    fingerprint: Fingerprint,
    *,
    may_migrate: bool = False,
    pool_size: int = 12,
    tells_ready: bool = False,
) -> Store:
    """`tells_ready`: whether the end of a visit that brought something is an event of its own."""
    database = Database(url, pool_size=pool_size)
    try:
        opening.ready(database, home, now, may_migrate=may_migrate)
    except BaseException:
        database.close()
        raise
    return Store(database, home, fingerprint, tells_ready=tells_ready)
