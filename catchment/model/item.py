"""Items as a platform showed them, and cleaned."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from catchment.model.record import CLOCKS_DIFFER, Record

Key = tuple[str, str]
"""Identifies an item within a platform: scope and external id."""


def floor_key(thread_id: str, number: int) -> str:
    """Identifies a post of a thread by its number, as long as its id is not known."""
    return f"{thread_id}#{number}"


class Media(Record, frozen=True, omit_defaults=True):
    """An image, video, audio or other file; only its URL is stored."""

    url: str
    kind: str = "image"
    """image, video, audio or file"""
    mime: str | None = None
    width: int | None = None
    height: int | None = None
    size_bytes: int | None = None
    duration_seconds: float | None = None
    alt: str | None = None
    external_id: str | None = None
    """The platform's own id of it."""


class Reference(Record, frozen=True):
    """A link from an item to another one: what it replies to, quotes, reposts, or where it came from; with what the
    platform showed of that other one."""

    relation: str
    """replied_to, quoted, retweeted, crossposted, discussed_at, via"""
    external_id: str | None = None
    url: str | None = None
    author: str | None = None
    text: str | None = None
    author_display_name: str | None = None
    created_at: datetime | None = None
    media: tuple[Media, ...] = ()


class Labels(Record, frozen=True, kw_only=True):
    """Flags that a platform sets and clears at any time: stored in place, without a revision. None: not stated; what is
    stored stays."""

    is_pinned: bool | None = None
    is_digest: bool | None = None
    is_adult: bool | None = None


LABELS = Labels.__struct_fields__


class Item(Labels, frozen=True):
    """What a platform said about one post at one moment."""

    external_id: str
    """Empty: the platform gave none; cleaning derives one."""
    scope: str = ""
    """The namespace within which the id is unique. Parsers of platforms whose ids are unique within a source leave it
    empty: the source's key is filled in."""
    kind: str = "entry"
    created_at: datetime | None = None
    is_zone_guessed: bool = False
    """The time had no zone and was taken as UTC."""
    edited_at: datetime | None = None
    """As stated by the platform."""
    title: str | None = None
    text: str | None = None
    """Plain text; None where only HTML was given (cleaning derives it)."""
    html: str | None = None
    """As received; cleaning sanitises it."""
    base_url: str | None = None
    """Base URL of relative addresses in `html`; None: the answer's own URL."""
    url: str | None = None
    """Where the item itself can be read."""
    target_url: str | None = None
    """The URL it links to, if that is not the item itself (a link post)."""
    author: str | None = None
    author_id: str | None = None
    author_display_name: str | None = None
    score: int | None = None
    reply_count: int | None = None
    view_count: int | None = None
    rounded: tuple[str, ...] = ()
    """Which of the counters are only approximations ("1.2万")."""
    last_reply_at: datetime | None = None
    """Time of the last reply as stated by the platform; None: not stated. A later answer may state an earlier time: the
    last reply was deleted."""
    thread_id: str | None = None
    floor_number: int | None = None
    parent_floor: int | None = None
    """The number of the post in its thread that it replies to, where the platform names parents by number."""
    is_head: bool = False
    """It opens its thread: the other items of the thread are replies to it."""
    is_deleted: bool = False
    deleted_by: str | None = None
    """Who removed it, where the platform says so: author or moderator."""
    is_folded: bool = False
    is_partial: bool = False
    """A short form, as returned without an API key: it creates an item that is not stored yet; for a stored item it
    only confirms that the item exists."""
    lacks_text: bool = False
    """A row of a list, which states everything but the text. All it states is current: title, counters, times, flags
    and tags replace the stored ones; the stored text stays."""
    media: tuple[Media, ...] = ()
    references: tuple[Reference, ...] = ()
    tags: tuple[str, ...] = ()
    """Topic tags; empty: not stated."""
    is_title_foreign: bool = False
    """The title is that of a mirror: it is shown until the item's own is known, and is not part of its content."""
    title_prefixes: tuple[str, ...] = ()
    """Tags in brackets at the beginning of the title, without the brackets. Whoever states the title states these."""
    aliases: tuple[str, ...] = ()
    """Other ids under which the platform shows the same item (a mirrored thread)."""
    is_superseded: bool = False
    """An earlier version of an item that was edited since: it creates an item that is not stored yet; a stored item
    says the same or something newer."""
    language: str | None = None
    rank: int | None = None
    """Its position in a ranked listing, from 1, where positions are worth storing (trending)."""
    gained: int | None = None
    """How much its score gained in the listing's own period (stars today)."""

    @property
    def is_counted(self) -> bool:
        """Whether the platform stated any of its counters."""
        return not (self.score is None and self.reply_count is None and self.view_count is None)

    @property
    def parent_id(self) -> str | None:
        """The id of the item that it replies to, where the platform names it; thread and number of one of which only
        the number is known."""
        parent_id = next((link.external_id for link in self.references if link.relation == "replied_to"), None)
        if parent_id is None and self.parent_floor is not None and self.thread_id is not None:
            return floor_key(self.thread_id, self.parent_floor)
        return parent_id

    @property
    def is_short(self) -> bool:
        """Whether its text was not shown as a whole: the first complete form replaces it without a revision."""
        return self.is_partial or self.lacks_text

    @property
    def all_tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.tags, *self.title_prefixes))) if self.title_prefixes else self.tags

    def reply_time_as_of(self, answered_at: datetime) -> datetime | None:
        """Returns the time of the last reply as of an answer of that time. A reply dated in the future counts as none:
        it would stay at the top of lists until then."""
        at = self.last_reply_at
        return None if at is None or at > answered_at + CLOCKS_DIFFER else at


class Skipped(Record, frozen=True):
    """An item that could not be used, and why. It counts as invalid; the other items are kept."""

    reason: str
    """Short and countable: no content, bad id, not an object."""
    excerpt: str = ""


class RefinedItem(Record, frozen=True):
    """An item ready to be written."""

    item: Item
    """Identified and cleaned: title on one line, text plain, HTML safe, times UTC, addresses absolute."""
    fingerprint: bytes
    """Hash of the whole content, before truncation: distinguishes an edit from a change of counters."""
    is_text_cut: bool = False
    """The title or the text was longer than the limit; only its beginning is stored."""
    is_html_dropped: bool = False
    """There was HTML, too large or too malformed to store safely; its text is stored."""
    is_listed: bool = False
    """A listing showed only its id: it exists, its content is unknown."""
    is_gone: bool = False
    """The platform says, asked by id more than once, that it does not exist: there is no content."""
    content_id: str = ""
    """An id derived from the content, where the platform gave neither an id nor a link. Several items of an answer may
    share it; their dates tell them apart."""

    @property
    def key(self) -> Key:
        return self.item.scope, self.item.external_id

    @property
    def dated_id(self) -> str:
        """Returns the id of an item whose content is equal to another one's in the same answer."""
        at = self.item.created_at
        return f"{self.content_id} {at.isoformat() if at else 'undated'}"


class Refined(Record, frozen=True):
    """One cleaned answer, ready to be written."""

    items: tuple[RefinedItem, ...]
    skipped: tuple[Skipped, ...] = ()
    """Items that the parser skipped first, then those that cleaning skipped."""


class Ordering(StrEnum):
    """The order of a list, newest first."""

    POSTED = "posted"
    REPLIED = "replied"
    """By the last reply; items without a known reply are not in the list."""
