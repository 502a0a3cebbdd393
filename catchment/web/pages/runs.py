"""The pages of runs, gaps and alerts. Turns store rows into HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from msgspec.structs import asdict

from catchment.app import App
from catchment.messages import without_subject
from catchment.model import Outcome
from catchment.sources.describe import gap_reports
from catchment.store.sources.alerts import AlertView
from catchment.web.api.params import LARGEST, After, ResourcePage, RunId, paged, place
from catchment.web.dependencies import AppDep, seen_in
from catchment.web.pages.locale import Locale
from catchment.web.pages.locale.names import NAMES
from catchment.web.pages.render import live_view, render
from catchment.web.pages.session import TheReader

_PLACES = {
    "pool": "/credentials",
    "credential": "/credentials",
    "platform": "/sources?order=troubled",
    "host": "/sources?order=troubled",
    "network": "/sources?order=troubled",
    "collecting": "/runs",
    "service": "/spending",
    "task": "/tasks",
}
"""The page with more about an alert, by the first word of its type."""


_NAMED_BY = {"platform": "platform", "pool": "platform", "service": "platform", "warm-up": "kind", "task": "kind"}
"""What the subject of such an alert names."""


def alert_type(subject: str) -> tuple[str, str]:
    """Returns the type of an alert, as the catalogue names it, and what the alert is about. `platform reddit silent` is
    a `platform silent` about `reddit`. An alert of an unknown type is only about its subject."""
    for type_ in NAMES["alert"]:
        if subject == type_:
            return type_, ""
        first, space, last = type_.partition(" ")
        start, end = (f"{first} ", f" {last}") if space else ("", f" {type_}")
        if subject.startswith(start) and subject.endswith(end) and len(subject) > len(start + end):
            return type_, subject[len(start) : -len(end)]
    return "", subject


class AlertRow(AlertView, frozen=True):
    """An alert: its subject, a sentence with the problem and the remedy, and a link."""

    source_name: str | None
    name: str
    what: str
    helps: str | None
    href: str | None
    detail: str
    tone: str


def alert_rows(app: App, locale: Locale, alerts: Sequence[AlertView]) -> list[AlertRow]:
    """Alerts in the user's language."""
    source_ids = [alert.source_id for alert in alerts]
    names, states = app.store.sources.names(source_ids), app.store.sources.states(source_ids)

    def row(alert: AlertView) -> AlertRow:
        type_, about = alert_type(alert.subject)
        name, group = names.get(alert.source_id or 0), type_.split(" ")[0]
        if group == "service":
            # Its subject names the period and the level as well; the message says them.
            about = about.split(" ")[0]
        # A retired source is not tried again: its alert stays open until a user decides.
        if group == "source" and states.get(alert.source_id or 0) == "retired":
            type_ = "source retired"
        return AlertRow(
            **asdict(alert),
            source_name=name,
            name=name or locale.name(_NAMED_BY.get(group, ""), about),
            what=locale.lookup("alert", type_) or "",
            helps=locale.lookup("alert_helps", type_),
            href=f"/sources/{alert.source_id}" if name else _PLACES.get(group),
            detail=locale.message(without_subject(alert.message)),
            tone="warn" if alert.severity == "P2" else "bad",
        )

    return [row(alert) for alert in alerts]


def open_alert_rows(app: App, locale: Locale, most: int) -> list[AlertRow]:
    """The open alerts, the most urgent first."""
    return sorted(alert_rows(app, locale, app.store.alerts.open(most)), key=lambda alert: alert.severity)


router = APIRouter()

A_PAGE = 30
A_PAGE_OF_RESULTS = 100


def onwards(path: str, asked: Mapping[str, object], after: object, page: ResourcePage[Any]) -> dict[str, Any]:
    """The URLs of a list's first and next page; None on the first and on the last page."""

    def url(**more: object) -> str:
        query = urlencode({**asked, **more})
        return f"{path}?{query}" if query else path

    return {"first": url() if after else None, "next": url(after=page.next) if page.next else None}


@router.get("/runs")
def runs(app: AppDep, reader: TheReader, after: After = None) -> Response:
    page = paged(app.store.runs.page(A_PAGE + 1, before=place(after)), A_PAGE, lambda run: run.id)
    live = live_view(reader, seen_in(app)) if after is None else None
    rows = app.store.runs.up_to_now(page.items)
    return render("runs.html", reader, rows=rows, live=live, **onwards("/runs", {}, after, page))


@router.get("/runs/{run_id}")
def run(
    app: AppDep,
    reader: TheReader,
    run_id: RunId,
    after: After = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    (run,) = app.store.runs.up_to_now([app.store.runs.get(run_id)])
    only = Outcome(outcome) if outcome in set(Outcome) else None
    visits = app.store.runs.results(run_id, place(after) or 0, A_PAGE_OF_RESULTS + 1, outcome=only)
    page = paged(visits, A_PAGE_OF_RESULTS, lambda visit: visit.source_id)
    links = onwards(f"/runs/{run_id}", {"outcome": only} if only else {}, after, page)
    has_threads = bool(app.store.threads.thread_runs(run_id, 1))
    return render("run.html", reader, run=run, rows=page.items, only=only, has_threads=has_threads, **links)


@router.get("/gaps")
def gaps(
    app: AppDep,
    reader: TheReader,
    after: After = None,
    source: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
    show: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    is_open = show != "closed"
    rows = app.store.gaps.newest(A_PAGE + 1, is_open=is_open, source_id=source, before=place(after))
    page = paged(rows, A_PAGE, lambda gap: gap.id)
    asked = ({} if source is None else {"source": source}) | ({} if is_open else {"show": "closed"})
    return render(
        "gaps.html",
        reader,
        rows=gap_reports(page.items, app.platforms),
        is_open=is_open,
        source_id=source,
        source_name=app.store.sources.names([source]).get(source) if source else None,
        open_count=app.store.gaps.count_open(),
        by_source=app.store.gaps.by_source(12) if is_open and source is None and after is None else [],
        **onwards("/gaps", asked, after, page),
    )


@router.get("/alerts")
def alerts(app: AppDep, reader: TheReader) -> Response:
    rows = open_alert_rows(app, reader.locale, 200)
    closed = alert_rows(app, reader.locale, app.store.alerts.closed(A_PAGE))
    return render("alerts.html", reader, open_count=reader.alert_count, rows=rows, over=closed)
