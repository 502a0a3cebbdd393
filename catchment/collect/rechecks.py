"""Rechecks: request items again by id, so that edits, removals and growth are seen after they left the listing.

An answer is written like any page; the source's progress, watermark and validators stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import partial
from threading import Event

from catchment import logs
from catchment.cache import has_cached_kinds
from catchment.collect.detail_fetch import Detail, DetailBatch, Details
from catchment.collect.source_client import CollectContext, SourcePages
from catchment.collect.threads import old_copy
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    Gone,
    Missing,
    PlatformError,
    SlowDown,
    Stopped,
    StoreError,
    internal_error,
)
from catchment.messages import message
from catchment.model import (
    Item,
    Key,
    Lease,
    NextRecheck,
    Platform,
    Recheck,
    RefinedItem,
    VisitResult,
    options,
    scope_of,
)
from catchment.policy import schedule
from catchment.policy.page import decide_rechecks
from catchment.policy.threads import is_old_copy
from catchment.policy.visit import VisitRules
from catchment.store import Presence
from catchment.store.items.rechecks import DueRecheck
from catchment.store.sources.metrics import RECHECK_JOB
from catchment.text.clean import clean_id

log = logs.logger(__name__)

MOST_A_RUN = 300
"""Per platform: collecting comes first, and shares the budget."""


def _next_at(recheck: DueRecheck, ages: Sequence[timedelta], at: datetime) -> datetime | None:
    return schedule.next_recheck(ages, recheck.created_at, at, is_floor=recheck.floor_number is not None)


def after_seeing(recheck: DueRecheck, ages: Sequence[timedelta], at: datetime) -> NextRecheck:
    return NextRecheck(recheck.item_id, _next_at(recheck, ages, at), recheck.count + 1)


def is_surely_gone(recheck: DueRecheck, at: datetime) -> bool:
    return recheck.gone_since is not None and at - recheck.gone_since >= schedule.SURELY_GONE


def after_missing(recheck: DueRecheck, ages: Sequence[timedelta], at: datetime) -> NextRecheck:
    """Returns the next recheck after the platform said "gone": counts only if it says so again, an hour later."""
    since = recheck.gone_since or at
    is_sure = is_surely_gone(recheck, at)
    at_next = _next_at(recheck, ages, at) if is_sure else since + schedule.SURELY_GONE
    return NextRecheck(recheck.item_id, at_next, recheck.count + 1, gone_since=since)


def after_absence(recheck: DueRecheck, at: datetime) -> NextRecheck:
    """Returns the next recheck of an item that the page of its thread did not show: by its own id, at once."""
    return NextRecheck(recheck.item_id, at, recheck.count + 1, 1, recheck.gone_since)


def after_failing(recheck: DueRecheck, at: datetime) -> NextRecheck:
    failures = recheck.failure_count + 1
    return NextRecheck(
        recheck.item_id, schedule.recheck_put_off(failures, at), recheck.count, failures, recheck.gone_since
    )


class Rechecks:
    """Runs the due rechecks, platform by platform, for one process."""

    def __init__(self, context: CollectContext, rules: VisitRules, presence: Presence, stop: Event) -> None:
        self._context, self._rules, self._presence, self._stop = context, rules, presence, stop
        self._store, self._clock, self._platforms = context.store, context.clock, context.platforms

    def run(self, started_by: str) -> list[VisitResult]:
        """Runs what is due, up to the limit of one run. Logs and writes nothing if nothing is due."""
        able = [platform for platform in self._platforms if hasattr(platform, "recheck")]
        if self._stop.is_set() or not self._store.rechecks.is_any_due(
            [able_platform.NAME for able_platform in able], self._clock.now()
        ):
            return []
        run_id = self._store.runs.begin(RECHECK_JOB, started_by, self._presence.owner_id, self._clock.now())
        try:
            return [result for platform in able for result in self._recheck(platform, run_id)]
        finally:
            self._store.runs.finish(run_id, self._clock.now(), is_cut_off=self._stop.is_set())

    def _recheck(self, platform: Platform, run_id: int) -> list[VisitResult]:
        with self._claimed(platform) as lease:
            if lease is None:
                return []
            due = self._store.rechecks.due(lease, platform.NAME, self._clock.now(), MOST_A_RUN)
            results: list[VisitResult] = []
            for rechecks in _by_source(due):
                if self._stop.is_set():
                    break
                source_rechecks = _SourceRechecks(self._context, self._rules, platform, lease, run_id, rechecks)
                results.append(source_rechecks.run())
                self._context.cache.refresh(rechecks[0].source.id, self._platforms.kind(rechecks[0].source.kind))
                if source_rechecks.is_told_to_wait:
                    break
            return results

    @contextmanager
    def _claimed(self, platform: Platform) -> Iterator[Lease | None]:
        lease = self._store.rechecks.claim(platform.NAME, self._presence.owner_id, self._clock.now())
        try:
            yield lease
        finally:
            if lease is not None:
                self._release(lease)

    def _release(self, lease: Lease) -> None:
        try:
            self._store.rechecks.release(lease)
        except StoreError:
            self._presence.release_later(lease)


def _by_source(due: Sequence[DueRecheck]) -> list[list[DueRecheck]]:
    """Groups by source: each has its own credential, and its own line in the run's record."""
    groups: dict[int, list[DueRecheck]] = {}
    for recheck in due:
        groups.setdefault(recheck.source.id, []).append(recheck)
    return list(groups.values())


