"""The watches page: rules over incoming items, tried before they are saved; and their matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Request, Response
from msgspec import convert

from catchment.app import App
from catchment.errors import CatchmentError, Conflict, InvalidInput
from catchment.events.watches import tried
from catchment.model import Record, Watch
from catchment.store.delivery.watches import StoredWatchHit, WatchView
from catchment.web.api.events import checked_watch
from catchment.web.api.params import WatchId, whole_number
from catchment.web.dependencies import AppDep
from catchment.web.pages.items import source_field, source_options
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import Reader, redirect, render
from catchment.web.pages.session import SubmittedForm, TheForm, TheReader, joined, lines

router = APIRouter()

_AMONG = 1_000
"""How many of the latest items a rule is tried on."""
_MOST_HITS = 50
_PREFILLED = ("words", "sources", "authors", "kind")
_FORM = ("name", "words", "kind", "sources", "authors", "any", "edits")


def rule(locale: Locale, watch: WatchView) -> str:
    """The rule of a watch, in one line."""
    parts = [
        (locale.gettext(" or ") if watch.is_any_enough else " ").join(watch.words),
        locale.gettext("of kind {kinds}", kinds=", ".join(locale.kind(kind) for kind in watch.kinds))
        if watch.kinds
        else "",
        locale.gettext("from source {ids}", ids=", ".join(map(str, watch.source_ids))) if watch.source_ids else "",
        locale.gettext("by {authors}", authors=", ".join(watch.authors)) if watch.authors else "",
        locale.gettext("edits included") if watch.is_for_edits else "",
    ]
    return "; ".join(part for part in parts if part)


@router.get("/watches")
def watches(request: Request, app: AppDep, reader: TheReader) -> Response:
    values = {name: request.query_params.get(name, "")[:200] for name in _PREFILLED}
    if whole_number(values["sources"]) is not None:
        values["sources"] = source_field(app, values["sources"])
    return _page(app, reader, values)


@router.post("/watches")
def add_watch(app: AppDep, form: TheForm) -> Response:
    """Test the rule or save it, depending on the button."""
    reader = form.reader.replace(path="/watches")
    try:
        watch = checked_watch(app, _watch(app, form))
        if form["intent"] == "try":
            return _page(app, reader, form.values, tried=_tried(app, watch))
    except CatchmentError as error:
        return _page(app, reader, form.values, error=error)
    try:
        watch_id = app.store.watches.add(watch, app.clock.now())
    except CatchmentError as error:
        # The rule itself is valid, so its trial stays visible.
        return _page(app, reader, form.values, error=error, tried=_tried(app, watch))
    return redirect(f"/watches/{watch_id}?done=watched")


class Trial(Record, frozen=True):
    """The latest items that a rule would have matched."""

    hits: Sequence[StoredWatchHit]
    count: int
    looked: int


def _tried(app: App, watch: Watch) -> Trial:
    hits, tried_count = tried(app.store.watches, watch, _AMONG)
    return Trial(hits[:_MOST_HITS], len(hits), tried_count)


def _watch(app: App, form: SubmittedForm) -> Watch:
    return Watch(
        form["name"],
        tuple(lines(form["words"])),
        is_any_enough=bool(form["any"]),
        kinds=(form["kind"],) if form["kind"] else (),
        source_ids=tuple(_source(app, line) for line in lines(form["sources"])),
        authors=tuple(lines(form["authors"])),
        is_for_edits=bool(form["edits"]),
    )


def _source(app: App, text: str) -> int:
    try:
        return app.names.source(text)
    except CatchmentError as error:
        # An error in a form field, whatever its type elsewhere.
        raise InvalidInput(error.what, error.helps, field="sources") from None


def _page(
    app: App,
    reader: Reader,
    values: Mapping[str, str],
    *,
    tried: Trial | None = None,
    error: CatchmentError | None = None,
) -> Response:
    return render(
        "watches.html",
        reader,
        200 if error is None else 400 if isinstance(error, InvalidInput) else 409,
        kinds=app.names.kinds(),
        source_options=[(joined([value]), name) for value, name in source_options(app)],
        tried=tried,
        rows=app.store.watches.page(),
        rule=rule,
        values=dict.fromkeys(_FORM, "") | dict(values),
        error=str(error) if error else None,
        error_words=reader.locale.form_error(error) if error else None,
        wrong_field="name" if isinstance(error, Conflict) else getattr(error, "field", None),
    )


@router.get("/watches/{watch_id}")
def watch(app: AppDep, reader: TheReader, watch_id: WatchId) -> Response:
    watch = app.store.watches.get(watch_id)
    is_new = reader.done == "watched" and not watch.hit_count
    hits = app.store.watches.hits(watch_id, _MOST_HITS)
    return render(
        "watch.html",
        reader,
        watch=watch,
        rule=rule,
        tried=_tried(app, convert(watch, Watch, from_attributes=True)) if is_new else None,
        sources=app.store.sources.names(watch.source_ids),
        hits=hits,
        names=app.store.sources.names(hit.source_id for hit in hits),
    )


@router.post("/watches/{watch_id}/pause")
def pause_watch(app: AppDep, watch_id: WatchId, form: TheForm) -> Response:
    app.store.watches.pause(watch_id)
    return redirect(f"/watches/{watch_id}?done=watch_paused")


@router.post("/watches/{watch_id}/resume")
def resume_watch(app: AppDep, watch_id: WatchId, form: TheForm) -> Response:
    app.store.watches.resume(watch_id)
    return redirect(f"/watches/{watch_id}?done=watch_resumed")


@router.post("/watches/{watch_id}/remove")
def remove_watch(app: AppDep, watch_id: WatchId, form: TheForm) -> Response:
    app.store.watches.remove(watch_id)
    return redirect("/watches?done=unwatched")
