"""Forums: reads a board's list down to the edge of its window, then the threads that are new or changed.

A list page notes the threads to be read in its own transaction. Threads are claimed one by one, each under a lease of
its own, by visits and by the job that continues at every tick; each page is written with the progress that it proves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial

import msgspec

from catchment import logs
from catchment.collect.source_client import CollectContext, Exchange, SourcePages
from catchment.collect.walk import PlannedWalk, Visit, answer_head, continued, walk
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    LeaseLost,
    PlatformError,
    SlowDown,
    StaleAnswer,
    Stopped,
    StoreError,
    Unreadable,
    internal_error,
)
from catchment.logs import redact
from catchment.messages import about, message
from catchment.model import (
    Budget,
    FloorRange,
    Forum,
    Kind,
    ListNote,
    Outcome,
    PageFacts,
    Platform,
    Reading,
    Record,
    Request,
    Source,
    ThreadMarks,
    ThreadPage,
    ThreadResult,
    VisitResult,
    WalkPlan,
    options,
)
from catchment.platforms import listing_of
from catchment.policy.outages import UNREACHABLE
from catchment.policy.page import needs_rhythm
from catchment.policy.threads import (
    MOST_THREAD_SECONDS,
    BoardWalk,
    FloorPage,
    ThreadListPage,
    ThreadReading,
    begin_board,
    begin_reading,
    decide_floor_page,
    decide_list_page,
    marks_after_failure,
    numbers_shown,
)
from catchment.policy.visit import MOST_PAGES, VisitRules, after_answer, begin_walk, pause, succeed, unfinished
from catchment.store.items.threads import ClaimedThread
from catchment.text.clean import clean_text
from catchment.text.printable import one_line

log = logs.logger(__name__)

# Later than this, so many new threads may have moved the others down that a list is read from its top again.
_LIST_STANDS_STILL = timedelta(hours=1)
# After this many failed threads in a row, the host gets no request until the next round.
_FAILURES_IN_A_ROW = 3


def forum_settings(kind: Kind, source: Source) -> dict[str, float]:
    """Returns the settings of a board, with the defaults that its kind declares."""
    values = {field.name: source.settings.get(field.name, field.default) for field in kind.fields}
    return {"pages_per_run": 5, "window_days": 3} | {
        name: value for name, value in values.items() if isinstance(value, int | float)
    }


def paced(request: Request, kind: Kind, source: Source) -> Request:
    """Returns the request with the board's own rate, which holds besides that of its host."""
    per_second = forum_settings(kind, source).get("requests_per_second")
    if not per_second or request.budget is not None:
        return request
    fallback = request.fallback and paced(request.fallback, kind, source)
    return request.replace(budget=Budget(f"source {source.id}", 1, 1 / per_second, is_pace=True), fallback=fallback)


# The list


def collect_board(
    visit: Visit, platform: Platform, kind: Kind, forum: Forum, context: CollectContext
) -> SlowDown | None:
    """Reads the stream of all posts, if the forum has one, then the list, then threads. Returns the error if a server
    asked us to wait while threads were read: the remaining threads are read at the next tick, and the visit has
    succeeded."""
    until = context.clock.now() + timedelta(seconds=MOST_THREAD_SECONDS)
    *streams, plan = visit.rules.walk_plans(kind, visit.source, visit.state.progress)
    for stream in streams:
        requests = platform.first(visit.source, visit.state.progress, stream)
        paced_requests = tuple(paced(request, kind, visit.source) for request in requests)
        walk(visit, platform, kind, PlannedWalk(stream, paced_requests, is_beside=False, is_last=False, until=until))
        if visit.state.end is not None:
            return None
    is_read = _walk_list(visit, platform, kind, forum, plan, until)
    end = succeed if is_read else pause
    visit.finish(end(visit.counted(), context.clock.now()))
    if visit.state.result.outcome != Outcome.SUCCEEDED:
        return None
    # The source is free from here on: others may read its threads as well.
    reader = ThreadReader(context, visit.rules, platform, kind, visit.source, visit.lease.owner_id, visit.run_id)
    reader.run(until)
    visit.state = visit.state.replace(result=reader.added_to(visit.state.result))
    attempts = reader.client.new_attempts()
    context.store.threads.note(visit.run_id, visit.source, visit.state.result, attempts, context.clock.now())
    return reader.wait


