"""Scheduler: visits many sources at once, claims as many as there are free workers, and isolates their failures."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from threading import Event, Lock
from types import MappingProxyType
from typing import Any, Protocol

from catchment import logs
from catchment.clock import Clock
from catchment.collect.visit import Visited
from catchment.errors import LeaseLost, NotFound, StoreError
from catchment.messages import about, message
from catchment.model import (
    EndCode,
    Lease,
    Outcome,
    Record,
    Source,
    View,
    VisitResult,
)
from catchment.policy.visit import VisitRules
from catchment.store import Presence, Store
from catchment.store.leases import HEARTBEAT
from catchment.store.sources.sources import Claimed

log = logs.logger(__name__)

_ENDINGS_AT_ONCE = 50
_CLAIMED_AHEAD = 45
"""Sources asked for by id that are claimed before a worker is free."""
_KEPT_FREE = 2
"""Workers that answers in reading do not occupy, so that slow ones do not keep other sources from being visited."""
_MOST_REPLACED = 4
"""A visit that waits for its turn to read needs no more than its answer's memory: this many get a replacement."""
_FIRST_WORKERS = 1
_RAMP_SECONDS = 0.02
_BUSY = 0.5
"""A run begins with one worker, and has twice as many whenever these wait for servers: within this time, fewer visits
than workers end, or the process uses less than this share of a core. Where servers answer at once, more workers would
only take the interpreter away from each other: five need a sixth more CPU than one for the same visits."""
_PATIENCE_SECONDS = 0.5
"""How long finished visits may wait for others: to be looked at, and to be written."""
Claim = Callable[["Queue"], list[Claimed]]
"""Claims as many sources as there is room for; an empty list: there are none left."""
Seen = Callable[[VisitResult], None]


class KindLimit(Record, frozen=True):
    """Limit for kinds of which only a few sources are visited at once, however many workers are free."""

    batch: int
    """How many are claimed at a time."""
    at_once: int


class Queue:
    """The claimed sources of a run: in progress, or waiting for a worker. Decides which may begin. Thread-safe."""

    def __init__(self, hands: int, kind_limits: Mapping[str, KindLimit]) -> None:
        """`kind_limits` are the limits by kind; sources of other kinds take any free worker."""
        self.hands, self._kind_limits = hands, kind_limits
        self._lock = Lock()
        self._waiting: deque[Claimed] = deque()
        self._at_work: Counter[str] = Counter()
        """By kind."""
        self.at_work = 0
        self._is_held = False

    def __bool__(self) -> bool:
        with self._lock:
            return self.at_work > 0 or bool(self._waiting)

    @property
    def free(self) -> int:
        """How many more workers are free; sources that wait for their kind's limit need none yet."""
        with self._lock:
            free = self.hands - self.at_work
            if free > 0 and self._waiting:
                free -= sum(1 for claim in self._waiting if self._lane(claim) is None)
            return max(0, free)

    def room(self) -> dict[str, int]:
        """Returns how many sources of each limited kind may be claimed: a batch, once all of the last have begun."""
        if not self._kind_limits:
            return {}
        with self._lock:
            waiting = {claim.source.kind for claim in self._waiting}
            is_full = self.at_work >= self.hands
        return {kind: 0 if is_full or kind in waiting else lane.batch for kind, lane in self._kind_limits.items()}

    def join(self, claimed: Sequence[Claimed]) -> None:
        with self._lock:
            self._waiting.extend(claimed)

    def begin(self) -> list[Claimed]:
        """Returns the sources that may begin now, and counts them as in progress."""
        begun: list[Claimed] = []
        with self._lock:
            self._is_held = False
            while (claimed := self._next()) is not None:
                begun.append(claimed)
        return begun

    def begin_one(self) -> Claimed | None:
        """Returns one source that may begin now, counted as in progress; none after `hold`."""
        with self._lock:
            return None if self._is_held else self._next()

    def hold(self) -> None:
        """Lets no worker go on by itself until `begin` is called: what may begin has to be decided anew."""
        with self._lock:
            self._is_held = True

    def done(self, kind: str) -> None:
        with self._lock:
            self._at_work[kind] -= 1
            self.at_work -= 1

    def _next(self) -> Claimed | None:
        """Takes the first of the waiting sources that may begin; those held up by their kind's limit keep their
        places."""
        if self.at_work >= self.hands:
            return None
        for position, claimed in enumerate(self._waiting):
            lane, kind = self._lane(claimed), claimed.source.kind
            if lane is None or self._at_work[kind] < lane.at_once:
                del self._waiting[position]
                self._at_work[kind] += 1
                self.at_work += 1
                return claimed
        return None

    def _lane(self, claimed: Claimed) -> KindLimit | None:
        return self._kind_limits.get(claimed.source.kind)

    def leave(self, is_leaving: Callable[[Claimed], bool]) -> list[Claimed]:
        """Removes and returns waiting sources that leave without having been visited."""
        with self._lock:
            leaving = [claim for claim in self._waiting if is_leaving(claim)]
            gone = {claim.source.id for claim in leaving}
            self._waiting = deque(claim for claim in self._waiting if claim.source.id not in gone)
        return leaving


