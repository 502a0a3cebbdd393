"""When a source is due next, and how much to request. Pure: from records and `now`.

Precedence: a user's pause (the source is then not active) · the source's own interval · its tier · the setting in the
database for its kind · FETCH_INTERVAL_<KIND> · the kind's default. Server hints and probation only delay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from catchment.clock import EPOCH
from catchment.messages import Message
from catchment.model import (
    ON_PROBATION,
    OWN_INTERVAL,
    Counts,
    Kind,
    Order,
    PlanPart,
    Progress,
    Record,
    Source,
    WalkPlan,
)

LONGEST = timedelta(days=1)
# Two answers at least this far apart must say that something is gone before it counts as gone.
SURELY_GONE = timedelta(hours=1)
# For kinds that this installation does not know: they are due seldom, and skipped.
UNKNOWN_KIND_MINUTES = 240
# Used if the server does not say how long to wait.
_SLOW_DOWN = timedelta(minutes=15)
ASKED_FOR = Message("due.less_often")
TOLD, DEFERRED = Message("due.told_to_wait"), Message("due.deferred")
NO_MONEY_TODAY, NO_MONEY_THIS_MONTH = Message("due.cap_of_day"), Message("due.cap_of_month")
NO_CONNECTION, NO_ANSWER = Message("due.no_connection"), Message("due.no_answer")
"""Why a source is retried soon: no connection to anything lately; or its host fails it, and perhaps others."""
# Minutes: the first wait, its growth factor, and the longest wait.
_RETRIES = {NO_CONNECTION: (2, 1.5, 15), NO_ANSWER: (5, 2.0, 60)}
_NOT_STORED = Message("due.not_stored")
# A database is usually back within minutes; each attempt sends a request to the platform again.
_STORE_RETRY = timedelta(minutes=5)
_FIRST_PUT_OFF = timedelta(minutes=15)
# The first request's limit: bounds, and a margin above the moving average.
_LEAST_LIMIT, _MOST_LIMIT = 10, 300
_ALPHA, _MARGIN = 0.3, 1.2
_EMPTY_ENOUGH = 3
_MOST_HISTORY = 50
_LEAST_HISTORY = 10

DEFAULT_INTERVALS = {
    "twitter_feed": 30,
    "twitter_list": 30,
    "twitter_bookmarks": 60,
    "hackernews": 60,
    "reddit": 60,
    "rss": 240,
    "digest_feed": 240,
    "github_trending": 240,
    "website": 240,
    "custom_api": 120,
    "nga_forum": 720,
    "xhs_keyword": 60,
    "xhs_note": 720,
}
"""Minutes, for the kinds that catchment's specifications name, whether or not their platform is installed."""


class Wish(Record, frozen=True):
    """Which listing to read besides the newest of a source, and how much at first; None: not set."""

    sort: str | None = None
    """The listing; if it is the newest itself, nothing is read besides it."""
    time_filter: str | None = None
    limit: int | None = None

    def over(self, other: Wish) -> Wish:
        """Returns this wish, with unset values taken from the other."""
        return Wish(self.sort or other.sort, self.time_filter or other.time_filter, self.limit or other.limit)


_NO_WISH = Wish()


class NextDue(Record, frozen=True):
    """When a source is due next, and why; no time: by the interval of its kind."""

    at: datetime | None = None
    reason: Message | None = None


class Interval(Record, frozen=True):
    """Time between visits, and what decided it; no reason: its kind."""

    minutes: int
    reason: Message | None = None

    @property
    def span(self) -> timedelta:
        return timedelta(minutes=self.minutes)

    def due(self, now: datetime) -> NextDue:
        """Returns the next due time if only the interval decides."""
        return NextDue(now + self.span, self.reason) if self.reason else NextDue()


def interval(source: Source, progress: Progress, kind_minutes: int) -> Interval:
    """Returns the effective interval: the source's own, else its tier's, else its kind's."""
    if source.interval_minutes is not None:
        return Interval(source.interval_minutes, OWN_INTERVAL)
    if progress.tier_minutes is not None:
        return Interval(progress.tier_minutes, progress.tier_reason)
    return Interval(kind_minutes)


def kind_intervals(
    kinds: Iterable[Kind], stored: Mapping[str, int] = {}, configured: Mapping[str, int] = {}
) -> dict[str, int]:
    """Returns minutes per kind: from the database, else the environment, else the default."""
    declared = {kind.name: kind.interval_minutes for kind in kinds}
    return {**DEFAULT_INTERVALS, **declared, **configured, **stored}


def walk_plans(
    kind: Kind, source: Source, progress: Progress, operator_wish: Wish = _NO_WISH, *, has_key: bool = False
) -> tuple[WalkPlan, ...]:
    """Returns the walks of one visit, in order; `operator_wish` is for kinds that have a newest listing.

    There the newest always comes first: only that proves that nothing is missing.
    """
    own, is_first = _own_wish(kind, source), progress.last_success_at is None
    if kind.newest is None:
        stream = kind.forum.stream if kind.forum else None
        return tuple(
            WalkPlan(listing, own.limit or _limit(kind, source, listing, progress), is_first, has_key=has_key)
            for listing in (stream, own.sort or kind.listings[0].name)
            if listing is not None
        )
    wish = own.over(operator_wish)
    newest = WalkPlan(kind.newest, wish.limit or kind.base_limit, is_first, has_key=has_key)
    # An operator's wish applies to all kinds, and not every kind has a listing of that name.
    others = {listing.name for listing in kind.listings} - {kind.newest}
    beside = (newest.replace(listing=wish.sort, time_filter=wish.time_filter),) if wish.sort in others else ()
    return newest, *beside


