"""Database setup, migration, backup and restore. Refuses databases that are not catchment's."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, NullPool, create_engine, inspect, text

from catchment.errors import InvalidInput, NotFound, SchemaMismatch, StoreError
from catchment.messages import Message, message
from catchment.store.connections import BUSY_SECONDS
from catchment.store.database import Database, Transaction
from catchment.store.leases import forget_all, locks_of, refuse_while_in_use
from catchment.store.schema import metadata
from catchment.store.version import BASELINE, HEAD, is_blank, mismatch, remember, was_full


@dataclass(frozen=True)
class Schema:
    """The tables of a database, the number of their latest migration, and the folder of migrations."""

    head: str
    tables: MetaData
    migrations: Path


CURRENT = Schema(HEAD, metadata, Path(__file__).parent / "migrations")
_OURS = {"alembic_version", *metadata.tables}
_LOCK_KEY = 0x63617463  # "catc": PostgreSQL's advisory lock for schema changes


def ready(
    database: Database, home: Path, now: datetime, *, may_migrate: bool, creates: bool = True, schema: Schema = CURRENT
) -> str | None:
    """Check that the schema is ours and current; returns the path of the backup if a SQLite file was migrated.

    An empty database is set up by the first process with `creates`; otherwise it raises NotFound. An older one is
    migrated only with `may_migrate`: a process that runs beside others must not change the schema under them.
    """
    backup = None
    number = revision(database) if creates or not is_blank(database) else None
    if number is None and not creates:
        _refuse_if_it_was_full(database, home)
        raise _no_database(database)
    if number != schema.head:
        with database.said_plainly(), _only_one(database, home):
            number = revision(database)
            if number is None:
                _refuse_if_it_was_full(database, home)
                _set_up(database, schema)
            elif number != schema.head:
                backup = _migrate(database, home, number, now, schema, may_migrate=may_migrate)
    if creates or home.is_dir():
        remember(database, home)
    return backup


def _no_database(database: Database) -> NotFound:
    return NotFound(
        "{database} is empty" if database.is_there else "there is no database {database}",
        "`catchment migrate`, `catchment serve` and `catchment sources add` set it up; if there should be one, check "
        "CATCHMENT_HOME and CATCHMENT_DATABASE_URL",
        database=database.shown_url if database.is_there else str(database.file),
    )


def revision(database: Database) -> str | None:
    """Returns the schema's revision; None for a database without tables of ours. Raises SchemaMismatch."""
    with database.said_plainly(), _sqlalchemy_connection(database) as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables & _OURS:
            return None
        number: str | None = None
        # Other programs have tables with these names, and Alembic's: all of ours must exist, or it is not ours.
        if tables >= {"alembic_version", "ledger"}:
            number = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if number is None:
        raise SchemaMismatch(
            "{url} has tables of the same names that are not catchment's ({names}, …)",
            "give catchment a database of its own",
            url=database.shown_url,
            names=", ".join(sorted(tables & _OURS)[:3]),
        )
    return number


def _migrate(
    database: Database, home: Path, number: str, now: datetime, schema: Schema, *, may_migrate: bool
) -> str | None:
    error = mismatch(number, schema.head)
    if error and not (may_migrate and BASELINE <= number < schema.head):
        raise error
    refuse_while_in_use(database, home, now)
    backup = None
    if database.file:
        backup = back_up(database, _unused(home / "backups" / f"before-{schema.head}-{now:%Y%m%d-%H%M%S}.db"))
    _upgrade(database, home, now, schema)
    return str(backup) if backup else None


def _set_up(database: Database, schema: Schema) -> None:
    with changing(database) as connection:
        schema.tables.create_all(connection)
        # As Alembic itself would create it.
        connection.execute(
            text(
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
                "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
            )
        )
        connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": schema.head})
        connection.execute(text("INSERT INTO ledger (id, change_number, last_item_id) VALUES (1, 0, 0)"))


