"""The connection to SQLite or PostgreSQL: transactions, retries, and SQL as text that both understand.

Statements are written once, with `?` for values. Reads are short; writes begin IMMEDIATE on SQLite (a transaction that
turns from reading to writing would fail at once, whatever the time-out) and are repeated where PostgreSQL reports a
deadlock or that somebody else was first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Boolean, Engine, Float, Integer, LargeBinary, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from catchment.errors import InvalidInput, StoreError
from catchment.store.schema import metadata

T = TypeVar("T")
Row = tuple[Any, ...]

BUSY_SECONDS = 30
RETRIES = 8
# serialisation failure, deadlock, and a unique key that somebody else took between our look and our write
_RETRIED = {"40001", "40P01", "23505"}
_IDLE = 0
"""What libpq calls a connection on which nothing is under way."""
# SQLite takes 32,766 values a statement; PostgreSQL gets one array instead.
_MOST_VALUES = 30_000


class Transaction:
    """Statements inside one transaction. Made by `Database`, never kept."""

    def __init__(self, connection: Any, is_postgres: bool) -> None:
        self.cursor = connection.cursor()
        self.is_postgres = is_postgres

    def run(self, sql: str, *values: Any) -> int:
        """Execute; gives the number of rows touched."""
        self.cursor.execute(self._spoken(sql), values)
        return int(self.cursor.rowcount)

    def all(self, sql: str, *values: Any) -> list[Row]:
        self.cursor.execute(self._spoken(sql), values)
        return list(self.cursor.fetchall())

    def one(self, sql: str, *values: Any) -> Row | None:
        self.cursor.execute(self._spoken(sql), values)
        return self.cursor.fetchone()  # type: ignore[no-any-return]

    def dicts(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        rows = self.all(sql, *values)
        names = [column[0] for column in self.cursor.description]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same statement for every row."""
        if rows:
            self.cursor.executemany(self._spoken(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], tail: str = "") -> int:
        """Many rows at once; `tail` may say ON CONFLICT … Gives the number of rows written."""
        if not rows:
            return 0
        names = ", ".join(columns)
        if self.is_postgres:
            # One array a column: a single round trip however many rows there are.
            arrays = ", ".join(f"%s::{_array_type(table, column)}" for column in columns)
            self.cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) {tail}",
                [list(column) for column in zip(*rows, strict=True)],
                binary=True,
            )
        else:
            marks = ", ".join("?" * len(columns))
            self.cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks}) {tail}", rows)
        return int(self.cursor.rowcount)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Many rows at once, found by their `id`: it stands first in `columns` and in every row."""
        if not rows:
            return
        _, *changed = columns
        if self.is_postgres:
            arrays = ", ".join(f"%s::{_array_type(table, column)}" for column in columns)
            values = ", ".join(f"{column} = told.{column}" for column in changed)
            self.cursor.execute(
                f"UPDATE {table} SET {values} FROM unnest({arrays}) AS told ({', '.join(columns)}) "
                f"WHERE {table}.id = told.id",
                [list(column) for column in zip(*rows, strict=True)],
                binary=True,
            )
        else:
            values = ", ".join(f"{column} = ?{place}" for place, column in enumerate(changed, 2))
            self.cursor.executemany(f"UPDATE {table} SET {values} WHERE id = ?1", rows)

    def among(
        self, sql: str, few: Sequence[Any], *, before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Row]:
        """`sql` with `{few}` standing for a list of values, as in `WHERE id IN {few}`, however long the list is."""
        if not few:
            return []
        if self.is_postgres:
            return self.all(sql.replace("IN {few}", "= ANY(?)"), *before, list(few), *after)
        found: list[Row] = []
        for start in range(0, len(few), _MOST_VALUES):
            part = few[start : start + _MOST_VALUES]
            marks = f"({', '.join('?' * len(part))})"
            found += self.all(sql.replace("{few}", marks), *before, *part, *after)
        return found

    def lock_rows(self) -> str:
        """The end of a SELECT whose rows are to be written: PostgreSQL locks them, SQLite has locked everything."""
        return "FOR UPDATE" if self.is_postgres else ""

    def _spoken(self, sql: str) -> str:
        return _postgres_marks(sql) if self.is_postgres else sql


@cache
def _postgres_marks(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@cache
def _array_type(table: str, column: str) -> str:
    kind = metadata.tables[table].c[column].type
    names = ((Boolean, "boolean[]"), (Integer, "bigint[]"), (Float, "double precision[]"), (LargeBinary, "bytea[]"))
    return next((name for sort, name in names if isinstance(kind, sort)), "text[]")


class Database:
    """One database, safe for threads."""

    transaction = Transaction

    def __init__(self, url: str, *, pool_size: int = 12) -> None:
        parsed = make_url(url)
        self.is_postgres = parsed.get_backend_name() == "postgresql"
        self.url = parsed.render_as_string(hide_password=False)
        self.shown_url = parsed.render_as_string(hide_password=True)
        self.file = None if self.is_postgres or not parsed.database else Path(parsed.database)
        if self.file:
            _make_folder(self.file.parent)
        self.pool_size = pool_size
        self.engine = _engine(self.url, self.is_postgres, pool_size)
        # Threads of one process queue here instead of polling SQLite's lock: fair, and it costs nothing.
        self._gate = RLock()

    def close(self) -> None:
        self.engine.dispose()

    def own_session(self) -> Any:
        """A connection outside the pool, for what a session holds (PostgreSQL's advisory locks)."""
        import psycopg

        with self.said_plainly():
            plain = make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
            return psycopg.connect(plain, autocommit=True)

    def read(self, question: Callable[[Transaction], T]) -> T:
        """Ask something. Each statement sees the newest commit; no read is held open."""
        with self.said_plainly(), self._connection() as connection, self._each_alone(connection):
            return question(self.transaction(connection, self.is_postgres))

    @contextmanager
    def _each_alone(self, connection: Any) -> Iterator[None]:
        """No transaction around the statements. SQLite is asked like that anyway; with PostgreSQL it saves the way to
        the server and back for each BEGIN and ROLLBACK."""
        if not self.is_postgres:
            yield
            return
        connection.autocommit = True
        try:
            yield
        finally:
            # One that broke in the middle of something cannot be changed; it is not given back to the pool either.
            if connection.pgconn.transaction_status == _IDLE:
                connection.autocommit = False

    def write(self, deed: Callable[[Transaction], T]) -> T:
        """Do `deed` in one transaction; again from the start, if another transaction was in its way."""
        for attempt in range(RETRIES):
            try:
                with self.said_plainly():
                    return self._write_once(deed)
            except StoreError as error:
                if attempt == RETRIES - 1 or getattr(error.__cause__, "sqlstate", None) not in _RETRIED:
                    raise
                # Begun at once, it would be in the other's way again before that one has its locks.
                time.sleep(0.005 * 2**attempt)
        raise AssertionError("unreachable")

    def _write_once(self, deed: Callable[[Transaction], T]) -> T:
        if self.is_postgres:
            with self._connection() as connection:
                return self._committed(connection, deed)
        with self._gate, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            return self._committed(connection, deed)

    def _committed(self, connection: Any, deed: Callable[[Transaction], T]) -> T:
        try:
            done = deed(self.transaction(connection, self.is_postgres))
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        return done

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        proxy = self.engine.raw_connection()
        try:
            yield proxy.driver_connection
        except BaseException as error:
            # What was under way on this connection is unknown after a failure of the connection itself.
            if not isinstance(error, Exception) or _is_connection_trouble(error):
                proxy.invalidate()
            raise
        finally:
            proxy.close()

    @contextmanager
    def said_plainly(self) -> Iterator[None]:
        """Whatever a driver says becomes our own error, with what helps."""
        try:
            yield
        except NoFreeConnection as error:
            raise StoreError(f"no connection to {self.shown_url} came free in time", "ask again later") from error
        except DBAPIError as error:
            raise self._plain(error.orig or error) from error
        except sqlite3.Error as error:
            raise self._plain(error) from error
        except Exception as error:
            if not _is_psycopg(error):
                raise
            raise self._plain(error) from error

    def _plain(self, error: BaseException) -> StoreError:
        return StoreError(f"the database {self.shown_url} failed: {_first_line(error)}", _what_helps(str(error)))


def _engine(url: str, is_postgres: bool, pool_size: int) -> Engine:
    if is_postgres:
        if find_spec("psycopg") is None:
            raise InvalidInput(
                "the driver for PostgreSQL is not installed", "install catchment with the extra `postgres` (psycopg)"
            )
        engine = create_engine(url, pool_size=pool_size, max_overflow=4, pool_pre_ping=True, pool_recycle=1800)

        @event.listens_for(engine, "connect")
        def plan_anew(connection: Any, _: object) -> None:
            # The same statement is about the last hour and about all years, about rare words and frequent ones: a plan
            # for any of them, which PostgreSQL would settle for after some time, is a bad one for most.
            connection.execute("SET plan_cache_mode = force_custom_plan")
            connection.commit()

        return engine
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=4,
        # Each connection has a cache of pages: the one that was used last knows most, and the others need not grow.
        pool_use_lifo=True,
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        _use_wal(connection)
        # With WAL, NORMAL survives the death of the process; power loss may cost the last seconds, never the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -4000")
        connection.execute("PRAGMA temp_store = MEMORY")

    return engine


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite waits for other programs with everything but this: several that open an empty file together meet here."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {folder} for the database cannot be made: {error.strerror}") from error


def _is_psycopg(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] == "psycopg"


def _is_connection_trouble(error: Exception) -> bool:
    return _is_psycopg(error) and type(error).__name__ in {"OperationalError", "InterfaceError", "AdminShutdown"}


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def _what_helps(text: str) -> str:
    if "locked" in text:
        return "another program holds the file; stop it, or wait"
    if "disk is full" in text or "No space left" in text:
        return "make room on the disk; nothing that was committed is lost"
    if "connect" in text or "refused" in text:
        return "is the database server running, and is CATCHMENT_DATABASE_URL right?"
    return ""


def placeholders(columns: Iterable[str]) -> str:
    """`a = ?, b = ?` for an UPDATE."""
    return ", ".join(f"{column} = ?" for column in columns)
