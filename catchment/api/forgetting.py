"""/api/forget, /api/forgotten: what must leave the archive for good, and the record that it did."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter

from catchment.api.door import TheShop
from catchment.api.shapes import Failed, Forgotten, Page, ToForget
from catchment.api.values import After, limit, paged, place
from catchment.collect.forgetting import forget_for_good
from catchment.errors import InvalidInput
from catchment.shop import Shop
from catchment.store.forgetting import Forget

router = APIRouter(prefix="/api", tags=["forgetting"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such item."}}


@router.post("/forget", response_model=Forgotten, responses=MISSING)
def forget(shop: TheShop, given: ToForget) -> dict[str, Any]:
    """Forget one item, or all of an author on a platform: it leaves with everything that hangs on it, and is not
    collected again. Backups, exports, and what other programs fetched still hold it."""
    return forget_for_good(shop.store, shop.hot, _wanted(shop, given), shop.clock.now())


@router.get("/forgotten", response_model=Page[Forgotten])
def list_forgotten(shop: TheShop, after: After = None, most: Annotated[int, limit(200)] = 50) -> dict[str, Any]:
    """What was forgotten, the latest first; without content or names."""
    return paged(shop.store.forgetting.records(most + 1, place(after)), most, lambda one: one["id"])


def _wanted(shop: Shop, given: ToForget) -> Forget:
    by, reason = "API", given.reason
    if given.item_id is not None and given.author is None and given.platform is None:
        platform = shop.store.forgetting.platform_of(given.item_id)
        return Forget("item", platform, by, reason, item_id=given.item_id)
    if given.item_id is None and given.author is not None and given.platform is not None:
        # A slip would forget nobody, and look like success.
        platform = shop.platforms.named(given.platform, *shop.store.forgetting.followed_on(given.platform))
        return Forget("author", platform, by, reason, author=given.author)
    raise InvalidInput("it is not said what is to be forgotten", "give item_id, or platform and author", "item_id")
