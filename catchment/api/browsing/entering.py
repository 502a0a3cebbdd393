"""The way in and out, what a reader prefers, and what pages load."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from catchment import pages
from catchment.api.browsing.readers import (
    LANGUAGE,
    THEME,
    TheForm,
    TheReader,
    is_own_wish,
    local,
    read_form,
    reader_of,
)
from catchment.api.door import Door, TheDoor
from catchment.api.keys import SESSION_SECONDS
from catchment.api.standing import overview

router = APIRouter()

_A_YEAR = 365 * 86_400
Given = Annotated[dict[str, str], Depends(read_form)]


@router.api_route("/", methods=["GET", "HEAD"])
def start(door: TheDoor, reader: TheReader) -> Response:
    return HTMLResponse(pages.start(overview(door), reader))


@router.get("/login")
def log_in(request: Request, door: TheDoor, token: str = "") -> Response:
    """Come in by the link that was printed at start. The address without the token is what stays in the history."""
    if not door.sessions.admits(token):
        return HTMLResponse(pages.way_in(reader_of(request, door), is_link_wrong=bool(token)), 401)
    return _come_in(door, "/")


@router.post("/login")
def log_in_by_key(request: Request, door: TheDoor, given: Given) -> Response:
    """Come in by a key of the API."""
    if not is_own_wish(request) or not door.keys.is_valid(given.get("key", "").strip().encode()):
        return HTMLResponse(pages.way_in(reader_of(request, door), is_key_wrong=True), 401)
    return _come_in(door, local(given.get("back", "/")))


@router.post("/logout")
def log_out(door: TheDoor, form: TheForm) -> Response:
    response = RedirectResponse("/", 303)
    response.delete_cookie(door.sessions.cookie_name, httponly=True, samesite="lax")
    return response


@router.post("/preferences")
def prefer(request: Request, given: Given) -> Response:
    """Language and colours: kept by the browser, and nobody else's business."""
    if not is_own_wish(request):
        raise HTTPException(403, "this did not come from a page of catchment")
    response = RedirectResponse(local(given.get("back", "/")), 303)
    for name, choices, value in (
        (LANGUAGE, tuple(pages.LANGUAGES), given.get("language")),
        (THEME, pages.THEMES, given.get("theme")),
    ):
        if value in choices:
            response.set_cookie(name, value, _A_YEAR, httponly=True, samesite="lax")
    return response


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    found = pages.ASSETS.get(f"/static/{name}")
    if found is None:
        raise HTTPException(404, "there is no such file")
    # Its address changes with its contents.
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media_type, headers=headers)


def _come_in(door: Door, path: str) -> Response:
    response = RedirectResponse(path, 303)
    # Lax, not Strict: the link may be opened from a mail or a chat, and the page behind it must know its reader. What
    # changes anything needs more than the cookie.
    response.set_cookie(
        door.sessions.cookie_name, door.sessions.new_cookie(), SESSION_SECONDS, httponly=True, samesite="lax"
    )
    return response
