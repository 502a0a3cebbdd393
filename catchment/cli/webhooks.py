"""`webhooks`: who is told of what happens."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Who is told of events: add, test, list …")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the webhook is called.")]
_MOST_CHARACTERS = 10_000


@app.command()
def add(
    name: Name,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where events are sent to, by POST.")],
    event: Annotated[
        list[str] | None, typer.Option(metavar="EVENT", help="Only this event. May be repeated; without it, all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Have an address told of what happens from now on.

    The secret that messages are signed with is read from stdin; without one, it is made and shown, only this once. It
    is encrypted with COOKIE_MASTER_KEY. docs/events.md says how a receiver checks the signature.
    """
    given = "" if sys.stdin.isatty() else sys.stdin.read(_MOST_CHARACTERS).strip()
    with doors.opened_shop("webhooks add") as shop:
        from catchment.tell import webhooks

        webhook_id, secret = webhooks.add(
            shop.store.webhooks, shop.box, name, url, shop.clock.now(), events=event or (), secret=given or None
        )
        shown = shop.store.deliveries.of_webhook(webhook_id)
    if as_json:
        showing.document(shown if given else shown | {"secret": secret})
        return
    showing.say(f"webhook {name} is told of {', '.join(shown['events']) or 'everything'} at {shown['url']}")
    if not given:
        showing.say(f"its secret, shown only this once: {secret}")


@app.command(name="list")
def list_webhooks(as_json: AsJson = False) -> None:
    """List who is told, and how far each one is.

    Python hooks are listed, too. No secret can be shown.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        found = store.deliveries.page()
    if as_json:
        showing.document(found)
        return
    showing.table(
        ("listener", "where", "events", "state", "#waiting", "#delivered", "#given up", "next try", "trouble"),
        (
            (
                one["listener"],
                one["url"],
                one["events"] or "all",
                _state(one),
                one["waiting_count"],
                one["delivered_count"],
                one["given_up_count"],
                showing.when(one["next_attempt_at"], now),
                one["off_because"] or one["last_error"],
            )
            for one in found
        ),
    )


def _state(one: dict[str, Any]) -> str:
    if not one["is_active"]:
        return "off"
    return f"failed {one['failures_in_a_row']} ×" if one["failures_in_a_row"] else "ok"


@app.command(name="test")
def send_test(name: Name, as_json: AsJson = False) -> None:
    """Send a test message now.

    Exits with 3, and says why, if it is not taken.
    """
    with doors.opened_shop("webhooks test") as shop:
        from catchment.tell import webhooks

        webhooks.send_test(shop.webhook(shop.store.webhooks.id_of(name)), shop.clock.now())
    if as_json:
        showing.document({"name": name, "is_delivered": True})
    else:
        showing.say(f"webhook {name} has taken it")


@app.command()
def pause(name: Name, as_json: AsJson = False) -> None:
    """Tell it no more until it is resumed.

    What happens meanwhile is kept for it for CATCHMENT_EVENTS_DAYS.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        known = store.deliveries.of_webhook(store.webhooks.id_of(name))
        store.deliveries.switch_off(known["listener_id"], "paused by a person", now)
        shown = store.deliveries.of_webhook(known["webhook_id"])
    _show_changed(shown, as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Tell it again, from where it was."""
    with doors.opened_store(doors.settings()) as (store, now):
        known = store.deliveries.of_webhook(store.webhooks.id_of(name))
        store.deliveries.switch_on(known["listener_id"], now)
        shown = store.deliveries.of_webhook(known["webhook_id"])
    _show_changed(shown, as_json)


def _show_changed(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        showing.document(shown)
    else:
        showing.say(f"webhook {shown['name']} is {'on' if shown['is_active'] else 'off'}")


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Tell it nothing any more, and forget its secret."""
    with doors.opened_store(doors.settings()) as (store, now):
        store.webhooks.remove(store.webhooks.id_of(name), now)
    if as_json:
        showing.document({"name": name})
    else:
        showing.say(f"webhook {name} is gone")
