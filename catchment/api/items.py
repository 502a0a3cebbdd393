"""/api/items: what is stored."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter

from catchment.api.door import TheShop
from catchment.api.shapes import Failed, Item, Page, Revision
from catchment.api.values import After, ItemId, OfSource, limit, paged, whole
from catchment.store.items import key_from, key_of

router = APIRouter(prefix="/api/items", tags=["items"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such item."}}


@router.get("", response_model=Page[Item])
def list_items(
    shop: TheShop, after: After = None, most: Annotated[int, limit(200)] = 50, source_id: OfSource = None
) -> dict[str, Any]:
    """Newest first, of one source or of all."""
    return paged(shop.store.items.newest(most + 1, source_id=source_id, before=key_from(after)), most, key_of)


@router.get("/{item_id}", response_model=Item, responses=MISSING)
def show_item(shop: TheShop, item_id: ItemId) -> dict[str, Any]:
    """One item, as it is now."""
    return shop.store.items.get(item_id)


@router.get("/{item_id}/revisions", response_model=Page[Revision], responses=MISSING)
def list_revisions(shop: TheShop, item_id: ItemId) -> dict[str, Any]:
    """What it said before, oldest first, and why that changed."""
    return whole(shop.store.items.revisions(item_id))
