"""Visit: brings one source up to date, walk by walk, and records how it ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from catchment import logs
from catchment.collect.follow_ups import send_follow_ups
from catchment.collect.source_client import CollectContext
from catchment.collect.source_settings import reinterpreted
from catchment.collect.threads import WaitingThreads, collect_board
from catchment.collect.walk import PlannedWalk, Visit, walk
from catchment.errors import (
    CatchmentError,
    Gone,
    LeaseLost,
    Missing,
    PlatformError,
    Refused,
    SlowDown,
    SpendingCapReached,
    Stopped,
    StoreError,
    Unreadable,
    VaultError,
    internal_error,
)
from catchment.logs import redact
from catchment.messages import about
from catchment.model import (
    FinishedVisit,
    Kind,
    Outcome,
    Platform,
    Record,
    Source,
    VisitResult,
    recheck_ages_of,
)
from catchment.platforms import ANNOUNCED, no_platform, services_of
from catchment.policy.visit import Cause, VisitRules, after_error, after_unchanged, skip, succeed
from catchment.store.sources.sources import Claimed

log = logs.logger(__name__)
_UNSCHEDULED = timedelta(days=1)
"""For how long a kind that is not scheduled is passed over at a time."""


class Visited(Record, frozen=True):
    """The result of a visit. The scheduler writes an unwritten end, together with others."""

    result: VisitResult
    unwritten: FinishedVisit | None = None


class Visitor:
    """Visits sources by the rules of one run. Thread-safe."""

    def __init__(self, context: CollectContext, rules: VisitRules) -> None:
        self.context, self.rules = context, rules
        self.store, self.clock, self.platforms = context.store, context.clock, context.platforms

    def visit(self, claimed: Claimed, run_id: int) -> Visited:
        """Visits one source. Any failure is recorded as its own."""
        visit = Visit(self.context, self.rules, claimed, run_id)
        try:
            understood = self._understood(claimed)
            if understood is not claimed:
                visit = Visit(self.context, self.rules, understood, run_id)
            with self.store.page_writer.group.visit():
                self.collect(visit)
        except LeaseLost as error:
            visit.lose(error)
        except CatchmentError as error:
            self._fail(visit, error)
        except Exception as error:  # a bug of ours that one source triggers must not stop the others
            log.error("internal error during a visit", source=claimed.source.id, exc_info=error)
            self._fail(visit, internal_error(error))
        if visit.is_paid:
            visit.client.book()
        if visit.wait is not None:
            self._cool_down(claimed.source, visit.client.service, visit.wait)
        result = visit.state.result
        if result.outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED) or result.counts.shown:
            # After the commit: a kill before this loses nothing, because the cached set is then not used.
            self.context.cache.refresh(result.source_id, self.platforms.kind(result.kind))
        return Visited(result, visit.unwritten)

    def collect(self, visit: Visit) -> None:
        """First the newest listing, then the other wanted listings, then follow-ups about items."""
        platform, kind = self.platforms.of_kind(visit.source.kind), self.platforms.kind(visit.source.kind)
        if platform is None or kind is None:
            visit.finish(skip(visit.state, self._no_platform(visit.source), self.clock.now()))
            return
        visit.state = visit.state.replace(kind=kind, recheck_ages=recheck_ages_of(platform, kind))
        if kind.forum is not None:
            visit.wait = collect_board(visit, platform, kind, kind.forum, self.context)
            return
        walks = self._walks(visit, platform, kind)
        if not walks:
            visit.finish(after_unchanged(visit.state, None, self.clock.now()))
        for planned in walks:
            if visit.state.end is None:
                walk(visit, platform, kind, planned)
        if visit.state.end is None:
            send_follow_ups(visit, platform)
            visit.finish(succeed(visit.counted(), self.clock.now()))

    def read_threads(self, started_by: str, owner_id: int, but_not: Collection[int] = ()) -> list[VisitResult]:
        """Reads on where visits to forums left threads, except for some sources. Writes nothing if no thread waits."""
        threads = WaitingThreads(self.context, self.rules, owner_id)
        reads = threads.run(started_by, self.kinds_in_cooldown(), but_not)
        for read in reads:
            if read.wait is not None:
                self._cool_down(self.store.sources.get(read.result.source_id), read.service, read.wait)
        return [read.result for read in reads]

    def _walks(self, visit: Visit, platform: Platform, kind: Kind) -> list[PlannedWalk]:
        """Returns the walks that have requests to send; a platform may lack a listing, or offer it only with a
        credential."""
        source, progress = visit.source, visit.state.progress
        plans = self.rules.walk_plans(kind, source, progress)
        with_requests = [(plan, tuple(platform.first(source, progress, plan))) for plan in plans]
        planned = [(plan, requests) for plan, requests in with_requests if requests]
        return [
            PlannedWalk(plan, requests, is_beside=plan is not plans[0], is_last=position == len(planned))
            for position, (plan, requests) in enumerate(planned, start=1)
        ]

    def _fail(self, visit: Visit, error: CatchmentError) -> None:
        visit.wait = error if isinstance(error, SlowDown) else visit.wait
        message: str = error.message
        if visit.client.subject not in message and not isinstance(error, Stopped):
            # The fetch layer names the source, credentials and store do not.
            message = about(visit.client.subject, message)
        if visit.is_continuing and _is_lasting(error):
            # The place where it was cut short cannot be had any more: the next visit begins with the first page.
            with suppress(StoreError):
                self.store.unfinished_walks.forget(visit.source.id)
        cause = self._cause_of(visit.source, error)
        visit.finish(after_error(visit.counted(), error, redact(message), cause, self.clock.now()))

    def _cause_of(self, source: Source, error: CatchmentError) -> Cause | None:
        if isinstance(error, VaultError):
            # The source is not to blame for a key that this process lacks.
            return Cause.WAIT
        if not isinstance(error, PlatformError):
            return Cause.SOURCE
        if isinstance(error, SlowDown) and error.is_own_limit:
            return None
        if error.is_credentials and source.credential is None:
            # A pool credential was refused: the next visit may use another.
            return Cause.WAIT
        return self.context.reachability.cause_of(error, self.context.site(source), source.id, self.clock.now())

    def kinds_in_cooldown(self) -> Mapping[str, datetime]:
        """Returns the kinds in cooldown and its end; their sources stay due."""
        # Where sources have their own hosts, a wait for one starts no cooldown of the platform.
        unscheduled = dict.fromkeys(self.rules.unscheduled, self.clock.now() + _UNSCHEDULED)
        closable = [(platform, self._services(platform)) for platform in self.platforms if platform.HOSTS]
        names = {name for _, services in closable for name in services}
        closed = self.context.cooldowns.until(names, self.clock.now())
        return unscheduled | {
            kind.name: min(closed[name] for name in services)
            for platform, services in closable
            if all(name in closed for name in services)
            for kind in platform.KINDS
        }

    def _services(self, platform: Platform) -> list[str]:
        """Returns what a source of the platform may be read through: its services with a credential, or all."""
        names = [service.name for service in services_of(platform)] or [platform.NAME]
        return [name for name in names if name in self.rules.keyed] or names

    def _cool_down(self, source: Source, service: str, error: SlowDown) -> None:
        """Puts the platform, or its service, into cooldown if the wait applies to all of it."""
        platform = self.platforms.of_kind(source.kind)
        # A source with a credential of its own has a budget of its own; one with a host of its own shares it with no
        # other. And what a platform says about one request says nothing about the next.
        is_for_all = source.credential is None and (error.status is None or error.is_beyond_request)
        if platform is None or not platform.HOSTS or not is_for_all or error.retry_at is None:
            return
        if isinstance(error, SpendingCapReached):
            # Cheaper calls may still be allowed, and the cap may be raised.
            return
        self.context.cooldowns.start(service, error.retry_at, self.clock.now())

    def _no_platform(self, source: Source) -> str:
        """Reports that the kind has no platform; logs it once, for any number of sources and runs."""
        words = no_platform(source.kind)
        if self.context.is_first_warning(source.kind):
            log.warning(words, first_source=source.id)
        return words

    def _understood(self, claimed: Claimed) -> Claimed:
        """Returns the source as its platform understands it, in case it was added before the platform was installed.
        Raises InvalidInput if the platform does not accept its target or settings."""
        source = claimed.source
        if claimed.progress.last_success_at is not None or source.kind not in ANNOUNCED:
            return claimed
        platform, kind = self.platforms.of_kind(source.kind), self.platforms.kind(source.kind)
        if platform is None or kind is None:
            return claimed
        address, settings = reinterpreted(platform, kind, source)
        if (address, settings) == (source.target, source.settings):
            return claimed
        return claimed.replace(source=self.store.sources.set_canonical_target(source, address, settings))


def _is_lasting(error: CatchmentError) -> bool:
    """Whether the platform has answered, and the same request would get the same answer again."""
    return isinstance(error, Unreadable | Missing | Gone | Refused)
