"""What happened: gaps, runs, metrics, alerts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import Alert, BudgetPlan, Failed, Gap, Metrics, Page, Run, RunStory
from catchment.api.standing import up_to_now
from catchment.api.values import After, Name, OfSource, RunId, limit, paged, place, whole
from catchment.collect.planning import shown as shown_plan
from catchment.model import Outcome
from catchment.store.metrics import Span

router = APIRouter(prefix="/api", tags=["records"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such run, or no more."}}


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
    page = paged(shop.store.runs.page(most + 1, before=place(after)), most, _id)
    return page | {"items": up_to_now(shop, page["items"])}


@router.get("/runs/{run_id}", response_model=RunStory, responses=MISSING)
def get_run(
    shop: TheShop,
    run_id: RunId,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    outcome: Annotated[Outcome | None, Query(description="Only the results that ended so.")] = None,
) -> dict[str, Any]:
    """One run, and what became of each source in it. Of one that is under way, what it has come to by now."""
    start = place(after) or 0
    (run,) = up_to_now(shop, [shop.store.runs.get(run_id)])
    rows = shop.store.runs.results(run_id, start, most + 1, outcome=outcome)
    page = paged(rows, most, lambda row: row["source_id"])
    return run | {"results": page["items"], "next": page["next"]}


@router.get("/metrics", response_model=Page[Metrics])
def list_metrics(
    shop: TheShop,
    span: Annotated[Span, Query(description="What is summed up: an hour, or a day in UTC.")] = Span.HOUR,
    most: Annotated[int, limit(2000)] = 24,
    kind: Annotated[Name, Query(description="Only of this kind of sources.")] = None,
) -> dict[str, Any]:
    """What visiting came to in the last hours or days, oldest first, in all and kind by kind.

    Every span is there, also those in which nothing was visited; the last one is under way.
    """
    if kind is not None:
        shop.names.source_kind(kind)
    return whole(shop.measuring.told(span, most, shop.clock.now(), kind))


@router.get("/plan", response_model=Page[BudgetPlan])
def list_plans(
    shop: TheShop,
    platform: Annotated[Name, Query(description="Only of this platform.")] = None,
    most: Annotated[int, Query(alias="limit", ge=1, le=1000, description="How many late sources of each.")] = 100,
) -> dict[str, Any]:
    """Whether the budgets suffice: what is needed a minute, what is allowed, and who will be how late."""
    if platform is not None:
        shop.names.platform(platform)
    return whole([shown_plan(one, most) for one in shop.plans() if platform in (None, one.platform)])


@router.get("/alerts", response_model=Page[Alert])
def list_alerts(
    shop: TheShop,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    include_closed: Annotated[bool, Query(description="Also those that are over.")] = False,
) -> dict[str, Any]:
    """The alerts that are open, newest first. They close by themselves, once what they tell of is over."""
    rows = shop.store.alerts.page(most + 1, before=place(after), include_closed=include_closed)
    return paged(rows, most, _id)
