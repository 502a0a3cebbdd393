"""Visit: brings one source up to date, walk by walk, and records how it ended.

Follow-ups are further requests about items that a listing showed to be new or changed, most often for their replies.
They are stored with the page that showed the change, so that a kill loses none of them. After its walks, a visit
sends some of them; the rest stays pending for later visits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from catchment import logs
from catchment.collect.detail_fetch import A_BATCH, Batch, Detail, Details
from catchment.collect.source_client import CollectContext
from catchment.collect.threads import WaitingThreads, collect_board
from catchment.collect.walk import PlannedWalk, Visit, walk
from catchment.errors import (
    CatchmentError,
    Gone,
    InvalidInput,
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
from catchment.messages import about, counted_reasons, message, reason_of
from catchment.model import (
    Field,
    FinishedVisit,
    FollowUp,
    Kind,
    Outcome,
    Platform,
    Reading,
    Record,
    SettingValues,
    Source,
    VisitResult,
    recheck_ages_of,
)
from catchment.platforms import ANNOUNCED, no_platform, services_of
from catchment.policy.page import decide_follow_ups
from catchment.policy.visit import Cause, VisitRules, after_error, after_unchanged, skip, succeed
from catchment.store.sources.sources import Claimed

MOST_A_VISIT = 30
"""Requests: half of what Reddit allows in a minute. One busy community must not keep the others waiting."""
MOST_ABOUT_ONE = 100
"""Requests: a thread of some ten thousand replies. Reading a longer one stops there, and the visit's record says so."""


def send_follow_ups(visit: Visit, platform: Platform) -> None:
    """Sends the pending follow-ups of a source, up to the limit of one visit, and writes the answers."""
    pending = {
        follow_up.external_id: _named(follow_up)
        for follow_up in visit.store.follow_ups.of_source(visit.source.id, MOST_A_VISIT)
    }
    put_off: set[str] = set()
    """Items about which this visit sends no more requests."""
    shortfall: Counter[str] = Counter()
    left = MOST_A_VISIT
    while left and visit.wait is None:
        waiting = (follow_up for follow_up in pending.values() if follow_up.external_id not in put_off)
        requests = list(
            islice((request for follow_up in waiting for request in follow_up.requests), min(left, A_BATCH))
        )
        if not requests:
            break
        left -= len(requests)
        with closing(Details(visit.client, platform, requests).batches()) as batches:
            for batch in batches:
                if batch.details:
                    _write(visit, platform, batch, _settled(visit, batch, pending, put_off, shortfall))
                if isinstance(batch.broke, SlowDown):
                    # Waiting loses nothing, and the source itself works: this is not a failure of the visit.
                    visit.wait = batch.broke
                elif batch.broke is not None:
                    raise batch.broke
    if still_pending := visit.store.follow_ups.count(visit.source.id):
        visit.state = visit.state.noted(message("visit.follow_ups_pending", count=still_pending))
    if shortfall:
        visit.state = visit.state.noted(message("visit.follow_ups_failed", why=counted_reasons(shortfall)))


def _named(follow_up: FollowUp) -> FollowUp:
    """Returns the follow-up with the item set on each request; those a platform proposed may lack it."""
    requests = (request.replace(about_item=follow_up.external_id) for request in follow_up.requests)
    return follow_up.replace(requests=tuple(requests))


def _settled(
    visit: Visit, batch: Batch, pending: dict[str, FollowUp], put_off: set[str], shortfall: Counter[str]
) -> tuple[FollowUp, ...]:
    """Returns the new state of the follow-ups that the batch is about."""
    about: dict[str, FollowUp] = {}
    for detail in batch.details:
        key = detail.request.about_item or ""
        pending[key], given_up = after_answer(pending[key], detail)
        about[key] = pending[key]
        if given_up:
            shortfall[message("visit.too_many_pages")] += given_up
        if _is_to_come(detail):
            put_off.add(key)
        elif detail.error is not None:
            shortfall[detail.error.code] += 1
        visit.state = visit.state.noted(*detail.reading.notes)
    return tuple(about.values())


def after_answer(follow_up: FollowUp, detail: Detail) -> tuple[FollowUp, int]:
    """Returns the follow-up after one of its requests was sent, and how many requests are given up.

    What failed temporarily or was cut off is requested again; what cannot be fetched at all is dropped.
    """
    asked, left = follow_up.asked_count + 1, follow_up.requests
    if not _is_to_come(detail):
        follow = (request.replace(about_item=follow_up.external_id) for request in detail.reading.follow)
        left = tuple(request for request in (*left, *follow) if request != detail.request)
    kept = left[: max(0, MOST_ABOUT_ONE - asked)]
    return follow_up.replace(requests=kept, asked_count=asked), len(left) - len(kept)


