"""A visit as a frozen record, and the transitions between its states: after a page, after an error, at its end. Pure.

`collect/` sends the requests and writes; what a visit concludes from an answer or an error is decided here, and what
a page changes in `policy/page.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from catchment.errors import (
    CatchmentError,
    Conflict,
    CredentialsExhausted,
    Gone,
    LeaseLost,
    LoginNeeded,
    OutOfCredits,
    PlatformError,
    SlowDown,
    SpendingCapReached,
    StaleAnswer,
    Stopped,
    StoreError,
    VaultError,
)
from catchment.messages import Message, about, counted_reasons, message
from catchment.model import (
    Counts,
    JsonObject,
    Kind,
    Listing,
    Order,
    Outcome,
    Progress,
    Reading,
    Record,
    Request,
    Source,
    VisitEnd,
    VisitResult,
    WalkPlan,
)
from catchment.policy import schedule, tiers
from catchment.policy.continuity import Walk
from catchment.policy.outages import FAILING, OFFLINE, STALLED, UNREACHABLE, Site
from catchment.policy.schedule import Wish
from catchment.policy.tiers import Tiers

MOST_PAGES = 200
"""A longer walk is cut, and leaves a gap that says so."""
# A permanent redirect is stored as the new address after this many visits: hotel networks redirect everything, once.
REDIRECTS_BELIEVED = 3
_FINAL = Message("source.final")
NO_VALIDATORS = {"etag": None, "last_modified": None, "body_hash": None}


class Cause(StrEnum):
    """What caused a failure. Only the source's own failures count against it."""

    SOURCE = "source"
    SITE = "site"
    """The host or platform also fails for other sources and has answered none since; or other sites fail as well and
    none has answered since."""
    NETWORK = "network"
    """Nothing was reached, and no other site was reached lately: it may be our own connection."""
    WAIT = "wait"
    """A platform asked us to wait, or no credential is usable now."""


class VisitRules(Record, frozen=True):
    """The settings that apply to a visit, as values."""

    intervals: Mapping[str, int]
    tiers: Tiers
    keyed: frozenset[str] = frozenset()
    """The platforms and services whose pool has a credential, usable or not."""
    affordable: Mapping[str, int] = {}
    """By service with a spending cap: how many items a call may ask for now."""
    failures_before_probation: int = 5
    text_limit: int = 1_000_000
    keeps_raw: bool = True
    wish: Wish = Wish()
    """What the operator wants read in addition to a community's newest items."""
    first_limits: Mapping[str, int] = {}
    """By kind: how many items to read on a first visit, if not as many as the kind declares."""
    unscheduled: frozenset[str] = frozenset()
    """Kinds that are collected on request only."""
    limit: int | None = None
    """How many items a task asks for; None: what the source's settings or its history suggest."""

    def walk_plans(self, kind: Kind, source: Source, progress: Progress) -> tuple[WalkPlan, ...]:
        """Returns the walks of a visit to this source: its tier's come before those wanted for all communities."""
        if kind.name in self.first_limits:
            kind = kind.replace(base_limit=self.first_limits[kind.name])
        tier = self.tiers.named(progress.tier) if kind.is_tiered else None
        wish = Wish(tier.sort, tier.time_filter, tier.limit) if tier else self.wish
        plans = schedule.walk_plans(kind, source, progress, wish, has_key=self.has_key(source))
        conditions = {"keyed": self.keyed, "affordable": self.affordable}
        return tuple(plan.replace(limit=self.limit or plan.limit, **conditions) for plan in plans)

    def has_key(self, source: Source) -> bool:
        """Whether there is a credential for requests: the source's own, or one in the pool."""
        return source.credential is not None or source.platform in self.keyed

    def minutes(self, kind: str) -> int:
        return self.intervals.get(kind, schedule.UNKNOWN_KIND_MINUTES)


