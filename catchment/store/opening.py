"""Opening the database: made if it is not there, migrated by those who may, refused where it is not ours."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from catchment.errors import InvalidInput, SchemaMismatch, StoreError
from catchment.store.database import BUSY_SECONDS, Database
from catchment.store.schema import metadata

HEAD = "0004"
_OURS = {"alembic_version", *metadata.tables}
MIGRATIONS = Path(__file__).parent / "migrations"
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
    remember(database, home)
    return backup


def revision(database: Database) -> str | None:
    """The schema's revision; None for a database without tables of ours."""
    with database.said_plainly(), database.engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables & _OURS:
            return None
        found: str | None = None
        # Other programs have tables of these names, and of alembic's: all of ours, or it is not ours.
        if tables >= {"alembic_version", "ledger"}:
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is None:
        raise SchemaMismatch(
            f"{database.shown_url} has tables of the same names that are not catchment's "
            f"({', '.join(sorted(tables & _OURS)[:3])}, …)",
            "give catchment a database of its own",
        )
    return found


def engine_version(database: Database) -> str:
    """Which database, in which version."""
    question = "SHOW server_version" if database.is_postgres else "SELECT sqlite_version()"
    row = database.read(lambda tx: tx.one(question))
    return f"{'PostgreSQL' if database.is_postgres else 'SQLite'} {row[0] if row else ''}".strip()


def _migrate(database: Database, home: Path, found: str, now: datetime, *, may_migrate: bool) -> str | None:
    if found > HEAD:
        raise SchemaMismatch(
            f"the database has schema {found}, newer than this program's {HEAD}",
            "update catchment; or restore the backup that was made before the update",
        )
    if not may_migrate:
        raise SchemaMismatch(f"the database has schema {found}, this program needs {HEAD}", "run `catchment migrate`")
    backup = back_up(database, home / "backups" / f"before-{HEAD}-{now:%Y%m%d-%H%M%S}.db") if database.file else None
    upgrade(database)
    return str(backup) if backup else None


def _set_up(database: Database) -> None:
    with changing(database) as connection:
        metadata.create_all(connection)
        # As Alembic itself would make it.
        connection.execute(
            text(
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
                "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
            )
        )
        connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
        connection.execute(text("INSERT INTO ledger (id, change_number, last_item_id) VALUES (1, 0, 0)"))


def upgrade(database: Database, to: str = HEAD) -> None:
    # Heavy, and needed only here.
    from alembic import command
    from alembic.util import CommandError

    with changing(database) as connection:
        try:
            command.upgrade(alembic_config(connection), to)
        except CommandError as error:
            raise SchemaMismatch(f"{database.shown_url} could not be migrated: {error}", "restore a backup") from error


@contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """One transaction for a change of the schema: all of it, or nothing, on SQLite too."""
    with database.said_plainly(), database.engine.connect() as connection:
        if database.is_postgres:
            with connection.begin():
                yield connection
            return
        # SQLite changes a table by making it anew, and references to the old one must not be in the way.
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
            _refuse_broken_references(connection)
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        else:
            connection.exec_driver_sql("COMMIT")
        finally:
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")


def _refuse_broken_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchone()
    if broken is not None:
        raise SchemaMismatch(f"after the migration, {broken[0]} would refer to rows of {broken[2]} that are not there")


def alembic_config(connection: Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
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
    assert database.file is not None
    with database.file.with_name("schema.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ── a database that was full and is empty now ─────────────────────────────────────────────────────────────────────


def remember(database: Database, home: Path) -> None:
    """Note in the home that this database holds items, once it does."""
    known = _known(home)
    if known.get(database.shown_url):
        return
    row = database.read(lambda tx: tx.one("SELECT last_item_id FROM ledger WHERE id = 1"))
    if row and row[0]:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Written aside: a note that was torn by a power cut would be no note.
        part = home / f"databases.{os.getpid()}.part"
        part.write_text(json.dumps({**known, database.shown_url: True}))
        part.replace(home / "databases.json")


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
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if to.exists():
        raise InvalidInput(f"{to} exists already", "give another name")
    # Under another name until it is whole: a torn backup must not look like one.
    part = to.with_name(to.name + ".part")
    part.unlink(missing_ok=True)
    with database.said_plainly():
        _copy(file, part)
    part.replace(to)
    return to


def restore(database: Database, home: Path, backup: Path, now: datetime) -> Path | None:
    """Put a backup in the database's place; what was there is kept beside it. Gives where."""
    file = _sqlite_file(database, "`pg_restore` restores PostgreSQL")
    _check_backup(backup)
    kept = home / "backups" / f"before-restore-{now:%Y%m%d-%H%M%S-%f}.db"
    is_there = file.exists()
    with _only_one(database, home), database.said_plainly():
        if is_there:
            _put_aside(database, file, kept)
        database.close()
        _copy(backup, file)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    return kept if is_there else None


def _put_aside(database: Database, file: Path, to: Path) -> None:
    """Keep what a restored backup replaces; as it is, where it is too damaged to be copied."""
    try:
        back_up(database, to)
    except StoreError:
        database.close()
        for ending in ("", "-wal", "-shm"):
            torn = file.with_name(file.name + ending)
            if torn.exists():
                torn.replace(to.with_name(to.name + ending))


def _copy(one: Path, other: Path) -> None:
    with closing(sqlite3.connect(one)) as source, closing(sqlite3.connect(other)) as target:
        target.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        source.backup(target)


def _check_backup(backup: Path) -> None:
    if not backup.is_file():
        raise InvalidInput(f"there is no file {backup}", "give the path of a backup")
    try:
        with closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            is_sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
            connection.execute("SELECT change_number FROM ledger")
            known = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise InvalidInput(f"{backup} is not a backup of catchment ({error})", "use another backup") from error
    if not is_sound or known is None or known[0] > HEAD:
        raise InvalidInput(f"{backup} is damaged, or newer than this program", "use another backup")


def _sqlite_file(database: Database, otherwise: str) -> Path:
    if database.file is None:
        raise InvalidInput("the database is not a SQLite file", otherwise)
    return database.file
