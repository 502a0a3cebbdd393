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
    """A webhook to add."""

    model_config = example(name="n8n", url="https://n8n.example/hook", events=["watch.matched"])
    name: Word
    url: Address = Field(description="The URL to send events to, by POST. Its secret parts are encrypted immediately.")
    events: list[Word] = Field(default=[], max_length=100, description="The events to send. Empty: all events.")
    secret: Annotated[str, Field(min_length=16, max_length=1_000)] | None = Field(
        default=None, description="The secret that signs messages. If omitted, one is generated and returned once."
    )


class NewNotification(RequestBody):
    """A notification to add."""

    model_config = example(name="team", url="discord://…", least_severity="P1")
    name: Word
    url: Address = Field(description="An Apprise URL. It is treated as a secret: encrypted, and never shown again.")
    events: list[Word] = Field(
        default=[], max_length=100, description="Empty: alerts, matches of watches and finished tasks."
    )
    least_severity: Severity | None = Field(
        default=None, description="The least severity of alerts to send; P0 is the most urgent."
    )
    language: Literal["en", "zh"] = Field(default="en", description="Of the messages.")


@shows(
    ListenerView,
    listener="`webhook NAME`, `notification NAME` or `hook NAME`.",
    webhook_id="Null: a notification or a Python hook.",
    notification_id="Null: a webhook or a Python hook.",
    url="Without its secret parts.",
    events="None: all of them.",
    least_severity="The least severity of alerts to send. Null: all alerts.",
    language="The language of messages to people.",
    waiting_count="Events waiting to be delivered.",
    given_up_count="Events that could not be delivered (dead letters).",
)
class ListenerSchema(Resource):
    """A webhook, a notification or a Python hook, and its progress."""


class NewListener(ListenerSchema):
    secret: str | None = Field(description="The generated signing secret; shown only once. Null: you provided one.")


class Sent(Resource):
    is_delivered: bool


class NewWatch(RequestBody):
    """A rule over incoming items. All conditions must match."""

    model_config = example(name="chips", words=["芯片", "-股票"], kinds=["rss"])
    name: Word | None = Field(default=None, description="By default, its words.")
    words: list[Word] = Field(default=[], max_length=100, description="All must occur, except that `-word` must not.")
    is_any_enough: bool = Field(default=False, description="Match if any of the words occurs.")
    kinds: list[Word] = Field(default=[], max_length=100)
    source_ids: list[RowId] = Field(default=[], max_length=1_000)
    authors: list[Word] = Field(default=[], max_length=1_000)
    is_for_edits: bool = Field(default=False, description="Match changed items as well as new ones.")


@shows(WatchView, from_change_number="The change number up to which items were checked.")
class WatchSchema(Resource):
    """A rule over incoming items."""


@shows(WatchHitView, words="The words of the watch that matched.")
class WatchHit(Resource):
    """An item that matched."""


router = APIRouter(prefix="/api", tags=["events"])

NO_WATCH = failure(404, "There is no such watch.")
TAKEN = failure(409, "The name is in use.")


@router.get("/watches", response_model=PageSchema[WatchSchema])
def list_watches(app: AppDep) -> ResourcePage[WatchView]:
    """Watches and their numbers of matches."""
    return ResourcePage(app.store.watches.page())


@router.post("/watches", status_code=201, response_model=WatchSchema, responses=TAKEN)
def add_watch(app: AppDep, body: NewWatch, response: Response) -> WatchView:
    """Add a watch. It applies to items that arrive from now on."""
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
    """A watch and its number of matches."""
    return app.store.watches.get(watch_id)


@router.get("/watches/{watch_id}/hits", response_model=PageSchema[WatchHit], responses=NO_WATCH)
def list_hits(app: AppDep, watch_id: WatchId, most: Annotated[int, limit(100)] = 30) -> ResourcePage[WatchHitView]:
    """Its latest matches, newest first. The last 100 are kept."""
    app.store.watches.get(watch_id)
    return ResourcePage(app.store.watches.hits(watch_id, most))


@router.post("/watches/{watch_id}/pause", response_model=WatchSchema, responses=NO_WATCH)
def pause_watch(app: AppDep, watch_id: WatchId) -> WatchView:
    """Pause the watch until it is resumed."""
    app.store.watches.pause(watch_id)
    return app.store.watches.get(watch_id)


@router.post("/watches/{watch_id}/resume", response_model=WatchSchema, responses=NO_WATCH)
def resume_watch(app: AppDep, watch_id: WatchId) -> WatchView:
    """Resume the watch. It applies to items that arrive from now on."""
    app.store.watches.resume(watch_id)
    return app.store.watches.get(watch_id)


@router.delete("/watches/{watch_id}", status_code=204, response_class=Response, responses=NO_WATCH)
def remove_watch(app: AppDep, watch_id: WatchId) -> None:
    """Remove the watch and its matches. The items stay."""
    app.store.watches.remove(watch_id)


