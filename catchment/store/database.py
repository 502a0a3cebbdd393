"""Connection to SQLite or PostgreSQL: transactions, retries, and SQL text that both understand.

Statements are written once, with `?` for values. Reads are short; writes begin IMMEDIATE on SQLite (a transaction that
turns from reading to writing would fail at once, whatever the time-out) and are repeated where PostgreSQL reports a
deadlock or that another transaction was first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from catchment import installation, logs
from catchment.errors import InvalidInput, StoreError
from catchment.lazy import lazy_imports
from catchment.messages import Message, message
from catchment.model import Record
from catchment.store.connections import (
    OVERFLOW,
    NoFreeConnection,
    Pool,
    connect_postgres,
    connect_sqlite,
    is_connection_error,
    is_psycopg_error,
    url_parts,
    without_password,
)
from catchment.store.row_mappers import reader

with lazy_imports():
    from catchment.store import schema

log = logs.logger(__name__)

T = TypeVar("T")
R = TypeVar("R", bound=Record)
P = ParamSpec("P")
Part = TypeVar("Part", bound="StorePart")
Row = tuple[Any, ...]

RETRIES = 8
# serialisation failure, deadlock, and a unique key that another transaction took between our read and our write
_RETRIED = {"40001", "40P01", "23505"}
_NOT_WRITABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}
_IDLE = 0
"""libpq's status of a connection without a transaction."""
# SQLite takes 32,766 values per statement; PostgreSQL gets one array instead.
_MOST_VALUES = 30_000


class Transaction:
    """Statements inside one transaction. Created by `Database`, never kept."""

    def __init__(self, connection: Any, is_postgres: bool) -> None:
        self.cursor = connection.cursor()
        self.is_postgres = is_postgres

    def run(self, sql: str, *values: Any) -> int:
        """Execute; returns the number of rows affected."""
        self.cursor.execute(self._spoken(sql), values)
        return int(self.cursor.rowcount)

    def all(self, sql: str, *values: Any) -> list[Row]:
        self.cursor.execute(self._spoken(sql), values)
        return list(self.cursor.fetchall())

    def one(self, sql: str, *values: Any) -> Row | None:
        self.cursor.execute(self._spoken(sql), values)
        return self.cursor.fetchone()  # type: ignore[no-any-return]

    def column(self, sql: str, *values: Any) -> list[Any]:
        """Returns the first value of each row."""
        return [row[0] for row in self.all(sql, *values)]

    def number(self, sql: str, *values: Any) -> int:
        """Returns the number that a statement answers: a count, or the id of a new row."""
        row = self.one(sql, *values)
        assert row is not None, sql
        return int(row[0])

    def records(self, record: type[R], sql: str, *values: Any) -> list[R]:
        """Returns rows as records: each field has the value of the column of its name."""
        return self.as_records(record, self.all(sql, *values))

    def record(self, record: type[R], sql: str, *values: Any) -> R | None:
        return next(iter(self.records(record, sql, *values)), None)

    def as_records(self, record: type[R], rows: Sequence[Row]) -> list[R]:
        """Returns the rows of the last statement as records."""
        return [*map(reader(record, self._columns()), rows)] if rows else []

    def _columns(self) -> tuple[str, ...]:
        return tuple(column[0] for column in self.cursor.description)

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute the same statement for every row."""
        if rows:
            self.cursor.executemany(self._spoken(sql), rows)

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        tail: str = "",
        literals: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """Insert many rows at once; `tail` may be ON CONFLICT … `literals` are values in SQL that all rows share, by
        column. Returns the number of rows written."""
        if not rows:
            return 0
        names, shared = ", ".join((*columns, *literals)), "".join(f", {value}" for value in literals.values())
        if self.is_postgres:
            # One array per column: a single round trip, however many rows there are.
            arrays = ", ".join(f"%s::{_array_type(table, column)}" for column in columns)
            self.cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT *{shared} FROM unnest({arrays}) {tail}",
                [list(column) for column in zip(*rows, strict=True)],
                binary=True,
            )
        else:
            marks = ", ".join("?" * len(columns))
            self.cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks}{shared}) {tail}", rows)
        return int(self.cursor.rowcount)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Update many rows at once, found by their `id`: it is first in `columns` and in every row."""
        if not rows:
            return
        _, *changed = columns
        if self.is_postgres:
            arrays = ", ".join(f"%s::{_array_type(table, column)}" for column in columns)
            values = ", ".join(f"{column} = incoming.{column}" for column in changed)
            self.cursor.execute(
                f"UPDATE {table} SET {values} FROM unnest({arrays}) AS incoming ({', '.join(columns)}) "
                f"WHERE {table}.id = incoming.id",
                [list(column) for column in zip(*rows, strict=True)],
                binary=True,
            )
        else:
            values = ", ".join(f"{column} = ?{position}" for position, column in enumerate(changed, 2))
            self.cursor.executemany(f"UPDATE {table} SET {values} WHERE id = ?1", rows)

    def select_in(
        self, sql: str, values: Sequence[Any], *, before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Row]:
        """Run `sql` with `{values}` replaced by the list, however long it is: `WHERE id IN {values}`."""
        rows: list[Row] = []
        if not values:
            return rows
        for part, arguments in self._in_parts(sql, values):
            rows += self.all(part, *before, *arguments, *after)
        return rows

    def run_in(self, sql: str, values: Sequence[Any], *, before: Sequence[Any] = (), after: Sequence[Any] = ()) -> None:
        """Execute `sql` with `{values}` replaced by the list, however long it is: `WHERE id IN {values}`."""
        for part, arguments in self._in_parts(sql, values):
            self.run(part, *before, *arguments, *after)

    def _in_parts(self, sql: str, values: Sequence[Any]) -> list[tuple[str, Sequence[Any]]]:
        """Returns statements with a part of the values each; none if there are none."""
        if values and self.is_postgres:
            return [(sql.replace("IN {values}", "= ANY(?)"), [list(values)])]
        parts = [values[start : start + _MOST_VALUES] for start in range(0, len(values), _MOST_VALUES)]
        return [(sql.replace("{values}", f"({', '.join('?' * len(part))})"), part) for part in parts]

    def lock_rows(self) -> str:
        """Returns the suffix of a SELECT whose rows will be written: PostgreSQL locks them, SQLite locks everything."""
        return "FOR UPDATE" if self.is_postgres else ""

    def _spoken(self, sql: str) -> str:
        return _postgres_marks(sql) if self.is_postgres else sql


