"""Sources, their tiers, previews, coverage, and the state of collecting them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from catchment.policy.coverage import Day, Stretch
from catchment.sources.describe import CoverageView, FetchStats, SourceView
from catchment.sources.intervals import KindIntervalView, TierChangeView, TierView
from catchment.sources.preview import PreviewView, SkippedView
from catchment.status import CollectorStatsView
from catchment.web.api.params import Address, Categories, Line, Minutes, SourceSettings, Word
from catchment.web.api.schemas.common import Moment, PageSchema, RecordSchema, RequestBody, Resource, example, shows

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


@shows(
    KindIntervalView,
    interval_minutes="The interval that holds, for sources without one of their own.",
    origin=(
        Literal["database", "settings", "default"],
        "Where it comes from: set here, by FETCH_INTERVAL_<KIND>, or by nobody.",
    ),
    default_minutes="Null: a kind that this installation does not know.",
    settings_minutes="What FETCH_INTERVAL_<KIND> says; null: nothing.",
)
class KindInterval(Resource):
    """How often sources of a kind are visited."""

    model_config = example(
        kind="rss", interval_minutes=30, origin="database", default_minutes=240, settings_minutes=None
    )


class ChangedInterval(RequestBody):
    model_config = example(interval_minutes=30)
    interval_minutes: Minutes | None = Field(description="Null: none is kept in the database.")


class Pause(RequestBody):
    model_config = example(reason="moved to another service")
    reason: Line | None = Field(default=None, description="Shown wherever it is.")


@shows(
    FetchStats,
    last_fetched_count="How many items the last successful collection showed.",
    last_new_count="How many of them were new.",
    avg_new_rate="Moving average of the share of items that were new, from 0 to 1.",
    consecutive_empty_fetches="Successful collections in a row without anything new.",
    next_limit="How many items to request first next time. Null: not learnt yet.",
)
class FetchStatsSchema(Resource):
    """What the adaptive limit of a source is learnt from."""


@shows(
    SourceView,
    credential="A name in the vault; never a secret.",
    interval_minutes="Its own; null: its kind's holds.",
    fetch_interval_minutes="The interval that holds.",
    next_fetch_at="Null: never visited (then it is due now), or not active.",
    next_fetch_reason="Why then.",
    note="What is special about how it is read now: in brief, for want of a key; not at all, for want of a platform.",
    has_platform="False: no platform is installed for its kind; it is skipped until then.",
    empty_count="Of the successes, those that brought nothing new.",
    watermark="Everything up to here is stored.",
    expected_by="By its own rhythm, something new should be seen by then.",
    posts_per_day="How many to reckon with, by its newest. Null: too few to tell.",
    tier="How lively a community is: tier1, tier2, tier3. Null: not told yet, or none.",
    average_valid="Valid posts a visit, over the last visits: what tells the tier.",
    recent_valid="The valid posts of its last visits, the latest last.",
)
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


@shows(
    TierView,
    least_valid="The average of valid posts from which on a community belongs here.",
    hours="From one visit to the next.",
    sort="The listing that is read, beside the newest where it is another one.",
    sources="How many communities are in it.",
    would_be="How many would be, by their visits and the settings of today.",
)
class TierSchema(Resource):
    """How communities of one liveliness are read."""


@shows(TierChangeView)
class TierChange(Resource):
    """A community whose visits speak for another tier, or another interval, than it has."""


class Communities(PageSchema[SourceSchema]):
    """The communities that were visited, the liveliest first, and the tiers that follow."""

    tiers: list[TierSchema]
    unassigned: int = Field(description="How many have no tier yet, because there were too few visits.")
    changes: list[TierChange] = Field(description="As many as `limit` allows. Each visit, and a daily job, makes them.")


@shows(SkippedView)
class SkippedItem(Resource):
    pass


@shows(
    PreviewView,
    title="What the source calls itself.",
    shown="How many items the first page showed.",
    items="The first of them, as they would be stored.",
)
class PreviewSchema(Resource):
    """What a first visit would store."""


class NewlyFollowed(SourceSchema):
    """A source that is followed from now on."""

    preview: PreviewSchema | None = Field(description="Where `check` was asked for.")


class CollectedSource(RecordSchema):
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


@shows(
    CollectorStatsView,
    active_sources="Collected at their usual pace.",
    paused_sources="By a person.",
    paused_by_error="On probation after failures, or retired by the platform's word.",
    fetches_24h="Visits to sources; rechecks of single items are not counted.",
    deferred_24h="Visits that our own limits made wait; in neither of the two above.",
    raw_items_24h="The same as `items_24h`.",
    items_24h="New items.",
)
class CollectorStats(Resource):
    pass


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


@shows(Stretch, gap_id="The gap that it comes from, where it comes from one.")
class StretchSchema(Resource):
    """A stretch of time, and how sure it is that nothing of it is missing."""


@shows(Day, standing="The worst of the day.", share="How much of it is verified or repaired, from 0 to 1.")
class DaySchema(Resource):
    pass


@shows(
    CoverageView,
    order="Only newest_first proves anything.",
    seconds="How much of the time stands how.",
    stretches="In order, without a seam.",
)
class Coverage(Resource):
    """For which time a source is proven complete."""
