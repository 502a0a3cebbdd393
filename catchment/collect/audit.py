"""Audits: find floors of threads that are neither stored nor known as holes, and repair them; repair gaps in time.

A repair requests only pages that hold missing floors, and stores only these: no floor beyond the cursor, no field of
the list. Every floor gets three attempts ever, counted before the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from catchment import logs
from catchment.collect.gap_repair import GapRepairs
from catchment.collect.source_client import CollectContext
from catchment.collect.threads import ThreadReader
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    LeaseLost,
    PlatformError,
    SlowDown,
    Stopped,
)
from catchment.logs import redact
from catchment.model import (
    Forum,
    Outcome,
    PageFacts,
    RefinedItem,
    Source,
    SourceState,
    ThreadMarks,
    ThreadPage,
    VisitResult,
    options,
    scope_of,
)
from catchment.policy.floor_audits import audit_counts, category_of, thread_result
from catchment.policy.page import all_calmed, changes_of, counts_of, shows_forgotten
from catchment.policy.threads import MOST_THREAD_SECONDS, FloorPage, ThreadReading, with_free_floors
from catchment.policy.visit import VisitRules
from catchment.store.items.floor_audits import AuditFloorView, AuditThreadView, AuditView, IncompleteThread
from catchment.store.items.threads import ClaimedThread

log = logs.logger(__name__)


class FloorAudit:
    """Audits the threads of forums, for one process."""

    def __init__(self, context: CollectContext, rules: VisitRules, owner_id: int) -> None:
        self._context, self._rules, self._owner_id = context, rules, owner_id
        self._store, self._clock, self._platforms = context.store, context.clock, context.platforms
        self._is_told_to_wait = False

    def requested(self) -> list[AuditView]:
        """Runs the audits that were requested and have not been started."""
        return [
            done for audit in self._store.floor_audits.requested() if (done := self._make(audit, "request")) is not None
        ]

    def run(self, started_by: str, *, is_repairing: bool, source_id: int | None = None) -> AuditView:
        """Audits all forums, or one source."""
        trigger = "cron" if started_by == "schedule" else "manual"
        audit = self._store.floor_audits.request(
            trigger, self._clock.now(), is_repairing=is_repairing, source_id=source_id
        )
        return self._make(audit, started_by) or self._store.floor_audits.get(audit.id)

    def _make(self, audit: AuditView, started_by: str) -> AuditView | None:
        runs, now = self._store.runs, self._clock.now()
        run_id = runs.begin("audit-floors", started_by, self._owner_id, now)
        try:
            self._store.floor_audits.end_abandoned(now)
            if not self._store.floor_audits.begin(audit.id, run_id, now):
                return None
            counts: Counter[str] = Counter()
            noted: set[tuple[str, str, str, int]] = set()
            try:
                for source in self._sources(audit.source_id):
                    self._audit_source(audit, source, run_id, counts, noted)
                counts += GapRepairs(self._context, self._rules, self._owner_id).run(
                    audit.id, started_by, is_repairing=audit.is_repairing, source_id=audit.source_id
                )
            except Stopped:
                log.info("an audit was stopped", audit=audit.id)
            finally:
                # What was found so far is right, whatever ended it; the next audit finds the rest.
                self._store.floor_audits.end(audit.id, counts or {"thread_count": 0}, self._clock.now())
            return self._store.floor_audits.get(audit.id)
        finally:
            runs.finish(run_id, self._clock.now(), is_cut_off=self._context.stop.is_set())

    def _sources(self, source_id: int | None) -> list[Source]:
        kinds = {kind.name for kind in self._platforms.kinds() if kind.forum is not None}
        if source_id is not None:
            source = self._store.sources.get(source_id)
            return [source] if source.kind in kinds else []
        # Of two boards that show a thread, the one that may be requested accounts for it.
        return sorted(self._store.threads.sources(sorted(kinds)), key=lambda source: source.state != SourceState.ACTIVE)

    def _audit_source(
        self,
        audit: AuditView,
        source: Source,
        run_id: int,
        counts: Counter[str],
        noted_floors: set[tuple[str, str, str, int]],
    ) -> None:
        """Audits the threads of a source, and adds what it finds to the counts, and to the floors that this audit has
        noted: a floor of a thread that two boards show is missing once, and is requested three times, not six."""
        kind, platform = self._platforms.kind(source.kind), self._platforms.of_kind(source.kind)
        assert kind is not None
        assert platform is not None
        assert kind.forum is not None
        reader = ThreadReader(self._context, self._rules, platform, kind, source, self._owner_id, run_id)
        # Of a board that is paused or retired, nothing is requested unless a person names it.
        is_asked = source.state == SourceState.ACTIVE or audit.source_id == source.id
        is_repairing = audit.is_repairing and is_asked
        repair = FloorRepair(self._context, reader, kind.forum, source, self._owner_id) if is_repairing else None
        began = self._clock.now()
        after: int | None = 0
        try:
            while after is not None and not self._context.stop.is_set():
                looked, after, threads = self._store.floor_audits.incomplete(source.id, kind.forum.first_floor, after)
                counts["thread_count"] += looked
                for thread in threads:
                    place = (platform.NAME, scope_of(platform, source), thread.thread_id)
                    missing = tuple(number for number in thread.missing if (*place, number) not in noted_floors)
                    if not missing:
                        continue
                    noted_floors.update((*place, number) for number in missing)
                    noted, floors = self._audit_thread(audit, thread.replace(missing=missing), repair)
                    results = Counter(floor.result for floor in floors)
                    counts.update(audit_counts([(noted.result, noted.error_category, 1)], results))
        finally:
            self._note(run_id, source, reader, began)

    def _note(self, run_id: int, source: Source, reader: ThreadReader, began: datetime) -> None:
        if reader.client.requests:
            result = VisitResult(source.id, source.name, source.kind, Outcome.SUCCEEDED, started_at=began)
            attempts, now = reader.client.new_attempts(), self._clock.now()
            self._store.threads.note(run_id, source, reader.added_to(result), attempts, now)

    def _audit_thread(
        self, audit: AuditView, thread: IncompleteThread, repair: FloorRepair | None
    ) -> tuple[AuditThreadView, Sequence[AuditFloorView]]:
        noted, floors = self._store.floor_audits.note(audit.id, thread)
        if repair is None or repair.is_told_to_wait or self._context.stop.is_set():
            return noted, tuple(floors.values())
        noted, floors = repair.run(thread, noted, floors)
        self._store.floor_audits.end_thread(noted, tuple(floors.values()))
        return noted, tuple(floors.values())


class FloorRepair:
    """Requests the missing floors of one source's threads."""

    def __init__(
        self, context: CollectContext, reader: ThreadReader, forum: Forum, source: Source, owner_id: int
    ) -> None:
        self._store, self._clock, self._reader, self._forum = context.store, context.clock, reader, forum
        self._platform, self._source, self._owner_id = reader.platform, source, owner_id
        self._stop = context.stop
        self.is_told_to_wait = False

    def run(
        self, thread: IncompleteThread, noted: AuditThreadView, floors: dict[int, AuditFloorView]
    ) -> tuple[AuditThreadView, dict[int, AuditFloorView]]:
        """Requests the pages with missing floors. Returns the result for the thread and for each floor. A thread with
        many of them is released from time to time: others may read it in between."""
        missing = [number for number, floor in floors.items() if floor.result == "missing"]
        claimed = self._store.threads.claim_by_id(thread.row_id, self._owner_id, self._clock.now()) if missing else None
        if claimed is None:
            # All of them had their three attempts; or another process is reading the thread at this moment.
            return noted.replace(result="skipped"), floors
        began = claimed_at = self._clock.now()
        try:
            for page in sorted({self._forum.page_of(number) for number in missing}):
                if self._stop.is_set():
                    break
                if self._clock.now() - claimed_at >= timedelta(seconds=MOST_THREAD_SECONDS):
                    self._reader.release(claimed)
                    claimed_at = self._clock.now()
                    claimed = self._store.threads.claim_by_id(thread.row_id, self._owner_id, claimed_at)
                    if claimed is None:
                        break
                on_page = [number for number in missing if self._forum.page_of(number) == page]
                floors |= self._repair_page(claimed, page, on_page, floors)
                if self.is_told_to_wait:
                    break
        except (Stopped, LeaseLost) as error:
            # The rest stays missing: the next audit finds it.
            log.info("the repair of a thread ended early", thread=thread.thread_id, why=error.code)
        finally:
            if claimed is not None:
                self._reader.release(claimed)
        return self._ended(thread, noted, floors, began), floors

    def _repair_page(
        self, claimed: ClaimedThread, page: int, numbers: Sequence[int], floors: dict[int, AuditFloorView]
    ) -> dict[int, AuditFloorView]:
        attempts = self._store.floor_audits.reserve(claimed.thread.id, numbers, self._clock.now())
        changed = {number: floors[number].replace(result="ignored") for number in numbers if number not in attempts} | {
            number: floors[number].replace(attempts_after=count) for number, count in attempts.items()
        }
        if not attempts:
            return changed
        try:
            answer = self._request(claimed, page, frozenset(attempts))
        except Stopped:
            self._store.floor_audits.give_back(claimed.thread.id, sorted(attempts))
            raise
        except LeaseLost:
            raise
        except CatchmentError as error:
            if isinstance(error, SlowDown | CredentialsExhausted):
                # Nothing is wrong with the floors: they are requested the next time.
                self._store.floor_audits.give_back(claimed.thread.id, sorted(attempts))
                self.is_told_to_wait = True
                return {number: floor.replace(attempts_after=None) for number, floor in changed.items()}
            status = error.status if isinstance(error, PlatformError) else None
            words = redact(str(error.message))[:200]
            return changed | _failed(changed, attempts, category_of(error), words, status)
        except Exception as error:  # a parser bug that one page triggers must not cost the others
            log.error("a page with missing floors could not be read", thread=claimed.thread.id, exc_info=error)
            words = f"internal error ({type(error).__name__})"
            return changed | _failed(changed, attempts, "unknown", words)
        return changed | {
            number: changed[number].replace(result="repaired" if number in answer else "still_missing")
            for number in attempts
        }

    def _request(self, claimed: ClaimedThread, page: int, numbers: frozenset[int]) -> frozenset[int]:
        """Requests a page and stores the wanted floors; returns those that were there."""
        thread_id = claimed.thread.thread_id
        request = options(self._platform).floors(self._source, thread_id, page)
        exchange, reading, thread_page = self._reader.requested(request, thread_id, page, claimed)
        items = tuple(item for item in reading.items if item.floor_number in numbers)
        decide = partial(decide_repair, claimed, self._forum, thread_page, numbers, self._reader.recheck_ages)
        self._reader.write(claimed, exchange, reading.replace(items=items), thread_page, decide)
        return frozenset(item.floor_number for item in items if item.floor_number is not None)

    def _ended(
        self, thread: IncompleteThread, noted: AuditThreadView, floors: dict[int, AuditFloorView], began: datetime
    ) -> AuditThreadView:
        results = Counter(floor.result for floor in floors.values())
        failed = next((floor for floor in floors.values() if floor.result == "failed"), None)
        return noted.replace(
            result=thread_result([(floor.result, floor.attempts_after is not None) for floor in floors.values()]),
            ignored_count=results["ignored"],
            repair_started_at=began,
            repair_finished_at=self._clock.now(),
            after_max_floor=thread.max_floor,
            after_floor_count=len(thread.floors) + results["repaired"],
            remaining_count=len(floors) - results["repaired"],
            error_category=failed.error_category if failed else None,
            http_status=failed.http_status if failed else None,
            error=failed.error if failed else None,
        )


