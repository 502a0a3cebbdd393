"""Any JSON API, by its address.

**Access.** Use the address of a list. The list in the answer, and the parts of its items, are found automatically for
common shapes and names; otherwise JMESPath expressions say where they are: `--set items=data.posts`, `--set
title=attributes.headline`. `catchment sources add custom_api URL --check` shows the first items as they would be
stored. A credential (`--credential NAME`) is sent as stored, or in the header that the source names: `--set
header=X-Api-Key`, `--set "header=Authorization: Token"`. A source's settings never contain a secret.

A preset sets all of this for a well-known type of API; settings that you give yourself take precedence:

- `--set preset=wordpress`: posts of a WordPress site, `https://HOST/wp-json/wp/v2/posts`. With `?_embed` in the address
  authors and tags have names.
- `--set preset=django_rest`: a list of the Django REST framework (`results`, `next`), with any of its paging styles.
- `--set preset=link_header`: paging by the `Link` header, as used by GitHub, GitLab and Mastodon.

If the newest items come first, as on most blogs, add `--set listing=newest_first`: gaps are then noticed.

`paging` is `cursor` (found automatically, or by the expression `cursor`), `page`, `offset`, or `link` for the header of
that name. Paging by number or offset ends with an empty page, or with an answer that says that there is no such page
(404, or 400 with a message about the page). A parameter that is already in the address is replaced. A page with the
same items as the page before is an error: the API does not page in that way. `since_param` requests only new items: it
gets the time of the newest stored item, minus a second.

**Limits.** One polite request per page, the first one conditional if the server gave an ETag or a date; at most
`max_pages` of them. Expressions are limited to 500 characters, and in what they may produce. The first 20,000 items of
an answer are read. Ids keep all their digits; dates are read in any common form.

**Blind spots.** A list counts as a `snapshot`, which proves nothing about missing items, unless the source says
`listing=newest_first`: the dates of one page say nothing about the next. It is then read down to what is stored, and
what lies beyond `max_pages`, `reach` or a cursor that leads back is recorded as a gap. Pages by number or offset shift
when something is posted or removed in the meantime. An item that is no longer shown does not count as deleted. Only GET
requests are sent, and only JSON is read.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from catchment.errors import LoginNeeded, Refused, SlowDown, Unreadable
from catchment.lazy import pattern
from catchment.messages import message, reason_of
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common import coercion, urls
from catchment.platforms._common.http import conditions, page_request, wall_refusal
from catchment.platforms._common.json import decode_text, excerpt, read_each
from catchment.platforms.custom_api import fields, items, paging
from catchment.platforms.custom_api.fields import LimitedSearch, TooMuch
from catchment.text import charset

NAME = "custom_api"
TITLE = "JSON APIs"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
PARSER_VERSION = 1
KINDS = (
    Kind(
        name="custom_api",
        title="JSON API",
        what="A list of items from a JSON API: its address",
        interval_minutes=120,
        example="https://api.example.com/v1/posts",
        listings=(Listing(fields.SNAPSHOT, Order.SNAPSHOT), Listing(fields.NEWEST_FIRST, Order.NEWEST_FIRST)),
        fields=fields.FIELDS,
    ),
)

CHINESE = fields.CHINESE

HELPS = message("enter the address of a list, such as https://api.example.com/v1/posts")
ASK_FOR_API = message("ask the site for an API that programs may use")
ACCEPT = "application/json, application/*+json;q=0.9, */*;q=0.1"
COMPLAINTS = ("error", "errors", "error_message", "errorMessage", "fault")
_LONGEST_COMPLAINT = 64_000
"""An answer that is only an error is short; a longer one is parsed once, not twice."""
_LONGEST_MESSAGE = 200
TOO_OFTEN = pattern(r"rate.?limit|too many|quota|throttl|slow down|try again later", re.IGNORECASE)
NO_ENTRY = pattern(r"unauthori[sz]ed|authenticat|api.?key|token|log ?in|credential", re.IGNORECASE)


def understand(text: str, kind: str | None = None) -> Target:
    return Target(kind=NAME, address=urls.canonical(text, helps=HELPS))


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    """Returns the request for the first page; conditional if the current parser has parsed the last answer."""
    settings = fields.settled(source.settings)
    url, params = paging.first_page(source.target, settings, progress)
    is_continued = plan.listing == fields.NEWEST_FIRST and progress.watermark is not None
    state = {"settings": source.settings, "must_reach_stored": is_continued}
    request = page_request(source, progress, plan, ACCEPT, PARSER_VERSION, state)
    headers = {"Accept": ACCEPT, **(settings["headers"] or {}), **conditions(progress, PARSER_VERSION)}
    return [request.replace(url=url, params=params, headers=headers, secret_header=settings["header"])]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the error for a bot check in front of the API, or for an error with status 200."""
    if answer.status == 429:
        return None
    if wall := wall_refusal(answer, ASK_FOR_API):
        return wall
    settings = fields.settled(request.state.get("settings", {}))
    if answer.status != 200 or (settings["error"] is None and len(answer.body) > _LONGEST_COMPLAINT):
        return None
    complaint = _complaint(answer, settings["error"])
    if complaint is None:
        return None
    what = "the API says: {complaint}"
    if TOO_OFTEN.search(complaint):
        slow_down = SlowDown(what, "it is retried later; a longer interval avoids this", complaint=complaint)
        return Refusal(slow_down, blames=FailureScope.HOST)
    if NO_ENTRY.search(complaint):
        no_entry = LoginNeeded(what, "add or renew the credential, and name it in the source", complaint=complaint)
        return Refusal(no_entry, blames=FailureScope.CREDENTIAL if request.credential else FailureScope.REQUEST)
    return Refusal(Refused(what, "check the source's address and settings", complaint=complaint))


