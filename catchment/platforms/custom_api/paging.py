"""How the pages of an API turn: by a cursor, a number, an offset or a link; and where they end.

The end must be certain, or else be said: a walk that we break off (too many pages, a cursor that comes again) has not
seen everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from catchment.model import Answer, Identity, Progress, Record, Request
from catchment.platforms.custom_api import fields, values
from catchment.platforms.custom_api.expressions import Searching
from catchment.platforms.feeds import pieces
from catchment.platforms.feeds.address import is_same_host

CURSORS = (
    *("next_cursor", "nextCursor", "cursor", "next", "next_page_token", "nextPageToken", "next_token", "next_url"),
    *("next_page", "end_cursor", "endCursor", "after", "continuation", "next_max_id", "next_page_url"),
)
AROUND_CURSORS = (
    "meta",
    "paging",
    "pagination",
    "response_metadata",
    "links",
    "_links",
    "data",
    "page_info",
    "pageInfo",
)
HAS_MORE = ("has_more", "hasMore", "has_next_page", "hasNextPage")
LINK = re.compile(r"<([^<>]{1,4000})>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)")
PARAMETER = re.compile(r";\s*([\w*-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")
_LONGEST_CURSOR = 4_000
_SURELY_WITHIN_REACH = 0.5
"""Lists leave out what was removed: one that ends by itself beyond this share of its reach was cut there."""
_TIES = timedelta(seconds=1)
"""Asked for again, so that what shares the newest item's moment is not lost between two visits."""


class Turn(Record, frozen=True):
    """What comes after a page."""

    follow: tuple[Request, ...] = ()
    is_end: bool = True
    """There is no more behind it."""
    notes: tuple[str, ...] = ()


def first_params(settings: Mapping[str, Any], progress: Progress) -> dict[str, str]:
    """What is asked for with the first page."""
    params = {}
    if settings["size_param"]:
        params[settings["size_param"]] = str(settings["page_size"])
    if settings["paging"] == fields.PAGE:
        params[settings["page_param"]] = str(settings["first_page"])
    newest = progress.watermark.at if progress.watermark else progress.newest_shown_at
    if settings["since_param"] and newest:
        params[settings["since_param"]] = _since(newest - _TIES, settings["since_format"])
    return params


def without(url: str, params: Mapping[str, str]) -> str:
    """The address without the parameters that are turned: given twice, nobody knows which of them counts."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if name not in params]
    return url if len(kept) == len(pairs) else parts._replace(query=urlencode(kept)).geturl()


def _since(at: datetime, form: str) -> str:
    if form == fields.EPOCH:
        return str(int(at.timestamp()))
    if form == fields.EPOCH_MS:
        return str(int(at.timestamp() * 1000))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def turn(
    document: Any, shown: int, answer: Answer, request: Request, settings: Mapping[str, Any], search: Searching
) -> Turn:
    """The request for the next page, if there is one and it may be asked for."""
    seen = request.carried.get("seen", 0) + shown
    following = _next(document, shown, answer, request, settings, search)
    if following is None:
        return Turn(is_end=not _is_cut(seen, settings["reach"]))
    trail = request.carried.get("trail", [])
    mark = sha256(repr((following.url, sorted(following.params.items()))).encode()).hexdigest()[:16]
    if mark in trail or (following.url, following.params) == (request.url, request.params):
        return Turn(is_end=False, notes=("its pages lead back to one that was read",))
    if len(trail) + 1 >= settings["max_pages"]:
        return Turn(is_end=False, notes=(f"not read beyond {settings['max_pages']} pages (max_pages)",))
    return Turn((following.plus(carried={**request.carried, "seen": seen, "trail": [*trail, mark]}),), is_end=False)


def _is_cut(seen: int, reach: int | None) -> bool:
    return reach is not None and seen >= _SURELY_WITHIN_REACH * reach


def _next(
    document: Any, shown: int, answer: Answer, request: Request, settings: Mapping[str, Any], search: Searching
) -> Request | None:
    paging = settings["paging"]
    if paging == fields.CURSOR:
        return _by_cursor(_cursor(document, settings["cursor"], search), answer, request, settings)
    if paging == fields.LINK:
        return _elsewhere(linked(answer.headers.get("link", "")), answer, request)
    # Fewer than were asked for do not tell the end: many an API gives at most so many, whatever it is asked.
    if paging not in (fields.PAGE, fields.OFFSET) or not shown:
        return None
    name = settings["page_param"] if paging == fields.PAGE else settings["offset_param"]
    step = 1 if paging == fields.PAGE else shown
    return request.plus(params={**request.params, name: str(int(request.params.get(name, "0")) + step)})


def _by_cursor(cursor: str | None, answer: Answer, request: Request, settings: Mapping[str, Any]) -> Request | None:
    if cursor is None:
        return None
    if pieces.WHOLE_URL.fullmatch(cursor):
        return _elsewhere(cursor, answer, request)
    return request.plus(params={**request.params, settings["cursor_param"]: cursor})


def _elsewhere(address: str | None, answer: Answer, request: Request) -> Request | None:
    """The page that an address of the answer leads to. The credential was given for what was asked, for no other."""
    whole = pieces.resolved(address, answer.url)
    if whole is None:
        return None
    asked = request.plus(url=whole, params={})
    return asked if is_same_host(request.url, whole) else asked.plus(identity=Identity.NONE, credential=None)


def _cursor(document: Any, expression: str | None, search: Searching) -> str | None:
    """The next cursor; None at the end, which is told by null, "", an absent one, or by `has_more: false`."""
    try:
        found = search(expression, document) if expression else _usual_cursor(document)
    except ValueError:
        return None
    # Zero is how a few say "no more".
    text = values.words(found, ("cursor", "href", "url", "next")) if found else None
    return text if text and len(text) <= _LONGEST_CURSOR else None


def _usual_cursor(document: Any) -> Any:
    if not isinstance(document, dict):
        return None
    around = [document, *(document[name] for name in AROUND_CURSORS if isinstance(document.get(name), dict))]
    if any(one.get(name) is False for one in around for name in HAS_MORE):
        return None
    return next((one[name] for one in around for name in CURSORS if _is_cursor(one.get(name))), None)


def _is_cursor(value: Any) -> bool:
    return (isinstance(value, str | int) and not isinstance(value, bool) and bool(value)) or (
        isinstance(value, dict) and bool(value)
    )


def linked(header: str) -> str | None:
    """The address that a Link header calls the next one."""
    return next((found[1] for found in LINK.finditer(header) if _is_next(found[2])), None)


def _is_next(parameters: str) -> bool:
    """Whether `rel`, and no other parameter, says so; it may say several things."""
    return any(
        name.lower() == "rel" and "next" in (quoted or bare).lower().split()
        for name, quoted, bare in PARAMETER.findall(parameters)
    )
