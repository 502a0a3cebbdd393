"""Databases that are set up once and copied for each test: a copy costs a fifth of setting one up."""

from __future__ import annotations

import atexit
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from catchment.store.database import Database, Transaction
from catchment.store.migrate import ready
from tests.clocks import HandClock

TEMPLATE = "catchment_template"
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.process)
"""For tests with a parameter that says which database: this one needs a server."""
ON_BOTH = pytest.mark.parametrize("database_url", ["sqlite", POSTGRESQL], indirect=True)
"""For tests in folders where the database is SQLite unless a test asks for both."""


def set_up(url: str, home: Path) -> None:
    """Give an empty database the tables, as the first process that opens it does."""
    database = Database(url)
    try:
        ready(database, home, HandClock().now(), may_migrate=False)
    finally:
        database.close()


# ── SQLite ────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _sqlite_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="catchment-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    set_up(f"sqlite:///{folder / 'catchment.db'}", folder)
    return folder / "catchment.db"


def sqlite_ready(url: str) -> str:
    """Put a database that is set up where a SQLite address points to and nothing is yet; gives the address back."""
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # With its mode: nobody else may read it.
        shutil.copy(_sqlite_template(), file)
    return url


# ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────────


def make_postgres_template(server: str, folder: Path) -> None:
    """Set up the database that others are copied from. Safe to call from several processes at once."""
    with (folder / "template").open("a") as file, psycopg.connect(server, autocommit=True) as connection:
        fcntl.flock(file, fcntl.LOCK_EX)
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone():
            return
        # Under another name until it is whole: a worker that was killed here must not leave half a template.
        name = f"unfinished_{uuid4().hex}"
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        set_up(address_of(server, name), folder)
        connection.execute(f"ALTER DATABASE {name} RENAME TO {TEMPLATE}")


@contextmanager
def postgres_copy(server: str, template: str) -> Iterator[str]:
    """The address of a new database; it is gone afterwards, whoever is still connected."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield address_of(server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def address_of(server: str, name: str) -> str:
    return server.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{name}?")


def dicts(tx: Transaction, sql: str) -> list[dict[str, Any]]:
    """The rows of a query, by the names of its columns."""
    rows = tx.all(sql)
    names = [column[0] for column in tx.cursor.description]
    return [dict(zip(names, row, strict=True)) for row in rows]
