"""A page on its way into the store: what it shows, what is stored, and what is written; the history of an item, and
what a stored answer that is parsed again corrects in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from catchment.messages import Message
from catchment.model.item import Key, Labels, Media, RefinedItem
from catchment.model.outcome import Counts, Gap, Lease, VisitResult
from catchment.model.protocol import Request
from catchment.model.record import JsonObject, Record
from catchment.model.source import Progress, Source
from catchment.model.thread import HeldFloor, ListNote, ThreadMarks, ThreadSeen, ThreadState


class RawAnswer(Record, frozen=True):
    """An answer as received, compressed, with the request in a form that may be shown."""

    step: str
    request: JsonObject
    url: str
    http_status: int
    headers: dict[str, str]
    parser_version: int
    is_read: bool
    body_hash: bytes
    body: bytes


class FloorRange(Record, frozen=True):
    """A stretch of floor numbers of a thread, both ends included."""

    scope: str
    thread_id: str
    first: int
    last: int


class Booking(Record, frozen=True):
    """What one call to a paid service cost, ready to be booked. Amounts are millionths of a US dollar."""

    service: str
    credential: str | None
    source_id: int | None
    """None: it was made for no source (a check of a credential, a preview)."""
    day: str
    """In UTC, as 2026-01-31: when it was sent."""
    reservation_id: int | None = None
    """Its reservation, which ends with the booking; None: nothing was reserved, because the call costs nothing."""
    items: int = 0
    profiles: int = 0
    amount: int = 0
    uncertain_amount: int = 0
    """The most that it may have cost, if its answer never came, or did not tell."""
    is_sent: bool = True
    """False: the service was not reached. Only the reservation ends."""


UNDATED = -(2**63)


class StoredEntries(Record, frozen=True):
    """Entries of a source's last answer.

    In columns, as `UnchangedEntries` are, and with times as numbers: a feed repeats nine of ten entries in every
    answer, and records and times for each of them cost as much as everything else about the page.
    """

    marks: Sequence[int] = ()
    item_ids: Sequence[int] = ()
    stated_at: Sequence[int] = ()
    """When they were posted, as they state themselves, in microseconds since 1970; or UNDATED."""

    def __len__(self) -> int:
        return len(self.marks)

    def at(self, places: Collection[int]) -> StoredEntries:
        """Returns the entries at these places."""
        columns = self.marks, self.item_ids, self.stated_at
        return StoredEntries(*([column[place] for place in places] for column in columns))


NONE_REPEATED = StoredEntries()


class ShownEntries(NamedTuple):
    """All entries of one answer, by their marks: the beginnings of hashes, as signed numbers of 64 bits."""

    body_hash: bytes
    new: Mapping[str, int]
    """The marks of those that were parsed, by their items' ids."""
    repeated: StoredEntries
    """Those that are as in the last answer, in the order shown."""


class Page(Record, frozen=True):
    """What one answer showed, or a few that were requested one by one, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    answered_at: datetime
    items: tuple[RefinedItem, ...]
    fingerprint_rule: int
    may_have_new_ids: bool = False
    """Feeds change their ids now and then; platforms with ids of their own do not."""
    suspects_staleness: bool = False
    raws: tuple[RawAnswer, ...] = ()
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""
    bookings: tuple[Booking, ...] = ()
    """What the calls that led to it cost."""
    item_kind: str | None = None
    """The source's rhythm is derived from items of this kind; None: from all its items."""
    needs_rhythm: bool = False
    """The times of the source's newest posts are needed, even if this page shows nothing new."""
    thread_ids: tuple[str, ...] = ()
    """The threads that a list page of a forum shows."""
    floors: FloorRange | None = None
    """The floors that a page of a thread should show."""
    counts_replies: bool = False
    """Replies of its source are collected: the platform's own counts are compared with those stored."""
    invalidates_cache: bool = False
    """Sources of its platform are cached: changes by this page invalidate their cached sets."""
    is_continuable: bool = False
    """Its walk costs money: if it is cut short, the next visit continues below this page."""
    shown: ShownEntries | None = None
    """The entries of the first page of a window, by which the next visit recognises those that did not change."""

    @property
    def repeated(self) -> StoredEntries:
        """The entries that are as in the last answer: nothing of them is in `items`."""
        return NONE_REPEATED if self.shown is None else self.shown.repeated


# What the store knows


