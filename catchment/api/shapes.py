"""The resources of the API, field by field: what is taken, what is answered, and an example of each."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict

from catchment.api.values import LARGEST, Address, Categories, Line, Minutes, SourceSettings, Word

T = TypeVar("T")
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 with offset, UTC.")]
Priority = Literal["high", "medium", "low"]


class Given(BaseModel):
    """A body that was sent. A name that is not known here is refused: it is most likely a slip of the pen."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """A resource that is answered. What the product learns to tell later passes through."""

    model_config = ConfigDict(extra="allow")


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class Page(BaseModel, Generic[T]):
    """A part of a list. `next` is given as `after` to get what follows; null: this was the end."""

    items: list[T]
    next: str | None


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Problem(BaseModel):
    code: str = Field(description="For programs: it does not change with the words.")
    message: str = Field(description="For people: what is wrong, and what would help.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    field: str | None = Field(default=None, description="Which part of the request is wrong, where it is one.")
    existing_id: int | None = Field(default=None, description="The source that follows this already.")


class Meta(BaseModel):
    request_id: str = Field(description="Also in the header X-Request-ID, and in every line of the log about it.")


class Failed(BaseModel):
    """Every failure, on every path."""

    model_config = example(
        error={"code": "NOT_FOUND", "message": "there is no source 7", "retryable": False},
        meta={"request_id": "4f0c1d7e8a2b4c6d9e0f1a2b3c4d5e6f"},
    )
    error: Problem
    meta: Meta


# ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────


class NewSource(Given):
    """What to follow."""

    model_config = example(kind="rss", target="https://example.org/feed.xml", name="Example", interval_minutes=60)
    kind: Word = Field(description="rss, reddit, hackernews … An unknown one is answered with the list of known ones.")
    target: Address = Field(description="As a person would type it. A secret inside goes to the vault at once.")
    name: Line | None = Field(default=None, description="Without one: what the source calls itself.")
    settings: SourceSettings = Field(default={}, description="Settings of its kind.")
    credential: Word | None = Field(default=None, description="The name of a credential in the vault.")
    interval_minutes: Minutes | None = Field(default=None, description="Without one: its kind's.")
    categories: Categories = Field(default=[])
    priority: Priority = "medium"
    check: bool = Field(default=False, description="Ask the platform first; without an answer nothing is followed.")


class ChangedSource(Given):
    """What is to be different; what is not named stays."""

    model_config = example(interval_minutes=30, settings={"limit": 50})
    # The defaults are never used: only what was given is looked at. Null is refused where it has no meaning.
    name: Line = Field(default="")
    settings: SourceSettings = Field(default={}, description="Those named are changed; null takes one away.")
    credential: Word | None = Field(default=None, description="Null: none.")
    interval_minutes: Minutes | None = Field(default=None, description="Null: its kind's.")
    categories: Categories = Field(default=[])
    priority: Priority = "medium"


class Pause(Given):
    model_config = example(reason="moved to another service")
    reason: Line | None = Field(default=None, description="Shown wherever it is.")


class Source(Told):
    """One thing that is followed."""

    model_config = example(
        id=1,
        kind="rss",
        platform="feeds",
        target="https://example.org/feed.xml",
        name="Example",
        state="active",
        fetch_interval_minutes=240,
        last_fetched_at="2026-02-25T10:30:00+00:00",
        next_fetch_at="2026-02-25T14:30:00+00:00",
        next_fetch_reason="the interval of its kind",
    )
    id: int
    kind: str
    platform: str
    target: str
    name: str
    state: Literal["active", "paused", "retired", "removed"]
    state_reason: str | None
    is_active: bool
    settings: dict[str, Any]
    credential: str | None = Field(description="A name in the vault; never a secret.")
    interval_minutes: int | None = Field(description="Its own; null: its kind's holds.")
    fetch_interval_minutes: int = Field(description="The interval that holds.")
    categories: list[str]
    priority: str
    quality_score: float | None
    created_at: Moment
    last_fetched_at: Moment | None
    last_success_at: Moment | None
    last_new_at: Moment | None
    next_fetch_at: Moment | None = Field(description="Null: never visited (then it is due now), or not active.")
    next_fetch_reason: str = Field(description="Why then.")
    note: str | None = Field(description="What is special about how it is read now: in brief, for want of a key.")
    fetch_count: int
    fetch_error_count: int
    success_count: int
    empty_count: int = Field(description="Of the successes, those that brought nothing new.")
    failures_in_a_row: int
    last_error: str | None
    last_error_code: str | None
    watermark: Moment | None = Field(description="Everything up to here is stored.")
    expected_by: Moment | None = Field(description="By its own rhythm, something new should be seen by then.")
    posts_per_day: float | None = Field(description="How many to reckon with, by its newest. Null: too few to tell.")
    tier: str | None = Field(description="How lively a community is: tier1, tier2, tier3. Null: not told yet, or none.")
    average_valid: float | None = Field(description="Valid posts a visit, over the last visits: what tells the tier.")
    recent_valid: list[int] = Field(description="The valid posts of its last visits, the latest last.")


class Tier(Told):
    """How communities of one liveliness are read."""

    name: str
    least_valid: float = Field(description="The average of valid posts from which on a community belongs here.")
    hours: float = Field(description="From one visit to the next.")
    sort: str = Field(description="The listing that is read, beside the newest where it is another one.")
    time_filter: str
    limit: int
    sources: int = Field(description="How many communities are in it.")
    would_be: int = Field(description="How many would be, by their visits and the settings of today.")


class TierChange(Told):
    """A community whose visits speak for another tier, or another interval, than it has."""

    id: int
    name: str
    average_valid: float
    tier: str | None
    tier_minutes: int | None
    would_be: str | None
    would_be_minutes: int | None
    why: str | None


class Communities(Page[Source]):
    """The communities that were visited, the liveliest first, and the tiers that follow."""

    tiers: list[Tier]
    unassigned: int = Field(description="How many have no tier yet, because there were too few visits.")
    changes: list[TierChange] = Field(description="As many as `limit` allows. Each visit, and a daily job, makes them.")


class SkippedItem(Told):
    reason: str
    count: int
    example: str


class Preview(Told):
    """What a first visit would store."""

    shown: int = Field(description="How many items the first page showed.")
    items: list[dict[str, Any]] = Field(description="The first of them, as they would be stored.")
    skipped: list[SkippedItem]
    notes: list[str]


class NewlyFollowed(Source):
    """A source that is followed from now on."""

    preview: Preview | None = Field(default=None, description="Where `check` was asked for.")


class CollectedSource(Told):
    """How collecting one source goes."""

    id: int
    name: str
    type: str = Field(description="The same as `kind`.")
    kind: str
    interval_minutes: int = Field(description="The interval that holds.")
    last_fetched_at: Moment | None
    next_fetch_at: Moment | None
    fetch_count: int
    fetch_error_count: int
    last_error: str | None
    status: Literal["ok", "waiting", "failing", "probation", "paused", "retired"] = Field(
        description="waiting: never visited yet · probation: failed so often that it is visited less and less."
    )


class CollectorStats(Told):
    total_sources: int
    active_sources: int
    paused_sources: int = Field(description="By a person.")
    paused_by_error: int = Field(description="On probation after failures, or retired by the platform's word.")
    fetches_24h: int
    errors_24h: int
    raw_items_24h: int = Field(description="The same as `items_24h`.")
    items_24h: int = Field(description="New items.")


class CollectorStatus(Told):
    """How collecting goes, source by source and in all."""

    model_config = example(
        sources=[
            {
                "id": 1,
                "name": "Hacker News",
                "type": "hackernews",
                "kind": "hackernews",
                "interval_minutes": 60,
                "last_fetched_at": "2026-02-25T10:30:00+00:00",
                "next_fetch_at": "2026-02-25T11:30:00+00:00",
                "fetch_count": 142,
                "fetch_error_count": 0,
                "last_error": None,
                "status": "ok",
            }
        ],
        stats={
            "total_sources": 224,
            "active_sources": 218,
            "paused_sources": 6,
            "paused_by_error": 2,
            "fetches_24h": 1205,
            "errors_24h": 12,
            "raw_items_24h": 3421,
            "items_24h": 3421,
        },
        next=None,
    )
    sources: list[CollectedSource]
    stats: CollectorStats
    next: str | None = Field(description="Given as `after` for the sources that follow; null: these were all.")


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Item(Told):
    """One post, entry, story, note or floor. Unknown is null, never 0."""

    model_config = example(
        id=42,
        platform="feeds",
        external_id="https://example.org/2026/02/spring",
        kind="entry",
        source_id=1,
        title="Spring has come",
        text="The first crocus was seen on Monday.",
        created_at="2026-02-23T08:00:00+00:00",
        version=1,
    )
    id: int
    platform: str
    scope: str
    external_id: str
    kind: str
    source_id: int = Field(description="The first source that showed it.")
    author: str | None
    author_id: str | None
    author_display_name: str | None
    title: str | None
    text: str | None
    html: str | None = Field(description="Sanitised, but somebody else's: treat it as such.")
    url: str | None
    target_url: str | None = Field(description="What it points to, if that is not the item itself.")
    created_at: Moment
    is_created_at_guessed: bool
    is_zone_guessed: bool
    edited_at: Moment | None
    first_seen_at: Moment
    last_seen_at: Moment | None
    content_last_changed_at: Moment
    ordered_at: Moment = Field(
        description="What lists are ordered by, unless by replies: created or first seen, whichever was earlier."
    )
    score: int | None
    reply_count: int | None
    view_count: int | None
    rounded: list[str] = Field(description="Which of the counters are approximations.")
    last_reply_at: Moment | None = Field(
        description="When it was last answered: by the platform's word, or by replies that are stored. Null: unknown."
    )
    thread_id: str | None
    floor_number: int | None
    is_head: bool = Field(description="It opens its thread; the others of the thread are its replies.")
    is_deleted: bool
    deleted_by: str | None = Field(description="Who took it away, where the platform says so: author or moderator.")
    is_folded: bool
    is_pinned: bool
    is_digest: bool
    is_adult: bool
    is_text_cut: bool
    is_brief: bool = Field(description="Only a short form was told so far; the whole one takes its place.")
    language: str | None
    version: int = Field(description="1 + how many revisions there are.")
    fingerprint: str
    change_number: int = Field(description="Grows with every change, counters included.")
    content_change_number: int = Field(description="Its change number when anything but counters changed last.")
    media: list[dict[str, Any]]
    references: list[dict[str, Any]]
    tags: list[str]


class Snippet(Told):
    """A piece of the text, and where in it the hits are: from and to, in characters."""

    text: str
    marks: list[list[int]]


class Hit(Item):
    """An item that was found."""

    snippet: Snippet
    title_marks: list[list[int]] = Field(description="Where in the title the hits are: from and to, in characters.")
    key: str = Field(description="Its place in the list; `after` takes it.")


class SearchPage(Page[Hit]):
    """A part of what was found."""

    behind: int = Field(
        description="How many items were not looked at, because the index is so far behind. 0: nothing is missing."
    )
    count: int | None = Field(description="How many there are in all; told with the first page only.")
    is_count_estimated: bool


class Changed(Told):
    """Some of what changed, oldest change first."""

    items: list[Item]
    next: str = Field(description="Give it as `after` to go on, now or later. Never null.")
    newest: int = Field(description="The newest change number there is.")
    is_end: bool = Field(description="Nothing else has changed so far.")


class Revision(Told):
    """What an item said before."""

    item_id: int
    version: int
    reasons: list[str]
    valid_from: Moment
    valid_to: Moment
    source_edited_at: Moment | None = Field(description="By the source's own word.")
    title: str | None
    text: str | None
    html: str | None
    target_url: str | None
    media: list[dict[str, Any]]
    fingerprint: str
    is_deleted: bool
    is_folded: bool
    run_id: int | None


class CounterPoint(Told):
    """The counters of an item at one moment. Unknown is null."""

    at: Moment
    score: int | None
    reply_count: int | None
    view_count: int | None


class Appearance(Told):
    """An item's place in a listing, the last one of a day (UTC)."""

    day: str = Field(description="As 2026-01-31.")
    source_id: int
    at: Moment
    rank: int | None
    score: int | None
    gained: int | None = Field(description="What its score gained in the listing's own period.")