def _upgrade(database: Database, home: Path, now: datetime, schema: Schema) -> None:
    # Heavy, and needed only here.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(schema.migrations))
    with changing(database) as connection:
        config.attributes["connection"] = connection
        if database.is_postgres:
            # Whoever registers from now on waits, and then finds the new schema.
            connection.execute(text("LOCK TABLE owners IN SHARE ROW EXCLUSIVE MODE"))
        # Once more: a process of the old version may have started meanwhile.
        refuse_while_in_use(database, home, now)
        try:
            command.upgrade(config, schema.head)
        except CommandError as error:
            raise SchemaMismatch(
                "{url} could not be migrated: {why}",
                "restore a backup",
                url=database.shown_url,
                why=str(error),
            ) from error
        tx = Transaction(connection.connection.driver_connection, database.is_postgres)
        forget_all(tx, locks_of(database, home), now)


@contextmanager
def _sqlalchemy_connection(database: Database) -> Iterator[Connection]:
    dialect = "postgresql+psycopg://" if database.is_postgres else "sqlite://"
    with create_engine(dialect, creator=database.connect, poolclass=NullPool).connect() as connection:
        yield connection


@contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """One transaction for a schema change: all or nothing, on SQLite too."""
    with database.said_plainly(), _sqlalchemy_connection(database) as connection:
        if database.is_postgres:
            with connection.begin():
                yield connection
            return
        # SQLite changes a table by recreating it; foreign keys to the old one must not prevent that.
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
        raise SchemaMismatch(
            "after the migration, {table} would refer to missing rows of {other}",
            table=broken[0],
            other=broken[2],
        )


@contextmanager
def _only_one(database: Database, home: Path) -> Iterator[None]:
    """Lock: one process at a time may change the schema."""
    if database.is_postgres:
        session = database.own_session()
        try:
            session.execute("SELECT pg_advisory_lock(%s)", [_LOCK_KEY])
            yield
        finally:
            session.close()
        return
    assert database.file is not None
    lock = database.file.with_name("schema.lock")
    lock.touch(mode=0o600)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refuse_if_it_was_full(database: Database, home: Path) -> None:
    if was_full(database, home):
        raise SchemaMismatch(
            "{url} is empty, but according to {home} it held items",
            "restore a backup (`catchment restore FILE`), or, to start from scratch, delete {file}",
            url=database.shown_url,
            home=str(home),
            file=str(home / "databases.json"),
        )


# Backup and restore of a SQLite file


def back_up(database: Database, to: Path) -> Path:
    """Make a complete, consistent copy of a SQLite database while others continue writing.

    Raises StoreError, and leaves no file, if the database is damaged or empty, or if the copy could not be written.
    """
    file = _sqlite_file(database, message("`pg_dump` makes backups of PostgreSQL"))
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if to.exists():
        raise InvalidInput("{file} already exists", "choose another name", file=str(to))
    # Under another name until it is complete and checked: a file that cannot be restored must not look like a backup.
    # That name is unused: neither a file of the user's nor a backup by another process is lost.
    part = to.with_name(f"{to.name}.{os.urandom(4).hex()}.part")
    try:
        with database.said_plainly():
            _copy(file, part)
            if (fault := _fault_of_file(part)) is not None:
                raise StoreError(
                    "{file} {fault}: no backup was made",
                    "keep the earlier backups, and restore one",
                    file=str(file),
                    fault=fault,
                )
            part.replace(to)
    finally:
        with suppress(OSError):
            _remove(part)
    return to


def _remove(file: Path) -> None:
    """Remove a SQLite file and its companion files."""
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def restore(database: Database, home: Path, backup: Path, now: datetime) -> Path | None:
    """Replace the database by a backup; the previous one is kept. Returns the path of that copy."""
    file = _sqlite_file(database, message("`pg_restore` restores PostgreSQL"))
    _check_backup(backup)
    kept = _unused(home / "backups" / f"before-restore-{now:%Y%m%d-%H%M%S}.db")
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
    """Keep the database that a restored backup replaces; moved as it is, if it is too damaged to be copied."""
    try:
        back_up(database, to)
    except StoreError:
        database.close()
        for ending in ("", "-wal", "-shm"):
            torn = file.with_name(file.name + ending)
            if torn.exists():
                torn.replace(to.with_name(to.name + ending))


