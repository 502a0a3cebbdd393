"""Opens connections to SQLite and PostgreSQL, and shares them between threads."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qsl, unquote

from catchment.errors import InvalidInput
from catchment.lazy import pattern

BUSY_SECONDS = 30
OVERFLOW = 4
CHILD_POOL, BEAT_POOL, SERVER_POOL = 3, 2, 8
"""Pooled connections of a child of a worker, whose threads mostly wait for platforms; of a beat; and of a server or
collector, in addition to those of its workers."""
CHILD_CONNECTIONS, BEAT_CONNECTIONS, SERVER_CONNECTIONS = CHILD_POOL + 1, BEAT_POOL + 1, SERVER_POOL + OVERFLOW + 1
"""All connections of such a process: one of them, which no thread uses, shows that it lives."""
_LONGEST_USE = 1800.0
"""Seconds after which a connection to a server is replaced: firewalls drop those that seem idle."""
TRUSTED_SECONDS = 2.0
"""How long children of workers and beats, which repeat whatever fails, use a connection again without asking first
whether it still answers: that would be a round trip for every statement."""
_URL = pattern(
    r"""(?P<scheme>[\w+]+)://
    (?: (?P<user>[^:/]*) (?: :(?P<password>[^@]*) )? @ )?
    (?: \[(?P<ipv6>[^/?]+)\] | (?P<host>[^/:?]+) )? (?: :(?P<port>[^/?]*) )?
    (?: /(?P<database>[^?]*) )? (?: \?(?P<options>.*) )?""",
    re.VERBOSE | re.DOTALL,
)


class NoFreeConnection(Exception):
    """All connections were in use for too long."""


class Pool:
    """Connections of one database. The last used one is taken first: its page cache is the warmest, and the others
    need not grow."""

    def __init__(
        self,
        connect: Callable[[], Any],
        size: int,
        *,
        is_remote: bool,
        overflow: int = OVERFLOW,
        trusted_seconds: float = 0.0,
    ) -> None:
        """`is_remote`: the other side may have closed an idle connection, unless it was used within `trusted_seconds`.
        `overflow`: connections beyond the pool's size, for moments of high load; these are not kept."""
        self._connect, self._size, self._is_remote = connect, size, is_remote
        self._trusted_seconds = trusted_seconds
        self._free = BoundedSemaphore(size + overflow)
        self._idle: list[tuple[Any, float, float]] = []
        """Connections with the times at which they were opened and last used."""
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection for this block. Raises NoFreeConnection."""
        if not self._free.acquire(timeout=BUSY_SECONDS):
            raise NoFreeConnection
        try:
            connection, opened_at = self._taken()
            is_sound = False
            try:
                yield connection
                is_sound = True
            except Exception as error:
                # After a failure of the connection itself, its transaction state is unknown.
                is_sound = not (is_connection_error(error) or getattr(connection, "closed", False))
                raise
            finally:
                if is_sound and not self._is_closed and len(self._idle) < self._size:
                    self._idle.append((connection, opened_at, time.monotonic()))
                else:
                    _close(connection)
        finally:
            self._free.release()

    def _taken(self) -> tuple[Any, float]:
        now = time.monotonic()
        with suppress(IndexError):
            while True:
                connection, opened_at, used_at = self._idle.pop()
                if not self._is_remote or (now - opened_at < _LONGEST_USE and self._is_fresh(connection, used_at, now)):
                    return connection, opened_at
                _close(connection)
        return self._connect(), now

    def _is_fresh(self, connection: Any, used_at: float, now: float) -> bool:
        return now - used_at < self._trusted_seconds or _answers(connection)

    def close(self) -> None:
        """Close the connections that are not in use; the others are closed when they are returned."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                _close(self._idle.pop()[0])


def _answers(connection: Any) -> bool:
    """Whether the server still serves this idle connection. Whatever it says instead, another one is opened."""
    try:
        connection.autocommit = True
        connection.execute("SELECT 1")
        connection.autocommit = False
    except Exception as error:
        if is_psycopg_error(error):
            return False
        raise
    return True


def _close(connection: Any) -> None:
    # A broken connection may fail to close, too.
    with suppress(Exception):
        connection.close()


def is_psycopg_error(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] == "psycopg"


def is_connection_error(error: BaseException) -> bool:
    """Whether the connection itself failed: no server, a lost connection, or a session that the server has ended."""
    if not is_psycopg_error(error):
        return False
    names = {base.__name__ for base in type(error).__mro__}
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(("08", "57P", "25P03")))
    return not names.isdisjoint({"OperationalError", "InterfaceError"})


def url_parts(url: str) -> dict[str, str | None]:
    """Returns the parts of a database URL by name. Raises InvalidInput."""
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidInput("the URL of the database is malformed", "check CATCHMENT_DATABASE_URL")
    return parts.groupdict()


def without_password(url: str) -> str:
    """Returns a database URL in the form in which it may be shown."""
    parts = _URL.fullmatch(url)
    if parts is None or parts["password"] is None:
        return url
    return f"{url[: parts.start('password')]}***{url[parts.end('password') :]}"


def connect_postgres(url: str, *, autocommit: bool = False) -> Any:
    """Returns a connection of psycopg."""
    import psycopg

    parts = url_parts(url)
    # Only what the URL states: for the rest, the environment and the defaults of PostgreSQL's client apply.
    arguments = {
        "host": parts["ipv6"] or parts["host"],
        "port": parts["port"],
        "user": unquote(parts["user"] or ""),
        "password": unquote(parts["password"] or ""),
        "dbname": parts["database"],
        **dict(parse_qsl(parts["options"] or "")),
    }
    stated = {name: value for name, value in arguments.items() if value}
    connection = psycopg.connect(autocommit=autocommit, **stated)  # type: ignore[arg-type]
    # The same statement covers the last hour or all years, rare words or frequent ones: a generic plan, which
    # PostgreSQL would choose after some time, is a bad one for most.
    connection.execute("SET plan_cache_mode = force_custom_plan")
    connection.commit()
    return connection


def connect_sqlite(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    _keep_private(file)
    _use_wal(connection)
    # With WAL, NORMAL survives the death of the process; power loss may cost the last seconds, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    # 16 MB instead of 4: pages that many transactions change, those of indexes, are copied back less often. Measured at
    # 6 % of the CPU of a first collection.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -4000")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _keep_private(file: Path) -> None:
    """Makes a new SQLite file private to its owner; its WAL then gets the same mode. A file with data keeps the mode
    that an administrator may have set."""
    if file.is_file() and file.stat().st_size == 0:
        file.chmod(0o600)


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite's busy time-out covers everything but this: several processes that open an empty file at once conflict
    here."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