class Growth(Told):
    """What became of an item over time."""

    counters: list[CounterPoint]
    appearances: list[Appearance]


# ── the hot store ─────────────────────────────────────────────────────────────────────────────────────────────────


class HotReads(Told):
    """What became of reads that the hot store could answer: the first page of a community's newest."""

    hits: int
    misses: int
    hit_rate: float | None = Field(description="Null: there were no reads.")
    failed_writes: int = Field(description="Hot sets that could not be written where they should be; nothing is lost.")


class Warm(Told):
    """How many communities are warm: read within the time to live, by a visit or by a cache-only crawl."""

    communities: int
    warm: int
    cached_posts: int = Field(description="What the last cache-only crawl of each one cached.")
    last_warmed_at: Moment | None


class HotStanding(Told):
    """How the hot store stands."""

    home: Literal["redis", "database"] = Field(description="Where it lives at this moment.")
    entries: int
    last_hour: HotReads
    last_24_hours: HotReads
    warmth: Warm


class CachedItem(Told):
    """What a platform said of an item, in a cache-only crawl. It may be stored or not."""

    platform: str
    scope: str
    external_id: str
    kind: str
    source_id: int
    author: str | None
    title: str | None
    text: str | None
    html: str | None = Field(description="Sanitised, but somebody else's: treat it as such.")
    url: str | None
    created_at: Moment | None
    ordered_at: Moment
    score: int | None
    reply_count: int | None
    cached_at: Moment


