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
from catchment.store.items.change_feed import place_from
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
    ForgottenSchema,
    GrowthSchema,
    HotStanding,
    ItemSchema,
    RawItem,
    RawStats,
    Revision,
    SearchPage,
    ToForget,
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
        Name, Query(description="Of this kind: the item's (`story`), or its first source's (`rss`).")
    ] = None,
    platform: Annotated[Name, Query(description="Of this platform.")] = None,
    author: Annotated[Line | None, Query(description="By this author, written as the platform writes it.")] = None,
    tag: Annotated[Line | None, Query(description="With this tag.")] = None,
    category: OfCategory = None,
    since: Annotated[
        AskedMoment | None,
        Query(description="Listed at this moment or later (by `ordered_at`, or by what the list is ordered by) …"),
    ] = None,
    until: Annotated[AskedMoment | None, Query(description="… and before this one.")] = None,
    is_deleted: Annotated[bool | None, Query(description="Deleted by its source, or not.")] = None,
) -> Filter:
    now = app.clock.now()
    times = moment_of(since, now), moment_of(until, now)
    return Filter(source_id, kind, platform, author, tag, *times, is_deleted, category=category)


AskedFilter = Annotated[Filter, Depends(_filter)]


@router.get("/items", tags=["items"], response_model=PageSchema[ItemSchema])
def list_items(
    app: AppDep,
    filter: AskedFilter,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    changed_since: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="New or changed after this change number (see /api/changes).")
    ] = None,
    order: Annotated[
        Ordering, Query(description="By what: when it was posted (`ordered_at`), or last answered (`last_reply_at`).")
    ] = Ordering.POSTED,
) -> ResourcePage[ItemView]:
    """Newest first, what every filter lets through.

    What is rare is looked for in steps: a page may be short, even empty, and `next` goes on; null only at the end.
    Ordered by replies, the list has only what was answered, as far as is known; and what is answered while you read
    moves to its front.
    """
    checked = app.names.checked(filter.replace(changed_since=changed_since))
    return _page(app.cache.listed(checked, most, key_from(after), order))


def _page(page: ItemPage | RawPage) -> ResourcePage[Any]:
    return ResourcePage(page.items, key_text(page.next) if page.next else None)


@router.get("/items/{item_id}", tags=["items"], response_model=ItemSchema, responses=MISSING)
def show_item(
    app: AppDep,
    item_id: ItemId,
    at: Annotated[AskedMoment | None, Query(description="As it was at this moment.")] = None,
) -> ItemView:
    """One item, as it is now; or, with `at`, as it was at a moment since it was first seen.

    Then title, text, html, target_url, media, version and the marks deleted and folded are those of that moment, and
    `valid_to` tells until when they held (null: they still do). Counters are null if later ones have taken their
    place. The rest (author, address, tags) is kept as it is now only.
    """
    moment = moment_of(at, app.clock.now())
    return app.store.items.get(item_id) if moment is None else app.store.items.as_of(item_id, moment)


@router.get("/items/{item_id}/revisions", tags=["items"], response_model=PageSchema[Revision], responses=MISSING)
def list_revisions(app: AppDep, item_id: ItemId) -> ResourcePage[RevisionView]:
    """What it said before, oldest first, and why that changed."""
    return ResourcePage(app.store.items.revisions(item_id))


@router.get("/items/{item_id}/replies", tags=["items"], response_model=PageSchema[ItemSchema], responses=MISSING)
def list_replies(
    app: AppDep, item_id: ItemId, after: AfterKey = None, most: Annotated[int, limit(200)] = 50
) -> ResourcePage[ItemView]:
    """What was said in its thread, oldest first: comments, replies, floors."""
    return _page(app.store.items.replies(item_id, most, key_from(after)))


@router.get("/items/{item_id}/counters", tags=["items"], response_model=GrowthSchema, responses=MISSING)
def list_counters(app: AppDep, item_id: ItemId) -> dict[str, Any]:
    """How its counters grew, and its places in ranked listings by day; both oldest first.

    Counters are a sparse series: a point when they are first told, when one has changed by a tenth, and when six hours
    have passed and any has changed. What they are now stands in the item itself.
    """
    items = app.store.items
    return {"counters": items.counters(item_id), "appearances": items.appearances(item_id)}


@router.get("/changes", tags=["items"], response_model=ChangedSchema)
def list_changes(
    app: AppDep,
    after: AfterChange = "0",
    most: Annotated[int, limit(200)] = 50,
    counters: Annotated[bool, Query(description="Also items of which only counters changed.")] = False,
) -> dict[str, Any]:
    """What is new or has changed after a change number, in the order in which it was stored.

    Complete: numbers are given in the order of commits, so that nothing appears behind a reader. Each item comes once,
    at its last change; one that changes again comes again. Keep `next`, and give it as `after` whenever you like: at
    the end of the list, too, it is where to go on.
    """
    changed = app.store.changes.after(place_from(after), most, counters=counters)
    return asdict(changed) | {"next": str(changed.next)}


