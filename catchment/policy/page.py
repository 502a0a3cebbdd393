"""Decides what a page changes: items, progress, gaps, and whether the walk is over. Pure; the store writes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import cast

from catchment.clock import moment
from catchment.errors import SpendingCapReached
from catchment.model import (
    NONE_REPEATED,
    NONE_UNCHANGED,
    Change,
    Counts,
    FollowUp,
    ItemChange,
    NextRecheck,
    Order,
    PageFacts,
    PageWrite,
    Progress,
    Reading,
    RefinedItem,
    Request,
    StoredEntries,
    UnchangedEntries,
)
from catchment.policy import continuity, schedule, tiers
from catchment.policy.continuity import End, Walk
from catchment.policy.judge import calmed, gone, is_worth_asking, judge
from catchment.policy.visit import MOST_PAGES, NO_VALIDATORS, VisitState, end_stale, end_without_money, prove, succeed
from catchment.text.clean import clean_id, listed_ids, stated_at, told_apart_by_date

# A feed's older pages are read on the first visit only, and at most this many.
_MOST_WINDOW_PAGES = 10


class StaleEntryMark(Exception):
    """An unchanged entry is no longer stored as it was then: the whole page has to be read again."""


def changes_of(
    items: Sequence[RefinedItem], facts: PageFacts, at: datetime, recheck_ages: Sequence[timedelta] = ()
) -> tuple[ItemChange, ...]:
    """Returns what each item of the page changes."""
    items = on_free_floors(identified(items, facts), facts)
    renamed = recognised(items, facts)
    changes = []
    for item in items:
        stored = facts.stored.get(item.key)
        if stored is None and item.key in facts.forgotten:
            changes.append(ItemChange(item, None, Change.SAME))
        elif item.is_listed:
            # An id alone only says that the item exists. Unknown ids are not judged: they must be requested.
            if stored is not None:
                dated = item.replace(item=item.item.replace(created_at=stored.created_at))
                changes.append(ItemChange(dated, stored, Change.SAME))
        else:
            before = stored or renamed.get(item.item.external_id)
            last_point, retitled = (
                (facts.points.get(before.id), facts.retitled.get(before.id)) if before else (None, None)
            )
            change = judge(before, item, at, last_point=last_point, recheck_ages=recheck_ages, retitled=retitled)
            changes.append(change if before is stored else change.replace(is_alias=True))
    return tuple(changes)


def unchanged_among(repeated: StoredEntries, changes: Sequence[ItemChange], facts: PageFacts) -> UnchangedEntries:
    """Returns the repeated entries of the page, which change nothing. Raises StaleEntryMark."""
    if not repeated:
        return NONE_UNCHANGED
    try:
        stored = [facts.unchanged[item_id] for item_id in repeated.item_ids]
    except KeyError:
        raise StaleEntryMark from None
    shown_ids = [*repeated.item_ids, *(change.stored.id for change in changes if change.stored)]
    if len({*shown_ids}) < len(shown_ids):
        # Another entry has the id of an unchanged one: only the whole page tells them apart.
        raise StaleEntryMark
    _, external_ids, ordered_at, created_at = zip(*stored, strict=True)
    return UnchangedEntries(repeated.item_ids, external_ids, repeated.stated_at, ordered_at, created_at)


def identified(items: Sequence[RefinedItem], facts: PageFacts) -> Sequence[RefinedItem]:
    """Returns the items; those without id and link get their ids by what is stored with the same content."""
    if not any(item.content_id for item in items):
        return items
    dates = {key: None if stored.is_created_at_guessed else stored.created_at for key, stored in facts.stored.items()}
    return told_apart_by_date(items, dates)


def on_free_floors(items: Sequence[RefinedItem], facts: PageFacts) -> Sequence[RefinedItem]:
    """Returns the items; one whose floor number another item has loses it. A post without a number is stored, and
    never blocks a page."""
    if not any(item.item.floor_number is not None for item in items):
        return items
    # Floors that change places within the page are not in each other's way.
    shown = {stored.id for item in items if (stored := facts.stored.get(item.key)) is not None}
    taken: dict[tuple[str, str | None, int | None], object] = {
        floor: item_id for floor, item_id in facts.floor_holders.items() if item_id not in shown
    }
    free = []
    for item in items:
        scope, thread_id, number = item.item.scope, item.item.thread_id, item.item.floor_number
        is_placed = thread_id is not None and number is not None
        if is_placed and taken.setdefault((scope, thread_id, number), item.key) != item.key:
            item = item.replace(item=item.item.replace(floor_number=None))
        free.append(item)
    return free


def recognised(items: Sequence[RefinedItem], facts: PageFacts) -> continuity.Renamed:
    """Returns which of the unknown items are stored ones under a new id."""
    if not facts.lookalikes:
        return {}
    strangers = [item for item in items if not item.is_listed and item.key not in facts.stored]
    return continuity.recognise(strangers, facts.lookalikes)


def shows_forgotten(changes: Sequence[ItemChange]) -> bool:
    """Whether the page shows something that was deleted permanently."""
    return any(
        change.stored is None and change.change == Change.SAME and not change.item.is_listed for change in changes
    )


def all_calmed(changes: Sequence[ItemChange], facts: PageFacts, at: datetime) -> tuple[ItemChange, ...]:
    """Returns the changes; those that flip between known contents are suppressed."""
    return tuple(
        calmed(change, facts.earlier.get(change.stored.id, ()), at)
        if change.stored and change.change == Change.EDITED
        else change
        for change in changes
    )


def counts_of(changes: Sequence[ItemChange], invalid: int, unchanged: int = 0) -> Counts:
    """Returns the counts: new + updated + duplicate + invalid is always the number of items shown."""
    new = sum(1 for change in changes if change.change == Change.NEW)
    updated = sum(1 for change in changes if change.change in (Change.EDITED, Change.COUNTED))
    return Counts(new, updated, len(changes) - new - updated + unchanged, invalid)


def decide_follow_ups(
    items: Sequence[RefinedItem], skipped: int, follow_ups: tuple[FollowUp, ...], at: datetime, facts: PageFacts
) -> PageWrite:
    """Decides about the answers to follow-up requests. They prove nothing, and what came along with an item is not
    rechecked: it is seen again whenever that item is requested again."""
    changes = changes_of(items, facts, at)
    is_raw_kept = not shows_forgotten(changes)
    changes = all_calmed(changes, facts, at)
    return PageWrite(changes, counts_of(changes, skipped), is_raw_kept=is_raw_kept, follow_ups=follow_ups)


def decide_rechecks(
    reading: Reading, items: Sequence[RefinedItem], rechecks: tuple[NextRecheck, ...], at: datetime, facts: PageFacts
) -> PageWrite:
    """Decides about the answers to rechecks. They prove nothing; what was forgotten meanwhile stays forgotten. Replies
    of an item that has more of them now are requested by the next visit."""
    changes = []
    for item in on_free_floors(items, facts):
        stored = facts.stored.get(item.key)
        if stored is not None and item.is_gone:
            changes.append(gone(stored, item, at))
        elif stored is not None:
            # That a listing of ids has shown the item since says nothing about its content: only an observation of the
            # content may be newer.
            observed = stored.replace(shown_at=stored.applied_at or stored.shown_at)
            changes.append(judge(observed, item, at, last_point=facts.points.get(stored.id)))
    decided = with_follow_ups(all_calmed(changes, facts, at), reading)
    is_raw_kept = len(changes) == len(items)
    return PageWrite(decided, counts_of(decided, 0), is_raw_kept=is_raw_kept, rechecks=rechecks)


# Pages of a walk


class VisitPage(PageWrite, frozen=True, kw_only=True):
    """What a page of a visit changes, and how the visit continues."""

    state: VisitState
    details: tuple[Request, ...] = ()
    """Requests for items that were listed and are not stored, in the listing's order."""
    next_pages: tuple[Request, ...] = ()

    @property
    def is_walk_over(self) -> bool:
        return self.end is not None or self.progress is not None


