"""/api/hot: how the hot store stands, and what cache-only crawls saw."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter

from catchment.api.door import TheShop
from catchment.api.shapes import Cached, Failed, HotStanding
from catchment.api.values import SourceId, limit
from catchment.collect.warming import standing

router = APIRouter(prefix="/api", tags=["hot"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such source."}}


@router.get("/hot", response_model=HotStanding)
def show_standing(shop: TheShop) -> dict[str, Any]:
    """How the hot store stands: where it lives, how often it helped, how many communities are warm."""
    return standing(shop.hot, shop.platforms, shop.clock.now())


@router.get("/hot/{source_id}", response_model=Cached, responses=MISSING)
def list_cached(shop: TheShop, source_id: SourceId, most: Annotated[int, limit(200)] = 50) -> dict[str, Any]:
    """What cache-only crawls saw of a community within the time to live, newest first, whether it is stored or not.

    What is stored is listed by /api/items. Of these only what the platform said is told: there is no id and no history.
    """
    source = shop.store.sources.get(source_id)
    return {
        "source_id": source.id,
        **shop.store.warming.of_source(source.id),
        "items": shop.hot.cached(source, most),
    }