@router.get("/search", tags=["items"], response_model=SearchPage)
def search_items(
    app: AppDep,
    filter: AskedFilter,
    q: Annotated[
        Line, Query(description="Words that must all be there; a phrase in double quotes.", examples=["spring"])
    ],
    order: Annotated[Literal["newest", "best"], Query(description="What comes first.")] = "newest",
    after: AfterHit = None,
    most: Annotated[int, limit(200)] = 30,
) -> ResultPage:
    """Items by their words: whole words, whatever their case; Chinese, Japanese and Korean by any part.

    `best` compares the newest thousand that answer. A page may be short, even empty, and `next` goes on; null only at
    the end.
    """
    checked = app.names.checked(filter)
    return app.store.search.find(q, checked, is_best=order == "best", limit=most, after=after)


Since = Annotated[AskedMoment | None, Query(description="Only what was fetched at this moment or later.")]


@router.get("/raw-items", tags=["raw items"], response_model=PageSchema[RawItem])
def list_raw_items(
    app: AppDep,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    source_id: OfSource = None,
    since: Since = None,
) -> ResourcePage[RawItemView]:
    """What was brought, latest fetched first.

    Of one source all that it showed; without `source_id` each item once, under the first source that showed it.
    """
    moment = moment_of(since, app.clock.now())
    return _page(app.store.raw_items.page(most, source_id=source_id, since=moment, before=key_from(after)))


@router.get("/raw-items/stats", tags=["raw items"], response_model=PageSchema[RawStats])
def raw_item_stats(
    app: AppDep, after: After = None, most: Annotated[int, limit(1000)] = 1000
) -> ResourcePage[RawStatsView]:
    """How much each source has brought, in all and in the last 24 hours, in order of id."""
    rows = app.store.raw_items.stats(app.clock.now(), place(after) or 0, most + 1)
    return paged(rows, most, lambda row: row.source_id)


@router.get("/raw-items/for-digest", tags=["raw items"], response_model=PageSchema[RawItem])
def raw_items_for_digest(
    app: AppDep, after: AfterKey = None, most: Annotated[int, limit(500)] = 500, since: Since = None
) -> ResourcePage[RawItemView]:
    """What active sources brought, each item once, latest fetched first.

    A page may be short, even empty, where much was brought by sources that are not active any more: `next` goes on.
    """
    moment = moment_of(since, app.clock.now())
    return _page(app.store.raw_items.for_digest(most, since=moment, before=key_from(after)))


@router.post("/forget", tags=["forgetting"], response_model=ForgottenSchema, responses=MISSING)
def forget(app: AppDep, body: ToForget) -> ForgottenView:
    """Forget one item, or all of an author on a platform: it leaves with everything that hangs on it, and is not
    collected again. Backups, exports, and what other programs fetched still hold it."""
    if body.item_id is not None and body.author is None and body.platform is None:
        platform = app.store.deletion.platform_of(body.item_id)
        order = Forget("item", platform, "API", body.reason, item_id=body.item_id)
    elif body.item_id is None and body.author is not None and body.platform is not None:
        # A typing error would forget nobody and look like success.
        platform = app.platforms.named(body.platform, *app.store.deletion.followed_on(body.platform))
        order = Forget("author", platform, "API", body.reason, author=body.author)
    else:
        raise InvalidInput("it is not said what is to be forgotten", "give item_id, or platform and author", "item_id")
    return forget_for_good(app.store, app.cache, order, app.clock.now())


@router.get("/forgotten", tags=["forgetting"], response_model=PageSchema[ForgottenSchema])
def list_forgotten(
    app: AppDep, after: After = None, most: Annotated[int, limit(200)] = 50
) -> ResourcePage[ForgottenView]:
    """What was forgotten, the latest first; without content or names."""
    return paged(app.store.deletion.records(most + 1, place(after)), most, lambda record: record.id)


@router.get("/hot", tags=["hot"], response_model=HotStanding)
def show_standing(app: AppDep) -> CacheReport:
    """How the hot store stands: where it lives, how often it helped, how many communities are warm."""
    return app.cache.report(warmable(app.platforms))


@router.get("/hot/{source_id}", tags=["hot"], response_model=Cached, responses=_NO_SOURCE)
def list_cached(app: AppDep, source_id: SourceId, most: Annotated[int, limit(200)] = 50) -> dict[str, Any]:
    """What cache-only crawls saw of a community within the time to live, newest first, whether it is stored or not.

    What is stored is listed by /api/items. Of these only what the platform said is told: there is no id and no history.
    """
    source = app.store.sources.get(source_id)
    return {
        "source_id": source.id,
        **app.store.cached_sources.of_source(source.id),
        "items": app.cache.cached(source, most),
    }
