"""Every home of the hot store, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.hot.redis import RedisHome
from catchment.redis_link import RedisLink
from tests.hot.keeper import Keeper
from tests.redis_server import RedisServer
from tests.store.conftest import empty_url, standing_postgres
from tests.store.desk import Desk, opened

__all__ = ["empty_url", "standing_postgres"]


@pytest.fixture(params=["database", "redis"])
def redis_home(request: pytest.FixtureRequest) -> Iterator[RedisHome | None]:
    """What holds for one home must hold for the other. None: the database is the home."""
    if request.param == "database":
        yield None
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    link = RedisLink(server.url, "test:")
    yield RedisHome(link)
    link.close()


@pytest.fixture
def keeper(redis_home: RedisHome | None, empty_url: str, tmp_path: Path) -> Iterator[Keeper]:
    """A desk that keeps communities hot."""
    yield from keeper_of(empty_url, tmp_path, redis_home)


@pytest.fixture
def quick(redis_home: RedisHome | None, tmp_path: Path) -> Iterator[Keeper]:
    """The same on SQLite alone, for what takes many steps."""
    yield from keeper_of(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path, redis_home)


def keeper_of(url: str, folder: Path, redis_home: RedisHome | None) -> Iterator[Keeper]:
    desk = Desk(opened(url, folder))
    desk.is_kept_hot = True
    yield Keeper(desk, redis_home or desk.store.hot_home)
    desk.close()