class WalkState(Record, frozen=True):
    """How far the current walk of a visit has come."""

    limit: int
    is_beside: bool = False
    """A walk down the newest listing goes before this one: its items are stored, and it proves nothing."""
    is_last: bool = True
    after: Progress = Progress()
    """The progress once the walk is complete. It does not count before: with the validators of a first page stored, a
    visit that broke off on the second would look like "nothing changed" the next time."""
    position: Walk | None = None
    """None: no page was read yet."""
    polled_at: datetime | None = None
    """When the first page was answered."""
    pages: int = 0
    rhythm_kind: str | None = None
    """Where posts bring replies, the kind of item that counts as a post; None: every item does."""
    is_queue_empty: bool = True
    """No request for a further page is waiting."""
    new_target: str | None = None
    is_unfinished: bool = False
    """A part of what was shown is missing: the next visit must not take the listing for unchanged."""
    is_cut: bool = False
    """Not everything shown could be requested: nothing is proven."""
    shortfall: Mapping[str, int] = {}
    """Items that were listed and requested and did not come, by reason."""
    counted_before: Counts = Counts()
    """What the pages showed that earlier visits stored, before they were cut short."""

    @property
    def may_be_stale(self) -> bool:
        """Whether the current page could be an old copy: only the first page of the newest listing shows this."""
        return self.pages == 1 and not self.is_beside

    @property
    def shortfall_notes(self) -> tuple[str, ...]:
        if not self.shortfall:
            return ()
        why = counted_reasons(self.shortfall)
        return (message("visit.details_failed", count=sum(self.shortfall.values()), why=why),)


class VisitState(Record, frozen=True):
    """What a visit has found so far."""

    source: Source
    rules: VisitRules
    site: Site
    began: Progress
    """The progress before the visit."""
    progress: Progress
    """The progress that is proven so far."""
    result: VisitResult
    kind: Kind | None = None
    recheck_ages: tuple[timedelta, ...] = ()
    watched_from: datetime | None = None
    """Set on a first visit: posts from before this time are a backlog."""
    hint_seconds: int | None = None
    """For how long the source asks not to be requested."""
    new_target: str | None = None
    new_name: str | None = None
    is_final: bool = False
    """The source says that it will never change again."""
    has_follow_ups: bool = False
    """Follow-ups about its items are pending: the visit does not end before them."""
    is_proven: bool = False
    """A walk down the newest items is complete: whatever fails afterwards, the source itself works."""
    walk: WalkState = WalkState(0)
    end: VisitEnd | None = None
    """Set when the visit is over."""

    @property
    def tiers(self) -> Tiers | None:
        return self.rules.tiers if self.kind and self.kind.is_tiered else None

    @property
    def item_kind(self) -> str:
        """The kind of item that counts as a post."""
        return self.kind.item_kind if self.kind else "entry"

    @property
    def visit_counts(self) -> Counts:
        """What the visit showed, with the earlier pages of a walk that it continued."""
        return self.result.counts + self.walk.counted_before

    def interval(self, progress: Progress) -> schedule.Interval:
        return schedule.interval(self.source, progress, self.rules.minutes(self.source.kind))

    def noted(self, *notes: str) -> VisitState:
        """Returns the state with these remarks for the visit's record, each once."""
        if not notes:
            return self
        return self.replace(result=self.result.replace(notes=tuple(dict.fromkeys((*self.result.notes, *notes)))))


def begin(
    source: Source, progress: Progress, rules: VisitRules, site: Site, now: datetime, *, has_follow_ups: bool = False
) -> VisitState:
    """Returns the state of a visit that begins now."""
    at = progress.watermark.at if progress.watermark else None
    result = VisitResult(
        source.id,
        source.name,
        source.kind,
        Outcome.FAILED,
        started_at=now,
        watermark_before=at,
        watermark_after=at,
    )
    state = VisitState(source, rules, site, progress, progress, result, has_follow_ups=has_follow_ups)
    if progress.last_success_at is not None:
        return state
    # On a first visit, items of more than one interval ago were posted before we began to watch.
    return state.replace(watched_from=now - state.interval(progress).span)


def begin_walk(state: VisitState, limit: int, *, is_beside: bool, is_last: bool) -> VisitState:
    return state.replace(walk=WalkState(limit, is_beside, is_last, after=state.progress))


# A walk that was cut short


class UnfinishedWalk(Record, frozen=True):
    """A walk as of its last stored page: where pages cost money, and where a board's time was over, the next visit
    continues there."""

    requests: tuple[Request, ...]
    """What comes next."""
    walk: WalkState
    """Without the progress after it, which is that of the visit that continues."""
    cursor: JsonObject
    parser_version: int
    saved_at: datetime
    new_name: str | None = None


_CONTINUED_WITHIN = timedelta(days=7)
"""The platform's cursors may not be valid forever."""


def unfinished(state: VisitState, requests: Sequence[Request], parser_version: int, at: datetime) -> UnfinishedWalk:
    """Returns the walk as it is stored with its last page."""
    walk = state.walk.replace(after=Progress(), counted_before=state.visit_counts)
    return UnfinishedWalk(tuple(requests), walk, state.walk.after.cursor, parser_version, at, state.new_name)


