"""What happened and what is open: runs with their results, gaps, alerts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from catchment import pages
from catchment.api.browsing.readers import TheReader
from catchment.api.door import TheShop
from catchment.api.pulse import seen_in
from catchment.api.standing import up_to_now, with_source_names
from catchment.api.values import LARGEST, After, RunId, place
from catchment.model import Outcome

router = APIRouter()

A_PAGE = 30
A_PAGE_OF_RESULTS = 100
OfSource = Annotated[int | None, Query(ge=1, le=LARGEST)]


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/runs")
def runs(shop: TheShop, reader: TheReader, after: After = None) -> Response:
    rows = shop.store.runs.page(A_PAGE + 1, before=place(after))
    found = {
        "rows": up_to_now(shop, rows[:A_PAGE]),
        "live": seen_in(shop) if after is None else None,
        "next": f"/runs?after={rows[A_PAGE - 1]['id']}" if len(rows) > A_PAGE else None,
        "first": "/runs" if after else None,
    }
    return HTMLResponse(pages.runs_page(reader, found))


@router.get("/runs/{run_id}")
def run(
    shop: TheShop,
    reader: TheReader,
    run_id: RunId,
    after: After = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    (known,) = up_to_now(shop, [shop.store.runs.get(run_id)])
    only = Outcome(outcome) if outcome in set(Outcome) else None
    rows = shop.store.runs.results(run_id, place(after) or 0, A_PAGE_OF_RESULTS + 1, outcome=only)
    asked = {"outcome": only} if only else {}
    here = f"/runs/{run_id}"
    found = {
        "run": known,
        "rows": rows[:A_PAGE_OF_RESULTS],
        "outcome": only,
        "next": _with(here, **asked, after=rows[A_PAGE_OF_RESULTS - 1]["source_id"])
        if len(rows) > A_PAGE_OF_RESULTS
        else None,
        "first": _with(here, **asked) if after else None,
    }
    return HTMLResponse(pages.run_page(reader, found))


def _with(path: str, **query: object) -> str:
    return f"{path}?{urlencode(query)}" if query else path


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/gaps")
def gaps(
    shop: TheShop,
    reader: TheReader,
    after: After = None,
    source: OfSource = None,
    show: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    is_open = show != "closed"
    rows = shop.store.gaps.newest(A_PAGE + 1, is_open=is_open, source_id=source, before=place(after))
    asked: dict[str, object] = {} if source is None else {"source": source}
    shown = asked if is_open else asked | {"show": "closed"}
    found = {
        "rows": rows[:A_PAGE],
        "is_open": is_open,
        "source_id": source,
        "source_name": shop.store.sources.names([source]).get(source) if source else None,
        "open_count": shop.store.gaps.count_open(),
        "by_source": shop.store.gaps.by_source(12) if is_open and source is None and after is None else [],
        "tabs": {"open": _with("/gaps", **asked), "closed": _with("/gaps", **asked, show="closed")},
        "next": _with("/gaps", **shown, after=rows[A_PAGE - 1]["id"]) if len(rows) > A_PAGE else None,
        "first": _with("/gaps", **shown) if after else None,
    }
    return HTMLResponse(pages.gaps_page(reader, found))


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/alerts")
def alerts(shop: TheShop, reader: TheReader) -> Response:
    found = {
        "open": with_source_names(shop, shop.store.alerts.open(200)),
        "open_count": reader.alert_count,
        "closed": with_source_names(shop, shop.store.alerts.closed(A_PAGE)),
    }
    return HTMLResponse(pages.alerts_page(reader, found))
