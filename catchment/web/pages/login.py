"""Signing in and out, user preferences, and static assets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.exceptions import HTTPException

from catchment.web.auth import SESSION_SECONDS, Checked
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.middleware import address_of
from catchment.web.pages.locale import LANGUAGES
from catchment.web.pages.overview import overview_page
from catchment.web.pages.render import ASSETS, THEMES, redirect
from catchment.web.pages.session import (
    IMAGES,
    LANGUAGE,
    THEME,
    TheForm,
    TheReader,
    is_own_wish,
    local,
    read_form,
    reader_of,
    session_of,
    sign_in_page,
)

router = APIRouter()

_A_YEAR = 365 * 86_400
FormFields = Annotated[dict[str, str], Depends(read_form)]


@router.api_route("/", methods=["GET", "HEAD"])
def start(context: WebContextDep, reader: TheReader) -> Response:
    return overview_page(context, reader)


@router.get("/login")
def log_in(request: Request, context: WebContextDep, token: str = "") -> Response:
    """Sign in with a link. The address without the token is what stays in the history."""
    if not token:
        return sign_in_page(reader_of(request, context))
    return _signed_in(request, context, context.guard.check_link(token, address_of(request.scope)), "link", "/")


@router.post("/login")
def log_in_by_key(request: Request, context: WebContextDep, fields: FormFields) -> Response:
    """Sign in with a key of the API."""
    if not is_own_wish(request):
        return sign_in_page(reader_of(request, context), "key")
    checked = context.guard.check_key(fields.get("key", "").strip().encode(), address_of(request.scope))
    return _signed_in(request, context, checked, "key", local(fields.get("back", "/")))


def _signed_in(request: Request, context: WebContext, checked: Checked, opened_by: str, path: str) -> Response:
    if not checked.is_valid:
        return sign_in_page(reader_of(request, context), opened_by, checked.wait_seconds)
    cookie = context.sessions.open(opened_by, request.headers.get("user-agent", ""))
    response = redirect(path)
    # Lax, not Strict: the link may be opened from a mail or a chat, and the next page must know the user. Changes need
    # more than the cookie.
    response.set_cookie(context.sessions.cookie_name, cookie, SESSION_SECONDS, httponly=True, samesite="lax")
    return response


@router.post("/logout")
def log_out(request: Request, context: WebContextDep, form: TheForm) -> Response:
    """Sign out: the session ends here, not only in this browser."""
    session_id = session_of(request, context)
    if session_id is not None:
        context.app.store.sessions.end(session_id)
    response = redirect("/")
    response.delete_cookie(context.sessions.cookie_name, httponly=True, samesite="lax")
    return response


@router.post("/preferences")
def prefer(request: Request, fields: FormFields) -> Response:
    """Language, colours, and whether images are loaded: stored in the browser only."""
    if not is_own_wish(request):
        raise HTTPException(403, "this did not come from a page of catchment")
    response = redirect(local(fields.get("back", "/")))
    for name, choices, value in (
        (LANGUAGE, tuple(LANGUAGES), fields.get("language")),
        (THEME, THEMES, fields.get("theme")),
        (IMAGES, ("on", "off"), fields.get("images")),
    ):
        if value in choices:
            response.set_cookie(name, value, _A_YEAR, httponly=True, samesite="lax")
    return response


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    file = ASSETS.get(f"/static/{name}")
    if file is None:
        raise HTTPException(404, "there is no such file")
    # Its URL changes with its contents.
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(file.body, media_type=file.media_type, headers=headers)
