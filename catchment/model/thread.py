"""Threads of a forum: how far each is captured, and what a page of the list or of a thread changes about it."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum

from catchment.model.item import Key
from catchment.model.record import Record


class ReadReason(StrEnum):
    """Why a thread will be read."""

    NEW = "new"
    REPLIED = "last_reply_changed"
    PENDING = "pages_pending"


class ThreadState(Record, frozen=True):
    """How far a thread is captured. Its title, author, times and counters are those of its opening item."""

    id: int
    source_id: int
    thread_id: str
    """`thread_id` of its items."""
    item_id: int | None
    """The opening item."""
    first_list_page: int | None
    """On which page of the list it was seen first."""
    last_list_page: int | None
    last_reply_at: datetime | None
    """As the list stated last."""
    read_reply_at: datetime | None
    """As the list stated when the thread was last read to its end."""
    changed_at: datetime | None
    """When the list last stated another time of the last reply."""
    page_count: int | None
    """As stated last."""
    next_page: int | None
    """The page to read next; None: it was read to its end."""
    truncated_at_page: int | None
    """The last page that was read when a run's limit of pages ended the reading; None: it was not truncated."""
    max_floor: int | None
    """The highest floor that was shown on a page."""
    max_floor_id: str | None
    """The id of the item on it."""
    skipped_since: datetime | None
    """Since when it has had too many pages to be read; None: it has not."""
    gone_since: datetime | None
    """Since when the platform has answered that it does not exist, or does not show it; None: it was there the last
    time."""
    stale_count: int
    """How many readings in a row ended with an answer that is older than the list."""
    read_reason: ReadReason | None
    """Set while it waits to be read in the current round."""
    waiting_since: datetime | None
    last_read_at: datetime | None
    """When a page of it was last read."""
    created_at: datetime
    """When the list first showed it."""


class ThreadSeen(Record, frozen=True):
    """What a list page changes about a thread."""

    thread_id: str
    head: Key
    """The opening item, which is on the same page."""
    stored: ThreadState | None
    list_page: int
    last_reply_at: datetime | None
    page_count: int | None
    is_changed: bool
    """The list states another time of the last reply than before."""
    changed_at: datetime | None
    """When the list first stated this time of the last reply."""
    read_reason: ReadReason | None
    """None: it need not be read."""
    waiting_since: datetime | None
    """Since when it has waited to be read."""
    skipped_since: datetime | None = None


class ListNote(Record, frozen=True):
    """What a list page adds to the record of a board's run."""

    first_day: date
    last_day: date
    """The window: days in the forum's zone."""
    scanned: int
    changed: int
    is_first: bool
    """It is the first page of a round: threads with pending pages wait to be read again."""


class ThreadMarks(Record, frozen=True):
    """What a page of a thread proves, written in the page's transaction."""

    thread: ThreadState
    """As it was claimed."""
    page_count: int | None
    next_page: int | None
    max_floor: int | None
    max_floor_id: str | None
    truncated_at_page: int | None = None
    skipped_since: datetime | None = None
    gone_since: datetime | None = None
    stale_count: int = 0
    is_stale: bool = False
    """The page is older than the list."""
    is_over: bool = False
    """This run reads no further page of it."""
    holes: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()
    """The floors that were shown."""
    absent: tuple[int, ...] = ()
    """Items whose floors the page should show, and does not: they are requested by id."""
    moved_floors: tuple[int, ...] = ()
    """Numbers that another item holds already: the second one is stored without its number."""
    is_repair: bool = False
    """The page was requested for missing floors: it changes only holes, not how far the thread is read."""

    @property
    def is_complete(self) -> bool:
        return self.is_over and self.next_page is None and self.skipped_since is None


class HeldFloor(Record, frozen=True):
    """A stored item of a thread that has a floor number."""

    floor_number: int
    item_id: int
    external_id: str
    is_deleted: bool


class ThreadResult(Record, frozen=True):
    """How the reading of a thread ended; what its pages brought is recorded with each of them."""

    thread: ThreadState
    http_status: int | None = None
    error_code: str | None = None
    error: str | None = None
