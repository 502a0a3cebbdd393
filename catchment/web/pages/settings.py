"""The settings page: changed settings first, with their meaning; of a secret only that it is set. The credentials page:
the state of each credential, never its secret."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec.structs import asdict

from catchment import __version__
from catchment.clock import SystemClock
from catchment.credentials import CredentialView
from catchment.settings import DEFINED, owner_of
from catchment.sources.intervals import interval_views, minutes_from, set_interval
from catchment.store.access import SessionView
from catchment.web.api.credentials import credential_views, known_credential
from catchment.web.api.params import LARGEST
from catchment.web.dependencies import AppDep, WebContextDep
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import page
from catchment.web.pages.session import TheForm, TheReader, session_of


class SessionRow(SessionView, frozen=True):
    is_own: bool


router = APIRouter()


@router.get("/settings")
def settings(request: Request, context: WebContextDep, reader: TheReader) -> Response:
    app = context.app
    app_settings, own = app.settings, session_of(request, context)
    differing = app_settings.differing()
    names = {name for name, _, _ in differing}
    found = {
        "version": __version__,
        "database": "PostgreSQL" if app.store.database.is_postgres else "SQLite",
        "home": str(app_settings.home),
        "differing": [
            {
                "name": name,
                "value": value,
                "default": default,
                "what": owner.what if (owner := owner_of(name)) and name not in app_settings.declared else None,
                "origin": app_settings.origins.get(name),
            }
            for name, value, default in differing
        ],
        "sessions": [
            SessionRow(**asdict(session), is_own=session.id == own)
            for session in app.store.sessions.page(SystemClock().now())
        ],
        "api_keys": app.store.api_keys.page(),
        "intervals": interval_views(app.platforms, app.store.settings.intervals(), app_settings.intervals),
        "warnings": app_settings.warnings,
        "others": [
            {"name": setting.name, "default": "" if setting.family else setting.shown_default(), "what": setting.what}
            for setting in DEFINED.values()
            if setting.name not in names
        ],
    }
    return HTMLResponse(page("settings.html", reader, found=found))


@router.post("/sessions/end-others")
def end_other_sessions(request: Request, context: WebContextDep, form: TheForm) -> Response:
    """Sign out every browser but this one."""
    context.app.store.sessions.end_all(but=session_of(request, context))
    return RedirectResponse("/settings?done=session_ended#sessions", 303)


@router.post("/sessions/{session_id}/end")
def end_session(context: WebContextDep, session_id: Annotated[int, Path(ge=1, le=LARGEST)], form: TheForm) -> Response:
    """Sign out another browser."""
    context.app.store.sessions.end(session_id)
    return RedirectResponse("/settings?done=session_ended#sessions", 303)


@router.post("/settings/intervals")
def change_interval(app: AppDep, form: TheForm) -> Response:
    """The interval of a kind, kept in the database; left empty, it is taken away."""
    set_interval(app.store, app.names, form["kind"], minutes_from(form["interval"]), app.clock.now())
    return RedirectResponse("/settings?done=interval_set#intervals", 303)


CredentialId = Annotated[int, Path(ge=1, le=LARGEST)]
_LONGEST = 200
_TONES = {
    "active": "good",
    "cooling": "warn",
    "probation": "warn",
    "banned": "bad",
    "invalid": "bad",
    "paused": "quiet",
}


class CredentialRow(CredentialView, frozen=True):
    tone: str
    ready: str
    """Whether it is usable, in a sentence."""
    used: float | None
    """The share of its daily limit."""


def _credential_row(locale: Locale, credential: CredentialView) -> CredentialRow:
    if credential.is_usable:
        ready = locale.gettext("usable")
    elif credential.usable_from:
        ready = locale.gettext("usable again {when}", when=locale.when(credential.usable_from))
    else:
        ready = locale.gettext("not usable until you act")
    used = credential.used_today / credential.daily_limit if credential.daily_limit else None
    return CredentialRow(**asdict(credential), tone=_TONES[credential.state], ready=ready, used=used)


@router.get("/credentials")
def credentials(app: AppDep, reader: TheReader) -> Response:
    rows = [_credential_row(reader.locale, credential) for credential in credential_views(app)]
    pools = [(platform, list(pool)) for platform, pool in groupby(rows, lambda credential: credential.platform)]
    return HTMLResponse(page("credentials.html", reader, pools=pools))


@router.get("/credentials/{credential_id}")
def credential(app: AppDep, reader: TheReader, credential_id: CredentialId) -> Response:
    view = known_credential(app, credential_id)
    row, changes = _credential_row(reader.locale, view), app.store.credentials.changes(view.name, 50)
    return HTMLResponse(page("credential.html", reader, one=row, changes=changes, tones=_TONES))


@router.post("/credentials/{credential_id}/pause")
def pause_one(app: AppDep, credential_id: CredentialId, form: TheForm) -> Response:
    reason = form["reason"][:_LONGEST] or "paused by a person"
    app.credential_manager.pause(known_credential(app, credential_id).name, reason)
    return RedirectResponse(f"/credentials/{credential_id}?done=credential_paused", 303)


@router.post("/credentials/{credential_id}/resume")
def resume_one(app: AppDep, credential_id: CredentialId, form: TheForm) -> Response:
    app.credential_manager.resume(known_credential(app, credential_id).name)
    return RedirectResponse(f"/credentials/{credential_id}?done=credential_resumed", 303)
