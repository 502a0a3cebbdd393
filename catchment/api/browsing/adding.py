"""Following something new: a kind, its form, a look before it is followed; or many at once, from a list."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from catchment import pages
from catchment.api.browsing.filling import SETTING, lines, minutes_from, new_settings, settings_given
from catchment.api.browsing.readers import Form, TheForm, TheReader
from catchment.api.browsing.sources import credential_names, done
from catchment.api.door import TheShop
from catchment.collect import following, importing, lists, previewing
from catchment.collect.previewing import Preview
from catchment.collect.shipped import STARTER, shipped
from catchment.errors import CatchmentError, InvalidInput
from catchment.model import Kind
from catchment.pages import Reader
from catchment.shop import Shop

router = APIRouter()

_LONGEST = 4_000
_MOST_SHOWN = 200
ADD, IMPORT = "/sources/add", "/sources/import"


# ── one ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get(ADD)
def choose(request: Request, shop: TheShop, reader: TheReader) -> Response:
    """What kind of thing it is; and once that is known, its form."""
    typed = request.query_params.get("target", "").strip()[:_LONGEST]
    kind = shop.platforms.kind(request.query_params.get("kind", ""))
    if kind is not None:
        return _form(shop, reader, kind, {"target": typed})
    fitting = following.kinds_for(shop.platforms, typed) if typed else []
    found = {"typed": typed, "fitting": fitting, "kinds": _kinds(shop)}
    return HTMLResponse(pages.choose_kind_page(reader, found))


@router.post(ADD)
def add(shop: TheShop, form: TheForm) -> Response:
    """Try it out, or follow it, as the button said. What is wrong is said above the form, which stays as it was."""
    reader = form.reader.plus(path=ADD)
    shop.platforms.needed(form["kind"])
    kind = shop.platforms.kind(form["kind"])
    assert kind is not None
    try:
        if form["deed"] == "try":
            source, preview = following.tried(shop.visitor, shop.safe, kind.name, **_given(shop, form))
            return done(source.id, "known") if preview is None else _form(shop, reader, kind, form.values, preview)
        source, is_new = following.follow(shop.store, shop.safe, shop.platforms, kind.name, **_given(shop, form))
    except CatchmentError as error:
        return _form(shop, reader, kind, form.values, error=error)
    return done(source.id, "followed" if is_new else "known")


def _given(shop: Shop, form: Form) -> dict[str, Any]:
    if not form["target"]:
        raise InvalidInput("it needs an address or a name", "the example shows one", field="target")
    return {
        "text": form["target"][:_LONGEST],
        "now": shop.clock.now(),
        "name": form["name"] or None,
        "settings": new_settings(settings_given(form)),
        "credential": form["credential"] or None,
        "interval_minutes": minutes_from(form["interval"]),
        "categories": lines(form["categories"]),
        "priority": form["priority"] or "medium",
    }


def _form(
    shop: Shop,
    reader: Reader,
    kind: Kind,
    values: Any,
    preview: Preview | None = None,
    error: CatchmentError | None = None,
) -> Response:
    platform = shop.platforms.needed(kind.name)
    found = {
        "kind": kind,
        "platform": platform.NAME,
        "minutes": shop.intervals()[kind.name],
        "credentials": credential_names(shop, platform.NAME),
        "values": dict(values),
        "prefix": SETTING,
        "preview": previewing.told(preview) if preview else None,
        "error": error,
    }
    status = 200 if error is None else 400 if isinstance(error, InvalidInput) else 502
    return HTMLResponse(pages.add_source_page(reader, found), status)


def _kinds(shop: Shop) -> list[Kind]:
    return sorted(shop.platforms.kinds(), key=lambda kind: (len(kind.fields) > 9, kind.name))


# ── many ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get(IMPORT)
def import_form(reader: TheReader) -> Response:
    return HTMLResponse(pages.import_page(reader, {"text": "", "done": None, "error": None}))


@router.post(IMPORT)
def import_list(shop: TheShop, form: TheForm) -> Response:
    """Follow all that a list names; the starter set, if that was asked for."""
    reader, text = form.reader.plus(path=IMPORT), form.values.get("list", "")
    try:
        listed = shipped(STARTER, shop.platforms)[0] if form["deed"] == "starter" else lists.read(text.encode())
    except InvalidInput as error:
        return HTMLResponse(pages.import_page(reader, {"text": text, "done": None, "error": error}), 400)
    result = importing.follow_all(shop.store, shop.safe, shop.platforms, listed.entries, shop.clock.now())
    refused = [*listed.bad_rows, *result.refused]
    found = {
        "format": listed.format,
        "added": shop.store.sources.names(result.added[:_MOST_SHOWN]),
        "added_count": len(result.added),
        "known_count": len(result.known),
        "refused": refused[:_MOST_SHOWN],
        "refused_count": len(refused),
    }
    return HTMLResponse(pages.import_page(reader, {"text": "", "done": found, "error": None}))