class Cached(Told):
    """What cache-only crawls saw of a community, newest first."""

    source_id: int
    last_warmed_at: Moment | None
    cached_count: int = Field(description="How many posts the last crawl cached.")
    items: list[CachedItem]


class RawItem(Told):
    """That a source brought an item."""

    model_config = example(
        id=42,
        source_id=1,
        source_name="Example",
        source_type="rss",
        title="Spring has come",
        url="https://example.org/2026/02/spring",
        author="Ada",
        content="The first crocus was seen on Monday.",
        published_at="2026-02-23T08:00:00+00:00",
        fetched_at="2026-02-23T08:30:00+00:00",
        dedup_key="feeds:3f1c9a:https://example.org/2026/02/spring",
        metadata={"platform": "feeds", "kind": "entry", "score": None, "tags": ["garden"]},
    )
    id: int = Field(description="The item's id.")
    source_id: int
    source_name: str
    source_type: str = Field(description="The source's kind.")
    title: str | None
    url: str | None
    author: str | None
    content: str | None = Field(description="Plain text.")
    published_at: Moment | None = Field(description="Null: it bears no date.")
    fetched_at: Moment = Field(description="When the source first showed it; without `source_id`, when any source did.")
    dedup_key: str = Field(description="Platform, scope and external id: the same thing has the same key for good.")
    metadata: dict[str, Any] = Field(description="Counters, tags, media, language and marks, as they are now.")


