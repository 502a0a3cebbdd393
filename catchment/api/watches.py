"""/api/watches: rules over what comes in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from catchment.api.door import TheShop
from catchment.api.shapes import Failed, NewWatch, Page, Watch, WatchHit
from catchment.api.values import LARGEST, limit, whole
from catchment.errors import InvalidInput, NotFound
from catchment.model import Watch as Rule
from catchment.shop import Shop
from catchment.tell.rules import checked

router = APIRouter(prefix="/api/watches", tags=["events"])

WatchId = Annotated[int, Path(ge=1, le=LARGEST, description="The watch's id.", examples=[1])]
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such watch."}}
TAKEN: dict[int | str, dict[str, Any]] = {409: {"model": Failed, "description": "There is one of that name already."}}


@router.get("", response_model=Page[Watch])
def list_watches(shop: TheShop) -> dict[str, Any]:
    """The watches, and how often they hit."""
    return whole(shop.store.watches.page())


@router.post("", status_code=201, response_model=Watch, responses=TAKEN)
def add_watch(shop: TheShop, given: NewWatch, response: Response) -> dict[str, Any]:
    """Watch for something in what comes in from now on."""
    watch_id = shop.store.watches.add(_rule(shop, given), shop.clock.now())
    response.headers["Location"] = f"/api/watches/{watch_id}"
    return shop.store.watches.get(watch_id)


def _rule(shop: Shop, given: NewWatch) -> Rule:
    rule = checked(
        Rule(
            given.name,
            tuple(dict.fromkeys(given.words)),
            given.is_any_enough,
            tuple(given.kinds),
            tuple(given.source_ids),
            tuple(given.authors),
            given.is_for_edits,
        )
    )
    return of_what_is_known(shop, rule)


def of_what_is_known(shop: Shop, rule: Rule) -> Rule:
    """The rule, if there are such kinds, and the sources that it names are followed."""
    shop.names.checked_watch(rule)
    for source_id in rule.source_ids:
        try:
            shop.store.sources.get(source_id)
        except NotFound as error:
            # A slip in the body, not a missing page.
            raise InvalidInput(error.what, error.helps, "source_ids") from error
    return rule


@router.get("/{watch_id}", response_model=Watch, responses=MISSING)
def show_watch(shop: TheShop, watch_id: WatchId) -> dict[str, Any]:
    """One watch, and how often it hit."""
    return shop.store.watches.get(watch_id)


@router.get("/{watch_id}/hits", response_model=Page[WatchHit], responses=MISSING)
def list_hits(shop: TheShop, watch_id: WatchId, most: Annotated[int, limit(100)] = 30) -> dict[str, Any]:
    """What it hit last, the latest first. The last 100 are kept."""
    shop.store.watches.get(watch_id)
    return whole(shop.store.watches.hits(watch_id, most))


@router.post("/{watch_id}/pause", response_model=Watch, responses=MISSING)
def pause_watch(shop: TheShop, watch_id: WatchId) -> dict[str, Any]:
    """Look at nothing until it is resumed."""
    shop.store.watches.pause(watch_id)
    return shop.store.watches.get(watch_id)


@router.post("/{watch_id}/resume", response_model=Watch, responses=MISSING)
def resume_watch(shop: TheShop, watch_id: WatchId) -> dict[str, Any]:
    """Look again, at what comes from now on."""
    shop.store.watches.resume(watch_id)
    return shop.store.watches.get(watch_id)


@router.delete("/{watch_id}", status_code=204, response_class=Response, responses=MISSING)
def remove_watch(shop: TheShop, watch_id: WatchId) -> None:
    """Forget it and its hits; the items stay."""
    shop.store.watches.remove(watch_id)