def continues(
    state: VisitState,
    saved: UnfinishedWalk,
    listing: str,
    requests: Sequence[Request],
    parser_version: int,
    at: datetime,
) -> bool:
    """Whether the walk that begins with these requests continues where an earlier visit was cut short."""
    position = saved.walk.position
    return (
        position is not None
        and position.listing.name == listing
        and position.watermark == state.progress.watermark
        and saved.parser_version == parser_version
        and {request.service for request in saved.requests} == {request.service for request in requests}
        and timedelta() <= at - saved.saved_at < _CONTINUED_WITHIN
    )


def continue_walk(state: VisitState, saved: UnfinishedWalk) -> VisitState:
    """Returns the state of a walk that continues below the stored pages. It leaves no validators: those of its first
    page are too old to say that nothing has changed."""
    after = state.progress.replace(**NO_VALIDATORS, cursor=saved.cursor)
    walk = saved.walk.replace(
        limit=state.walk.limit, is_beside=state.walk.is_beside, is_last=state.walk.is_last, after=after
    )
    return state.replace(walk=walk, new_name=saved.new_name, new_target=saved.walk.new_target)


def with_cursor(state: VisitState, cursor: JsonObject) -> VisitState:
    """Returns the state after an answer that led to the listing and said where the source continues."""
    progress = state.progress.replace(cursor=cursor)
    return state.replace(progress=progress, walk=state.walk.replace(after=progress))


# Answers


class AnswerHead(Record, frozen=True):
    """What an answer says besides its items."""

    at: datetime
    status: int
    body_hash: bytes
    parser_version: int
    etag: str | None = None
    last_modified: str | None = None
    cache_seconds: int | None = None
    """For how long the answer may be cached."""
    moved_to: str | None = None
    """The URL that replaces the source's own, if every redirect on the way was permanent."""


def is_same_answer(state: VisitState, head: AnswerHead) -> bool:
    """Whether the first page of the newest listing is byte for byte as last time, for the same parser."""
    # The stored validators are those of that page.
    if state.walk.pages or state.walk.is_beside:
        return False
    is_same_parser = state.progress.parser_version == head.parser_version
    return is_same_parser and state.progress.body_hash == head.body_hash


def after_unchanged(state: VisitState, head: AnswerHead | None, at: datetime) -> VisitState:
    """Returns the state after a walk without content: 304, the same bytes as last time, or no request at all."""
    progress = state.progress
    # The feed's own wish (its ttl) is in the bytes that are not sent, or not parsed, again.
    hints = [schedule.asked_for(state.progress)]
    # The same bytes show the same items again. A 304 shows nothing.
    counts = Counts()
    if head is not None:
        hints.append(head.cache_seconds)
        counts = Counts(duplicate=state.progress.last_shown_count or 0) if head.status != 304 else counts
        progress = _with_redirect(progress, head)
    progress = progress.replace(
        last_success_at=at,
        failures_in_a_row=0,
        stale_count=0,
        etag=(head and head.etag) or progress.etag,
        last_modified=(head and head.last_modified) or progress.last_modified,
    )
    is_over = state.walk.is_last and not state.has_follow_ups
    state = state.replace(
        result=state.result.replace(counts=counts, http_status=head.status if head else None),
        hint_seconds=_longest(hints),
        new_target=_moved_for_good(state, head) if head else None,
        progress=progress if is_over else state.progress,
    )
    return succeed(state, at, outcome=Outcome.UNCHANGED) if is_over else prove(state, progress)


def after_answer(
    state: VisitState, head: AnswerHead, reading: Reading, listing: Listing, name: str | None
) -> VisitState:
    """Returns the state after one more page was read, before its items are compared with what is stored."""
    walk = _with_reading(state, reading)
    if walk.pages == 1:
        # Any listing besides the newest is read as a ranked one: its limit ends it, and it proves nothing.
        listing = listing.replace(order=Order.RANKED, is_window=False) if walk.is_beside else listing
        walk = walk.replace(polled_at=head.at, position=Walk(listing, state.progress.watermark))
        if not walk.is_beside:
            walk = walk.replace(after=_progress_after(state.progress, head, reading))
    if not walk.is_beside:
        state = state.replace(
            hint_seconds=_longest([reading.hints.min_interval_seconds, head.cache_seconds]),
            new_target=walk.new_target or _moved_for_good(state, head),
            new_name=name if name and name != state.source.name else None,
            is_final=reading.hints.is_final,
        )
    if head.status < 400:  # a page beyond the last may answer 404, and nothing has failed
        state = state.replace(result=state.result.replace(http_status=head.status))
    return state.replace(walk=walk).noted(*reading.notes)


