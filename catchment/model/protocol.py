"""The platform protocol: declarations, requests, answers and readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, cast

from catchment.errors import PlatformError
from catchment.model.item import Item, Skipped
from catchment.model.outcome import Gap
from catchment.model.record import JsonObject, Record
from catchment.model.source import Progress, SettingValues, Source, Target


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
    """How many more items to read after the first known one."""
    is_window: bool = False
    """A feed: one page with the newest entries, in no guaranteed order, and no older pages."""
    is_stacked: bool = False
    """A ranked listing to which new entries are added at the top, in an order that no date proves. Its limit is learnt;
    reading continues past it as long as a whole page is new."""


class WalkPlan(Record, frozen=True):
    """The plan for one walk of a visit: which listing, how many items."""

    listing: str
    limit: int
    is_first: bool = False
    """The source has never been read successfully."""
    time_filter: str | None = None
    """How far back a ranked listing goes, in the platform's own word (hour, day, week …)."""
    has_key: bool = False
    """A credential is available: the source's own, or one in the pool."""
    keyed: frozenset[str] = frozenset()
    """The platforms and services whose pool has a credential."""
    affordable: Mapping[str, int] = {}
    """By service with a spending cap: how many items a call may ask for now. One that could cost more is not made."""


class Identity(StrEnum):
    NONE = "none"
    OPTIONAL = "optional"
    NEEDED = "needed"


class Request(Record, frozen=True):
    """A request to a platform. A plain value; creating one sends nothing."""

    url: str
    method: str = "GET"
    params: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: bytes | None = None
    step: str = "list"
    """The parser's own name for this type of request."""
    listing: str = ""
    state: JsonObject = {}
    """Small state the parser needs to read the answer (page number, cursor, thread)."""
    timeout_seconds: float | None = None
    max_bytes: int | None = None
    service: str = ""
    """The service that it is sent to, for a platform that declares `SERVICES`; its name is also that of the pool."""
    identity: Identity = Identity.NONE
    credential: str | None = None
    secret_header: str | None = None
    """Where the credential's secret goes, if not where the credential itself says: a header's name, optionally with a
    prefix before the secret (`X-Api-Key`, `Authorization: Token`)."""
    is_keepable: bool = True
    """Whether the answer may be stored; never for logins."""
    fallback: Request | None = None
    """Sent instead if this request finds nothing or an unsuitable answer."""
    item_id: str | None = None
    """The id of the single item that it asks for. In `follow`, where a listing gives ids only: items that are stored
    already are not requested. In a recheck: the item that a 404 or 410 is about."""
    about_item: str | None = None
    """The id of the item that it asks more about (its comments): sent only if that item is new or changed. Requests
    that its answer proposes are about that item, too."""
    budget: Budget | None = None
    """A narrower budget that holds besides the platform's own, such as a rate that the source sets for itself. The
    stricter of the two decides."""


class Answer(Record, frozen=True):
    """The HTTP answer to a request."""

    status: int
    headers: dict[str, str]
    """Names in lower case; repeated headers joined by ", "."""
    body: bytes
    url: str
    """The final URL, after redirects."""
    answered_at: datetime
    moved_to: str | None = None
    """The new address, if every redirect on the way was permanent."""


class RetryWith(Record, frozen=True):
    """How to retry a refused request: cookies to set, headers to add, or another request to send."""

    cookies: dict[str, str] = {}
    headers: dict[str, str] = {}
    repeat: Request | None = None
    """None: repeats the same request."""
    wait_seconds: float = 0.0
    """How long to wait before the retry."""
    growth: float = 1.0
    """Each further wait is this many times as long as the one before."""
    most_retries: int = 1
    """The refusal counts once the call was retried this often, for whatever reason."""


class Token(Record, frozen=True):
    """The result of a login: headers that authenticate for a limited time. Never shown."""

    headers: dict[str, str]
    lives_seconds: float

    def __repr__(self) -> str:
        return f"Token({', '.join(self.headers)}; {self.lives_seconds:g} s)"


class FailureScope(StrEnum):
    """What failed, and therefore what backs off."""

    REQUEST = "request"
    HOST = "host"
    CREDENTIAL = "credential"
    PLATFORM = "platform"


class Refusal(Record, frozen=True):
    """An answer that counts as a failure: the error, its scope, and possibly how to retry."""

    error: PlatformError
    blames: FailureScope = FailureScope.REQUEST
    cure: RetryWith | None = None


class Hints(Record, frozen=True):
    """What the answer says about polling intervals. Hints can only delay the next visit."""

    min_interval_seconds: int | None = None
    is_final: bool = False
    """The source says that it will never change again."""


