"""What happened and what is kept ready: gaps, runs, alerts, credentials."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import Alert, Credential, Gap, Page, Run
from catchment.api.values import After, OfSource, limit, paged, place, whole
from catchment.shop import life_rules
from catchment.vault import shown

router = APIRouter(prefix="/api", tags=["records"])


def _id(row: dict[str, Any]) -> object:
    return row["id"]


@router.get("/gaps", response_model=Page[Gap])
def list_gaps(
    shop: TheShop,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    source_id: OfSource = None,
    include_closed: Annotated[bool, Query(description="Also those that are closed.")] = False,
) -> dict[str, Any]:
    """What is known to be missing, or may be, in order of id."""
    rows = shop.store.gaps.page(
        source_id=source_id, include_closed=include_closed, after=place(after) or 0, limit=most + 1
    )
    return paged(rows, most, _id)


@router.get("/runs", response_model=Page[Run])
def list_runs(shop: TheShop, after: After = None, most: Annotated[int, limit(200)] = 30) -> dict[str, Any]:
    """What was run and what came of it, newest first. A tick with nothing due leaves no run."""
    return paged(shop.store.runs.page(most + 1, before=place(after)), most, _id)


@router.get("/alerts", response_model=Page[Alert])
def list_alerts(shop: TheShop, most: Annotated[int, limit(1000)] = 100) -> dict[str, Any]:
    """The alerts that are open, newest first."""
    return whole(shop.store.alerts.open(most))


@router.get("/credentials", response_model=Page[Credential])
def list_credentials(shop: TheShop) -> dict[str, Any]:
    """What the vault holds, without the secrets: they cannot be read back."""
    now, rules = shop.clock.now(), life_rules(shop.settings)
    return whole([shown(one, rules, now) for one in shop.store.credentials.page()])
