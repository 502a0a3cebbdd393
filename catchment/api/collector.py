"""GET /api/collector/status: how collecting goes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter

from catchment.api.door import TheShop
from catchment.api.shapes import CollectorStatus
from catchment.api.standing import collector_stats
from catchment.api.values import After, limit, paged, place
from catchment.collect.telling import health_of, shown_source
from catchment.model import Progress, Source

router = APIRouter(tags=["collector"])

SAME_NAMES = (
    "id", "name", "kind", "last_fetched_at", "next_fetch_at", "fetch_count", "fetch_error_count", "last_error",
)  # fmt: skip


@router.get("/api/collector/status", response_model=CollectorStatus)
def collector_status(shop: TheShop, after: After = None, most: Annotated[int, limit(1000)] = 1000) -> dict[str, Any]:
    """How every source fares, when it was visited last and is due next, and the figures of the last 24 hours."""
    intervals = shop.intervals()

    def row(source: Source, progress: Progress) -> dict[str, Any]:
        shown = shown_source(source, progress, intervals)
        return {name: shown[name] for name in SAME_NAMES} | {
            "type": source.kind,
            "interval_minutes": shown["fetch_interval_minutes"],
            "status": health_of(source, progress, shop.settings.failures_before_probation),
        }

    found = paged(shop.store.sources.page(place(after) or 0, most + 1), most, lambda one: one[0].id)
    rows = [row(*one) for one in found["items"]]
    return {"sources": rows, "stats": collector_stats(shop), "next": found["next"]}