def _walk_list(visit: Visit, platform: Platform, kind: Kind, forum: Forum, plan: WalkPlan, until: datetime) -> bool:
    """Reads the list, or what an earlier visit left of it. Returns False if the time was over before its end: the next
    visit continues there."""
    visit.state = begin_walk(visit.state, plan.limit, is_beside=forum.stream is not None, is_last=True)
    # The stream may have moved the watermark already; threads of the time since the last visit are still to be listed.
    board = begin_board(forum, visit.source, visit.state.began.watermark, visit.clock.now())
    visit.board = ListNote(board.window.first_day, board.window.last_day, 0, 0, is_first=False)
    first = tuple(platform.first(visit.source, visit.state.progress, plan))
    waiting = deque(continued(visit, platform, plan.listing, first, within=_LIST_STANDS_STILL))
    board = board.replace(list_page=visit.state.walk.pages)
    for _ in range(2 * MOST_PAGES):
        exchange = visit.client.send(paced(waiting.popleft(), kind, visit.source), platform)
        with visit.client.room_for(exchange):
            reading = visit.client.read(exchange)
            if not reading.threads and not reading.items and reading.follow:
                waiting.extend(reading.follow)  # another form of the same request
                continue
            board = board.replace(list_page=board.list_page + 1)
            is_time_over = visit.clock.now() >= until
            page = _write_list_page(visit, exchange, reading, board, kind, plan.listing, is_paused=is_time_over)
            waiting.extend(page.next_pages)
        if not waiting or is_time_over:
            return not waiting
    raise Unreadable(
        "{subject}: the list of threads does not end", "check it in a browser", subject=visit.client.subject
    )


def _write_list_page(
    visit: Visit,
    exchange: Exchange,
    reading: Reading,
    board: BoardWalk,
    kind: Kind,
    listing: str,
    *,
    is_paused: bool,
) -> ThreadListPage:
    """Writes a page of the list. `is_paused`: it is the last one of this visit, wherever the list ends."""
    name = one_line(clean_text(reading.title or ""))[:200]
    listed = listing_of(kind, exchange.request.listing or listing)
    state = after_answer(visit.counted(), answer_head(visit, exchange), reading, listed, name)
    clean = visit.client.clean(reading, exchange.platform, exchange.answer.url, len(exchange.answer.body))
    page = visit.pages.page(
        exchange.at,
        clean.items,
        raws=visit.client.raw(exchange),
        thread_ids=tuple(row.thread_id for row in reading.threads),
        item_kind=kind.item_kind,
        needs_rhythm=needs_rhythm(state),
        is_continuable=True,
    )
    version = exchange.platform.PARSER_VERSION

    def decide(facts: PageFacts) -> ThreadListPage:
        decided = decide_list_page(board, state, reading, clean.items, len(clean.skipped), exchange.at, facts)
        if not decided.next_pages or not is_paused:
            return decided
        saved = unfinished(decided.state, decided.next_pages, version, exchange.at)
        return decided.replace(unfinished_walk=msgspec.json.encode(saved))

    written = visit.pages.write(page, decide)
    visit.state, visit.is_continuing = written.state, False
    return written


# Threads