class StoredItem(Labels, frozen=True):
    """The stored state of an item: what `judge` needs to compare it with an observation."""

    id: int
    external_id: str
    fingerprint: bytes
    version: int
    ordered_at: int
    """Microseconds, as stored: never shown, only passed back to the store."""
    shown_at: datetime
    """When the newest answer that showed it arrived."""
    title: str | None
    url: str | None
    author: str | None
    author_display_name: str | None
    edited_at: datetime | None
    score: int | None
    reply_count: int | None
    view_count: int | None
    rounded: tuple[str, ...]
    is_deleted: bool
    is_folded: bool
    tags: tuple[str, ...]
    volatile_until: datetime | None
    is_shown_by_source: bool
    """Whether this source showed it before (another one may have)."""
    created_at: datetime | None = None
    """As first stated, or guessed."""
    first_seen_at: datetime | None = None
    is_created_at_guessed: bool = False
    is_seen_by_others: bool = False
    """Another source has shown it since this one did: the stored state may come from that one."""
    applied_at: datetime | None = None
    """When the newest answer that changed anything about it arrived."""
    deleted_by: str | None = None
    is_partial: bool = False
    """Only a short form has been seen so far."""
    is_withheld: bool = False
    """Only its deletion is stored: its text was never seen."""
    last_reply_at: datetime | None = None
    """As stated by the platform, or taken from the stored replies."""
    fingerprint_rule: int = 0
    """The version of the rule that made its fingerprint."""
    title_prefixes: tuple[str, ...] = ()
    thread_id: str | None = None
    floor_number: int | None = None
    volatile_count: int = 0
    """How many changes were not written because its content flipped between known ones."""


UnchangedRow: TypeAlias = tuple[int, str, int, int | None]
"""What is stored about an item that a page repeats from the last answer: its id, its external id, and by which time it
is ordered and when it was created, in microseconds. Nothing of its content is compared."""


class Point(Record, frozen=True):
    """The counters of an item at one moment."""

    at: datetime
    score: int | None = None
    reply_count: int | None = None
    view_count: int | None = None


class PastContent(Record, frozen=True):
    """An earlier content of an item."""

    fingerprint: bytes
    valid_to: datetime


class PageFacts(Record, frozen=True):
    """What the store knows about a page, read after the rows of its items are locked."""

    stored: Mapping[Key, StoredItem] = {}
    """The stored items of the page, also by their aliases and by the ids that they may have because of their date."""
    unchanged: Mapping[int, UnchangedRow] = {}
    """The stored items that the page repeats from the last answer, by their ids: those that no other source has shown
    since."""
    lookalikes: tuple[StoredItem, ...] = ()
    """The newest items of the source that the page does not show; loaded if the page may show them under new ids."""
    forgotten: frozenset[Key] = frozenset()
    """Items of the page that were deleted permanently."""
    earlier: Mapping[int, tuple[PastContent, ...]] = {}
    """The earlier contents of stored items whose content or marks differ from what the page shows."""
    points: Mapping[int, Point] = {}
    """The newest history point of each stored item whose counters or content differ from what the page shows."""
    retitled: Mapping[int, bytes] = {}
    """Of stored items that a list shows without text and with another title: the fingerprint of the stored content
    under the new title."""
    threads: Mapping[str, ThreadState] = {}
    """The stored threads that a list page shows, by `thread_id`."""
    floors: Mapping[int, HeldFloor] = {}
    """What a thread holds on the floors of the page, by floor number."""
    floor_holders: Mapping[tuple[str, str, int], int] = {}
    """The ids of the stored items on the floors that the page's items name, by scope, thread and floor number."""
    open_gaps: tuple[Gap, ...] = ()
    is_body_seen_before: bool = False
    """An identical body was received before, with different ones since."""
    newest_at: tuple[datetime, ...] | None = None
    """When the newest posts of the source were posted, before this page; loaded if anything on the page is new."""


# What is written

ItemValue: TypeAlias = str | bytes | int | bool | datetime | tuple[str, ...] | tuple[Media, ...] | None
ItemValues: TypeAlias = dict[str, ItemValue]
"""Columns of an item, with their values."""


class Change(StrEnum):
    NEW = "new"
    EDITED = "edited"
    COUNTED = "counted"
    SAME = "same"


class ItemChange(Record, frozen=True):
    """What an observation changes about one item, as values to write."""

    item: RefinedItem
    stored: StoredItem | None
    change: Change
    reasons: tuple[str, ...] = ()
    """Why a revision is written, in an order that clients may rely on."""
    values: ItemValues = {}
    """The columns that change, with their new values; for a new item, those that are not simply what it states."""
    is_reindexed: bool = False
    """Its content, author or tags change: the search index and clients that read changes must see it."""
    is_completed: bool = False
    """The stored item is a short form: this is the first complete one and replaces it, references included."""
    is_volatile: bool = False
    """It flips between known contents: counted, and no revision until tomorrow."""
    is_alias: bool = False
    """Stored under another id: the new id becomes an alias."""
    point: Point | None = None
    """A point for the history of its counters."""
    recheck_at: datetime | None = None
    """When the new item is rechecked; None: never."""
    follow_ups: tuple[Request, ...] = ()
    """Requests about it that are queued."""