NO_WEBHOOK = failure(404, "There is no such webhook.")
NOT_TAKEN = failure(502, "The receiver rejected the message.") | failure(504, "The receiver did not answer in time.")


@router.get("/webhooks", response_model=PageSchema[ListenerSchema])
def list_webhooks(app: AppDep) -> ResourcePage[ListenerView]:
    """Webhooks and Python hooks, with their progress. Secrets are never shown."""
    return ResourcePage([listener for listener in app.store.deliveries.page() if listener.notification_id is None])


@router.post("/webhooks", status_code=201, response_model=NewListener, responses=TAKEN)
def add_webhook(app: AppDep, body: NewWebhook, response: Response) -> dict[str, Any]:
    """Send events from now on to an address. A generated secret is returned only once."""
    webhook_id, secret = webhooks.add(
        app.store.webhooks, app.cipher, body.name, body.url, app.clock.now(), events=body.events, secret=body.secret
    )
    response.headers["Location"] = f"/api/webhooks/{webhook_id}"
    webhook = app.store.deliveries.of_webhook(webhook_id)
    return {**as_json(webhook), "secret": secret if body.secret is None else None}


@router.get("/webhooks/{webhook_id}", response_model=ListenerSchema, responses=NO_WEBHOOK)
def show_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """A webhook and its progress."""
    return app.store.deliveries.of_webhook(webhook_id)


@router.delete("/webhooks/{webhook_id}", status_code=204, response_class=Response, responses=NO_WEBHOOK)
def remove_webhook(app: AppDep, webhook_id: WebhookId) -> None:
    """Remove the webhook and its secret."""
    app.store.webhooks.remove(webhook_id, app.clock.now())


@router.post("/webhooks/{webhook_id}/pause", response_model=ListenerSchema, responses=NO_WEBHOOK)
def pause_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """Pause deliveries. Events are kept for a few days until it is resumed."""
    return app.store.deliveries.switch(webhook_id, app.clock.now(), is_on=False)


@router.post("/webhooks/{webhook_id}/resume", response_model=ListenerSchema, responses=NO_WEBHOOK)
def resume_webhook(app: AppDep, webhook_id: WebhookId) -> ListenerView:
    """Resume deliveries where they stopped."""
    return app.store.deliveries.switch(webhook_id, app.clock.now(), is_on=True)


@router.post("/webhooks/{webhook_id}/test", response_model=Sent, responses=NO_WEBHOOK | NOT_TAKEN)
def test_webhook(app: AppDep, webhook_id: WebhookId) -> dict[str, bool]:
    """Send a test message now and wait for the result."""
    app.store.deliveries.of_webhook(webhook_id)
    webhooks.send_test(app.webhook(webhook_id), app.clock.now())
    return {"is_delivered": True}


NO_NOTIFICATION = failure(404, "There is no such notification.")


@router.get("/notifications", response_model=PageSchema[ListenerSchema])
def list_notifications(app: AppDep) -> ResourcePage[ListenerView]:
    """Notifications by chat, mail and similar services, with their progress. Addresses are never shown."""
    return ResourcePage([listener for listener in app.store.deliveries.page() if listener.notification_id is not None])


@router.post("/notifications", status_code=201, response_model=ListenerSchema, responses=TAKEN)
def add_notification(app: AppDep, body: NewNotification, response: Response) -> ListenerView:
    """Notify people of events from now on. A burst of events becomes one message."""
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
    """A notification and its progress."""
    return app.store.deliveries.of_webhook(notification_id, is_notification=True)


@router.delete("/notifications/{notification_id}", status_code=204, response_class=Response, responses=NO_NOTIFICATION)
def remove_notification(app: AppDep, notification_id: NotificationId) -> None:
    """Remove the notification and its address."""
    app.store.webhooks.remove(notification_id, app.clock.now(), is_notification=True)


@router.post("/notifications/{notification_id}/pause", response_model=ListenerSchema, responses=NO_NOTIFICATION)
def pause_notification(app: AppDep, notification_id: NotificationId) -> ListenerView:
    """Pause messages. Events are kept for a few days until it is resumed."""
    return app.store.deliveries.switch(notification_id, app.clock.now(), is_on=False, is_notification=True)


@router.post("/notifications/{notification_id}/resume", response_model=ListenerSchema, responses=NO_NOTIFICATION)
def resume_notification(app: AppDep, notification_id: NotificationId) -> ListenerView:
    """Resume messages where they stopped."""
    return app.store.deliveries.switch(notification_id, app.clock.now(), is_on=True, is_notification=True)


@router.post("/notifications/{notification_id}/test", response_model=Sent, responses=NO_NOTIFICATION | NOT_TAKEN)
def test_notification(app: AppDep, notification_id: NotificationId) -> dict[str, bool]:
    """Send a test message now and wait for the result."""
    app.store.deliveries.of_webhook(notification_id, is_notification=True)
    notifications.send_test(app.notification(notification_id), app.clock.now())
    return {"is_delivered": True}
