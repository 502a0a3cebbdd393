"""Credentials: how each one stands, and never its secret."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from catchment import pages
from catchment.api.browsing.readers import TheForm, TheReader
from catchment.api.credentials import known_credential
from catchment.api.door import TheShop
from catchment.api.values import LARGEST
from catchment.vault import shown

router = APIRouter()

CredentialId = Annotated[int, Path(ge=1, le=LARGEST)]
_LONGEST = 200


@router.get("/credentials")
def credentials(shop: TheShop, reader: TheReader) -> Response:
    rows = [shown(one, shop.keeper.rules, shop.clock.now()) for one in shop.keeper.page()]
    return HTMLResponse(pages.credentials_page(reader, rows))


@router.get("/credentials/{credential_id}")
def credential(shop: TheShop, reader: TheReader, credential_id: CredentialId) -> Response:
    one = known_credential(shop, credential_id)
    found: dict[str, Any] = {"one": one, "changes": shop.store.credentials.changes(one["name"], 50)}
    return HTMLResponse(pages.credential_page(reader, found))


@router.post("/credentials/{credential_id}/pause")
def pause_one(shop: TheShop, credential_id: CredentialId, form: TheForm) -> Response:
    reason = form["reason"][:_LONGEST] or "paused by a person"
    shop.keeper.pause(known_credential(shop, credential_id)["name"], reason)
    return RedirectResponse(f"/credentials/{credential_id}?done=credential_paused", 303)


@router.post("/credentials/{credential_id}/resume")
def resume_one(shop: TheShop, credential_id: CredentialId, form: TheForm) -> Response:
    shop.keeper.resume(known_credential(shop, credential_id)["name"])
    return RedirectResponse(f"/credentials/{credential_id}?done=credential_resumed", 303)
