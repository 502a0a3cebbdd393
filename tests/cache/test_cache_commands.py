"""The hot store by its doors: commands, API, jobs, settings. Reddit is the playground's, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.jobs import monitor_cache_health
from catchment.playground.faults import FaultPlan
from catchment.playground.server import Playground
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.keys import client
from catchment.store import Store
from catchment.store.search.lists import Filter
from catchment.text.clean import fingerprint
from tests.cache.square import Village
from tests.cli.conftest import Catchment, catchment, home
from tests.clocks import HandClock
from tests.playground.test_reddit_met import HABITS, START, TOWN, world_of
from tests.redis_server import RedisServer
from tests.store.desk import Desk, opened, post
from tests.store.watching import WatchingDatabase
from tests.town import TownApp
from tests.web.desk import Desk as ApiDesk

__all__ = ["catchment", "home"]


@pytest.fixture
def community(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[str]:
    """One of the playground's, with a key to read it."""
    world = world_of(HABITS)
    playground = Playground(world, HandClock(START + timedelta(days=1)), FaultPlan(11, 0.0))
    playground.start()
    monkeypatch.setenv("CATCHMENT_REDDIT_BASE_URL", playground.url)
    for name, value in zip(("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"), client(), strict=True):
        monkeypatch.setenv(name, value)
    yield f"r/{names.community(world.places[TOWN])}"
    playground.close()


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield Village(here)
    here.close()


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_community_is_warmed_by_hand_and_shown_without_being_stored(catchment: Catchment, community: str) -> None:
    catchment("sources", "add", "reddit", community)
    collected = catchment("collect", "--cache-only", "--kind", "reddit", "--json")
    assert collected.code == 0
    (result,) = collected.json["results"]
    assert (result["outcome"], result["new"], result["updated"]) == ("succeeded", 0, 0)
    assert result["duplicate"] > 10
    seen = catchment("hot", "list", 1, "--limit", 500, "--json").lines
    assert len(seen) == result["duplicate"]
    assert catchment("items", "--source", 1, "--json").lines == []
    warmth = catchment("hot", "status", "--json").json["warmth"]
    assert (warmth["communities"], warmth["warm"], warmth["cached_posts"]) == (1, 1, len(seen))
    assert catchment("hot", "list", 1).code == catchment("hot", "status").code == 0


def test_items_are_read_hot_by_the_command_and_that_is_counted(catchment: Catchment, community: str) -> None:
    catchment("sources", "add", "reddit", community)
    assert catchment("collect", "--source", 1, "--json").json["new"] > 10
    listed = catchment("items", "--source", 1, "--limit", 5, "--json").lines
    catchment("items", "--source", 1, "--limit", 5, "--deleted", "--json")
    assert len(listed) == 5
    told = catchment("hot", "status", "--json").json
    assert (told["home"], told["last_hour"]["hits"], told["last_hour"]["hit_rate"]) == ("database", 1, 1.0)
    assert catchment("hot", "clear", "--json").json == {"cleared": 0}


def test_what_is_not_kept_hot_cannot_be_warmed(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://feeds.example/x")
    assert catchment("collect", "--cache-only", "--source", 1, "--json").failure == (2, "INVALID_INPUT")
    assert catchment("collect", "--cache-only", "--kind", "rss", "--json").failure == (2, "INVALID_INPUT")
    assert catchment("collect", "--cache-only", "--loop", "--json").failure == (2, "INVALID_INPUT")


def test_the_doctor_says_whether_redis_is_there(
    catchment: Catchment, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_REDIS_URL", f"redis://:a-secret@127.0.0.1:{own_redis.port}/0")
    catchment("migrate")

    def found() -> tuple[str, str]:
        told = catchment("doctor", "--json")
        assert "a-secret" not in told.out + told.err
        (finding,) = [finding for finding in told.json["findings"] if finding["about"] == "redis"]
        return finding["verdict"], finding["what"]

    # It wants no password: that is a refusal, and it is said.
    assert found()[0] == "odd"
    own_redis.client.config_set("requirepass", "a-secret")
    assert found() == ("fine", f"redis://***@127.0.0.1:{own_redis.port}/0 answers")


# ── API ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_api_reads_hot_and_tells_how_it_stands(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a", "b", "c")
    village.here.collect(source)
    village.app.cache_warmup().these([source.id], "test", "test")
    api = ApiDesk(village.here)
    first = api.get("/api/items", source_id=source.id, limit=2)
    rest = api.get("/api/items", source_id=source.id, after=first["next"])
    assert [item["external_id"] for item in first["items"] + rest["items"]] == ["a", "b", "c"]
    told = api.get("/api/hot")
    assert told["last_hour"] == {"hits": 1, "misses": 0, "hit_rate": 1.0, "failed_writes": 0}
    assert (told["warmth"]["warm"], told["entries"]) == (1, 6)
    cached = api.get(f"/api/hot/{source.id}", limit=2)
    assert ([item["external_id"] for item in cached["items"]], cached["cached_count"]) == (["c", "b"], 3)
    assert api.client.get("/api/hot/99").status_code == 404


# ── jobs and settings ─────────────────────────────────────────────────────────────────────────────────────────────


def test_how_long_something_is_hot_is_a_setting(tmp_path: Path) -> None:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", hot_hours=1)
    village = Village(here)
    source = village.follow("one")
    village.square.post("one", "a")
    here.collect(source)
    for seconds, hits in ((3599, 1), (1, 1)):
        village.clock.advance(seconds)
        village.app.cache.listed(Filter(source.id), 5)
        assert village.app.cache.counts(village.clock.now() - timedelta(hours=2)).hits == hits
    here.close()


def test_a_redis_that_is_away_opens_an_alert_that_closes_by_itself(own_redis: RedisServer, tmp_path: Path) -> None:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", redis_url=own_redis.url)
    now = 0.0
    assert here.app.redis is not None
    here.app.redis._wall = lambda: now
    monitor_cache_health(here.app)
    assert here.app.store.alerts.open() == []
    own_redis.stop()
    for _ in range(2):
        monitor_cache_health(here.app)
    (alert,) = here.app.store.alerts.open()
    assert (alert.subject, alert.severity) == ("redis away", "P2")
    own_redis.start()
    now = 60.0
    monitor_cache_health(here.app)
    assert here.app.store.alerts.open() == []
    here.close()


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_pages_of_a_feed_ask_nothing_of_the_hot_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catchment.db'}"
    opened(url, tmp_path).close()
    database = WatchingDatabase(url)
    desk = Desk(Store(database, tmp_path, fingerprint))
    feed = desk.follow("feed")
    database.told.clear()
    desk.show(feed, post("one"), post("two"))
    desk.show(feed, post("one", "edited"), post("three"))
    assert database.told
    assert [sql for sql, _ in database.told if "hot_" in sql] == []
    desk.close()
