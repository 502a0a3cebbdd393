"""The source pages: the list, one source with its visits, and the actions on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec.structs import asdict

from catchment.app import App
from catchment.errors import NoFeed
from catchment.model import (
    PRIORITIES,
    REQUESTED,
    Field,
    Kind,
    Progress,
    Record,
    SettingValues,
    Source,
    SourceState,
    Standing,
)
from catchment.policy.coverage import Day
from catchment.sources import add
from catchment.sources.describe import CoverageView, Lateness, SourceView, Why, coverage_of, lateness, source_view
from catchment.sources.intervals import minutes_from
from catchment.sources.preview import PreviewItem
from catchment.status import DeploymentStatus
from catchment.store.sources.gaps import GapView
from catchment.store.sources.runs import RecentVisits, SourceVisit
from catchment.store.sources.sources import Holder
from catchment.text.tokens import folded
from catchment.web.api.params import SourceId, place
from catchment.web.dependencies import AppDep, WebContextDep
from catchment.web.pages import charts
from catchment.web.pages.item_views import web_address
from catchment.web.pages.items import LOAD_IMAGES
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import Reader, page, plain_error
from catchment.web.pages.runs import visit_rows
from catchment.web.pages.session import TheForm, TheReader, changed_settings, lines, local, settings_given

TONES = {
    Why.PUNCTUAL: "good",
    Why.DUE: "good",
    Why.VISITING: "good",
    Why.FIRST: "quiet",
    Why.PAUSED: "quiet",
    Why.RETIRED: "quiet",
    Why.NO_PLATFORM: "quiet",
    Why.TOLD: "quiet",
    Why.DEFERRED: "quiet",
    Why.SILENT: "warn",
    Why.NOBODY: "warn",
    Why.BUDGET: "warn",
    Why.CROWDED: "warn",
    Why.STUCK: "warn",
    Why.PROBATION: "bad",
    Why.FAILING: "bad",
}
_FORM = ("target", "name", "interval", "categories", "priority", "credential")
_FEW_FIELDS = 8
"""More settings than this are folded away: most people need none of them."""
_DAYS = 7
_HOURS = 24


class SourceRow(SourceView, frozen=True):
    """A source in the list."""

    why: Why
    tone: str
    error: str | None
    """In the user's language, while it is in trouble."""
    visits: RecentVisits


_IN_TROUBLE = frozenset((Why.FAILING, Why.PROBATION, Why.TOLD))


# ── one source ────────────────────────────────────────────────────────────────────────────────────────────────────


class SourcePage(Record, frozen=True):
    """The data of a source's page."""

    source: SourceView
    kind: Kind | None
    late: Lateness
    waiting_count: int
    holder: Holder | None
    credentials: Sequence[str]
    visits: RecentVisits
    runs: Sequence[SourceVisit]
    gaps: Sequence[GapView]
    coverage: CoverageView
    posted: Sequence[datetime]


def source_page(reader: Reader, known: SourcePage) -> str:
    """One source: what it is, its state, when it is visited next and why, when it posts, what is missing."""
    locale, source, kind, late = reader.locale, known.source, known.kind, known.late
    return page(
        "source.html",
        reader,
        known=known,
        source=source,
        kind=kind,
        url=web_address(source.target),
        tone=TONES[late.why],
        is_awaited=late.why in (Why.FIRST, Why.VISITING) or source.next_fetch_reason == REQUESTED,
        sentence=sentence(locale, known),
        because=locale.known("due", source.next_fetch_reason) or locale.message(source.next_fetch_reason),
        error=plain_error(locale, source.last_error_code, source.last_error) if source.last_error else None,
        heat=heat(known.posted, reader),
        calendar=calendar(known.coverage.calendar, locale),
        standings=_standings(known.coverage.seconds),
        runs=visit_rows(locale, known.runs),
        settings=differing(kind, source.settings),
        fields=_filled(kind, source.settings),
        priorities=PRIORITIES,
    )


def _state_reason(locale: Locale, reason: str | None) -> str:
    return (locale.known("state_reason", reason) or locale.message(reason)) if reason else "–"