def _limit(kind: Kind, source: Source, listing: str, progress: Progress) -> int:
    """Returns the limit of the first visit, then the learnt one; listings that do not grow at the top have none to
    learn."""
    if progress.last_success_at is None:
        return _chosen(kind, source).get(PlanPart.FIRST_LIMIT) or kind.base_limit
    is_learnt = any(
        declared.name == listing
        and (declared.order == Order.NEWEST_FIRST or declared.is_stacked)
        and declared.page_size is not None
        for declared in kind.listings
    )
    return progress.next_limit or kind.base_limit if is_learnt else kind.base_limit


def _chosen(kind: Kind, source: Source) -> dict[PlanPart, Any]:
    """Returns what the source's own settings decide, by what its kind declares."""
    return {field.decides: source.settings.get(field.name) for field in kind.fields if field.decides}


def _own_wish(kind: Kind, source: Source) -> Wish:
    if not kind.fields:
        return _NO_WISH
    chosen = _chosen(kind, source)
    return Wish(chosen.get(PlanPart.LISTING), chosen.get(PlanPart.TIME_FILTER), chosen.get(PlanPart.LIMIT))


def after_success(progress: Progress, counts: Counts) -> Progress:
    """Records a successful visit, and what it says about how much to expect."""
    rhythm, is_empty = progress.posts_per_day, not counts.new
    new_share, next_limit = _learnt(progress, counts)
    return progress.replace(
        new_share=new_share,
        next_limit=next_limit,
        success_count=progress.success_count + 1,
        last_fetched_count=counts.shown,
        last_new_count=counts.new,
        empty_count=progress.empty_count + is_empty,
        empty_in_a_row=progress.empty_in_a_row + 1 if is_empty else 0,
        posts_per_day=rhythm / 2 if is_empty and rhythm is not None else rhythm,
    )


def _learnt(progress: Progress, counts: Counts) -> tuple[float, int]:
    """Returns the average share of items that were new, and how much to request next because of it."""
    share = counts.new / counts.shown if counts.shown else 0.0
    before = share if progress.new_share is None else progress.new_share
    average = before + _ALPHA * (share - before)
    is_first = progress.success_count == 0
    if counts.new == 0 and progress.empty_in_a_row + 1 >= _EMPTY_ENOUGH:
        limit = _LEAST_LIMIT
    elif counts.new == counts.shown > 0 and not is_first:
        # All items were new: there may have been more.
        limit = 2 * counts.shown
    else:
        limit = math.ceil(average * counts.shown * _MARGIN)
    return average, min(max(limit, _LEAST_LIMIT), _MOST_LIMIT)


def next_due(interval: Interval, hint_seconds: int | None, now: datetime) -> NextDue:
    """Returns the next due time after a success: the interval, or later if the source asks for that."""
    if hint_seconds is not None and hint_seconds > interval.minutes * 60:
        return NextDue(now + min(timedelta(seconds=hint_seconds), max(LONGEST, interval.span)), ASKED_FOR)
    return interval.due(now)


def asked_for(progress: Progress) -> int | None:
    """Returns the seconds that the source asked for at its last visit, if that decided; they apply while nothing
    changes."""
    if progress.due_reason != ASKED_FOR or progress.next_due_at is None or progress.last_polled_at is None:
        return None
    return int((progress.next_due_at - progress.last_polled_at).total_seconds())


def next_due_after_failure(
    interval: Interval,
    failures_in_a_row: int,
    limit: int,
    now: datetime,
    retry_at: datetime | None = None,
) -> NextDue:
    """After `limit` failures in a row a source is on probation: retried at growing intervals, at most a day.

    A failing server's Retry-After (`retry_at`) delays that further, and never hastens it.
    """
    due = interval.due(now)
    if failures_in_a_row >= limit:
        # The exponent is capped: the wait reaches a day long before the numbers overflow.
        wait = interval.span * 2 ** min(failures_in_a_row - limit + 1, 16)
        due = NextDue(now + max(interval.span, min(wait, LONGEST)), ON_PROBATION)
    server_at = None if retry_at is None else min(retry_at, now + LONGEST)
    return NextDue(server_at, TOLD) if server_at and server_at > (due.at or now + interval.span) else due