class Forum(Record, frozen=True):
    """Declares that the sources of a kind are boards: a list of threads in order of posting, and threads whose floors
    are numbered and stand on pages."""

    zone: str = "UTC"
    """The window of a board is counted in days of this zone."""
    floors_per_page: int = 20
    first_floor: int = 0
    """The number of the opening post: 0 or 1."""
    most_pages: int = 1_000
    """Of a longer thread, only the opening post's row is stored."""
    stream: str | None = None
    """A newest-first listing of all posts, in threads of any age. Every visit walks it before the list of threads: it
    alone moves the watermark and proves that no post is missing. None: there is none."""
    names_parents: bool = False
    """Every reply names the post that it answers: a thread can be shown as a tree."""

    def page_of(self, floor_number: int) -> int:
        """Returns the page, counted from 1, that contains a floor."""
        return max(0, floor_number - self.first_floor) // self.floors_per_page + 1


class ThreadRow(Record, frozen=True):
    """More about a thread from its row on a list page. The row itself becomes an item that `lacks_text`."""

    thread_id: str
    """`thread_id` of all items of the thread."""
    last_reply_at: datetime | None = None
    page_count: int | None = None
    """As the list says, or as its reply count implies; None: unknown."""
    is_out_of_order: bool = False
    """Pinned, mirrored, or from a sub-board: its date says nothing about how far down the list goes."""


class ThreadPage(Record, frozen=True):
    """What an answer says about the page of a thread that it shows; its floors are the reading's items."""

    thread_id: str
    number: int
    """From 1."""
    page_count: int | None = None
    """How many pages the thread has, as this answer says."""
    holes: tuple[int, ...] = ()
    """Floor numbers on this page that the platform itself does not have (any more)."""
    last_reply_at: datetime | None = None
    """The thread's last reply, as this answer says: an earlier one than the list states shows an old copy."""


class Reading(Record, frozen=True):
    """What a parser found in one answer."""

    items: tuple[Item, ...] = ()
    listed: tuple[str, ...] = ()
    """Ids that a listing shows without content, in its order; `follow` then requests them one by one."""
    threads: tuple[ThreadRow, ...] = ()
    """On the list pages of a forum: one for each thread shown, in the list's order."""
    thread_page: ThreadPage | None = None
    """On a page of a thread: which one it is."""
    gone: tuple[str, ...] = ()
    """Ids that were requested and that, according to the platform, do not exist (any more)."""
    skipped: tuple[Skipped, ...] = ()
    follow: tuple[Request, ...] = ()
    """Proposed next requests; collect/ decides which of them are sent."""
    is_end: bool = True
    """The listing has no page after this one."""
    is_end_doubtful: bool = False
    """The page was announced and shows nothing: perhaps the listing ends here, perhaps the rest was withheld."""
    is_torn: bool = False
    """The answer is truncated: the items here are complete, but there were more."""
    is_transcoded: bool = False
    """The body was not UTF-8 as it is labelled: its text depends on more of it than each entry's own bytes."""
    is_unfinished: bool = False
    """Something is not available yet but will be: the next visit must ask again, even if the listing looks
    unchanged."""
    title: str | None = None
    """The title that the source gives itself."""
    target: str | None = None
    """The source's actual address, if parsing found it (a site's feed)."""
    hints: Hints = Hints()
    cursor: JsonObject | None = None
    """Platform-specific state to store with the progress; None: unchanged."""
    notes: tuple[str, ...] = ()
    """Short notes on repairs the parser made."""


class Pieces(Record, frozen=True):
    """Where the entries of an answer are in its body."""

    entries: tuple[tuple[int, int], ...]
    """The beginning and the end of each, in order."""
    around: bytes
    """What the items depend on besides their own entries. Less of it than there is would hide changes; a date that
    changes with every answer should not be in it."""


class Budget(Record, frozen=True):
    """Requests per window and concurrent requests, for the whole deployment."""

    name: str
    limit: int
    window_seconds: float
    concurrency: int | None = None
    is_per_credential: bool = False
    anonymous_limit: int | None = None
    """The limit of requests without a credential, if lower; None: the same limit."""
    is_pace: bool = False
    """How slowly pages follow each other: each request waits for its turn, however long the window is."""

    def of(self, credential: str | None) -> Budget:
        """Returns the budget that applies to requests with that credential."""
        is_less = credential is None and self.anonymous_limit is not None
        return self.replace(limit=self.anonymous_limit) if is_less else self


class PlanPart(StrEnum):
    """A part of the plan for a walk that a source's setting may decide."""

    LISTING = "listing"
    TIME_FILTER = "time_filter"
    LIMIT = "limit"
    FIRST_LIMIT = "first_limit"
    """The limit of the first visit only; later ones are learnt."""


