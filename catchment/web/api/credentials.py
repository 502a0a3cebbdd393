"""/api/credentials: the state of each credential. Neither accepts nor returns secrets."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from catchment.app import App
from catchment.credentials.manager import CredentialView, credential_view
from catchment.errors import NotFound
from catchment.model import as_json
from catchment.store.credentials import CredentialChangeView
from catchment.web.api.params import CredentialId, ResourcePage
from catchment.web.api.schemas.common import PageSchema, Resource, failure, shows
from catchment.web.api.schemas.sources import Pause
from catchment.web.dependencies import AppDep


@shows(
    CredentialView,
    state="active, cooling, banned, invalid, probation or paused.",
    state_until="When the state ends automatically. Null: it does not.",
    is_usable="Whether the pool can use it now.",
    usable_from="When it can be used again. Null: only after somebody intervenes.",
    hosts="For platforms whose sources have hosts of their own: the hosts it may be sent to. Empty: none yet.",
    is_shared="Used for every source of the platform; otherwise only for sources that name it.",
    is_from_environment="Its secret is in the environment of a process and nowhere else.",
    priority="The highest is used first.",
    used_today="Uses since midnight UTC, including those reserved by a process.",
    key_id="The id of the master key that encrypts it.",
    source_count="How many sources name it.",
)
class CredentialSchema(Resource):
    """A credential without its secret, which cannot be read back."""


@shows(CredentialChangeView, from_state="Null: it was added.", to_state="Null: it was removed.")
class CredentialChange(Resource):
    """A change of a credential."""


class CredentialStory(CredentialSchema):
    changes: list[CredentialChange] = Field(description="The latest 100, newest first.")


router = APIRouter(prefix="/api/credentials", tags=["records"])

MISSING = failure(404, "There is no such credential.")


@router.get("", response_model=PageSchema[CredentialSchema])
def list_credentials(app: AppDep) -> ResourcePage[CredentialView]:
    """Stored credentials and those from the environment. Secrets cannot be read back."""
    return ResourcePage(credential_views(app))


@router.get("/{credential_id}", response_model=CredentialStory, responses=MISSING)
def show_credential(app: AppDep, credential_id: CredentialId) -> dict[str, Any]:
    """A credential and its changes, newest first."""
    credential = credential_of(app, credential_id)
    return {**as_json(credential), "changes": app.store.credentials.changes(credential.name)}


@router.post("/{credential_id}/pause", response_model=CredentialSchema, responses=MISSING)
def pause_credential(app: AppDep, credential_id: CredentialId, body: Pause | None = None) -> CredentialView:
    """Do not use it until it is resumed, not even for sources that name it."""
    app.credential_manager.pause(credential_of(app, credential_id).name, body.reason if body else None)
    return credential_of(app, credential_id)


@router.post("/{credential_id}/resume", response_model=CredentialSchema, responses=MISSING)
def resume_credential(app: AppDep, credential_id: CredentialId) -> CredentialView:
    """Use it again. A banned or invalid credential is on probation: the next request decides."""
    app.credential_manager.resume(credential_of(app, credential_id).name)
    return credential_of(app, credential_id)


def credential_of(app: App, credential_id: int) -> CredentialView:
    """The credential without its secret; raises NotFound."""
    for credential in credential_views(app):
        if credential.id == credential_id:
            return credential
    raise NotFound(
        "there is no credential {credential_id}", "GET /api/credentials lists them", credential_id=credential_id
    )


def credential_views(app: App) -> list[CredentialView]:
    rules, now = app.credential_manager.rules, app.clock.now()
    return [credential_view(stored, rules, now) for stored in app.credential_manager.page()]