def _failed(
    floors: Mapping[int, AuditFloorView],
    numbers: Iterable[int],
    category: str,
    words: str,
    http_status: int | None = None,
) -> dict[int, AuditFloorView]:
    """Returns the results of floors whose page could not be had."""
    cause = {"error_category": category, "error": words, "http_status": http_status}
    return {number: floors[number].replace(result="failed", **cause) for number in numbers}


def decide_repair(
    claimed: ClaimedThread,
    forum: Forum,
    thread_page: ThreadPage,
    numbers: frozenset[int],
    recheck_ages: Sequence[timedelta],
    items: Sequence[RefinedItem],
    skipped: int,
    at: datetime,
    facts: PageFacts,
) -> FloorPage:
    """Decides what the missing floors of a page change: the floors themselves, and which of them are holes."""
    shown, moved_floors = with_free_floors(items, facts.floors)
    changes = all_calmed(changes_of(shown, facts, at, recheck_ages), facts, at)
    thread = claimed.thread
    marks = ThreadMarks(
        *(thread, thread.page_count, thread.next_page, thread.max_floor, thread.max_floor_id),
        holes=tuple(number for number in thread_page.holes if number in numbers),
        filled=tuple(item.item.floor_number for item in shown if item.item.floor_number is not None),
        moved_floors=moved_floors,
        is_repair=True,
    )
    counts = counts_of(changes, skipped)
    reading = ThreadReading(thread, forum, thread_page.number, 0, marks)
    return FloorPage(changes, counts, is_raw_kept=not shows_forgotten(changes), thread_marks=marks, reading=reading)
