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
    state_until="When the state ends by itself; null: it does not.",
    is_usable="Whether the pool gives it out at this moment.",
    usable_from="When it is usable (again); null: not before a person acts.",
    hosts="Where sources bring their own hosts: those that it may be sent to. Empty: none yet.",
    is_shared="Any source of the platform is asked with it; otherwise only those naming it.",
    is_from_environment="Its secret stands in the environment of a process, nowhere else.",
    priority="The highest is taken first.",
    used_today="Uses since midnight in UTC; those that are set apart for a process included.",
    key_id="Which master key it is encrypted with.",
    source_count="How many sources name it.",
)
class CredentialSchema(Resource):
    """A credential, without its secret: that cannot be read back by anyone."""


@shows(CredentialChangeView, from_state="Null: it was added.", to_state="Null: it was removed.")
class CredentialChange(Resource):
    """That a credential was no longer as it was."""


class CredentialStory(CredentialSchema):
    changes: list[CredentialChange] = Field(description="The latest 100, newest first.")


router = APIRouter(prefix="/api/credentials", tags=["records"])

MISSING = failure(404, "There is no such credential.")


@router.get("", response_model=PageSchema[CredentialSchema])
def list_credentials(app: AppDep) -> ResourcePage[CredentialView]:
    """What the vault holds and the environment lends, without the secrets: they cannot be read back."""
    return ResourcePage(credential_views(app))


@router.get("/{credential_id}", response_model=CredentialStory, responses=MISSING)
def show_credential(app: AppDep, credential_id: CredentialId) -> dict[str, Any]:
    """One credential, and what became of it, the newest change first."""
    credential = credential_of(app, credential_id)
    return {**as_json(credential), "changes": app.store.credentials.changes(credential.name)}


@router.post("/{credential_id}/pause", response_model=CredentialSchema, responses=MISSING)
def pause_credential(app: AppDep, credential_id: CredentialId, body: Pause | None = None) -> CredentialView:
    """Use it no more until it is resumed; not for sources that name it either."""
    reason = body.reason if body and body.reason else "paused by a person"
    app.credential_manager.pause(credential_of(app, credential_id).name, reason)
    return credential_of(app, credential_id)


@router.post("/{credential_id}/resume", response_model=CredentialSchema, responses=MISSING)
def resume_credential(app: AppDep, credential_id: CredentialId) -> CredentialView:
    """Use it again. One that was banned or invalid is on probation: the next request decides."""
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
