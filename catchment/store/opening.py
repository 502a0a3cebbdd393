"""Opening the database: made if it is not there, migrated by those who may, refused where it is not ours."""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from catchment.errors import InvalidInput, SchemaMismatch
from catchment.store.database import Database
from catchment.store.schema import metadata

HEAD = "0001"
_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK_KEY = 0x63617463  # "catc": PostgreSQL's advisory lock for changing the schema


def ready(database: Database, home: Path, now: datetime, *, may_migrate: bool) -> str | None:
    """See that the schema is ours and current; gives the path of the backup if a SQLite file was migrated.

    A database with nothing in it is set up by whoever comes first. An older one is migrated only by those who may:
    a process that runs beside others must not change the schema under them.
    """
    backup = None
    found = revision(database)
    if found != HEAD:
        with _only_one(database, home):
            found = revision(database)
            if found is None:
                _refuse_if_it_was_full(database, home)
                _set_up(database)
            elif found != HEAD:
                backup = _migrate(database, home, found, now, may_migrate=may_migrate)
    _remember(database, home)
    return backup


def revision(database: Database) -> str | None:
    """The schema's revision; None for an empty database."""
    with database.engine.connect() as connection:
        tables = inspect(connection).get_table_names()
        if "alembic_version" not in tables:
            strangers = sorted(set(tables) & set(metadata.tables))
            if strangers:
                raise SchemaMismatch(
                    f"{database.shown_url} has tables of the same names that are not catchment's ({strangers[0]}, …)",
                    "give it a database of its own",
                )
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _migrate(database: Database, home: Path, found: str, now: datetime, *, may_migrate: bool) -> str | None:
    if found > HEAD:
        raise SchemaMismatch(
            f"the database has schema {found}, newer than this program's {HEAD}",
            "update catchment; or restore the backup that was made before the update",
        )
    if not may_migrate:
        raise SchemaMismatch(f"the database has schema {found}, this program needs {HEAD}", "run `catchment migrate`")
    backup = back_up(database, home / "backups" / f"before-{HEAD}-{now:%Y%m%d-%H%M%S}.db") if database.file else None
    _upgrade(database)
    return str(backup) if backup else None


def _set_up(database: Database) -> None:
    with database.engine.begin() as connection:
        metadata.create_all(connection)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
        connection.execute(text("INSERT INTO ledger (id, change_number, last_item_id) VALUES (1, 0, 0)"))


def _upgrade(database: Database, to: str = "head") -> None:
    # Heavy, and needed only here.
    from alembic import command

    with database.engine.begin() as connection:
        command.upgrade(_config(connection), to)


def _config(connection: Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _only_one(database: Database, home: Path) -> Iterator[None]:
    """One process at a time may touch the schema."""
    if database.is_postgres:
        session = database.own_session()
        try:
            session.execute("SELECT pg_advisory_lock(%s)", [_LOCK_KEY])
            yield
        finally:
            session.close()
        return
    home.mkdir(parents=True, exist_ok=True)
    with (home / "schema.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ── a database that was full and is empty now ─────────────────────────────────────────────────────────────────────


def _remember(database: Database, home: Path) -> None:
    """Note in the home that this database holds items, once it does."""
    known = _known(home)
    if known.get(database.shown_url):
        return
    row = database.read(lambda tx: tx.one("SELECT last_item_id FROM ledger WHERE id = 1"))
    if row and row[0]:
        home.mkdir(parents=True, exist_ok=True)
        (home / "databases.json").write_text(json.dumps({**known, database.shown_url: True}))


def _refuse_if_it_was_full(database: Database, home: Path) -> None:
    if _known(home).get(database.shown_url):
        raise SchemaMismatch(
            f"{database.shown_url} is empty, but {home} knows it with items in it",
            f"restore a backup (`catchment restore FILE`), or, to begin anew, delete {home / 'databases.json'}",
        )


def _known(home: Path) -> dict[str, Any]:
    try:
        known = json.loads((home / "databases.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


# ── backup and restore of a SQLite file ───────────────────────────────────────────────────────────────────────────


def back_up(database: Database, to: Path) -> Path:
    """A copy of a SQLite database, whole and consistent, while others go on writing."""
    file = _sqlite_file(database, "`pg_dump` makes backups of PostgreSQL")
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.exists():
        raise InvalidInput(f"{to} exists already", "give another name")
    # Under another name until it is whole: a torn backup must not look like one.
    part = to.with_name(to.name + ".part")
    source, target = sqlite3.connect(file), sqlite3.connect(part)
    try:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
    finally:
        source.close()
        target.close()
    part.replace(to)
    return to


def restore(database: Database, home: Path, backup: Path, now: datetime) -> Path | None:
    """Put a backup in the database's place; what was there is kept beside it. Gives where."""
    file = _sqlite_file(database, "`pg_restore` restores PostgreSQL")
    _check_backup(backup)
    with _only_one(database, home):
        database.close()
        kept = None
        if file.exists():
            kept = back_up(database, home / "backups" / f"before-restore-{now:%Y%m%d-%H%M%S}.db")
            database.close()
        source, target = sqlite3.connect(backup), sqlite3.connect(file)
        try:
            source.backup(target)
        finally:
            source.close()
            target.close()
    return kept


def _check_backup(backup: Path) -> None:
    if not backup.is_file():
        raise InvalidInput(f"there is no file {backup}", "give the path of a backup")
    connection = sqlite3.connect(f"file:{backup}?mode=ro", uri=True)
    try:
        sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        known = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise InvalidInput(f"{backup} is not a backup of catchment ({error})") from error
    finally:
        connection.close()
    if not sound or known is None or known[0] > HEAD:
        raise InvalidInput(f"{backup} is damaged, or newer than this program", "use another backup")


def _sqlite_file(database: Database, otherwise: str) -> Path:
    if database.file is None:
        raise InvalidInput("the database is not a SQLite file", otherwise)
    return database.file
