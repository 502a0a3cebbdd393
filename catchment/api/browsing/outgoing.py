"""Each list as a feed or a table, from the same address: `format=` atom, json, csv or jsonl.

A feed reader has no cookie. The addresses that a page shows bear a seal, which opens that one list to whoever has the
address, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Depends, Request, Response

from catchment.api.browsing.readers import Outside, inside, reader_of
from catchment.api.door import Door, TheDoor
from catchment.collect.exporting import written
from catchment.errors import InvalidInput
from catchment.pages import Reader, feeds
from catchment.pages.feeds import About

SEAL = "seal"
Items = Sequence[Mapping[str, Any]]


class Format(NamedTuple):
    name: str
    media_type: str
    most: int
    """How many items at once."""
    is_feed: bool
    write: Callable[[Items, About], bytes]


FORMATS = {
    "atom": Format("Atom", "application/atom+xml", 50, True, feeds.atom),
    "json": Format("JSON Feed", "application/feed+json", 50, True, feeds.json_feed),
    "csv": Format("CSV", "text/csv", 1_000, False, lambda items, _: written("csv", items)),
    "jsonl": Format("JSONL", "application/jsonl", 1_000, False, lambda items, _: written("jsonl", items)),
}


def format_of(request: Request) -> Format | None:
    """None: a page."""
    asked = request.query_params.get("format")
    if not asked:
        return None
    if asked not in FORMATS:
        raise InvalidInput(f"unknown format {asked[:20]!r}", f"known formats: {', '.join(FORMATS)}", field="format")
    return FORMATS[asked]


def _inside_or_sealed(request: Request, door: TheDoor) -> Reader:
    reader = reader_of(request, door)
    if reader.is_inside:
        return inside(request, door)
    seal = request.query_params.get(SEAL)
    if seal is None or format_of(request) is None or not door.sessions.is_sealed(_named(request), seal):
        raise Outside
    return reader


AnyReader = Annotated[Reader, Depends(_inside_or_sealed)]


def _named(request: Request) -> str:
    """What a seal is for: a list by its filters, and its format; not a place in it, nor a language."""
    given = {name: value for name, value in request.query_params.items() if name not in (SEAL, "after", "lang")}
    return f"{request.url.path}?{urlencode(sorted(given.items()))}"


def addresses(door: Door, path: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    """Of a list, in every format."""
    found = []
    for key, one in FORMATS.items():
        params = {**asked, "format": key}
        seal = door.sessions.seal(f"{path}?{urlencode(sorted(params.items()))}")
        href = f"{path}?{urlencode({**params, SEAL: seal})}"
        found.append({"name": one.name, "media_type": one.media_type, "is_feed": one.is_feed, "href": href})
    return found


def answer(request: Request, format: Format, items: Items, about: About, following: str | None) -> Response:
    headers = {}
    if following is not None:
        headers["Link"] = f'<{following}>; rel="next"'
    if not format.is_feed:
        ending = request.query_params["format"]
        headers["Content-Disposition"] = f'attachment; filename="catchment.{ending}"'
    body = format.write(items, about)
    return Response(body, media_type=f"{format.media_type}; charset=utf-8", headers=headers)
