"""A collector's hands without a platform: it follows, claims, and writes pages as they are told; real store, real
decisions. What a page says is written down in the test itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from catchment.collect.deciding import PageDeciding, Visiting
from catchment.continuity import Walk
from catchment.model import (
    Item,
    Listing,
    Order,
    Outcome,
    Progress,
    Reading,
    RefinedItem,
    Request,
    Result,
    Source,
    Target,
)
from catchment.refine import FINGERPRINT_RULE, fingerprint, refine
from catchment.store import Presence, Store, open_store
from catchment.store.sources import Claimed
from catchment.store.visits import Closing, Conclusion, Ending, Page, RawAnswer
from catchment.tiers import Tiers
from catchment.vault import Box, Keeper, LifeRules, Pool, Safe
from catchment.vault.environment import Lent
from tests.clocks import HandClock

WINDOW = Listing("window", Order.NEWEST_FIRST, is_window=True)
LISTING = Listing("new", Order.NEWEST_FIRST)
MINUTES = {"rss": 60, "reddit": 60}


def opened(url: str, home: Path, **more: Any) -> Store:
    return open_store(url, home, HandClock().now(), fingerprint, **more)


class Pausing(PageDeciding):
    """Does something else in the middle of the transaction, when it is asked its last question."""

    def __init__(self, meanwhile: Callable[[], object], *visit: Any) -> None:
        super().__init__(*visit)
        self._meanwhile = meanwhile

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        self._meanwhile()
        return super().in_rhythm(progress, newest_first)


class Desk:
    """One process of a deployment."""

    def __init__(self, store: Store, clock: HandClock | None = None) -> None:
        self.store, self.clock = store, clock or HandClock()
        self._presence: Presence | None = None
        self.rule = FINGERPRINT_RULE
        self.look_after: tuple[timedelta, ...] = ()
        """The ages at which new items are to be looked at again."""
        self.tiers: Tiers | None = None
        """Where sources are judged by how lively they are."""
        self.is_kept_hot = False
        """Whether what pages change must be learnt by the hot store."""

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def presence(self) -> Presence:
        if self._presence is None:
            self._presence = self.store.enter("test", self.now)
        return self._presence

    def close(self) -> None:
        if self._presence is not None:
            self._presence.leave(self.now)
        self.store.close()

    # ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────

    def follow(self, name: str = "one", kind: str = "rss", **more: Any) -> Source:
        platform = "feeds" if kind == "rss" else kind
        return self.store.sources.follow(Target(kind, f"https://{name}.example/"), platform, self.now, **more)[0]

    def claim(self, source: Source) -> Claimed:
        (claimed,) = self.store.sources.claim([source.id], self.presence.owner_id, self.now)
        return claimed

    def due(self, limit: int = 100, most: Mapping[str, int] = MappingProxyType({}), **intervals: int) -> list[Claimed]:
        return self.store.sources.claim_due(self.presence.owner_id, MINUTES | intervals, 60, self.now, limit, most)

    def give_back(self, claimed: Claimed, **changes: Any) -> bool:
        """End the visit without a page; false if somebody else has it."""
        return not self.store.pages.end([self.closing(claimed, **changes)])

    def closing(self, claimed: Claimed, **changes: Any) -> Closing:
        progress = claimed.progress.plus(last_polled_at=self.now, **changes)
        result = self._begun(claimed.source, self.now).plus(outcome=Outcome.UNCHANGED, finished_at=self.now)
        return Closing(claimed.source, claimed.lease, self.run_id, Ending(result, progress))

    # ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def show(self, source: Source, *items: Item, after: float = 60, **more: Any) -> Conclusion:
        """A visit of one page, some seconds later: claimed, written, ended."""
        self.clock.advance(after)
        return self.write(self.claim(source), items, **more)

    @cached_property
    def run_id(self) -> int:
        return self.store.runs.begin("test", "test", self.presence.owner_id, self.now)

    @staticmethod
    def _begun(source: Source, at: datetime) -> Result:
        return Result(source.id, source.name, source.kind, Outcome.FAILED, started_at=at, requests=1)

    def write(
        self,
        claimed: Claimed,
        items: Sequence[Item],
        *,
        at: datetime | None = None,
        is_last: bool = True,
        body: bytes | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> Conclusion:
        """One page, as it was answered at that time (now, if it is not said).

        `meanwhile` is done inside the transaction, after new items are written and before they are committed.
        """
        source, at = claimed.source, at or self.now
        is_feed = source.platform == "feeds"
        refined = refine(Reading(tuple(items)), scope=source.key if is_feed else "", answer_url=source.target)
        page = Page(
            source=source,
            lease=claimed.lease,
            run_id=self.run_id,
            answered_at=at,
            items=self._by_rule(refined.items),
            fingerprint_rule=self.rule,
            may_have_new_ids=is_feed and claimed.progress.watermark is not None,
            suspects_staleness=False,
            raws=() if body is None else (RawAnswer("list", {}, source.target, 200, {}, 1, True, body[:32], body),),
            outcomes={("200", at.replace(second=0, microsecond=0)): 1},
            is_kept_hot=self.is_kept_hot,
        )
        return self.store.pages.write(page, self._deciding(claimed, refined.skipped, at, is_last, meanwhile))

    def _by_rule(self, items: tuple[RefinedItem, ...]) -> tuple[RefinedItem, ...]:
        """As a later rule would fingerprint them."""
        return tuple(one.plus(fingerprint=later(one.fingerprint, self.rule)) for one in items)

    def _deciding(
        self,
        claimed: Claimed,
        skipped: Sequence[object],
        at: datetime,
        is_last: bool,
        meanwhile: Callable[[], object],
    ) -> PageDeciding:
        source = claimed.source
        visiting = Visiting(
            source=source,
            known=claimed.progress,
            progress=claimed.progress,
            polled_at=at,
            walk=Walk(WINDOW if source.platform == "feeds" else LISTING, claimed.progress.watermark),
            kind_minutes=60,
            limit=1000,
            page_number=1,
            is_queue_empty=is_last,
            hint_seconds=None,
            before=self._begun(source, at),
            look_after=self.look_after,
            tiers=self.tiers,
        )
        reading = Reading() if is_last else Reading(follow=(Request(source.target),))
        return Pausing(meanwhile, visiting, reading, len(skipped), at)

    # ── what is there ─────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.store.database.read(lambda tx: tx.all(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"))

    def count(self, table: str) -> int:
        row = self.store.database.read(lambda tx: tx.one(f"SELECT count(*) FROM {table}"))
        assert row is not None
        return int(row[0])

    def item(self, external_id: str) -> dict[str, Any]:
        (found,) = [one for one in self.store.items.newest(10_000) if one["external_id"] == external_id]
        return found

    def revisions(self, external_id: str) -> list[dict[str, Any]]:
        return self.store.items.revisions(self.item(external_id)["id"])


def later(mark: bytes, rule: int) -> bytes:
    """The fingerprint that a rule with that number makes of the content that has this one today."""
    return mark if rule == FINGERPRINT_RULE else bytes([rule]) + mark[1:]


def post(key: str, text: str = "said", **more: Any) -> Item:
    return Item(key, text=text, title=more.pop("title", f"About {key}"), **more)


MASTER_KEY = "a master key for tests"
USUAL_RULES = LifeRules()


def pool_of(desk: Desk, keys: str = MASTER_KEY, rules: LifeRules = USUAL_RULES, lent: Sequence[Lent] = ()) -> Pool:
    """The credentials as one more process of the deployment uses them."""
    safe = Safe(desk.store.credentials, Box(keys), lent)
    return Pool(Keeper(desk.store.credentials, safe, rules, desk.clock), safe, desk.clock)


def days(number: float) -> timedelta:
    return timedelta(days=number)
