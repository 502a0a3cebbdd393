"""Capturing a forum: how far down its list is read, which threads, from which page, and what a page proves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from catchment.errors import CatchmentError, Gone, Missing, Refused
from catchment.model import (
    Forum,
    HeldFloor,
    ItemChange,
    ListNote,
    PageFacts,
    PageWrite,
    Reading,
    ReadReason,
    Record,
    RefinedItem,
    Request,
    Source,
    ThreadMarks,
    ThreadPage,
    ThreadRow,
    ThreadSeen,
    ThreadState,
    Watermark,
)
from catchment.policy import continuity, judge
from catchment.policy.continuity import End
from catchment.policy.page import all_calmed, changes_of, completed, counts_of, shows_forgotten, with_page, with_rhythm
from catchment.policy.schedule import SURELY_GONE
from catchment.policy.visit import MOST_PAGES, VisitState, prove

MOST_THREAD_SECONDS = 240
"""How long a visit, or one run of the job, reads threads: no lease is held for longer."""


class Window(Record, frozen=True):
    """The days of a board that are read, in the forum's zone."""

    first_day: date
    last_day: date
    starts_at: datetime


def window(forum: Forum, days: int, now: datetime) -> Window:
    """Returns today and the days before it, as days in the forum's zone."""
    zone = ZoneInfo(forum.zone)
    today = now.astimezone(zone).date()
    first = today - timedelta(days=min(days, today.toordinal()) - 1)
    return Window(first, today, datetime.combine(first, time(), zone).astimezone(now.tzinfo))


class BoardWalk(Record, frozen=True):
    """How far the list of a board has been read in this visit."""

    forum: Forum
    window: Window
    edge: datetime
    """Threads from here on are inside: the window's first day, or the watermark if that is earlier."""
    list_page: int = 0

    @property
    def is_first_page(self) -> bool:
        return self.list_page <= 1


def begin_board(forum: Forum, source: Source, watermark: Watermark | None, now: datetime) -> BoardWalk:
    days = window(forum, int(source.settings.get("window_days", 3)), now)
    edge = min(days.starts_at, watermark.at) if watermark else days.starts_at
    return BoardWalk(forum, days, edge)


# The list


class ThreadListPage(PageWrite, frozen=True, kw_only=True):
    """What a list page changes, and how the walk continues."""

    state: VisitState
    next_pages: tuple[Request, ...] = ()


def decide_list_page(
    board: BoardWalk,
    state: VisitState,
    reading: Reading,
    items: Sequence[RefinedItem],
    skipped: int,
    at: datetime,
    facts: PageFacts,
) -> ThreadListPage:
    """Decides what a list page changes: its rows, the threads to be read, and whether the walk is over."""
    before = state.walk.position
    assert before is not None
    changes = changes_of(items, facts, at, state.recheck_ages)
    is_raw_kept = not shows_forgotten(changes)
    changes = all_calmed(changes, facts, at)
    rows = {row.thread_id: row for row in reading.threads}
    threads = tuple(_seen_threads(board, changes, rows, facts.threads, at))
    ordered = _rows_in_order(changes, rows)
    is_repeat = continuity.is_repeat(before, [change.item.item.external_id for change in changes])
    position = continuity.step(before, ordered, at, skipped)
    dates = [change.item.item.created_at for change in ordered]
    # One old row ends nothing; a page without a row inside the window does.
    is_below = bool(dates) and not any(created is None or created >= board.edge for created in dates)
    end = _end_of_list(state, reading, is_below=is_below, is_repeat=is_repeat)
    is_cut = reading.is_torn or (end is not None and state.walk.is_cut)
    page = ThreadListPage(
        changes,
        counts_of(changes, skipped),
        gap=continuity.gap_after(position, end, at) if end is not None and not is_cut else None,
        closed=continuity.closed_gaps(position, facts.open_gaps) if not is_cut else (),
        is_raw_kept=is_raw_kept,
        threads=threads,
        list_note=ListNote(
            board.window.first_day,
            board.window.last_day,
            len(rows),
            sum(1 for thread in threads if thread.is_changed),
            board.is_first_page,
        ),
        state=state,
        next_pages=reading.follow if end is None else (),
    )
    state = with_page(state, page).replace(walk=state.walk.replace(position=before if is_cut else position))
    if end is None and not reading.is_torn:
        return page.replace(state=state)
    progress = completed(state, at, is_incomplete=is_cut)
    if facts.newest_at is not None:
        progress = with_rhythm(state, progress, page.changes, facts.newest_at, at)
    return page.replace(state=prove(state, progress), progress=progress, next_pages=())


