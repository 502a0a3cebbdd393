"""The decisions about one page of one visit, put together for the store to carry out. Pure: told everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment import continuity, pace, tiers
from catchment.continuity import End, Walk
from catchment.errors import StaleAnswer
from catchment.judge import is_worth_a_point, is_worth_asking, judge
from catchment.model import (
    Counts,
    Deed,
    Judged,
    Known,
    Order,
    Outcome,
    Progress,
    Reading,
    Record,
    RefinedItem,
    Request,
    Result,
    Source,
    Verdict,
)
from catchment.refine import clean_id, listed_ids, told_at
from catchment.store.visits import Conclusion, Ending, Found, Key
from catchment.store.writing import key_of
from catchment.tiers import Tiers

# A walk that goes on and on is cut, and leaves a gap that says so.
MOST_PAGES = 200
# A feed's older pages are read on the first visit only, and not for ever.
MOST_WINDOW_PAGES = 10
FINAL = "the source says that it will not change any more"
STALE_HELP = "a cache on the way, or the site, serves an old copy; it is asked again"


class Visiting(Record, frozen=True):
    """What a page's decisions need to know about the visit it belongs to."""

    source: Source
    known: Progress
    """As it was before."""
    progress: Progress
    """As it will be when the walk is whole: validators and all; without the watermark, and without the visit itself."""
    polled_at: datetime
    walk: Walk
    kind_minutes: int
    limit: int
    page_number: int
    is_queue_empty: bool
    hint_seconds: int | None
    before: Result
    """The visit's result so far; its counts are those of the pages before."""
    new_target: str | None = None
    new_name: str | None = None
    is_final: bool = False
    """The source says that it will never change again."""
    marks: tuple[bytes, ...] = ()
    """Of the items as they came, in their order; none where that is not kept."""
    look_after: tuple[timedelta, ...] = ()
    """The ages at which an item is asked for again."""
    is_unfinished: bool = False
    """Something of this visit is not there yet: the next one must not take the listing for unchanged."""
    last_answer_at: datetime | None = None
    """Of a page that was put together from several answers; its own time is that of the first."""
    item_kind: str = "entry"
    """What a post of this kind of source is; what else comes along is none."""
    tiers: Tiers | None = None
    """Where a source of this kind is judged by how lively it is."""
    is_cut: bool = False
    """Not all that was shown could be asked for: the rest is owed, and nothing is proven."""
    is_beside: bool = False
    """The listing is read beside the newest: what it shows is stored, and nothing follows from it."""
    is_last_walk: bool = True
    is_owing: bool = False
    """Something is still to be asked for about items: the visit does not end before that."""