def after_details(state: VisitState, reading: Reading) -> VisitState:
    """Returns the state after some items that were listed by id alone were read, which are written like a page."""
    shortfall = dict(state.walk.shortfall)
    for skipped in reading.skipped:
        shortfall[skipped.reason] = shortfall.get(skipped.reason, 0) + 1
    return state.replace(walk=_with_reading(state, reading).replace(shortfall=shortfall)).noted(*reading.notes)


def _with_reading(state: VisitState, reading: Reading) -> WalkState:
    brings_replies = any(request.about_item is not None for request in reading.follow)
    return state.walk.replace(
        pages=state.walk.pages + 1,
        is_unfinished=state.walk.is_unfinished or reading.is_unfinished,
        rhythm_kind=state.kind.item_kind if state.kind and brings_replies else None,
    )


def _progress_after(progress: Progress, head: AnswerHead, reading: Reading) -> Progress:
    """Returns the progress once the walk that begins with this page is complete."""
    after = _with_redirect(progress, head).replace(
        etag=head.etag,
        last_modified=head.last_modified,
        body_hash=head.body_hash,
        parser_version=head.parser_version,
        cursor=progress.cursor if reading.cursor is None else reading.cursor,
        # Of this page, like the hash of its bytes: these many are shown again if the same bytes come again.
        last_shown_count=len(reading.items) + len(reading.skipped),
    )
    # A truncated answer leaves no validators that could say "nothing changed" the next time: the rest is missing.
    return after.replace(**NO_VALIDATORS) if reading.is_torn else after


def _with_redirect(progress: Progress, head: AnswerHead) -> Progress:
    if head.moved_to is None:
        return progress if progress.moved_to is None else progress.replace(moved_to=None, moved_count=0)
    is_same = head.moved_to == progress.moved_to
    return progress.replace(moved_to=head.moved_to, moved_count=progress.moved_count + 1 if is_same else 1)


def _moved_for_good(state: VisitState, head: AnswerHead) -> str | None:
    if head.moved_to is None or head.moved_to != state.progress.moved_to:
        return None
    return head.moved_to if state.progress.moved_count + 1 >= REDIRECTS_BELIEVED else None


def _longest(seconds: Sequence[int | None]) -> int | None:
    return max((second for second in seconds if second is not None), default=None)


# The end of a walk, and of the visit


def prove(state: VisitState, progress: Progress) -> VisitState:
    """Returns the state after a finished walk: its progress is kept, whatever becomes of the walks that follow."""
    mark = progress.watermark
    return state.replace(
        progress=progress,
        is_proven=True,
        result=state.result.replace(watermark_after=mark.at if mark else None),
    )


def succeed(
    state: VisitState,
    at: datetime,
    *,
    outcome: Outcome = Outcome.SUCCEEDED,
    polled_at: datetime | None = None,
    finished_at: datetime | None = None,
) -> VisitState:
    """Ends a visit after everything wanted was requested and written, or nothing had changed."""
    progress = schedule.after_success(_polled(state.progress, polled_at or at), state.visit_counts)
    progress = _tiered(state, progress)
    if progress.last_error is not None or progress.last_error_code is not None:
        progress = progress.replace(last_error=None, last_error_code=None)
    due = schedule.next_due(state.interval(progress), state.hint_seconds, at)
    return _ended(
        state,
        outcome,
        progress,
        finished_at or at,
        due,
        is_recovered=state.began.last_error is not None,
        retire=_FINAL if state.is_final else None,
        new_target=state.new_target,
        new_name=state.new_name,
    )


def pause(state: VisitState, at: datetime) -> VisitState:
    """Ends a visit to a board whose time is over in the middle of a listing: the next one, which is due at once,
    continues there. The progress stays as it was."""
    progress = _polled(state.progress, state.walk.polled_at or at)
    progress = progress.replace(failures_in_a_row=0, last_error=None, last_error_code=None)
    return _ended(
        state.noted(message("visit.list_continues")),
        Outcome.SUCCEEDED,
        progress,
        at,
        schedule.NextDue(at, schedule.DEFERRED),
        is_recovered=state.began.last_error is not None,
    )