class ThreadReader:
    """Reads the threads of one source that wait to be read, one after the other."""

    def __init__(
        self,
        context: CollectContext,
        rules: VisitRules,
        platform: Platform,
        kind: Kind,
        source: Source,
        owner_id: int,
        run_id: int,
    ) -> None:
        assert kind.forum is not None
        self._context, self._store, self._clock = context, context.store, context.clock
        self.platform, self._kind, self._forum, self._source = platform, kind, kind.forum, source
        self._owner_id, self._run_id = owner_id, run_id
        self._pages_per_run = int(forum_settings(kind, source)["pages_per_run"])
        self.recheck_ages = kind.recheck_ages if hasattr(platform, "recheck") else ()
        self._pages = SourcePages(context, rules, source, kind, run_id)
        self.client = self._pages.client
        self.wait: SlowDown | None = None
        self._failures = 0

    def run(self, until: datetime) -> None:
        """Reads until no thread is waiting, the time is over, or a server asks us to wait. A thread's failure does not
        affect the others."""
        self._context.retry_releases()
        while not self._context.stop.is_set() and self._clock.now() < until and self._failures < _FAILURES_IN_A_ROW:
            claimed = self._store.threads.claim(self._source.id, self._owner_id, self._clock.now(), self._run_id)
            if claimed is None:
                return
            try:
                self._read(claimed, until)
            except (SlowDown, CredentialsExhausted) as error:
                self.wait = error if isinstance(error, SlowDown) else None
                return
            except LeaseLost:
                continue
            except Stopped:
                return

    def added_to(self, result: VisitResult) -> VisitResult:
        """Returns the result of a visit with what was read of its threads."""
        left = self._store.threads.count_waiting(self._source.id)
        notes = (message("visit.threads_pending", count=left),) if left else ()
        return result.replace(
            counts=result.counts + self._pages.counts,
            requests=result.requests + self.client.requests,
            finished_at=self._clock.now(),
            notes=(*result.notes, *notes),
        )

    def _read(self, claimed: ClaimedThread, until: datetime) -> None:
        """Reads pages of a thread until its end, the limit of this run, or the end of the time."""
        reading = begin_reading(claimed.thread, self._forum, self._pages_per_run)
        result, marks = ThreadResult(claimed.thread), None
        try:
            is_over = False
            while not is_over and self._clock.now() < until and not self._context.stop.is_set():
                reading, result = self._read_page(claimed, reading, result)
                is_over = reading.marks is not None and reading.marks.is_over
            self._failures = 0
        except (SlowDown, CredentialsExhausted, Stopped, StoreError) as error:
            result = _failed(result, error)
            raise
        except CatchmentError as error:
            result, marks = _failed(result, error), marks_after_failure(reading, error, self._clock.now())
            self._failures += error.code in UNREACHABLE
        except Exception as error:  # a bug of ours that one thread triggers must not stop the others
            log.error("internal error while reading a thread", source=self._source.id, exc_info=error)
            inside = internal_error(error)
            result, marks = _failed(result, inside), marks_after_failure(reading, inside, self._clock.now())
        finally:
            self.client.book()
            self._release(claimed, result, marks)

    def _read_page(
        self, claimed: ClaimedThread, reading: ThreadReading, result: ThreadResult
    ) -> tuple[ThreadReading, ThreadResult]:
        thread_id = claimed.thread.thread_id
        request = options(self.platform).floors(self._source, thread_id, reading.page)
        exchange, shown, thread_page = self.requested(request, thread_id, reading.page, claimed)
        decide = partial(decide_floor_page, reading, thread_page, recheck_ages=self.recheck_ages)
        page = self.write(claimed, exchange, shown, thread_page, decide)
        if page.thread_marks is not None and page.thread_marks.is_stale:
            result = _failed(result, old_copy(self.client.subject, exchange.answer.status))
        return page.reading, result.replace(http_status=exchange.answer.status)

    def requested(
        self, request: Request, thread_id: str, page: int, claimed: ClaimedThread
    ) -> tuple[Exchange, Reading, ThreadPage]:
        """Requests a page of a thread; follows it to another form of the same page, if the platform has one."""
        self._pages.lease = claimed.lease
        request = paced(request, self._kind, self._source)
        for _ in range(4):
            exchange = self.client.send(request, self.platform)
            with self.client.room_for(exchange):
                reading = self.client.read(exchange)
            if reading.thread_page is not None and reading.thread_page.thread_id == thread_id:
                return exchange, reading, reading.thread_page
            if not reading.follow:
                break
            request = paced(reading.follow[0], self._kind, self._source)
        raise Unreadable(
            "{subject}: the answer is not page {page} of thread {thread_id}",
            "check it in a browser",
            status=exchange.answer.status,
            subject=self.client.subject,
            page=page,
            thread_id=thread_id,
        )

    def write(
        self,
        claimed: ClaimedThread,
        exchange: Exchange,
        reading: Reading,
        thread_page: ThreadPage,
        decide: partial[FloorPage],
    ) -> FloorPage:
        """Writes a page of a thread with what it proves."""
        scope = self._source.key if self.platform.IS_SCOPED else ""
        clean = self.client.clean(reading, self.platform, exchange.answer.url, len(exchange.answer.body))
        page = self._pages.page(
            exchange.at,
            clean.items,
            raws=self.client.raw(exchange),
            floors=FloorRange(
                scope, claimed.thread.thread_id, *numbers_shown(self._forum, thread_page, claimed.thread.max_floor)
            ),
        )
        return self._pages.write(page, partial(decide, clean.items, len(clean.skipped), exchange.at))

    def _release(self, claimed: ClaimedThread, result: ThreadResult, marks: ThreadMarks | None) -> None:
        try:
            self._store.threads.end(claimed.lease, self._run_id, result, marks, self._clock.now())
        except LeaseLost:
            log.info("another process took over a thread", source=self._source.id, thread=claimed.thread.thread_id)
        except StoreError:
            self._context.unreleased_leases.append(claimed.lease)

    def release(self, claimed: ClaimedThread) -> None:
        """Releases a thread without a record of its own."""
        try:
            self._store.threads.release(claimed.lease)
        except StoreError:
            self._context.unreleased_leases.append(claimed.lease)


