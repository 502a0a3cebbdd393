"""`credentials`: encrypted secrets by name, and the state of each. Secrets cannot be read back."""

from __future__ import annotations

import getpass
import sys
import warnings
from datetime import datetime
from typing import Annotated, Any

import typer

from catchment.app import App
from catchment.cli import context, output
from catchment.cli.params import AsJson, fixed_moment
from catchment.credentials.cipher import begin_change, cipher_of, end_change, rotate
from catchment.credentials.cipher import new_key as new_master_key
from catchment.credentials.manager import CredentialView, credential_view
from catchment.credentials.secret import Secret
from catchment.errors import Conflict, InvalidInput, NotFound, VaultError
from catchment.fetch.auth import has_cookies_per_host, host_of, hosts_of
from catchment.fetch.client import prove
from catchment.logs import know_secret
from catchment.model import Platform, as_dict
from catchment.store.credentials import StoredCredential, Terms

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the credential.")]
Priority = Annotated[
    int | None,
    typer.Option(metavar="N", min=-1000, max=1000, help="Those with a higher priority are used first; default 0."),
]
DailyLimit = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=2**31 - 1, help="Uses per day (UTC) at most; 0 for no limit."),
]
Expires = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=fixed_moment, help="When it expires; an alert opens in advance."),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="HOST",
        help="A host it may be sent to; for platforms whose sources have hosts of their own, or whose cookies belong "
        "to one of several hosts. May be repeated.",
    ),
]
_MOST_CHARACTERS = 100_000
_TIMES = ("state_since", "state_until", "usable_from", "last_error_at", "last_used_at", "expires_at", "created_at")


