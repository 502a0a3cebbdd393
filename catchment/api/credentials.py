"""/api/credentials: how each credential stands. No secret goes in or comes out here."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from catchment.api.door import TheShop
from catchment.api.shapes import Credential, CredentialStory, Failed, Page, Pause
from catchment.api.values import LARGEST, whole
from catchment.errors import NotFound
from catchment.shop import Shop
from catchment.vault import shown

router = APIRouter(prefix="/api/credentials", tags=["records"])

CredentialId = Annotated[int, Path(ge=1, le=LARGEST, description="The credential's id.", examples=[1])]
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such credential."}}


@router.get("", response_model=Page[Credential])
def list_credentials(shop: TheShop) -> dict[str, Any]:
    """What the vault holds and the environment lends, without the secrets: they cannot be read back."""
    return whole([shown(one, shop.keeper.rules, shop.clock.now()) for one in shop.keeper.page()])


@router.get("/{credential_id}", response_model=CredentialStory, responses=MISSING)
def show_credential(shop: TheShop, credential_id: CredentialId) -> dict[str, Any]:
    """One credential, and what became of it, the newest change first."""
    one = known_credential(shop, credential_id)
    return one | {"changes": shop.store.credentials.changes(one["name"])}


@router.post("/{credential_id}/pause", response_model=Credential, responses=MISSING)
def pause_credential(shop: TheShop, credential_id: CredentialId, given: Pause | None = None) -> dict[str, Any]:
    """Use it no more until it is resumed; not for sources that name it either."""
    reason = given.reason if given and given.reason else "paused by a person"
    shop.keeper.pause(known_credential(shop, credential_id)["name"], reason)
    return known_credential(shop, credential_id)


@router.post("/{credential_id}/resume", response_model=Credential, responses=MISSING)
def resume_credential(shop: TheShop, credential_id: CredentialId) -> dict[str, Any]:
    """Use it again. One that was banned or invalid is on probation: the next request decides."""
    shop.keeper.resume(known_credential(shop, credential_id)["name"])
    return known_credential(shop, credential_id)


def known_credential(shop: Shop, credential_id: int) -> dict[str, Any]:
    """As it may be shown."""
    known = next((one for one in shop.keeper.page() if one.credential.id == credential_id), None)
    if known is None:
        raise NotFound(f"there is no credential {credential_id}", "GET /api/credentials lists them")
    return shown(known, shop.keeper.rules, shop.clock.now())