class Field(Record, frozen=True):
    """A setting of a source, as used by forms, docs and validation."""

    name: str
    what: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    check: Callable[[Any], Any] | None = None
    """Returns the value to store, or raises a ValueError that says what is allowed."""
    decides: PlanPart | None = None
    """The part of the walk plan that this setting decides, whatever the setting is called. The one that decides the
    listing has listing names as its `choices`."""


class Kind(Record, frozen=True):
    """A type of source on a platform."""

    name: str
    what: str
    """In English; `CHINESE` of the platform may have a translation of this and all other texts."""
    interval_minutes: int
    example: str
    """A target that a user could type."""
    listings: tuple[Listing, ...]
    """The first one is the default."""
    fields: tuple[Field, ...] = ()
    base_limit: int = 100
    item_kind: str = "entry"
    more_item_kinds: tuple[str, ...] = ()
    """Other types among its items: comments, jobs, links."""
    recheck_ages: tuple[timedelta, ...] = ()
    """The ages at which an item is rechecked with `recheck`; none: it cannot be requested by itself."""
    newest: str | None = None
    """The newest-first listing that every visit walks first, because only that proves that nothing is missing. The
    listing that a setting, a tier or the operator chooses is then walked in addition. None: a visit walks one listing,
    the chosen one."""
    title: str = ""
    """What pages call it: Reddit community; its name, if empty."""
    is_tiered: bool = False
    """A source's activity decides how often it is read, and which listing is read besides the newest."""
    forum: Forum | None = None
    """Set if its sources are boards with threads; the platform then has `floors`."""
    is_personal: bool = False
    """What it shows depends on whose credential is used: a source names one."""
    gap_repair: str = ""
    """Set if gaps of its sources can be repaired with `reach`: how, and what cannot be found that way, in a sentence
    that is shown with the gap."""

    def collects_replies(self, settings: SettingValues) -> bool:
        """Whether replies are collected of a source with these settings: of boards, and where `comments` is on."""
        default = next((field.default for field in self.fields if field.name == "comments"), False)
        return self.forum is not None or bool(settings.get("comments", default))

    @property
    def item_kinds(self) -> tuple[str, ...]:
        return (self.item_kind, *self.more_item_kinds)


class CredentialSettings(Record, frozen=True):
    """Settings that form a credential when present: `{NAME}` stands for the value of a setting."""

    fields: tuple[Field, ...]
    """Settings without a default are all required."""
    basic: str | None = None
    """For example `{REDDIT_CLIENT_ID}:{REDDIT_CLIENT_SECRET}`."""
    headers: dict[str, str] = {}


class Usage(Record, frozen=True):
    """What a paid service charges one call for."""

    items: int = 0
    profiles: int = 0
    is_list: bool = False
    """The call reads a list of several accounts, for which the service may have a price of its own."""
    is_free: bool = False
    """The service charges nothing for it, not even the minimum."""


class Prices(Record, frozen=True):
    """What a service charges, in millionths of a US dollar."""

    item: int = 0
    """For each item that an answer has."""
    call: int = 0
    """For each call, besides what it returns."""
    profile: int = 0
    """For each profile that an answer has."""
    list_call: int | None = None
    """For a call that reads a list, instead of its items; None: its items are charged."""
    minimum: int = 0
    """A call costs at least this, whatever it returns."""

    def cost(self, usage: Usage) -> int:
        """Returns what a call costs, in millionths of a US dollar."""
        if usage.is_free:
            return 0
        items = self.item * usage.items
        if usage.is_list and self.list_call is not None:
            items = self.list_call
        return max(self.minimum, self.call + self.profile * usage.profiles + items)


class Service(Record, frozen=True):
    """One of several ways to reach a platform, each with hosts, a budget and credentials of its own.

    Items have the same ids, whichever service showed them.
    """

    name: str
    """Unique among platforms and services: that of its credentials (`credentials add NAME …`) and of its base URL."""
    hosts: tuple[str, ...]
    budget: Budget | None = None
    credential_settings: CredentialSettings | None = None
    probe: Request | None = None
    prices: Prices | None = None
    """What it charges, unless the operator sets other prices; None: it is free of charge. `usage` says what for."""


class Recheck(Record, frozen=True):
    """An item that is due to be requested again."""

    external_id: str
    scope: str
    url: str | None
    source: Source
    """A source that showed it."""
    has_key: bool = True
    """A credential may be available; False: there is none."""
    thread_id: str | None = None
    floor_number: int | None = None
    is_unconfirmed: bool = False
    """The last recheck did not find or could not fetch it; it is requested by id."""
    text_at: str | None = None
    """The id of the post that it replies to, if its text is not stored: a platform may show it only there."""


