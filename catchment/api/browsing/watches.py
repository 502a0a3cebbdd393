"""Watches: rules over what comes in, tried before they are kept; and what they hit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from catchment import pages
from catchment.api.browsing.filling import lines
from catchment.api.browsing.readers import Form, TheForm, TheReader
from catchment.api.door import TheShop
from catchment.api.standing import with_source_names
from catchment.api.values import LARGEST
from catchment.api.watches import WatchId, of_what_is_known
from catchment.errors import CatchmentError, InvalidInput
from catchment.model import Watch
from catchment.pages import Reader
from catchment.shop import Shop
from catchment.tell.rules import checked
from catchment.tell.watching import tried

router = APIRouter()

_AMONG = 1_000
"""So many of the latest items a rule is tried on."""
_MOST_HITS = 50
_PREFILLED = ("words", "sources", "authors", "kind")


@router.get("/watches")
def watches(request: Request, shop: TheShop, reader: TheReader) -> Response:
    given = {name: request.query_params.get(name, "")[:200] for name in _PREFILLED}
    return _page(shop, reader, given)


@router.post("/watches")
def add_watch(shop: TheShop, form: TheForm) -> Response:
    """Try the rule, or keep it, as the button said."""
    reader = form.reader.plus(path="/watches")
    try:
        watch = of_what_is_known(shop, checked(_watch(form)))
        if form["deed"] == "try":
            hits, looked = tried(shop.store.watches, watch, _AMONG)
            found = [{"id": one.item.id, "title": one.item.title, "words": one.words} for one in hits[:_MOST_HITS]]
            return _page(shop, reader, form.values, tried={"hits": found, "count": len(hits), "looked": looked})
        watch_id = shop.store.watches.add(watch, shop.clock.now())
    except CatchmentError as error:
        return _page(shop, reader, form.values, error=error)
    return RedirectResponse(f"/watches/{watch_id}?done=watched", 303)


def _watch(form: Form) -> Watch:
    # To try a rule, it needs no name yet.
    name = form["name"] or ("…" if form["deed"] == "try" else "")
    return Watch(
        name,
        tuple(lines(form["words"])),
        is_any_enough=bool(form["any"]),
        kinds=(form["kind"],) if form["kind"] else (),
        source_ids=tuple(_number(one) for one in lines(form["sources"])),
        authors=tuple(lines(form["authors"])),
        is_for_edits=bool(form["edits"]),
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= LARGEST):
        raise InvalidInput(f"{text[:50]!r} is not the number of a source", "its page shows it", field="sources")
    return int(text)


def _page(
    shop: Shop,
    reader: Reader,
    values: Mapping[str, str],
    *,
    tried: Mapping[str, Any] | None = None,
    error: CatchmentError | None = None,
) -> Response:
    found = {
        "rows": shop.store.watches.page(),
        "kinds": shop.names.kinds(),
        "values": values,
        "tried": tried,
        "error": error,
    }
    status = 200 if error is None else 400 if isinstance(error, InvalidInput) else 409
    return HTMLResponse(pages.watches_page(reader, found), status)


@router.get("/watches/{watch_id}")
def watch(shop: TheShop, reader: TheReader, watch_id: WatchId) -> Response:
    one = shop.store.watches.get(watch_id)
    found = {
        "one": one,
        "sources": shop.store.sources.names(one["source_ids"]),
        "hits": with_source_names(shop, shop.store.watches.hits(watch_id, _MOST_HITS)),
    }
    return HTMLResponse(pages.watch_page(reader, found))


@router.post("/watches/{watch_id}/pause")
def pause_watch(shop: TheShop, watch_id: WatchId, form: TheForm) -> Response:
    shop.store.watches.pause(watch_id)
    return RedirectResponse(f"/watches/{watch_id}?done=watch_paused", 303)


@router.post("/watches/{watch_id}/resume")
def resume_watch(shop: TheShop, watch_id: WatchId, form: TheForm) -> Response:
    shop.store.watches.resume(watch_id)
    return RedirectResponse(f"/watches/{watch_id}?done=watch_resumed", 303)


@router.post("/watches/{watch_id}/remove")
def remove_watch(shop: TheShop, watch_id: WatchId, form: TheForm) -> Response:
    shop.store.watches.remove(watch_id)
    return RedirectResponse("/watches?done=unwatched", 303)
