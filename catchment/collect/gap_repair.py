"""Repair of gaps: requests the items of a stretch of time that a source's listing does not reach any more.

A platform has another way to them, such as a search over a range of time (`reach`). Pages are written like any others,
each with what it proves of the gap; the source's own progress stays as it is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from itertools import groupby

from catchment import logs
from catchment.cache import has_cached_kinds
from catchment.collect.source_client import CollectContext, Exchange, SourcePages
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    LeaseLost,
    OutOfCredits,
    PlatformError,
    SlowDown,
    Stopped,
    StoreError,
    internal_error,
)
from catchment.fetch.responses import clock_lag
from catchment.logs import redact
from catchment.messages import message, without_subject
from catchment.model import (
    Kind,
    Platform,
    Reading,
    Source,
    SourceState,
    VisitResult,
    options,
    recheck_ages_of,
)
from catchment.platforms import listing_of
from catchment.policy.coverage import MOST_ATTEMPTS, Repairability, outlook_of
from catchment.policy.gap_repair import (
    RepairPage,
    RepairResult,
    StoppedBy,
    begin_repair,
    decide_repair_page,
    result_of,
)
from catchment.policy.visit import VisitRules
from catchment.store.sources.gaps import ClaimedGap, GapView, RepairEnd

log = logs.logger(__name__)

_A_PAGE = 500


class GapRepairs:
    """Repairs the open gaps of sources, for one process."""

    def __init__(self, context: CollectContext, rules: VisitRules, owner_id: int) -> None:
        self._context, self._rules, self._owner_id = context, rules, owner_id
        self._store, self._clock, self._platforms = context.store, context.clock, context.platforms
        self._waiting: set[str] = set()
        """Platforms that asked to wait."""

    def run(self, audit_id: int, started_by: str, *, is_repairing: bool, source_id: int | None) -> Counter[str]:
        """Counts the open gaps of all sources, or of one, and repairs them if that is asked for."""
        counts: Counter[str] = Counter()
        gaps = self._open_gaps(source_id)
        run_id: int | None = None
        try:
            for of_source, group in groupby(gaps, key=lambda gap: gap.source_id):
                reachable = self._counted(tuple(group), counts)
                if not is_repairing or not reachable or self._context.stop.is_set():
                    continue
                source = self._store.sources.get(of_source)
                # A person who names a source wants it to be requested, paused or not.
                if source.state != SourceState.ACTIVE and source_id is None:
                    continue
                if run_id is None:
                    run_id = self._store.runs.begin("repair-gaps", started_by, self._owner_id, self._clock.now())
                counts += self._repair(source, reachable, audit_id, run_id)
        finally:
            if run_id is not None:
                self._store.runs.finish(run_id, self._clock.now(), is_cut_off=self._context.stop.is_set())
        return counts

    def _open_gaps(self, source_id: int | None) -> list[GapView]:
        """Returns the open gaps, source by source."""
        gaps: list[GapView] = []
        while page := self._store.gaps.page(source_id=source_id, after=gaps[-1].id if gaps else 0, limit=_A_PAGE):
            gaps += page
        return sorted(gaps, key=lambda gap: (gap.source_id, gap.id))

    def _counted(self, gaps: Sequence[GapView], counts: Counter[str]) -> list[GapView]:
        """Counts the gaps of a source; returns those that can be repaired."""
        kind = self._platforms.kind(gaps[0].source_kind)
        reachable = [gap for gap in gaps if outlook_of(kind, gap.attempt_count, None) == Repairability.POSSIBLE]
        counts["gap_count"] += len(gaps)
        counts["unreachable_gap_count"] += len(gaps) - len(reachable)
        return reachable

    def _repair(self, source: Source, gaps: Sequence[GapView], audit_id: int, run_id: int) -> Counter[str]:
        kind, platform = self._platforms.kind(source.kind), self._platforms.of_kind(source.kind)
        assert kind is not None
        assert platform is not None
        counts: Counter[str] = Counter()
        repair = SourceGapRepair(self._context, self._rules, platform, kind, source, run_id)
        for gap in gaps:
            if self._context.stop.is_set() or platform.NAME in self._waiting:
                break
            claimed = self._store.gaps.claim(gap.id, audit_id, run_id, self._owner_id, self._clock.now(), MOST_ATTEMPTS)
            if claimed is None:
                continue
            result = repair.run(claimed)
            if result != RepairResult.DEFERRED:
                counts[f"{result}_gap_count"] += 1
            if repair.is_told_to_wait and platform.HOSTS:
                self._waiting.add(platform.NAME)
            if repair.is_told_to_wait:
                break
        if repair.client.requests:
            attempts, now = repair.client.new_attempts(), self._clock.now()
            self._store.threads.note(run_id, source, repair.visit_result(), attempts, now, is_board=False)
            self._context.cache.refresh(source.id, kind)
        return counts


class SourceGapRepair:
    """Repairs the gaps of one source, one after the other."""

    def __init__(
        self, context: CollectContext, rules: VisitRules, platform: Platform, kind: Kind, source: Source, run_id: int
    ) -> None:
        self._context, self._rules, self._store, self._clock = context, rules, context.store, context.clock
        self._platform, self._kind, self._source, self._run_id = platform, kind, source, run_id
        self._recheck_ages = recheck_ages_of(platform, kind)
        self._pages = SourcePages(context, rules, source, kind, run_id)
        self.client = self._pages.client
        self._began, self._results = context.clock.now(), Counter[RepairResult]()
        self._error: CatchmentError | None = None
        self.is_told_to_wait = False

    def run(self, claimed: ClaimedGap) -> RepairResult:
        """Walks down one gap; records how far it came and why it ended there."""
        self._pages.lease = claimed.lease
        self._walk = begin_repair(claimed.gap, self._kind.listings[0])
        before, error = self.client.requests, None
        try:
            self._walk_down()
        except CatchmentError as caught:
            error = caught
        except Exception as caught:  # a bug of ours or of a platform that one gap triggers must not stop the others
            log.error(
                "internal error while repairing a gap", source=self._source.id, gap=claimed.gap.id, exc_info=caught
            )
            error = internal_error(caught)
        self.client.book()
        return self._end(claimed, error, self.client.requests - before)

    def visit_result(self) -> VisitResult:
        """Returns the result of the source, for the record of the run."""
        notes = [message(f"visit.gaps_{result}", count=count) for result, count in self._results.items()]
        return self._pages.result(self._began, self._clock.now(), notes, self._error)

    def _walk_down(self) -> None:
        """Requests and writes page by page, until the lower edge is reached or nothing leads further down."""
        gap, progress = self._walk.gap, self._store.sources.with_progress(self._source.id)[1]
        plan = self._rules.walk_plans(self._kind, self._source, progress)[0]
        waiting = deque(options(self._platform).reach(self._source, gap, plan, self._clock.now()))
        if not waiting:
            self._walk = self._walk.replace(stopped_by=StoppedBy.UNREACHABLE)
            return
        self._walk = begin_repair(gap, listing_of(self._kind, waiting[0].listing or plan.listing))
        while waiting and not self._walk.is_over:
            if self._context.stop.is_set():
                raise Stopped("a stop was requested")
            exchange = self.client.send(waiting.popleft(), self._platform)
            with self.client.room_for(exchange):
                page = self._write(exchange, self.client.read(exchange))
            self._walk = page.walk
            waiting.extend(page.next_pages)

    def _write(self, exchange: Exchange, reading: Reading) -> RepairPage:
        clean = self.client.clean(reading, self._platform, exchange.answer.url, len(exchange.answer.body))
        raws, is_cached = self.client.raw(exchange), has_cached_kinds(self._platform)
        page = self._pages.page(exchange.at, clean.items, raws=raws, invalidates_cache=is_cached)
        decide = partial(
            decide_repair_page,
            self._walk,
            reading,
            clean.items,
            len(clean.skipped),
            exchange.at,
            self._recheck_ages,
            clock_lag=clock_lag(exchange.answer.headers, exchange.at),
        )
        return self._pages.write(page, decide)

    def _end(self, claimed: ClaimedGap, error: CatchmentError | None, requests: int) -> RepairResult:
        # Nothing is wrong with the gap: it costs no attempt.
        is_wait = isinstance(error, SlowDown | CredentialsExhausted | OutOfCredits)
        self.is_told_to_wait = self.is_told_to_wait or is_wait
        walk = self._walk
        if error is not None and not walk.is_over:
            self._error, walk = error, walk.replace(stopped_by=StoppedBy.ERROR)
        result = result_of(walk, is_deferred=is_wait or isinstance(error, Stopped | StoreError | LeaseLost))
        self._results[result] += 1
        end = RepairEnd(
            left_to_at=walk.open_to_at if walk.is_progress else None,
            result=result,
            stopped_by=walk.stopped_by,
            page_count=walk.pages,
            request_count=requests,
            shown_count=walk.shown,
            new_count=walk.new,
            http_status=error.status if isinstance(error, PlatformError) else None,
            error_code=error.code if error else None,
            error=redact(without_subject(error.message)) if error else None,
        )
        try:
            self._store.gaps.end_repair(claimed, end, self._clock.now(), is_free=result == RepairResult.DEFERRED)
        except LeaseLost:
            log.info("another process took over a gap", source=self._source.id, gap=claimed.gap.id)
        except StoreError:
            self._context.unreleased_leases.append(claimed.lease)
        return result