def old_copy(subject: str, status: int) -> StaleAnswer:
    """Returns the error for a page of a thread that is older than the list."""
    return StaleAnswer(about(subject, message("thread.stale")), message("thread.stale_helps"), status=status)


def _failed(result: ThreadResult, error: CatchmentError) -> ThreadResult:
    status = error.status if isinstance(error, PlatformError) else None
    return result.replace(
        http_status=status or result.http_status, error_code=error.code, error=redact(str(error.message))[:500]
    )


# The job


class Reads(Record, frozen=True):
    """What one run of the job read of a source's threads."""

    result: VisitResult
    service: str
    wait: SlowDown | None


class WaitingThreads:
    """Reads on where visits left threads: without the sources' leases, so that several processes share a board."""

    def __init__(self, context: CollectContext, rules: VisitRules, owner_id: int) -> None:
        self._context, self._rules, self._owner_id, self._stop = context, rules, owner_id, context.stop
        self._store, self._clock, self._platforms = context.store, context.clock, context.platforms

    def run(self, started_by: str, closed: Collection[str] = (), but_not: Collection[int] = ()) -> list[Reads]:
        """Reads what waits, for a few minutes. `closed`: kinds in cooldown. Writes nothing if nothing waits."""
        kinds = [kind.name for kind in self._platforms.kinds() if kind.forum is not None and kind.name not in closed]
        waiting = self._store.threads.waiting_sources(kinds) if kinds and not self._stop.is_set() else []
        sources = [source for source in waiting if source.id not in but_not]
        if not sources:
            return []
        run_id = self._store.runs.begin("read-threads", started_by, self._owner_id, self._clock.now())
        try:
            with ThreadPoolExecutor(min(len(sources), 8), thread_name_prefix="threads") as workers:
                futures = [workers.submit(self._read, source, run_id) for source in sources]
                wait(futures)
            return [future.result() for future in futures]
        finally:
            self._store.runs.finish(run_id, self._clock.now(), is_cut_off=self._stop.is_set())

    def _read(self, source: Source, run_id: int) -> Reads:
        platform, kind = self._platforms.of_kind(source.kind), self._platforms.kind(source.kind)
        assert platform is not None
        assert kind is not None
        began = self._clock.now()
        result = VisitResult(source.id, source.name, source.kind, Outcome.SUCCEEDED, started_at=began)
        reader = ThreadReader(self._context, self._rules, platform, kind, source, self._owner_id, run_id)
        reader.run(began + timedelta(seconds=MOST_THREAD_SECONDS))
        result = reader.added_to(result)
        self._store.threads.note(run_id, source, result, reader.client.new_attempts(), self._clock.now())
        return Reads(result, reader.client.service, reader.wait)