class RawStats(Told):
    """How much a source has brought."""

    model_config = example(
        source_id=1,
        name="Example",
        type="rss",
        total_items=1205,
        last_item_at="2026-02-23T08:30:00+00:00",
        items_24h=12,
    )
    source_id: int
    name: str
    type: str = Field(description="The source's kind.")
    total_items: int = Field(description="How many items it has shown.")
    last_item_at: Moment | None = Field(description="When it last showed one that it had not shown before.")
    items_24h: int = Field(description="How many it showed for the first time in the last 24 hours.")


# ── what happened ─────────────────────────────────────────────────────────────────────────────────────────────────


class Gap(Told):
    """A stretch of time of which something is missing, or may be."""

    id: int
    source_id: int
    source_name: str
    is_certain: bool
    certainty: Literal["known", "possible"]
    standing: Literal["repaired", "suspect", "unreachable"] = Field(description="As in the source's coverage.")
    from_at: Moment = Field(description="The newest that is stored before it …")
    to_at: Moment = Field(description="… and the oldest that was shown after it.")
    cause: str
    opened_at: Moment
    closed_at: Moment | None
    closed_because: str | None


class Run(Told):
    """One execution of a job."""

    id: int
    job: str
    started_by: str
    request_id: str | None
    started_at: Moment
    finished_at: Moment | None = Field(description="Null: under way.")
    is_cut_off: bool
    source_count: int
    succeeded: int
    failed: int
    skipped: int
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class RunResult(Told):
    """What became of one source in a run."""

    run_id: int
    source_id: int
    source_name: str
    kind: str
    started_at: Moment
    finished_at: Moment | None = Field(description="Null: under way.")
    outcome: Literal["succeeded", "unchanged", "failed", "skipped"] | None = Field(description="Null: under way.")
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int
    http_status: int | None = Field(description="Of the answer that failed it, where there was one.")
    error_code: str | None
    error: str | None