def suspects_staleness(
    state: VisitState, reading: Reading, items: Sequence[RefinedItem], at: datetime, repeated: StoredEntries
) -> bool:
    """Whether the store must check if this same answer came once before."""
    before = state.progress.newest_shown_at
    if before is None or not state.walk.may_be_stale:
        return False
    newest = continuity.newest_shown(items, at, repeated.stated_at)
    # For bare ids, only the store knows the dates.
    return bool(listed_ids(reading)) or (newest is not None and newest < before)


def needs_rhythm(state: VisitState) -> bool:
    """Whether the visit has changed when the source's next post is expected. Counted over all pages of the visit; after
    an interrupted visit, what that one stored counts, too."""
    return state.visit_counts.new > 0 or state.began.last_error is not None


def decide_page(
    state: VisitState,
    reading: Reading,
    items: Sequence[RefinedItem],
    skipped: int,
    at: datetime,
    facts: PageFacts,
    *,
    repeated: StoredEntries = NONE_REPEATED,
    last_answer_at: datetime | None = None,
    clock_lag: timedelta = timedelta(),
) -> VisitPage:
    """Decides what a page of a walk changes: its items, the progress, gaps, and whether the walk or the visit is over.
    Raises StaleEntryMark.

    `repeated`: the entries of a window that are as in the last answer; they are not among `items`.
    `last_answer_at` is set for a page made of several answers; `at` is then the time of the first. `clock_lag`: how far
    the clock of the answer is behind ours.
    """
    listed, before = listed_ids(reading), state.walk.position
    assert before is not None
    position = before.replace(is_by_id=True) if listed else before
    changes = changes_of(items, facts, at, state.recheck_ages)
    unchanged = unchanged_among(repeated, changes, facts)
    is_raw_kept = not shows_forgotten(changes)
    details: tuple[Request, ...] = ()
    if listed:
        changes, details = _in_view(position, changes, listed, reading, state.walk.limit)
    # An item that is listed and not stored cannot be stale.
    if state.walk.may_be_stale and not details and continuity.is_stale(state.progress, changes, unchanged, facts, at):
        # Unseen items are stored, nothing else moves, and the visit fails.
        changes = continuity.without_changes(changes)
        valid = tiers.valid_among(changes, state.item_kind)
        page = VisitPage(
            changes,
            counts_of(changes, skipped, len(unchanged)),
            len(valid),
            is_seen=False,
            is_raw_kept=is_raw_kept,
            state=state,
        )
        state = end_stale(with_page(state, page), at)
        return page.replace(state=state, end=state.end)
    changes = with_follow_ups(all_calmed(changes, facts, at), reading)
    counts = counts_of(changes, skipped, len(unchanged))
    valid = tiers.valid_among(changes, state.item_kind)
    is_of_details = position.is_by_id and not listed
    shown_ids = [*unchanged.external_ids, *(change.item.item.external_id for change in changes)]
    is_repeat = not is_of_details and continuity.is_repeat(position, shown_ids)
    dates = continuity.dates_shown(reading.items, at, stated_at)
    position = continuity.step(position, changes, at, skipped, dates, clock_lag, unchanged)
    is_all_new = not unchanged and all(
        change.stored is None or not change.stored.is_shown_by_source for change in changes
    )
    next_pages = _next_pages(state, position, reading, len(details), is_all_new=is_all_new)
    end = None if details else _end(state, position, reading, bool(next_pages), is_repeat)
    is_unknown = reading.is_torn or (end is not None and state.walk.is_cut)
    if is_unknown and not _begins_window(before, reading):
        # The items are stored. How far down the listing went is unknown, so it proves nothing and moves no watermark.
        position = before.replace(newest=None, unpinned=0)
    # A listing of ids closes a gap only when everything it listed is stored.
    is_closing = not is_unknown and (end is not None or not position.is_by_id)
    page = VisitPage(
        changes,
        counts,
        len(valid),
        tiers.backlog_among(valid, state.watched_from),
        gap=continuity.gap_after(position, end, at) if end is not None and not is_unknown else None,
        closed=continuity.closed_gaps(position, facts.open_gaps) if is_closing else (),
        is_raw_kept=is_raw_kept,
        unchanged=unchanged,
        state=state,
        details=details,
        next_pages=next_pages,
    )
    has_follow_ups = state.has_follow_ups or any(change.follow_ups for change in changes)
    state = with_page(state, page).replace(walk=state.walk.replace(position=position), has_follow_ups=has_follow_ups)
    if end is None and not reading.is_torn:
        return page.replace(state=state)
    return _walk_over(
        state, page, facts, at, is_incomplete=is_unknown or state.walk.is_unfinished, last_at=last_answer_at
    )


