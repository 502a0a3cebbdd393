"""/api/watches, /api/webhooks and /api/notifications: keyword rules over incoming items, and who receives events."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from msgspec import convert
from pydantic import Field

from catchment.app import App
from catchment.errors import InvalidInput, NotFound
from catchment.events import notifications, webhooks
from catchment.events.watches import checked, named
from catchment.model import Severity, Watch, as_json
from catchment.store.delivery.watches import WatchHitView, WatchView
from catchment.store.delivery.webhooks import ListenerView
from catchment.web.api.params import Address, NotificationId, ResourcePage, RowId, WatchId, WebhookId, Word, limit
from catchment.web.api.schemas.common import PageSchema, RequestBody, Resource, example, failure, shows
from catchment.web.dependencies import AppDep


class NewWebhook(RequestBody):
    """Who is to be told of what."""

    model_config = example(name="n8n", url="https://n8n.example/hook", events=["watch.matched"])
    name: Word
    url: Address = Field(description="Where to, by POST. What is secret in it is sealed at once.")
    events: list[Word] = Field(default=[], max_length=100, description="Which events; none: all of them.")
    secret: Annotated[str, Field(min_length=16, max_length=1_000)] | None = Field(
        default=None, description="What messages are signed with. Without one, it is made, and answered once."
    )


class NewNotification(RequestBody):
    """Which address is notified of what."""

    model_config = example(name="team", url="discord://…", least_severity="P1")
    name: Word
    url: Address = Field(
        description="An address of Apprise. All of it is secret: it is encrypted, and never shown again."
    )
    events: list[Word] = Field(
        default=[], max_length=100, description="Which events; none: alerts, matches of watches and finished tasks."
    )
    least_severity: Severity | None = Field(
        default=None, description="Of alerts, only these and more urgent ones; P0 is the most urgent."
    )
    language: Literal["en", "zh"] = Field(default="en", description="Of the messages.")


@shows(
    ListenerView,
    listener="`webhook NAME`, `notification NAME` or `hook NAME`.",
    webhook_id="Null: a notification or a Python hook.",
    notification_id="Null: a webhook or a Python hook.",
    url="Without what is secret in it.",
    events="None: all of them.",
    least_severity="Of alerts, only these and more urgent ones; null: all.",
    language="Of messages for people.",
    waiting_count="Events that it wants, and is still to be told of.",
    given_up_count="Events that it did not take for too long.",
)
class ListenerSchema(Resource):
    """A webhook, a notification or a Python hook, and how far it is."""


class NewListener(ListenerSchema):
    secret: str | None = Field(description="What was made to sign with; shown only this once. Null: you gave one.")


class Sent(Resource):
    is_delivered: bool


class NewWatch(RequestBody):
    """What to watch for. All that is given must fit."""

    model_config = example(name="chips", words=["芯片", "-股票"], kinds=["rss"])
    name: Word | None = Field(default=None, description="Without one: what it looks for.")
    words: list[Word] = Field(default=[], max_length=100, description="All must occur; `-word`: must not occur.")
    is_any_enough: bool = Field(default=False, description="One of the words is enough.")
    kinds: list[Word] = Field(default=[], max_length=100)
    source_ids: list[RowId] = Field(default=[], max_length=1_000)
    authors: list[Word] = Field(default=[], max_length=1_000)
    is_for_edits: bool = Field(default=False, description="Also items that change, not only new ones.")


@shows(WatchView, from_change_number="It looks at what changed after this.")
class WatchSchema(Resource):
    """A rule over what comes in."""


@shows(WatchHitView, words="Which of the watch's words were found.")
class WatchHit(Resource):
    """An item that fits."""


router = APIRouter(prefix="/api", tags=["events"])

NO_WATCH = failure(404, "There is no such watch.")
TAKEN = failure(409, "There is one of that name already.")


@router.get("/watches", response_model=PageSchema[WatchSchema])
def list_watches(app: AppDep) -> ResourcePage[WatchView]:
    """The watches, and how often they hit."""
    return ResourcePage(app.store.watches.page())


@router.post("/watches", status_code=201, response_model=WatchSchema, responses=TAKEN)
def add_watch(app: AppDep, body: NewWatch, response: Response) -> WatchView:
    """Watch for something in what comes in from now on."""
    fields = body.model_dump() | {"name": body.name or "", "words": list(dict.fromkeys(body.words))}
    watch = convert(fields, Watch)
    watch_id = app.store.watches.add(checked_watch(app, watch), app.clock.now())
    response.headers["Location"] = f"/api/watches/{watch_id}"
    return app.store.watches.get(watch_id)


def checked_watch(app: App, watch: Watch) -> Watch:
    """The watch with a name, if its rule is valid and its kinds and sources exist; else raises InvalidInput."""
    watch = checked(named(watch))
    app.names.checked_watch(watch)
    for source_id in watch.source_ids:
        try:
            app.store.sources.get(source_id)
        except NotFound as error:
            # An error in the body, not a 404.
            raise InvalidInput(error.what, error.helps, "source_ids") from error
    return watch


@router.get("/watches/{watch_id}", response_model=WatchSchema, responses=NO_WATCH)
def show_watch(app: AppDep, watch_id: WatchId) -> WatchView:
    """One watch, and how often it hit."""
    return app.store.watches.get(watch_id)


@router.get("/watches/{watch_id}/hits", response_model=PageSchema[WatchHit], responses=NO_WATCH)
def list_hits(app: AppDep, watch_id: WatchId, most: Annotated[int, limit(100)] = 30) -> ResourcePage[WatchHitView]:
    """What it hit last, the latest first. The last 100 are kept."""
    app.store.watches.get(watch_id)
    return ResourcePage(app.store.watches.hits(watch_id, most))


@router.post("/watches/{watch_id}/pause", response_model=WatchSchema, responses=NO_WATCH)
def pause_watch(app: AppDep, watch_id: WatchId) -> WatchView:
    """Look at nothing until it is resumed."""
    app.store.watches.pause(watch_id)
    return app.store.watches.get(watch_id)


@router.post("/watches/{watch_id}/resume", response_model=WatchSchema, responses=NO_WATCH)
def resume_watch(app: AppDep, watch_id: WatchId) -> WatchView:
    """Look again, at what comes from now on."""
    app.store.watches.resume(watch_id)
    return app.store.watches.get(watch_id)


@router.delete("/watches/{watch_id}", status_code=204, response_class=Response, responses=NO_WATCH)
def remove_watch(app: AppDep, watch_id: WatchId) -> None:
    """Forget it and its hits; the items stay."""
    app.store.watches.remove(watch_id)


NO_WEBHOOK = failure(404, "There is no such webhook.")
NOT_TAKEN = failure(502, "The receiver did not take it.") | failure(504, "The receiver did not answer in time.")


@router.get("/webhooks", response_model=PageSchema[ListenerSchema])
def list_webhooks(app: AppDep) -> ResourcePage[ListenerView]:
    """Who is told, and how far each one is; Python hooks among them. No secret can be shown."""
    return ResourcePage([listener for listener in app.store.deliveries.page() if listener.notification_id is None])


@router.post("/webhooks", status_code=201, response_model=NewListener, responses=TAKEN)
def add_webhook(app: AppDep, body: NewWebhook, response: Response) -> dict[str, Any]:
    """Have an address told of what happens from now on. A secret that is made here is answered only this once."""
    webhook_id, secret = webhooks.add(
        app.store.webhooks, app.cipher, body.name, body.url, app.clock.now(), events=body.events, secret=body.secret
    )
    response.headers["Location"] = f"/api/webhooks/{webhook_id}"
    webhook = app.store.deliveries.of_webhook(webhook_id)
    return {**as_json(webhook), "secret": secret if body.secret is None else None}


@router.get("/webhooks/{webhook_id}", response_model=ListenerSchema, responses=NO_WEBHOOK)
def show_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """One webhook, and how far it is."""
    return app.store.deliveries.of_webhook(webhook_id)


@router.delete("/webhooks/{webhook_id}", status_code=204, response_class=Response, responses=NO_WEBHOOK)
def remove_webhook(app: AppDep, webhook_id: WebhookId) -> None:
    """Tell it nothing any more, and forget its secret."""
    app.store.webhooks.remove(webhook_id, app.clock.now())


@router.post("/webhooks/{webhook_id}/pause", response_model=ListenerSchema, responses=NO_WEBHOOK)
def pause_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """Tell it no more until it is resumed; what happens meanwhile is kept for it for a few days."""
    return app.store.deliveries.switch(webhook_id, app.clock.now(), is_on=False)


@router.post("/webhooks/{webhook_id}/resume", response_model=ListenerSchema, responses=NO_WEBHOOK)
def resume_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """Tell it again, from where it was."""
    return app.store.deliveries.switch(webhook_id, app.clock.now(), is_on=True)


@router.post("/webhooks/{webhook_id}/test", response_model=Sent, responses=NO_WEBHOOK | NOT_TAKEN)
def test_webhook(app: AppDep, webhook_id: WebhookId) -> dict[str, bool]:
    """Send a test message now, and wait for what comes of it."""
    app.store.deliveries.of_webhook(webhook_id)
    webhooks.send_test(app.webhook(webhook_id), app.clock.now())
    return {"is_delivered": True}


NO_NOTIFICATION = failure(404, "There is no such notification.")


@router.get("/notifications", response_model=PageSchema[ListenerSchema])
def list_notifications(app: AppDep) -> ResourcePage[ListenerView]:
    """Who is notified by chat, mail and the like, and how far each one is. Addresses cannot be shown."""
    return ResourcePage([listener for listener in app.store.deliveries.page() if listener.notification_id is not None])


@router.post("/notifications", status_code=201, response_model=ListenerSchema, responses=TAKEN)
def add_notification(app: AppDep, body: NewNotification, response: Response) -> ListenerView:
    """Notify people of what happens from now on. A burst of events is one message."""
    notification_id = notifications.add(
        app.store.webhooks,
        app.cipher,
        body.name,
        body.url,
        app.clock.now(),
        events=body.events,
        least_severity=body.least_severity,
        language=body.language,
    )
    response.headers["Location"] = f"/api/notifications/{notification_id}"
    return app.store.deliveries.of_webhook(notification_id, is_notification=True)


@router.get("/notifications/{notification_id}", response_model=ListenerSchema, responses=NO_NOTIFICATION)
def show_notification(app: AppDep, notification_id: NotificationId) -> ListenerView:
    """One notification, and how far it is."""
    return app.store.deliveries.of_webhook(notification_id, is_notification=True)


@router.delete("/notifications/{notification_id}", status_code=204, response_class=Response, responses=NO_NOTIFICATION)
def remove_notification(app: AppDep, notification_id: NotificationId) -> None:
    """Send it nothing any more, and forget its address."""
    app.store.webhooks.remove(notification_id, app.clock.now(), is_notification=True)


@router.post("/notifications/{notification_id}/pause", response_model=ListenerSchema, responses=NO_NOTIFICATION)
def pause_notification(app: AppDep, notification_id: NotificationId) -> ListenerView:
    """Send it nothing until it is resumed; what happens meanwhile is kept for it for a few days."""
    return app.store.deliveries.switch(notification_id, app.clock.now(), is_on=False, is_notification=True)


@router.post("/notifications/{notification_id}/resume", response_model=ListenerSchema, responses=NO_NOTIFICATION)
def resume_notification(app: AppDep, notification_id: NotificationId) -> ListenerView:
    """Send it messages again, from where it was."""
    return app.store.deliveries.switch(notification_id, app.clock.now(), is_on=True, is_notification=True)


@router.post("/notifications/{notification_id}/test", response_model=Sent, responses=NO_NOTIFICATION | NOT_TAKEN)
def test_notification(app: AppDep, notification_id: NotificationId) -> dict[str, bool]:
    """Send a test message now, and wait for what comes of it."""
    app.store.deliveries.of_webhook(notification_id, is_notification=True)
    notifications.send_test(app.notification(notification_id), app.clock.now())
    return {"is_delivered": True}
