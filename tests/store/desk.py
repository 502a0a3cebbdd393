"""A collector's hands without a platform: it follows, claims, and writes pages as they are told; real store, real
decisions. What a page says is written down in the test itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from catchment.credentials.cipher import Cipher
from catchment.credentials.lifecycle import LifecycleRules
from catchment.credentials.manager import CredentialManager
from catchment.credentials.pool import CredentialPool
from catchment.credentials.secret_store import EnvironmentCredential, SecretStore
from catchment.model import (
    NONE_REPEATED,
    FinishedVisit,
    Item,
    Kind,
    Listing,
    Order,
    Outcome,
    Page,
    PageFacts,
    RawAnswer,
    Reading,
    RefinedItem,
    Request,
    ShownEntries,
    Source,
    StoredEntries,
    Target,
    VisitEnd,
    VisitResult,
    as_json,
)
from catchment.policy.outages import OutageLevel, Site
from catchment.policy.page import VisitPage, decide_page, needs_rhythm
from catchment.policy.tiers import Tiers
from catchment.policy.visit import AnswerHead, VisitRules, VisitState, after_answer, begin, begin_walk
from catchment.store import Presence, Store, open_store
from catchment.store.database import Transaction
from catchment.store.sources.sources import Claimed
from catchment.text.clean import FINGERPRINT_RULE, fingerprint, refine
from tests.clocks import HandClock

WINDOW = Listing("window", Order.NEWEST_FIRST, is_window=True)
LISTING = Listing("new", Order.NEWEST_FIRST)
MINUTES = {"rss": 60, "reddit": 60}


def opened(url: str, home: Path, **more: Any) -> Store:
    return open_store(url, home, HandClock().now(), fingerprint, **more)


class Desk:
    """One process of a deployment."""

    def __init__(self, store: Store, clock: HandClock | None = None) -> None:
        self.store, self.clock = store, clock or HandClock()
        self._presence: Presence | None = None
        self.rule = FINGERPRINT_RULE
        self.recheck_ages: tuple[timedelta, ...] = ()
        """The ages at which new items are to be looked at again."""
        self.tiers: Tiers | None = None
        """Where sources are judged by how lively they are."""
        self.invalidates_cache = False
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
        return not self.store.page_writer.end([self.finished_visit(claimed, **changes)])

    def finished_visit(self, claimed: Claimed, **changes: Any) -> FinishedVisit:
        progress = claimed.progress.replace(last_polled_at=self.now, **changes)
        result = self._begun(claimed.source, self.now).replace(outcome=Outcome.UNCHANGED, finished_at=self.now)
        return FinishedVisit(claimed.source, claimed.lease, self.run_id, VisitEnd(result, progress))

    # ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def show(self, source: Source, *items: Item, after: float = 60, **more: Any) -> VisitPage:
        """A visit of one page, some seconds later: claimed, written, ended."""
        self.clock.advance(after)
        return self.write(self.claim(source), items, **more)

    @cached_property
    def run_id(self) -> int:
        return self.store.runs.begin("test", "test", self.presence.owner_id, self.now)

    @staticmethod
    def _begun(source: Source, at: datetime) -> VisitResult:
        return VisitResult(source.id, source.name, source.kind, Outcome.FAILED, started_at=at, requests=1)

    def write(
        self,
        claimed: Claimed,
        items: Sequence[Item],
        *,
        at: datetime | None = None,
        is_last: bool = True,
        body: bytes | None = None,
        repeated: StoredEntries = NONE_REPEATED,
        meanwhile: Callable[[], object] | None = None,
    ) -> VisitPage:
        """One page, as it was answered at that time (now, if it is not said). `repeated`: what it shows as before.

        `meanwhile` is done inside the transaction, after new items are written and before they are committed.
        """
        source, at = claimed.source, at or self.now
        is_feed = source.platform == "feeds"
        refined = refine(Reading(tuple(items)), scope=source.key if is_feed else "", answer_url=source.target)
        reading = Reading() if is_last else Reading(follow=(Request(source.target),))
        state = self._state(claimed, reading, at, is_last)
        shown = self._by_rule(refined.items)
        page = Page(
            source=source,
            lease=claimed.lease,
            run_id=self.run_id,
            answered_at=at,
            items=shown,
            fingerprint_rule=self.rule,
            may_have_new_ids=is_feed and claimed.progress.watermark is not None,
            raws=() if body is None else (RawAnswer("list", {}, source.target, 200, {}, 1, True, body[:32], body),),
            outcomes={("200", at.replace(second=0, microsecond=0)): 1},
            needs_rhythm=needs_rhythm(state),
            invalidates_cache=self.invalidates_cache,
            shown=ShownEntries(b"", {}, repeated) if repeated else None,
        )

        def decide(facts: PageFacts) -> VisitPage:
            return decide_page(state, reading, shown, len(refined.skipped), at, facts, repeated=repeated)

        if meanwhile is None:
            return self.store.page_writer.write(page, decide)

        def change(tx: Transaction) -> VisitPage:
            (written,) = self.store.page_writer.write_in(tx, [(page, decide)])
            meanwhile()
            assert isinstance(written, VisitPage)
            return written

        return self.store.database.write(change)

    def _by_rule(self, items: tuple[RefinedItem, ...]) -> tuple[RefinedItem, ...]:
        """As a later rule would fingerprint them."""
        return tuple(item.replace(fingerprint=later(item.fingerprint, self.rule)) for item in items)

    def _state(self, claimed: Claimed, reading: Reading, at: datetime, is_last: bool) -> VisitState:
        source, progress = claimed.source, claimed.progress
        listing = WINDOW if source.platform == "feeds" else LISTING
        kind = Kind("any", "", 60, "", (listing,), is_tiered=self.tiers is not None)
        rules = VisitRules(MINUTES, self.tiers or Tiers((), 0, 0))
        state = begin(source, progress, rules, Site(OutageLevel.HOST, source.target), at)
        state = begin_walk(
            state.replace(kind=kind, recheck_ages=self.recheck_ages, watched_from=None, result=self._begun(source, at)),
            1000,
            is_beside=False,
            is_last=True,
        )
        state = after_answer(state, AnswerHead(at, 200, b"", 1), reading, listing, None)
        # Progress is told by the test, not by the answer.
        return state.replace(walk=state.walk.replace(after=progress, is_queue_empty=is_last))

    # ── what is there ─────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.store.database.read(lambda tx: tx.all(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"))

    def count(self, table: str) -> int:
        row = self.store.database.read(lambda tx: tx.one(f"SELECT count(*) FROM {table}"))
        assert row is not None
        return int(row[0])

    def item(self, external_id: str) -> dict[str, Any]:
        """In its JSON form."""
        (found,) = [item for item in self.store.items.newest(10_000) if item.external_id == external_id]
        return as_json(found)

    def revisions(self, external_id: str) -> list[dict[str, Any]]:
        return as_json(self.store.items.revisions(self.item(external_id)["id"]))


def later(mark: bytes, rule: int) -> bytes:
    """The fingerprint that a rule with that number makes of the content that has this one today."""
    return mark if rule == FINGERPRINT_RULE else bytes([rule]) + mark[1:]


def post(key: str, text: str = "said", **more: Any) -> Item:
    return Item(key, text=text, title=more.pop("title", f"About {key}"), **more)


MASTER_KEY = "a master key for tests"
USUAL_RULES = LifecycleRules()


def pool_of(
    desk: Desk, keys: str = MASTER_KEY, rules: LifecycleRules = USUAL_RULES, lent: Sequence[EnvironmentCredential] = ()
) -> CredentialPool:
    """The credentials as one more process of the deployment uses them."""
    safe = SecretStore(desk.store.credentials, Cipher(keys), lent)
    return CredentialPool(CredentialManager(desk.store.credentials, safe, rules, desk.clock), safe, desk.clock)


def days(number: float) -> timedelta:
    return timedelta(days=number)