class Platform(Protocol):
    """What every platform module has: pure functions and declarations, no socket, clock, database or settings.

    `PlatformOptions` has the names that it may have in addition. Both are checked when a platform is loaded.
    """

    NAME: str
    KINDS: tuple[Kind, ...]
    HOSTS: tuple[str, ...]
    """The hosts that an operator's base URL replaces; empty where sources have hosts of their own."""
    BUDGET: Budget | None
    """Declared request budget; None: only per-host politeness applies."""
    IS_SCOPED: bool
    """Ids are unique within a source only (feeds, websites, custom APIs)."""
    PARSER_VERSION: int
    """Raised when `read` learns to extract more: stored answers are then parsed again."""

    def understand(self, text: str, kind: str | None) -> Target:
        """Returns the target that a user typed, as a source of that kind; None: the kind is not known, and only what is
        clearly of this platform is a target. Raises InvalidInput."""
        ...

    def first(self, source: Source, progress: Progress, plan: WalkPlan) -> list[Request]: ...

    def read(self, answer: Answer, request: Request) -> Reading: ...

    def refusal(self, answer: Answer, request: Request) -> Refusal | None: ...


class PlatformOptions(Protocol):
    """Optional parts of a platform module. Each is looked up where it is used."""

    OBEYS_ROBOTS: bool
    """Every site's robots.txt is checked first: for platforms that read pages made for people."""
    HAS_COOKIES_PER_HOST: bool
    """Of several `HOSTS` that show the same, each accepts only the credentials that it has issued itself. A credential
    without a host of its own is for the first of them."""
    TEXT_LIMIT: int
    """The most characters of a text that are stored, if fewer than the operator's limit; a cut is marked."""
    USER_AGENT: str
    """The user agent that the platform asks for, unless the operator sets another."""
    CREDENTIAL_SETTINGS: CredentialSettings
    """Settings of the deployment that form a credential."""
    PROBE: Request
    """A cheap request that needs a credential, to test one."""
    PRICES: Prices
    """What the platform charges, if it is its own only service; see `Service.prices`."""
    SERVICES: tuple[Service, ...]
    """The services through which it can be reached; `HOSTS` has the hosts of all of them, `BUDGET` is None. Without it
    the platform is its own only service."""
    TITLE: str
    """What pages call the platform; its NAME, if there is none."""
    CHINESE: dict[str, str]
    """Chinese for its English texts: TITLE, titles and descriptions of kinds and settings, notes, errors."""

    def pieces(self, answer: Answer) -> Pieces | None:
        """Returns where the entries of an answer are, so that those which come again byte for byte are not parsed
        again; None: this answer cannot be cut. `read` must find one item in each entry, in order, and the same item
        however many of the other entries are cut out."""

    def recheck(self, rechecks: Sequence[Recheck]) -> list[Request]:
        """Requests items by id, as many per request as the platform allows; the answers go to `read`."""

    def floors(self, source: Source, thread_id: str, number: int) -> Request:
        """Requests a page of a thread, from 1. `read` returns its floors as items, with a `thread_page`; floor 0 is the
        item of the list's row, complete."""

    def reach(self, source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> list[Request]:
        """Returns requests for the items of a gap that the normal listing no longer reaches; empty if there is no
        way. `read` returns them newest first, from `gap.open_to_at` on, and follows down to items that are older
        than `gap.from_at`: these prove that everything in between was shown."""

    def login(self, secret: Any) -> Request | None:
        """Returns the request that trades a secret for a token; None: the secret is sent as it is."""

    def token(self, answer: Answer) -> Token:
        """Returns the token in the answer to a login."""

    def dress(self, request: Request, secret: Any, now: datetime, nonce: str) -> Request:
        """Returns the request with its credential and signature, where the platform has its own way to add them."""

    def usage(self, request: Request, answer: Answer | None) -> Usage | None:
        """Returns what an answer is charged for; without an answer, the most that a call may be charged for. None: the
        answer does not say. Without this function, every answer with a status below 400 is one call."""

    def accepts(self, answer: Answer, request: Request) -> bool:
        """Whether an answer can be read although its status means an error (a page beyond the last)."""

    def nothing_found(self, request: Request) -> PlatformError | None:
        """Returns the error to raise when the last request of a chain of `fallback` finds nothing either."""

    def name_of(self, address: str, settings: SettingValues) -> str:
        """Returns the name of a source whose settings decide what is read."""


def scope_of(platform: Platform, source: Source) -> str:
    """Returns where the ids of a source's items are unique: in the source, or on the whole platform (empty)."""
    return source.key if platform.IS_SCOPED else ""


def recheck_ages_of(platform: Platform, kind: Kind) -> tuple[timedelta, ...]:
    """Returns the ages at which items are rechecked; empty if the platform cannot request them by id."""
    return kind.recheck_ages if hasattr(platform, "recheck") else ()


def options(platform: object) -> PlatformOptions:
    """Returns a platform with the types of its optional names, for code that has found one of them with `hasattr`."""
    return cast(PlatformOptions, platform)
