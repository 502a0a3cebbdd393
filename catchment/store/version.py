"""The schema's version, and notes about databases that held items: what every start checks.

Without SQLAlchemy and Alembic, which take longer to import than most commands run.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from catchment import logs
from catchment.errors import SchemaMismatch, StoreError
from catchment.store.database import Database, Transaction

BASELINE = "0008"
"""The oldest schema that can be opened; nothing leads from earlier ones to it."""
HEAD = "0008"
MOVING = "moving"
"""The version of a database into which an archive is being moved: until it is complete, no process opens it."""


def is_current(database: Database) -> bool:
    """Whether the database is ours and has the current schema; one query. All other cases are for `migrate.ready`."""
    if is_blank(database):
        return False
    question = "SELECT 1 FROM ledger WHERE id = 1 AND EXISTS (SELECT 1 FROM alembic_version WHERE version_num = ?)"
    try:
        return database.read(lambda tx: tx.one(question, HEAD)) is not None
    except StoreError:
        return False


def is_blank(database: Database) -> bool:
    """A missing or empty SQLite file: opening it, even to read, would write its first page."""
    return database.file is not None and not (database.is_there and database.file.stat().st_size)


def engine_version(database: Database) -> str:
    """Returns the name and version of the database engine."""
    question = "SHOW server_version" if database.is_postgres else "SELECT sqlite_version()"
    row = database.read(lambda tx: tx.one(question))
    return f"{'PostgreSQL' if database.is_postgres else 'SQLite'} {row[0] if row else ''}".strip()


def mismatch(revision: str, head: str = HEAD) -> SchemaMismatch | None:
    """Returns the error for a database of this schema, with what helps; None if it is the current one."""
    if revision == head:
        return None
    if revision == MOVING:
        return SchemaMismatch(
            "an archive is being moved into this database, and is not complete yet",
            "run the same `catchment move --to …` again; it continues",
        )
    if revision < BASELINE:
        return SchemaMismatch(
            "the database has schema {found}, from before {baseline}, the oldest that this program can open",
            "it was not changed; use a new database (CATCHMENT_HOME, CATCHMENT_DATABASE_URL)",
            found=revision,
            baseline=BASELINE,
        )
    if revision > head:
        return SchemaMismatch(
            "the database has schema {found}, newer than this program's {head}",
            "update catchment; or restore the backup that was made before the update",
            found=revision,
            head=head,
        )
    return SchemaMismatch(
        "the database has schema {found}, this program needs {head}",
        "run `catchment migrate`",
        found=revision,
        head=head,
    )


def refuse_other(tx: Transaction, version: str) -> None:
    """Raises SchemaMismatch if the database has another schema by now."""
    for number in tx.column("SELECT version_num FROM alembic_version"):
        if (error := mismatch(number, version)) is not None:
            raise error


def remember(database: Database, home: Path) -> None:
    """Record in the home folder that this database holds items, once it does."""
    databases = _known(home)
    if databases.get(database.shown_url):
        return
    row = database.read(lambda tx: tx.one("SELECT last_item_id FROM ledger WHERE id = 1"))
    if row and row[0]:
        # Written to a temporary file first: a note truncated by a power cut would be lost.
        part = home / f"databases.{os.getpid()}.part"
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.touch(mode=0o600)
            part.write_text(json.dumps({**databases, database.shown_url: True}))
            part.replace(home / "databases.json")
        except OSError as error:
            # It is written the next time the database is opened; reading must not need free disk space.
            logs.logger(__name__).warning("databases.json could not be updated", file=str(part), error=error.strerror)
            with suppress(OSError):
                part.unlink(missing_ok=True)


def was_full(database: Database, home: Path) -> bool:
    """Whether the home folder has a record of this database with items."""
    return bool(_known(home).get(database.shown_url))


def _known(home: Path) -> dict[str, Any]:
    try:
        databases = json.loads((home / "databases.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return databases if isinstance(databases, dict) else {}
