"""The pages' own paths: the start page, the way in, the stylesheet."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from catchment import pages
from catchment.api.door import Door, TheDoor
from catchment.api.failures import Failure
from catchment.api.keys import SESSION_SECONDS
from catchment.api.standing import overview

router = APIRouter(include_in_schema=False)

_DEMO_SECONDS = 2


@router.api_route("/", methods=["GET", "HEAD"])
def start(request: Request, door: TheDoor) -> Response:
    if not _is_logged_in(request, door):
        return HTMLResponse(pages.way_in(_language(request)), 401)
    # In a demonstration something happens every second: the browser looks again by itself, without a script.
    headers = {"Refresh": str(_DEMO_SECONDS)} if door.demo_rate is not None else None
    return HTMLResponse(pages.start(overview(door), _language(request), door.shop.clock.now()), headers=headers)


@router.get("/login")
def log_in(request: Request, door: TheDoor, token: str = "") -> Response:
    """Come in by the link that was printed at start. The address without the token is what stays in the history."""
    if not door.sessions.admits(token):
        return HTMLResponse(pages.way_in(_language(request), is_link_wrong=True), 401)
    response = RedirectResponse("/", 303)
    # Lax, not Strict: the link may be opened from a mail or a chat, and the page behind it must know its reader.
    # The pages change nothing, and the API does not look at cookies, so that nobody can be made to do anything.
    response.set_cookie(
        door.sessions.cookie_name, door.sessions.new_cookie(), SESSION_SECONDS, httponly=True, samesite="lax"
    )
    return response


@router.get(pages.STYLE_PATH)
async def style() -> Response:
    # Its address changes with its contents.
    return Response(
        pages.STYLE, media_type="text/css", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


def failure_page(request: Request, failure: Failure, request_id: str) -> Response:
    words = pages.failure(failure.status, failure.message, request_id, _language(request))
    return HTMLResponse(words, failure.status, failure.headers)


def is_for_a_person(request: Request) -> bool:
    return not request.url.path.startswith("/api") and "text/html" in request.headers.get("accept", "")


def _language(request: Request) -> str:
    return pages.language(request.query_params.get("lang"), request.headers.get("accept-language"))


def _is_logged_in(request: Request, door: Door) -> bool:
    return door.sessions.is_valid(request.cookies.get(door.sessions.cookie_name))
