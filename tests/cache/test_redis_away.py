"""Redis may go away at any moment, or never have been there: nothing is lost, nothing fails, it is said once."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.cache import RedisBackend, open_cache
from catchment.errors import StoreError
from catchment.redis import Away, RedisLink, open_link
from catchment.settings import Settings
from tests.cache.conftest import keeper_of
from tests.cache.keeper import COMMUNITY, Keeper
from tests.logged import logged
from tests.redis_server import RedisServer
from tests.store.desk import Desk, opened, post


class Wall:
    """Wall time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def link(own_redis: RedisServer, wall: Wall) -> Iterator[RedisLink]:
    link = RedisLink(own_redis.url, "test:", wall)
    yield link
    link.close()


@pytest.fixture
def keeper(link: RedisLink, tmp_path: Path) -> Iterator[Keeper]:
    yield from keeper_of(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path, RedisBackend(link))


def test_while_redis_is_away_the_database_is_the_home_and_afterwards_redis_again(
    keeper: Keeper, own_redis: RedisServer, wall: Wall
) -> None:
    source = keeper.follow()
    keeper.show(source, post("t3_1"))
    assert (keeper.is_hit(source), keeper.hot.standing()) == (True, ("redis", 1))
    own_redis.stop()
    assert (keeper.is_hit(source), keeper.hot.standing()) == (False, ("database", 0))
    keeper.show(source, post("t3_2"))
    assert (keeper.is_hit(source), keeper.hot.standing()) == (True, ("database", 2))
    own_redis.start()
    wall.now += 60
    # It came back empty; what was hot meanwhile lies elsewhere.
    assert (keeper.is_hit(source), keeper.hot.standing()) == (False, ("redis", 0))
    keeper.show(source, post("t3_3"))
    assert (keeper.is_hit(source), keeper.hot.standing()) == (True, ("redis", 3))


def test_what_changed_while_redis_was_away_is_not_read_from_it_afterwards(
    keeper: Keeper, own_redis: RedisServer, wall: Wall
) -> None:
    source = keeper.follow()
    keeper.show(source, post("t3_1"))
    kept = {key: own_redis.client.dump(key) for key in own_redis.client.scan_iter()}
    own_redis.stop()
    keeper.show(source, post("t3_1", "edited"))
    own_redis.start()
    for key, value in kept.items():
        own_redis.client.restore(key, 0, value)
    wall.now += 60
    assert not keeper.is_hit(source)
    assert keeper.read(source).items[0].text == "edited"


def test_that_redis_went_away_and_came_back_is_said_once_each(
    keeper: Keeper, own_redis: RedisServer, wall: Wall
) -> None:
    source = keeper.follow()
    keeper.show(source, post("t3_1"))
    with logged() as said:
        own_redis.stop()
        for _ in range(5):
            keeper.read(source)
            keeper.refresh(source)
            wall.now += 10
        own_redis.start()
        wall.now += 60
        for _ in range(5):
            keeper.read(source)
    assert [entry["event"] for entry in said] == ["Redis is away, the database is used", "Redis is back"]


def test_a_redis_that_is_away_is_asked_again_only_after_a_pause(
    link: RedisLink, own_redis: RedisServer, wall: Wall
) -> None:
    own_redis.stop()
    asked = []

    def ping(client: Any) -> None:
        asked.append(wall.now)
        client.ping()

    for _ in range(40):
        with pytest.raises(Away):
            link.ask(ping)
        wall.now += 1
    assert asked == [0.0, 15.0, 30.0]
    assert link.trouble is not None


def test_a_set_that_redis_did_not_take_is_counted(keeper: Keeper, own_redis: RedisServer) -> None:
    source = keeper.follow()
    keeper.show(source, post("t3_1"))
    own_redis.stop()
    keeper.refresh(source)
    keeper.refresh(source)
    assert keeper.hot.counts(keeper.clock.now() - timedelta(days=1)).failures == 2


def test_reads_are_counted_whether_redis_is_there_or_not(keeper: Keeper, own_redis: RedisServer, wall: Wall) -> None:
    source, began = keeper.follow(), keeper.clock.now()
    keeper.show(source, post("t3_1"))
    keeper.read(source)
    assert keeper.hot.hit_rate(began) == 1.0
    own_redis.stop()
    keeper.read(source)
    keeper.clock.advance(60)
    assert keeper.hot.hit_rate(began) == 0.5


def test_without_the_package_the_database_is_used_and_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = builtins.__import__

    def not_installed(name: str, *more: Any) -> Any:
        if name.startswith("redis"):
            raise ImportError(name)
        return found(name, *more)

    monkeypatch.setattr(builtins, "__import__", not_installed)
    with logged() as said:
        link = RedisLink("redis://127.0.0.1:1", "test:")
        for keeper in keeper_of(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path, RedisBackend(link)):
            source = keeper.follow()
            keeper.show(source, post("t3_1"))
            assert (keeper.is_hit(source), keeper.hot.standing()) == (True, ("database", 1))
    (entry,) = said
    assert entry["why"].startswith("the package for Redis is not installed — run `")


def test_an_address_that_redis_cannot_make_sense_of_is_said_once(own_redis: RedisServer) -> None:
    with logged() as said:
        link = RedisLink(f"{own_redis.url}?nonsense=1", "test:")
        for _ in range(2):
            assert link.check() is not None
    assert [entry["event"] for entry in said] == ["Redis unavailable, falling back to the database"]


def test_a_redis_that_refuses_to_write_is_as_good_as_away(keeper: Keeper, own_redis: RedisServer) -> None:
    own_redis.client.config_set("maxmemory", 1)
    source = keeper.follow()
    keeper.show(source, post("t3_1"))
    assert keeper.is_hit(source)
    assert keeper.hot.standing() == ("database", 1)


def test_a_database_that_takes_no_hot_set_fails_no_visit_and_is_counted(
    quick: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = quick.follow()

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(quick.store.cached_sources, "newest", full)
    with logged() as said:
        quick.show(source, post("t3_1"))
    assert quick.read(source).items[0].external_id == "t3_1"
    assert quick.hot.counts(quick.clock.now() - timedelta(days=1)).failures == 1
    assert [entry["event"] for entry in said] == ["cached list could not be written"]


def test_two_deployments_on_one_redis_do_not_meet(redis_server: RedisServer, tmp_path: Path) -> None:
    for name in ("one", "other"):
        desk = Desk(opened(f"sqlite:///{tmp_path / name}", tmp_path))
        desk.show(desk.follow("r/one", "reddit"), post("t3_1"))
        settings = Settings(home=tmp_path, redis_url=redis_server.url)
        link = open_link(settings, desk.store, desk.clock)
        assert link is not None
        open_cache(settings, desk.store, desk.clock, link).refresh(1, COMMUNITY)
        link.close()
        desk.close()
    assert len({key.split(b":")[1] for key in redis_server.client.scan_iter("catchment:*:set:1")}) == 2
