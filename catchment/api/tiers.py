"""/api/tiers: how lively communities are, and how often they are visited for that."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter

from catchment.api.door import TheShop
from catchment.api.shapes import Communities
from catchment.api.values import after, limit, paged
from catchment.collect import tiering
from catchment.collect.telling import shown_source
from catchment.errors import InvalidInput
from catchment.model import Progress, Source

router = APIRouter(prefix="/api/tiers", tags=["sources"])

_PLACE = r"([0-9]{1,12}(?:\.[0-9]{1,20})?)-([0-9]{1,18})"
AfterCommunity = Annotated[str | None, after(f"^{_PLACE}$")]


@router.get("", response_model=Communities)
def list_tiers(shop: TheShop, after: AfterCommunity = None, most: Annotated[int, limit(1000)] = 100) -> dict[str, Any]:
    """The tiers, how many communities are and would be in each, which would change; and the communities that were
    visited, the liveliest first."""
    tally = tiering.tally(shop.store, shop.tiers)
    page = paged(shop.store.tiering.by_average(most + 1, _place(after)), most, _key)
    intervals = shop.intervals()
    return page | {
        "items": [shown_source(source, progress, intervals) for source, progress in page["items"]],
        "tiers": tiering.shown_tiers(shop.tiers, tally),
        "unassigned": tally.are[None],
        "changes": [tiering.shown_change(one) for one in tally.changes[:most]],
    }


def _key(row: tuple[Source, Progress]) -> str:
    source, progress = row
    return f"{progress.average_valid!r}-{source.id}"


def _place(after: str | None) -> tuple[float, int] | None:
    if after is None:
        return None
    found = re.fullmatch(_PLACE, after)
    if found is None:
        raise InvalidInput("this is not a place in the list", "use the `next` of the page before", "after")
    return float(found[1]), int(found[2])
