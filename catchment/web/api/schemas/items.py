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


@shows(Snippet)
class SnippetSchema(Resource):
    """A piece of the text, and where in it the hits are: from and to, in characters."""


@shows(
    SearchHit,
    title_marks="Where in the title the hits are: from and to, in characters.",
    key="Its place in the list; `after` takes it.",
)
class HitSchema(ItemSchema):
    """An item that was found."""


@shows(
    ResultPage,
    behind="How many items were not looked at, because the index is so far behind. 0: nothing is missing.",
    count="How many there are in all; told with the first page only.",
)
class SearchPage(PageSchema[HitSchema]):
    """A part of what was found."""


@shows(
    Changed,
    next=(str, "Give it as `after` to go on, now or later. Never null."),
    newest="The newest change number there is.",
    is_end="Nothing else has changed so far.",
)
class ChangedSchema(Resource):
    """Some of what changed, oldest change first."""


@shows(RevisionView, source_edited_at="By the source's own word.")
class Revision(Resource):
    """What an item said before."""


@shows(Point)
class CounterPoint(Resource):
    """The counters of an item at one moment. Unknown is null."""


@shows(AppearanceView, day="As 2026-01-31.", gained="What its score gained in the listing's own period.")
class Appearance(Resource):
    """An item's place in a listing, the last one of a day (UTC)."""


class GrowthSchema(Resource):
    """What became of an item over time."""

    counters: list[CounterPoint]
    appearances: list[Appearance]


@shows(
    RawItemView,
    id="The item's id.",
    source_type="The source's kind.",
    content="Plain text.",
    published_at="Null: it bears no date.",
    fetched_at="When the source first showed it; without `source_id`, when any source did.",
    dedup_key="Platform, scope and external id: the same thing has the same key for good.",
    metadata="Counters, tags, media, language and marks, as they are now.",
)
class RawItem(Resource):
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


@shows(
    RawStatsView,
    type="The source's kind.",
    total_items="How many items it has shown.",
    last_item_at="When it last showed one that it had not shown before.",
    items_24h="How many it showed for the first time in the last 24 hours.",
)
class RawStats(Resource):
    """How much a source has brought."""

    model_config = example(
        source_id=1,
        name="Example",
        type="rss",
        total_items=1205,
        last_item_at="2026-02-23T08:30:00+00:00",
        items_24h=12,
    )


class HotReads(Resource):
    """What became of reads that the hot store could answer: the first page of a community's newest."""

    hits: int
    misses: int
    hit_rate: float | None = Field(description="Null: there were no reads.")
    failed_writes: int = Field(description="Hot sets that could not be written where they should be; nothing is lost.")


class Warm(Resource):
    """How many communities are warm: read within the time to live, by a visit or by a cache-only crawl."""

    communities: int
    warm: int
    cached_posts: int = Field(description="What the last cache-only crawl of each one cached.")
    last_warmed_at: Moment | None


class HotStanding(Resource):
    """How the hot store stands."""

    home: Literal["redis", "database"] = Field(description="Where it lives at this moment.")
    entries: int
    last_hour: HotReads
    last_24_hours: HotReads
    warmth: Warm


class CachedItem(Resource):
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


class Cached(Resource):
    """What cache-only crawls saw of a community, newest first."""

    source_id: int
    last_warmed_at: Moment | None
    cached_count: int = Field(description="How many posts the last crawl cached.")
    items: list[CachedItem]


class ToForget(RequestBody):
    """One item, or an author on a platform."""

    model_config = example(platform="hackernews", author="somebody", reason="asked us to")
    item_id: Annotated[RowId, Strict()] | None = Field(default=None, description="The item's id.")
    platform: Word | None = Field(default=None, description="Where the author writes.")
    author: Line | None = Field(default=None, description="The author's name or id there.")
    reason: Line | None = Field(default=None, description="Kept with the record.")


@shows(
    ForgottenView,
    what=(Literal["item", "author"], None),
    answer_count="Kept answers of the sources that showed it.",
    is_finished="False: it was cut off; ask for it once more.",
)
class ForgottenSchema(Resource):
    """That something was forgotten; nothing of it."""
