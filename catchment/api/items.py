"""/api/items and /api/changes: what is stored, and what of it has changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import Changed, Failed, Growth, Item, Page, Revision
from catchment.api.values import (
    LARGEST,
    AfterChange,
    AfterKey,
    AskedMoment,
    AskedText,
    ItemId,
    Name,
    OfSource,
    limit,
    whole,
)
from catchment.model import Ordering
from catchment.store.changes import place_from
from catchment.store.filtering import Filter
from catchment.store.items import key_from, key_text

router = APIRouter(prefix="/api", tags=["items"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such item."}}


@router.get("/items", response_model=Page[Item])
def list_items(
    shop: TheShop,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    source_id: OfSource = None,
    kind: Annotated[
        Name, Query(description="Of this kind: the item's (`story`), or its first source's (`rss`).")
    ] = None,
    platform: Annotated[Name, Query(description="Of this platform.")] = None,
    author: Annotated[AskedText | None, Query(description="By this author, written as the platform writes it.")] = None,
    tag: Annotated[AskedText | None, Query(description="With this tag.")] = None,
    since: Annotated[
        AskedMoment | None,
        Query(description="Listed at this moment or later, by the time that the list is ordered by …"),
    ] = None,
    until: Annotated[AskedMoment | None, Query(description="… and before this one.")] = None,
    is_deleted: Annotated[bool | None, Query(description="Deleted by its source, or not.")] = None,
    changed_since: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="New or changed after this change number (see /api/changes).")
    ] = None,
    order: Annotated[
        Ordering, Query(description="By what: when it was posted (`ordered_at`), or last answered (`last_reply_at`).")
    ] = Ordering.POSTED,
) -> dict[str, Any]:
    """Newest first, what every filter lets through.

    What is rare is looked for in steps: a page may be short, even empty, and `next` goes on; null only at the end.
    Ordered by replies, the list has only what was answered, as far as is known; and what is answered while you read
    moves to its front.
    """
    wanted = shop.names.checked(Filter(source_id, kind, platform, author, tag, since, until, is_deleted, changed_since))
    found = shop.hot.listed(wanted, most, key_from(after), order)
    return {"items": found.items, "next": key_text(found.next) if found.next else None}


@router.get("/items/{item_id}", response_model=Item, responses=MISSING)
def show_item(
    shop: TheShop,
    item_id: ItemId,
    at: Annotated[AskedMoment | None, Query(description="As it was at this moment.")] = None,
) -> dict[str, Any]:
    """One item, as it is now; or, with `at`, as it was at a moment since it was first seen.

    Then title, text, html, target_url, media, version and the marks deleted and folded are those of that moment, and
    `valid_to` tells until when they held (null: they still do). Counters are null if later ones have taken their
    place. The rest (author, address, tags) is kept as it is now only.
    """
    return shop.store.items.get(item_id) if at is None else shop.store.items.as_of(item_id, at)


@router.get("/items/{item_id}/revisions", response_model=Page[Revision], responses=MISSING)
def list_revisions(shop: TheShop, item_id: ItemId) -> dict[str, Any]:
    """What it said before, oldest first, and why that changed."""
    return whole(shop.store.items.revisions(item_id))


@router.get("/items/{item_id}/replies", response_model=Page[Item], responses=MISSING)
def list_replies(
    shop: TheShop, item_id: ItemId, after: AfterKey = None, most: Annotated[int, limit(200)] = 50
) -> dict[str, Any]:
    """What was said in its thread, oldest first: comments, replies, floors."""
    found = shop.store.items.replies(item_id, most, key_from(after))
    return {"items": found.items, "next": key_text(found.next) if found.next else None}


@router.get("/items/{item_id}/counters", response_model=Growth, responses=MISSING)
def list_counters(shop: TheShop, item_id: ItemId) -> dict[str, Any]:
    """How its counters grew, and its places in ranked listings by day; both oldest first.

    Counters are a sparse series: a point when they are first told, when one has changed by a tenth, and when six hours
    have passed and any has changed. What they are now stands in the item itself.
    """
    items = shop.store.items
    return {"counters": items.counters(item_id), "appearances": items.appearances(item_id)}


@router.get("/changes", response_model=Changed)
def list_changes(
    shop: TheShop,
    after: AfterChange = "0",
    most: Annotated[int, limit(200)] = 50,
    counters: Annotated[bool, Query(description="Also items of which only counters changed.")] = False,
) -> dict[str, Any]:
    """What is new or has changed after a change number, in the order in which it was stored.

    Complete: numbers are given in the order of commits, so that nothing appears behind a reader. Each item comes once,
    at its last change; one that changes again comes again. Keep `next`, and give it as `after` whenever you like: at
    the end of the list, too, it is where to go on.
    """
    found = shop.store.changes.after(place_from(after), most, counters=counters)
    return {"items": found.items, "next": str(found.next), "newest": found.newest, "is_end": found.is_end}
