"""The doctor: checks an installation for problems, and says what to do about each. Contacts no platform."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from catchment import installation
from catchment.clock import Clock, clock_from
from catchment.credentials.cipher import Cipher, cipher_of
from catchment.credentials.manager import CredentialManager, rules_from
from catchment.credentials.secret_store import SecretStore, declared, lent
from catchment.errors import CatchmentError, VaultError
from catchment.model import Record, Severity
from catchment.platforms import installed
from catchment.redis import RedisLink, open_link
from catchment.settings import Settings
from catchment.settings.table import without_password
from catchment.store import Store, open_store
from catchment.store.connections import BEAT_CONNECTIONS, CHILD_CONNECTIONS, SERVER_CONNECTIONS
from catchment.store.database import Database
from catchment.store.leases import Presence
from catchment.store.migrate import fault, revision
from catchment.store.version import HEAD, engine_version, mismatch, was_full
from catchment.text.clean import fingerprint
from catchment.text.html import is_compiled

# Above this size only the quick check runs: the full one reads every index entry and takes minutes.
_LARGE_FILE = 2_000_000_000
_LITTLE_SPACE, _TOO_LITTLE_SPACE = 1_000_000_000, 100_000_000
# Before this program was written: a clock with such a date has lost its battery.
_EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
_CLOCK_SLACK = timedelta(minutes=5)


class Check(Record, frozen=True):
    """The result of one check."""

    about: str
    what: str
    verdict: str = "fine"
    """fine, odd (works, but the operator should know) or wrong"""
    helps: str = ""


def examine(settings: Settings) -> Iterator[Check]:
    """Yields the result of each check, of everything that can be checked in the current state."""
    yield program()
    yield from (Check("settings", warning, "odd") for warning in settings.warnings)
    yield _home(settings.home)
    yield from _permissions(settings)
    yield _space(settings.home)
    yield _clock(settings)
    try:
        yield from _database(settings)
    except CatchmentError as error:
        yield Check("database", error.what, "wrong", error.helps)
    except OSError as error:
        yield Check("database", f"{error.filename}: {error.strerror}", "wrong", "check CATCHMENT_DATABASE_URL")


def changed_settings(settings: Settings) -> list[dict[str, str]]:
    """Returns the settings that differ from their defaults, and where they are set."""
    return [
        {"name": name, "value": value, "default": default, "origin": settings.origins.get(name, "")}
        for name, value, default in settings.differing()
    ]


def program() -> Check:
    way = "by compiled code" if is_compiled() else "in Python (no C compiler was found when catchment was installed)"
    return Check("program", f"Python {platform.python_version()} on {sys.platform}; plain HTML is read {way}")


def _home(home: Path) -> Check:
    if not home.exists():
        above = next(parent for parent in home.parents if parent.exists())
        if not os.access(above, os.W_OK):
            return Check("home", f"{home} cannot be created", "wrong", "set CATCHMENT_HOME to another folder")
        return Check("home", f"{home} does not exist yet; it is created when it is needed")
    try:
        with tempfile.TemporaryFile(dir=home):
            return Check("home", f"{home} is writable")
    except OSError as error:
        helps = "give this user write access, or set CATCHMENT_HOME"
        return Check("home", f"{home} is not writable: {error.strerror}", "wrong", helps)


def _permissions(settings: Settings) -> Iterator[Check]:
    """Files that other users of this machine could read: the archive, its copies, and signing and encryption keys."""
    wide = [path for path in _private_paths(settings) if _is_wide(path)]
    if wide:
        shown = ", ".join(str(path) for path in wide[:3]) + (f" and {len(wide) - 3} more" if len(wide) > 3 else "")
        helps = f"run `chmod -R go-rwx {settings.home}`" if settings.home in wide else "run `chmod go-rwx` on them"
        yield Check("permissions", f"other users of this machine have access to {shown}", "odd", helps)
    elif settings.home.exists():
        yield Check("permissions", "only this user has access to the data")


def _is_wide(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except FileNotFoundError:
        # SQLite removes its log when the last process leaves, and others remove their temporary files.
        return False


def _private_paths(settings: Settings) -> list[Path]:
    home = settings.home
    files = [path for path in (*home.glob("*"), *home.glob("backups/*")) if path.is_file()] if home.is_dir() else []
    with suppress(CatchmentError), closing(_open_database(settings)) as database:
        if database.file is not None:
            beside = (database.file.with_name(database.file.name + ending) for ending in ("", "-wal", "-shm"))
            files += [path for path in beside if path.is_file()]
    if home.is_dir() and not stat.S_IMODE(home.stat().st_mode) & 0o077:
        # Nobody else can reach the files through the folder.
        return [path for path in dict.fromkeys(files) if home not in path.parents]
    return [*([home] if home.is_dir() else []), *dict.fromkeys(files)]


def _space(home: Path) -> Check:
    free = shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
    what = f"{free / 1e9:,.1f} GB free at {home}"
    if free < _TOO_LITTLE_SPACE:
        return Check("disk", what, "wrong", "free some space now: soon nothing can be stored")
    if free < _LITTLE_SPACE:
        return Check("disk", what, "odd", "free some space soon")
    return Check("disk", what)


def _clock(settings: Settings) -> Check:
    now = datetime.now(UTC)
    if settings.clock:
        return Check("clock", f"simulated by CATCHMENT_CLOCK ({settings.clock})", "odd", "only for tests and the demo")
    if now < _EARLIEST:
        return Check("clock", f"wrong date: {now:%Y-%m-%d}", "wrong", "set the clock of this machine")
    return Check("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def _open_database(settings: Settings) -> Database:
    return Database(settings.database_url, pool_size=2, creates=False)


def _database(settings: Settings) -> Iterator[Check]:
    if not settings.database_url.startswith("sqlite:") and not installation.is_installed("postgres"):
        helps = f"run `{installation.install_command('postgres')}`"
        yield Check("database", "the PostgreSQL driver is not installed", "wrong", helps)
        return
    with closing(_open_database(settings)) as database:
        url = without_password(database.shown_url)
        if not database.is_there:
            if was_full(database, settings.home):
                yield _emptied(f"{url} is missing", settings)
            else:
                yield Check("database", f"{url} does not exist yet; it is created when it is needed")
            return
        schema, engine = revision(database), engine_version(database)
        if schema is None and was_full(database, settings.home):
            yield _emptied(f"{url} is empty", settings)
            return
        yield Check("database", f"{url} answers: {engine}")
        if schema is not None:
            yield _integrity(database)
        if schema == HEAD:
            yield _writability(database, settings)
    if schema is None and database.file is not None:
        # There is a record only of databases that had items, at the place where they were.
        helps = (
            "if it had items, restore a backup (`catchment restore FILE`); otherwise, it is set up when it is needed"
        )
        yield Check("schema", f"the file {database.file} is there, but empty", "odd", helps)
    elif schema is None:
        yield Check("schema", "the database is empty; it is set up when it is needed")
    elif outdated := mismatch(schema):
        what = f"the schema is {schema}; this version of catchment needs {HEAD}"
        yield Check("schema", what, "wrong", outdated.helps)
    else:
        yield Check("schema", f"{schema}, up to date")
        yield from _contents(settings)


def _emptied(what: str, settings: Settings) -> Check:
    helps = (
        "restore a backup (`catchment restore FILE`), or delete "
        f"{settings.home / 'databases.json'} to start with an empty database"
    )
    return Check("database", f"{what}, although {settings.home} has a record of items in it", "wrong", helps)


def _integrity(database: Database) -> Check:
    is_quick = database.file is not None and database.file.stat().st_size > _LARGE_FILE
    damage = fault(database, is_quick=is_quick)
    if damage is not None:
        helps = "stop all processes that use it, and restore a backup (`catchment restore FILE`)"
        return Check("integrity", f"{without_password(database.shown_url)} {damage}", "wrong", helps)
    if database.is_postgres:
        return Check("integrity", "all tables exist")
    checked = "quick check, because the file is large" if is_quick else "all pages and indexes"
    return Check("integrity", f"no damage found ({checked})")


def _writability(database: Database, settings: Settings) -> Check:
    """Register as a process and leave, as all do: a full disk or a missing permission shows at the commit."""
    now = clock_from(settings.clock, settings.home).now()
    try:
        Presence(database, settings.home, "doctor", now).leave(now)
    except CatchmentError as error:
        return Check("database", f"not writable: {error.what}", "wrong", error.helps)
    return Check("database", "writable")


def _contents(settings: Settings) -> Iterator[Check]:
    clock = clock_from(settings.clock, settings.home)
    now = clock.now()
    with closing(
        open_store(settings.database_url, settings.home, now, fingerprint, creates=False, pool_size=2)
    ) as store:
        cipher = cipher_of(settings, store.encrypted)
        secrets = SecretStore(store.credentials, cipher, lent(declared(installed()), settings.declared))
        yield _master_key(cipher, store)
        yield from _vault(secrets, store)
        yield from _redis(settings, store, clock)
        yield from _distributed(settings, store)
        for alert in CredentialManager(store.credentials, secrets, rules_from(settings), clock).concerns():
            yield Check("credentials", alert.message, "wrong" if alert.severity is Severity.P0 else "odd")
        latest = store.runs.page(1)
        if latest and latest[0].started_at > now + _CLOCK_SLACK:
            helps = "set the clock of this machine; until then, no source seems to be due"
            what = f"the latest run started at {latest[0].started_at.isoformat()}, in the future"
            yield Check("clock", what, "wrong", helps)
        alerts = store.alerts.open()
        if alerts:
            yield Check("alerts", f"{len(alerts)} open", "odd", "`catchment status` shows them")


def _redis(settings: Settings, store: Store, clock: Clock) -> Iterator[Check]:
    link = open_link(settings, store, clock)
    if link is None:
        return
    trouble = link.check()
    link.close()
    if trouble is None:
        yield Check("redis", f"{link.shown_url} answers")
    else:
        helps = "check that it is running, or unset CATCHMENT_REDIS_URL; until then, the database is used instead"
        yield Check("redis", f"{link.shown_url} is unavailable: {trouble}", "odd", helps)


def _distributed(settings: Settings, store: Store) -> Iterator[Check]:
    """The broker of the distributed engine, and whether PostgreSQL has connections for all processes."""
    if settings.broker_url is None:
        return
    if not installation.is_installed("distributed"):
        helps = f"run `{installation.install_command('distributed')}`"
        yield Check("broker", "CELERY_BROKER_URL is set, but Celery is not installed", "wrong", helps)
        return
    link = RedisLink(settings.broker_url, "", away="the message broker does not answer")
    trouble = link.check()
    link.close()
    if trouble is None:
        yield Check("broker", f"{link.shown_url} answers")
    else:
        helps = "check that it is running, and CELERY_BROKER_URL; until then, workers get nothing to do"
        yield Check("broker", f"{link.shown_url} is unavailable: {trouble}", "wrong", helps)
    allowed = store.database.most_connections()
    if allowed is None:
        helps = "use PostgreSQL (CATCHMENT_DATABASE_URL) if workers run on several machines or get in each other's way"
        yield Check("connections", "workers share a SQLite file: one writes at a time", "odd", helps)
        return
    worker, server = settings.worker_count * CHILD_CONNECTIONS, settings.concurrency + SERVER_CONNECTIONS
    one_of_each = worker + server + BEAT_CONNECTIONS
    what = (
        f"a worker uses up to {worker} ({settings.worker_count} children), a server {server}, beat {BEAT_CONNECTIONS}: "
        f"{one_of_each} with one of each; PostgreSQL allows {allowed}"
    )
    if one_of_each > allowed:
        yield Check("connections", what, "wrong", "raise max_connections, or lower CELERY_WORKER_COUNT")
    else:
        yield Check("connections", f"{what}, enough for {1 + (allowed - one_of_each) // worker} workers")


def _master_key(cipher: Cipher, store: Store) -> Check:
    """Which key encrypts the secrets, and where it is."""
    try:
        of_file = cipher.key_ids_in_file()
    except VaultError as error:
        return Check("master key", error.what, "wrong", error.helps)
    if cipher.is_given:
        count = sum(store.encrypted.count("") - store.encrypted.count(key_id) for key_id in of_file)
        if not count:
            return Check("master key", "COOKIE_MASTER_KEY")
        what = f"COOKIE_MASTER_KEY, but {count} secrets are still encrypted with the key in {cipher.file}"
        helps = "`catchment credentials rotate-key` encrypts them with COOKIE_MASTER_KEY"
        return Check("master key", what, "odd", helps)
    if of_file:
        return Check("master key", f"in {cipher.file}", helps="keep a copy elsewhere: without it, secrets are lost")
    if (loss := cipher.loss) is not None:
        return Check("master key", loss.what, "wrong", loss.helps)
    return Check("master key", f"none yet; it is created in {cipher.file} with the first secret")


def _vault(secrets: SecretStore, store: Store) -> Iterator[Check]:
    """Credentials that cannot be decrypted, and how many can."""
    names = [stored.credential.name for stored in store.credentials.page()]
    if not names:
        yield Check("vault", "no credentials are stored")
        return
    locked = 0
    for name in names:
        try:
            secrets.secret(name)
        except VaultError as error:
            locked += 1
            yield Check("vault", f"{name}: {error.what}", "wrong", error.helps)
    yield Check("vault", f"{len(names) - locked} of {len(names)} credentials can be decrypted")