def _begins_window(before: Walk, reading: Reading) -> bool:
    """Whether a window is shown for the first time, and its lower part is cut off. Nothing older is owed, and the next
    answer has to connect to its newest item: without a watermark, what came in between would be missing unnoticed. If
    the feed has older pages, the next visit is to read them, as a first one does."""
    return before.listing.is_window and before.watermark is None and reading.is_torn and not reading.follow


def _in_view(
    position: Walk, changes: Sequence[ItemChange], listed: Sequence[str], reading: Reading, limit: int
) -> tuple[tuple[ItemChange, ...], tuple[Request, ...]]:
    """Returns the items that the visit is about, and the requests for those that are not stored."""
    # Stored; or permanently forgotten, and then neither known nor requested.
    listed_items = {change.item.item.external_id: change.stored for change in changes if change.item.is_listed}
    ours = {external_id for external_id, stored in listed_items.items() if stored and stored.is_shown_by_source}
    view = dict.fromkeys(continuity.in_view(position, listed, ours, limit))
    asking = {clean_id(request.item_id): request for request in reading.follow if request.item_id is not None}
    details = tuple(
        asking[external_id] for external_id in view if external_id not in listed_items and external_id in asking
    )
    shown = (change for change in changes if not change.item.is_listed or change.item.item.external_id in view)
    return tuple(shown), details


