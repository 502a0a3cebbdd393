"""/api/items, /api/changes, /api/search, /api/raw-items, /api/forget and /api/hot: items in every form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from msgspec.structs import asdict

from catchment.cache import CacheReport, forget_for_good
from catchment.collect.cache_warmup import warmable
from catchment.errors import InvalidInput
from catchment.model import Ordering
from catchment.store.item_fields import ItemView
from catchment.store.items.change_feed import parse_cursor
from catchment.store.items.deletion import Forget, ForgottenView
from catchment.store.items.items import ItemPage, key_from, key_text
from catchment.store.items.raw_items import RawItemView, RawPage, RawStatsView
from catchment.store.items.views import RevisionView
from catchment.store.search.lists import Filter
from catchment.store.search.search import ResultPage
from catchment.web.api.params import (
    LARGEST,
    After,
    AfterChange,
    AfterHit,
    AfterKey,
    AskedMoment,
    ItemId,
    Line,
    Name,
    OfCategory,
    OfSource,
    ResourcePage,
    SourceId,
    limit,
    moment_of,
    paged,
    place,
)
from catchment.web.api.schemas.common import PageSchema, failure
from catchment.web.api.schemas.items import (
    Cached,
    ChangedSchema,
    DeletionRequest,
    ForgottenSchema,
    GrowthSchema,
    HotStanding,
    ItemSchema,
    RawItem,
    RawStats,
    Revision,
    SearchPage,
)
from catchment.web.dependencies import AppDep

router = APIRouter(prefix="/api")

MISSING = failure(404, "There is no such item.")
_NO_SOURCE = failure(404, "There is no such source.")


# Asynchronous although it awaits nothing: otherwise FastAPI would use a thread for it.
async def _filter(
    app: AppDep,
    source_id: OfSource = None,
    kind: Annotated[
        Name, Query(description="Only items of this kind (`story`), or whose first source is of this kind (`rss`).")
    ] = None,
    platform: Annotated[Name, Query(description="Only items of this platform.")] = None,
    author: Annotated[Line | None, Query(description="Only items by this author, spelled as on the platform.")] = None,
    tag: Annotated[Line | None, Query(description="With this tag.")] = None,
    category: OfCategory = None,
    since: Annotated[
        AskedMoment | None,
        Query(description="Only items from this time on (by `ordered_at`, or by the time that orders the list)."),
    ] = None,
    until: Annotated[AskedMoment | None, Query(description="Only items before this time.")] = None,
    is_deleted: Annotated[
        bool | None, Query(description="true: only items deleted at their source; false: only items that are not.")
    ] = None,
    threads: Annotated[bool, Query(description="Only the opening posts of forum threads.")] = False,
) -> Filter:
    now = app.clock.now()
    times = moment_of(since, now), moment_of(until, now)
    return Filter(
        source_id, kind, platform, author, tag, *times, is_deleted, category=category, is_thread=threads or None
    )


AskedFilter = Annotated[Filter, Depends(_filter)]


@router.get("/items", tags=["items"], response_model=PageSchema[ItemSchema])
def list_items(
    app: AppDep,
    filter: AskedFilter,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    changed_since: Annotated[
        int | None,
        Query(
            ge=0,
            le=LARGEST,
            description="Only items that are new or changed after this change number (see /api/changes).",
        ),
    ] = None,
    order: Annotated[
        Ordering, Query(description="Order by posting time (`ordered_at`) or by last reply (`last_reply_at`).")
    ] = Ordering.POSTED,
) -> ResourcePage[ItemView]:
    """List items that match all filters, newest first.

    With a rare filter, a page may be short or even empty although more follow: continue until `next` is null. Ordered
    by replies, the list has only items with a known last reply, and an item that gets a reply moves to the front.
    """
    checked = app.names.checked(filter.replace(changed_since=changed_since))
    return _page(app.cache.listed(checked, most, key_from(after), order))


def _page(page: ItemPage | RawPage) -> ResourcePage[Any]:
    return ResourcePage(page.items, key_text(page.next) if page.next else None)


@router.get("/items/{item_id}", tags=["items"], response_model=ItemSchema, responses=MISSING)
def show_item(
    app: AppDep,
    item_id: ItemId,
    at: Annotated[AskedMoment | None, Query(description="Show the item as it was at this time.")] = None,
) -> ItemView:
    """An item as it is now or, with `at`, as it was at a given time.

    With `at`, title, text, html, target_url, media, version, is_deleted and is_folded are those of that time, and
    `valid_to` says how long they were valid (null: they still are). Counters are null if they have changed since. All
    other fields (author, URL, tags) have their current values: earlier ones are not kept.
    """
    moment = moment_of(at, app.clock.now())
    return app.store.items.get(item_id) if moment is None else app.store.items.as_of(item_id, moment)


@router.get("/items/{item_id}/revisions", tags=["items"], response_model=PageSchema[Revision], responses=MISSING)
def list_revisions(app: AppDep, item_id: ItemId) -> ResourcePage[RevisionView]:
    """The earlier versions of an item, oldest first, and why it changed."""
    return ResourcePage(app.store.items.revisions(item_id))


@router.get("/items/{item_id}/replies", tags=["items"], response_model=PageSchema[ItemSchema], responses=MISSING)
def list_replies(
    app: AppDep, item_id: ItemId, after: AfterKey = None, most: Annotated[int, limit(200)] = 50
) -> ResourcePage[ItemView]:
    """The replies in its thread (comments, floors), oldest first."""
    return _page(app.store.items.replies(item_id, most, key_from(after)))


@router.get("/items/{item_id}/counters", tags=["items"], response_model=GrowthSchema, responses=MISSING)
def list_counters(app: AppDep, item_id: ItemId) -> dict[str, Any]:
    """How its counters grew, and its ranks in listings by day; both oldest first.

    The counters are a sparse series: a point when they are first known, when one changes by a tenth, and after six
    hours if any has changed. The item itself has the current values.
    """
    items = app.store.items
    return {"counters": items.counters(item_id), "appearances": items.appearances(item_id)}


@router.get("/changes", tags=["items"], response_model=ChangedSchema)
def list_changes(
    app: AppDep,
    after: AfterChange = "0",
    most: Annotated[int, limit(200)] = 50,
    counters: Annotated[bool, Query(description="Include items of which only counters changed.")] = False,
) -> dict[str, Any]:
    """New and changed items after a change number, in the order in which they were stored.

    The list is complete: change numbers follow the order of commits, so no item appears behind a cursor. Each item is
    listed once, at its last change, and again when it changes again. Pass `next` as `after` to continue, now or at any
    later time; it is set even at the end of the list.
    """
    changed = app.store.changes.after(parse_cursor(after), most, counters=counters)
    return asdict(changed) | {"next": str(changed.next)}


@router.get("/search", tags=["items"], response_model=SearchPage)
def search_items(
    app: AppDep,
    filter: AskedFilter,
    q: Annotated[Line, Query(description="Words that must all occur; a phrase in double quotes.", examples=["spring"])],
    order: Annotated[Literal["newest", "best"], Query(description="The order of results.")] = "newest",
    after: AfterHit = None,
    most: Annotated[int, limit(200)] = 30,
) -> ResultPage:
    """Search items by whole words, in any case; in Chinese, Japanese and Korean, by any part of the text.

    `best` ranks the newest thousand results. A page may be short or even empty although more follow: continue until
    `next` is null.
    """
    checked = app.names.checked(filter)
    return app.store.search.find(q, checked, is_best=order == "best", limit=most, after=after)


Since = Annotated[AskedMoment | None, Query(description="Only items fetched at this time or later.")]


@router.get("/raw-items", tags=["raw items"], response_model=PageSchema[RawItem])
def list_raw_items(
    app: AppDep,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    source_id: OfSource = None,
    since: Since = None,
) -> ResourcePage[RawItemView]:
    """Fetched items, most recently fetched first.

    With `source_id`, everything that the source showed; otherwise each item once, with the first source that had it.
    """
    moment = moment_of(since, app.clock.now())
    return _page(app.store.raw_items.page(most, source_id=source_id, since=moment, before=key_from(after)))


@router.get("/raw-items/stats", tags=["raw items"], response_model=PageSchema[RawStats])
def raw_item_stats(
    app: AppDep, after: After = None, most: Annotated[int, limit(1000)] = 1000
) -> ResourcePage[RawStatsView]:
    """Items of each source, in total and in the last 24 hours, ordered by id."""
    rows = app.store.raw_items.stats(app.clock.now(), place(after) or 0, most + 1)
    return paged(rows, most, lambda row: row.source_id)


@router.get("/raw-items/for-digest", tags=["raw items"], response_model=PageSchema[RawItem])
def raw_items_for_digest(
    app: AppDep, after: AfterKey = None, most: Annotated[int, limit(500)] = 500, since: Since = None
) -> ResourcePage[RawItemView]:
    """Items of active sources, each once, most recently fetched first.

    A page may be short or even empty if many items come from inactive sources: continue until `next` is null.
    """
    moment = moment_of(since, app.clock.now())
    return _page(app.store.raw_items.for_digest(most, since=moment, before=key_from(after)))


@router.post("/forget", tags=["forgetting"], response_model=ForgottenSchema, responses=MISSING)
def forget(app: AppDep, body: DeletionRequest) -> ForgottenView:
    """Permanently delete an item, or all items of an author on a platform, with their revisions and raw answers. They
    are not collected again. Backups, exports and copies in other programs still have them."""
    if body.item_id is not None and body.author is None and body.platform is None:
        platform = app.store.deletion.platform_of(body.item_id)
        order = Forget("item", platform, "API", body.reason, item_id=body.item_id)
    elif body.item_id is None and body.author is not None and body.platform is not None:
        # A typing error would delete nothing and look like success.
        platform = app.platforms.named(body.platform, *app.store.deletion.followed_on(body.platform))
        order = Forget("author", platform, "API", body.reason, author=body.author)
    else:
        raise InvalidInput("the request does not say what to forget", "pass item_id, or platform and author", "item_id")
    return forget_for_good(app.store, app.cache, order, app.clock.now())


@router.get("/forgotten", tags=["forgetting"], response_model=PageSchema[ForgottenSchema])
def list_forgotten(
    app: AppDep, after: After = None, most: Annotated[int, limit(200)] = 50
) -> ResourcePage[ForgottenView]:
    """Records of permanent deletions, newest first, without content or names."""
    return paged(app.store.deletion.records(most + 1, place(after)), most, lambda record: record.id)


@router.get("/hot", tags=["hot"], response_model=HotStanding)
def show_standing(app: AppDep) -> CacheReport:
    """The state of the cache: where it is, its hit rate, and how many communities are warm."""
    return app.cache.report(warmable(app.platforms))


@router.get("/hot/{source_id}", tags=["hot"], response_model=Cached, responses=_NO_SOURCE)
def list_cached(app: AppDep, source_id: SourceId, most: Annotated[int, limit(200)] = 50) -> dict[str, Any]:
    """Posts of a community that cache-only crawls saw within the time to live, newest first, stored or not.

    They have no id and no history; for stored items, see /api/items.
    """
    source = app.store.sources.get(source_id)
    return {
        "source_id": source.id,
        **app.store.cached_sources.of_source(source.id),
        "items": app.cache.cached(source, most),
    }
