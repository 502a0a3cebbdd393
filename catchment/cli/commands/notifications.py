"""`notifications`: messages for people about events, by chat, mail and other services."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.commands.webhooks import show_listeners, switch, take_away
from catchment.cli.params import AsJson
from catchment.errors import InvalidInput
from catchment.events import notifications
from catchment.model import Severity

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the notification.")]
_MOST_CHARACTERS = 10_000


def add(
    name: Name,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EVENT",
            help="Only this event; by default alerts, watch matches and finished tasks. May be repeated.",
        ),
    ] = None,
    severity: Annotated[
        Severity | None, typer.Option(help="Of alerts, only these and more urgent ones; P0 is the most urgent.")
    ] = None,
    language: Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the messages: en or zh.")] = "en",
    as_json: AsJson = False,
) -> None:
    """The address is read from stdin, because all of it is secret: an Apprise URL, such as discord://…, tgram://… or
    mailtos://…. It is stored encrypted and never shown. See docs/events.md.
    """
    address = "" if sys.stdin.isatty() else sys.stdin.read(_MOST_CHARACTERS).strip()
    if not address:
        raise InvalidInput(
            "the address is missing", "pass it on stdin: `catchment notifications add NAME < FILE`", "url"
        )
    with context.opened_app("notifications add", creates=True) as app:
        notification_id = notifications.add(
            app.store.webhooks,
            app.cipher,
            name,
            address,
            app.clock.now(),
            events=event or (),
            least_severity=severity,
            language=language,
        )
        shown = app.store.deliveries.of_webhook(notification_id, is_notification=True)
    output.result(as_json, shown, f"Notification {name} added: sends {', '.join(shown.events)} to {shown.url}")


def list_notifications(as_json: AsJson = False) -> None:
    """Shows how many events each one has received, and how many are pending. Addresses are never shown."""
    with context.opened_store(context.settings()) as (store, now):
        listeners = [listener for listener in store.deliveries.page() if listener.notification_id is not None]
    empty = ("no notifications yet", "run `catchment notifications add NAME`, with the address on stdin")
    show_listeners(listeners, now, empty=empty, as_json=as_json)


def send_test(name: Name, as_json: AsJson = False) -> None:
    """Exits with 3 if it is not accepted."""
    with context.opened_app("notifications test") as app:
        notification_id = app.store.webhooks.id_of(name, is_notification=True)
        notifications.send_test(app.notification(notification_id), app.clock.now())
    output.result(as_json, {"name": name, "is_delivered": True}, f"Notification {name} accepted the test message.")


def pause(name: Name, as_json: AsJson = False) -> None:
    """Events are kept for CATCHMENT_EVENTS_DAYS in the meantime."""
    switch(name, is_on=False, as_json=as_json, is_notification=True)


def resume(name: Name, as_json: AsJson = False) -> None:
    switch(name, is_on=True, as_json=as_json, is_notification=True)


def remove(name: Name, as_json: AsJson = False) -> None:
    take_away(name, as_json=as_json, is_notification=True)
