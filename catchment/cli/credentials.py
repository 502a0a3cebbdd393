"""`credentials`: secrets by name, sealed, and how each one stands. None can be read back."""

from __future__ import annotations

import getpass
import sys
import warnings
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, moment
from catchment.errors import Conflict, InvalidInput, NotFound, VaultError

if TYPE_CHECKING:
    from catchment.shop import Shop
    from catchment.store.credentials import Kept

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Cookies and tokens by name, encrypted.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the credential is called.")]
Priority = Annotated[
    int | None, typer.Option(metavar="N", min=-1000, max=1000, help="The highest is taken first; 0 unless it is given.")
]
DailyLimit = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=2**31 - 1, help="How many uses a day, from midnight in UTC; 0: any number."),
]
Expires = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=moment, help="When it ends, where that is known: warned of in advance."),
]
_MOST_CHARACTERS = 100_000
_TIMES = ("state_since", "state_until", "usable_from", "last_error_at", "last_used_at", "expires_at", "created_at")


@app.command()
def add(
    platform: Annotated[
        str, typer.Argument(metavar="PLATFORM", help="The platform that it is for: reddit, feeds, discourse …")
    ],
    name: Name,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the one of that name, if there is one.")] = False,
    priority: Priority = None,
    daily_limit: DailyLimit = None,
    expires: Expires = None,
    reserved: Annotated[
        bool, typer.Option("--reserved", help="Only for sources that name it, not for all of the platform.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Keep a secret, read from stdin.

    Understood are user:password, Bearer TOKEN, header lines, cookies, a bare token, and JSON. It is encrypted with
    COOKIE_MASTER_KEY, and cannot be read back. On a terminal it is asked for, and not shown. Any source of a platform
    with hosts of its own is asked with it, the highest priority and the least used first; where sources bring their
    own hosts, those that name it are.
    """
    with doors.opened_shop("credentials add") as shop:
        from catchment.logs import know_secret
        from catchment.store.credentials import Terms
        from catchment.vault import Secret

        hosts = shop.platforms.by_name[shop.platforms.named(platform)].HOSTS
        now = shop.clock.now()
        if expires is not None and expires <= now:
            raise InvalidInput("it would have ended already", "give a time to come", field="expires")
        secret = Secret.parse(_secret_text())
        for value in secret.values():
            know_secret(value)
        terms = Terms(priority, daily_limit, expires, is_shared=bool(hosts) and not reserved)
        shop.safe.add(platform, name, secret, now, replace=replace, terms=terms)
        shop.keeper.settle(platform)
    if as_json:
        showing.document({"platform": platform, "name": name})
    else:
        how = "any source of it is" if terms.is_shared else "sources that name it (`--credential NAME`) are"
        showing.say(f"credential {name} for {platform} is kept; {how} asked with it")


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
    """List the credentials, and how they stand.

    No secret can be shown. Those that stand in the environment are listed, too.
    """
    with doors.opened_shop("credentials list") as shop:
        from catchment.vault import shown

        now = shop.clock.now()
        found = [shown(one, shop.keeper.rules, now) for one in shop.keeper.page()]
    if as_json:
        showing.document(found)
        return
    showing.table(
        ("platform", "name", "state", "usable", "#priority", "#today", "#errors", "#sources", "last used", "ends"),
        (
            (
                one["platform"],
                one["name"],
                one["state"] + (" (environment)" if one["is_from_environment"] else ""),
                _usable(one, now),
                one["priority"],
                f"{one['used_today']:,}" + (f" of {one['daily_limit']:,}" if one["daily_limit"] else ""),
                one["errors_in_all"],
                one["source_count"],
                showing.when(one["last_used_at"], now),
                showing.when(one["expires_at"], now),
            )
            for one in found
        ),
    )


def _usable(one: dict[str, Any], now: datetime) -> str:
    if one["is_usable"]:
        return "yes"
    return showing.when(one["usable_from"], now) if one["usable_from"] else "no"


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one, and what became of it."""
    with doors.opened_shop("credentials show") as shop:
        now = shop.clock.now()
        one = _shown(shop, name)
        changes = shop.store.credentials.changes(name)
    if as_json:
        showing.document(one | {"changes": changes})
        return
    if one["is_usable"]:
        one["usable_from"] = None
    showing.facts(
        (label.replace("_", " "), showing.at(value, now) if label in _TIMES else value) for label, value in one.items()
    )
    showing.table(
        ("when", "from", "to", "why"),
        (
            (showing.when(each["changed_at"], now), each["from_state"], each["to_state"], each["reason"])
            for each in changes
        ),
    )


@app.command()
def change(
    name: Name,
    priority: Priority = None,
    daily_limit: DailyLimit = None,
    expires: Expires = None,
    as_json: AsJson = False,
) -> None:
    """Change its priority, its daily limit, or when it ends.

    The secret stays as it is.
    """
    told = {"priority": priority, "expires_at": expires}
    changed: dict[str, Any] = {field: value for field, value in told.items() if value is not None}
    if daily_limit is not None:
        changed["daily_limit"] = daily_limit or None
    if not changed:
        raise InvalidInput("change what?", "give --priority, --daily-limit or --expires")
    with doors.opened_shop("credentials change") as shop:
        shop.keeper.change(name, lambda one, now: one.plus(**changed))
        now, shown = shop.clock.now(), _shown(shop, name)
    _show_changed(shown, as_json)
    if not as_json:
        limit = f"{shown['daily_limit']:,} uses a day" if shown["daily_limit"] else "any number of uses a day"
        showing.say(f"priority {shown['priority']} · {limit} · ends: {showing.at(shown['expires_at'], now)}")


@app.command()
def pause(
    name: Name,
    reason: Annotated[str, typer.Option(metavar="WORDS", help="Why.")] = "paused by a person",
    as_json: AsJson = False,
) -> None:
    """Use it no more until it is resumed.

    Sources that name it are not read meanwhile.
    """
    with doors.opened_shop("credentials pause") as shop:
        shop.keeper.pause(name, reason)
        shown = _shown(shop, name)
    _show_changed(shown, as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Use it again.

    One that was banned or invalid is on probation: the next request decides.
    """
    with doors.opened_shop("credentials resume") as shop:
        shop.keeper.resume(name)
        shown = _shown(shop, name)
    _show_changed(shown, as_json)


def _show_changed(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        showing.document(shown)
    else:
        showing.say(f"credential {shown['name']} of {shown['platform']} is {shown['state']}")


@app.command(name="test")
def ask_with(name: Name, as_json: AsJson = False) -> int:
    """Ask its platform with it, now.

    What comes counts: a credential that is accepted is in use again. Exits with 1 if it is refused. Where a platform
    has nothing to test with, that is said.
    """
    with doors.opened_shop("credentials test") as shop:
        from catchment.collect.proving import prove

        credential = _kept(shop, name).credential
        platform = shop.platforms.by_name[shop.platforms.named(credential.platform)]
        proof = prove(shop.fetch, platform, credential)
        shown = _shown(shop, name)
    if as_json:
        told = {"platform": proof.platform, "name": name, "is_accepted": proof.is_accepted, "message": proof.message}
        showing.document(told | {"state": shown["state"]})
    else:
        showing.say(f"credential {name}: {proof.message}")
    return 1 if proof.is_accepted is False else 0


@app.command()
def remove(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Even if sources use it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a secret for good."""
    with doors.opened_shop("credentials remove") as shop:
        known = _kept(shop, name)
        if known.source_count and not force:
            raise Conflict(f"{known.source_count} sources use the credential {name!r}", "--force removes it anyway")
        shop.keeper.remove(name)
    if as_json:
        showing.document({"platform": known.credential.platform, "name": name})
    else:
        showing.say(f"credential {name} is gone")


def _kept(shop: Shop, name: str) -> Kept:
    known = next((one for one in shop.keeper.page() if one.credential.name == name), None)
    if known is None:
        raise NotFound(f"there is no credential named {name!r}", "`catchment credentials list` shows them")
    return known


def _shown(shop: Shop, name: str) -> dict[str, Any]:
    from catchment.vault import shown

    return shown(_kept(shop, name), shop.keeper.rules, shop.clock.now())


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


@app.command(name="rotate-key")
def rotate_key(as_json: AsJson = False) -> None:
    """Encrypt everything anew with another master key.

    Set COOKIE_MASTER_KEY=NEW,OLD: the first one encrypts, both decrypt. Collecting may go on meanwhile, in processes
    that were started with both keys. Afterwards the old one can go. If it is interrupted, begin it again: it does the
    rest.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, _):
        from catchment.vault import Box
        from catchment.vault.rotating import rotate

        box = Box(settings.master_key)
        total = store.sealed.count(box.key_id)
        with showing.bar("sealed anew", total, is_shown=showing.is_watched() and not as_json) as bar:
            done = rotate(store.sealed, box, bar.move)
    if done.locked:
        raise VaultError(
            f"{done.resealed} sealed anew; no given key opens {'; '.join(done.locked)}",
            "set COOKIE_MASTER_KEY to both keys (the new one, a comma, the one they were locked with), or remove them",
        )
    if as_json:
        showing.document({"key_id": done.key_id, "resealed": done.resealed})
    else:
        showing.say(f"{showing.counted(done.resealed, 'secret')} sealed anew; all are locked with key {done.key_id}")