def _end_of_list(state: VisitState, reading: Reading, *, is_below: bool, is_repeat: bool) -> End | None:
    if is_below:
        return End.REACHED
    if is_repeat:
        return End.REPEATS
    if state.walk.pages >= MOST_PAGES:
        return End.CAP
    return None if reading.follow else End.LAST_PAGE


def _rows_in_order(changes: Sequence[ItemChange], rows: Mapping[str, ThreadRow]) -> Sequence[ItemChange]:
    """Returns the rows that stand in order of posting. On a page that has none, as on one that shows only sub-boards:
    those that are at least neither pinned nor mirrors, else all of them. Otherwise the list would never end."""
    unpinned = [change for change in changes if not change.item.item.is_pinned]
    listed = [(change, rows.get(change.item.item.thread_id or "")) for change in unpinned]
    in_order = [change for change, row in listed if row is not None and not row.is_out_of_order]
    return in_order or [change for change in unpinned if not change.item.item.is_partial] or changes


def _seen_threads(
    board: BoardWalk,
    changes: Sequence[ItemChange],
    rows: Mapping[str, ThreadRow],
    stored: Mapping[str, ThreadState],
    at: datetime,
) -> list[ThreadSeen]:
    heads = {
        change.item.item.thread_id: change.item.key
        for change in changes
        # What was deleted permanently is not read, either.
        if change.item.item.thread_id is not None and (change.stored is not None or change.change != "same")
    }
    return [
        seen_thread(board, row, heads[thread_id], stored.get(thread_id), at)
        for thread_id, row in rows.items()
        if thread_id in heads
    ]


def seen_thread(
    board: BoardWalk, row: ThreadRow, head: tuple[str, str], stored: ThreadState | None, at: datetime
) -> ThreadSeen:
    """Returns what a row of the list says about its thread. One that waits to be read keeps its place, whatever the
    list says now; one with too many pages waits no longer."""
    page_count = row.page_count if row.page_count is not None else (stored.page_count if stored else None)
    is_too_long = page_count is not None and page_count > board.forum.most_pages
    is_changed = stored is None or stored.last_reply_at != row.last_reply_at
    changed_at: datetime | None = at
    waiting_since: datetime | None = at
    skipped_since = at
    reason = why_read(stored, row)
    if stored is not None:
        changed_at = at if is_changed else stored.changed_at
        skipped_since = stored.skipped_since or at
        waiting_since = stored.waiting_since if stored.read_reason else at
        reason = reason or stored.read_reason
    is_waiting = reason is not None and not is_too_long
    return ThreadSeen(
        row.thread_id,
        head,
        stored,
        board.list_page,
        row.last_reply_at,
        page_count,
        is_changed,
        changed_at,
        reason if is_waiting else None,
        waiting_since if is_waiting else None,
        skipped_since if is_too_long else None,
    )


def why_read(stored: ThreadState | None, row: ThreadRow) -> ReadReason | None:
    """Returns why to read a thread that the list shows; None: nothing has changed since it was read."""
    if stored is None or (stored.last_read_at is None and stored.read_reply_at is None):
        return ReadReason.NEW
    if stored.next_page is not None:
        return ReadReason.PENDING
    # In either direction: an earlier time says that the last reply was removed.
    return ReadReason.REPLIED if stored.read_reply_at != row.last_reply_at else None


# Threads


class ThreadReading(Record, frozen=True):
    """The reading of a thread under way in one run."""

    thread: ThreadState
    forum: Forum
    page: int
    """The page to request next."""
    pages_left: int
    marks: ThreadMarks | None = None
    """After the last page that was read."""
    stale_page: int | None = None
    """The first page of which an old copy came: the next round begins with it."""