def accepts(answer: Answer, request: Request) -> bool:
    """Accepts a missing page, unless it is the first: it ends the list."""
    return paging.is_past_the_last(answer, request, fields.settled(request.state.get("settings", {})))


def _complaint(answer: Answer, expression: str | None) -> str | None:
    """Returns the error message in an answer; by the source's expression, or by the usual names if there is no list."""
    try:
        document = _document(answer)
        if expression is not None:
            return _message(LimitedSearch()(expression, document))
        if not isinstance(document, dict):
            return None
        if items.entries_of({name: value for name, value in document.items() if name not in COMPLAINTS}):
            return None
    except items.NoListFound:
        pass
    except (Unreadable, ValueError, TooMuch):
        return None  # the parser will report it
    return next((message for name in COMPLAINTS if (message := _message(document.get(name)))), None)


def _message(value: Any) -> str | None:
    """Returns the message; null, false, zero and empty values are none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not value or not items.truth(value):
        return None
    inside = ("message", "detail", "error", "title", "description", "reason", "code", "type")
    return (items.words(value, inside) or excerpt(value))[:_LONGEST_MESSAGE]


def read(answer: Answer, request: Request) -> Reading:
    settings = fields.settled(request.state.get("settings", {}))
    if paging.is_past_the_last(answer, request, settings):
        # The page before was the last.
        return Reading(is_end=paging.is_whole(request.state.get("seen", 0), settings))
    document, search = _document(answer), LimitedSearch()
    try:
        entries, notes = _entries(document, settings["items"], search)
        read_items, skipped = read_each(entries, partial(items.read_item, settings, search, answer.url), "items")
        shown = paging.page_of(entries, read_items)
        turn = paging.turn(document, shown, answer, request, settings, search)
    except TooMuch as error:
        raise Unreadable(reason_of(error), "use simpler expressions in the source's settings") from None
    title = document.get("title") if isinstance(document, dict) else None
    return Reading(
        items=read_items,
        skipped=skipped,
        follow=turn.follow,
        is_end=turn.is_end,
        title=coercion.plain_title(coercion.text(title)),
        notes=(*notes, *turn.notes),
    )


def _document(answer: Answer) -> Any:
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        pass
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    text = text.lstrip("\ufeff \t\r\n")
    if not text:
        raise Unreadable("the answer is empty", "the server sends nothing at the moment; the request will be retried")
    if text[0] not in "{[":
        raise Unreadable(
            "the answer is not JSON", "check the address in a browser: an API's answer begins with a brace or a bracket"
        )
    return decode_text(text)[0]


def _entries(document: Any, expression: str | None, search: LimitedSearch) -> tuple[list[Any], tuple[str, ...]]:
    try:
        if expression is None:
            return items.entries_of(document), ()
        entries = items.chosen(search(expression, document))
    except items.NoListFound as error:
        raise Unreadable(reason_of(error), "specify where the list is: --set items=EXPRESSION") from None
    except ValueError as error:
        raise Unreadable(
            "`items` does not fit the answer: {why}", "correct that setting", why=reason_of(error)
        ) from None
    return ([], ("`items` finds nothing in the answer",)) if entries is None else (entries, ())