class RunStory(Run):
    """A run, and what became of each source in it, in order of the sources' ids."""

    results: list[RunResult]
    next: str | None = Field(description="Given as `after` to get the results that follow; null: these were the last.")


class Figures(Told):
    """What visits came to."""

    source_count: int = Field(description="How many sources were visited.")
    succeeded: int = Field(description="Visits that went well …")
    empty: int = Field(description="… and those among them that brought nothing new.")
    failed: int
    put_off: int = Field(description="Visits that ended because our own budget was used up.")
    skipped: int
    success_rate: float | None = Field(description="succeeded / (succeeded + failed); null: there were none.")
    mean_seconds: float | None = Field(description="How long a visit took, on average.")
    new_count: int
    valid_count: int = Field(description="Of the new ones, the posts that are neither taken away nor pinned.")
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class KindFigures(Figures):
    """The same of one kind of sources."""

    kind: str
    platform: str


class Metrics(Figures):
    """One hour, or one day, of visiting."""

    starts_at: Moment
    ends_at: Moment
    is_over: bool = Field(description="False: it is under way.")
    valid_24h: int = Field(description="Valid posts of the 24 hours that end with it.")
    hit_rate: float | None = Field(description="Of reads that the hot store could answer; null: none, or not known.")
    tiers: dict[str, int] | None = Field(description="Communities in each tier at its end; null: not known.")
    kinds: list[KindFigures]


class LateSource(Told):
    """A source for which the budget does not suffice."""

    source_id: int
    name: str
    priority: str
    interval_minutes: int = Field(description="The interval that holds.")
    requests_per_visit: float = Field(description="On average, lately.")
    late_minutes: int | None = Field(description="Null: never, while those of higher priority use all there is.")
    summary: str


class BudgetPlan(Told):
    """What the sources of one platform need of its budget."""

    model_config = example(
        platform="reddit",
        source_count=400,
        needed_per_minute=90.5,
        besides_per_minute=1.5,
        allowed_per_minute=100.0,
        share=0.92,
        summary="reddit: 400 sources need 92 of 100 requests a minute",
        late_count=0,
        late=[],
    )
    platform: str
    source_count: int
    needed_per_minute: float = Field(description="Requests for visits at their intervals.")
    besides_per_minute: float = Field(description="For everything else: second looks, extra rounds.")
    allowed_per_minute: float | None = Field(description="With all usable credentials; null: no budget is declared.")
    share: float | None = Field(description="Needed, and besides, of what is allowed.")
    summary: str
    late_count: int = Field(description="How many sources will be late.")
    late: list[LateSource] = Field(description="The worst of them.")