def begin_reading(thread: ThreadState, forum: Forum, pages_per_run: int) -> ThreadReading:
    """Returns where to begin: at the pending page, else at the page of the highest stored floor, which may have
    changed."""
    page = thread.next_page or (1 if thread.max_floor is None else forum.page_of(thread.max_floor))
    if thread.page_count is not None:
        page = min(page, max(1, thread.page_count))
    return ThreadReading(thread, forum, page, pages_per_run)


def numbers_shown(forum: Forum, page: ThreadPage, max_floor: int | None) -> tuple[int, int]:
    """Returns the first and the last floor number about which a page says whether the floor is there. The last page of
    a thread says so about all higher ones, up to the highest that was read: whole pages may have been removed."""
    first = forum.first_floor + (page.number - 1) * forum.floors_per_page
    last = first + forum.floors_per_page - 1
    is_last = page.page_count is not None and page.number >= page.page_count
    return first, max(last, max_floor) if is_last and max_floor is not None else last


class FloorPage(PageWrite, frozen=True, kw_only=True):
    """What a page of a thread changes, and how reading continues."""

    reading: ThreadReading


def decide_floor_page(
    reading: ThreadReading,
    thread_page: ThreadPage,
    items: Sequence[RefinedItem],
    skipped: int,
    at: datetime,
    facts: PageFacts,
    *,
    recheck_ages: Sequence[timedelta] = (),
) -> FloorPage:
    """Decides what a page of a thread changes: its floors, and how far the thread is captured. An old copy only adds
    floors that were never seen."""
    page_count = thread_page.page_count
    is_too_long = page_count is not None and page_count > reading.forum.most_pages
    is_old = is_old_copy(reading.thread, thread_page)
    shown = [item for item in items if item.item.is_head] if is_too_long else items
    shown, moved_floors = with_free_floors(shown, facts.floors)
    changes = all_calmed(changes_of(shown, facts, at, recheck_ages), facts, at)
    marks = marks_after(reading, thread_page, shown, at, is_too_long=is_too_long).replace(
        absent=() if is_too_long or skipped else absent_floors(shown, facts.floors),
        moved_floors=moved_floors,
        is_stale=is_older_than_list(reading.thread, thread_page),
    )
    # Kept, an old copy would be taken for an answer of its time when it is parsed again.
    is_raw_kept = not is_old and not shows_forgotten(changes)
    if is_old:
        changes, marks = seen_first(changes), marks_of_old_copy(marks, changes)
    stale_page = reading.stale_page or (thread_page.number if is_old else None)
    after = reading.replace(
        page=thread_page.number + 1, pages_left=reading.pages_left - 1, marks=marks, stale_page=stale_page
    )
    after = after.replace(marks=with_staleness(after, marks))
    return FloorPage(
        changes,
        counts_of(changes, skipped),
        is_seen=not is_old,
        is_raw_kept=is_raw_kept,
        thread_marks=after.marks,
        reading=after,
    )


def is_older_than_list(thread: ThreadState, page: ThreadPage) -> bool:
    """Whether a page shows less of the thread than the list did before: an earlier last reply or, where that is not
    stated, fewer pages. It is an old copy, or the last reply was removed, which the list says in the next round."""
    if thread.last_reply_at is not None and page.last_reply_at is not None:
        return page.last_reply_at < thread.last_reply_at
    return thread.page_count is not None and page.page_count is not None and page.page_count < thread.page_count


def is_old_copy(thread: ThreadState, page: ThreadPage) -> bool:
    """Whether a page that is older than the list is taken for an old copy. If this keeps happening, the list is wrong,
    and pages are accepted until one of them matches it."""
    return thread.stale_count < continuity.STALE_ENOUGH and is_older_than_list(thread, page)


def seen_first(changes: Sequence[ItemChange]) -> tuple[ItemChange, ...]:
    """Reduces an old copy to what was not seen before: new floors, and the text of an opening post of which only the
    row in the list is stored."""
    return tuple(
        judge.completion(change, keeps_title=True)
        if change.is_completed and set(change.reasons) <= {"title_changed"}
        else reduced
        for change, reduced in zip(changes, continuity.without_changes(changes), strict=True)
    )


