"""Sessions of the pages: the user of a request, access control and CSRF protection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import available_timezones

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from catchment.errors import CatchmentError, InvalidInput, NotFound
from catchment.lazy import pattern
from catchment.model import Record
from catchment.web.api.errors import NO_SUCH_ADDRESS, Failure
from catchment.web.api.params import keepable
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.pages.locale import language
from catchment.web.pages.locale.names import NAMES
from catchment.web.pages.render import THEMES, Reader, render

LANGUAGE, THEME, ZONE, IMAGES = "catchment_language", "catchment_theme", "catchment_zone", "catchment_images"
"""User preferences, stored in cookies."""
_ZONES = frozenset(available_timezones())


class Outside(HTTPException):
    """The user is not signed in: the sign-in page is shown instead."""

    def __init__(self) -> None:
        super().__init__(401, "come in by the link that was printed at start")


def reader_of(request: Request, context: WebContext, *, may_be_inside: bool = True) -> Reader:
    """The user of a request, as far as their browser says. Asks the database whether they are signed in, unless that
    is out of the question."""
    cookies = request.cookies
    is_inside = may_be_inside and session_of(request, context) is not None
    asked = request.query_params.get("lang") or cookies.get(LANGUAGE)
    theme, zone = cookies.get(THEME, "auto"), cookies.get(ZONE, "UTC").replace("%2F", "/")
    return Reader(
        language=language(asked, request.headers.get("accept-language")),
        theme=theme if theme in THEMES else "auto",
        zone=zone if zone in _ZONES else "UTC",
        now=context.app.clock.now(),
        # The URL of a submitted form is not a page to return to.
        path=str(request.url.replace(scheme="", netloc="")) if request.method in ("GET", "HEAD") else "/",
        loads_images=cookies.get(IMAGES) == "on",
        done=done if (done := request.query_params.get("done", "")) in NAMES["done"] else "",
        token=context.sessions.token_of(cookies[context.sessions.cookie_name]) if is_inside else "",
        demo_rate=context.demo_rate,
        platforms=context.app.platforms,
    )


def session_of(request: Request, context: WebContext) -> int | None:
    """The id of the browser's session; None if it is not signed in."""
    return context.sessions.find(request.cookies.get(context.sessions.cookie_name))


def inside(request: Request, context: WebContextDep) -> Reader:
    """The signed-in user; raises Outside if there is none."""
    reader = reader_of(request, context)
    if not reader.is_inside:
        raise Outside
    refuse_unstorable(request.query_params)
    return reader.replace(alert_count=context.app.store.alerts.count_open())


TheReader = Annotated[Reader, Depends(inside)]


class SubmittedForm(Record, frozen=True):
    """A submitted form, and the user who sent it."""

    reader: Reader
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "").strip()


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. The middleware limits the body; of a repeated name the last value counts."""
    try:
        body = (await request.body()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=500, errors="strict"))
    except ValueError:
        raise HTTPException(400, "this is not a form") from None


def is_own_wish(request: Request) -> bool:
    """Whether the request comes from one of our pages. Browsers send this; a client that does not is not a browser."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _change(request: Request, context: WebContextDep) -> SubmittedForm:
    """A form of ours, submitted by the user: no other site can make their browser send it."""
    reader = await run_in_threadpool(reader_of, request, context)
    if not reader.is_inside:
        raise Outside
    values = await read_form(request)
    cookie = request.cookies[context.sessions.cookie_name]
    if not is_own_wish(request) or not context.sessions.is_token_of(cookie, values.pop("token", "")):
        raise HTTPException(
            403, "this did not come from a page of catchment, or from one that is too old: load it again"
        )
    refuse_unstorable(values)
    return SubmittedForm(reader, values)


def refuse_unstorable(values: Mapping[str, str]) -> None:
    """Refuse values that no database can store or query: PostgreSQL has no NUL."""
    for name, value in values.items():
        try:
            keepable(value)
        except ValueError as error:
            raise InvalidInput("{name} contains {why}", field=name[:50], name=name[:50], why=str(error)) from None


TheForm = Annotated[SubmittedForm, Depends(_change)]


def local(path: str) -> str:
    """A path of ours to return to; anything else becomes the start page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def failure_page(request: Request, failure: Failure, request_id: str) -> Response:
    """An error page in the user's language; the sign-in page if that is what is missing."""
    context: WebContext = request.state.context
    try:
        reader = reader_of(request, context)
    except CatchmentError:
        # The database is unavailable: the user is unknown, and everybody may see the error.
        reader = reader_of(request, context, may_be_inside=False)
    if failure.status == 401 and not reader.is_inside:
        return sign_in_page(reader)
    is_not_found = failure.code == NotFound.code
    return render(
        "failure.html",
        reader,
        failure.status,
        headers=failure.headers,
        is_missing=failure.message == NO_SUCH_ADDRESS,
        is_not_found=is_not_found,
        # The title says it already.
        words=None if is_not_found else reader.locale.lookup("error", failure.code),
        message=reader.locale.message(failure.translatable or failure.message),
        request_id=request_id,
    )


def sign_in_page(reader: Reader, wrong: str = "", wait_seconds: int = 0) -> Response:
    """`wrong`: what did not let the user in, a link or a key."""
    status, headers = (429, {"Retry-After": str(wait_seconds)}) if wait_seconds else (401, None)
    return render("way_in.html", reader, status, headers=headers, wrong=wrong, wait_seconds=wait_seconds)


def is_for_a_person(request: Request, error: Exception) -> bool:
    """Whether to answer with a page; a user who is not signed in always gets the sign-in page."""
    return isinstance(error, Outside) or (
        not request.url.path.startswith("/api") and "text/html" in request.headers.get("accept", "")
    )


SETTING = "set."
"""Prefix of fields that hold a setting of the source's kind."""
_MOST_WORDS = 100
_LONGEST_WORD = 100

_LISTED = pattern(r"\s*(?:\"((?:[^\"]|\"\")*)\"[^\S\n]*|([^,，\n]*))(?:[,，\n]|\Z)")
_NEEDS_QUOTES = pattern(r"[,，]|^\"")


def lines(text: str) -> list[str]:
    """The values separated by commas or line ends, without duplicates; one in double quotes may contain commas."""
    words = [
        (quoted.replace('""', '"') or plain).strip()[:_LONGEST_WORD] for quoted, plain in _LISTED.findall(text.strip())
    ]
    return list(dict.fromkeys(word for word in words if word))[:_MOST_WORDS]


def joined(values: Iterable[str]) -> str:
    """The values as `lines` reads them: an imported category or a source's name may contain a comma."""
    return ", ".join(map(_as_listed, values))


def _as_listed(value: str) -> str:
    return '"{}"'.format(value.replace('"', '""')) if _NEEDS_QUOTES.search(value) else value


def typed_settings(values: Mapping[str, str]) -> dict[str, str]:
    """The settings of the source's kind as they were typed into a form."""
    return {name.removeprefix(SETTING): value.strip() for name, value in values.items() if name.startswith(SETTING)}
