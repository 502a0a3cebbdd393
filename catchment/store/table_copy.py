"""Reads, writes and hashes whole tables of SQLite and PostgreSQL. A row is the same tuple in both.

Rows stream: however large a table is, only a few rows are in memory. The hash of rows is a sum: it does not depend on
their order (texts sort differently in each database), and grows with each batch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Boolean, Column, Float, Integer, LargeBinary, Table

from catchment.store.connections import BUSY_SECONDS, connect_postgres
from catchment.store.database import Database, Row, Transaction
from catchment.store.schema import metadata

BATCH_ROWS, BATCH_BYTES = 20_000, 16_000_000
"""A batch ends with the first of the two that it reaches."""
_HASHES = 1 << 128
_pack = msgspec.msgpack.Encoder().encode
# Booleans are numbers, as SQLite stores them; PostgreSQL reads 0 and 1 as booleans, too.
_POSTGRES_TYPES = ((Boolean, "int4"), (Integer, "int8"), (Float, "float8"), (LargeBinary, "bytea"))


@dataclass(frozen=True)
class RowsHash:
    """Number and hash of some rows of a table, in any order."""

    row_count: int = 0
    total: int = 0
    """The sum of the rows' hashes."""


NO_ROWS = RowsHash()


class CopiedTable:
    """The statements for one table."""

    def __init__(self, table: Table, condition: str = "true") -> None:
        """`condition`: which rows belong to the copy."""
        self.name, self.condition = table.name, condition
        self.columns = [column.name for column in table.columns]
        self.key = [column.name for column in table.primary_key.columns]
        self._key_places = [self.columns.index(name) for name in self.key]
        self.postgres_types = [_postgres_type(column) for column in table.columns]

    def key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self._key_places)

    def select(self, *, is_postgres: bool, compared: str = "", is_ordered: bool = False) -> str:
        """`compared`: `>` or `<=`, to read only keys after or up to a value."""
        columns = (
            ", ".join(f'"{name}"::{sql_type}' for name, sql_type in zip(self.columns, self.postgres_types, strict=True))
            if is_postgres
            else _names(self.columns)
        )
        key, mark = _names(self.key), "%s" if is_postgres else "?"
        sql = f"SELECT {columns} FROM {self.name} WHERE {self.condition}"
        if compared:
            sql += f" AND ({key}) {compared} ({', '.join([mark] * len(self.key))})"
        return f"{sql} ORDER BY {key}" if is_ordered else sql

    @property
    def insert(self) -> str:
        """For SQLite."""
        return f"INSERT INTO {self.name} ({_names(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"

    @property
    def copy(self) -> str:
        """For PostgreSQL."""
        return f"COPY {self.name} ({_names(self.columns)}) FROM STDIN"


def _postgres_type(column: Column[Any]) -> str:
    return next((name for base, name in _POSTGRES_TYPES if isinstance(column.type, base)), "text")


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