class Alert(Told):
    """Something that a person should look at. It closes by itself once it is over."""

    id: int
    subject: str = Field(description="Whom or what it is about; there is one open alert for each.")
    severity: Literal["P0", "P1", "P2"] = Field(description="Look at it now, today, or when there is time.")
    source_id: int | None
    message: str
    opened_at: Moment
    closed_at: Moment | None = Field(description="Null: it is open.")


class Credential(Told):
    """A credential, without its secret: that cannot be read back by anyone."""

    id: int
    platform: str
    name: str
    state: str = Field(description="active, cooling, banned, invalid, probation or paused.")
    state_since: Moment
    state_until: Moment | None = Field(description="When the state ends by itself; null: it does not.")
    state_reason: str | None
    is_usable: bool = Field(description="Whether the pool gives it out at this moment.")
    usable_from: Moment | None = Field(description="When it is usable (again); null: not before a person acts.")
    is_shared: bool = Field(description="Any source of the platform is asked with it; otherwise only those naming it.")
    is_from_environment: bool = Field(description="Its secret stands in the environment of a process, nowhere else.")
    priority: int = Field(description="The highest is taken first.")
    daily_limit: int | None
    used_today: int = Field(description="Uses since midnight in UTC; those that are set apart for a process included.")
    use_count: int
    errors_in_a_row: int
    errors_in_all: int
    last_error: str | None
    last_error_at: Moment | None
    last_used_at: Moment | None
    expires_at: Moment | None
    created_at: Moment
    key_id: str = Field(description="Which master key it is encrypted with.")
    source_count: int = Field(description="How many sources name it.")


class CredentialChange(Told):
    """That a credential was no longer as it was."""

    changed_at: Moment
    from_state: str | None = Field(description="Null: it was added.")
    to_state: str | None = Field(description="Null: it was removed.")
    reason: str


class CredentialStory(Credential):
    changes: list[CredentialChange] = Field(description="The latest 100, newest first.")


# ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────


class NewWebhook(Given):
    """Who is to be told of what."""

    model_config = example(name="n8n", url="https://n8n.example/hook", events=["watch.matched"])
    name: Word
    url: Address = Field(description="Where to, by POST. What is secret in it is sealed at once.")
    events: list[Word] = Field(default=[], max_length=100, description="Which events; none: all of them.")
    secret: Annotated[str, Field(min_length=16, max_length=1_000)] | None = Field(
        default=None, description="What messages are signed with. Without one, it is made, and answered once."
    )


class Listener(Told):
    """A webhook or a Python hook, and how far it is."""

    listener: str = Field(description="`webhook NAME` or `hook NAME`.")
    webhook_id: int | None = Field(description="Null: a Python hook.")
    name: str | None
    url: str | None = Field(description="Without what is secret in it.")
    events: list[str] = Field(description="None: all of them.")
    is_active: bool
    off_because: str | None
    waiting_count: int = Field(description="Events that it wants, and is still to be told of.")
    delivered_count: int
    given_up_count: int = Field(description="Events that it did not take for too long.")
    failures_in_a_row: int
    failing_since: Moment | None
    last_error: str | None
    next_attempt_at: Moment | None
    last_delivered_at: Moment | None


class NewListener(Listener):
    secret: str | None = Field(description="What was made to sign with; shown only this once. Null: you gave one.")


class Sent(Told):
    is_delivered: bool


