"""The "Add source" pages: a kind, its form and a preview; or an import of a list."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from catchment.app import App
from catchment.credentials.secret import unsure_names
from catchment.errors import CatchmentError, InvalidInput, NoFeed, NotFound
from catchment.model import PRIORITIES, Kind, SettingValues
from catchment.sources import add as source_add
from catchment.sources import list_formats, lists
from catchment.sources.intervals import minutes_from
from catchment.sources.lists import STARTER, shipped
from catchment.sources.preview import Preview, PreviewItem, preview_view
from catchment.web.dependencies import AppDep
from catchment.web.pages.item_views import web_address
from catchment.web.pages.render import Reader, render
from catchment.web.pages.session import SETTING, SubmittedForm, TheForm, TheReader, lines, typed_settings
from catchment.web.pages.sources import credential_names, done, setting_fields

router = APIRouter()

ADD, IMPORT = "/sources/add", "/sources/import"
_FORM = ("target", "name", "interval", "categories", "priority", "credential", "keep_secret")
_FEW_FIELDS = 8
"""More settings than this are folded away: most people need none of them."""
_LONGEST = 4_000
_MOST_SHOWN = 200


@router.get(ADD)
def choose(request: Request, app: AppDep, reader: TheReader) -> Response:
    """What kind of thing it is; and once that is known, its form."""
    typed = request.query_params.get("target", "").strip()[:_LONGEST]
    kind = _kind(app, request.query_params.get("kind", ""))
    if kind is not None:
        return _form(app, reader, kind, {"target": typed})
    fitting = source_add.kinds_for(app.platforms, typed) if typed else []
    installed = sorted(app.platforms.kinds(), key=lambda kind: (len(kind.fields) > 9, kind.name))
    kinds = [*installed, *app.platforms.absent_kinds()]
    return render("choose_kind.html", reader, typed=typed, fitting=fitting, kinds=kinds)


@router.post(ADD)
def add(app: AppDep, form: TheForm) -> Response:
    """Test the source or add it, depending on the button. Errors are shown above the form, which keeps its values."""
    reader = form.reader.replace(path=ADD)
    kind = _kind(app, form["kind"])
    if kind is None:
        app.platforms.needed(form["kind"])
    assert kind is not None  # otherwise the line above has raised
    try:
        if form["intent"] == "try":
            source, preview = source_add.tried(app.visitor(), app.secrets, kind.name, **_entered(app, form))
            return done(source.id, "known") if preview is None else _form(app, reader, kind, form.values, preview)
        source, is_new = source_add.follow(app.store, app.secrets, app.platforms, kind.name, **_entered(app, form))
    except CatchmentError as error:
        return _form(app, reader, kind, form.values, error=error)
    return done(source.id, "followed" if is_new else "known")


def _entered(app: App, form: SubmittedForm) -> SettingValues:
    if not form["target"]:
        raise InvalidInput("it needs an address or a name", "the example shows one", field="target")
    return {
        "text": form["target"][:_LONGEST],
        "now": app.clock.now(),
        "name": form["name"] or None,
        "settings": {name: value for name, value in typed_settings(form.values).items() if value},
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
    values: Mapping[str, str],
    preview: Preview | None = None,
    error: CatchmentError | None = None,
) -> Response:
    """The form of a kind with the values entered; its errors; and a preview of the first visit."""
    platform = app.platforms.announced(kind.name) or app.platforms.needed(kind.name).NAME
    fields, view = setting_fields(kind, typed_settings(values)), preview_view(preview) if preview else None
    return render(
        "add_source.html",
        reader,
        200 if error is None else 400 if isinstance(error, InvalidInput | NotFound) else 502,
        kind=kind,
        minutes=app.intervals()[kind.name],
        credentials=credential_names(app, platform),
        values=dict.fromkeys(_FORM, "") | dict(values),
        looks_secret=unsure_names(values.get("target", "")),
        prefix=SETTING,
        fields=fields,
        is_folded=len(fields) > _FEW_FIELDS and not any(field.value for field in fields),
        priorities=PRIORITIES,
        preview=view,
        items=[_previewed(item) for item in view.items] if view else [],
        error=(error.what if isinstance(error, NoFeed) else str(error)) if error else None,
        error_words=reader.locale.form_error(error, is_saved=False) if error else None,
        is_without_feed=isinstance(error, NoFeed),
        wrong_field=getattr(error, "field", None),
    )


def _previewed(item: PreviewItem) -> dict[str, str | None]:
    text = " ".join((item.get("text") or "").split())
    return {
        "title": item.get("title") or text[:120],
        "excerpt": text[:200] if item.get("title") else "",
        "author": item.get("author_display_name") or item.get("author"),
        "at": item.get("created_at"),
        "url": web_address(item.get("url")) or web_address(item.get("target_url")),
    }


def _kind(app: App, name: str) -> Kind | None:
    """The kind of that name; also one whose platform is not installed."""
    return app.platforms.kind(name) or next((kind for kind in app.platforms.absent_kinds() if kind.name == name), None)


@router.get(IMPORT)
def import_form(reader: TheReader) -> Response:
    return render("import.html", reader, text="", done=None, error=None)


@router.post(IMPORT)
def import_list(app: AppDep, form: TheForm) -> Response:
    """Add all sources of a list, or of the starter set."""
    reader, text = form.reader.replace(path=IMPORT), form.values.get("list", "")
    try:
        listed = shipped(STARTER, app.platforms)[0] if form["intent"] == "starter" else list_formats.read(text.encode())
    except InvalidInput as error:
        return render("import.html", reader, 400, text=text, done=None, error=error)
    result = lists.follow_all(
        app.store,
        app.secrets,
        app.platforms,
        listed.entries,
        app.clock.now(),
        may_name_credentials=form["allow_credentials"] == "yes",
    )
    refused = [*listed.bad_rows, *result.refused]
    imported = {
        "added": app.store.sources.names(result.added[:_MOST_SHOWN]),
        "added_count": len(result.added),
        "known_count": len(result.known),
        "refused": refused[:_MOST_SHOWN],
        "refused_count": len(refused),
    }
    return render("import.html", reader, text="", done=imported, error=None)
