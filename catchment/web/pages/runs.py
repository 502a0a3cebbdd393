"""The pages of runs, gaps and alerts. Turns store rows into HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse
from msgspec.structs import asdict

from catchment.app import App
from catchment.messages import without_subject
from catchment.model import Outcome
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.runs import SourceVisit, VisitView
from catchment.web.api.params import LARGEST, After, RunId, place
from catchment.web.dependencies import AppDep, seen_in
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import live_view, page, plain_error
from catchment.web.pages.session import TheReader

_SEVERITIES = ("P0", "P1", "P2")
_TONES = {"P0": "bad", "P1": "bad", "P2": "warn"}
_PLACES = {
    "pool": "/credentials",
    "credential": "/credentials",
    "platform": "/sources?order=troubled",
    "host": "/sources?order=troubled",
    "network": "/sources?order=troubled",
    "collecting": "/runs",
}
"""The page with more about an alert's subject, by the first word of its key."""


class RunRow(VisitView, frozen=True):
    """The result of a source in a run."""

    plain: str | None
    """The error in the user's language."""


class VisitRow(SourceVisit, frozen=True):
    """A visit to a source."""

    plain: str | None


def visit_rows(locale: Locale, visits: Sequence[SourceVisit]) -> list[VisitRow]:
    """The visits of one source, newest first: a repeated error is shown once."""
    rows = [VisitRow(**asdict(visit), plain=plain_error(locale, visit.error_code, visit.error)) for visit in visits]
    return [
        row.replace(plain=None) if newer and newer.error_code == row.error_code else row
        for newer, row in zip((None, *rows), rows, strict=False)
    ]


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    return [_alert_row(locale, alert, names, states) for alert in alerts]


def most_urgent_first(alerts: Sequence[AlertRow]) -> list[AlertRow]:
    return sorted(alerts, key=lambda alert: _SEVERITIES.index(alert.severity))


def _alert_row(locale: Locale, alert: AlertView, names: Mapping[int, str], states: Mapping[int, str]) -> AlertRow:
    first, *middle, last = alert.subject.split()
    name, state = (None, None) if alert.source_id is None else (names.get(alert.source_id), states.get(alert.source_id))
    # A retired source is not tried again: its alert stays until somebody decides about it.
    sort = "source retired" if first == "source" and state == "retired" else f"{first} {last}"
    what = locale.known("alert", sort) or locale.known("alert", last)
    return AlertRow(
        **asdict(alert),
        source_name=name,
        name=(name or _about(locale, first, middle)) if what else alert.subject,
        what=what or "",
        helps=locale.known("alert_helps", sort) or locale.known("alert_helps", last),
        href=f"/sources/{alert.source_id}" if name else _PLACES.get(first),
        detail=locale.message(without_subject(alert.message)),
        tone=_TONES[alert.severity],
    )


def _about(locale: Locale, first: str, middle: Sequence[str]) -> str:
    """`platform reddit silent` is about Reddit, `reddit warm-up` about communities of Reddit."""
    name = " ".join(middle)
    if first in ("platform", "pool"):
        return locale.name("platform", name)
    return name or locale.known("kind", first) or ""


router = APIRouter()

A_PAGE = 30
A_PAGE_OF_RESULTS = 100
OfSource = Annotated[int | None, Query(ge=1, le=LARGEST)]


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/runs")
def runs(app: AppDep, reader: TheReader, after: After = None) -> Response:
    rows = app.store.runs.page(A_PAGE + 1, before=place(after))
    found = {
        "next": f"/runs?after={rows[A_PAGE - 1].id}" if len(rows) > A_PAGE else None,
        "first": "/runs" if after else None,
    }
    live = live_view(reader, seen_in(app)) if after is None else None
    shown = app.store.runs.up_to_now(rows[:A_PAGE])
    return HTMLResponse(page("runs.html", reader, found=found, rows=shown, live=live))


@router.get("/runs/{run_id}")
def run(
    app: AppDep,
    reader: TheReader,
    run_id: RunId,
    after: After = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    (shown_run,) = app.store.runs.up_to_now([app.store.runs.get(run_id)])
    only = Outcome(outcome) if outcome in set(Outcome) else None
    visits = app.store.runs.results(run_id, place(after) or 0, A_PAGE_OF_RESULTS + 1, outcome=only)
    asked = {"outcome": only} if only else {}
    path = f"/runs/{run_id}"
    found = {
        "outcome": only,
        "next": _with(path, **asked, after=visits[A_PAGE_OF_RESULTS - 1].source_id)
        if len(visits) > A_PAGE_OF_RESULTS
        else None,
        "first": _with(path, **asked) if after else None,
    }
    rows = [
        RunRow(**asdict(visit), plain=plain_error(reader.locale, visit.error_code, visit.error))
        for visit in visits[:A_PAGE_OF_RESULTS]
    ]
    return HTMLResponse(page("run.html", reader, found=found, run=shown_run, rows=rows))


def _with(path: str, **query: object) -> str:
    return f"{path}?{urlencode(query)}" if query else path


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/gaps")
def gaps(
    app: AppDep,
    reader: TheReader,
    after: After = None,
    source: OfSource = None,
    show: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    is_open = show != "closed"
    rows = app.store.gaps.newest(A_PAGE + 1, is_open=is_open, source_id=source, before=place(after))
    asked: dict[str, object] = {} if source is None else {"source": source}
    shown = asked if is_open else asked | {"show": "closed"}
    found = {
        "is_open": is_open,
        "source_id": source,
        "source_name": app.store.sources.names([source]).get(source) if source else None,
        "open_count": app.store.gaps.count_open(),
        "by_source": app.store.gaps.by_source(12) if is_open and source is None and after is None else [],
        "tabs": {"open": _with("/gaps", **asked), "closed": _with("/gaps", **asked, show="closed")},
        "next": _with("/gaps", **shown, after=rows[A_PAGE - 1].id) if len(rows) > A_PAGE else None,
        "first": _with("/gaps", **shown) if after else None,
    }
    return HTMLResponse(page("gaps.html", reader, found=found, rows=rows[:A_PAGE]))


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/alerts")
def alerts(app: AppDep, reader: TheReader) -> Response:
    locale = reader.locale
    rows = most_urgent_first(alert_rows(app, locale, app.store.alerts.open(200)))
    over = alert_rows(app, locale, app.store.alerts.closed(A_PAGE))
    return HTMLResponse(page("alerts.html", reader, found={"open_count": reader.alert_count}, rows=rows, over=over))
