"""/api/webhooks: who is told of what happens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from catchment.api.door import TheShop
from catchment.api.shapes import Failed, Listener, NewListener, NewWebhook, Page, Sent
from catchment.api.values import LARGEST, whole
from catchment.tell import webhooks

router = APIRouter(prefix="/api/webhooks", tags=["events"])

WebhookId = Annotated[int, Path(ge=1, le=LARGEST, description="The webhook's id.", examples=[1])]
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such webhook."}}
TAKEN: dict[int | str, dict[str, Any]] = {409: {"model": Failed, "description": "There is one of that name already."}}
NOT_TAKEN: dict[int | str, dict[str, Any]] = {
    502: {"model": Failed, "description": "The receiver did not take it."},
    504: {"model": Failed, "description": "The receiver did not answer in time."},
}


@router.get("", response_model=Page[Listener])
def list_webhooks(shop: TheShop) -> dict[str, Any]:
    """Who is told, and how far each one is; Python hooks among them. No secret can be shown."""
    return whole(shop.store.deliveries.page())


@router.post("", status_code=201, response_model=NewListener, responses=TAKEN)
def add_webhook(shop: TheShop, given: NewWebhook, response: Response) -> dict[str, Any]:
    """Have an address told of what happens from now on. A secret that is made here is answered only this once."""
    webhook_id, secret = webhooks.add(
        shop.store.webhooks,
        shop.box,
        given.name,
        given.url,
        shop.clock.now(),
        events=given.events,
        secret=given.secret,
    )
    response.headers["Location"] = f"/api/webhooks/{webhook_id}"
    return shop.store.deliveries.of_webhook(webhook_id) | {"secret": secret if given.secret is None else None}


@router.get("/{webhook_id}", response_model=Listener, responses=MISSING)
def show_webhook(shop: TheShop, webhook_id: WebhookId) -> dict[str, Any]:
    """One webhook, and how far it is."""
    return shop.store.deliveries.of_webhook(webhook_id)


@router.delete("/{webhook_id}", status_code=204, response_class=Response, responses=MISSING)
def remove_webhook(shop: TheShop, webhook_id: WebhookId) -> None:
    """Tell it nothing any more, and forget its secret."""
    shop.store.webhooks.remove(webhook_id, shop.clock.now())


@router.post("/{webhook_id}/pause", response_model=Listener, responses=MISSING)
def pause_webhook(shop: TheShop, webhook_id: WebhookId) -> dict[str, Any]:
    """Tell it no more until it is resumed; what happens meanwhile is kept for it for a few days."""
    known = shop.store.deliveries.of_webhook(webhook_id)
    shop.store.deliveries.switch_off(known["listener_id"], "paused by a person", shop.clock.now())
    return shop.store.deliveries.of_webhook(webhook_id)


@router.post("/{webhook_id}/resume", response_model=Listener, responses=MISSING)
def resume_webhook(shop: TheShop, webhook_id: WebhookId) -> dict[str, Any]:
    """Tell it again, from where it was."""
    known = shop.store.deliveries.of_webhook(webhook_id)
    shop.store.deliveries.switch_on(known["listener_id"], shop.clock.now())
    return shop.store.deliveries.of_webhook(webhook_id)


@router.post("/{webhook_id}/test", response_model=Sent, responses=MISSING | NOT_TAKEN)
def test_webhook(shop: TheShop, webhook_id: WebhookId) -> dict[str, Any]:
    """Send a test message now, and wait for what comes of it."""
    webhooks.send_test(shop.webhook(webhook_id), shop.clock.now())
    return {"is_delivered": True}
