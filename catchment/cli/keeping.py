"""`migrate`, `backup`, `restore`: the database itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson
from catchment.errors import Conflict, NotFound, StoreError
from catchment.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from catchment.store.database import Database


def migrate(as_json: AsJson = False) -> None:
    """Bring the database to the form that is needed.

    After an update of catchment. A SQLite file is copied first, into `backups` in CATCHMENT_HOME.
    """
    settings = doors.settings()
    with doors.bare_database(settings) as database:
        from catchment.store.opening import HEAD, ready, revision

        found = revision(database)
        backup = ready(database, settings.home, doors.clock_of(settings).now(), may_migrate=True)
    if as_json:
        showing.document({"from": found, "to": HEAD, "backup": backup})
    elif found == HEAD:
        showing.say(f"the database has schema {HEAD} already")
    else:
        showing.say(f"the database has schema {HEAD} now" + (f"; before: {found}" if found else ""))
        if backup:
            showing.say(f"its copy from before: {backup}")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Copy a SQLite database into a file.

    Whole and consistent, while others go on working. For PostgreSQL there is `pg_dump`.
    """
    settings = doors.settings()
    with doors.bare_database(settings) as database:
        from catchment.store.opening import back_up

        if database.file is not None and not database.file.exists():
            raise NotFound(f"there is no database {database.file} yet", "there is nothing to back up")
        size = back_up(database, file).stat().st_size
    if as_json:
        showing.document({"file": str(file), "bytes": size})
    else:
        showing.say(f"{size:,} bytes written to {file}")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    as_json: AsJson = False,
) -> None:
    """Put a backup in the database's place.

    What was there is kept, in `backups` in CATCHMENT_HOME. Refused while another process works with the database.
    """
    settings = doors.settings()
    now = doors.clock_of(settings).now()
    with doors.bare_database(settings) as database:
        from catchment.store.opening import restore as put_back

        _refuse_while_in_use(database, settings, now)
        kept = put_back(database, settings.home, file, now)
    if as_json:
        showing.document({"file": str(file), "kept": str(kept) if kept else None})
    else:
        showing.say(f"restored from {file}" + (f"; what was there: {kept}" if kept else ""))


def _refuse_while_in_use(database: Database, settings: Settings, now: datetime) -> None:
    from catchment.store.leases import living

    if database.file is None or not database.file.exists():
        return
    try:
        processes = living(database, settings.home, now)
    except StoreError:
        # Damaged, which may be the very reason to restore.
        return
    if processes:
        one = processes[0]
        raise Conflict(f"the database is in use by {one['work']} (process {one['pid']})", "stop it first")
