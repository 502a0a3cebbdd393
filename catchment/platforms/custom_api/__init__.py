"""Any JSON API, by its address.

**Access.** Give the address of a list. Where the list stands in the answer, and what its items' parts are called, is
found out by itself for the usual shapes and names; where it is not, JMESPath says it: `--set items=data.posts`,
`--set title=attributes.headline`. `catchment sources add custom_api URL --check` shows the first items as they would be
stored, before anything is. A credential (`--credential NAME`) is sent as it stands in the vault, or in the header that
the source names: `--set header=X-Api-Key`, `--set "header=Authorization: Token"`. No secret stands in a source's
settings.

Pages turn by `paging`: `cursor` (found by itself, or by the expression `cursor`), `page`, `offset`, or `link` for the
header of that name. `since_param` has only what is new asked for: it takes the time of the newest item that is stored,
less a second.

**Limits.** One polite request a page, the first one conditional where the server gave an ETag or a date; at most
`max_pages` of them. Expressions have at most 500 characters, and make at most so much of an answer. Of one answer the
first 20,000 items are read. Ids are kept to the last digit, however long; dates are read in any common form.

**Blind spots.** A list is taken for a `snapshot`, which proves nothing about what is missing, unless the source says
`listing=newest_first`: dates of one page say nothing about the next. Then it is read down to what is stored, and what
lies beyond `max_pages`, `reach` or a cursor that leads back is recorded as a gap. Pages by number or offset shift when
something is posted or removed meanwhile. An item that is no longer shown is not taken for deleted. Only GET is asked,
and answers other than JSON are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from catchment import charset
from catchment.errors import LoginNeeded, PlatformError, Refused, SlowDown, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Blame,
    Budget,
    Identity,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
)
from catchment.platforms.conditions import conditions
from catchment.platforms.custom_api import fields, items, paging, shapes, values
from catchment.platforms.custom_api.expressions import Searching, TooMuch
from catchment.platforms.feeds import address, discovery, jsonfeed, pieces

NAME = "custom_api"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
READER_VERSION = 1
KINDS = (
    Kind(
        name="custom_api",
        what="A list of a JSON API, by its address",
        interval_minutes=120,
        example="https://api.example.com/v1/posts",
        listings=(Listing(fields.SNAPSHOT, Order.SNAPSHOT), Listing(fields.NEWEST_FIRST, Order.NEWEST_FIRST)),
        fields=fields.FIELDS,
    ),
)

HELPS = "give the address of a list, as https://api.example.com/v1/posts"
ACCEPT = "application/json, application/*+json;q=0.9, */*;q=0.1"
COMPLAINTS = ("error", "errors", "error_message", "errorMessage", "fault")
_LONGEST_COMPLAINT = 64_000
"""An answer that only complains is short; a longer one is read once, not twice."""
_SAID = 200
TOO_OFTEN = re.compile(r"rate.?limit|too many|quota|throttl|slow down|try again later", re.IGNORECASE)
NO_ENTRY = re.compile(r"unauthori[sz]ed|authenticat|api.?key|token|log ?in|credential", re.IGNORECASE)


def understand(text: str) -> Target:
    return Target(kind=NAME, address=address.canonical(text, helps=HELPS))


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    """The first page; conditional if this very reader has read the last answer."""
    settings = fields.settled(source.settings)
    params = paging.first_params(settings, progress)
    headers = {"Accept": ACCEPT, **(settings["headers"] or {}), **conditions(progress, READER_VERSION)}
    return [
        Request(
            url=paging.without(source.target, {**params, settings["cursor_param"]: ""} if params else {}),
            params=params,
            headers=headers,
            listing=ask.listing,
            carried={"settings": source.settings},
            identity=Identity.OPTIONAL if source.credential else Identity.NONE,
            credential=source.credential,
            secret_header=settings["header"],
        )
    ]


# ── what came ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """A wall in front of the API, or an error that calls itself 200."""
    if answer.status == 429:
        return None
    if discovery.is_wall(answer.body):
        error = Refused("the site asks to prove that a browser is reading", "ask for an API that programs may read")
        return Refusal(error, blames=Blame.HOST)
    settings = fields.settled(request.carried.get("settings", {}))
    if answer.status != 200 or (settings["error"] is None and len(answer.body) > _LONGEST_COMPLAINT):
        return None
    complaint = _complaint(answer, settings["error"])
    return _refused(complaint, request) if complaint else None


def _complaint(answer: Answer, expression: str | None) -> str | None:
    """What an answer has to complain about; by the source's expression, or by the usual names if no list is there."""
    try:
        document = _document(answer)
        if expression is not None:
            return _told(Searching()(expression, document))
        if isinstance(document, dict) and not _has_list(document):
            return next((told for name in COMPLAINTS if (told := _told(document.get(name)))), None)
    except (Unreadable, ValueError, TooMuch):
        pass  # whoever reads it will say so
    return None


def _has_list(document: dict[str, Any]) -> bool:
    try:
        return bool(shapes.entries({name: one for name, one in document.items() if name not in COMPLAINTS}))
    except shapes.Shapeless:
        return False


def _told(found: Any) -> str | None:
    """Null, false, zero and whatever is empty complain of nothing."""
    if isinstance(found, list):
        found = found[0] if found else None
    if not found or not values.truth(found):
        return None
    inside = ("message", "detail", "error", "title", "description", "reason", "code", "type")
    return (values.words(found, inside) or items.excerpt(found))[:_SAID]


def _refused(complaint: str, request: Request) -> Refusal:
    what = f"the API says: {complaint}"
    if TOO_OFTEN.search(complaint):
        return Refusal(SlowDown(what, "it is asked again later; a longer interval avoids this"), blames=Blame.HOST)
    if NO_ENTRY.search(complaint):
        error: PlatformError = LoginNeeded(what, "add or renew the credential, and name it in the source")
        return Refusal(error, blames=Blame.CREDENTIAL if request.credential else Blame.REQUEST)
    return Refusal(Refused(what, "check the source's address and settings"))


def read(answer: Answer, request: Request) -> Reading:
    settings = fields.settled(request.carried.get("settings", {}))
    document, search = _document(answer), Searching()
    try:
        entries, notes = _entries(document, settings["items"], search)
        read_items, skipped = items.read_each(entries, settings, search, answer.url)
        turn = paging.turn(document, len(entries), answer, request, settings, search)
    except TooMuch as error:
        raise Unreadable(str(error), "write simpler expressions into the source's settings") from None
    return Reading(
        items=read_items,
        skipped=skipped,
        follow=turn.follow,
        is_end=turn.is_end,
        title=_title(document),
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
        raise Unreadable("the answer is empty", "the server sends nothing at present; it is asked again")
    if text[0] not in "{[":
        raise Unreadable("what came is no JSON", "check the address in a browser: an API's answer begins with { or [")
    return jsonfeed.document(text)[0]


def _entries(document: Any, expression: str | None, search: Searching) -> tuple[list[Any], tuple[str, ...]]:
    try:
        if expression is None:
            return shapes.entries(document), ()
        found = shapes.chosen(search(expression, document))
    except shapes.Shapeless as error:
        raise Unreadable(str(error), "say where the list is: --set items=EXPRESSION") from None
    except ValueError as error:
        raise Unreadable(f"`items` cannot be used on what came: {error}", "correct that setting") from None
    return ([], ("`items` finds nothing in the answer",)) if found is None else (found, ())


def _title(document: Any) -> str | None:
    title = document.get("title") if isinstance(document, Mapping) else None
    return pieces.plain_title(title) if isinstance(title, str) else None