def sentence(locale: Locale, known: SourcePage) -> str:
    """Why it is late, or that it is not."""
    source, late = known.source, known.late
    return locale.name(
        "late",
        late.why,
        at=locale.when(late.at) if late.at else "",
        exact=locale.day_and_time(late.at) if late.at else "",
        reason=_state_reason(locale, source.state_reason),
        failures=locale.number(source.failures_in_a_row),
        count=locale.number(known.waiting_count),
        work=known.holder.work if known.holder else "",
        platform=locale.name("platform", source.platform),
        until=locale.day_and_time(late.until) if late.until else "",
        new=locale.when(source.last_new_at),
    )


def heat(posted: Sequence[datetime], reader: Reader) -> charts.Heat | None:
    """How many of its newest items were posted in which hour of which weekday, in the user's zone."""
    if len(posted) < 2:
        return None
    counts = Counter((at.weekday(), at.hour) for at in (moment.astimezone(reader.tzinfo) for moment in posted))
    locale = reader.locale
    rows = [
        [
            (
                locale.gettext(
                    "{day} {hour}:00: {count}",
                    day=locale.name("weekday", str(day)),
                    hour=f"{hour:02}",
                    count=counts[day, hour],
                ),
                counts[day, hour],
            )
            for hour in range(_HOURS)
        ]
        for day in range(_DAYS)
    ]
    return charts.heat(rows)


