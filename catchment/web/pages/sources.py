"""The source pages: the list, one source with its visits, and the actions on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from catchment.app import App
from catchment.errors import CatchmentError, InvalidInput, NotFound
from catchment.model import PRIORITIES, REQUESTED, Field, Kind, Progress, SettingValues, Source, SourceState
from catchment.platforms import services_of
from catchment.policy.coverage import Day
from catchment.sources import add
from catchment.sources.describe import SourceView, Why, coverage_of, lateness, source_view
from catchment.sources.intervals import minutes_from
from catchment.status import DeploymentStatus
from catchment.store.sources.runs import RecentVisits
from catchment.text.tokens import folded
from catchment.web.api.params import SourceId, paged, place
from catchment.web.dependencies import AppDep, WebContext, WebContextDep
from catchment.web.pages import charts
from catchment.web.pages.item_views import web_address
from catchment.web.pages.items import LOAD_IMAGES
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import Reader, redirect, render
from catchment.web.pages.runs import onwards
from catchment.web.pages.session import SubmittedForm, TheForm, TheReader, joined, lines, local, typed_settings

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
    Why.UNSCHEDULED: "quiet",
    Why.NO_MONEY: "warn",
    Why.SILENT: "warn",
    Why.NOBODY: "warn",
    Why.BUDGET: "warn",
    Why.CROWDED: "warn",
    Why.STUCK: "warn",
    Why.PROBATION: "bad",
    Why.FAILING: "bad",
}
_IN_TROUBLE = (Why.FAILING, Why.PROBATION, Why.TOLD)
"""Sources whose last error is shown in the list."""


def heat(posted: Sequence[datetime], reader: Reader) -> charts.Squares | None:
    """How many of its newest items were posted in which hour of which weekday, in the user's zone."""
    if len(posted) < 2:
        return None
    counts = Counter((at.weekday(), at.hour) for at in (moment.astimezone(reader.tzinfo) for moment in posted))

    def words(day: int, hour: int) -> str:
        name, count = reader.locale.name("weekday", str(day)), counts[day, hour]
        return reader.locale.gettext("{day} {hour}:00: {count}", day=name, hour=f"{hour:02}", count=count)

    return charts.heat([[(words(day, hour), counts[day, hour]) for hour in range(24)] for day in range(7)])


def calendar(days: Sequence[Day], locale: Locale) -> charts.Squares | None:
    """Coverage by day: how certain it is that nothing is missing."""
    cells = [
        (day.day, str(day.standing), f"{day.day}: {locale.name('standing', day.standing)} ({day.share:.0%})")
        for day in days
    ]
    return charts.calendar(cells) if cells else None


class SettingRow(NamedTuple):
    """A setting of a source, as a person would type it."""

    name: str
    value: str
    default: str = ""
    what: str = ""
    choices: Sequence[str] = ()
    is_number: bool = False
    minimum: float | None = None
    maximum: float | None = None


def differing(kind: Kind | None, settings: SettingValues) -> list[SettingRow]:
    """The settings of a source that differ from the defaults of its kind."""
    fields = {field.name: field for field in kind.fields} if kind else {}
    return [
        _setting(fields[name], value) if name in fields else SettingRow(name, _text(value))
        for name, value in settings.items()
        if name not in fields or value != fields[name].default
    ]


def setting_fields(kind: Kind | None, values: Mapping[str, Any]) -> list[SettingRow]:
    """The settings of a kind as form fields."""
    return [_setting(field, values.get(field.name)) for field in (kind.fields if kind else ())]


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
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


router = APIRouter()

A_PAGE = 50
STATES = ("active", "paused", "retired")
_FORM = ("name", "interval", "priority", "categories", "credential")
_FILTERS = ("q", "kind", "category", "state", "order")
_LONGEST = 200
_DAY = timedelta(days=1)
_CALENDAR_DAYS = 17 * 7
_MOST_RUNS = 12

Followed = tuple[Source, Progress]