def with_follow_ups(changes: tuple[ItemChange, ...], reading: Reading) -> tuple[ItemChange, ...]:
    """Returns the changes with the follow-up requests that the platform proposes, where they are worth it."""
    proposed: dict[str, tuple[Request, ...]] = {}
    for request in reading.follow:
        if request.about_item is not None:
            about = clean_id(request.about_item)
            proposed[about] = (*proposed.get(about, ()), request)
    if not proposed:
        return changes
    return tuple(
        change.replace(follow_ups=proposed[change.item.item.external_id])
        if change.item.item.external_id in proposed and is_worth_asking(change)
        else change
        for change in changes
    )


def _next_pages(
    state: VisitState, position: Walk, reading: Reading, details: int, *, is_all_new: bool
) -> tuple[Request, ...]:
    """Returns the requests for further pages, if they are worth sending; requests about single items are not pages."""
    pages = tuple(request for request in reading.follow if request.item_id is None and request.about_item is None)
    if position.listing.is_window:
        is_wanted = position.watermark is None and state.walk.pages < _MOST_WINDOW_PAGES
    elif position.listing.order != Order.NEWEST_FIRST or position.watermark is None:
        is_further = position.listing.is_stacked and is_all_new and state.began.last_success_at is not None
        is_wanted = is_further or position.shown + details < state.walk.limit
    else:
        is_wanted = not position.is_satisfied
    return pages if is_wanted else ()


def _end(state: VisitState, position: Walk, reading: Reading, goes_on: bool, is_repeat: bool) -> End | None:
    """Returns why the walk ends with this page; None if it continues."""
    if position.is_satisfied and state.walk.is_queue_empty:
        return End.REACHED
    if is_repeat:
        return End.REPEATS
    if state.walk.pages >= MOST_PAGES:
        return End.CAP
    if goes_on or not state.walk.is_queue_empty:
        return None
    if reading.is_end_doubtful:
        return End.INCOMPLETE
    # There is more, and the platform cannot lead to it: its list or its parser is at its limit.
    leads_on = any(request.about_item is None for request in reading.follow)
    return End.LAST_PAGE if reading.is_end or leads_on else End.CAP


def decide_spending_cap_end(
    state: VisitState, error: SpendingCapReached, message: str, at: datetime, facts: PageFacts
) -> VisitPage:
    """Ends a walk at a spending cap; the unread part becomes a gap."""
    position = state.walk.position
    assert position is not None
    state = end_without_money(state, completed(state, at, is_incomplete=True), error, message, at)
    gap = continuity.gap_after(position, End.MONEY, at)
    return VisitPage((), Counts(), gap=gap, state=state, end=state.end)