def _unused(file: Path) -> Path:
    """Returns the path itself, or with a number after its name: a killed migration may have left its copy already."""
    candidates = (file, *(file.with_stem(f"{file.stem}-{number}") for number in range(2, 1_000)))
    return next((candidate for candidate in candidates if not candidate.exists()), file)


def _copy(path: Path, other: Path) -> None:
    other.touch(mode=0o600)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(other)) as target:
        target.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        source.backup(target)


def _check_backup(backup: Path) -> None:
    if not backup.is_file():
        raise InvalidInput("there is no file {backup}", "check the path of the backup", backup=str(backup))
    if (fault := _fault_of_file(backup)) is not None:
        raise InvalidInput("{backup} {fault}", "use another backup", backup=str(backup), fault=fault)
    with closing(_read_only(backup)) as connection:
        number: str = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    if number > HEAD:
        raise InvalidInput(
            "{backup} has schema {found}, newer than this program's {head}",
            "update catchment",
            backup=str(backup),
            found=number,
            head=HEAD,
        )
    if number < BASELINE:
        raise InvalidInput(
            "{backup} has schema {found}, older than {baseline}",
            "use a backup made by this version",
            backup=str(backup),
            found=number,
            baseline=BASELINE,
        )


# Integrity checks

Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a query and returns its rows."""


def fault(database: Database, *, is_quick: bool = False) -> str | None:
    """Returns what is wrong with the database, as in "is damaged"; None: nothing was found.

    A SQLite file is read as a whole, with its indexes unless `is_quick`. PostgreSQL checks its own pages.
    """
    if database.is_postgres:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return database.read(lambda tx: _missing(tx.all, tables))
    return database.read(lambda tx: _fault(tx.all, "quick_check" if is_quick else "integrity_check"))


def _fault_of_file(file: Path) -> str | None:
    try:
        with closing(_read_only(file)) as connection:
            return _fault(lambda sql: connection.execute(sql).fetchall())
    except sqlite3.Error:
        return "is damaged, or not a database of catchment"


def _fault(ask: Ask, check: str = "integrity_check") -> str | None:
    if ask(f"PRAGMA {check}(1)")[0][0] != "ok":
        return "is damaged: its integrity check fails"
    missing = _missing(ask, "SELECT name FROM sqlite_master WHERE type = 'table'")
    if missing is not None or check != "integrity_check":
        return missing
    broken = {row[0] for row in ask("PRAGMA foreign_key_check")} or {row[0] for row in ask(_SEEN_BUT_LOST)}
    return f"has lost rows to which others refer ({', '.join(sorted(broken)[:3])})" if broken else None


# Sightings have no foreign key: they are written with every page.
_SEEN_BUT_LOST = """
    SELECT 'sightings' FROM sightings s WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.id = s.item_id) LIMIT 1
"""


def _missing(ask: Ask, tables_query: str) -> str | None:
    """Returns what is missing: tables, the version, the one row of the ledger."""
    tables = {row[0] for row in ask(tables_query)}
    if not tables & _OURS:
        return "is empty: it has no tables of catchment"
    if not tables >= {"alembic_version", "ledger"}:
        return "is not a database of catchment, or has lost tables"
    versions = ask("SELECT version_num FROM alembic_version")
    if not versions or not ask("SELECT change_number FROM ledger"):
        return "has lost rows that every database of catchment has"
    # The required tables are known only for the current schema.
    lost = sorted(_OURS - tables) if versions[0][0] == HEAD else []
    return f"has lost tables ({', '.join(lost[:3])})" if lost else None


def _read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def _sqlite_file(database: Database, fallback: Message) -> Path:
    if database.file is None:
        raise InvalidInput("the database is not a SQLite file", fallback)
    return database.file
