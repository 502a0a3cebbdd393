"""When a source is due next, and how much to ask for. Pure: from records and `now`.

Precedence, decided once: a person's pause (the source is then not active) · the source's own interval · its tier ·
the setting in the database for its kind · FETCH_INTERVAL_<KIND> · the kind's default. What servers ask for, and
probation, only ever delay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from catchment.model import Ask, Counts, Kind, Order, Progress, Record, Source

LONGEST = timedelta(days=1)
# For kinds that this installation does not know: they are looked at seldom, and skipped.
UNKNOWN_KIND_MINUTES = 240
# Without a word from the server on how long to wait.
_SLOW_DOWN = timedelta(minutes=15)
_OWN, _ASKED_FOR, _TOLD = "own interval", "the source asks to be polled less often", "told to wait"
_FIRST_PUT_OFF = timedelta(minutes=15)
# How much is asked for at first: so much at least and at most, a little more than the moving average foretells.
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
    """What is to be read beside the newest of a source, and how much at first; None: no word on that."""

    sort: str | None = None
    """The listing; the newest itself: nothing is read beside it."""
    time_filter: str | None = None
    limit: int | None = None

    def over(self, other: Wish) -> Wish:
        """This one; where it has no word, the other's counts."""
        return Wish(self.sort or other.sort, self.time_filter or other.time_filter, self.limit or other.limit)


_NO_WISH = Wish()


class Due(Record, frozen=True):
    """When next, and why then; no time: by the interval of its kind."""

    at: datetime | None = None
    reason: str | None = None


class Interval(Record, frozen=True):
    """How long from one visit to the next, and by whose word; no reason: by its kind's."""

    minutes: int
    reason: str | None = None

    @property
    def span(self) -> timedelta:
        return timedelta(minutes=self.minutes)

    def due(self, now: datetime) -> Due:
        """Where nothing but the interval decides."""
        return Due(now + self.span, self.reason) if self.reason else Due()


def interval(source: Source, progress: Progress, kind_minutes: int) -> Interval:
    """The interval that holds: the source's own, that of its tier, that of its kind."""
    if source.interval_minutes is not None:
        return Interval(source.interval_minutes, _OWN)
    if progress.tier_minutes is not None:
        return Interval(progress.tier_minutes, progress.tier_reason)
    return Interval(kind_minutes)


def kind_intervals(
    kinds: Iterable[Kind], stored: Mapping[str, int] = {}, given: Mapping[str, int] = {}
) -> dict[str, int]:
    """Minutes for each kind: what the database says, else the environment, else the default."""
    declared = {kind.name: kind.interval_minutes for kind in kinds}
    return {**DEFAULT_INTERVALS, **declared, **given, **stored}


def asks(
    kind: Kind, source: Source, progress: Progress, given: Wish = _NO_WISH, *, has_key: bool = False
) -> tuple[Ask, ...]:
    """The walks of one visit, in their order; `given` is the operator's wish for kinds that have a newest listing.

    There the newest comes first, whatever is wished for: only that proves that nothing is missing.
    """
    own, is_first = _own_wish(source), progress.last_success_at is None
    if kind.newest is None:
        listing = str(own.sort or source.settings.get("listing") or kind.listings[0].name)
        return (Ask(listing, own.limit or _learnt_limit(kind, listing, progress), is_first, has_key=has_key),)
    wish = own.over(given)
    newest = Ask(kind.newest, wish.limit or kind.base_limit, is_first, has_key=has_key)
    # An operator's wish is one for all kinds, and not every kind has a listing of that name.
    others = {listing.name for listing in kind.listings} - {kind.newest}
    beside = (newest.plus(listing=wish.sort, time_filter=wish.time_filter),) if wish.sort in others else ()
    return newest, *beside


def _learnt_limit(kind: Kind, listing: str, progress: Progress) -> int:
    """Of pages that show the newest first, as much as was worth it lately; what others show is no matter of time."""
    is_paged = any(
        one.name == listing and one.order == Order.NEWEST_FIRST and one.page_size is not None for one in kind.listings
    )
    return progress.next_limit or kind.base_limit if is_paged else kind.base_limit


def _own_wish(source: Source) -> Wish:
    """What the source's own settings say; what makes no sense there counts as no word."""
    sort, time_filter, limit = (source.settings.get(name) for name in ("sort", "time_filter", "limit"))
    return Wish(
        str(sort) if sort else None,
        str(time_filter) if time_filter else None,
        limit if isinstance(limit, int) and limit > 0 else None,
    )


