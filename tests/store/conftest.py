"""A store of either sort, and a desk to work at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from catchment.store.schema import metadata
from tests.store.desk import Desk, opened


@pytest.fixture(scope="session")
def standing_postgres(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL database that is set up once: making one takes longer than most tests do."""
    name = f"standing_{uuid4().hex}"
    address = postgres_server.replace("/postgres?", f"/{name}?")
    url = address.replace("postgresql://", "postgresql+psycopg://")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        opened(url, tmp_path_factory.mktemp("standing")).close()
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either sort, set up or about to be, with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catchment.db'}"
    url: str = request.getfixturevalue("standing_postgres")
    _empty(url)
    return url


def _empty(url: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY")
        connection.execute("INSERT INTO ledger (id, change_number, last_item_id) VALUES (1, 0, 0)")


@pytest.fixture
def desk(empty_url: str, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(opened(empty_url, tmp_path))
    yield desk
    desk.close()
