"""Visiting many sources at once: claims as many as there are free hands, and keeps one's failure from the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Event
from types import MappingProxyType
from typing import Protocol

import structlog

from catchment.clock import Clock
from catchment.collect.asking import Rules
from catchment.collect.line import Lane, Line
from catchment.collect.visit import Visited
from catchment.errors import LeaseLost, NotFound, StoreError
from catchment.model import Lease, Outcome, Result, Source
from catchment.store import Presence, Store
from catchment.store.sources import Claimed

log = structlog.get_logger(__name__)

HEARTBEAT = timedelta(seconds=20)
_ENDINGS_AT_ONCE = 20
_PATIENCE_SECONDS = 0.5
Claim = Callable[[Line], list[Claimed]]
"""Claims as many sources as there is room for; an empty list: there are none left."""
Seen = Callable[[Result], None]


class Visits(Protocol):
    """Whoever reads one source at a time, and writes down how that ended."""

    store: Store
    clock: Clock
    rules: Rules

    def visit(self, claimed: Claimed, run_id: int) -> Visited: ...

    def closed_kinds(self) -> frozenset[str]: ...


class Rounds:
    """Collects rounds of sources for one process."""

    def __init__(
        self,
        visitor: Visits,
        presence: Presence,
        stop: Event,
        concurrency: int,
        lanes: Mapping[str, Lane] = MappingProxyType({}),
    ) -> None:
        self.visitor, self.presence, self.stop, self.concurrency = visitor, presence, stop, concurrency
        self._lanes = lanes
        self.store, self.clock = visitor.store, visitor.clock
        self._heard_at = self.clock.now()

    def due(self, job: str, started_by: str, seen: Seen = lambda _: None) -> list[Result]:
        """Everything that is due now. Silent, and without a trace in the database, if nothing is."""
        # By the time the round began: what it has visited cannot become due again within it.
        began = self.clock.now()

        def claim(line: Line) -> list[Claimed]:
            # Who must wait is left alone, and its sources stay as due as they are.
            closed = self.visitor.closed_kinds()
            self._give_back(line.leave(lambda one: one.source.kind in closed))
            rules, most = self.visitor.rules, {**line.room(), **dict.fromkeys(closed, 0)}
            return self.store.sources.claim_due(
                self.presence.owner_id, rules.intervals, rules.minutes(""), began, line.free, most
            )

        return self._collect(claim, job, started_by, seen)[0]

    def these(self, source_ids: Sequence[int], job: str, started_by: str, seen: Seen = lambda _: None) -> list[Result]:
        """These sources, whatever their schedule says. What somebody else is collecting is skipped, and says who."""
        left = deque(source_ids)
        held: list[int] = []

        def claim(line: Line) -> list[Claimed]:
            claimed: list[Claimed] = []
            # Asked for by name, a few may wait in line for a hand: one claim for many costs as much as one for one. The
            # batch of a lane leaves what is due to other processes, too; this was asked of us.
            most = line.free + self.concurrency if line.free and 0 not in line.room().values() else 0
            while not claimed and (ids := list(islice(left, most))):
                claimed = self.store.sources.claim(ids, self.presence.owner_id, self.clock.now())
                for _ in ids:
                    left.popleft()
                taken = {one.source.id for one in claimed}
                held.extend(one for one in ids if one not in taken)
            return claimed

        results, given_back = self._collect(claim, job, started_by, seen)
        results += self._told([self._held_by_another(one) for one in held], seen)
        results += self._told([self._not_visited(one) for one in (*given_back, *left)], seen)
        return results

    def _collect(self, claim: Claim, job: str, started_by: str, seen: Seen) -> tuple[list[Result], list[int]]:
        """What the visits came to, and the sources that were claimed and not visited, because a stop was asked for."""
        line = Line(self.concurrency, self._lanes)
        line.join([] if self.stop.is_set() else claim(line))
        if not line:
            return [], []
        run_id = self._begun(job, started_by, line)
        done: SimpleQueue[Visited] = SimpleQueue()
        results: list[Result] = []
        unwritten: list[Visited] = []
        given_back: list[int] = []
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="collect") as hands:
            while line:
                for one in line.begin():
                    hands.submit(self._visit, one, run_id, done)
                came = _waited_for(done)
                for visited in came:
                    line.done(visited.result.kind)
                unwritten += [one for one in came if one.unwritten]
                # Many endings in one transaction; but nobody waits for them longer than for one slow answer.
                if len(unwritten) >= _ENDINGS_AT_ONCE or not came or not line.at_work:
                    results += self._written(unwritten, seen)
                    unwritten = []
                results += self._told([one.result for one in came if not one.unwritten], seen)
                self._heartbeat()
                line.join(self._claimed(claim, line))
                given_back += self._left_behind(line)
        results += self._written(unwritten, seen)
        with self._outlasting("finish the run"):
            self.store.runs.finish(run_id, self.clock.now(), is_cut_off=self.stop.is_set())
        return results, given_back

    def _left_behind(self, line: Line) -> list[int]:
        """Those that no longer begin, because a stop was asked for: they are as due as before."""
        return self._give_back(line.leave(lambda _: self.stop.is_set()))

    def _give_back(self, claimed: Sequence[Claimed]) -> list[int]:
        """Free them without having visited them: nothing was asked, and nothing is recorded."""
        try:
            self.store.sources.give_back([one.lease for one in claimed])
        except StoreError:
            for one in claimed:
                self.presence.owe(one.lease)
        return [one.source.id for one in claimed]

    def _begun(self, job: str, started_by: str, line: Line) -> int:
        try:
            return self.store.runs.begin(job, started_by, self.presence.owner_id, self.clock.now())
        except StoreError:
            for one in line.leave(lambda _: True):
                self.presence.owe(one.lease)
            raise

    def _visit(self, claimed: Claimed, run_id: int, done: SimpleQueue[Visited]) -> None:
        try:
            done.put(self.visitor.visit(claimed, run_id))
        except StoreError as error:
            done.put(Visited(self._unwritable(claimed.source, claimed.lease, error)))
        except Exception as error:  # a bug of ours must not keep the round waiting for ever
            log.error("a visit failed inside", source=claimed.source.id, exc_info=error)
            inside = StoreError(f"{claimed.source.name}: an error inside catchment ({type(error).__name__})")
            done.put(Visited(self._unwritable(claimed.source, claimed.lease, inside)))

    def _written(self, unwritten: Sequence[Visited], seen: Seen) -> list[Result]:
        closings = [one.unwritten for one in unwritten if one.unwritten]
        try:
            lost = {one.source.id for one in self.store.pages.end(closings)} if closings else set()
        except StoreError as error:
            return self._told([self._unwritable(one.source, one.lease, error) for one in closings], seen)
        results = [one.result for one in unwritten]
        return self._told([_taken_over(one) if one.source_id in lost else one for one in results], seen)

    def _unwritable(self, source: Source, lease: Lease, error: StoreError) -> Result:
        """The database was away when the visit ended: the source is as due as before, and free once it is back."""
        self.presence.owe(lease)
        return Result(
            source.id,
            source.name,
            source.kind,
            Outcome.FAILED,
            error_code=error.code,
            error=str(error),
            is_retryable=error.retryable,
        )

    def _told(self, results: list[Result], seen: Seen) -> list[Result]:
        for one in results:
            _tell(one)
            seen(one)
        return results

    def _claimed(self, claim: Claim, line: Line) -> list[Claimed]:
        if self.stop.is_set():
            return []
        with self._outlasting("claim more"):
            return claim(line)
        return []

    def _heartbeat(self) -> None:
        now = self.clock.now()
        if now - self._heard_at >= HEARTBEAT:
            self._heard_at = now
            with self._outlasting("say that we live"):
                self.presence.heartbeat(now)

    @contextmanager
    def _outlasting(self, deed: str) -> Iterator[None]:
        """The database may be away for a while. What is under way must still be brought home, and told."""
        try:
            yield
        except StoreError as error:
            log.error("the database would not do it", deed=deed, code=error.code, error=str(error))

    def _not_visited(self, source_id: int) -> Result:
        words = "not visited: a stop was asked for, or the database would not let us claim it"
        return _skipped(source_id, "NOT_VISITED", words)

    def _held_by_another(self, source_id: int) -> Result:
        try:
            source = self.store.sources.get(source_id)
        except NotFound as error:
            return _skipped(source_id, error.code, "removed meanwhile")
        holder = self.store.sources.holder(source_id)
        who = f"{holder.work} (process {holder.pid} on {holder.machine})" if holder else "another process"
        words = f"{source.name} is being collected by {who} at this moment"
        return Result(source.id, source.name, source.kind, Outcome.SKIPPED, error_code="HELD", error=words)


def _waited_for(done: SimpleQueue[Visited]) -> list[Visited]:
    """Those that are done, once at least one is; none after a while."""
    try:
        came = [done.get(timeout=_PATIENCE_SECONDS)]
    except Empty:
        return []
    while not done.empty():
        came.append(done.get())
    return came


def _skipped(source_id: int, code: str, words: str) -> Result:
    """For a source of which nothing but its number is known here."""
    name = f"source {source_id}"
    return Result(source_id, name, "", Outcome.SKIPPED, error_code=code, error=f"{name}: {words}", is_retryable=True)


def _taken_over(result: Result) -> Result:
    return result.plus(
        outcome=Outcome.SKIPPED,
        error_code=LeaseLost.code,
        error=f"{result.name} was taken over by another process meanwhile",
        is_retryable=True,
    )


def _tell(result: Result) -> None:
    told = {"source": result.source_id, "name": result.name, "kind": result.kind}
    if result.outcome == Outcome.FAILED:
        log.warning("source failed", **told, code=result.error_code, error=result.error)
    elif result.counts.new or result.counts.updated:
        log.info("source collected", **told, new=result.counts.new, updated=result.counts.updated)


def summed(results: Sequence[Result], began: datetime, now: datetime) -> dict[str, object]:
    """What `collect` answers."""
    outcomes = [one.outcome for one in results]
    return {
        "sources": len(results),
        "succeeded": sum(1 for one in outcomes if one in (Outcome.SUCCEEDED, Outcome.UNCHANGED)),
        "failed": outcomes.count(Outcome.FAILED),
        "skipped": outcomes.count(Outcome.SKIPPED),
        "new": sum(one.counts.new for one in results),
        "updated": sum(one.counts.updated for one in results),
        "duplicate": sum(one.counts.duplicate for one in results),
        "invalid": sum(one.counts.invalid for one in results),
        "requests": sum(one.requests for one in results),
        "duration_seconds": round((now - began).total_seconds(), 3),
        "results": [shown(one) for one in results],
    }


def emptiness(results: Sequence[Result]) -> dict[str, int]:
    """How many of them brought nothing new, and how many failed."""
    is_empty = [one.outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED) and not one.counts.new for one in results]
    return {"empty": sum(is_empty), "failed": sum(1 for one in results if one.outcome == Outcome.FAILED)}


def shown(result: Result) -> dict[str, object]:
    error = None
    if result.error is not None:
        error = {"code": result.error_code, "message": result.error, "retryable": bool(result.is_retryable)}
    return {
        "source_id": result.source_id,
        "name": result.name,
        "kind": result.kind,
        "outcome": str(result.outcome),
        "new": result.counts.new,
        "updated": result.counts.updated,
        "duplicate": result.counts.duplicate,
        "invalid": result.counts.invalid,
        "requests": result.requests,
        "error": error,
    }
