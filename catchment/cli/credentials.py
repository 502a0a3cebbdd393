"""`credentials`: secrets by name, sealed. None can be read back."""

from __future__ import annotations

import getpass
import sys
import warnings
from typing import Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson
from catchment.errors import Conflict, InvalidInput, NotFound

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Cookies and tokens by name, encrypted.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the credential is called.")]
_MOST_CHARACTERS = 100_000


@app.command()
def add(
    platform: Annotated[
        str, typer.Argument(metavar="PLATFORM", help="The platform that it is for: feeds, discourse …")
    ],
    name: Name,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the one of that name, if there is one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Keep a secret, read from stdin.

    Understood are user:password, Bearer TOKEN, header lines, cookies, a bare token, and JSON. It is encrypted with
    COOKIE_MASTER_KEY, and cannot be read back. On a terminal it is asked for, and not shown.
    """
    with doors.opened_shop("credentials add") as shop:
        from catchment.logs import know_secret
        from catchment.vault import Secret

        shop.platforms.named(platform)
        secret = Secret.parse(_secret_text())
        for value in secret.values():
            know_secret(value)
        shop.safe.add(platform, name, secret, shop.clock.now(), replace=replace)
    if as_json:
        showing.document({"platform": platform, "name": name})
    else:
        showing.say(f"credential {name} for {platform} is kept")


def _secret_text() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.read(_MOST_CHARACTERS)
    with warnings.catch_warnings():
        # The library would go on and show what is typed.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass("Secret (not shown): ")
        except getpass.GetPassWarning:
            raise InvalidInput("this terminal cannot hide what is typed", "pipe the secret in") from None


@app.command(name="list")
def list_credentials(as_json: AsJson = False) -> None:
    """List the credentials; no secret can be shown."""
    with doors.opened_shop("credentials list") as shop:
        from catchment.vault import shown

        now = shop.clock.now()
        found = [shown(one, shop.keeper.rules, now) for one in shop.keeper.page()]
    if as_json:
        showing.document(found)
        return
    showing.table(
        ("platform", "name", "state", "#sources", "last used", "key"),
        (
            (
                one["platform"],
                one["name"],
                one["state"],
                one["source_count"],
                showing.when(one["last_used_at"], now),
                one["key_id"],
            )
            for one in found
        ),
    )


@app.command()
def remove(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Even if sources use it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a secret for good."""
    with doors.opened_store(doors.settings()) as (store, now):
        known = next((one for one in store.credentials.page() if one.credential.name == name), None)
        if known is None:
            raise NotFound(f"there is no credential named {name!r}", "`catchment credentials list` shows them")
        if known.source_count and not force:
            raise Conflict(f"{known.source_count} sources use the credential {name!r}", "--force removes it anyway")
        store.credentials.remove(name, now)
    if as_json:
        showing.document({"platform": known.credential.platform, "name": name})
    else:
        showing.say(f"credential {name} is gone")


@app.command(name="new-key")
def make_key(as_json: AsJson = False) -> None:
    """Make a master key, and print it.

    Nothing is stored: set it as COOKIE_MASTER_KEY, and keep a copy.
    """
    from catchment.vault import new_key

    key = new_key()
    if as_json:
        showing.document({"key": key})
    else:
        showing.raw(f"{key}\n")
        showing.note("set it as COOKIE_MASTER_KEY and keep a copy: without it no credential opens")
