"""The settings page: changed settings first, with their meaning; of a secret only that it is set. The credentials page:
the state of each credential, never its secret."""

from __future__ import annotations

from itertools import groupby

from fastapi import APIRouter, Request, Response

from catchment import __version__
from catchment.clock import SystemClock
from catchment.settings import DEFINED, owner_of
from catchment.sources.intervals import interval_views, minutes_from, set_interval
from catchment.web.api.credentials import credential_of, credential_views
from catchment.web.api.params import CredentialId, SessionId
from catchment.web.dependencies import AppDep, WebContextDep
from catchment.web.pages.render import redirect, render
from catchment.web.pages.session import TheForm, TheReader, session_of

router = APIRouter()


@router.get("/settings")
def settings(request: Request, context: WebContextDep, reader: TheReader) -> Response:
    app, settings = context.app, context.app.settings
    differing = [
        {
            "name": name,
            "value": value,
            "default": default,
            "what": owner.what if (owner := owner_of(name)) and name not in settings.declared else None,
            "origin": settings.origins.get(name),
        }
        for name, value, default in settings.differing()
    ]
    changed_names = {setting["name"] for setting in differing}
    others = [
        {"name": setting.name, "default": "" if setting.family else setting.shown_default(), "what": setting.what}
        for setting in DEFINED.values()
        if setting.name not in changed_names
    ]
    return render(
        "settings.html",
        reader,
        version=__version__,
        database="PostgreSQL" if app.store.database.is_postgres else "SQLite",
        home=str(settings.home),
        differing=differing,
        others=others,
        sessions=app.store.sessions.page(SystemClock().now()),
        own_session=session_of(request, context),
        api_keys=app.store.api_keys.page(),
        intervals=interval_views(app.platforms, app.store.settings.intervals(), settings.intervals),
        warnings=settings.warnings,
    )


@router.post("/sessions/end-others")
def end_other_sessions(request: Request, context: WebContextDep, form: TheForm) -> Response:
    """Sign out every browser but this one."""
    context.app.store.sessions.end_all(but=session_of(request, context))
    return redirect("/settings?done=session_ended#sessions")


@router.post("/sessions/{session_id}/end")
def end_session(context: WebContextDep, session_id: SessionId, form: TheForm) -> Response:
    """Sign out another browser."""
    context.app.store.sessions.end(session_id)
    return redirect("/settings?done=session_ended#sessions")


@router.post("/settings/intervals")
def change_interval(app: AppDep, form: TheForm) -> Response:
    """The interval of a kind, kept in the database; an empty field removes it."""
    set_interval(app.store, app.names, form["kind"], minutes_from(form["interval"]), app.clock.now())
    return redirect("/settings?done=interval_set#intervals")


_LONGEST = 200
_TONES = {
    "active": "good",
    "cooling": "warn",
    "probation": "warn",
    "banned": "bad",
    "invalid": "bad",
    "paused": "quiet",
}


@router.get("/credentials")
def credentials(app: AppDep, reader: TheReader) -> Response:
    pools = groupby(credential_views(app), lambda credential: credential.platform)
    return render("credentials.html", reader, pools=[(platform, list(pool)) for platform, pool in pools], tones=_TONES)


@router.get("/credentials/{credential_id}")
def credential(app: AppDep, reader: TheReader, credential_id: CredentialId) -> Response:
    view = credential_of(app, credential_id)
    changes = app.store.credentials.changes(view.name, 50)
    return render("credential.html", reader, credential=view, changes=changes, tones=_TONES)


@router.post("/credentials/{credential_id}/pause")
def pause_one(app: AppDep, credential_id: CredentialId, form: TheForm) -> Response:
    app.credential_manager.pause(credential_of(app, credential_id).name, form["reason"][:_LONGEST])
    return redirect(f"/credentials/{credential_id}?done=credential_paused")


@router.post("/credentials/{credential_id}/resume")
def resume_one(app: AppDep, credential_id: CredentialId, form: TheForm) -> Response:
    app.credential_manager.resume(credential_of(app, credential_id).name)
    return redirect(f"/credentials/{credential_id}?done=credential_resumed")