class PageDeciding:
    """Implements the store's `Deciding` for one page."""

    def __init__(self, visit: Visiting, reading: Reading, skipped: int, answered_at: datetime) -> None:
        self._visit, self._reading, self._skipped, self._at = visit, reading, skipped, answered_at
        self._listed = listed_ids(reading)
        self.walk = visit.walk.plus(is_by_id=True) if self._listed else visit.walk
        self.details: tuple[Request, ...] = ()
        """Requests for what was listed and is not held, in the listing's order."""
        self._is_volatile = False

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        return continuity.recognise(strangers, held)

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict:
        return judge(known, item, self._at)

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        return progress.plus(
            expected_by=pace.expected_by(newest_first, self._interval(progress).minutes),
            posts_per_day=pace.posts_per_day(newest_first, self._at),
        )

    def suspects_staleness(self, items: Sequence[RefinedItem]) -> bool:
        """Whether it must be known if this very answer came once before."""
        before = self._visit.known.newest_shown_at
        if before is None or not self._may_be_stale:
            return False
        newest = continuity.newest_shown(items, self._at)
        # Of ids alone only the store knows the dates.
        return bool(self._listed) or (newest is not None and newest < before)

    def conclude(self, found: Found) -> Conclusion:
        found = found.plus(judged=self._in_view(found.judged)) if self._listed else found
        if self._is_stale(found):
            judged = continuity.without_changes(found.judged)
            counts = counted([one.verdict for one in judged], self._skipped)
            valid, series = self._valid_among(judged), self._series(judged, found)
            ending = self._stale_ending(counts, valid)
            return Conclusion(judged, counts, valid, is_seen=False, ending=ending, **series)
        judged = calmed(found, self._at)
        counts = counted([one.verdict for one in judged], self._skipped)
        is_repeat = not self._is_of_details and continuity.is_repeat(self.walk, [one.item for one in judged])
        dates = continuity.dates_shown(self._reading.items, self._at, told_at)
        self.walk = continuity.step(self.walk, judged, self._at, self._skipped, dates)
        end = self._end(is_repeat)
        # A listing of ids closes a gap when all that it listed is stored.
        closed = continuity.closed_gaps(self.walk, found.open_gaps) if end or not self.walk.is_by_id else ()
        self._is_volatile = any(one.verdict.is_volatile for one in judged)
        valid, series = self._valid_among(judged), self._series(judged, found)
        if self._reading.is_torn or (end and self._visit.is_cut):
            # What came is stored. How far down it went nobody can tell: it proves nothing, and moves nothing.
            self.walk = self._visit.walk.plus(newest=None, unpinned=0)
            return self._over(Conclusion(judged, counts, valid, more=self._more(judged), **series), is_owed=True)
        conclusion = Conclusion(judged, counts, valid, closed=closed, more=self._more(judged), **series)
        if end is None:
            return conclusion
        gap = continuity.gap_after(self.walk, end, self._at)
        return self._over(conclusion.plus(gap=gap), is_owed=self._visit.is_unfinished)

    def _valid_among(self, judged: Sequence[Judged]) -> int:
        return tiers.valid_among(judged, self._visit.item_kind)

    def _series(self, judged: Sequence[Judged], found: Found) -> dict[str, Any]:
        """What follows for the time to come: points in series, and when the new items are looked at again."""
        new = [one.item for one in judged if one.verdict.deed == Deed.NEW] if self._visit.look_after else []
        planned = {key_of(one): pace.next_look(self._visit.look_after, one.item.created_at, self._at) for one in new}
        return {
            "points": points(judged, found, self._at),
            "first_looks": {key: at for key, at in planned.items() if at is not None},
        }

    # ── listings of ids ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _is_of_details(self) -> bool:
        return self.walk.is_by_id and not self._listed

    def _in_view(self, judged: tuple[Judged, ...]) -> tuple[Judged, ...]:
        """Those that the visit is about; notes which of the ids must be asked for."""
        # Held; or forgotten for good, and then not known, and not asked for either.
        held = {one.item.item.external_id: one.known for one in judged if one.item.is_listed}
        ours = {one for one, known in held.items() if known and known.is_shown_by_source}
        view = dict.fromkeys(continuity.in_view(self.walk, self._listed, ours, self._visit.limit))
        asking = {clean_id(one.asks_for): one for one in self._reading.follow if one.asks_for is not None}
        self.details = tuple(asking[one] for one in view if one not in held and one in asking)
        return tuple(one for one in judged if not one.item.is_listed or one.item.item.external_id in view)

    def _more(self, judged: Sequence[Judged]) -> dict[Key, tuple[Request, ...]]:
        """What the platform proposes to ask about items, of those for which it is worth it."""
        proposed: dict[str, tuple[Request, ...]] = {}
        for one in self._reading.follow:
            if one.if_changed is not None:
                about = clean_id(one.if_changed)
                proposed[about] = (*proposed.get(about, ()), one)
        if not proposed:
            return {}
        shown = [one for one in judged if one.item.item.external_id in proposed]
        return {key_of(one.item): proposed[one.item.item.external_id] for one in shown if is_worth_asking(one)}

    # ── whether to go on ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def following(self) -> tuple[Request, ...]:
        """The pages that follow; what is about single items is no page."""
        return tuple(one for one in self._reading.follow if one.asks_for is None and one.if_changed is None)

    def wanted(self) -> bool:
        """Whether the pages that follow are worth asking for."""
        walk, visit = self.walk, self._visit
        if not self.following:
            return False
        if walk.listing.is_window:
            return walk.watermark is None and visit.page_number < MOST_WINDOW_PAGES
        if walk.listing.order != Order.NEWEST_FIRST or walk.watermark is None:
            return walk.shown + len(self.details) < visit.limit
        return not walk.is_satisfied

    def _end(self, is_repeat: bool) -> End | None:
        """Why the visit ends with this page; None: it goes on."""
        if self.details:
            return None
        if self.walk.is_satisfied and self._visit.is_queue_empty:
            return End.REACHED
        if is_repeat:
            return End.REPEATS
        if self._visit.page_number >= MOST_PAGES:
            return End.CAP
        if self.wanted() or not self._visit.is_queue_empty:
            return None
        # More is there, and the platform cannot lead to it: its list, or its reader, is at its limit.
        leads_on = any(one.if_changed is None for one in self._reading.follow)
        return End.LAST_PAGE if self._reading.is_end or leads_on else End.CAP

    # ── how it ends ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _may_be_stale(self) -> bool:
        return self._visit.page_number == 1 and not self._visit.is_beside

    def _is_stale(self, found: Found) -> bool:
        # What is listed and not held cannot be of yesterday.
        return (
            self._may_be_stale
            and not self.details
            and continuity.is_stale(
                found.judged,
                {item_id: [one.fingerprint for one in many] for item_id, many in found.earlier.items()},
                continuity.newest_shown((one.item for one in found.judged), self._at),
                self._visit.known.newest_shown_at,
                is_body_seen_before=found.is_body_seen_before,
                stale_count=self._visit.known.stale_count,
            )
        )

    def _over(self, conclusion: Conclusion, *, is_owed: bool) -> Conclusion:
        """The walk is over, and perhaps the visit with it. `is_owed`: not all that was there could be taken over."""
        before = self._visit.before
        total, valid = before.counts + conclusion.counts, before.valid + conclusion.valid
        proven = self._proven(total, is_owed=is_owed)
        if self._visit.is_last_walk and not self._visit.is_owing and not conclusion.more:
            return conclusion.plus(ending=self._good_ending(proven, total, valid))
        return conclusion.plus(proven=proven)

    def _proven(self, total: Counts, *, is_owed: bool) -> Progress:
        """What is known now that this walk is over; the visit itself may go on."""
        visit = self._visit
        progress = visit.progress.plus(
            stale_count=0,
            last_success_at=self._at,
            last_new_at=self._at if total.new else visit.progress.last_new_at,
            failures_in_a_row=0,
        )
        if visit.is_beside:
            return progress
        progress = progress.plus(
            watermark=continuity.moved(self.walk, self._at),
            newest_shown_at=self.walk.newest.at if self.walk.newest else visit.progress.newest_shown_at,
            reach=self._reach,
        )
        if self.walk.is_by_id:
            progress = progress.plus(last_shown_count=total.shown)
        if is_owed or self._is_volatile:
            # What was seen and not taken over must be looked at again: neither "nothing changed" nor its coming to the
            # letter as it came this time may keep it from that.
            progress = progress.plus(etag=None, last_modified=None, body_hash=None, shown_marks=None)
        return progress

    @property
    def _reach(self) -> int | None:
        """How many the listing shows at all: by the platform's word, or, of a window, as many as it showed."""
        listing = self.walk.listing
        return self.walk.shown if listing.reach is None and listing.is_window else listing.reach

    def _good_ending(self, proven: Progress, total: Counts, valid: int) -> Ending:
        visit, mark = self._visit, proven.watermark
        progress = pace.after_success(polled(proven, visit.polled_at), total)
        progress = tiers.after_visit(progress, valid, visit.tiers) if visit.tiers else progress
        due = pace.next_due(self._interval(progress), visit.hint_seconds, self._at)
        progress = progress.plus(last_error=None, last_error_code=None, next_due_at=due.at, due_reason=due.reason)
        result = visit.before.plus(
            outcome=Outcome.SUCCEEDED,
            counts=total,
            valid=valid,
            finished_at=visit.last_answer_at or self._at,
            watermark_after=mark.at if mark else None,
        )
        return Ending(
            result,
            progress,
            is_recovered=visit.known.last_error is not None,
            retire=FINAL if visit.is_final else None,
            new_target=visit.new_target,
            new_name=visit.new_name,
        )

    def _stale_ending(self, counts: Counts, valid: int) -> Ending:
        visit = self._visit
        words = f"{visit.source.name}: the answer is older than the one before — {STALE_HELP}"
        due = pace.next_due(self._interval(visit.known), visit.hint_seconds, self._at)
        # Watermark, cursor and all the rest stay as they were; the next visit must get the whole answer.
        progress = polled(visit.known, visit.polled_at).plus(
            etag=None,
            last_modified=None,
            body_hash=None,
            shown_marks=None,
            stale_count=visit.known.stale_count + 1,
            failure_count=visit.known.failure_count + 1,
            last_error=words,
            last_error_code=StaleAnswer.code,
            next_due_at=due.at,
            due_reason=due.reason,
        )
        result = visit.before.plus(
            outcome=Outcome.FAILED,
            counts=visit.before.counts + counts,
            valid=visit.before.valid + valid,
            finished_at=self._at,
            error_code=StaleAnswer.code,
            error=words,
            is_retryable=True,
            watermark_after=visit.before.watermark_before,
        )
        return Ending(result, progress, alert=words)

    def _interval(self, progress: Progress) -> pace.Interval:
        return pace.interval(self._visit.source, progress, self._visit.kind_minutes)