@router.get("/sources")
def sources(request: Request, context: WebContextDep, reader: TheReader) -> Response:
    app, params, status = context.app, request.query_params, context.status()
    filters = {name: value for name in _FILTERS if (value := params.get(name, "").strip()[:_LONGEST])}
    after = place(params.get("after") or None)
    page = paged(_listed(app, filters, after or 0), A_PAGE, lambda row: row[0].id)
    troubled = _troubled(app, status) if filters.get("order") == "troubled" else []
    first = _chosen(app, troubled, filters) if after is None else []
    counts = app.store.sources.counts()
    return render(
        "sources.html",
        reader,
        rows=_rows(app, status, [*first, *(row for row in page.items if row[0].id not in troubled)]),
        total=sum(count for state, count in counts.items() if state != "removed"),
        filters=dict.fromkeys(_FILTERS, "") | filters,
        kinds=sorted({*app.store.sources.kinds(), *(kind.name for kind in app.platforms.kinds())}),
        states=STATES,
        categories=app.store.sources.categories(),
        counts=counts,
        tones=TONES,
        troubles=_IN_TROUBLE,
        **onwards("/sources", filters, after is not None, page),
    )


def _listed(app: App, filters: dict[str, str], after: int) -> list[Followed]:
    """One row more than a page: it shows whether there is a next page."""
    states = [SourceState(filters["state"])] if filters.get("state") in STATES else []
    kind = filters.get("kind")
    if kind is not None:
        app.names.source_kind(kind)
    if "category" in filters:
        app.names.category(filters["category"])
    category, words = filters.get("category"), filters.get("q", "")
    return app.store.sources.page(after, A_PAGE + 1, kind=kind, states=states, category=category, words=words)


def _troubled(app: App, status: DeploymentStatus) -> list[int]:
    """Failing sources, the longest first; then late and silent ones."""
    failing = [source.id for source in app.store.failure_stats.failing(A_PAGE)]
    silent = [source.source_id for source in app.store.alerts.late_sources(status.now, A_PAGE)]
    return list(dict.fromkeys([*failing, *status.overdue(A_PAGE), *silent]))


def _chosen(app: App, source_ids: Sequence[int], filters: dict[str, str]) -> list[Followed]:
    """Those of these sources that match the list's other filters."""
    words, kind, state = folded(filters.get("q", "")).split(), filters.get("kind"), filters.get("state")
    category = folded(filters["category"]) if "category" in filters else None
    return [
        (source, progress)
        for source, progress in app.store.sources.these(source_ids)
        if kind in (None, source.kind)
        and (state not in STATES or state == source.state)
        and all(word in folded(f"{source.name}\n{source.target}") for word in words)
        and (category is None or category in map(folded, source.categories))
    ]


def _rows(
    app: App, status: DeploymentStatus, sources: Sequence[Followed]
) -> list[tuple[SourceView, Why, RecentVisits]]:
    intervals = app.intervals()
    visits = app.store.runs.visits_since([source.id for source, _ in sources], status.now - _DAY)
    busy_ids = {visit.source_id for visit in app.store.runs.under_way()}

    def row(source: Source, progress: Progress) -> tuple[SourceView, Why, RecentVisits]:
        view = source_view(source, progress, intervals)
        facts = status.facts.replace(is_held=source.id in busy_ids)
        why = lateness(source, progress, view.fetch_interval_minutes, facts).why
        return view, why, visits.get(source.id, RecentVisits(source.id))

    return [row(source, progress) for source, progress in sources]


@router.get("/sources/{source_id}")
def source(context: WebContextDep, reader: TheReader, source_id: SourceId) -> Response:
    """One source: what it is, its state, when it is visited next and why, when it posts, what is missing."""
    return _page(context, reader, source_id)