def retire_as_twin(state: VisitState, message: str, at: datetime) -> VisitState:
    """Retires the source because the source that it leads to exists already: its items would be stored twice."""
    result = state.result.replace(error_code=Conflict.code, error=message)
    return _ended(state.replace(result=result), Outcome.SKIPPED, _polled(state.progress, at), at, retire=message)


def skip(state: VisitState, why: str, at: datetime) -> VisitState:
    """Ends a visit to a source whose platform is not installed."""
    due = schedule.next_due(state.interval(state.progress), None, at)
    return _ended(state.noted(why), Outcome.SKIPPED, _polled(state.progress, at), at, due)


def end_stale(state: VisitState, at: datetime) -> VisitState:
    """Ends a visit whose answer was an old copy: the source fails, and the next visit must get the whole answer."""
    error = StaleAnswer(
        about(state.source.name, message("visit.stale")), message("visit.stale_helps"), status=state.result.http_status
    )
    # Watermark, cursor and the rest stay as they were.
    progress = _polled(state.began, state.walk.polled_at or at).replace(
        **NO_VALIDATORS, stale_count=state.began.stale_count + 1
    )
    due = schedule.next_due(state.interval(progress), state.hint_seconds, at)
    words = error.message
    return _ended(state, Outcome.FAILED, progress, at, due, error=error, message=words, is_failure=True, alert=words)


def after_error(
    state: VisitState, error: CatchmentError, message: str, cause: Cause | None, at: datetime
) -> VisitState:
    """Ends a visit that an error cut off. Pages that were written before it stay written."""
    if isinstance(error, Stopped | LeaseLost):
        # Nothing is charged, and the source stays due.
        return _ended(state, Outcome.SKIPPED, state.progress, at, error=error, message=message)
    if isinstance(error, StoreError):
        # Our own database failed (disk full, unavailable): not charged to the source, which is due again soon.
        due = schedule.next_due_after_store_error(state.interval(state.progress), at)
        return _ended(state, Outcome.FAILED, state.progress, at, due, error=error, message=message)
    last_new_at = at if state.result.counts.new else state.progress.last_new_at
    if isinstance(error, SlowDown) and error.is_own_limit:
        # Our own limits allow no request now: last error and failures stay as they are. Without a request the source
        # was not visited; with one, the pages before the wait are stored.
        progress = _polled(state.progress, at) if state.result.requests else state.progress
        progress = _tiered(state, progress) if state.is_proven else progress
        due = _due_when_deferred(state, progress, error, at)
        progress = progress.replace(last_new_at=last_new_at)
        return _ended(state, Outcome.DEFERRED, progress, at, due, error=error, message=message)
    # The source itself is well if its newest items were read: no other failure may slow it down.
    is_counted = cause is Cause.SOURCE and not state.is_proven
    failures = state.progress.failures_in_a_row + is_counted
    progress = _polled(state.progress, at)
    progress = _tiered(state, progress) if state.is_proven else progress
    is_wait = isinstance(error, SlowDown | CredentialsExhausted)
    is_alarming = is_counted and failures >= state.rules.failures_before_probation
    return _ended(
        state,
        Outcome.FAILED,
        progress.replace(failures_in_a_row=failures, last_new_at=last_new_at),
        at,
        _due_after(state, progress, error, cause, failures, at),
        error=error,
        message=message,
        is_failure=not is_wait,
        alert=message if is_alarming or isinstance(error, LoginNeeded | Gone | VaultError) else None,
        alert_yields_to=_explaining(state, error),
        retire=message if isinstance(error, Gone) else None,
    )


def end_without_money(
    state: VisitState, progress: Progress, error: SpendingCapReached, message: str, at: datetime
) -> VisitState:
    """Ends a visit whose walk a spending cap has ended: `progress` is that of a complete walk; the rest is a gap."""
    state = prove(state, schedule.after_success(_polled(progress, state.walk.polled_at or at), state.visit_counts))
    progress = _tiered(state, state.progress).replace(last_error=None, last_error_code=None)
    return _ended(
        state,
        Outcome.DEFERRED,
        progress,
        at,
        _due_when_deferred(state, progress, error, at),
        error=error,
        message=message,
        is_recovered=state.began.last_error is not None,
        new_target=state.new_target,
        new_name=state.new_name,
    )


def _due_when_deferred(state: VisitState, progress: Progress, error: SlowDown, at: datetime) -> schedule.NextDue:
    """Returns when a source deferred by our own limits is retried."""
    if isinstance(error, SpendingCapReached):
        return schedule.next_due_without_money(state.interval(progress), error.retry_at, at)
    return schedule.next_due_when_deferred(state.interval(progress), error.retry_at, at)


