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
    """A source to add."""

    model_config = example(kind="rss", target="https://example.org/feed.xml", name="Example", interval_minutes=60)
    kind: Word = Field(description="rss, reddit, hackernews … The error for an unknown kind lists the known ones.")
    target: Address = Field(description="As a person would type it. A secret inside is encrypted immediately.")
    name: Line | None = Field(default=None, description="By default, the source's own title.")
    settings: SourceSettings = Field(default={}, description="Settings of its kind.")
    credential: Word | None = Field(default=None, description="The name of a stored credential.")
    interval_minutes: Minutes | None = Field(default=None, description="By default, the kind's interval.")
    categories: Categories = Field(default=[])
    priority: Priority = "medium"
    keep_secret: bool = Field(
        default=False, description="Also encrypt values in the address that only look like a secret."
    )
    check: bool = Field(default=False, description="Request the source first, and add it only if it answers.")


class ChangedSource(RequestBody):
    """The fields to change; fields that are not named stay as they are."""

    model_config = example(interval_minutes=30, settings={"limit": 50})
    # The defaults are never used: only given fields are read. Null is refused where it has no meaning.
    name: Line = Field(default="")
    settings: SourceSettings = Field(default={}, description="Only these settings change; null restores the default.")
    credential: Word | None = Field(default=None, description="Null: none.")
    interval_minutes: Minutes | None = Field(default=None, description="Null: the kind's interval.")
    categories: Categories = Field(default=[])
    priority: Priority = "medium"


@shows(
    KindIntervalView,
    interval_minutes="The interval in effect for sources without an interval of their own.",
    origin=(
        Literal["database", "settings", "default"],
        "Where the interval comes from: the database, FETCH_INTERVAL_<KIND>, or the default.",
    ),
    default_minutes="Null: no platform for this kind is installed.",
    settings_minutes="The value of FETCH_INTERVAL_<KIND>. Null: not set.",
)
class KindInterval(Resource):
    """How often sources of a kind are collected."""

    model_config = example(
        kind="rss", interval_minutes=30, origin="database", default_minutes=240, settings_minutes=None
    )


class ChangedInterval(RequestBody):
    model_config = example(interval_minutes=30)
    interval_minutes: Minutes | None = Field(description="Null: remove the setting from the database.")


class Pause(RequestBody):
    model_config = example(reason="moved to another service")
    reason: Line | None = Field(default=None, description="Shown with the source.")


@shows(
    FetchStats,
    last_fetched_count="Items shown by the last successful collection.",
    last_new_count="New items among them.",
    avg_new_rate="Moving average of the share of items that were new, from 0 to 1.",
    consecutive_empty_fetches="Successful collections in a row without anything new.",
    next_limit="How many items to request first next time. Null: not known yet.",
)
class FetchStatsSchema(Resource):
    """Statistics for the adaptive limit of a source."""


@shows(
    SourceView,
    credential="The name of a credential, never a secret.",
    interval_minutes="Its own interval. Null: the kind's interval applies.",
    fetch_interval_minutes="The interval that holds.",
    next_fetch_at="Null: never collected (then it is due now), or not active.",
    next_fetch_reason="Why then.",
    note="A current restriction: limited access without a key, or no platform installed.",
    has_platform="False: no platform for its kind is installed. It is skipped until one is.",
    empty_count="Successful collections without new items.",
    watermark="Everything up to this point is stored.",
    expected_by="When a new item is expected at the latest, based on its posting rate.",
    posts_per_day="Expected posts per day, based on its newest items. Null: too few items.",
    tier="The activity of a community: tier1, tier2 or tier3. Null: unknown, or not a community.",
    average_valid="Average valid posts per collection, over the last collections. It decides the tier.",
    recent_valid="Valid posts of its last collections, oldest first.",
)
class SourceSchema(Resource):
    """A source."""

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
    least_valid="The minimum average of valid posts for this tier.",
    hours="The interval between collections.",
    sort="The listing that is read, in addition to the newest posts.",
    sources="The number of communities in it.",
    would_be="The number that would be in it with current activity and settings.",
)
class TierSchema(Resource):
    """A tier: how communities of similar activity are collected."""


@shows(TierChangeView)
class TierChange(Resource):
    """A community whose tier or interval no longer fits its activity."""


class Communities(PageSchema[SourceSchema]):
    """Tiers, and communities by activity, the most active first."""

    tiers: list[TierSchema]
    unassigned: int = Field(description="Communities without a tier, because they were collected too few times.")
    changes: list[TierChange] = Field(
        description="At most `limit` of them. Tiers are assigned after each collection and by a daily job."
    )


@shows(SkippedView)
class SkippedItem(Resource):
    pass


@shows(
    PreviewView,
    title="The source's own title.",
    shown="The number of items on the first page.",
    items="The first items, as they would be stored.",
)
class PreviewSchema(Resource):
    """What the first collection would store."""


class AddedSource(SourceSchema):
    """A source that was added."""

    preview: PreviewSchema | None = Field(description="Only with `check`.")


class CollectedSource(RecordSchema):
    """The state of collecting one source."""

    id: int
    name: str
    type: str = Field(description="Same as `kind`.")
    kind: str
    interval_minutes: int = Field(description="The interval that holds.")
    last_fetched_at: Moment | None
    next_fetch_at: Moment | None
    fetch_count: int
    fetch_error_count: int
    last_error: str | None
    status: Literal["ok", "waiting", "no_platform", "failing", "probation", "paused", "retired"] = Field(
        description="waiting: never collected yet · probation: collected less and less often after repeated failures."
    )


@shows(
    CollectorStatsView,
    active_sources="Sources collected at their normal interval.",
    paused_sources="By a person.",
    paused_by_error="Sources on probation after failures, or retired by the platform.",
    fetches_24h="Collections of sources, without rechecks of single items.",
    deferred_24h="Collections postponed by our own limits; counted in neither of the two above.",
    raw_items_24h="Same as `items_24h`.",
    items_24h="New items.",
)
class CollectorStats(Resource):
    pass


class CollectorStatus(Resource):
    """The state of collecting, by source and in total."""

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
    next: str | None = Field(description="Pass it as `after` to get the next sources. Null: there are no more.")


@shows(Stretch, gap_id="The gap that it belongs to, if any.")
class StretchSchema(Resource):
    """A period, and whether it is complete."""


@shows(Day, standing="The worst state of the day.", share="The share that is verified or repaired, from 0 to 1.")
class DaySchema(Resource):
    pass


@shows(
    CoverageView,
    order="Only a newest_first listing proves completeness.",
    seconds="The share of time in each state.",
    stretches="In order, without overlaps or holes.",
)
class Coverage(Resource):
    """The periods for which a source is proven complete."""