def calendar(days: Sequence[Day], locale: Locale) -> charts.Calendar | None:
    """Coverage by day, in columns of weeks: how certain it is that nothing is missing."""
    if not days:
        return None
    records = {record.day: record for record in days}
    first, last = min(records), max(records)
    start = first - timedelta(days=first.weekday())
    cells = []
    for offset in range((last - start).days + 1):
        day = start + timedelta(days=offset)
        if day in records:
            standing, share = records[day].standing, records[day].share
            words = f"{day}: {locale.name('standing', standing)} ({share:.0%})"
            cells.append(charts.ChartCell(offset // _DAYS, offset % _DAYS, str(standing), words))
    return charts.calendar(cells, start, last)


def _standings(seconds: Mapping[Standing, int]) -> list[tuple[str, float]]:
    whole = sum(seconds.values()) or 1
    return [(str(standing), count / whole) for standing, count in seconds.items() if count]


class SettingRow(NamedTuple):
    """A setting of a source, as a person would type it."""

    name: str
    value: str
    default: str
    what: str
    choices: Sequence[str] = ()
    is_number: bool = False
    minimum: float | None = None
    maximum: float | None = None


def differing(kind: Kind | None, settings: SettingValues) -> list[SettingRow]:
    """The settings of a source that differ from the defaults of its kind."""
    fields = {field.name: field for field in kind.fields} if kind else {}
    return [
        _setting(fields[name], value) if name in fields else SettingRow(name, _text(value), "", "")
        for name, value in settings.items()
        if name not in fields or value != fields[name].default
    ]


# ── adding a source ───────────────────────────────────────────────────────────────────────────────────────────────


def choose_kind_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("choose_kind.html", reader, found=found)


def add_source_page(reader: Reader, found: Mapping[str, Any]) -> str:
    """The form of a kind with the values entered; its errors; and a preview of the first visit."""
    error, values, prefix = found["error"], found["values"], found["prefix"]
    settings = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    fields = _filled(found["kind"], settings)
    return page(
        "add_source.html",
        reader,
        found=found,
        kind=found["kind"],
        values=dict.fromkeys(_FORM, "") | values,
        fields=fields,
        is_folded=len(fields) > _FEW_FIELDS and not any(field.value for field in fields),
        priorities=PRIORITIES,
        error=(error.what if isinstance(error, NoFeed) else str(error)) if error else None,
        error_words=plain_error(reader.locale, error.code, None, is_saved=False) if error else None,
        is_without_feed=isinstance(error, NoFeed),
        wrong_field=getattr(error, "field", None),
        items=[_previewed(item) for item in found["preview"].items] if found["preview"] else [],
    )


def _filled(kind: Kind | None, typed: Mapping[str, Any]) -> list[SettingRow]:
    """The settings of a kind as form fields."""
    return [_setting(field, typed.get(field.name)) for field in (kind.fields if kind else ())]


def _setting(field: Field, value: Any) -> SettingRow:
    return SettingRow(
        field.name,
        _text(value),
        _text(field.default),
        field.what,
        field.choices or (("true", "false") if isinstance(field.default, bool) else ()),
        field.minimum is not None or field.maximum is not None,
        field.minimum,
        field.maximum,
    )


def _text(value: Any) -> str:
    """A setting as a person would type it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class PreviewRow(NamedTuple):
    """An item that a first visit would store."""

    title: str
    excerpt: str
    author: str | None
    at: str | None
    url: str | None


def _previewed(item: PreviewItem) -> PreviewRow:
    text = " ".join((item.get("text") or "").split())
    return PreviewRow(
        item.get("title") or text[:120],
        text[:200] if item.get("title") else "",
        item.get("author_display_name") or item.get("author"),
        item.get("created_at"),
        web_address(item.get("url")) or web_address(item.get("target_url")),
    )


def import_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("import.html", reader, found=found, done=found["done"], error=found["error"])


router = APIRouter()

A_PAGE = 50
STATES = ("active", "paused", "retired")
_GIVEN = ("q", "kind", "category", "state", "order")
_LONGEST = 200
_DAY = timedelta(days=1)
_CALENDAR_DAYS = 17 * 7
_MOST_RUNS = 12

Followed = tuple[Source, Progress]


# ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/sources")
def sources(request: Request, context: WebContextDep, reader: TheReader) -> Response:
    app, params = context.app, request.query_params
    filters = {name: value for name in _GIVEN if (value := params.get(name, "").strip()[:_LONGEST])}
    after = place(params.get("after") or None)
    listed = _listed(app, filters, after or 0)
    status = context.status()
    troubled = _troubled(app, status) if filters.get("order") == "troubled" else []
    first = _chosen(app, troubled, filters) if after is None else []
    shown = [listed_source for listed_source in listed[:A_PAGE] if listed_source[0].id not in troubled]
    counts = app.store.sources.counts()
    found = {
        "given": dict.fromkeys(_GIVEN, "") | filters,
        "is_filtered": bool(filters.keys() - {"order"}),
        "kinds": sorted({*app.store.sources.kinds(), *(kind.name for kind in app.platforms.kinds())}),
        "states": STATES,
        "categories": app.store.sources.categories(),
        "counts": counts,
        "next": _address(filters, after=str(listed[A_PAGE - 1][0].id)) if len(listed) > A_PAGE else None,
        "first": _address(filters) if after is not None else None,
    }
    rows = _rows(app, status, [*first, *shown], reader.locale)
    total = sum(count for state, count in counts.items() if state != "removed")
    return HTMLResponse(page("sources.html", reader, found=found, rows=rows, total=total))


def _listed(app: App, given: dict[str, str], after: int) -> list[Followed]:
    """One row more than a page: it shows whether there is a next page."""
    states = [SourceState(given["state"])] if given.get("state") in STATES else []
    kind = given.get("kind")
    if kind is not None:
        app.names.source_kind(kind)
    if "category" in given:
        app.names.category(given["category"])
    category, words = given.get("category"), given.get("q", "")
    return app.store.sources.page(after, A_PAGE + 1, kind=kind, states=states, category=category, words=words)


def _troubled(app: App, status: DeploymentStatus) -> list[int]:
    """Failing sources, the longest first; then late and silent ones."""
    failing = [source.id for source in app.store.failure_stats.failing(A_PAGE)]
    silent = [source.source_id for source in app.store.alerts.late_sources(status.now, A_PAGE)]
    return list(dict.fromkeys([*failing, *status.overdue(A_PAGE), *silent]))


def _chosen(app: App, source_ids: Sequence[int], given: dict[str, str]) -> list[Followed]:
    """Those of these sources that match the list's other filters."""
    words, kind, state = folded(given.get("q", "")).split(), given.get("kind"), given.get("state")
    category = folded(given["category"]) if "category" in given else None
    return [
        (source, progress)
        for source, progress in app.store.sources.these(source_ids)
        if kind in (None, source.kind)
        and (state not in STATES or state == source.state)
        and all(word in folded(f"{source.name}\n{source.target}") for word in words)
        and (category is None or category in map(folded, source.categories))
    ]


def _rows(app: App, status: DeploymentStatus, followed: Sequence[Followed], locale: Locale) -> list[SourceRow]:
    intervals = app.intervals()
    visits = app.store.runs.visits_since([source.id for source, _ in followed], status.now - _DAY)
    busy_ids = {visit.source_id for visit in app.store.runs.under_way()}

    def row(source: Source, progress: Progress) -> SourceRow:
        view = source_view(source, progress, intervals)
        facts = status.facts.replace(is_held=source.id in busy_ids)
        why = lateness(source, progress, view.fetch_interval_minutes, facts).why
        error = plain_error(locale, view.last_error_code, view.last_error) if why in _IN_TROUBLE else None
        recent = visits.get(source.id, RecentVisits(source.id))
        return SourceRow(**asdict(view), why=why, tone=TONES[why], error=error, visits=recent)

    return [row(source, progress) for source, progress in followed]


def _address(given: dict[str, str], **more: str) -> str:
    query = urlencode({**given, **more})
    return f"/sources?{query}" if query else "/sources"


# ── one source ────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/sources/{source_id}")
def source(context: WebContextDep, reader: TheReader, source_id: SourceId) -> Response:
    app = context.app
    stored, progress = app.store.sources.with_progress(source_id)
    view = source_view(stored, progress, app.intervals())
    status, holder = context.status(), app.store.sources.holder(source_id)
    facts = status.facts.replace(is_held=holder is not None)
    known = SourcePage(
        source=view,
        kind=app.platforms.kind(stored.kind),
        late=lateness(stored, progress, view.fetch_interval_minutes, facts),
        waiting_count=facts.waiting_count,
        holder=holder,
        credentials=credential_names(app, stored.platform),
        visits=app.store.runs.visits_since([source_id], status.now - _DAY).get(source_id, RecentVisits(source_id)),
        runs=app.store.runs.of_source(source_id, _MOST_RUNS),
        gaps=app.store.gaps.newest(6, source_id=source_id),
        coverage=coverage_of(app.store, app.platforms, source_id, status.now, _CALENDAR_DAYS),
        posted=app.store.rhythm_stats.posted(source_id),
    )
    return HTMLResponse(source_page(reader, known))


def credential_names(app: App, platform: str) -> list[str]:
    return [stored.credential.name for stored in app.store.credentials.page() if stored.credential.platform == platform]


# ── actions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/sources/{source_id}/pause")
def pause(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    add.pause(app.store, source_id, form["reason"][:_LONGEST] or None, app.clock.now())
    return done(source_id, "paused")


@router.post("/sources/{source_id}/resume")
def resume(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    add.resume(app.store, source_id, app.clock.now())
    return done(source_id, "resumed")


@router.post("/sources/{source_id}/run")
def run_now(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    add.ask_now(app.store, source_id, app.clock.now())
    return done(source_id, "asked")


@router.post("/sources/{source_id}/images")
def load_images(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    """Whether images within its items are loaded from other sites."""
    app.store.sources.get(source_id, even_removed=True)
    app.store.settings.put(f"{LOAD_IMAGES}{source_id}", bool(form["load"]), app.clock.now())
    back = local(form["back"]) if form["back"] else f"/sources/{source_id}"
    return RedirectResponse(f"{back}?done={'images_on' if form['load'] else 'images_off'}", 303)


@router.post("/sources/{source_id}/remove")
def remove(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    add.remove(app.store, source_id, app.clock.now())
    return RedirectResponse("/sources?done=removed", 303)


@router.post("/sources/{source_id}/change")
def change(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    """Name, pace, categories, priority, credential, and the settings of its kind; what is left empty is the default."""
    candidate = app.store.sources.get(source_id)
    fields: dict[str, Any] = {
        "interval_minutes": minutes_from(form["interval"]),
        "priority": form["priority"] or candidate.priority,
        "categories": lines(form["categories"]),
        "credential": form["credential"] or None,
    }
    if form["name"] and form["name"] != candidate.name:
        fields["name"] = form["name"][:_LONGEST]
    kind = app.platforms.kind(candidate.kind)
    if kind is not None:
        fields["settings"] = changed_settings(kind, settings_given(form))
    add.change(app.store, app.secrets, app.platforms, source_id, app.clock.now(), **fields)
    return done(source_id, "changed")


def done(source_id: int, deed: str) -> Response:
    return RedirectResponse(f"/sources/{source_id}?done={deed}", 303)