def _due_after(
    state: VisitState, progress: Progress, error: CatchmentError, cause: Cause | None, failures: int, at: datetime
) -> schedule.NextDue:
    """Returns when the source is tried again after a failure; `failures`: those in a row that count against it."""
    # The wait of a used-up account is that of its credential: the pool keeps it, and may have another one by then.
    retry_at = None if isinstance(error, OutOfCredits) else getattr(error, "retry_at", None)
    interval = state.interval(progress)
    limit = state.rules.failures_before_probation
    if isinstance(error, CredentialsExhausted):
        return schedule.next_due_without_credential(interval, retry_at, at)
    if isinstance(error, SlowDown):
        return schedule.next_due_when_told_to_wait(interval, retry_at, at)
    # A temporary failure is retried soon; a lasting failure of the source, at its usual interval.
    is_passing = cause is not Cause.SOURCE or failures == 1
    if error.code not in UNREACHABLE or not is_passing or failures >= limit:
        return schedule.next_due_after_failure(interval, failures, limit, at, retry_at)
    reason = schedule.NO_CONNECTION if cause is Cause.NETWORK else schedule.NO_ANSWER
    return schedule.next_due_when_unreachable(interval, state.progress, reason, at, retry_at)


def _explaining(state: VisitState, error: CatchmentError) -> tuple[str, ...]:
    """Returns the subjects of open outage alerts that may explain the error."""
    if isinstance(error, LoginNeeded | Gone | VaultError):
        return ()
    if error.code not in UNREACHABLE:
        return (STALLED,)
    return (OFFLINE, STALLED, state.site.subject, f"source {state.source.id}{FAILING}")


def outcome_of(error: CatchmentError) -> Outcome:
    """Returns the outcome of a run over items or pages that ended with this error."""
    if isinstance(error, Stopped):
        return Outcome.SKIPPED
    return Outcome.DEFERRED if isinstance(error, SlowDown) and error.is_own_limit else Outcome.FAILED


def failed_with(result: VisitResult, error: CatchmentError, message: str) -> VisitResult:
    """Returns the result of a run over items or pages that ended with this error; `message`: what to say about it."""
    return result.replace(
        outcome=outcome_of(error),
        error_code=error.code,
        error=message,
        is_retryable=error.retryable,
        http_status=error.status if isinstance(error, PlatformError) else None,
    )


def _ended(
    state: VisitState,
    outcome: Outcome,
    progress: Progress,
    at: datetime,
    due: schedule.NextDue | None = None,
    *,
    error: CatchmentError | None = None,
    message: str | None = None,
    is_failure: bool = False,
    alert: str | None = None,
    alert_yields_to: tuple[str, ...] = (),
    is_recovered: bool = False,
    retire: str | None = None,
    new_target: str | None = None,
    new_name: str | None = None,
) -> VisitState:
    """Ends the visit: every end is built here. `due` None: the source stays due as it was."""
    result, mark = state.result, state.result.watermark_after
    if outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED):
        mark = progress.watermark.at if progress.watermark else None
    result = result.replace(outcome=outcome, finished_at=at, watermark_after=mark)
    if due is not None and (due.at, due.reason) != (progress.next_due_at, progress.due_reason):
        progress = progress.replace(next_due_at=due.at, due_reason=due.reason)
    if error is not None:
        result = result.replace(error_code=error.code, error=message, is_retryable=error.retryable)
        if outcome == Outcome.FAILED and not isinstance(error, StoreError):
            progress = progress.replace(
                last_error=message, last_error_code=error.code, failure_count=progress.failure_count + is_failure
            )
            result = result.replace(http_status=getattr(error, "status", None))
        if outcome == Outcome.DEFERRED:
            result = result.replace(deferred_until=due.at if due else None)
    end = VisitEnd(
        result, progress, alert, alert_yields_to, is_recovered, retire, new_target=new_target, new_name=new_name
    )
    return state.replace(result=result, end=end)


def _polled(progress: Progress, at: datetime) -> Progress:
    """Returns the progress after a visit at that time."""
    return progress.replace(
        first_polled_at=progress.first_polled_at or at, last_polled_at=at, poll_count=progress.poll_count + 1
    )


def _tiered(state: VisitState, progress: Progress) -> Progress:
    """Updates the tier by what the visit found; where it broke off, the newest items had been read."""
    rules = state.tiers
    return tiers.after_visit(progress, state.result.valid_since_watched, rules) if rules else progress
