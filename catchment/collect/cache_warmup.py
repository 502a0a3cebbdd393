"""Cache-only crawls: store what a ranked listing of a community shows in the cache, and nowhere else.

They write no item, no revision and no watermark, and keep no answer, because reparsing it would create items. What
remains is the run's record, the attempts, and when the community was warmed with how many posts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock

from catchment.cache import is_cached
from catchment.collect.source_client import SourceClient, subject_of
from catchment.collect.visit import Visited, Visitor
from catchment.errors import (
    CatchmentError,
    LeaseLost,
    SlowDown,
    internal_error,
)
from catchment.logs import logger, redact
from catchment.messages import about, message
from catchment.model import (
    Counts,
    Kind,
    Order,
    Outcome,
    Platform,
    Progress,
    RefinedItem,
    Request,
    Source,
    VisitResult,
    WalkPlan,
)
from catchment.platforms import Platforms, no_platform
from catchment.policy.schedule import Wish
from catchment.policy.visit import failed_with
from catchment.store.sources.sources import Claimed

log = logger(__name__)

# At most this many more answers than wanted posts: a longer walk leads nowhere.
_SPARE = 20


def ask_for(kind: Kind, wish: Wish, *, has_key: bool) -> WalkPlan:
    """Returns a plan for the wanted listing if the kind has it; else for its first ranked one, else for its default."""
    names = [listing.name for listing in kind.listings]
    ranked = [listing.name for listing in kind.listings if listing.order is Order.RANKED]
    listing = wish.sort if wish.sort in names else (ranked or names)[0]
    return WalkPlan(listing, wish.limit or kind.base_limit, time_filter=wish.time_filter, has_key=has_key)


class CacheWarmup:
    """Crawls sources cache-only; takes the place of a `Visitor` and shares its resources."""

    def __init__(self, by: Visitor) -> None:
        self.by = by
        self.store, self.clock, self.rules, self.platforms = by.store, by.clock, by.rules, by.platforms
        self._resting: dict[str, SlowDown] = {}
        self._lock = Lock()

    def visit(self, claimed: Claimed, run_id: int) -> Visited:
        """Crawls one source. A failure is recorded, but does not count against the source."""
        crawl = _CacheCrawl(self, claimed.source)
        try:
            result, cached = crawl.crawl(), crawl.cached
        except Exception as error:
            log.error("internal error during a cache-only crawl", source=claimed.source.id, exc_info=error)
            result, cached = crawl.failed(internal_error(error)), None
        crawl.client.book()
        try:
            self.store.cached_sources.ended(
                claimed.source, claimed.lease, run_id, result, crawl.client.new_attempts(), cached
            )
        except LeaseLost as error:
            result = result.replace(outcome=Outcome.SKIPPED, error_code=error.code, error=str(error), is_retryable=True)
        return Visited(result)

    def kinds_in_cooldown(self) -> Mapping[str, datetime]:
        return self.by.kinds_in_cooldown()

    def start_cooldown(self, platform: Platform, error: SlowDown) -> None:
        """Puts the platform into cooldown if all its sources share a host: a wait for one source then holds for all."""
        if platform.HOSTS:
            with self._lock:
                self._resting[platform.NAME] = error

    def resting(self, platform: Platform) -> SlowDown | None:
        with self._lock:
            return self._resting.get(platform.NAME)


class _CacheCrawl:
    """One cache-only crawl of one source."""

    def __init__(self, by: CacheWarmup, source: Source) -> None:
        self._by, self._source = by, source
        self.client = SourceClient(by.by.context, by.rules, source)
        self.cached: int | None = None
        self._began = by.clock.now()
        self._at: datetime | None = None
        self._skipped = 0

    def crawl(self) -> VisitResult:
        platform, kind = self._by.platforms.of_kind(self._source.kind), self._by.platforms.kind(self._source.kind)
        if platform is None or kind is None:
            return self._skip(no_platform(self._source.kind))
        if (wait := self._by.resting(platform)) is not None:
            until = wait.retry_at
            return self._result(Outcome.DEFERRED).replace(
                notes=(message("visit.deferred", why=wait.what),), deferred_until=until
            )
        try:
            items = self._read(platform, kind)
            self.cached = self._by.by.context.cache.cache(self._source, items, self._at or self._began)
        except SlowDown as error:
            self._by.start_cooldown(platform, error)
            return self.failed(error)
        except CatchmentError as error:
            return self.failed(error)
        return self._result(Outcome.SUCCEEDED).replace(
            # Stored items are unchanged: all items shown count as duplicates.
            counts=Counts(duplicate=len(items), invalid=self._skipped),
            notes=(message("visit.cached", count=self.cached),),
        )

    def failed(self, error: CatchmentError) -> VisitResult:
        what = (
            error.message
            if subject_of(self._source) in error.message
            else about(subject_of(self._source), error.message)
        )
        result = failed_with(self._result(Outcome.FAILED), error, redact(what))
        return result.replace(deferred_until=error.retry_at if isinstance(error, SlowDown) else None)

    def _skip(self, words: str) -> VisitResult:
        return self._result(Outcome.SKIPPED).replace(notes=(words,))

    def _result(self, outcome: Outcome) -> VisitResult:
        return VisitResult(
            self._source.id,
            self._source.name,
            self._source.kind,
            outcome,
            requests=self.client.requests,
            started_at=self._began,
            finished_at=self._by.clock.now(),
        )

    def _read(self, platform: Platform, kind: Kind) -> list[RefinedItem]:
        """Returns as many items as wanted, reading as many pages as that takes."""
        ask = ask_for(kind, self._by.rules.wish, has_key=self._by.rules.has_key(self._source))
        items: dict[tuple[str, str], RefinedItem] = {}
        # Starts without progress: stored validators and cursors belong to another listing.
        waiting = deque(platform.first(self._source, Progress(), ask))
        answers = 0
        while waiting and len(items) < ask.limit and answers < ask.limit + _SPARE:
            follow, page_items = self._asked(waiting.popleft(), platform)
            answers += 1
            fresh = {key: refined for refined in page_items if (key := refined.key) not in items}
            if page_items and not fresh:
                # The listing goes in circles.
                break
            items |= fresh
            waiting.extend(follow)
        return list(items.values())[: ask.limit]

    def _asked(self, request: Request, platform: Platform) -> tuple[Sequence[Request], Sequence[RefinedItem]]:
        exchange = self.client.send(request, platform)
        reading = self.client.read(exchange)
        self._at = exchange.at
        refined = self.client.clean(reading, platform, exchange.answer.url, len(exchange.answer.body))
        self._skipped += len(refined.skipped)
        # Requests for more about an item (its comments) are not sent: only the listing is cached.
        return [follow_up for follow_up in reading.follow if follow_up.about_item is None], refined.items


def warmable(platforms: Platforms) -> list[str]:
    """Returns the kinds whose sources can be crawled cache-only: those that are cached."""
    return [kind.name for kind in platforms.kinds() if is_cached(kind)]
