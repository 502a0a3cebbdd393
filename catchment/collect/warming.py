"""Cache-only crawls: what a ranked listing of a community shows is kept hot, and nowhere else.

No item, no revision, no watermark comes of it, and no answer is kept: read again, that would become items. What is left
is the run's record, the attempts, and when the community was warmed with how many posts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from catchment.collect.asking import Asking, subject_of
from catchment.collect.visit import Visited, Visitor
from catchment.errors import CatchmentError, LeaseLost, PlatformError, SlowDown, Stopped
from catchment.hot import Hot, is_kept_hot
from catchment.logs import logger, redact
from catchment.model import (
    Ask,
    Counts,
    Kind,
    Order,
    Outcome,
    Platform,
    Progress,
    RefinedItem,
    Request,
    Result,
    Source,
)
from catchment.pace import Wish
from catchment.platforms import Platforms
from catchment.refine import refine
from catchment.store.sources import Claimed

log = logger(__name__)

# So many answers more than posts are wanted: more than that lead nowhere.
_SPARE = 20


def ask_for(kind: Kind, wish: Wish, *, has_key: bool) -> Ask:
    """The listing that is wished for, if the kind has it; else its first ranked one, else its default."""
    names = [listing.name for listing in kind.listings]
    ranked = [listing.name for listing in kind.listings if listing.order is Order.RANKED]
    listing = wish.sort if wish.sort in names else (ranked or names)[0]
    return Ask(listing, wish.limit or kind.base_limit, time_filter=wish.time_filter, has_key=has_key)


class Warmer:
    """Crawls sources cache-only; stands in the place of a visitor, and shares what that one has."""

    def __init__(self, by: Visitor) -> None:
        self.by = by
        self.store, self.clock, self.rules, self.platforms = by.store, by.clock, by.rules, by.platforms
        self._resting: dict[str, SlowDown] = {}
        self._lock = Lock()

    def visit(self, claimed: Claimed, run_id: int) -> Visited:
        """One source, whatever happens to it: its failure is written down, and counts against nobody."""
        crawl = _Crawling(self, claimed.source)
        try:
            result, cached = crawl.crawl(), crawl.cached
        except Exception as error:
            log.error("a cache-only crawl failed inside", source=claimed.source.id, exc_info=error)
            inside = CatchmentError(f"an error inside catchment ({type(error).__name__})")
            result, cached = crawl.failed(inside), None
        try:
            self.store.warming.ended(
                claimed.source, claimed.lease, run_id, result, crawl.asking.untold_attempts(), cached
            )
        except LeaseLost as error:
            result = result.plus(outcome=Outcome.SKIPPED, error_code=error.code, error=str(error), is_retryable=True)
        return Visited(result)

    def closed_kinds(self) -> frozenset[str]:
        return self.by.closed_kinds()

    def rest(self, platform: Platform, error: SlowDown) -> None:
        """Where all sources of a platform are asked at one place, one that is told to wait speaks for all."""
        if platform.HOSTS:
            with self._lock:
                self._resting[platform.NAME] = error

    def resting(self, platform: Platform) -> SlowDown | None:
        with self._lock:
            return self._resting.get(platform.NAME)


class _Crawling:
    """One source, read cache-only."""

    def __init__(self, by: Warmer, source: Source) -> None:
        self._by, self._source = by, source
        self.asking = Asking(by.by, source, lambda at, raw: None)
        self.cached: int | None = None
        self._began = by.clock.now()
        self._at: datetime | None = None
        self._skipped = 0

    def crawl(self) -> Result:
        platform, kind = self._by.platforms.of_kind(self._source.kind), self._by.platforms.kind(self._source.kind)
        if platform is None or kind is None:
            return self._skip(f"no platform is installed for kind {self._source.kind!r}")
        if (told := self._by.resting(platform)) is not None:
            return self._skip(f"left to the next round: {told.what}")
        try:
            items = self._read(platform, kind)
            self.cached = self._by.by.hot.cache(self._source, items, self._at or self._began)
        except SlowDown as error:
            self._by.rest(platform, error)
            return self.failed(error)
        except CatchmentError as error:
            return self.failed(error)
        return self._result(Outcome.SUCCEEDED).plus(
            # Nothing that is stored has changed: all that was shown counts as known.
            counts=Counts(duplicate=len(items), invalid=self._skipped),
            notes=(f"{self.cached} posts cached, none stored",),
        )

    def failed(self, error: CatchmentError) -> Result:
        is_stopped = isinstance(error, Stopped)
        told = str(error) if subject_of(self._source) in str(error) else f"{subject_of(self._source)}: {error}"
        return self._result(Outcome.SKIPPED if is_stopped else Outcome.FAILED).plus(
            error_code=error.code,
            error=redact(told),
            is_retryable=error.retryable,
            http_status=error.status if isinstance(error, PlatformError) else None,
        )

    def _skip(self, words: str) -> Result:
        return self._result(Outcome.SKIPPED).plus(notes=(words,))

    def _result(self, outcome: Outcome) -> Result:
        return Result(
            self._source.id,
            self._source.name,
            self._source.kind,
            outcome,
            requests=self.asking.requests,
            started_at=self._began,
            finished_at=self._by.clock.now(),
        )

    def _read(self, platform: Platform, kind: Kind) -> list[RefinedItem]:
        """As many as are wanted, from as many pages as that takes."""
        ask = ask_for(kind, self._by.rules.wish, has_key=self._by.rules.has_key(self._source))
        items: dict[tuple[str, str], RefinedItem] = {}
        # As if nothing were known: validators and cursors are those of another listing.
        waiting = deque(platform.first(self._source, Progress(), ask))
        answers = 0
        while waiting and len(items) < ask.limit and answers < ask.limit + _SPARE:
            follow, came = self._asked(waiting.popleft(), platform)
            answers += 1
            fresh = {key: one for one in came if (key := (one.item.scope, one.item.external_id)) not in items}
            if came and not fresh:
                # The listing goes in circles.
                break
            items |= fresh
            waiting.extend(follow)
        return list(items.values())[: ask.limit]

    def _asked(self, request: Request, platform: Platform) -> tuple[Sequence[Request], Sequence[RefinedItem]]:
        came = self.asking.ask(request, platform)
        reading = self.asking.read(came)
        self._at = came.at
        scope = self._source.key if platform.IS_SCOPED else ""
        with self._by.by.thinking:
            refined = refine(reading, scope=scope, answer_url=came.answer.url, text_limit=self._by.rules.text_limit)
        self._skipped += len(refined.skipped)
        # What asks for more of an item (its comments) is not asked for: only the listing is kept hot.
        return [one for one in reading.follow if one.if_changed is None], refined.items


def warmable(platforms: Platforms) -> list[str]:
    """The kinds whose sources can be crawled cache-only: those that are kept hot."""
    return [kind.name for kind in platforms.kinds() if is_kept_hot(kind)]


# ── how it stands ─────────────────────────────────────────────────────────────────────────────────────────────────


def standing(hot: Hot, platforms: Platforms, now: datetime) -> dict[str, Any]:
    """The hot store in figures: where it lives, how much is there, how often it helped, who is warm."""
    home, entries = hot.standing()
    warmth = hot.warmth(warmable(platforms))
    return {
        "home": home,
        "entries": entries,
        "last_hour": _reads(hot, now - timedelta(hours=1)),
        "last_24_hours": _reads(hot, now - timedelta(days=1)),
        "warmth": {
            "communities": warmth.communities,
            "warm": warmth.warm,
            "cached_posts": warmth.cached_posts,
            "last_warmed_at": warmth.last_warmed_at.isoformat() if warmth.last_warmed_at else None,
        },
    }


def _reads(hot: Hot, since: datetime) -> dict[str, Any]:
    counts = hot.counts(since)
    return {
        "hits": counts.hits,
        "misses": counts.misses,
        "hit_rate": hot.hit_rate(since),
        "failed_writes": counts.failures,
    }
