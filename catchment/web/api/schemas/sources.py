"""Sources, their tiers, previews, coverage, and the state of collecting them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from catchment.web.api.params import Address, Categories, Line, Minutes, SourceSettings, Word
from catchment.web.api.schemas.common import Moment, PageSchema, RequestBody, Resource, example

Priority = Literal["high", "medium", "low"]


class NewSource(RequestBody):
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
    keep_secret: bool = Field(
        default=False, description="Encrypt what looks like a secret in the address, whatever it is called."
    )
    check: bool = Field(default=False, description="Ask the platform first; without an answer nothing is followed.")


class ChangedSource(RequestBody):
    """What is to be different; what is not named stays."""

    model_config = example(interval_minutes=30, settings={"limit": 50})
    # The defaults are never used: only given fields are read. Null is refused where it has no meaning.
    name: Line = Field(default="")
    settings: SourceSettings = Field(default={}, description="Those named are changed; null takes one away.")
    credential: Word | None = Field(default=None, description="Null: none.")
    interval_minutes: Minutes | None = Field(default=None, description="Null: its kind's.")
    categories: Categories = Field(default=[])
    priority: Priority = "medium"


class KindInterval(Resource):
    """How often sources of a kind are visited."""

    model_config = example(
        kind="rss", interval_minutes=30, origin="database", default_minutes=240, settings_minutes=None
    )
    kind: str
    interval_minutes: int = Field(description="The interval that holds, for sources without one of their own.")
    origin: Literal["database", "settings", "default"] = Field(
        description="Where it comes from: set here, by FETCH_INTERVAL_<KIND>, or by nobody."
    )
    default_minutes: int | None = Field(description="Null: a kind that this installation does not know.")
    settings_minutes: int | None = Field(description="What FETCH_INTERVAL_<KIND> says; null: nothing.")


class ChangedInterval(RequestBody):
    model_config = example(interval_minutes=30)
    interval_minutes: Minutes | None = Field(description="Null: none is kept in the database.")


class Pause(RequestBody):
    model_config = example(reason="moved to another service")
    reason: Line | None = Field(default=None, description="Shown wherever it is.")


class SourceSchema(Resource):
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
    note: str | None = Field(
        description="What is special about how it is read now: in brief, for want of a key; not at all, for want of a "
        "platform."
    )
    has_platform: bool = Field(description="False: no platform is installed for its kind; it is skipped until then.")
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


class TierSchema(Resource):
    """How communities of one liveliness are read."""

    name: str
    least_valid: float = Field(description="The average of valid posts from which on a community belongs here.")
    hours: float = Field(description="From one visit to the next.")
    sort: str = Field(description="The listing that is read, beside the newest where it is another one.")
    time_filter: str
    limit: int
    sources: int = Field(description="How many communities are in it.")
    would_be: int = Field(description="How many would be, by their visits and the settings of today.")


class TierChange(Resource):
    """A community whose visits speak for another tier, or another interval, than it has."""

    id: int
    name: str
    average_valid: float
    tier: str | None
    tier_minutes: int | None
    would_be: str | None
    would_be_minutes: int | None
    why: str | None


class Communities(PageSchema[SourceSchema]):
    """The communities that were visited, the liveliest first, and the tiers that follow."""

    tiers: list[TierSchema]
    unassigned: int = Field(description="How many have no tier yet, because there were too few visits.")
    changes: list[TierChange] = Field(description="As many as `limit` allows. Each visit, and a daily job, makes them.")


class SkippedItem(Resource):
    reason: str
    count: int
    example: str


class PreviewSchema(Resource):
    """What a first visit would store."""

    title: str | None = Field(default=None, description="What the source calls itself.")
    shown: int = Field(description="How many items the first page showed.")
    items: list[dict[str, Any]] = Field(description="The first of them, as they would be stored.")
    skipped: list[SkippedItem]
    notes: list[str]


class NewlyFollowed(SourceSchema):
    """A source that is followed from now on."""

    preview: PreviewSchema | None = Field(default=None, description="Where `check` was asked for.")


class CollectedSource(Resource):
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
    status: Literal["ok", "waiting", "no_platform", "failing", "probation", "paused", "retired"] = Field(
        description="waiting: never visited yet · probation: failed so often that it is visited less and less."
    )


class CollectorStats(Resource):
    total_sources: int
    active_sources: int = Field(description="Collected at their usual pace.")
    paused_sources: int = Field(description="By a person.")
    paused_by_error: int = Field(description="On probation after failures, or retired by the platform's word.")
    fetches_24h: int = Field(description="Visits to sources; rechecks of single items are not counted.")
    errors_24h: int
    deferred_24h: int = Field(description="Visits that our own limits made wait; in neither of the two above.")
    raw_items_24h: int = Field(description="The same as `items_24h`.")
    items_24h: int = Field(description="New items.")


class CollectorStatus(Resource):
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
            "deferred_24h": 3,
            "raw_items_24h": 3421,
            "items_24h": 3421,
        },
        next=None,
    )
    sources: list[CollectedSource]
    stats: CollectorStats
    next: str | None = Field(description="Given as `after` for the sources that follow; null: these were all.")


Standing = Literal["verified", "repaired", "unproven", "suspect", "unreachable"]


class StretchSchema(Resource):
    """A stretch of time, and how sure it is that nothing of it is missing."""

    from_at: Moment
    to_at: Moment
    standing: Standing
    why: str
    gap_id: int | None = Field(description="The gap that it comes from, where it comes from one.")


class DaySchema(Resource):
    day: str = Field(json_schema_extra={"format": "date"}, description="In UTC.")
    standing: Standing = Field(description="The worst of the day.")
    share: float = Field(description="How much of it is verified or repaired, from 0 to 1.")


class Coverage(Resource):
    """For which time a source is proven complete."""

    source_id: int
    source_name: str
    order: Literal["newest_first", "ranked", "snapshot"] = Field(description="Only newest_first proves anything.")
    from_at: Moment
    to_at: Moment
    seconds: dict[Standing, int] = Field(description="How much of the time stands how.")
    stretches: list[StretchSchema] = Field(description="In order, without a seam.")
    calendar: list[DaySchema]
