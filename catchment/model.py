"""The records that travel: small, frozen, honest. What a platform said, what was asked, what we follow.

Unknown is None, never 0. Times are aware and UTC: they are turned at the edge, by the reader, and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from catchment.errors import PlatformError

CLOCKS_DIFFER = timedelta(hours=1)
"""So far apart may two clocks be; beyond it, one of them is wrong."""


class Record(Struct, frozen=True):
    """A value. To change one, `plus(field=…)` makes another."""

    def plus(self, **changes: Any) -> Self:
        return replace(self, **changes)


# ── what is followed ──────────────────────────────────────────────────────────────────────────────────────────────


class Target(Record, frozen=True):
    """What a person typed, understood: one thing of a platform that can be followed."""

    kind: str
    address: str
    """The canonical form: the same thing typed in two ways gives one address."""
    name: str | None = None
    settings: dict[str, Any] = {}
    """Settings of the source that the typed text implied (`search:WORDS`, a page's query string)."""


class SourceState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """By a person; stays until a person resumes it."""
    RETIRED = "retired"
    """The platform says that it is gone for good (410, banned). A person may resume it."""
    REMOVED = "removed"
    """No longer followed; its items stay."""


class Source(Record, frozen=True):
    """One thing that is followed on a platform."""

    id: int
    key: str
    """Stays the same when the address changes; the scope of ids that are unique within a source only."""
    platform: str
    kind: str
    target: str
    name: str
    created_at: datetime
    settings: dict[str, Any] = {}
    credential: str | None = None
    """A name in the vault; never a secret."""
    interval_minutes: int | None = None
    """The source's own interval; None: its kind's."""
    categories: tuple[str, ...] = ()
    priority: str = "medium"
    quality_score: float | None = None
    state: SourceState = SourceState.ACTIVE
    state_reason: str | None = None


PRIORITIES = ("high", "medium", "low")
"""What a person may give a source: the order in which budgets are given out."""


def precedence(priority: str) -> int:
    """The smaller, the earlier; a word that is not known counts as the usual one."""
    return PRIORITIES.index(priority if priority in PRIORITIES else "medium")


class Watermark(Record, frozen=True):
    """The newest that is safely stored: a time, and the ids that share it, so that ties lose nothing."""

    at: datetime
    ids: tuple[str, ...] = ()


class Progress(Record, frozen=True):
    """How far a source is captured. One for each source; written in the transaction that it describes."""

    watermark: Watermark | None = None
    newest_shown_at: datetime | None = None
    """Newest entry of the last good answer: an answer that ends before it may be stale."""
    etag: str | None = None
    last_modified: str | None = None
    body_hash: bytes | None = None
    reader_version: int | None = None
    """Of the reader that read the last answer. A newer reader asks for the whole answer again."""
    shown_marks: bytes | None = None
    """Of the entries of the last answer, as they came: an entry that comes the same again says nothing new."""
    cursor: dict[str, Any] = {}
    """Small state of the platform's own; under `note`, what is to be told with the source."""
    moved_to: str | None = None
    moved_count: int = 0
    """How many polls in a row a permanent redirect pointed to `moved_to`."""
    stale_count: int = 0
    """Stale answers in a row."""
    first_polled_at: datetime | None = None
    last_polled_at: datetime | None = None
    last_success_at: datetime | None = None
    last_new_at: datetime | None = None
    expected_by: datetime | None = None
    """When something new should have been seen, by the source's own rhythm; later than that it is stale."""
    next_due_at: datetime | None = None
    """Set where something other than the kind's interval decides; `due_reason` says what."""
    due_reason: str | None = None
    failures_in_a_row: int = 0
    last_error: str | None = None
    last_error_code: str | None = None
    poll_count: int = 0
    failure_count: int = 0
    empty_in_a_row: int = 0
    new_share: float | None = None
    """Moving average of the share of a fetch that was new."""
    next_limit: int | None = None
    """How much to ask for at first, by what was new lately; None: nothing is known of that yet."""
    last_shown_count: int | None = None
    success_count: int = 0
    empty_count: int = 0
    """Of the successes, those that brought nothing new."""
    posts_per_day: float | None = None
    """How many to reckon with, from the times of the newest; halved by every visit that brings nothing new."""
    reach: int | None = None
    """How many items the listing that was walked last shows at all, by the platform's word."""
    recent_valid: tuple[int, ...] = ()
    """The valid posts of its last few visits, the latest last; noted for kinds that are tiered."""
    tier: str | None = None
    """How lively it is, by their average: tier1, tier2, tier3. None: there were too few visits to tell."""
    tier_minutes: int | None = None
    """From one visit to the next, by its tier; fewer where the platform would not show all that comes meanwhile."""
    tier_reason: str | None = None
    """The same in words: `due_reason`, wherever the tier decides."""

    @property
    def note(self) -> str | None:
        """What is special about the way in which it is read at present, by its platform's word."""
        return self.cursor.get("note")

    @property
    def average_valid(self) -> float | None:
        return sum(self.recent_valid) / len(self.recent_valid) if self.recent_valid else None


# ── asking and answering ──────────────────────────────────────────────────────────────────────────────────────────


class Order(StrEnum):
    """How a listing is ordered. Only a newest-first walk proves that nothing is missing."""

    NEWEST_FIRST = "newest_first"
    RANKED = "ranked"
    SNAPSHOT = "snapshot"


class Listing(Record, frozen=True):
    """What a platform declares about one of its listings."""

    name: str
    order: Order
    reach: int | None = None
    """How many items can be seen at all; None: unknown, or as many as there are."""
    page_size: int | None = None
    overlap: int = 0
    """How many more items to read past the first one that is known."""
    is_window: bool = False
    """A feed: one page, the newest few, order not guaranteed, no way to reach further back."""


class Ask(Record, frozen=True):
    """What pace decided about one walk of this visit: which listing, how much."""

    listing: str
    limit: int
    is_first: bool = False
    """The source was never read with success."""
    time_filter: str | None = None
    """How far back a ranked listing looks, in the platform's own word (hour, day, week …)."""
    has_key: bool = False
    """There is a credential to ask with: the source's own, or one in the pool."""


class Identity(StrEnum):
    NONE = "none"
    OPTIONAL = "optional"
    NEEDED = "needed"


class Request(Record, frozen=True):
    """What is to be asked of a platform. A value: nothing is sent by making one."""

    url: str
    method: str = "GET"
    params: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: bytes | None = None
    step: str = "list"
    """The reader's own name for this sort of request."""
    listing: str = ""
    carried: dict[str, Any] = {}
    """Small state the reader needs when the answer comes (page number, cursor, thread)."""
    timeout_seconds: float | None = None
    max_bytes: int | None = None
    identity: Identity = Identity.NONE
    credential: str | None = None
    secret_header: str | None = None
    """Where the credential's secret goes, if not where the vault has it: a header's name, and perhaps what stands
    before the secret in it (`X-Api-Key`, `Authorization: Token`)."""
    is_keepable: bool = True
    """Whether the answer may be kept: never for logins."""
    otherwise: Request | None = None
    """Asked instead, if this one turns out to be missing or not what was hoped for."""
    asks_for: str | None = None
    """The id of the one item that it asks for, where a listing gives ids alone: what is held already is not asked."""
    if_changed: str | None = None
    """The id of the item about which it asks for more (its comments): asked only if that item is new, or not as it was.
    What its answer proposes to follow is about that item, too."""


class Answer(Record, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    """Names in lower case; repeated headers joined by ", "."""
    body: bytes
    url: str
    """Where it came from in the end, after redirects."""
    answered_at: datetime
    moved_to: str | None = None
    """The new address, if every redirect on the way was a permanent one."""


class Cure(Record, frozen=True):
    """What may turn a refusal into an answer, tried once: cookies to set, headers to add, a request to repeat."""

    cookies: dict[str, str] = {}
    headers: dict[str, str] = {}
    repeat: Request | None = None
    """None: the same request again."""


class Token(Record, frozen=True):
    """What a login yields: headers that prove for a while who we are. Never shown."""

    headers: dict[str, str]
    lives_seconds: float

    def __repr__(self) -> str:
        return f"Token({', '.join(self.headers)}; {self.lives_seconds:g} s)"


class Blame(StrEnum):
    """What failed, and so what backs off."""

    REQUEST = "request"
    HOST = "host"
    CREDENTIAL = "credential"
    PLATFORM = "platform"


class Refusal(Record, frozen=True):
    """An answer that is none: what failed, as which error, and perhaps what would cure it."""

    error: PlatformError
    blames: Blame = Blame.REQUEST
    cure: Cure | None = None


# ── what an answer yields ─────────────────────────────────────────────────────────────────────────────────────────


class Media(Record, frozen=True, omit_defaults=True):
    """An image, a film, a sound, a file; by address only."""

    url: str
    kind: str = "image"
    """image, video, audio or file"""
    mime: str | None = None
    width: int | None = None
    height: int | None = None
    size_bytes: int | None = None
    duration_seconds: float | None = None
    alt: str | None = None


class Reference(Record, frozen=True, omit_defaults=True):
    """That an item points to another: what it answers, quotes, repeats, or where it came from."""

    relation: str
    """replied_to, quoted, retweeted, crossposted, discussed_at, via"""
    external_id: str | None = None
    url: str | None = None
    author: str | None = None
    text: str | None = None


class Item(Record, frozen=True):
    """What a platform said about one post at one moment."""

    external_id: str
    """Empty: the platform gave none; refining derives one."""
    scope: str = ""
    """Within which the id is unique. Left empty by readers of platforms whose ids are unique in a source: the
    source's key is filled in for them."""
    kind: str = "entry"
    created_at: datetime | None = None
    is_zone_guessed: bool = False
    """The time came without a zone and was taken as UTC."""
    edited_at: datetime | None = None
    """By the source's own word."""
    title: str | None = None
    text: str | None = None
    """Plain text; None where only HTML was given (refining derives it)."""
    html: str | None = None
    """As given; refining sanitises it."""
    base_url: str | None = None
    """What relative addresses inside `html` stand on; None: the answer's own address."""
    url: str | None = None
    """Where the item itself can be read."""
    target_url: str | None = None
    """What it points to, if that is not the item itself (a link post)."""
    author: str | None = None
    author_id: str | None = None
    author_display_name: str | None = None
    score: int | None = None
    reply_count: int | None = None
    view_count: int | None = None
    rounded: tuple[str, ...] = ()
    """Which of the counters are only approximations ("1.2万")."""
    last_reply_at: datetime | None = None
    """When it was last answered, by the platform's own word; None: not told. Told anew it may be earlier, too: the last
    reply was taken away."""
    thread_id: str | None = None
    floor_number: int | None = None
    is_head: bool = False
    """It opens its thread: what else belongs to the thread answers it."""
    is_deleted: bool = False
    deleted_by: str | None = None
    """Who took it away, where the platform says so: author or moderator."""
    is_folded: bool = False
    is_pinned: bool = False
    is_digest: bool = False
    is_adult: bool = False
    is_brief: bool = False
    """A short form, as a way without a key gives it: it tells of an item that we do not hold; over one that we hold it
    says nothing but that it is there."""
    media: tuple[Media, ...] = ()
    references: tuple[Reference, ...] = ()
    tags: tuple[str, ...] = ()
    language: str | None = None
    rank: int | None = None
    """Its place in a ranked listing, from 1, where the places themselves are worth keeping (trending)."""
    gained: int | None = None
    """What its score gained in the listing's own period (stars today)."""

    @property
    def is_counted(self) -> bool:
        """Whether the platform told any counter of it."""
        return not (self.score is None and self.reply_count is None and self.view_count is None)

    def told_reply(self, answered_at: datetime) -> datetime | None:
        """When it was last answered, as an answer of that time tells it. A reply that is yet to come is none: it would
        head the lists until then."""
        at = self.last_reply_at
        return None if at is None or at > answered_at + CLOCKS_DIFFER else at


class Skipped(Record, frozen=True):
    """An item that could not be used, and why. Counted as invalid; the rest goes on."""

    reason: str
    """Short and countable: no content, bad id, not an object."""
    excerpt: str = ""


class Hints(Record, frozen=True):
    """What the answer says about polling. Hints only ever delay."""

    min_interval_seconds: int | None = None
    is_final: bool = False
    """The source says that it will never change again."""


class Reading(Record, frozen=True):
    """What one answer yields."""

    items: tuple[Item, ...] = ()
    listed: tuple[str, ...] = ()
    """Ids that a listing shows without their content, in its order; `follow` then asks for them, one by one."""
    gone: tuple[str, ...] = ()
    """Ids of which the platform says, asked by id, that there is no such item (any more)."""
    skipped: tuple[Skipped, ...] = ()
    follow: tuple[Request, ...] = ()
    """Proposed next requests. collect/ decides which of them are wanted."""
    is_end: bool = True
    """The listing has no more behind this page."""
    is_torn: bool = False
    """The answer breaks off in the middle: what is here is whole, but there was more."""
    is_unfinished: bool = False
    """Something is not there yet, and will be: the next visit must ask again, even if the listing looks the same."""
    title: str | None = None
    """What the source calls itself."""
    target: str | None = None
    """The source's true address, where reading found it (a site's feed)."""
    hints: Hints = Hints()
    cursor: dict[str, Any] | None = None
    """The platform's own state to keep with the progress; None: unchanged."""
    notes: tuple[str, ...] = ()
    """What had to be repaired, in a few words each."""


# ── what a platform declares ──────────────────────────────────────────────────────────────────────────────────────


class Budget(Record, frozen=True):
    """How many requests in how many seconds, and how many at once, for the whole deployment."""

    name: str
    limit: int
    window_seconds: float
    concurrency: int | None = None
    is_per_credential: bool = False
    strangers_limit: int | None = None
    """Of requests without a credential, where the platform allows them less; None: the same."""

    def of(self, credential: str | None) -> Budget:
        """What holds for requests with that credential."""
        is_less = credential is None and self.strangers_limit is not None
        return self.plus(limit=self.strangers_limit) if is_less else self


class Field(Record, frozen=True):
    """A setting of a source, as forms, docs and checks need it."""

    name: str
    what: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    check: Callable[[Any], Any] | None = None
    """Gives the value as it is kept, or a ValueError that says what is allowed."""


class Kind(Record, frozen=True):
    """One sort of source of a platform."""

    name: str
    what: str
    interval_minutes: int
    example: str
    """A target that a person could type."""
    listings: tuple[Listing, ...]
    """The first one is the default."""
    fields: tuple[Field, ...] = ()
    base_limit: int = 100
    item_kind: str = "entry"
    more_item_kinds: tuple[str, ...] = ()
    """What else there may be among its items: comments, jobs, links."""
    look_after: tuple[timedelta, ...] = ()
    """The ages at which an item is asked for again, by `look_again`; none: it cannot be asked for by itself."""
    newest: str | None = None
    """The listing that is walked first, whatever a source's `sort` says, because only that proves that nothing is
    missing; the one that `sort` names is then read beside it. None: a source reads the one listing that it names."""
    is_tiered: bool = False
    """How lively a source is decides how often, and by which listing beside the newest, it is read."""

    @property
    def item_kinds(self) -> tuple[str, ...]:
        return (self.item_kind, *self.more_item_kinds)


class CredentialSettings(Record, frozen=True):
    """Settings that make a credential, where they are given: `{NAME}` stands for the value of one."""

    fields: tuple[Field, ...]
    """Those without a default must all be given."""
    basic: str | None = None
    """As in `{REDDIT_CLIENT_ID}:{REDDIT_CLIENT_SECRET}`."""
    headers: dict[str, str] = {}


class Look(Record, frozen=True):
    """An item that is to be asked for again."""

    external_id: str
    scope: str
    url: str | None
    source: Source
    """One that showed it."""
    has_key: bool = True
    """There may be a credential to ask with; False: there is none."""


@runtime_checkable
class Platform(Protocol):
    """What every platform module has: pure functions and declarations, no socket, clock, database or settings.

    Optional verbs (detail, floors, look_again, reach, login, token, dress) are looked up by name where they are used:
    `look_again(looks: Sequence[Look]) -> list[Request]` asks for items by id, as many with one request as the platform
    can; the answers go to `read`. `OBEYS_ROBOTS = True` has every site's robots.txt asked first. Where the platform has
    hosts of its own, requests to them whose `identity` is not `NONE` are sent with a credential of its pool; `PROBE:
    Request` is a cheap one that only goes with a credential, to test one by; `CREDENTIAL_SETTINGS: CredentialSettings`
    are the settings that make one. `USER_AGENT: str` is what it asks to be told of who asks, unless the operator says
    something else.
    """

    NAME: str
    KINDS: tuple[Kind, ...]
    HOSTS: tuple[str, ...]
    """The hosts that an operator's base URL replaces; empty where sources bring their own."""
    BUDGET: Budget | None
    """Declared request budget; None: only polite per host."""
    IS_SCOPED: bool
    """Ids are unique within a source only (feeds, websites, custom APIs)."""
    READER_VERSION: int
    """Raised when `read` learns to see more: old answers are then read again."""

    def understand(self, text: str) -> Target: ...

    def first(self, source: Source, progress: Progress, ask: Ask) -> list[Request]: ...

    def read(self, answer: Answer, request: Request) -> Reading: ...

    def refusal(self, answer: Answer, request: Request) -> Refusal | None: ...


# ── what we write, what we know, what follows from it ─────────────────────────────────────────────────────────────


class RefinedItem(Record, frozen=True):
    """What we write of one item."""

    item: Item
    """Identified and cleaned: title on one line, text plain, HTML safe, times UTC, addresses absolute."""
    fingerprint: bytes
    """Of the whole content, before any cut: tells an edit from a change of counters."""
    is_text_cut: bool = False
    """The title or the text was longer than the limit; only its beginning is kept."""
    is_html_dropped: bool = False
    """There was HTML, too large or too twisted to keep safely; its text is kept."""
    is_unchanged: bool = False
    """It came to the letter as it came last time, and was not refined again: it has no fingerprint."""
    is_listed: bool = False
    """Only its id was shown, by a listing of ids: that it is there, not what it says."""
    is_gone: bool = False
    """The platform says, asked by id and more than once, that it is not there: nothing was shown of it."""


class Refined(Record, frozen=True):
    """What we write of one reading."""

    items: tuple[RefinedItem, ...]
    skipped: tuple[Skipped, ...] = ()
    """The reader's own first, then ours."""


class Known(Record, frozen=True):
    """What we hold of an item: just enough to judge what came."""

    id: int
    external_id: str
    fingerprint: bytes
    version: int
    ordered_at: int
    """Microseconds, as stored: never shown, only handed back to the store."""
    applied_at: datetime
    """When the newest answer that showed it came."""
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
    is_pinned: bool
    is_digest: bool
    tags: tuple[str, ...]
    volatile_until: datetime | None
    is_shown_by_source: bool
    """Whether this very source showed it before (another one may have)."""
    created_at: datetime | None = None
    """As it was first told, or guessed."""
    is_seen_by_others: bool = False
    """Another source has shown it since this one did: what we hold may be that one's word."""
    told_at: datetime | None = None
    """When the newest answer came that changed anything about it."""
    deleted_by: str | None = None
    is_adult: bool = False
    is_brief: bool = False
    """Only a short form of it was told so far."""
    is_withheld: bool = False
    """All that is held of it is that it is gone: its text was never told."""
    last_reply_at: datetime | None = None
    """By the platform's word, or by the replies that we hold."""


class Point(Record, frozen=True):
    """The counters of an item at one moment."""

    at: datetime
    score: int | None = None
    reply_count: int | None = None
    view_count: int | None = None


class Ordering(StrEnum):
    """What a list is ordered by, newest first."""

    POSTED = "posted"
    REPLIED = "replied"
    """By the last reply; what has none, as far as is known, is not in the list."""


class Deed(StrEnum):
    NEW = "new"
    EDITED = "edited"
    COUNTED = "counted"
    SAME = "same"


class Verdict(Record, frozen=True):
    """What is to be done about one item."""

    deed: Deed
    reasons: tuple[str, ...] = ()
    """Why a revision is written; in the order that SEMANTICS gives."""
    is_content_kept: bool = False
    """The platform withholds the text now ("[removed]"): what we hold stays."""
    is_completed: bool = False
    """What we hold is a short form: this is the first whole one, and takes its place."""
    is_overtaken: bool = False
    """A newer answer was here before: nothing but the text that it lacked is taken from this one."""
    is_volatile: bool = False
    """It flips between known contents: counted, and no revision until tomorrow."""


class Judged(Record, frozen=True):
    """One item of a page with what we know and what is to be done."""

    item: RefinedItem
    known: Known | None
    verdict: Verdict
    is_alias: bool = False
    """Known under another id: the new id is noted down as an alias."""


class Gap(Record, frozen=True):
    """A stretch known to be missing, or possibly so."""

    is_certain: bool
    """Known, as against possible."""
    from_at: datetime
    """The newest that is stored before it …"""
    to_at: datetime
    """… and the oldest that was shown after it."""
    cause: str
    from_ids: tuple[str, ...] = ()
    id: int | None = None


class Standing(StrEnum):
    """How sure we are that nothing is missing; the worse, the later."""

    VERIFIED = "verified"
    """Walked from edge to edge: all that the platform showed is stored."""
    REPAIRED = "repaired"
    """A gap was here, and was closed."""
    UNPROVEN = "unproven"
    """Nothing speaks against it, and nothing proves it."""
    SUSPECT = "suspect"
    """A possible gap."""
    UNREACHABLE = "unreachable"
    """Something is missing, or cannot be asked for."""

    @classmethod
    def of_gap(cls, is_certain: bool, is_closed: bool) -> Standing:
        if is_closed:
            return cls.REPAIRED
        return cls.UNREACHABLE if is_certain else cls.SUSPECT


class Counts(Record, frozen=True):
    """What became of the items shown: the four always add up to their number."""

    new: int = 0
    updated: int = 0
    duplicate: int = 0
    invalid: int = 0

    @property
    def shown(self) -> int:
        return self.new + self.updated + self.duplicate + self.invalid

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.new + other.new,
            self.updated + other.updated,
            self.duplicate + other.duplicate,
            self.invalid + other.invalid,
        )


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    UNCHANGED = "unchanged"
    """The platform said, or the bytes showed, that nothing changed. A success."""
    FAILED = "failed"
    SKIPPED = "skipped"


class Result(Record, frozen=True):
    """What became of one visit to one source."""

    source_id: int
    name: str
    kind: str
    outcome: Outcome
    counts: Counts = Counts()
    requests: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    http_status: int | None = None
    error_code: str | None = None
    error: str | None = None
    is_retryable: bool | None = None
    watermark_before: datetime | None = None
    watermark_after: datetime | None = None
    notes: tuple[str, ...] = ()
    valid: int = 0
    """Of the new ones, the posts that are neither taken away nor pinned: what tells how lively a source is."""


class Lease(Record, frozen=True):
    """A claim on a piece of work: the number grows with every claim, and a superseded number cannot write."""

    resource: str
    resource_id: int
    owner_id: int
    number: int


# ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────────


class CredentialState(StrEnum):
    ACTIVE = "active"
    COOLING = "cooling"
    """Refused several times in a row: it rests for a while."""
    BANNED = "banned"
    """Refused even while it was to rest, or when it was tried after its fall."""
    INVALID = "invalid"
    """Refused too often in all."""
    PROBATION = "probation"
    """It has rested after its fall: the next request decides."""
    PAUSED = "paused"
    """By a person; stays until a person resumes it."""


class Credential(Record, frozen=True):
    """A credential as it stands: what a person decided about it, and what became of it. Never its secret."""

    id: int
    platform: str
    name: str
    created_at: datetime
    state: CredentialState
    state_since: datetime
    priority: int = 0
    """The highest is taken first."""
    is_shared: bool = True
    """Any source of the platform may be asked with it: it is one of the pool. Otherwise only those that name it."""
    is_from_environment: bool = False
    """Its secret stands in the environment of a process, and nowhere else."""
    daily_limit: int | None = None
    expires_at: datetime | None = None
    state_until: datetime | None = None
    """When it ends by itself; None: it does not."""
    state_reason: str | None = None
    errors_in_a_row: int = 0
    errors_in_all: int = 0
    falls_in_a_row: int = 0
    """How often it was banned or found invalid since it last was accepted."""
    last_error_at: datetime | None = None
    last_error: str | None = None
    used_on: str | None = None
    """The day in UTC, as 2026-01-31, that `used_that_day` is about."""
    used_that_day: int = 0
    use_count: int = 0
    last_used_at: datetime | None = None


# ── what is told to others ────────────────────────────────────────────────────────────────────────────────────────


class Event(Record, frozen=True):
    """Something that happened, for whoever wants to act on it."""

    FORGOTTEN: ClassVar[str] = "forgotten"

    id: int
    name: str
    created_at: datetime
    data: dict[str, Any]

    @property
    def is_forgotten(self) -> bool:
        """What it told of was forgotten for good: only its number is left, and nobody is told."""
        return self.name == Event.FORGOTTEN


class Severity(StrEnum):
    """How soon a person should look at an alert."""

    P0 = "P0"
    """Now: a part of the work stands still until somebody acts."""
    P1 = "P1"
    """Today: something fails, or comes too late."""
    P2 = "P2"
    """When there is time: nothing is lost, but it will not get better by itself."""


class Alarm(Record, frozen=True):
    """What is wrong, as long as it is: it opens an alert, and when it is over the alert closes."""

    subject: str
    """Whom or what it is about, in a few words that stay the same: there is one open alert for each."""
    message: str
    severity: Severity = Severity.P1
    source_id: int | None = None


class Watch(Record, frozen=True):
    """A rule over items: those that fit it are told of."""

    name: str
    words: tuple[str, ...] = ()
    """As a person typed them; one that begins with - must not occur."""
    is_any_enough: bool = False
    """One of the words is enough; otherwise all must occur, as in a search."""
    kinds: tuple[str, ...] = ()
    source_ids: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    is_for_edits: bool = False
    """Also items that changed, not only new ones."""
