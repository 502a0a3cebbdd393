"""Items, revisions, search results, raw items, cached items, and deletion."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from catchment.model import Point
from catchment.store.item_fields import COLUMNS, ItemView
from catchment.store.items.change_feed import Changed
from catchment.store.items.deletion import ForgottenView
from catchment.store.items.raw_items import RawItemView, RawStatsView
from catchment.store.items.views import AppearanceView, RevisionView
from catchment.store.search.search import ResultPage, SearchHit
from catchment.text.tokens import Snippet
from catchment.web.api.params import Line, RowId, Word
from catchment.web.api.schemas.common import Moment, PageSchema, RequestBody, Resource, example, shows


@shows(ItemView, **{name: column.about for name, column in COLUMNS.items()})
class ItemSchema(Resource):
    """A post, entry, story, note or floor. Unknown values are null, never 0."""

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


@shows(Snippet)
class SnippetSchema(Resource):
    """A part of the text with the positions of the matches (start and end, in characters)."""


@shows(
    SearchHit,
    title_marks="The positions of the matches in the title (start and end, in characters).",
    key="The cursor of this result, for `after`.",
)
class HitSchema(ItemSchema):
    """A search result."""


@shows(
    ResultPage,
    behind="How many items were not searched because they are not indexed yet. 0: the results are complete.",
    count="The number of results; on the first page only.",
)
class SearchPage(PageSchema[HitSchema]):
    """A page of search results."""


@shows(
    Changed,
    next=(str, "Pass it as `after` to continue, now or later. Never null."),
    newest="The latest change number.",
    is_end="True if there are no further changes at the moment.",
)
class ChangedSchema(Resource):
    """A page of changes, oldest first."""


@shows(RevisionView, source_edited_at="As stated by the source.")
class Revision(Resource):
    """An earlier version of an item."""


@shows(Point)
class CounterPoint(Resource):
    """The counters of an item at one time. Unknown values are null."""


@shows(AppearanceView, day="As 2026-01-31.", gained="How much its score gained in the listing's period.")
class Appearance(Resource):
    """An item's last rank in a listing on a day (UTC)."""


class GrowthSchema(Resource):
    """The counters and ranks of an item over time."""

    counters: list[CounterPoint]
    appearances: list[Appearance]


@shows(
    RawItemView,
    id="The item's id.",
    source_type="The kind of the source.",
    content="Plain text.",
    published_at="Null: it has no date.",
    fetched_at="When the source first showed it; without `source_id`, when any source first showed it.",
    dedup_key="Platform, scope and external id. The key of an item never changes.",
    metadata="Current counters, tags, media, language and flags.",
)
class RawItem(Resource):
    """An item as a source showed it."""

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


@shows(
    RawStatsView,
    type="The kind of the source.",
    total_items="The number of items that it has shown.",
    last_item_at="When it last showed a new item.",
    items_24h="The number of new items in the last 24 hours.",
)
class RawStats(Resource):
    """The number of items of a source."""

    model_config = example(
        source_id=1,
        name="Example",
        type="rss",
        total_items=1205,
        last_item_at="2026-02-23T08:30:00+00:00",
        items_24h=12,
    )


class HotReads(Resource):
    """Reads that the cache can answer: the first page of a community's newest items."""

    hits: int
    misses: int
    hit_rate: float | None = Field(description="Null: there were no reads.")
    failed_writes: int = Field(description="Failed writes to the cache. No items are lost.")


class Warm(Resource):
    """Communities that were read within the time to live, by a collection or a cache-only crawl."""

    communities: int
    warm: int
    cached_posts: int = Field(description="How many posts their last cache-only crawls cached.")
    last_warmed_at: Moment | None


class HotStanding(Resource):
    """The state of the cache."""

    home: Literal["redis", "database"] = Field(description="Where the cache is now.")
    entries: int
    last_hour: HotReads
    last_24_hours: HotReads
    warmth: Warm


class CachedItem(Resource):
    """An item as a cache-only crawl saw it, stored or not."""

    platform: str
    scope: str
    external_id: str
    kind: str
    source_id: int
    author: str | None
    title: str | None
    text: str | None
    html: str | None = Field(description="Sanitised, but untrusted.")
    url: str | None
    created_at: Moment | None
    ordered_at: Moment
    score: int | None
    reply_count: int | None
    cached_at: Moment


class Cached(Resource):
    """The cached posts of a community, newest first."""

    source_id: int
    last_warmed_at: Moment | None
    cached_count: int = Field(description="How many posts the last crawl cached.")
    items: list[CachedItem]


class DeletionRequest(RequestBody):
    """What to delete permanently: an item, or an author on a platform."""

    model_config = example(platform="hackernews", author="somebody", reason="asked us to")
    item_id: Annotated[RowId, Strict()] | None = Field(default=None, description="The item's id.")
    platform: Word | None = Field(default=None, description="The platform of the author.")
    author: Line | None = Field(default=None, description="The name or id of the author on the platform.")
    reason: Line | None = Field(default=None, description="Stored with the record of the deletion.")


@shows(
    ForgottenView,
    what=(Literal["item", "author"], None),
    answer_count="Stored raw answers of the sources that showed it.",
    is_finished="False: it was interrupted; repeat the request.",
)
class ForgottenSchema(Resource):
    """The record of a deletion, without the content."""
