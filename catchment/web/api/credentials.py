"""/api/credentials: the state of each credential. Neither accepts nor returns secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from msgspec.structs import asdict
from pydantic import Field

from catchment.app import App
from catchment.credentials import CredentialView, credential_view
from catchment.errors import NotFound
from catchment.store.credentials import CredentialChangeView
from catchment.web.api.params import LARGEST, ResourcePage
from catchment.web.api.schemas.common import Moment, PageSchema, Resource, failure
from catchment.web.api.schemas.sources import Pause
from catchment.web.dependencies import AppDep


class CredentialSchema(Resource):
    """A credential, without its secret: that cannot be read back by anyone."""

    id: int
    platform: str
    name: str
    state: str = Field(description="active, cooling, banned, invalid, probation or paused.")
    state_since: Moment
    state_until: Moment | None = Field(description="When the state ends by itself; null: it does not.")
    state_reason: str | None
    is_usable: bool = Field(description="Whether the pool gives it out at this moment.")
    usable_from: Moment | None = Field(description="When it is usable (again); null: not before a person acts.")
    hosts: list[str] = Field(
        description="Where sources bring their own hosts: those that it may be sent to. Empty: none yet."
    )
    is_shared: bool = Field(description="Any source of the platform is asked with it; otherwise only those naming it.")
    is_from_environment: bool = Field(description="Its secret stands in the environment of a process, nowhere else.")
    priority: int = Field(description="The highest is taken first.")
    daily_limit: int | None
    used_today: int = Field(description="Uses since midnight in UTC; those that are set apart for a process included.")
    use_count: int
    errors_in_a_row: int
    errors_in_all: int
    last_error: str | None
    last_error_at: Moment | None
    last_used_at: Moment | None
    expires_at: Moment | None
    created_at: Moment
    key_id: str = Field(description="Which master key it is encrypted with.")
    source_count: int = Field(description="How many sources name it.")


class CredentialChange(Resource):
    """That a credential was no longer as it was."""

    changed_at: Moment
    from_state: str | None = Field(description="Null: it was added.")
    to_state: str | None = Field(description="Null: it was removed.")
    reason: str


class CredentialStory(CredentialSchema):
    changes: list[CredentialChange] = Field(description="The latest 100, newest first.")


router = APIRouter(prefix="/api/credentials", tags=["records"])

CredentialId = Annotated[int, Path(ge=1, le=LARGEST, description="The credential's id.", examples=[1])]
MISSING = failure(404, "There is no such credential.")


class CredentialWithChanges(CredentialView, frozen=True):
    changes: Sequence[CredentialChangeView]


@router.get("", response_model=PageSchema[CredentialSchema])
def list_credentials(app: AppDep) -> ResourcePage[CredentialView]:
    """What the vault holds and the environment lends, without the secrets: they cannot be read back."""
    return ResourcePage(credential_views(app))


@router.get("/{credential_id}", response_model=CredentialStory, responses=MISSING)
def show_credential(app: AppDep, credential_id: CredentialId) -> CredentialWithChanges:
    """One credential, and what became of it, the newest change first."""
    credential = known_credential(app, credential_id)
    return CredentialWithChanges(**asdict(credential), changes=app.store.credentials.changes(credential.name))


@router.post("/{credential_id}/pause", response_model=CredentialSchema, responses=MISSING)
def pause_credential(app: AppDep, credential_id: CredentialId, body: Pause | None = None) -> CredentialView:
    """Use it no more until it is resumed; not for sources that name it either."""
    reason = body.reason if body and body.reason else "paused by a person"
    app.credential_manager.pause(known_credential(app, credential_id).name, reason)
    return known_credential(app, credential_id)


@router.post("/{credential_id}/resume", response_model=CredentialSchema, responses=MISSING)
def resume_credential(app: AppDep, credential_id: CredentialId) -> CredentialView:
    """Use it again. One that was banned or invalid is on probation: the next request decides."""
    app.credential_manager.resume(known_credential(app, credential_id).name)
    return known_credential(app, credential_id)


def known_credential(app: App, credential_id: int) -> CredentialView:
    """The credential without its secret; raises NotFound."""
    for credential in credential_views(app):
        if credential.id == credential_id:
            return credential
    raise NotFound(f"there is no credential {credential_id}", "GET /api/credentials lists them")


def credential_views(app: App) -> list[CredentialView]:
    rules, now = app.credential_manager.rules, app.clock.now()
    return [credential_view(stored, rules, now) for stored in app.credential_manager.page()]