class Finished:
    """Visits that workers have finished, until the thread of the run takes them. Thread-safe.

    That thread is woken for many at once: woken for each, it would take the interpreter away from the workers as often,
    and cost more than writing down what they found.
    """

    def __init__(self) -> None:
        self._visits: deque[Visited] = deque()
        self._is_worth_a_look = Event()
        self.count = 0
        """How many visits were taken; with those that were not, how many are finished."""

    def __len__(self) -> int:
        """How many visits have been finished so far."""
        return self.count + len(self._visits)

    def add(self, visited: Visited) -> None:
        self._visits.append(visited)
        if len(self._visits) >= _ENDINGS_AT_ONCE:
            self.look()

    def look(self) -> None:
        """Wakes the thread of the run now."""
        self._is_worth_a_look.set()

    def wait(self, seconds: float = _PATIENCE_SECONDS) -> bool:
        """Waits until many visits are finished, or a worker has nothing to do; not for long. Returns whether it is
        so."""
        is_worth_a_look = self._is_worth_a_look.wait(seconds)
        if is_worth_a_look:
            # Not after the time was up: somebody may have called just then.
            self._is_worth_a_look.clear()
        return is_worth_a_look

    def take(self) -> list[Visited]:
        """Returns the visits that were finished since the last call."""
        visits = [self._visits.popleft() for _ in range(len(self._visits))]
        self.count += len(visits)
        return visits


class Visits(Protocol):
    """Visits one source at a time and records the result."""

    store: Store
    clock: Clock
    rules: VisitRules

    def visit(self, claimed: Claimed, run_id: int) -> Visited: ...

    def kinds_in_cooldown(self) -> Mapping[str, datetime]: ...


class StillDue(Record, frozen=True):
    """What a run leaves to the next one."""

    deferred: int = 0
    """Sources that were begun, and wait for our own limits."""
    not_begun: int = 0
    """Sources that are due, and were not begun."""
    next_at: datetime | None = None
    """When the first of them can be collected; None: there are none."""

    @property
    def count(self) -> int:
        return self.deferred + self.not_begun


def still_due(
    results: Sequence[VisitResult], due: Mapping[str, int], closed: Mapping[str, datetime], now: datetime
) -> StillDue:
    """Returns what stays due after these results: `due` counts the due sources of each kind, `closed` has the kinds in
    cooldown with its end."""
    deferred = [result for result in results if result.outcome == Outcome.DEFERRED]
    times = [visit_result.deferred_until or now for visit_result in deferred]
    times += [closed.get(kind, now) for kind, count in due.items() if count]
    return StillDue(len(deferred), sum(due.values()), min(times, default=None))


