"""Paging of an API by cursor, page number, offset or link, and how the last page is recognised.

The end must be certain, or else be reported: a walk that we break off (too many pages, a cursor that comes again)
has not seen everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.model import Answer, Item, Progress, Record, Request, SettingValues
from catchment.platforms._common import coercion
from catchment.platforms._common.http import page_elsewhere
from catchment.platforms.custom_api import fields
from catchment.platforms.custom_api.fields import LimitedSearch
from catchment.platforms.custom_api.items import words

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
LINK = pattern(r"<([^<>]{1,4000})>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)")
PARAMETER = pattern(r";\s*([\w*-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")
_LONGEST_CURSOR = 4_000
_PART_OF_ADDRESS = pattern(r"(?:/[^\s?]*)?\?\S+")
"""A cursor like `/posts?page=2` is a URL, too."""
_WHOLE_NUMBER = pattern(r"\d{1,15}")
_LONGEST_COMPLAINT = 4_000
_ABOUT_PAGES = pattern(rb"page|offset|out of range|no more", re.IGNORECASE)
_NO_SUCH_PAGE = pattern(
    rb"(?:invalid|no|last)[\s_.-]*pages?\b|page[\s_.-]*(?:number|index)|page\W{0,3}\d|offset|no[\s_-]more"
    rb"|out[\s_-]of[\s_-](?:range|bounds)|contains no results",
    re.IGNORECASE,
)
"""About the number of a page. "404 page not found" says nothing of it: many servers answer so to a wrong path."""
_SURELY_WITHIN_REACH = 0.5
"""Lists leave out what was removed: one that ends by itself beyond this share of its reach was cut there."""
_TIES = timedelta(seconds=1)
"""Requested again, so that items of the newest item's moment are not lost between two visits."""


class ApiPage(Record, frozen=True):
    """What one page showed."""

    count: int
    """Its entries, usable or not."""
    mark: str
    """The same for a page with the same items, whatever their order and counters; empty for a page without any."""


def page_of(entries: Sequence[Any], items: Sequence[Item]) -> ApiPage:
    # By what identifies an item, not by all its content: scores and views change between two requests.
    shown = sorted(
        item.external_id or _digest((item.url, item.title, item.text, item.html, item.created_at)) for item in items
    )
    return ApiPage(len(entries), _digest(shown) if shown else "")


class NextPage(Record, frozen=True):
    """What comes after a page."""

    follow: tuple[Request, ...] = ()
    is_end: bool = True
    """There is no more behind it."""
    notes: tuple[str, ...] = ()


def first_page(url: str, settings: SettingValues, progress: Progress) -> tuple[str, dict[str, str]]:
    """Returns the URL and the parameters of the first page. A parameter is removed from the URL."""
    params = {}
    if settings["size_param"]:
        params[settings["size_param"]] = str(settings["page_size"])
    if settings["paging"] == fields.PAGE:
        params[settings["page_param"]] = str(settings["first_page"])
    if settings["paging"] == fields.OFFSET:
        name = settings["offset_param"]
        offsets = [value for key, value in parse_qsl(urlsplit(url).query) if key == name]
        if offsets and _WHOLE_NUMBER.fullmatch(offsets[0]):
            params[name] = offsets[0]
    newest = progress.watermark.at if progress.watermark else progress.newest_shown_at
    if settings["since_param"] and newest:
        params[settings["since_param"]] = SINCE_FORMATS[settings["since_format"]](newest - _TIES)
    # A cursor in the URL is an old one: with it, every visit would begin further down.
    turned = {settings["cursor_param"]} if settings["paging"] == fields.CURSOR else set()
    return without(url, params.keys() | turned), params


def with_param(request: Request, name: str, value: str) -> Request:
    """Returns the request with this parameter once: the one in its URL is removed. Given twice, it is unclear which
    counts."""
    return request.replace(url=without(request.url, {name}), params={**request.params, name: value})


def without(url: str, names: Set[str]) -> str:
    """Returns the URL without these parameters; the others stay as they are written."""
    parts = urlsplit(url)
    pairs = parts.query.split("&")
    kept = [pair for pair in pairs if unquote_plus(pair.partition("=")[0]) not in names]
    return url if len(kept) == len(pairs) else parts._replace(query="&".join(kept)).geturl()


def is_past_the_last(answer: Answer, request: Request, settings: SettingValues) -> bool:
    """Whether the answer says that there is no such page. WordPress has 400 (`rest_post_invalid_page_number`) for that,
    Django REST 404 (`Invalid page.`).

    A 404 without a word about the page's number may be a passing failure. It ends the list only where nothing is
    concluded from the end: a walk that must reach stored items would take what it did not see for proven.
    """
    if settings["paging"] not in (fields.PAGE, fields.OFFSET) or not request.state.get("trail"):
        return False
    body = answer.body[:_LONGEST_COMPLAINT]
    complaint = _NO_SUCH_PAGE if answer.status == 404 else _ABOUT_PAGES
    is_api_error = answer.status in (400, 404, 416, 422) and not body.lstrip().startswith(b"<")
    if is_api_error and complaint.search(body):
        return True
    return answer.status == 404 and not request.state.get("must_reach_stored")