class UnchangedEntries(Record, frozen=True):
    """The entries of a page that are as in the last answer, with what is stored about them, in columns. They are only
    seen again."""

    item_ids: Sequence[int] = ()
    external_ids: Sequence[str] = ()
    stated_at: Sequence[int] = ()
    """As in `StoredEntries`."""
    ordered_at: Sequence[int] = ()
    """As stored, in microseconds."""
    created_at: Sequence[int | None] = ()

    def __len__(self) -> int:
        return len(self.item_ids)


NONE_UNCHANGED = UnchangedEntries()


class NextRecheck(Record, frozen=True):
    """The state after a recheck of an item: when the next one is due, and the counts so far."""

    item_id: int
    at: datetime | None
    """None: no more rechecks."""
    count: int
    failure_count: int = 0
    gone_since: datetime | None = None


class FollowUp(Record, frozen=True):
    """Pending follow-up requests about one item."""

    item_id: int
    external_id: str
    requests: tuple[Request, ...]
    """Empty: all done."""
    asked_count: int = 0
    """How many requests were made since the follow-up was queued."""


class VisitEnd(Record, frozen=True):
    """How a visit ends: written with its last page, or alone."""

    result: VisitResult
    progress: Progress
    alert: str | None = None
    """Opens the source's alert with this message."""
    alert_yields_to: tuple[str, ...] = ()
    """Subjects of alerts that report the same: while one of them is open, this one is not opened."""
    is_recovered: bool = False
    """Closes the source's alert."""
    retire: str | None = None
    new_target: str | None = None
    new_name: str | None = None


class GapRemainder(Record, frozen=True):
    """A gap whose upper part was repaired: what is left, and the items at its upper edge."""

    gap_id: int
    to_at: datetime
    to_ids: tuple[str, ...]


class PageWrite(Record, frozen=True):
    """What a page changes, as decided: the store writes it as it is."""

    changes: tuple[ItemChange, ...]
    counts: Counts
    valid: int = 0
    """How many of the new items are valid posts."""
    backlog: int = 0
    """How many of the valid ones a first visit found already there."""
    gap: Gap | None = None
    closed: tuple[tuple[int, Message], ...] = ()
    """Gaps that are closed, by id, with the reason."""
    narrowed: GapRemainder | None = None
    is_seen: bool = True
    """False: the answer is stale, and no sighting is updated."""
    is_raw_kept: bool = True
    """False: the answer shows something that was deleted permanently; stored, it would bring that back."""
    progress: Progress | None = None
    """The progress after a completed walk, if the visit continues with another one."""
    end: VisitEnd | None = None
    rechecks: tuple[NextRecheck, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()
    """The state of earlier follow-ups after this page."""
    threads: tuple[ThreadSeen, ...] = ()
    unfinished_walk: bytes | None = None
    """The walk after this page, as JSON; None: it is over."""
    list_note: ListNote | None = None
    thread_marks: ThreadMarks | None = None
    unchanged: UnchangedEntries = NONE_UNCHANGED


class FinishedVisit(Record, frozen=True):
    """The end of one visit, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    end: VisitEnd
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""
    board: ListNote | None = None
    """The window of a board, whose record says how many requests were sent, also by a visit that fails."""


class Version(Record, frozen=True):
    """The content of an item from a time on."""

    since: datetime
    fingerprint: bytes
    title: str | None
    is_deleted: bool
    is_folded: bool
    number: int
    revision_id: int | None
    """None: it is the current one."""


class History(Record, frozen=True):
    """The versions of an item, oldest first."""

    versions: tuple[Version, ...]
    first_seen_at: datetime

    @property
    def content_last_changed_at(self) -> datetime:
        return self.versions[-1].since


class CorrectionKind(StrEnum):
    MENDED = "mended"
    """The version that this answer produced was parsed wrongly."""
    ADDED = "added"
    """The answer shows a version that the old parser missed."""
    EARLIER = "earlier"
    """The first version was shown before it could be parsed."""


class Correction(Record, frozen=True):
    """What a reparsed answer corrects in the history of one item."""

    how: CorrectionKind
    version: Version
    """The version that is corrected, or in which the new one begins; the first, for what was shown before all of
    them."""
    reasons: tuple[str, ...] = ()
    """Why the version before it ended, if one is added."""
    is_content_kept: bool = False
    """The platform withheld the text: the version before has all that is known."""


class ItemCorrection(Record, frozen=True):
    """What a reparsed answer corrects about one item, as values to write."""

    stored: StoredItem
    item: RefinedItem
    correction: Correction | None
    content: ItemValues
    """The columns of the corrected version."""
    details: ItemValues
    """Other columns, with the values that are better now; some of them may be stored already."""
    replaces_references: bool = False


class ReparseFacts(Record, frozen=True):
    """What the store knows about the items of a reparsed answer."""

    page: PageFacts
    histories: Mapping[int, History]


class ReparseWrite(Record, frozen=True):
    """What a reparsed answer changes."""

    new: tuple[ItemChange, ...]
    corrections: tuple[ItemCorrection, ...]
    is_seen: bool
    """The source showed its items at that time; False: the answer was an old copy."""