def after_success(progress: Progress, counts: Counts) -> Progress:
    """One more visit that went well, and what it says about how much there is to come."""
    progress = _learnt(progress, counts).plus(success_count=progress.success_count + 1)
    if counts.new:
        return progress.plus(empty_in_a_row=0)
    rhythm = progress.posts_per_day
    return progress.plus(
        empty_count=progress.empty_count + 1,
        empty_in_a_row=progress.empty_in_a_row + 1,
        posts_per_day=None if rhythm is None else rhythm / 2,
    )


def _learnt(progress: Progress, counts: Counts) -> Progress:
    """How much to ask for next, by the share of what was shown that was new."""
    share = counts.new / counts.shown if counts.shown else 0.0
    before = share if progress.new_share is None else progress.new_share
    average = before + _ALPHA * (share - before)
    is_first = progress.success_count == 0
    if counts.new == 0 and progress.empty_in_a_row + 1 >= _EMPTY_ENOUGH:
        limit = _LEAST_LIMIT
    elif counts.new == counts.shown > 0 and not is_first:
        # Nothing that was known came along: there may have been more.
        limit = 2 * counts.shown
    else:
        limit = math.ceil(average * counts.shown * _MARGIN)
    return progress.plus(new_share=average, next_limit=min(max(limit, _LEAST_LIMIT), _MOST_LIMIT))


def next_due(interval: Interval, hint_seconds: int | None, now: datetime) -> Due:
    """After a success: the interval, or later if the source asks for that."""
    if hint_seconds is not None and hint_seconds > interval.minutes * 60:
        return Due(now + min(timedelta(seconds=hint_seconds), max(LONGEST, interval.span)), _ASKED_FOR)
    return interval.due(now)


def asked_for(progress: Progress) -> int | None:
    """The seconds that the source asked for at its last visit, where that decided; they hold while nothing changes."""
    if progress.due_reason != _ASKED_FOR or progress.next_due_at is None or progress.last_polled_at is None:
        return None
    return int((progress.next_due_at - progress.last_polled_at).total_seconds())


def next_due_after_failure(
    interval: Interval,
    failures_in_a_row: int,
    limit: int,
    now: datetime,
    retry_at: datetime | None = None,
) -> Due:
    """After `limit` failures in a row a source is on probation: tried again at growing intervals, at most a day.

    A server in trouble that says when to come back (`retry_at`) delays that further, and never hastens it.
    """
    due = interval.due(now)
    if failures_in_a_row >= limit:
        # The exponent is capped: the interval reaches a day long before numbers grow too large.
        wait = interval.span * 2 ** min(failures_in_a_row - limit + 1, 16)
        due = Due(now + max(interval.span, min(wait, LONGEST)), "probation")
    told = None if retry_at is None else min(retry_at, now + LONGEST)
    return Due(told, _TOLD) if told and told > (due.at or now + interval.span) else due


def next_due_when_told_to_wait(interval: Interval, retry_at: datetime | None, now: datetime) -> Due:
    """429 and the like: when the server said, else after a pause no longer than its interval; a day at most."""
    pause = min(_SLOW_DOWN, interval.span)
    at = min(max(retry_at or now + pause, now + timedelta(seconds=1)), now + LONGEST)
    return Due(at, _TOLD)


def next_look(ages: Iterable[timedelta], created_at: datetime | None, now: datetime) -> datetime | None:
    """When an item is asked for again: at the first of these ages that it has not reached. None: there is none left."""
    # What is dated ahead, or not at all, is as old as our acquaintance with it.
    born = min(created_at or now, now)
    return min((born + age for age in ages if born + age > now), default=None)


def look_put_off(failures: int, now: datetime) -> datetime:
    """When a look that failed so many times in a row is tried again."""
    wait: timedelta = _FIRST_PUT_OFF * 2 ** min(failures - 1, 16)
    return now + min(wait, LONGEST)


def expected_by(newest_first: Sequence[datetime], interval_minutes: int) -> datetime | None:
    """By when something new should be seen: the newest post plus max(2 intervals, 5 × the p95 gap between posts).

    None with fewer than ten posts: a rhythm cannot be told from that.
    """
    times = newest_first[:_MOST_HISTORY]
    if len(times) < _LEAST_HISTORY:
        return None
    pauses = sorted(later - earlier for later, earlier in pairwise(times))
    usual = pauses[math.ceil(0.95 * len(pauses)) - 1]
    return times[0] + max(2 * timedelta(minutes=interval_minutes), 5 * usual)


def posts_per_day(newest_first: Sequence[datetime], now: datetime) -> float | None:
    """How many posts a day to reckon with, by the newest fifty and the silence since. None: too few to tell."""
    times = newest_first[:_MOST_HISTORY]
    if len(times) < _LEAST_HISTORY:
        return None
    # A moment at least: what was brought in all at once says nothing about a second.
    return len(times) / (max(now - times[-1], timedelta(minutes=1)) / timedelta(days=1))
