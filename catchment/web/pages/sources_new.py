"""The "Add source" pages: a kind, its form and a preview; or an import of a list."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from catchment.app import App
from catchment.credentials import unsure_names
from catchment.errors import CatchmentError, InvalidInput
from catchment.model import Kind, SettingValues
from catchment.sources import add as source_add
from catchment.sources import list_formats, lists
from catchment.sources.intervals import minutes_from
from catchment.sources.lists import STARTER, shipped
from catchment.sources.preview import Preview, preview_view
from catchment.web.dependencies import AppDep
from catchment.web.pages.render import Reader
from catchment.web.pages.session import SETTING, SubmittedForm, TheForm, TheReader, lines, new_settings, settings_given
from catchment.web.pages.sources import add_source_page, choose_kind_page, credential_names, done, import_page

router = APIRouter()

_LONGEST = 4_000
_MOST_SHOWN = 200
ADD, IMPORT = "/sources/add", "/sources/import"


# ── one ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get(ADD)
def choose(request: Request, app: AppDep, reader: TheReader) -> Response:
    """What kind of thing it is; and once that is known, its form."""
    typed = request.query_params.get("target", "").strip()[:_LONGEST]
    kind = _kind(app, request.query_params.get("kind", ""))
    if kind is not None:
        return _form(app, reader, kind, {"target": typed})
    fitting = source_add.kinds_for(app.platforms, typed) if typed else []
    found = {"typed": typed, "fitting": fitting, "kinds": _kinds(app)}
    return HTMLResponse(choose_kind_page(reader, found))


@router.post(ADD)
def add(app: AppDep, form: TheForm) -> Response:
    """Try it out, or follow it, as the button said. What is wrong is said above the form, which stays as it was."""
    reader = form.reader.replace(path=ADD)
    kind = _kind(app, form["kind"])
    if kind is None:
        app.platforms.needed(form["kind"])
    assert kind is not None
    try:
        if form["deed"] == "try":
            source, preview = source_add.tried(app.visitor(), app.secrets, kind.name, **_given(app, form))
            return done(source.id, "known") if preview is None else _form(app, reader, kind, form.values, preview)
        source, is_new = source_add.follow(app.store, app.secrets, app.platforms, kind.name, **_given(app, form))
    except CatchmentError as error:
        return _form(app, reader, kind, form.values, error=error)
    return done(source.id, "followed" if is_new else "known")


def _given(app: App, form: SubmittedForm) -> SettingValues:
    if not form["target"]:
        raise InvalidInput("it needs an address or a name", "the example shows one", field="target")
    return {
        "text": form["target"][:_LONGEST],
        "now": app.clock.now(),
        "name": form["name"] or None,
        "settings": new_settings(settings_given(form)),
        "credential": form["credential"] or None,
        "interval_minutes": minutes_from(form["interval"]),
        "categories": lines(form["categories"]),
        "priority": form["priority"] or "medium",
        "keep_secret": bool(form["keep_secret"]),
    }


def _form(
    app: App,
    reader: Reader,
    kind: Kind,
    values: Any,
    preview: Preview | None = None,
    error: CatchmentError | None = None,
) -> Response:
    platform = app.platforms.announced(kind.name) or app.platforms.needed(kind.name).NAME
    found = {
        "kind": kind,
        "platform": platform,
        "minutes": app.intervals()[kind.name],
        "credentials": credential_names(app, platform),
        "values": dict(values),
        "looks_secret": unsure_names(dict(values).get("target", "")),
        "prefix": SETTING,
        "preview": preview_view(preview) if preview else None,
        "error": error,
    }
    status = 200 if error is None else 400 if isinstance(error, InvalidInput) else 502
    return HTMLResponse(add_source_page(reader, found), status)


def _kinds(app: App) -> list[Kind]:
    installed = sorted(app.platforms.kinds(), key=lambda kind: (len(kind.fields) > 9, kind.name))
    return [*installed, *app.platforms.absent_kinds()]


def _kind(app: App, name: str) -> Kind | None:
    """The kind of that name; also one whose platform is not installed."""
    return app.platforms.kind(name) or next((kind for kind in app.platforms.absent_kinds() if kind.name == name), None)


# ── many ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get(IMPORT)
def import_form(reader: TheReader) -> Response:
    return HTMLResponse(import_page(reader, {"text": "", "done": None, "error": None}))


@router.post(IMPORT)
def import_list(app: AppDep, form: TheForm) -> Response:
    """Follow all that a list names; the starter set, if that was asked for."""
    reader, text = form.reader.replace(path=IMPORT), form.values.get("list", "")
    try:
        listed = shipped(STARTER, app.platforms)[0] if form["deed"] == "starter" else list_formats.read(text.encode())
    except InvalidInput as error:
        return HTMLResponse(import_page(reader, {"text": text, "done": None, "error": error}), 400)
    result = lists.follow_all(
        app.store,
        app.secrets,
        app.platforms,
        listed.entries,
        app.clock.now(),
        may_name_credentials=form["allow_credentials"] == "yes",
    )
    refused = [*listed.bad_rows, *result.refused]
    found = {
        "format": listed.format,
        "added": app.store.sources.names(result.added[:_MOST_SHOWN]),
        "added_count": len(result.added),
        "known_count": len(result.known),
        "refused": refused[:_MOST_SHOWN],
        "refused_count": len(refused),
    }
    return HTMLResponse(import_page(reader, {"text": "", "done": found, "error": None}))