@cache
def _postgres_marks(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@cache
def _array_type(table: str, column: str) -> str:
    return schema.array_type(table, column)


class Database:
    """One database. Thread-safe."""

    transaction = Transaction

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 12,
        overflow: int = OVERFLOW,
        trusted_seconds: float = 0.0,
        creates: bool = True,
    ) -> None:
        """`creates`: the folder of a SQLite file is created if missing. `overflow`, `trusted_seconds`: see `Pool`."""
        parts = url_parts(url)
        self.is_postgres = str(parts["scheme"]).startswith("postgresql")
        self.url, self.shown_url = url, without_password(url)
        self.file = None if self.is_postgres or not parts["database"] else Path(parts["database"])
        if self.is_postgres and not installation.is_installed("postgres"):
            raise InvalidInput(
                "the driver for PostgreSQL is not installed",
                "run `{command}`",
                command=installation.install_command("postgres"),
            )
        if self.file and creates:
            _make_folder(self.file.parent)
        self.pool_size = pool_size
        self._pool = Pool(
            self.connect, pool_size, is_remote=self.is_postgres, overflow=overflow, trusted_seconds=trusted_seconds
        )
        # Threads of one process queue here instead of polling SQLite's lock: fair, and it costs nothing.
        self._gate = RLock()
        self._outage = _Outage("cannot be reached", "can be reached again")
        # Reads may still work: only a successful write ends it.
        self._write_outage = _Outage("cannot be written to", "can be written to again")
        self._overwriters = 0

    @property
    def is_there(self) -> bool:
        """Whether there is something to open: opening a missing SQLite file would create it."""
        return self.file is None or self.file.exists()

    def close(self) -> None:
        self._pool.close()

    def connect(self) -> Any:
        """Returns a connection outside the pool, for schema changes."""
        return connect_sqlite(self.file) if self.file else connect_postgres(self.url)

    def own_session(self) -> Any:
        """Returns a connection outside the pool, for session state (PostgreSQL's advisory locks)."""
        with self.said_plainly():
            return connect_postgres(self.url, autocommit=True)

    def most_connections(self) -> int | None:
        """Returns how many connections the server allows to ordinary users; None: there is no server."""
        if not self.is_postgres:
            return None
        sql = """
            SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings
             WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
        """
        return self.read(lambda tx: tx.number(sql))

    def read(self, question: Callable[[Transaction], T]) -> T:
        """Run a query. Each statement sees the newest commit; no read transaction is held open."""
        with self.said_plainly(), self._pool.connection() as connection, self._each_alone(connection):
            result = question(self.transaction(connection, self.is_postgres))
        self._outage.end()
        return result

    @contextmanager
    def _each_alone(self, connection: Any) -> Iterator[None]:
        """Runs statements without a transaction. SQLite does so anyway; with PostgreSQL it saves a round trip for each
        BEGIN and ROLLBACK."""
        if not self.is_postgres:
            yield
            return
        connection.autocommit = True
        try:
            yield
        finally:
            # A connection that broke in the middle of something cannot be changed; it is not returned to the pool
            # either.
            if connection.pgconn.transaction_status == _IDLE:
                connection.autocommit = False

    def write(self, change: Callable[[Transaction], T]) -> T:
        """Run `change` in one transaction; repeated from the start if another transaction conflicted with it."""
        for attempt in range(RETRIES):
            try:
                with self.said_plainly():
                    result = self._write_once(change)
                self._outage.end()
                self._write_outage.end()
                return result
            except StoreError as error:
                if _is_write_trouble(error.__cause__):
                    self._write_outage.count(error)
                    error.is_logged = True
                if attempt == RETRIES - 1 or getattr(error.__cause__, "sqlstate", None) not in _RETRIED:
                    raise
                # Repeated at once, it would conflict again before the other has its locks.
                time.sleep(0.005 * 2**attempt)
        raise AssertionError("unreachable")

    def _write_once(self, change: Callable[[Transaction], T]) -> T:
        if self.is_postgres:
            with self._pool.connection() as connection:
                return self._committed(connection, change)
        with (
            self._gate,
            self._pool.connection() as connection,
            _overwritten(connection) if self._overwriters else nullcontext(),
        ):
            connection.execute("BEGIN IMMEDIATE")
            return self._committed(connection, change)

    def _committed(self, connection: Any, change: Callable[[Transaction], T]) -> T:
        try:
            result = change(self.transaction(connection, self.is_postgres))
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        return result

    @contextmanager
    def overwriting(self) -> Iterator[None]:
        """Within this block SQLite overwrites deleted data, in the file and in its log; otherwise deleted text stays
        readable in the file until the space is reused."""
        with self._gate:
            self._overwriters += not self.is_postgres
        try:
            yield
        finally:
            with self._gate:
                self._overwriters -= not self.is_postgres
            if not self.is_postgres:
                # Pages of the log that another process still reads stay until the next checkpoint.
                with self.said_plainly(), self._pool.connection() as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def said_plainly(self) -> Iterator[None]:
        """Wraps driver errors in StoreError, with advice."""
        try:
            yield
        except NoFreeConnection as error:
            raise StoreError("all connections to {url} stayed busy", "try again later", url=self.shown_url) from error
        except OSError as error:
            # A lock, a copy or a note beside the database: no space, no permission.
            where = error.filename or message("the files of {url}", url=self.shown_url)
            raise StoreError(
                "{where}: {why}", _what_helps(str(error)), where=where, why=str(error.strerror or error)
            ) from error
        except Exception as error:
            # SQLAlchemy, which changes the schema, wraps the driver's error.
            cause = getattr(error, "orig", None) or error
            if not isinstance(cause, sqlite3.Error) and not is_psycopg_error(cause):
                raise
            raise self._plain(cause) from error

    def _plain(self, error: BaseException) -> StoreError:
        plain = StoreError(
            "the database {url} failed: {why}",
            _what_helps(str(error)),
            url=self.shown_url,
            why=_first_line(error),
        )
        if is_connection_error(error):
            self._outage.count(plain)
            plain.is_logged = True
        return plain