def _page(
    context: WebContext,
    reader: Reader,
    source_id: int,
    entered: Mapping[str, str] | None = None,
    error: CatchmentError | None = None,
) -> Response:
    """The page of a source; its form shows the stored values, or those entered, with what is wrong with them."""
    app, status, locale = context.app, context.status(), reader.locale
    stored, progress = app.store.sources.with_progress(source_id)
    view = source_view(stored, progress, app.intervals())
    reason = view.state_reason
    kind, holder = app.platforms.kind(stored.kind), app.store.sources.holder(source_id)
    facts = status.facts.replace(is_held=holder is not None)
    late = lateness(stored, progress, view.fetch_interval_minutes, facts)
    coverage = coverage_of(app.store, app.platforms, source_id, status.now, _CALENDAR_DAYS)
    posted = app.store.rhythm_stats.posted(source_id)
    seconds = sum(coverage.seconds.values()) or 1
    return render(
        "source.html",
        reader,
        200 if error is None else 400,
        source=view,
        kind=kind,
        late=late,
        url=web_address(view.target),
        tones=TONES,
        is_awaited=error is None and (late.why in (Why.FIRST, Why.VISITING) or view.next_fetch_reason == REQUESTED),
        sentence=locale.name(
            "late",
            late.why,
            at=locale.when(late.at) if late.at else "",
            exact=locale.day_and_time(late.at) if late.at else "",
            reason=(locale.lookup("state_reason", reason.code) or locale.message(reason)) if reason else "–",
            failures=locale.number(view.failures_in_a_row),
            count=locale.number(facts.waiting_count),
            work=holder.work if holder else "",
            platform=locale.name("platform", view.platform),
            until=locale.day_and_time(late.until) if late.until else "",
            new=locale.when(view.last_new_at),
        ),
        because=locale.lookup("due", view.next_fetch_reason.code) or locale.message(view.next_fetch_reason),
        posted=posted,
        heat=heat(posted, reader),
        calendar=calendar(coverage.calendar, locale),
        standings=[(str(standing), count / seconds) for standing, count in coverage.seconds.items() if count],
        visits=app.store.runs.visits_since([source_id], status.now - _DAY).get(source_id, RecentVisits(source_id)),
        runs=app.store.runs.of_source(source_id, _MOST_RUNS),
        gaps=app.store.gaps.newest(6, source_id=source_id),
        credentials=credential_names(app, stored.platform),
        settings=differing(kind, view.settings),
        fields=setting_fields(kind, view.settings if entered is None else typed_settings(entered)),
        priorities=PRIORITIES,
        values=_stored_values(view) if entered is None else dict.fromkeys(_FORM, "") | dict(entered),
        error=str(error) if error else None,
        error_words=locale.form_error(error) if error else None,
        wrong_field=getattr(error, "field", None),
    )


def _stored_values(source: SourceView) -> dict[str, str]:
    """The values of the form, as they are stored."""
    return {
        "name": source.name,
        "interval": str(source.interval_minutes or ""),
        "priority": source.priority,
        "categories": joined(source.categories),
        "credential": source.credential or "",
    }


def credential_names(app: App, platform: str) -> list[str]:
    """Returns the credentials that a source of the platform may name: those of the platform, or of its services."""
    module = app.platforms.by_name.get(platform)
    names = {platform, *(service.name for service in (services_of(module) if module else ()))}
    return [stored.credential.name for stored in app.store.credentials.page() if stored.credential.platform in names]


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
    add.request_collection(app.store, source_id, app.clock.now())
    return done(source_id, "asked")


@router.post("/sources/{source_id}/images")
def load_images(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    """Whether images within its items are loaded from other sites."""
    app.store.sources.get(source_id, even_removed=True)
    app.store.settings.put(f"{LOAD_IMAGES}{source_id}", bool(form["load"]), app.clock.now())
    back = local(form["back"]) if form["back"] else f"/sources/{source_id}"
    return redirect(f"{back}?done={'images_on' if form['load'] else 'images_off'}")


@router.post("/sources/{source_id}/remove")
def remove(app: AppDep, source_id: SourceId, form: TheForm) -> Response:
    add.remove(app.store, source_id, app.clock.now())
    return redirect("/sources?done=removed")


@router.post("/sources/{source_id}/change")
def change(context: WebContextDep, source_id: SourceId, form: TheForm) -> Response:
    """Name, pace, categories, priority, credential, and the settings of its kind; an empty field means the default.
    Errors are shown above the form, which keeps its values."""
    candidate = context.app.store.sources.get(source_id)
    try:
        _change(context.app, candidate, form)
    except (InvalidInput, NotFound) as error:
        return _page(context, form.reader.replace(path=f"/sources/{source_id}"), source_id, form.values, error)
    return done(source_id, "changed")


def _change(app: App, candidate: Source, form: SubmittedForm) -> None:
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
        # An emptied field goes back to its default.
        names = {field.name for field in kind.fields}
        typed = typed_settings(form.values)
        fields["settings"] = {name: value or None for name, value in typed.items() if name in names}
    add.change(app.store, app.secrets, app.platforms, candidate.id, app.clock.now(), **fields)


def done(source_id: int, action: str) -> Response:
    return redirect(f"/sources/{source_id}?done={action}")