def add(
    platform: Annotated[
        str, typer.Argument(metavar="PLATFORM", help="The platform it is for: reddit, feeds, discourse …")
    ],
    name: Name,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing credential of that name.")] = False,
    priority: Priority = None,
    daily_limit: DailyLimit = None,
    expires: Expires = None,
    host: Hosts = None,
    reserved: Annotated[
        bool, typer.Option("--reserved", help="Use it only for sources that name it, not for the whole platform.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Accepts user:password, Bearer TOKEN, header lines, cookies, a bare token, or JSON; a terminal prompts for it
    without showing it. It is encrypted with COOKIE_MASTER_KEY, or with a key created in the data folder, and cannot be
    read back.

    For platforms with fixed hosts, every source may use it: the highest priority first, then the least used. If their
    cookies belong to one host, as those of nga, --host says which; without it, the platform's first host. Where
    sources have hosts of their own, only sources that name it use it, and it is sent only to the hosts given by --host
    or, without that, to the host of the first source that names it.
    """
    with context.opened_app("credentials add", creates=True) as app:
        service = app.platforms.service(platform)
        own_hosts = service.HOSTS
        hosts = _hosts(service, host)
        now = app.clock.now()
        if expires is not None and expires <= now:
            raise InvalidInput("the expiry time is in the past", "use a time in the future", field="expires")
        secret = Secret.parse(_secret_text())
        for value in secret.values():
            know_secret(value)
        terms = Terms(priority, daily_limit, expires, is_shared=bool(own_hosts) and not reserved, hosts=hosts)
        app.secrets.add(platform, name, secret, now, replace=replace, terms=terms)
        app.credential_manager.report_pool(platform)
        credential = _stored(app, name).credential
        bound_hosts = hosts_of(credential, service) if own_hosts else credential.hosts
    use = "every source" if terms.is_shared else "sources that name it (`--credential NAME`)"
    sentences = [f"Credential {name} for {platform} is stored, for use by {use}."]
    if bound_hosts != own_hosts or not own_hosts:
        where = ", ".join(bound_hosts) or "the host of the first source that names it"
        sentences.append(f"It is sent only to {where}.")
    output.result(as_json, {"platform": platform, "name": name}, *sentences)


def _hosts(platform: Platform, hosts: list[str] | None) -> tuple[str, ...] | None:
    """The hosts that a credential is for; None if none are given."""
    bound = tuple(dict.fromkeys(map(host_of, hosts or ())))
    may_choose = has_cookies_per_host(platform)
    if platform.HOSTS and (any(host not in platform.HOSTS for host in bound) or (bound and not may_choose)):
        raise InvalidInput(
            f"a credential for {platform.NAME} is sent only to {', '.join(platform.HOSTS)}",
            "use one of these" if may_choose else "omit --host",
            field="host",
        )
    return bound or None


def _secret_text() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.read(_MOST_CHARACTERS)
    with warnings.catch_warnings():
        # The library would continue and echo what is typed.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass("Secret (not shown): ")
        except getpass.GetPassWarning:
            raise InvalidInput("this terminal cannot hide what you type", "pipe the secret to stdin") from None


def list_credentials(as_json: AsJson = False) -> None:
    """Includes credentials from the environment. Secrets are never shown."""
    with context.opened_app("credentials list") as app:
        now = app.clock.now()
        credentials = [
            credential_view(stored, app.credential_manager.rules, now) for stored in app.credential_manager.page()
        ]
    output.listing(
        as_json,
        credentials,
        ("Platform", "Name", "State", "Usable", "#Priority", "#Today", "#Errors", "#Sources", "Last used", "Expires"),
        lambda credential: (
            credential.platform,
            credential.name,
            credential.state + (" (environment)" if credential.is_from_environment else ""),
            _usable(credential, now),
            credential.priority,
            f"{credential.used_today:,}" + (f" of {limit:,}" if (limit := credential.daily_limit) else ""),
            credential.errors_in_all,
            credential.source_count,
            output.when(credential.last_used_at, now),
            output.when(credential.expires_at, now),
        ),
        empty=("no credentials yet", "run `catchment credentials add PLATFORM NAME`"),
    )


def _usable(credential: CredentialView, now: datetime) -> str:
    if credential.is_usable:
        return "yes"
    return output.when(credential.usable_from, now) if credential.usable_from else "no"


def show(name: Name, as_json: AsJson = False) -> None:
    with context.opened_app("credentials show") as app:
        now = app.clock.now()
        credential = _view(app, name)
        changes = app.store.credentials.changes(name)
    if as_json:
        output.document(as_dict(credential) | {"changes": changes})
        return
    if credential.is_usable:
        credential = credential.replace(usable_from=None)
    output.facts(
        (field.replace("_", " ").capitalize(), output.at(value, now) if field in _TIMES else value)
        for field, value in as_dict(credential).items()
    )
    output.say()
    output.table(
        ("When", "From", "To", "Reason"),
        (
            (output.when(change.changed_at, now), change.from_state, change.to_state, change.reason)
            for change in changes
        ),
    )


def change(
    name: Name,
    priority: Priority = None,
    daily_limit: DailyLimit = None,
    expires: Expires = None,
    host: Hosts = None,
    as_json: AsJson = False,
) -> None:
    """The secret itself stays as it is."""
    changes: dict[str, Any] = {"priority": priority, "daily_limit": daily_limit, "expires_at": expires}
    changes = {field: value for field, value in changes.items() if value is not None}
    if daily_limit == 0:
        changes["daily_limit"] = None
    if not changes and not host:
        raise InvalidInput("nothing to change", "use --priority, --daily-limit, --expires or --host")
    with context.opened_app("credentials change") as app:
        if host:
            platform = _stored(app, name).credential.platform
            changes["hosts"] = _hosts(app.platforms.service(platform), host)
        app.credential_manager.change(name, lambda credential, now: credential.replace(**changes))
        now, credential = app.clock.now(), _view(app, name)
    limit = f"{credential.daily_limit:,} uses per day" if credential.daily_limit else "no daily limit"
    expiry = output.at(credential.expires_at, now) if credential.expires_at else "never"
    _show_state(credential, as_json, f"Priority {credential.priority} · {limit} · expires: {expiry}")


def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown with the credential.")] = None,
    as_json: AsJson = False,
) -> None:
    """Sources that name it are not collected in the meantime."""
    with context.opened_app("credentials pause") as app:
        app.credential_manager.pause(name, reason)
        _show_state(_view(app, name), as_json)


def resume(name: Name, as_json: AsJson = False) -> None:
    """A banned or invalid credential is on probation first: the next request decides."""
    with context.opened_app("credentials resume") as app:
        app.credential_manager.resume(name)
        _show_state(_view(app, name), as_json)


def _show_state(credential: CredentialView, as_json: bool, *more: str) -> None:
    sentence = f"Credential {credential.name} for {credential.platform} is {credential.state}."
    output.result(as_json, credential, sentence, *more)


def check(name: Name, as_json: AsJson = False) -> int:
    """Sends one request with it, and updates its state by the result: a credential that is accepted is used again.
    Exits with 1 if it is rejected. Some platforms offer no way to test a credential.
    """
    with context.opened_app("credentials test") as app:
        credential = _stored(app, name).credential
        proof = prove(app.fetch, app.platforms.service(credential.platform), credential)
        state = _view(app, name).state
    output.result(
        as_json,
        {
            "platform": proof.platform,
            "name": name,
            "is_accepted": proof.is_accepted,
            "message": proof.message,
            "state": state,
        },
        f"Credential {name}: {proof.message}",
    )
    return 1 if proof.is_accepted is False else 0


def remove(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Delete it even if sources use it.")] = False,
    as_json: AsJson = False,
) -> None:
    with context.opened_app("credentials remove") as app:
        stored = _stored(app, name)
        if stored.source_count and not force:
            count = output.counted(stored.source_count, "source")
            raise Conflict(f"the credential {name!r} is used by {count}", "--force deletes it anyway")
        app.credential_manager.remove(name)
    output.result(
        as_json, {"platform": stored.credential.platform, "name": name}, f"Credential {name} has been deleted."
    )


def _stored(app: App, name: str) -> StoredCredential:
    match = next((stored for stored in app.credential_manager.page() if stored.credential.name == name), None)
    if match is None:
        raise NotFound(f"there is no credential named {name!r}", "`catchment credentials list` lists them")
    return match


def _view(app: App, name: str) -> CredentialView:
    return credential_view(_stored(app, name), app.credential_manager.rules, app.clock.now())


def new_key(as_json: AsJson = False) -> None:
    """Nothing is stored: set it as COOKIE_MASTER_KEY, and keep a copy."""
    key = new_master_key()
    if as_json:
        output.document({"key": key})
    else:
        output.raw(f"{key}\n")
        output.note("set it as COOKIE_MASTER_KEY and keep a copy: without it, no credential can be decrypted")


def rotate_key(as_json: AsJson = False) -> None:
    """Set COOKIE_MASTER_KEY=NEW,OLD first: new secrets are encrypted with the first key, and both can decrypt.
    Processes that were started with both keys may keep running. Afterwards, the old key can be dropped.

    A key in the data folder is replaced by a new one there or, if COOKIE_MASTER_KEY is set, by that. If the command is
    interrupted, run it again.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, _):
        cipher = cipher_of(settings, store.encrypted)
        if not cipher.is_given:
            begin_change(cipher)
        total = store.encrypted.count(cipher.key_id)
        with output.bar("Encrypting", total, as_json=as_json) as bar:
            done = rotate(store.encrypted, cipher, bar.move)
        # The old key is kept while any secret needs it.
        old_keys = end_change(cipher) if not cipher.is_given and not store.encrypted.count(cipher.key_id) else []
    if done.locked:
        raise VaultError(
            f"{output.counted(done.resealed, 'secret')} encrypted again; "
            f"no available key decrypts {'; '.join(done.locked)}",
            "set COOKIE_MASTER_KEY to the new key, a comma and the key they were encrypted with; or remove them",
        )
    sentences = [
        f"{output.counted(done.resealed, 'secret')} encrypted again; all secrets now use key {done.key_id}.",
        *(f"Older backups need the old key, which is kept as {path}." for path in old_keys),
    ]
    if cipher.is_given and cipher.in_file():
        sentences.append(f"COOKIE_MASTER_KEY is the key now; only older backups need {cipher.file}.")
    output.result(as_json, {"key_id": done.key_id, "resealed": done.resealed}, *sentences)