class Scheduler:
    """Runs the collection of sources for one process."""

    def __init__(
        self,
        visitor: Visits,
        presence: Presence,
        stop: Event,
        concurrency: int,
        kind_limits: Mapping[str, KindLimit] = MappingProxyType({}),
        readers: Callable[[], int] = lambda: 0,
    ) -> None:
        """`readers` returns how many visits are reading an answer or waiting to read one."""
        self.visitor, self.presence, self.stop, self.concurrency = visitor, presence, stop, concurrency
        self._kind_limits, self._readers = kind_limits, readers
        self.store, self.clock = visitor.store, visitor.clock
        self._heard_at = self.clock.now()

    def due(
        self,
        job: str,
        started_by: str,
        seen: Seen = lambda _: None,
        *,
        at_most: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[VisitResult]:
        """Visits everything that is due now, or at most `at_most`, or only `kinds`. Logs and writes nothing if nothing
        is due."""
        # By the time the run began: a source that it has visited is hardly ever due again within it.
        began = self.clock.now()
        left = at_most
        # Except after a walk that continued an earlier one: its newest items are as old as the first page of that walk.
        # A run has one record per source, so the source waits for the next run.
        visited: set[int] = set()

        def claim(queue: Queue) -> list[Claimed]:
            nonlocal left
            # Kinds in cooldown are skipped; their sources stay due.
            closed = self.visitor.kinds_in_cooldown()
            if closed:
                self._give_back(queue.leave(lambda claimed_source: claimed_source.source.kind in closed))
            rules, most = self.visitor.rules, {**queue.room(), **dict.fromkeys(closed, 0)}
            room = queue.free + self.concurrency if queue.free else 0
            if kinds is not None:
                most, room = {kind: most.get(kind, room) for kind in kinds}, 0
            if left == 0:
                return []
            claimed = self.store.sources.claim_due(
                self.presence.owner_id, rules.intervals, rules.minutes(""), began, room, most, left, without=visited
            )
            visited.update(claimed_source.source.id for claimed_source in claimed)
            left = None if left is None else left - len(claimed)
            return claimed

        return self._collect(claim, job, started_by, seen)[0]

    def count_due(self, limit: int) -> int:
        """Returns how many sources could be claimed now, counted up to `limit`."""
        rules, closed = self.visitor.rules, dict.fromkeys(self.visitor.kinds_in_cooldown(), 0)
        return len(self.store.sources.overdue(rules.intervals, rules.minutes(""), self.clock.now(), limit, most=closed))

    def requested(self, job: str, started_by: str, seen: Seen = lambda _: None) -> list[VisitResult]:
        """Visits requested sources whatever their schedule says, including those requested while it runs."""
        taken: set[int] = set()

        def claim(queue: Queue) -> list[Claimed]:
            room = queue.free if 0 not in queue.room().values() else 0
            now = self.clock.now()
            # Each once: whatever its result, it must not keep the others waiting.
            requested = self.store.sources.requested(now, room + len(taken))
            others = ((source_id, at) for source_id, at in requested.items() if source_id not in taken)
            waiting = dict(islice(others, room))
            taken.update(waiting)
            return self.store.sources.claim_requested(waiting, self.presence.owner_id, now)

        return self._collect(claim, job, started_by, seen)[0]

    def these(
        self,
        source_ids: Sequence[int],
        job: str,
        started_by: str,
        seen: Seen = lambda _: None,
        *,
        is_over: Callable[[], bool] | None = None,
        task_id: int | None = None,
        request_id: str | None = None,
    ) -> list[VisitResult]:
        """Visits these sources whatever their schedule says. A source that another process is collecting is skipped,
        and the result names that process. Once `is_over`, no further source begins. `task_id`, `request_id`: what the
        run is for."""
        left = deque(source_ids)
        busy: list[int] = []

        def claim(queue: Queue) -> list[Claimed]:
            claimed: list[Claimed] = []
            if is_over is not None and is_over():
                left.extendleft(reversed(self._give_back(queue.leave(lambda _: True))))
                return claimed
            # Sources asked for by id may wait in the queue: one claim for many costs as much as one for one. A kind's
            # batch limit leaves due sources to other processes; these were asked of this one.
            most = queue.free + _CLAIMED_AHEAD if queue.free and 0 not in queue.room().values() else 0
            while not claimed and (ids := list(islice(left, most))):
                claimed = self.store.sources.claim(ids, self.presence.owner_id, self.clock.now())
                for _ in ids:
                    left.popleft()
                taken = {claimed_source.source.id for claimed_source in claimed}
                busy.extend(id_ for id_ in ids if id_ not in taken)
            return claimed

        results, given_back = self._collect(
            claim,
            job,
            started_by,
            seen,
            is_watched=is_over is not None,
            request_id=request_id,
            task_id=task_id,
        )
        results += self._told([self._held_by_another(source_id) for source_id in busy], seen)
        results += self._told([self._not_visited(source_id) for source_id in (*given_back, *left)], seen)
        return results

    def still_due(self, results: Sequence[VisitResult]) -> StillDue:
        """Returns what is still due after a run over everything that was due, with these results."""
        rules, now = self.visitor.rules, self.clock.now()
        waiting = self.store.lateness_stats.waiting(rules.intervals, rules.minutes(""), now)
        return still_due(results, {due.kind: due.due for due in waiting}, self.visitor.kinds_in_cooldown(), now)

    def _collect(
        self,
        claim: Claim,
        job: str,
        started_by: str,
        seen: Seen,
        *,
        is_watched: bool = False,
        request_id: str | None = None,
        task_id: int | None = None,
    ) -> tuple[list[VisitResult], list[int]]:
        """Returns the results, and the sources that were claimed and not visited because a stop was requested.
        `is_watched`: `claim` decides after each visit whether further sources begin."""
        queue = Queue(min(_FIRST_WORKERS, self.concurrency), self._kind_limits)
        queue.join([] if self.stop.is_set() else claim(queue))
        if not queue:
            return [], []
        run_id = self._begun(job, started_by, queue, request_id, task_id)
        # Log lines name the run, and the request or task behind it; the visits have threads of their own.
        with logs.bound(run=run_id):
            return self._run(claim, queue, run_id, seen, is_watched=is_watched)

    def _run(
        self, claim: Claim, queue: Queue, run_id: int, seen: Seen, *, is_watched: bool
    ) -> tuple[list[VisitResult], list[int]]:
        context = logs.context()
        finished = Finished()
        results: list[VisitResult] = []
        unwritten: list[Visited] = []
        unwritten_since = time.monotonic()
        given_back: list[int] = []
        is_over = False
        with ThreadPoolExecutor(self.concurrency + _MOST_REPLACED, thread_name_prefix="collect") as workers:

            def begin(claimed_source: Claimed) -> None:
                workers.submit(self._work, claimed_source, queue, run_id, finished, context, is_watched=is_watched)

            while not is_over:
                for claimed_source in queue.begin():
                    begin(claimed_source)
                self._wait(queue, finished, begin)
                # Before the visits are taken: a source is done only after its visit was added to them.
                is_idle = not queue
                visits = finished.take()
                if not unwritten:
                    unwritten_since = time.monotonic()
                unwritten += [visited for visited in visits if visited.unwritten]
                # Many visit ends in one transaction; but none waits for long.
                is_late = time.monotonic() - unwritten_since > _PATIENCE_SECONDS
                if len(unwritten) >= _ENDINGS_AT_ONCE or is_late or not visits or is_idle:
                    results += self._written(unwritten, seen)
                    unwritten = []
                results += self._told([visited.result for visited in visits if not visited.unwritten], seen)
                self._heartbeat()
                if queue.hands >= self.concurrency:
                    queue.hands = self.concurrency + self._replaced()
                queue.join(self._claimed(claim, queue))
                given_back += self._left_behind(queue)
                is_over = is_idle and not queue
        results += self._written(unwritten, seen)
        with self._outlasting("finish the run"):
            self.store.runs.finish(run_id, self.clock.now(), is_cut_off=self.stop.is_set())
        return results, given_back

    def _wait(self, queue: Queue, finished: Finished, begin: Callable[[Claimed], None]) -> None:
        """Waits until there is something to look at. Meanwhile, more workers begin if those at work wait for
        servers."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while queue.hands < self.concurrency:
            count, began, spent = len(finished), time.monotonic(), time.process_time()
            if began >= until or finished.wait(_RAMP_SECONDS) or self.stop.is_set():
                return
            is_busy = time.process_time() - spent >= _BUSY * (time.monotonic() - began)
            if len(finished) - count < queue.hands or not is_busy:
                queue.hands = min(2 * queue.hands, self.concurrency)
                while (claimed_source := queue.begin_one()) is not None:
                    begin(claimed_source)
                if queue.free:
                    return  # more sources have to be claimed first
        finished.wait()

    def _replaced(self) -> int:
        """Returns how many workers take the place of those that are occupied by reading, beyond what may be."""
        may_read = max(1, self.concurrency - _KEPT_FREE)
        return min(_MOST_REPLACED, max(0, self._readers() - may_read))

    def _left_behind(self, queue: Queue) -> list[int]:
        """Returns the sources that no longer begin because a stop was requested: they stay due."""
        return self._give_back(queue.leave(lambda _: True)) if self.stop.is_set() else []

    def _give_back(self, claimed: Sequence[Claimed]) -> list[int]:
        """Releases sources without having visited them: nothing was requested, and nothing is recorded."""
        try:
            self.store.sources.give_back([claimed_source.lease for claimed_source in claimed])
        except StoreError:
            for claim in claimed:
                self.presence.release_later(claim.lease)
        return [claimed_source.source.id for claimed_source in claimed]

    def _begun(self, job: str, started_by: str, queue: Queue, request_id: str | None, task_id: int | None) -> int:
        try:
            request_id, now = request_id or logs.context().get("request_id"), self.clock.now()
            return self.store.runs.begin(job, started_by, self.presence.owner_id, now, request_id, task_id)
        except StoreError:
            for claim in queue.leave(lambda _: True):
                self.presence.release_later(claim.lease)
            raise

    def _work(
        self,
        claimed: Claimed | None,
        queue: Queue,
        run_id: int,
        finished: Finished,
        context: Mapping[str, Any],
        *,
        is_watched: bool,
    ) -> None:
        """Visits one source after another, until the thread of the run has to look what may begin next."""
        with logs.bound(**context):
            while claimed is not None:
                visited = self._visit(claimed, run_id)
                if is_watched or visited.result.outcome not in (Outcome.SUCCEEDED, Outcome.UNCHANGED):
                    # After a failure, its platform may be in cooldown.
                    queue.hold()
                finished.add(visited)
                queue.done(claimed.source.kind)
                claimed = None if self.stop.is_set() else queue.begin_one()
        finished.look()

    def _visit(self, claimed: Claimed, run_id: int) -> Visited:
        try:
            return self.visitor.visit(claimed, run_id)
        except StoreError as error:
            return Visited(self._unwritable(claimed.source, claimed.lease, error))
        except BaseException as error:  # whatever it is, even an exit, must not keep the run waiting forever
            log.error("internal error during a visit", source=claimed.source.id, exc_info=error)
            inside = StoreError(
                "{source}: internal error ({error_type})",
                source=claimed.source.name,
                error_type=type(error).__name__,
            )
            return Visited(self._unwritable(claimed.source, claimed.lease, inside))

    def _written(self, unwritten: Sequence[Visited], seen: Seen) -> list[VisitResult]:
        finished = [visited.unwritten for visited in unwritten if visited.unwritten]
        try:
            lost = {visit.source.id for visit in self.store.page_writer.end(finished)} if finished else set()
        except StoreError as error:
            return self._told([self._unwritable(visit.source, visit.lease, error) for visit in finished], seen)
        results = [visited.result for visited in unwritten]
        return self._told([_taken_over(result) if result.source_id in lost else result for result in results], seen)

    def _unwritable(self, source: Source, lease: Lease, error: StoreError) -> VisitResult:
        """The database was unavailable when the visit ended: the source stays due, and is free once it is back."""
        self.presence.release_later(lease)
        return VisitResult(
            source.id,
            source.name,
            source.kind,
            Outcome.FAILED,
            error_code=error.code,
            error=str(error),
            is_retryable=error.retryable,
        )

    def _told(self, results: list[VisitResult], seen: Seen) -> list[VisitResult]:
        for result in results:
            _tell(result)
            seen(result)
        return results

    def _claimed(self, claim: Claim, queue: Queue) -> list[Claimed]:
        if self.stop.is_set():
            return []
        with self._outlasting("claim more"):
            return claim(queue)
        return []

    def _heartbeat(self) -> None:
        now = self.clock.now()
        if now - self._heard_at >= HEARTBEAT:
            self._heard_at = now
            with self._outlasting("say that we live"):
                self.presence.heartbeat(now)

    @contextmanager
    def _outlasting(self, action: str) -> Iterator[None]:
        """Logs a database error and continues: visits in progress must still be finished and reported."""
        try:
            yield
        except StoreError as error:
            if not error.is_logged:
                log.error("a database operation failed", operation=action, code=error.code, error=str(error))

    def _not_visited(self, source_id: int) -> VisitResult:
        words = message("visit.not_started")
        return _skipped(source_id, EndCode.NOT_VISITED, words)

    def _held_by_another(self, source_id: int) -> VisitResult:
        try:
            source = self.store.sources.get(source_id)
        except NotFound as error:
            return _skipped(source_id, error.code, message("visit.removed"))
        holder = self.store.sources.holder(source_id)
        holder_name = (
            message("visit.holder", work=holder.work, pid=holder.pid, machine=holder.machine)
            if holder
            else message("visit.another_process")
        )
        words = message("visit.held", name=source.name, holder=holder_name)
        return VisitResult(source.id, source.name, source.kind, Outcome.SKIPPED, error_code=EndCode.HELD, error=words)


def _skipped(source_id: int, code: str, words: str) -> VisitResult:
    """Returns a result for a source of which only the id is known here."""
    source_name = f"source {source_id}"
    return VisitResult(
        source_id, source_name, "", Outcome.SKIPPED, error_code=code, error=about(source_name, words), is_retryable=True
    )


def _taken_over(result: VisitResult) -> VisitResult:
    return result.replace(
        outcome=Outcome.SKIPPED,
        error_code=LeaseLost.code,
        error=message("visit.taken_over", name=result.name),
        is_retryable=True,
    )


def _tell(result: VisitResult) -> None:
    fields = {"source": result.source_id, "name": result.name, "kind": result.kind}
    if result.outcome == Outcome.FAILED:
        log.warning("source failed", **fields, code=result.error_code, error=result.error)
    elif result.outcome == Outcome.DEFERRED:
        until = result.deferred_until.isoformat() if result.deferred_until else None
        log.info("source deferred", **fields, until=until, reason=result.error)
    elif result.counts.new or result.counts.updated:
        log.info("source collected", **fields, new=result.counts.new, updated=result.counts.updated)


class ErrorView(View, frozen=True):
    code: str | None
    message: str
    retryable: bool


class ResultView(View, frozen=True):
    """The result of collecting one source."""

    source_id: int
    name: str
    kind: str
    outcome: Outcome
    new: int
    updated: int
    duplicate: int
    invalid: int
    requests: int
    deferred_until: datetime | None
    watermark_updated: bool
    duration_seconds: float
    notes: tuple[str, ...]
    error: ErrorView | None


class CollectSummary(View, frozen=True):
    """The result of one `collect`."""

    sources: int
    succeeded: int
    failed: int
    deferred: int
    skipped: int
    new: int
    updated: int
    duplicate: int
    invalid: int
    requests: int
    duration_seconds: float
    still_due: int
    next_due_at: datetime | None
    results: tuple[ResultView, ...]


def summed(
    results: Sequence[VisitResult], began: datetime, now: datetime, left: StillDue | None = None
) -> CollectSummary:
    """Returns the summary `collect` shows; `left` is what is still due, if more than these results were due."""
    left = left or still_due(results, {}, {}, now)
    outcomes = [result.outcome for result in results]
    return CollectSummary(
        sources=len(results),
        succeeded=sum(1 for outcome in outcomes if outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED)),
        failed=outcomes.count(Outcome.FAILED),
        deferred=outcomes.count(Outcome.DEFERRED),
        skipped=outcomes.count(Outcome.SKIPPED),
        new=sum(result.counts.new for result in results),
        updated=sum(result.counts.updated for result in results),
        duplicate=sum(result.counts.duplicate for result in results),
        invalid=sum(result.counts.invalid for result in results),
        requests=sum(result.requests for result in results),
        duration_seconds=round((now - began).total_seconds(), 3),
        still_due=left.count,
        next_due_at=left.next_at,
        results=tuple(_result_view(result) for result in results),
    )


def _result_view(result: VisitResult) -> ResultView:
    error = None
    if result.error is not None:
        error = ErrorView(result.error_code, result.error, bool(result.is_retryable))
    return ResultView(
        result.source_id,
        result.name,
        result.kind,
        result.outcome,
        result.counts.new,
        result.counts.updated,
        result.counts.duplicate,
        result.counts.invalid,
        result.requests,
        result.deferred_until,
        result.watermark_after != result.watermark_before,
        _seconds(result),
        result.notes,
        error,
    )


def emptiness(results: Sequence[VisitResult]) -> dict[str, int]:
    """Returns how many of the visits found nothing new, and how many failed."""
    is_empty = [
        result.outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED) and not result.counts.new for result in results
    ]
    return {"empty": sum(is_empty), "failed": sum(1 for result in results if result.outcome == Outcome.FAILED)}


def _seconds(result: VisitResult) -> float:
    """Returns how long the visit took; 0 if there was none."""
    if result.started_at is None or result.finished_at is None:
        return 0.0
    return round((result.finished_at - result.started_at).total_seconds(), 3)