class NewWatch(Given):
    """What to watch for. All that is given must fit."""

    model_config = example(name="chips", words=["芯片", "-股票"], kinds=["rss"])
    name: Word
    words: list[Word] = Field(default=[], max_length=100, description="All must occur; `-word`: must not occur.")
    is_any_enough: bool = Field(default=False, description="One of the words is enough.")
    kinds: list[Word] = Field(default=[], max_length=100)
    source_ids: list[Annotated[int, Field(ge=1, le=LARGEST)]] = Field(default=[], max_length=1_000)
    authors: list[Word] = Field(default=[], max_length=1_000)
    is_for_edits: bool = Field(default=False, description="Also items that change, not only new ones.")


class Watch(Told):
    """A rule over what comes in."""

    id: int
    name: str
    words: list[str]
    is_any_enough: bool
    kinds: list[str]
    source_ids: list[int]
    authors: list[str]
    is_for_edits: bool
    is_active: bool
    created_at: Moment
    from_change_number: int = Field(description="It looks at what changed after this.")
    hit_count: int
    last_hit_at: Moment | None


class WatchHit(Told):
    """An item that fits."""

    item_id: int
    change_number: int
    words: list[str] = Field(description="Which of the watch's words were found.")
    is_edit: bool
    matched_at: Moment
    title: str | None
    url: str | None
    source_id: int | None
    author: str | None


class Job(Told):
    name: str
    why: str
    period_seconds: float | None = Field(description="Null: switched off.")
    last_started_at: Moment | None
    last_finished_at: Moment | None
    next_run_at: Moment | None
    last_error: str | None
    run_count: int
    is_late: bool = Field(description="It should have run long ago, and is not under way.")


class Database(Told):
    ok: bool
    kind: Literal["sqlite", "postgresql"]


class Scheduler(Told):
    ok: bool
    is_collecting: bool = Field(description="Whether this very process runs the jobs.")
    jobs: list[Job]


class Health(Told):
    """`ok` alone without a key; the rest with one."""

    model_config = example(ok=True)
    ok: bool
    version: str | None = None
    database: Database | None = None
    scheduler: Scheduler | None = None
    last_runs: list[Run] | None = None


# ── forgetting ────────────────────────────────────────────────────────────────────────────────────────────────────


class ToForget(Given):
    """One item, or an author on a platform."""

    model_config = example(platform="hackernews", author="somebody", reason="asked us to")
    item_id: Annotated[int, Strict(), Field(ge=1, le=LARGEST)] | None = Field(
        default=None, description="The item's id."
    )
    platform: Word | None = Field(default=None, description="Where the author writes.")
    author: Line | None = Field(default=None, description="The author's name or id there.")
    reason: Line | None = Field(default=None, description="Kept with the record.")


class Forgotten(Told):
    """That something was forgotten; nothing of it."""

    id: int
    what: Literal["item", "author"]
    platform: str
    forgotten_at: Moment
    forgotten_by: str
    reason: str | None
    item_count: int
    revision_count: int
    answer_count: int = Field(description="Kept answers of the sources that showed it.")
    event_count: int
    is_finished: bool = Field(description="False: it was cut off; ask for it once more.")


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────────────────────

Standing = Literal["verified", "repaired", "unproven", "suspect", "unreachable"]


class Stretch(Told):
    """A stretch of time, and how sure it is that nothing of it is missing."""

    from_at: Moment
    to_at: Moment
    standing: Standing
    why: str
    gap_id: int | None = Field(description="The gap that it comes from, where it comes from one.")


class Day(Told):
    day: str = Field(json_schema_extra={"format": "date"}, description="In UTC.")
    standing: Standing = Field(description="The worst of the day.")
    share: float = Field(description="How much of it is verified or repaired, from 0 to 1.")


class Coverage(Told):
    """For which time a source is proven complete."""

    source_id: int
    source_name: str
    order: Literal["newest_first", "ranked", "snapshot"] = Field(description="Only newest_first proves anything.")
    from_at: Moment
    to_at: Moment
    seconds: dict[Standing, int] = Field(description="How much of the time stands how.")
    stretches: list[Stretch] = Field(description="In order, without a seam.")
    calendar: list[Day]