SINCE_FORMATS: dict[str, Callable[[datetime], str]] = {
    fields.ISO: lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    fields.EPOCH: lambda at: str(int(at.timestamp())),
    fields.EPOCH_MS: lambda at: str(int(at.timestamp() * 1000)),
}


def is_whole(seen: int, settings: SettingValues) -> bool:
    """Whether a list that ended after this many entries was not cut off at its reach."""
    return settings["reach"] is None or seen < _SURELY_WITHIN_REACH * settings["reach"]


def turn(
    document: Any, shown: ApiPage, answer: Answer, request: Request, settings: SettingValues, search: LimitedSearch
) -> NextPage:
    """Returns the request for the next page, if there is one and it may be sent. Raises Unreadable for a page that
    shows the same as the one before it: the API does not page this way."""
    trail = request.state.get("trail", [])
    if shown.mark and shown.mark == request.state.get("page"):
        number, paging = len(trail) + 1, settings["paging"]
        parameter = f"{paging}_param"
        if parameter in settings:
            helps = "the API ignores the parameter {name!r}: set {parameter}, or another paging"
        else:
            helps = "the API does not support paging={paging}: choose another, or none"
        raise Unreadable(
            "page {number} of the list shows the same items as page {previous}",
            helps,
            number=number,
            previous=number - 1,
            name=settings.get(parameter),
            parameter=parameter,
            paging=paging,
        )
    seen = request.state.get("seen", 0) + shown.count
    following = _next(document, shown.count, answer, request, settings, search)
    if following is None:
        return NextPage(is_end=is_whole(seen, settings))
    mark = _digest((following.url, sorted(following.params.items())))
    if mark in trail or (following.url, following.params) == (request.url, request.params):
        return NextPage(is_end=False, notes=("its pages lead back to one that was read",))
    if len(trail) + 1 >= settings["max_pages"]:
        return NextPage(is_end=False, notes=(f"not read beyond {settings['max_pages']} pages (max_pages)",))
    state = {**request.state, "seen": seen, "trail": [*trail, mark], "page": shown.mark}
    return NextPage((following.replace(state=state),), is_end=False)


def _digest(value: object) -> str:
    return sha256(repr(value).encode(errors="surrogatepass")).hexdigest()[:16]


def _next(
    document: Any, shown: int, answer: Answer, request: Request, settings: SettingValues, search: LimitedSearch
) -> Request | None:
    paging = settings["paging"]
    if paging == fields.CURSOR:
        cursor = _cursor(document, settings["cursor"], search)
        if cursor is None or coercion.WHOLE_URL.fullmatch(cursor) or _PART_OF_ADDRESS.fullmatch(cursor):
            return _elsewhere(cursor, answer, request)
        return with_param(request, settings["cursor_param"], cursor)
    if paging == fields.LINK:
        return _elsewhere(linked(answer.headers.get("link", "")), answer, request)
    # Fewer than requested do not mean the end: many APIs have a maximum, whatever the request says.
    if paging not in (fields.PAGE, fields.OFFSET) or not shown:
        return None
    name = settings["page_param"] if paging == fields.PAGE else settings["offset_param"]
    step = 1 if paging == fields.PAGE else shown
    return with_param(request, name, str(int(request.params.get(name, "0")) + step))


def _elsewhere(address: str | None, answer: Answer, request: Request) -> Request | None:
    url = coercion.resolved(address, answer.url)
    return page_elsewhere(request, url) if url else None


def _cursor(document: Any, expression: str | None, search: LimitedSearch) -> str | None:
    """Returns the next cursor; None at the end, which is null, "", a missing one, or `has_more: false`."""
    try:
        cursor = search(expression, document) if expression else _usual_cursor(document)
    except ValueError:
        return None
    # A few APIs use zero for "no more".
    text = words(cursor, ("cursor", "href", "url", "next")) if cursor else None
    return text if text and len(text) <= _LONGEST_CURSOR else None


def _usual_cursor(document: Any) -> Any:
    if not isinstance(document, dict):
        return None
    around = [document, *(document[name] for name in AROUND_CURSORS if isinstance(document.get(name), dict))]
    if any(holder.get(name) is False for holder in around for name in HAS_MORE):
        return None
    values = (holder.get(name) for holder in around for name in CURSORS)
    return next(
        (value for value in values if value and value is not True and isinstance(value, str | int | dict)), None
    )


def linked(header: str) -> str | None:
    """Returns the URL that a Link header calls the next one: by `rel`, which may have several values."""
    for link in LINK.finditer(header):
        for name, quoted, bare in PARAMETER.findall(link[2]):
            if name.lower() == "rel" and "next" in (quoted or bare).lower().split():
                return link[1]
    return None
