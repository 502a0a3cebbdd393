"""Items, revisions, search results, raw items, cached items, and deletion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, create_model

from catchment.store.item_fields import COLUMNS, ItemView
from catchment.store.row_mappers import field_types
from catchment.web.api.params import LARGEST, Line, Word
from catchment.web.api.schemas.common import JsonResource, Moment, PageSchema, RequestBody, Resource, example


def _item_fields() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yields the fields of `ItemView` with their types in JSON."""
    for name, field in field_types(ItemView).items():
        type_: Any = _JSON_TYPES.get(field.type, field.type)
        if field.is_list:
            type_ = list[str] if field.type == tuple[str, ...] else list[dict[str, Any]]
        about = COLUMNS[name].about if name in COLUMNS else ""
        yield name, (type_ | None if field.is_optional else type_, Field(description=about or None))


_JSON_TYPES = {datetime: Moment, bytes: str}


class ItemSchema(create_model("ItemFields", __base__=JsonResource, **dict(_item_fields()))):  # type: ignore[misc]
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


class SnippetSchema(Resource):
    """A piece of the text, and where in it the hits are: from and to, in characters."""

    text: str
    marks: list[list[int]]


class HitSchema(ItemSchema):
    """An item that was found."""

    snippet: SnippetSchema
    title_marks: list[list[int]] = Field(description="Where in the title the hits are: from and to, in characters.")
    key: str = Field(description="Its place in the list; `after` takes it.")


class SearchPage(PageSchema[HitSchema]):
    """A part of what was found."""

    behind: int = Field(
        description="How many items were not looked at, because the index is so far behind. 0: nothing is missing."
    )
    count: int | None = Field(description="How many there are in all; told with the first page only.")
    is_count_estimated: bool


class ChangedSchema(Resource):
    """Some of what changed, oldest change first."""

    items: list[ItemSchema]
    next: Annotated[str, BeforeValidator(str)] = Field(
        description="Give it as `after` to go on, now or later. Never null."
    )
    newest: int = Field(description="The newest change number there is.")
    is_end: bool = Field(description="Nothing else has changed so far.")


class Revision(JsonResource):
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


class CounterPoint(Resource):
    """The counters of an item at one moment. Unknown is null."""

    at: Moment
    score: int | None
    reply_count: int | None
    view_count: int | None


class Appearance(Resource):
    """An item's place in a listing, the last one of a day (UTC)."""

    day: str = Field(description="As 2026-01-31.")
    source_id: int
    at: Moment
    rank: int | None
    score: int | None
    gained: int | None = Field(description="What its score gained in the listing's own period.")


class GrowthSchema(Resource):
    """What became of an item over time."""

    counters: list[CounterPoint]
    appearances: list[Appearance]


class RawItem(JsonResource):
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
    source_id: int
    name: str
    type: str = Field(description="The source's kind.")
    total_items: int = Field(description="How many items it has shown.")
    last_item_at: Moment | None = Field(description="When it last showed one that it had not shown before.")
    items_24h: int = Field(description="How many it showed for the first time in the last 24 hours.")


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
    item_id: Annotated[int, Strict(), Field(ge=1, le=LARGEST)] | None = Field(
        default=None, description="The item's id."
    )
    platform: Word | None = Field(default=None, description="Where the author writes.")
    author: Line | None = Field(default=None, description="The author's name or id there.")
    reason: Line | None = Field(default=None, description="Kept with the record.")


class ForgottenSchema(Resource):
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
