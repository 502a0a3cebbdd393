"""`keys`, `sessions` and `login-link`: access to the API and the pages."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson
from catchment.clock import SystemClock
from catchment.errors import InvalidInput
from catchment.web.auth import LINK_MINUTES, new_api_key, new_link, reachable

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the key.")]
_LONGEST_NAME = 100


def list_keys(as_json: AsJson = False) -> None:
    """Only hashes of the keys are stored, so the keys themselves cannot be shown. The key in CATCHMENT_API_KEY is not
    listed.
    """
    with context.opened_store(context.settings()) as (store, now):
        keys = store.api_keys.page()
    output.listing(
        as_json,
        keys,
        ("Name", "Created", "Last used"),
        lambda key: (
            key.name,
            output.when(key.created_at, now),
            output.when(key.last_used_at, now) if key.last_used_at else "never",
        ),
        empty=("no API keys yet", "run `catchment keys add NAME`; `catchment serve` creates the first one"),
    )


def add_key(name: KeyName, as_json: AsJson = False) -> None:
    """Name it after the program that uses it, so that you can revoke it on its own."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInput(f"an API key needs a name of at most {_LONGEST_NAME} characters", field="name")
    with context.opened_store(context.settings(), creates=True) as (store, now):
        key = new_api_key()
        store.api_keys.add(name, key, now)
    if as_json:
        output.document({"name": name, "key": key})
    else:
        output.raw(f"{key}\n")
        output.note(f"API key {name} is not shown again; send it as `Authorization: Bearer KEY`")


def revoke_key(name: KeyName, as_json: AsJson = False) -> None:
    """The key stops working immediately."""
    with context.opened_store(context.settings()) as (store, _):
        store.api_keys.revoke(name)
    output.result(as_json, {"name": name}, f"API key {name} has been revoked.")


def list_sessions(as_json: AsJson = False) -> None:
    # Sessions end by the machine's clock, not by a simulated one.
    now = SystemClock().now()
    with context.opened_store(context.settings()) as (store, _):
        sessions = store.sessions.page(now)
    output.listing(
        as_json,
        sessions,
        ("#ID", "Signed in", "By", "Last used", "Ends", "Browser"),
        lambda session: (
            session.id,
            output.when(session.created_at, now),
            session.opened_by,
            output.when(session.last_used_at, now),
            output.when(session.ends_at, now),
            session.browser,
        ),
        empty=("no browser is signed in", "run `catchment login-link` for a sign-in link"),
    )


def end_sessions(
    session_id: Annotated[
        int | None, typer.Argument(metavar="ID", help="The id of the session, from `sessions list`.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="End all sessions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Takes effect at once."""
    if (session_id is None) != every:
        raise InvalidInput("which session?", "specify an ID, or --all", field="id")
    with context.opened_store(context.settings()) as (store, _):
        if session_id is None:
            count = store.sessions.end_all()
        else:
            store.sessions.end(session_id)
            count = 1
    output.result(as_json, {"ended": count}, f"{output.counted(count, 'session')} ended.")


def login_link(
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="The host of the link, if `serve` runs with --host.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="The port of the link, if `serve` runs with --port."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The link signs in one browser, once, within 15 minutes, on any `serve` that uses this database. The link that
    `serve` printed at start stays valid.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, _):
        token = new_link(store.sign_in_links, SystemClock().now())
    link = f"http://{reachable(host or settings.host)}:{port or settings.port}/login?token={token}"
    if as_json:
        output.document({"url": link, "valid_minutes": LINK_MINUTES})
    else:
        output.raw(f"{link}\n")
        output.note(f"valid once, within {LINK_MINUTES} minutes")
