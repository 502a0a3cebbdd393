"""`webhooks`: receivers of events."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson
from catchment.events import webhooks
from catchment.model import as_dict
from catchment.store.delivery.webhooks import ListenerView

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the webhook.")]
_MOST_CHARACTERS = 10_000


def add(
    name: Name,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL that events are posted to.")],
    event: Annotated[
        list[str] | None, typer.Option(metavar="EVENT", help="Only this event; by default all. May be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The secret for signing messages is read from stdin; if there is none, one is created and shown once. It is stored
    encrypted, like credentials. docs/events.md explains how a receiver checks the signature.
    """
    typed_secret = "" if sys.stdin.isatty() else sys.stdin.read(_MOST_CHARACTERS).strip()
    with context.opened_app("webhooks add", creates=True) as app:
        webhook_id, secret = webhooks.add(
            app.store.webhooks, app.cipher, name, url, app.clock.now(), events=event or (), secret=typed_secret or None
        )
        shown = app.store.deliveries.of_webhook(webhook_id)
    events = ", ".join(shown.events) or "all events"
    sentence = f"Webhook {name} added: sends {events} to {shown.url}"
    if typed_secret:
        output.result(as_json, shown, sentence)
    else:
        output.result(
            as_json, as_dict(shown) | {"secret": secret}, sentence, f"Its secret, which is not shown again: {secret}"
        )


def list_webhooks(as_json: AsJson = False) -> None:
    """Shows how many events each one has received, and how many are pending. Secrets are never shown."""
    with context.opened_store(context.settings()) as (store, now):
        listeners = [listener for listener in store.deliveries.page() if listener.notification_id is None]
    show_listeners(listeners, now, empty=("no webhooks yet", "run `catchment webhooks add NAME URL`"), as_json=as_json)


def show_listeners(listeners: list[ListenerView], now: datetime, *, empty: tuple[str, str], as_json: bool) -> None:
    output.listing(
        as_json,
        listeners,
        ("Listener", "URL", "Events", "State", "#Waiting", "#Delivered", "#Failed", "Next attempt"),
        lambda listener: (
            listener.listener,
            listener.url,
            listener.events or "all",
            _state(listener),
            listener.waiting_count,
            listener.delivered_count,
            listener.given_up_count,
            output.when(listener.next_attempt_at if listener.waiting_count else None, now),
        ),
        empty=empty,
        shrink=("Listener", "URL", "Events"),
    )
    for listener in () if as_json else listeners:
        if problem := listener.off_because or listener.last_error:
            output.say(f"{listener.listener}: {problem}")


def _state(listener: ListenerView) -> str:
    if not listener.is_active:
        return "off"
    return f"failed {listener.failures_in_a_row} ×" if listener.failures_in_a_row else "ok"


def send_test(name: Name, as_json: AsJson = False) -> None:
    """Exits with 3 if it is not accepted."""
    with context.opened_app("webhooks test") as app:
        webhooks.send_test(app.webhook(app.store.webhooks.id_of(name)), app.clock.now())
    output.result(as_json, {"name": name, "is_delivered": True}, f"Webhook {name} accepted the test event.")


def pause(name: Name, as_json: AsJson = False) -> None:
    """Events are kept for CATCHMENT_EVENTS_DAYS in the meantime."""
    switch(name, is_on=False, as_json=as_json)


def resume(name: Name, as_json: AsJson = False) -> None:
    switch(name, is_on=True, as_json=as_json)


def remove(name: Name, as_json: AsJson = False) -> None:
    take_away(name, as_json=as_json)


def switch(name: str, *, is_on: bool, as_json: bool, is_notification: bool = False) -> None:
    with context.opened_store(context.settings()) as (store, now):
        webhook_id = store.webhooks.id_of(name, is_notification=is_notification)
        shown = store.deliveries.switch(webhook_id, now, is_on=is_on, is_notification=is_notification)
    word = "Notification" if is_notification else "Webhook"
    output.result(as_json, shown, f"{word} {shown.name} is {'on' if shown.is_active else 'off'}.")


def take_away(name: str, *, as_json: bool, is_notification: bool = False) -> None:
    word = "Notification" if is_notification else "Webhook"
    with context.opened_store(context.settings()) as (store, now):
        webhook_id = store.webhooks.id_of(name, is_notification=is_notification)
        store.webhooks.remove(webhook_id, now, is_notification=is_notification)
    output.result(as_json, {"name": name}, f"{word} {name} has been removed.")
