"""`doctor`: what is wrong with this installation, and what helps. Asks nobody outside."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.cli import doors, showing
from catchment.cli.given import AsJson
from catchment.errors import BadSetting, CatchmentError, VaultError
from catchment.model import Record
from catchment.settings import Settings
from catchment.settings.table import without_password

if TYPE_CHECKING:
    from catchment.store import Store
    from catchment.vault import Safe

_LITTLE_SPACE, _TOO_LITTLE_SPACE = 1_000_000_000, 100_000_000
# Before this program was written: a clock that says so has lost its battery.
_EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
_CLOCK_SLACK = timedelta(minutes=5)


class Finding(Record, frozen=True):
    """One thing that was looked at."""

    about: str
    what: str
    verdict: str = "fine"
    """fine, odd (works, but somebody should know) or wrong"""
    helps: str = ""


def doctor(as_json: AsJson = False) -> int:
    """Look for what is wrong here.

    Settings, database, disk, vault and clock are looked at; nobody outside is asked. Each finding says what helps.
    Exits with 1 if something is wrong.
    """
    findings, given = _findings()
    is_well = all(one.verdict != "wrong" for one in findings)
    if as_json:
        shown = [{name: getattr(one, name) for name in one.__struct_fields__} for one in findings]
        showing.document({"is_well": is_well, "findings": shown, "settings": given})
    else:
        _show(findings, given, is_well)
    return 0 if is_well else 1


def _show(findings: list[Finding], given: list[dict[str, str]], is_well: bool) -> None:
    if given:
        columns = ("setting", "value", "default", "comes from")
        showing.table(columns, [tuple(one.values()) for one in given], title="settings that differ from the defaults")
    rows = [(one.verdict, one.about, one.what + (f" — {one.helps}" if one.helps else "")) for one in findings]
    showing.table(("", "looked at", "found"), rows)
    showing.say("nothing is wrong" if is_well else "something is wrong")


def _findings() -> tuple[list[Finding], list[dict[str, str]]]:
    from catchment.logs import redact

    try:
        settings = _settings()
    except BadSetting as error:
        helps = "docs/settings.md lists what is allowed"
        return [Finding("settings", redact(str(error)), "wrong", helps), *_program()], []
    given = [
        {"name": name, "value": value, "default": default, "origin": settings.origins.get(name, "")}
        for name, value, default in settings.differing()
    ]
    return [*_about(settings)], given


def _settings() -> Settings:
    """With all that is to be warned of: this is the one command that has the time to look at every platform."""
    from catchment.jobs import NAMES
    from catchment.shop import settings_from

    return settings_from(os.environ, Path.cwd(), NAMES)


def _about(settings: Settings) -> Iterator[Finding]:
    yield from _program()
    yield from (Finding("settings", warning, "odd") for warning in settings.warnings)
    yield from _home(settings.home)
    yield from _space(settings.home)
    yield from _clock(settings)
    yield from _database(settings)


def _program() -> Iterator[Finding]:
    yield Finding("program", f"Python {platform.python_version()} on {sys.platform}")


def _home(home: Path) -> Iterator[Finding]:
    if not home.exists():
        above = next(one for one in home.parents if one.exists())
        if not os.access(above, os.W_OK):
            yield Finding("home", f"{home} cannot be made", "wrong", "set CATCHMENT_HOME to a folder that can")
            return
        yield Finding("home", f"{home} is made when it is first needed")
        return
    try:
        with tempfile.TemporaryFile(dir=home):
            yield Finding("home", f"{home} can be written to")
    except OSError as error:
        helps = "give this user the right to write there, or set CATCHMENT_HOME"
        yield Finding("home", f"{home} cannot be written to: {error.strerror}", "wrong", helps)


def _space(home: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(next(one for one in (home, *home.parents) if one.exists())).free
    what = f"{free / 1e9:,.1f} GB free at {home}"
    if free < _TOO_LITTLE_SPACE:
        yield Finding("disk", what, "wrong", "make room: nothing can be stored soon")
    elif free < _LITTLE_SPACE:
        yield Finding("disk", what, "odd", "make room before it is needed")
    else:
        yield Finding("disk", what)


def _clock(settings: Settings) -> Iterator[Finding]:
    if settings.clock:
        yield Finding("clock", f"moved by CATCHMENT_CLOCK ({settings.clock})", "odd", "only for tests and the demo")
    elif datetime.now(UTC) < _EARLIEST:
        yield Finding("clock", f"it says {datetime.now(UTC):%Y-%m-%d}", "wrong", "set the machine's clock")
    else:
        yield Finding("clock", f"it says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")


def _database(settings: Settings) -> Iterator[Finding]:
    if not doors.is_sqlite(settings) and find_spec("psycopg") is None:
        helps = "install catchment with the extra `postgres`"
        yield Finding("database", "the driver for PostgreSQL is not installed", "wrong", helps)
        return
    try:
        with doors.bare_database(settings) as database:
            from catchment.store.opening import HEAD, engine_version, revision

            if database.file is not None and not database.file.exists():
                yield Finding("database", f"{without_password(database.shown_url)} is made when it is first needed")
                return
            found, engine = revision(database), engine_version(database)
            yield Finding("database", f"{without_password(database.shown_url)} answers: {engine}")
    except CatchmentError as error:
        yield Finding("database", error.what, "wrong", error.helps)
        return
    except OSError as error:
        yield Finding("database", f"{error.filename}: {error.strerror}", "wrong", "check CATCHMENT_DATABASE_URL")
        return
    if found is None:
        yield Finding("schema", "the database is empty; it is set up when it is first needed")
    elif found != HEAD:
        helps = "run `catchment migrate`" if found < HEAD else "update catchment"
        yield Finding("schema", f"{found}; this program needs {HEAD}", "wrong", helps)
    else:
        yield Finding("schema", f"{found}, as it should be")
        yield from _inside(settings)


def _inside(settings: Settings) -> Iterator[Finding]:
    with doors.opened_store(settings) as (store, now):
        yield from _vault(settings, store)
        yield from _redis(settings, store)
        yield from _credentials(settings, store)
        latest = store.runs.page(1)
        if latest and datetime.fromisoformat(latest[0]["started_at"]) > now + _CLOCK_SLACK:
            helps = "set the machine's clock; until then nothing seems to be due"
            yield Finding("clock", f"the latest run began at {latest[0]['started_at']}, in the future", "wrong", helps)
        alerts = store.alerts.open()
        if alerts:
            yield Finding("alerts", f"{len(alerts)} open", "odd", "`catchment status` shows them")


def _credentials(settings: Settings, store: Store) -> Iterator[Finding]:
    """What is wrong with those that open."""
    from catchment.model import Severity
    from catchment.vault import Keeper, rules_from

    keeper = Keeper(store.credentials, _safe(settings, store), rules_from(settings), doors.clock_of(settings))
    for alarm in keeper.concerns():
        verdict = "wrong" if alarm.severity is Severity.P0 else "odd"
        yield Finding("credentials", alarm.message, verdict)


def _safe(settings: Settings, store: Store) -> Safe:
    from catchment.platforms import installed
    from catchment.vault import Box, Safe
    from catchment.vault.environment import declared, lent

    return Safe(store.credentials, Box(settings.master_key), lent(declared(installed()), settings.declared))


def _redis(settings: Settings, store: Store) -> Iterator[Finding]:
    from catchment.redis_link import open_link

    link = open_link(settings, store, doors.clock_of(settings))
    if link is None:
        return
    trouble = link.check()
    link.close()
    if trouble is None:
        yield Finding("redis", f"{link.shown_url} answers")
    else:
        helps = "see that it runs, or unset CATCHMENT_REDIS_URL; the database is used meanwhile"
        yield Finding("redis", f"{link.shown_url} cannot be asked: {trouble}", "odd", helps)


def _vault(settings: Settings, store: Store) -> Iterator[Finding]:

    credentials = [one.credential for one in store.credentials.page()]
    if not credentials:
        yield Finding("vault", "no credentials are kept")
        return
    safe = _safe(settings, store)
    closed = [problem for one in credentials if (problem := _closed(safe, one.name))]
    yield from closed
    yield Finding("vault", f"{len(credentials) - len(closed)} of {len(credentials)} credentials open")


def _closed(safe: Safe, name: str) -> Finding | None:
    """What keeps a credential from being opened."""
    try:
        safe.secret(name)
    except VaultError as error:
        return Finding("vault", f"{name}: {error.what}", "wrong", error.helps)
    return None