class ReadOnlyDatabase(Database):
    """A database that is only read; not even the housekeeping of SQLite changes its file."""

    def connect(self) -> Any:
        if self.file:
            address = f"{self.file.resolve().as_uri()}?mode=ro"
            return sqlite3.connect(
                address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        connection = connect_postgres(self.url)
        connection.execute("SET default_transaction_read_only = on")
        connection.commit()
        return connection


@contextmanager
def snapshot(source: ReadOnlyDatabase) -> Iterator[Any]:
    """A connection whose queries all see the same moment."""
    with closing(source.connect()) as connection:
        if source.is_postgres:
            from psycopg import IsolationLevel

            connection.isolation_level = IsolationLevel.REPEATABLE_READ
        else:
            connection.execute("BEGIN")
        yield connection


class ChangeMark:
    """Tells whether anything may have been committed to a database since this was made, without reading its rows."""

    def __init__(self, source: ReadOnlyDatabase) -> None:
        self._is_postgres, self._connection = source.is_postgres, source.connect()
        self._mark = self._read()

    def _read(self) -> Row:
        # SQLite counts the commits of others; PostgreSQL numbers the transactions that write, in all its databases.
        sql = "SELECT txid_current_snapshot()::text" if self._is_postgres else "PRAGMA data_version"
        row: Row = self._connection.execute(sql).fetchone()
        if self._is_postgres:
            self._connection.commit()
        return row

    def has_moved(self) -> bool:
        """Whether there may be a change since this was asked last."""
        before, self._mark = self._mark, self._read()
        return before != self._mark

    def close(self) -> None:
        self._connection.close()


def writer_to(target: Database) -> Any:
    """Returns a connection for writing much."""
    connection = target.connect()
    if target.is_postgres:
        # If the server fails, the last batches are lost together with the record that they were copied.
        connection.execute("SET synchronous_commit = off")
        connection.commit()
    else:
        # The rows satisfied these constraints before, and are compared afterwards.
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA cache_size = -64000")
    return connection


class TableRows:
    """The rows of tables in one database, through one connection."""

    def __init__(self, database: Database, connection: Any) -> None:
        self._db, self._connection, self._is_postgres = database, connection, database.is_postgres

    @contextmanager
    def after(self, table: CopiedTable, key: Row | None) -> Iterator[Iterator[Row]]:
        """The rows after this key, or all, in the order of the key."""
        with closing(self._select(table, ">" if key else "", key or (), is_ordered=True)) as rows:
            yield rows

    def hashed(self, table: CopiedTable, on_batch: Callable[[int], object], *, up_to: Row | None = None) -> RowsHash:
        """Returns the hash of all rows, or of those with keys up to this. `on_batch` gets the count so far."""
        rows_hash = NO_ROWS
        with closing(self._select(table, "<=" if up_to else "", up_to or ())) as rows:
            while True:
                batch = RowBatch(table, rows, rows_hash)
                for _ in batch:
                    pass
                if batch.is_empty:
                    return rows_hash
                rows_hash = batch.hash
                on_batch(rows_hash.row_count)

    def insert(self, table: CopiedTable, rows: RowBatch) -> None:
        with self._db.said_plainly():
            if not self._is_postgres:
                self._connection.executemany(table.insert, rows)
                return
            with self._connection.cursor().copy(table.copy) as copy:
                for row in rows:
                    copy.write_row(row)

    def _select(
        self, table: CopiedTable, compared: str, key: Row, *, is_ordered: bool = False
    ) -> Generator[Row, None, None]:
        sql = table.select(is_postgres=self._is_postgres, compared=compared, is_ordered=is_ordered)
        with self._db.said_plainly():
            if not self._is_postgres:
                yield from self._connection.execute(sql, key)
                return
            # COPY streams; a SELECT would be read as a whole first.
            with self._connection.cursor().copy(f"COPY ({sql}) TO STDOUT (FORMAT binary)", key) as copy:
                copy.set_types(table.postgres_types)
                yield from copy.rows()


class RowBatch:
    """The next rows of a table, counted and hashed as they pass."""

    def __init__(self, table: CopiedTable, rows: Iterator[Row], before: RowsHash = NO_ROWS) -> None:
        self._table, self._rows = table, rows
        self._before, self._count, self._total = before, 0, 0
        self._last: Row = ()

    def __iter__(self) -> Iterator[Row]:
        size = 0
        for row in islice(self._rows, BATCH_ROWS):
            packed = _pack(row)
            self._total += int.from_bytes(blake2b(packed, digest_size=16).digest())
            self._count += 1
            self._last = row
            yield row
            size += len(packed)
            if size >= BATCH_BYTES:
                return

    @property
    def is_empty(self) -> bool:
        return not self._count

    @property
    def hash(self) -> RowsHash:
        """Of these rows and all before them."""
        return RowsHash(self._before.row_count + self._count, (self._before.total + self._total) % _HASHES)

    @property
    def last_key(self) -> Row:
        return self._table.key_of(self._last)


# The numbers of rows


def last_ids(tx: Transaction) -> dict[str, int]:
    """Returns the last number that each table has given to a row, even if that row was deleted since."""
    if not tx.is_postgres:
        return dict(tx.all("SELECT name, seq FROM sqlite_sequence"))
    ids = {}
    for table in metadata.sorted_tables:
        if (sequence := _sequence_of(tx, table.name)) is not None:
            ids[table.name] = tx.number(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
    return ids


def _sequence_of(tx: Transaction, table: str) -> str | None:
    if "id" not in metadata.tables[table].columns:
        return None
    row = tx.one("SELECT pg_get_serial_sequence(?, 'id')", table)
    return row[0] if row else None


def continue_numbers(tx: Transaction, table: str, last_id: int) -> None:
    """New rows get numbers that no row ever had: leases, alerts and runs refer to them."""
    if tx.is_postgres:
        sequence = _sequence_of(tx, table)
        if sequence is not None:
            sql = f"""
                SELECT greatest(?::bigint, (SELECT max(id) FROM {table}), CASE WHEN is_called THEN last_value END)
                  FROM {sequence}
            """
            if (last_id := tx.number(sql, last_id)) > 0:
                tx.all("SELECT setval(?, ?)", sequence, last_id)
        return
    is_counted = metadata.tables[table].dialect_options["sqlite"]["autoincrement"]
    if is_counted and not tx.run("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", last_id, table):
        tx.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last_id)