def polled(progress: Progress, at: datetime) -> Progress:
    """The same after a visit at that time."""
    return progress.plus(
        first_polled_at=progress.first_polled_at or at, last_polled_at=at, poll_count=progress.poll_count + 1
    )


def calmed(found: Found, at: datetime) -> tuple[Judged, ...]:
    """What was judged; of what flips back and forth between known contents no more is made than that."""
    earlier = {item_id: [(one.fingerprint, one.valid_to) for one in many] for item_id, many in found.earlier.items()}
    return tuple(
        continuity.calmed(one, earlier.get(one.known.id, ()), at) if one.known else one for one in found.judged
    )


def points(judged: Sequence[Judged], found: Found, at: datetime) -> frozenset[Key]:
    """Whose counters are worth a point."""
    return frozenset(
        key_of(one.item)
        for one in judged
        if one.verdict.deed != Deed.SAME
        and not one.verdict.is_overtaken
        and is_worth_a_point(one.known, one.item.item, found.points.get(one.known.id) if one.known else None, at)
    )


def counted(verdicts: Sequence[Verdict], invalid: int) -> Counts:
    """New + updated + duplicate + invalid is always the number of items shown."""
    new = sum(1 for one in verdicts if one.deed == Deed.NEW)
    updated = sum(1 for one in verdicts if one.deed in (Deed.EDITED, Deed.COUNTED))
    return Counts(new, updated, len(verdicts) - new - updated, invalid)