def marks_of_old_copy(marks: ThreadMarks, changes: Sequence[ItemChange]) -> ThreadMarks:
    """Returns what an old copy proves: that its new floors were there."""
    new = [change.item.item.floor_number for change in changes if change.stored is None]
    filled = tuple(number for number in new if number is not None)
    return marks.replace(page_count=marks.thread.page_count, holes=(), filled=filled, absent=())


def with_staleness(reading: ThreadReading, marks: ThreadMarks) -> ThreadMarks:
    """Returns the marks with the number of readings in a row that met an old copy, whose page is read again in the next
    round."""
    count = marks.thread.stale_count
    if marks.skipped_since is not None:
        return marks
    if reading.stale_page is not None:
        return marks.replace(next_page=reading.stale_page, stale_count=count + 1)
    is_caught_up = marks.next_page is None and not marks.is_stale
    return marks.replace(stale_count=0 if is_caught_up else count)


def marks_after(
    reading: ThreadReading, page: ThreadPage, items: Sequence[RefinedItem], at: datetime, *, is_too_long: bool
) -> ThreadMarks:
    """Returns how far the thread is captured after this page."""
    thread = reading.thread
    before = reading.marks
    highest, highest_id = (before.max_floor, before.max_floor_id) if before else (thread.max_floor, thread.max_floor_id)
    for item in items:
        number = item.item.floor_number
        if number is not None and (highest is None or number >= highest):
            highest, highest_id = number, item.item.external_id
    if is_too_long:
        since = thread.skipped_since or at
        return ThreadMarks(thread, page.page_count, None, highest, highest_id, skipped_since=since, is_over=True)
    last_page = page.page_count if page.page_count is not None else page.number
    is_end = page.number >= last_page
    is_capped = not is_end and reading.pages_left <= 1
    return ThreadMarks(
        thread,
        page.page_count,
        None if is_end else page.number + 1,
        highest,
        highest_id,
        truncated_at_page=page.number if is_capped else None,
        is_over=is_end or is_capped,
        holes=page.holes,
        filled=tuple(item.item.floor_number for item in items if item.item.floor_number is not None),
    )


def marks_after_failure(reading: ThreadReading, error: CatchmentError, at: datetime) -> ThreadMarks:
    """Returns how far a thread is captured after one of its pages failed: the page is requested again in the next
    round. If the thread does not exist or is not shown to us, twice and at least an hour apart, only once the list
    states another last reply."""
    thread, before = reading.thread, reading.marks
    is_hidden = isinstance(error, Refused) and error.is_final and not error.is_passing
    is_gone = is_hidden or isinstance(error, Missing | Gone)
    is_surely_gone = is_gone and thread.gone_since is not None and at - thread.gone_since >= SURELY_GONE
    return ThreadMarks(
        thread,
        before.page_count if before else None,
        None if is_surely_gone else reading.stale_page or reading.page,
        before.max_floor if before else thread.max_floor,
        before.max_floor_id if before else thread.max_floor_id,
        truncated_at_page=None if is_surely_gone else thread.truncated_at_page,
        gone_since=thread.gone_since or (at if is_gone else None),
        stale_count=before.stale_count if before else thread.stale_count,
        is_over=True,
    )


def with_free_floors(
    items: Sequence[RefinedItem], stored_floors: Mapping[int, HeldFloor]
) -> tuple[list[RefinedItem], tuple[int, ...]]:
    """Returns the items; one whose floor number another item has loses it, and the number is returned as well. It must
    never block a page."""
    shown = {item.item.external_id for item in items}
    # Floors that change places within the page are not in each other's way.
    taken = {number for number, floor in stored_floors.items() if floor.external_id not in shown}
    free, moved = [], []
    for item in items:
        number = item.item.floor_number
        if number in taken:
            moved.append(number)
            item = item.replace(item=item.item.replace(floor_number=None))
        elif number is not None:
            taken.add(number)
        free.append(item)
    return free, tuple(moved)


def absent_floors(items: Sequence[RefinedItem], stored_floors: Mapping[int, HeldFloor]) -> tuple[int, ...]:
    """Returns the stored items that a page that was served should show, and does not."""
    shown = {item.item.external_id for item in items}
    return tuple(
        floor.item_id for floor in stored_floors.values() if floor.external_id not in shown and not floor.is_deleted
    )