def _is_to_come(detail: Detail) -> bool:
    return detail.reading.is_unfinished or detail.reading.is_torn


def _write(visit: Visit, platform: Platform, batch: Batch, follow_ups: tuple[FollowUp, ...]) -> None:
    at = batch.at or visit.clock.now()
    skipped = tuple(skipped for detail in batch.details for skipped in detail.reading.skipped)
    clean = visit.client.clean(Reading(batch.items, skipped=skipped), platform, visit.source.target, batch.size)
    page = visit.page(at, clean.items, raws=batch.raws(visit.client))
    decide = partial(decide_follow_ups, clean.items, len(clean.skipped), follow_ups, at)
    written = visit.store.page_writer.write(page, decide)
    visit.client.costs.forget(page.bookings)
    result = visit.state.result
    visit.state = visit.state.replace(result=result.replace(counts=result.counts + written.counts))


def checked_settings(kind: Kind, given: SettingValues) -> SettingValues:
    """Returns the settings of a source with values of the right type; refuses names that its kind does not have."""
    fields = {field.name: field for field in kind.fields}
    for name in given:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InvalidInput(
                "{kind} has no setting {name!r}",
                "its settings: {known}",
                field=name,
                kind=kind.name,
                name=name,
                known=known,
            )
    return {name: _checked(fields[name], value) for name, value in given.items()}


def merged_settings(kind: Kind, known: SettingValues, given: SettingValues) -> SettingValues:
    """Returns the settings with the given ones changed, and those given as None removed."""
    checked = checked_settings(kind, {name: value for name, value in given.items() if value is not None})
    return {name: value for name, value in {**known, **checked}.items() if name not in given or name in checked}


def _checked(field: Field, value: Any) -> Any:
    if field.choices and value not in field.choices:
        raise InvalidInput(
            "{setting}={value!r}",
            "one of {choices}",
            field=field.name,
            setting=field.name,
            value=value,
            choices=", ".join(field.choices),
        )
    if field.check is not None:
        try:
            return field.check(value)
        except ValueError as error:
            # The value of a header may be a secret in the wrong field.
            raise InvalidInput(
                "{setting}={value}",
                "{hint}",
                field=field.name,
                setting=field.name,
                value=redact(repr(value))[:100],
                hint=reason_of(error),
            ) from None
    if field.minimum is None and field.maximum is None:
        return value
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            "{setting}={value!r} is not a whole number", field=field.name, setting=field.name, value=value
        ) from None
    low, high = field.minimum, field.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        raise InvalidInput(
            "{setting}={number}",
            "from {low} to {high}",
            field=field.name,
            setting=field.name,
            number=number,
            low=low,
            high=high,
        )
    return number


def understood_anew(platform: Platform, kind: Kind, source: Source) -> tuple[str, SettingValues]:
    """Returns the checked URL and settings of a source that was added before its platform was installed. Raises
    InvalidInput if the platform does not accept them."""
    target = platform.understand(source.target, kind.name)
    return target.address, checked_settings(kind, {**target.settings, **source.settings})


def _is_lasting(error: CatchmentError) -> bool:
    """Whether the platform has answered, and the same request would get the same answer again."""
    return isinstance(error, Unreadable | Missing | Gone | Refused)


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

    def read_threads(
        self, job: str, started_by: str, owner_id: int, but_not: Collection[int] = ()
    ) -> list[VisitResult]:
        """Reads on where visits to forums left threads, except for some sources. Writes nothing if no thread waits."""
        threads = WaitingThreads(self.context, self.rules, owner_id)
        reads = threads.run(job, started_by, self.kinds_in_cooldown(), but_not)
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
        platform, kind = self.platforms.of_kind(source.kind), self.platforms.kind(source.kind)
        is_checked = claimed.progress.last_success_at is not None or source.kind not in ANNOUNCED
        if platform is None or kind is None or is_checked:
            return claimed
        address, settings = understood_anew(platform, kind, source)
        if (address, settings) == (source.target, source.settings):
            return claimed
        return claimed.replace(source=self.store.sources.set_canonical_target(source, address, settings))
