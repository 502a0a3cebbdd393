"""Every home of the hot store, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.cache import RedisBackend
from catchment.redis import RedisLink
from tests.cache.keeper import Keeper
from tests.redis_server import RedisServer
from tests.store.desk import Desk, opened


@pytest.fixture(params=["database", pytest.param("redis", marks=pytest.mark.process)])
def redis_home(request: pytest.FixtureRequest) -> Iterator[RedisBackend | None]:
    """What holds for one home must hold for the other. None: the database is the home."""
    if request.param == "database":
        yield None
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    link = RedisLink(server.url, "test:")
    yield RedisBackend(link)
    link.close()


@pytest.fixture
def keeper(redis_home: RedisBackend | None, database_url: str, tmp_path: Path) -> Iterator[Keeper]:
    """A desk that keeps communities hot."""
    yield from keeper_of(database_url, tmp_path, redis_home)


@pytest.fixture
def quick(redis_home: RedisBackend | None, tmp_path: Path) -> Iterator[Keeper]:
    """The same on SQLite alone, for what takes many steps."""
    yield from keeper_of(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path, redis_home)


def keeper_of(url: str, folder: Path, redis_home: RedisBackend | None) -> Iterator[Keeper]:
    desk = Desk(opened(url, folder))
    desk.invalidates_cache = True
    yield Keeper(desk, redis_home)
    desk.close()
