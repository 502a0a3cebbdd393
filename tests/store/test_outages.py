"""A database that cannot be reached is logged once, however often it is asked, and once more when it is back."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from catchment import logs
from catchment.errors import StoreError
from catchment.store.database import Database, Transaction


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root, stream = logging.getLogger(), io.StringIO()
    before = (root.handlers[:], root.level)
    logs.configure("json", "info", stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)


def told(stream: io.StringIO) -> list[tuple[str, int | None]]:
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [(event["event"], event.get("failures")) for event in events]


def let_in(server: str, url: str, is_let_in: bool) -> None:
    """Open or close a database to everybody; whoever is connected is thrown out."""
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {is_let_in}")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def ask(tx: Transaction) -> object:
    return tx.one("SELECT 1")


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    postgres_server: str, postgres_url: str, lines: io.StringIO
) -> None:
    database = Database(postgres_url)
    database.read(ask)
    let_in(postgres_server, postgres_url, False)
    failures = []
    for verb in (database.read, database.write, database.read):
        with pytest.raises(StoreError) as failure:
            verb(ask)
        failures.append(failure.value.is_logged)
    let_in(postgres_server, postgres_url, True)
    with suppress(StoreError):
        database.read(ask)
    database.read(ask)
    database.close()
    assert failures == [True, True, True]
    assert told(lines) == [("the database cannot be reached", None), ("the database can be reached again", 3)]


def set_full(database: Database, url: str, is_full: bool) -> None:
    """Let a SQLite file not grow any more; have PostgreSQL refuse to write."""
    if database.is_postgres:
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {is_full}")
        database.close()
    else:
        (pages,) = database.read(lambda tx: tx.one("PRAGMA page_count"))  # type: ignore[misc]
        database.read(lambda tx: tx.one(f"PRAGMA max_page_count = {pages if is_full else 2**30}"))


def test_a_database_that_can_only_be_read_is_logged_once_until_something_is_written_again(
    database_url: str, lines: io.StringIO
) -> None:
    database = Database(database_url, pool_size=1)

    def store(tx: Transaction) -> None:
        tx.run(
            "INSERT INTO settings (name, value, updated_at) VALUES (?, ?, 1) ON CONFLICT DO NOTHING",
            "large",
            '"' + "x" * 100_000 + '"',
        )

    set_full(database, database_url, True)
    for _ in range(3):
        with pytest.raises(StoreError) as failure:
            database.write(store)
        assert failure.value.is_logged
        # That it can be read says nothing about writing.
        database.read(ask)
    # Copies and the like have disks of their own.
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    with pytest.raises(StoreError), database.said_plainly():
        raise full
    set_full(database, database_url, False)
    database.write(store)
    database.close()
    assert told(lines) == [("the database cannot be written to", None), ("the database can be written to again", 3)]


def test_a_statement_that_fails_is_no_outage(database_url: str, lines: io.StringIO) -> None:
    database = Database(database_url)
    with pytest.raises(StoreError) as failure:
        database.read(lambda tx: tx.one("SELECT nothing FROM nowhere"))
    database.close()
    assert not failure.value.is_logged
    assert told(lines) == []