class StorePart:
    """Base of the objects that answer questions about one topic."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # Methods of one statement.

    def _all(self, sql: str, *values: Any) -> list[Row]:
        return self._db.read(lambda tx: tx.all(sql, *values))

    def _one(self, sql: str, *values: Any) -> Row | None:
        return self._db.read(lambda tx: tx.one(sql, *values))

    def _column(self, sql: str, *values: Any) -> list[Any]:
        return self._db.read(lambda tx: tx.column(sql, *values))

    def _number(self, sql: str, *values: Any) -> int:
        return self._db.read(lambda tx: tx.number(sql, *values))

    def _records(self, record: type[R], sql: str, *values: Any) -> list[R]:
        return self._db.read(lambda tx: tx.records(record, sql, *values))

    def _record(self, record: type[R], sql: str, *values: Any) -> R | None:
        return self._db.read(lambda tx: tx.record(record, sql, *values))

    def _select_in(self, sql: str, values: Sequence[Any]) -> list[Row]:
        return self._db.read(lambda tx: tx.select_in(sql, values))

    def _run(self, sql: str, *values: Any) -> int:
        return self._db.write(lambda tx: tx.run(sql, *values))


def reads(question: Callable[Concatenate[Part, Transaction, P], T]) -> Callable[Concatenate[Part, P], T]:
    """Makes a method of a StorePart a query: callers leave out its transaction."""

    @wraps(question)
    def method(self: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.read(lambda tx: question(self, tx, *args, **kwargs))

    return method


def writes(change: Callable[Concatenate[Part, Transaction, P], T]) -> Callable[Concatenate[Part, P], T]:
    """Makes a method of a StorePart one transaction, which may be repeated; callers leave it out."""

    @wraps(change)
    def method(self: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.write(lambda tx: change(self, tx, *args, **kwargs))

    return method


class _Outage:
    """Logs once that the database fails in one way, counts the failures, and logs once when it is over."""

    def __init__(self, begins: str, ends: str) -> None:
        self._begins, self._ends = begins, ends
        self._lock = RLock()
        self._failures, self._began_at = 0, 0.0

    def count(self, error: StoreError) -> None:
        with self._lock:
            self._failures += 1
            if self._failures > 1:
                return
            self._began_at = time.monotonic()
        log.error(f"the database {self._begins}", code=error.code, error=str(error))

    def end(self) -> None:
        if not self._failures:
            return
        with self._lock:
            failures, self._failures = self._failures, 0
        if failures:
            seconds = round(time.monotonic() - self._began_at, 1)
            log.warning(f"the database {self._ends}", failures=failures, seconds=seconds)


@contextmanager
def _overwritten(connection: sqlite3.Connection) -> Iterator[None]:
    """Makes SQLite write zeros over deleted data; restores the previous mode, which differs between builds of
    SQLite."""
    (before,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA secure_delete = {before}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            "the folder {folder} for the database cannot be created: {why}", folder=str(folder), why=error.strerror
        ) from error


def is_database_down(error: BaseException) -> bool:
    """Whether the database itself failed, not a statement: whatever is tried next fails, too."""
    cause = error.__cause__
    return isinstance(error, StoreError) and (
        isinstance(cause, NoFreeConnection | OSError)
        or (cause is not None and (is_connection_error(cause) or _is_write_trouble(cause)))
    )


def _is_write_trouble(error: BaseException | None) -> bool:
    """Whether nothing can be stored at all: the disk is full or fails, or the database is read-only."""
    if isinstance(error, sqlite3.Error):
        # The last byte of an extended code is the code itself; some driver errors have none.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_WRITABLE
    return type(error).__name__ in {"DiskFull", "IoError", "ReadOnlySqlTransaction"}


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def _what_helps(text: str) -> Message:
    if "locked" in text:
        return message("another program is using the file; stop it, or wait")
    if "disk is full" in text or "No space left" in text:
        return message("free some disk space; no committed data is lost")
    if "readonly" in text or "read-only" in text or "Permission denied" in text:
        return message("give this user the right to write to the database and its folder")
    if "malformed" in text or "not a database" in text:
        return message("the file is damaged: restore a backup (`catchment restore FILE`)")
    if "disk I/O error" in text or "File too large" in text:
        return message("check that the disk has free space, is writable and is not damaged")
    if "connect" in text or "refused" in text:
        return message("is the database server running, and is CATCHMENT_DATABASE_URL correct?")
    return message("")


def placeholders(columns: Iterable[str]) -> str:
    """Returns `a = ?, b = ?` for an UPDATE."""
    return ", ".join(f"{column} = ?" for column in columns)