def ends_without_money(state: VisitState) -> bool:
    """Whether a walk for which no more may be spent ends where it is, with a gap. Otherwise nothing is proven, and the
    next visit continues, or starts over."""
    walk, position = state.walk, state.walk.position
    if walk.is_beside or walk.is_cut or position is None or position.is_by_id:
        return False
    return position.watermark is not None and position.listing.order == Order.NEWEST_FIRST


def with_page(state: VisitState, page: PageWrite) -> VisitState:
    result = state.result
    return state.replace(
        result=result.replace(
            counts=result.counts + page.counts,
            valid=result.valid + page.valid,
            backlog=result.backlog + page.backlog,
        )
    )


def _walk_over(
    state: VisitState, page: VisitPage, facts: PageFacts, at: datetime, *, is_incomplete: bool, last_at: datetime | None
) -> VisitPage:
    """Ends the walk, and perhaps the visit. `is_incomplete`: not everything that was there could be stored."""
    is_volatile = any(change.is_volatile for change in page.changes)
    progress = completed(state, at, is_incomplete=is_incomplete or is_volatile)
    is_visit_over = state.walk.is_last and not state.has_follow_ups
    if facts.newest_at is not None and needs_rhythm(state):
        progress = with_rhythm(state, progress, page.changes, facts.newest_at, at)
    state = state.noted(*state.walk.shortfall_notes)
    if not is_visit_over:
        return page.replace(state=prove(state, progress), progress=progress)
    state = succeed(state.replace(progress=progress), at, polled_at=state.walk.polled_at, finished_at=last_at)
    return page.replace(state=state, end=state.end)


def completed(state: VisitState, at: datetime, *, is_incomplete: bool) -> Progress:
    """Returns the progress now that this walk is over; the visit itself may continue."""
    walk, total = state.walk, state.visit_counts
    is_first = walk.after.last_success_at is None
    progress = walk.after.replace(
        # Failures before say nothing about what was posted meanwhile: it is watched from this visit on.
        first_polled_at=None if is_first else walk.after.first_polled_at,
        stale_count=0,
        last_success_at=at,
        last_new_at=at if total.new else walk.after.last_new_at,
        failures_in_a_row=0,
    )
    position = walk.position
    if walk.is_beside or position is None:
        return progress
    listing = position.listing
    progress = progress.replace(
        watermark=continuity.moved(position, at),
        newest_shown_at=position.newest.at if position.newest else progress.newest_shown_at,
        # How many items the listing shows at all: as the platform says or, for a window, as many as it showed.
        reach=position.shown if listing.reach is None and listing.is_window else listing.reach,
        last_shown_count=total.shown if position.is_by_id else progress.last_shown_count,
    )
    # What was shown and not stored must be read again: neither a 304 nor an identical answer may prevent that.
    return progress.replace(**NO_VALIDATORS) if is_incomplete else progress


def with_rhythm(
    state: VisitState, progress: Progress, changes: Sequence[ItemChange], newest_at: Sequence[datetime], at: datetime
) -> Progress:
    """Returns the progress with what the times of the newest posts say: posts per day, and when the next is expected.
    `newest_at` are the times before this page."""
    added = [at_ for change in changes if (at_ := _first_shown_at(change, state.walk.rhythm_kind)) is not None]
    times = sorted(chain(newest_at, added), reverse=True)
    return progress.replace(
        expected_by=schedule.expected_by(
            times, state.interval(progress).minutes, watched_since=progress.first_polled_at or state.walk.polled_at
        ),
        posts_per_day=schedule.posts_per_day(times, at),
    )


def _first_shown_at(change: ItemChange, item_kind: str | None) -> datetime | None:
    """Returns when a post was posted that this source shows for the first time; None: it does not, or is not a post."""
    if item_kind not in (None, change.item.item.kind):
        return None
    if change.change == Change.NEW:
        return cast(datetime, change.values["ordered_at"])
    return moment(change.stored.ordered_at) if change.stored and not change.stored.is_shown_by_source else None