class _SourceRechecks:
    """The rechecks of one source's items."""

    def __init__(
        self,
        context: CollectContext,
        rules: VisitRules,
        platform: Platform,
        lease: Lease,
        run_id: int,
        rechecks: Sequence[DueRecheck],
    ) -> None:
        self._store, self._clock, self._rules = context.store, context.clock, rules
        self._platform, self._lease, self._run_id = platform, lease, run_id
        self._source = rechecks[0].source
        kind = context.platforms.kind(self._source.kind)
        self._ages = kind.recheck_ages if kind else ()
        self._waiting = {recheck.key: recheck for recheck in rechecks}
        self._pages = SourcePages(context, rules, self._source, kind, run_id, lease)
        self._client, self._began = self._pages.client, context.clock.now()
        self.is_told_to_wait = False
        self._trouble: PlatformError | None = None
        """The first error that prevented fetching an item."""

    def run(self) -> VisitResult:
        """Runs all of them, whatever happens: what could not be requested is postponed, never lost."""
        broke: CatchmentError | None = None
        asked = len(self._waiting)
        try:
            self._send()
        except CatchmentError as error:
            broke = error
        except Exception as error:  # a bug of ours or in the platform's module that one source triggers
            log.error("internal error during a recheck", source=self._source.id, exc_info=error)
            broke = internal_error(error)
        if broke is None and len(self._waiting) == asked:
            # Nothing but failures: a few of them do not end the requests, and do not count as success either.
            broke = self._trouble
        is_wait = isinstance(broke, SlowDown | CredentialsExhausted) and self._is_one_site
        # What our own database could not store stays due: nothing is wrong with the items.
        self.is_told_to_wait = isinstance(broke, Stopped | StoreError) or is_wait
        if self._waiting and not self.is_told_to_wait:
            now = self._clock.now()
            self._store.rechecks.reschedule(
                self._lease, [after_failing(recheck, now) for recheck in self._waiting.values()]
            )
        result = self._result(asked, broke)
        self._client.book()
        self._store.rechecks.note(self._lease, self._run_id, self._source, result, self._client.new_attempts())
        return result

    @property
    def _is_one_site(self) -> bool:
        """Whether all sources of the platform share a host. Where each has its own, the cooldown of one must not delay
        the others, now or the next time."""
        return bool(self._platform.HOSTS)

    def _send(self) -> None:
        has_key = self._rules.has_key(self._source)
        requests = options(self._platform).recheck(
            [
                Recheck(
                    due.external_id,
                    due.scope,
                    due.url,
                    self._source,
                    has_key,
                    is_unconfirmed=due.gone_since is not None or due.failure_count > 0,
                    thread_id=due.thread_id,
                    floor_number=due.floor_number,
                    text_at=due.text_at,
                )
                for due in self._waiting.values()
            ]
        )
        with closing(Details(self._client, self._platform, requests).batches()) as batches:
            for batch in batches:
                self._write(batch)
                if batch.broke is not None:
                    raise batch.broke

    def _write(self, batch: DetailBatch) -> None:
        batch = batch.replace(details=tuple(map(self._unless_old, batch.details)))
        reading, at = batch.reading, batch.at or self._clock.now()
        troubles = (
            detail.error for detail in batch.details if detail.error and not isinstance(detail.error, Missing | Gone)
        )
        self._trouble = self._trouble or next(troubles, None)
        scope = scope_of(self._platform, self._source)
        clean = self._client.clean(reading, self._platform, self._source.target, batch.size)
        items = [item for item in clean.items if item.key in self._waiting]
        seen = [self._waiting.pop(item.key) for item in items]
        missing = [self._waiting.pop(key) for key in self._missing(batch, scope) if key in self._waiting]
        absent = [self._waiting.pop(key) for key in self._absent(batch, scope) if key in self._waiting]
        gone = [_gone(recheck) for recheck in missing if is_surely_gone(recheck, at)]
        raws, is_cached = batch.raws(self._client), has_cached_kinds(self._platform)
        page = self._pages.page(at, (*items, *gone), raws=raws, invalidates_cache=is_cached)
        rechecks = (
            *(after_seeing(recheck, self._ages, at) for recheck in seen),
            *(after_missing(recheck, self._ages, at) for recheck in missing),
            *(after_absence(recheck, at) for recheck in absent),
        )
        decide = partial(decide_rechecks, reading, page.items, rechecks, at)
        self._pages.write(page, decide)

    def _unless_old(self, detail: Detail) -> Detail:
        """Returns what came; the error instead of a page of a thread that is older than the list of threads."""
        page = detail.reading.thread_page
        thread = self._store.threads.state(self._source.id, page.thread_id) if page else None
        if page is None or thread is None or not is_old_copy(thread, page):
            return detail
        assert detail.came is not None
        return Detail(detail.request, error=old_copy(self._client.subject, detail.came.answer.status))

    def _missing(self, batch: DetailBatch, scope: str) -> list[Key]:
        """Returns the ids for which the platform says there is no such item: in the answer, or by 404 or 410 for it."""
        asked = [detail for detail in batch.details if not _is_page(detail)]
        in_answer = [external_id for detail in asked for external_id in detail.reading.gone]
        missing = [detail.request.item_id for detail in batch.details if isinstance(detail.error, Missing | Gone)]
        by_status = [external_id for external_id in missing if external_id is not None]
        return [(scope, clean_id(external_id)) for external_id in (*in_answer, *by_status)]

    def _absent(self, batch: DetailBatch, scope: str) -> list[Key]:
        """Returns the ids of floors that are not on the page that they were on. That alone says nothing: only two looks
        by id do."""
        pages = [detail for detail in batch.details if _is_page(detail)]
        return [(scope, clean_id(external_id)) for detail in pages for external_id in detail.reading.gone]

    def _result(self, asked: int, broke: CatchmentError | None) -> VisitResult:
        left = len(self._waiting)
        notes = [message("visit.rechecked", count=asked)]
        if left:
            notes.append(message("visit.rechecks_deferred", count=left))
        return self._pages.result(self._began, self._clock.now(), notes, broke)


def _is_page(detail: Detail) -> bool:
    """Whether a page of a thread was requested, for several floors at once."""
    return detail.request.item_id is None and detail.reading.thread_page is not None


def _gone(recheck: DueRecheck) -> RefinedItem:
    return RefinedItem(Item(recheck.external_id, scope=recheck.scope, is_deleted=True), b"", is_gone=True)
