"""/api/items and /api/changes: what is stored, and what of it has changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import Changed, Failed, Item, Page, Revision
from catchment.api.values import AfterChange, AfterKey, AskedMoment, ItemId, OfSource, limit, paged, whole
from catchment.store.changes import place_from
from catchment.store.items import key_from, key_of

router = APIRouter(prefix="/api", tags=["items"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such item."}}


@router.get("/items", response_model=Page[Item])
def list_items(
    shop: TheShop, after: AfterKey = None, most: Annotated[int, limit(200)] = 50, source_id: OfSource = None
) -> dict[str, Any]:
    """Newest first, of one source or of all."""
    return paged(shop.store.items.newest(most + 1, source_id=source_id, before=key_from(after)), most, key_of)


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


@router.get("/changes", response_model=Changed)
def list_changes(
    shop: TheShop,
    after: AfterChange = "0",
    most: Annotated[int, limit(200)] = 50,
    counters: Annotated[bool, Query(description="Also items of which only counters or tags changed.")] = False,
) -> dict[str, Any]:
    """What is new or has changed after a change number, in the order in which it was stored.

    Complete: numbers are given in the order of commits, so that nothing appears behind a reader. Each item comes once,
    at its last change; one that changes again comes again. Keep `next`, and give it as `after` whenever you like: at
    the end of the list, too, it is where to go on.
    """
    found = shop.store.changes.after(place_from(after), most, counters=counters)
    return {"items": found.items, "next": str(found.next), "newest": found.newest, "is_end": found.is_end}
