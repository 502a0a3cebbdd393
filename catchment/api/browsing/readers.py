"""Who looks at a page, whether they may, and whether what they ask for is really their own wish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import available_timezones

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from catchment import pages
from catchment.api.door import Door, TheDoor
from catchment.api.failures import Failure
from catchment.api.values import keepable
from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.pages import Reader

LANGUAGE, THEME, ZONE = "catchment_language", "catchment_theme", "catchment_zone"
"""What a reader prefers, kept by their browser."""
_ZONES = frozenset(available_timezones())


class Outside(HTTPException):
    """Nobody who came by the link: the way in is shown instead of the page."""

    def __init__(self) -> None:
        super().__init__(401, "come in by the link that was printed at start")


def reader_of(request: Request, door: Door) -> Reader:
    """Whoever asks, as far as their browser tells."""
    cookies = request.cookies
    asked = request.query_params.get("lang") or cookies.get(LANGUAGE)
    theme, zone = cookies.get(THEME, "auto"), cookies.get(ZONE, "UTC").replace("%2F", "/")
    cookie = _session(request, door)
    return Reader(
        language=pages.language(asked, request.headers.get("accept-language")),
        theme=theme if theme in pages.THEMES else "auto",
        zone=zone if zone in _ZONES else "UTC",
        now=door.shop.clock.now(),
        path=_path(request),
        done=done if (done := request.query_params.get("done", "")) in pages.DONE else "",
        token=door.sessions.token_of(cookie) if cookie else "",
        demo_rate=door.demo_rate,
    )


def _session(request: Request, door: Door) -> str | None:
    cookie = request.cookies.get(door.sessions.cookie_name)
    return cookie if door.sessions.is_valid(cookie) else None


def _path(request: Request) -> str:
    # Where a form was sent to, there is nothing to come back to.
    if request.method not in ("GET", "HEAD"):
        return "/"
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def inside(request: Request, door: TheDoor) -> Reader:
    """Somebody who came by the link."""
    reader = reader_of(request, door)
    if not reader.is_inside:
        raise Outside
    return reader.plus(alert_count=door.shop.store.alerts.count_open())


TheReader = Annotated[Reader, Depends(inside)]


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Form(Record, frozen=True):
    """What somebody filled in, and who."""

    reader: Reader
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "").strip()

    def starting(self, prefix: str) -> dict[str, str]:
        """Those fields whose names begin so, without that beginning."""
        return {name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)}


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a plain form. The body is bounded around all of it; of a name that comes twice the last counts."""
    try:
        body = (await request.body()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=500, errors="strict"))
    except ValueError:
        raise HTTPException(400, "this is not a form") from None


def is_own_wish(request: Request) -> bool:
    """Whether it comes from one of our own pages. Browsers tell; who tells nothing is no browser."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _change(request: Request, door: TheDoor) -> Form:
    """A change that a reader asks for by a form of ours: nobody else can make their browser ask for it."""
    reader = reader_of(request, door)
    if not reader.is_inside:
        raise Outside
    values = await read_form(request)
    cookie = _session(request, door) or ""
    if not is_own_wish(request) or not door.sessions.is_token_of(cookie, values.pop("token", "")):
        raise HTTPException(
            403, "this did not come from a page of catchment, or from one that is too old: load it again"
        )
    return Form(reader, _keepable(values))


def _keepable(values: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in values.items():
        try:
            keepable(value)
        except ValueError as error:
            raise InvalidInput(f"{name[:50]} holds {error}", field=name[:50]) from None
    return values


TheForm = Annotated[Form, Depends(_change)]


def local(path: str) -> str:
    """A path of ours, to go back to; whatever else was given leads to the start."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def failure_page(request: Request, failure: Failure, request_id: str) -> Response:
    reader = reader_of(request, request.app.state.door)
    if failure.status == 401 and not reader.is_inside:
        return HTMLResponse(pages.way_in(reader), 401)
    page = pages.failure(failure.status, failure.code, failure.message, request_id, reader)
    return HTMLResponse(page, failure.status, failure.headers)


def is_for_a_person(request: Request, error: Exception) -> bool:
    """Whether a page must tell of it; whoever stands outside of the pages is always shown the way in."""
    return isinstance(error, Outside) or (
        not request.url.path.startswith("/api") and "text/html" in request.headers.get("accept", "")
    )