def next_due_when_unreachable(
    interval: Interval, progress: Progress, reason: Message, now: datetime, retry_at: datetime | None = None
) -> NextDue:
    """After a failure that is not the source's own: soon, with waits that grow up to its interval at most.

    `progress` says how long the last wait for the same reason was. A server's Retry-After (`retry_at`) delays that
    further, and never hastens it.
    """
    first, growth, longest = _RETRIES[reason]
    before = None
    if progress.due_reason == reason and progress.next_due_at and progress.last_polled_at:
        before = progress.next_due_at - progress.last_polled_at
    wait = timedelta(minutes=first) if before is None else before * growth
    due = NextDue(now + min(wait, timedelta(minutes=longest), interval.span), reason)
    server_at = None if retry_at is None else min(retry_at, now + LONGEST)
    return NextDue(server_at, TOLD) if server_at and due.at and server_at > due.at else due


def next_due_when_told_to_wait(interval: Interval, retry_at: datetime | None, now: datetime) -> NextDue:
    """After 429 and the like: when the server said, else after a pause no longer than its interval; a day at most."""
    pause = min(_SLOW_DOWN, interval.span)
    at = min(max(retry_at or now + pause, now + timedelta(seconds=1)), now + LONGEST)
    return NextDue(at, TOLD)


def next_due_when_deferred(interval: Interval, retry_at: datetime | None, now: datetime) -> NextDue:
    """Our own limits allow no request now: due as soon as they do."""
    return next_due_when_told_to_wait(interval, retry_at, now).replace(reason=DEFERRED)


def next_due_without_credential(interval: Interval, retry_at: datetime | None, now: datetime) -> NextDue:
    """No credential is usable before `retry_at`. Looked at again after the usual interval at the latest, which sends no
    request: one may have been added, resumed or topped up."""
    due = next_due_when_told_to_wait(interval, retry_at, now)
    return due if due.at is not None and due.at < now + interval.span else interval.due(now)


def next_due_without_money(interval: Interval, retry_at: datetime | None, now: datetime) -> NextDue:
    """A spending cap allows no request until `retry_at`. Looked at again after the usual interval, which costs nothing:
    the cap may have been raised."""
    is_today = retry_at is None or retry_at.date() <= now.date() + timedelta(days=1)
    at = min(now + interval.span, max(retry_at or now + interval.span, now + timedelta(seconds=1)))
    return NextDue(at, NO_MONEY_TODAY if is_today else NO_MONEY_THIS_MONTH)


def next_due_after_store_error(interval: Interval, now: datetime) -> NextDue:
    """Our own database failed, not the source: soon, and not later than its interval."""
    return NextDue(now + min(_STORE_RETRY, interval.span), _NOT_STORED)


def next_recheck(
    ages: Iterable[timedelta], created_at: datetime | None, now: datetime, *, is_floor: bool = False
) -> datetime | None:
    """Returns when an item is rechecked: at the first of these ages that it has not reached. None: no age is left.

    `is_floor`: it is on a page with others, which one request shows. They wait for each other: at most a quarter of the
    age, until the next moment that is the same for all of them.
    """
    # An item that is undated or dated in the future counts as created when first seen.
    born = min(created_at or now, now)
    left = [age for age in ages if born + age > now]
    if not left:
        return None
    at, grid = born + min(left), min(left) / 4
    return at + (EPOCH - at) % grid if is_floor else at


def recheck_put_off(failures: int, now: datetime) -> datetime:
    """Returns when a recheck that failed this many times in a row is retried."""
    wait: timedelta = _FIRST_PUT_OFF * 2 ** min(failures - 1, 16)
    return now + min(wait, LONGEST)


def expected_by(
    newest_first: Sequence[datetime], interval_minutes: int, watched_since: datetime | None = None
) -> datetime | None:
    """Returns when something new should appear: the newest post plus max(2 intervals, 5 × the p95 gap between posts).

    None with fewer than ten posts: too few for a rhythm. The silence counts from `watched_since`, the first visit, at
    the earliest. A backlog that was already silent for longer than its own rhythm allows at that time is no rhythm:
    then ten posts must have come since.
    """
    times = newest_first[:_MOST_HISTORY]
    least = 2 * timedelta(minutes=interval_minutes)
    if watched_since is not None:
        observed = [at for at in times if at > watched_since]
        backlog = _patience(times[len(observed) :], least)
        was_late = backlog is not None and times[len(observed)] + backlog < watched_since
        if was_late or len(observed) >= _LEAST_HISTORY:
            times = observed
    patience = _patience(times, least)
    if patience is None:
        return None
    return (times[0] if watched_since is None else max(times[0], watched_since)) + patience


def _patience(newest_first: Sequence[datetime], least: timedelta) -> timedelta | None:
    """Returns how long a source with these posts may be silent; None: too few posts."""
    if len(newest_first) < _LEAST_HISTORY:
        return None
    pauses = sorted(later - earlier for later, earlier in pairwise(newest_first))
    return max(least, 5 * pauses[math.ceil(0.95 * len(pauses)) - 1])


def posts_per_day(newest_first: Sequence[datetime], now: datetime) -> float | None:
    """Returns the posts per day to expect, from the newest fifty and the silence since. None: too few posts."""
    times = newest_first[:_MOST_HISTORY]
    if len(times) < _LEAST_HISTORY:
        return None
    # At least a minute: posts that were imported all at once say nothing about a second.
    return len(times) / (max(now - times[-1], timedelta(minutes=1)) / timedelta(days=1))
