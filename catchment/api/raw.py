"""/api/raw-items: what each source brought, for those who make digests of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import Page, RawItem, RawStats
from catchment.api.values import After, AfterKey, AskedMoment, OfSource, limit, paged, place
from catchment.store.items import key_from, key_text
from catchment.store.raw import RawPage

router = APIRouter(prefix="/api/raw-items", tags=["raw items"])

Since = Annotated[AskedMoment | None, Query(description="Only what was fetched at this moment or later.")]


@router.get("", response_model=Page[RawItem])
def list_raw_items(
    shop: TheShop,
    after: AfterKey = None,
    most: Annotated[int, limit(200)] = 50,
    source_id: OfSource = None,
    since: Since = None,
) -> dict[str, Any]:
    """What was brought, latest fetched first.

    Of one source all that it showed; without `source_id` each item once, under the first source that showed it.
    """
    return _told(shop.store.raw_items.page(most, source_id=source_id, since=since, before=key_from(after)))


@router.get("/stats", response_model=Page[RawStats])
def raw_item_stats(shop: TheShop, after: After = None, most: Annotated[int, limit(1000)] = 1000) -> dict[str, Any]:
    """How much each source has brought, in all and in the last 24 hours, in order of id."""
    rows = shop.store.raw_items.stats(shop.clock.now(), place(after) or 0, most + 1)
    return paged(rows, most, lambda row: row["source_id"])


@router.get("/for-digest", response_model=Page[RawItem])
def raw_items_for_digest(
    shop: TheShop, after: AfterKey = None, most: Annotated[int, limit(500)] = 500, since: Since = None
) -> dict[str, Any]:
    """What active sources brought, each item once, latest fetched first.

    A page may be short, even empty, where much was brought by sources that are not active any more: `next` goes on.
    """
    return _told(shop.store.raw_items.for_digest(most, since=since, before=key_from(after)))


def _told(page: RawPage) -> dict[str, Any]:
    return {"items": page.items, "next": key_text(page.next) if page.next else None}
