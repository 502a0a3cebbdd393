"""Bring one source up to date: its walks one after the other, and whatever happens on the way."""

from __future__ import annotations

from threading import Lock

import structlog

from catchment.clock import Clock
from catchment.collect.asking import Rules
from catchment.collect.closings import Closings
from catchment.collect.leaving import Leaving
from catchment.collect.more import More
from catchment.collect.reachability import Reachability, host_of
from catchment.collect.walking import Plan, Walking
from catchment.errors import CatchmentError, LeaseLost, PlatformError, SlowDown, Stopped, VaultError
from catchment.fetch import Fetch
from catchment.hot import Hot
from catchment.model import Answer, Kind, Outcome, Platform, Record, Result, Source
from catchment.platforms import Platforms
from catchment.store import Store
from catchment.store.sources import Claimed
from catchment.store.visits import Closing

log = structlog.get_logger(__name__)


class Visited(Record, frozen=True):
    """What a visit came to. An ending that is not written yet is for the round to write, with others of its sort."""

    result: Result
    unwritten: Closing | None = None


class Visitor:
    """Visits sources. One for a process; safe for threads."""

    def __init__(self, store: Store, platforms: Platforms, fetch: Fetch, clock: Clock, rules: Rules, hot: Hot) -> None:
        self.store, self.platforms, self.fetch, self.clock, self.rules = store, platforms, fetch, clock, rules
        self.hot = hot
        self._reachability = Reachability()
        self._closings = Closings(store.budgets)
        self._warned_kinds: set[str] = set()
        # One page is read at a time. Threads are for waiting; where they think side by side, they only quarrel over
        # the interpreter, and the same work costs a fifth more.
        self.thinking = Lock()

    def visit(self, claimed: Claimed, run_id: int) -> Visited:
        """One source, whatever happens to it: its failure is its own, and is written down."""
        visit = _Visit(self, claimed, run_id)
        self._visit(visit, claimed.source)
        if visit.told_to_wait is not None:
            self._close(claimed.source, visit.told_to_wait)
        self._keep_hot(visit.result)
        return Visited(visit.result, visit.unwritten)

    def _visit(self, visit: _Visit, source: Source) -> None:
        platform, kind = self.platforms.of_kind(source.kind), self.platforms.kind(source.kind)
        if platform is None or kind is None:
            visit.skip(self._unknown_kind(source))
            return
        try:
            visit.collect(platform, kind)
        except LeaseLost as error:
            visit.lost(error)
        except Stopped as error:
            visit.stopped(error)
        except PlatformError as error:
            visit.fail(error, self._blames_source(source, error))
        except VaultError as error:
            # A key that this process lacks is nothing that the source could help.
            visit.fail(error, is_counted=False)
        except CatchmentError as error:
            visit.fail(error, is_counted=True)
        except Exception as error:  # a bug of ours, met by one source, must not stop the others
            log.error("a visit failed inside", source=source.id, exc_info=error)
            what = f"an error inside catchment ({type(error).__name__})"
            visit.fail(CatchmentError(what, "the log of this moment tells more"), is_counted=True)

    def _keep_hot(self, result: Result) -> None:
        """After what was written is committed: a kill before this loses nothing, the set is then not read."""
        if result.outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED) or result.counts.shown:
            self.hot.refresh(result.source_id, self.platforms.kind(result.kind))

    def closed_kinds(self) -> frozenset[str]:
        """The kinds of which nothing can be asked at this moment: their sources wait, and take nobody's hand."""
        # Where sources bring their own hosts, one that must wait closes nothing.
        closable = {platform.NAME: platform for platform in self.platforms if platform.HOSTS}
        closed = self._closings.until(closable, self.clock.now())
        return frozenset(kind.name for name in closed for kind in closable[name].KINDS)

    def _close(self, source: Source, error: SlowDown) -> None:
        """Leave a platform alone, if it is the platform that must wait."""
        platform = self.platforms.of_kind(source.kind)
        # A source with a credential of its own has a budget of its own; one with a host of its own is alone there. And
        # what a platform says about one request says nothing about the next.
        is_for_all = source.credential is None and (error.status is None or error.is_beyond_request)
        if platform is None or not platform.HOSTS or not is_for_all or error.retry_at is None:
            return
        self._closings.close(platform.NAME, error.retry_at, self.clock.now())

    def _blames_source(self, source: Source, error: PlatformError) -> bool:
        if error.is_credentials and source.credential is None:
            # One of the pool was refused: the next visit may go with another.
            return False
        return self._reachability.blames_source(host_of(source.target), source.id, error, self.clock.now())

    def answered(self, answer: Answer) -> None:
        self._reachability.answered(host_of(answer.url), answer.answered_at)

    def _unknown_kind(self, source: Source) -> str:
        words = f"no platform is installed for kind {source.kind!r}"
        if source.kind not in self._warned_kinds:
            self._warned_kinds.add(source.kind)
            log.warning(words, first_source=source.id)
        return words


class _Visit(Leaving):
    """One visit: first down the newest listing, then what else is wanted of the source, then more about its items."""

    def collect(self, platform: Platform, kind: Kind) -> None:
        # Only who can be asked by id is asked again.
        self.look_after = kind.look_after if hasattr(platform, "look_again") else ()
        self.tiers = self.rules.tiers if kind.is_tiered else None
        plans = self._plans(platform, kind)
        if not plans:
            self.unchanged(None)
        for plan in plans:
            if not self.is_over:
                Walking(self, platform, kind, plan).walk()
        if not self.is_over:
            More(self, platform).ask()
            self.end_well()

    def _plans(self, platform: Platform, kind: Kind) -> list[Plan]:
        """The walks that there is something to ask for; a platform need not have every listing for everybody."""
        asks = self.rules.asks(kind, self.source, self.progress)
        asked = [(ask, tuple(platform.first(self.source, self.progress, ask))) for ask in asks]
        wanted = [(ask, requests) for ask, requests in asked if requests]
        return [
            Plan(ask, requests, is_beside=ask is not asks[0], is_last=place == len(wanted))
            for place, (ask, requests) in enumerate(wanted, start=1)
        ]
