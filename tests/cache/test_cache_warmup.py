"""Cache-only crawls: kept hot and not stored; said, counted, and against nobody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from catchment.cache import RedisBackend, forget_for_good
from catchment.collect.cache_warmup import ask_for, warmable
from catchment.collect.reparse import Reparsing
from catchment.errors import Missing, SlowDown
from catchment.jobs import JOBS, Job, run_if_due
from catchment.model import (
    Answer,
    Kind,
    Listing,
    Order,
    Reading,
    Request,
    Source,
    SourceState,
    WalkPlan,
)
from catchment.platforms import Platforms
from catchment.policy.schedule import Wish
from catchment.store.items.deletion import Forget
from catchment.store.search.lists import Filter
from tests.cache.square import PAGE, PLATFORM, Village, read
from tests.town import TownApp

HOUR = 3600
NEW, TOP, HOT = Listing("new", Order.NEWEST_FIRST), Listing("top", Order.RANKED), Listing("hot", Order.RANKED)
WARM_UP = next(job for job in JOBS if job.name == "warm-up")
STORED = ("items", "revisions", "sightings", "raw_answers", "outbox", "gaps", "rechecks", "tags")


@pytest.fixture
def village(redis_home: RedisBackend | None, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Village]:
    """On SQLite, with either home of the hot store."""
    redis_url = request.getfixturevalue("redis_server").url if redis_home else None
    here = TownApp(
        tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", jobs={"warm-up": 120}, redis_url=redis_url
    )
    yield Village(here)
    here.close()


@pytest.fixture
def on_both(database_url: str, tmp_path: Path) -> Iterator[Village]:
    here = TownApp(tmp_path / "home", database_url)
    yield Village(here)
    here.close()


def warm(village: Village, *sources: Source) -> list[Any]:
    return village.app.cache_warmup().these([source.id for source in sources], "test", "test")


def seen(village: Village, source: Source) -> list[str]:
    return [item["external_id"] for item in village.app.cache.cached(source, 200)]


def test_a_cache_only_crawl_stores_nothing_and_writes_down_that_it_was_there(on_both: Village) -> None:
    village, source = on_both, on_both.follow("one")
    village.square.post("one", "a", "b", score=3)
    before = village.here.progress(source)
    (result,) = warm(village, source)
    assert (str(result.outcome), result.counts.duplicate, result.notes) == (
        "succeeded",
        2,
        ("2 posts cached, none stored",),
    )
    assert village.counts(*STORED) == dict.fromkeys(STORED, 0)
    assert village.here.progress(source) == before
    assert village.store.cached_sources.of_source(source.id) == {
        "last_warmed_at": village.clock.now().isoformat(),
        "cached_count": 2,
    }
    (run,) = village.store.runs.page()
    assert (run.job, run.succeeded, run.duplicate_count, run.request_count) == ("test", 1, 2, 1)
    assert village.counts("attempts", "run_sources") == {"attempts": 1, "run_sources": 1}
    assert village.store.sources.holder(source.id) is None


def test_what_was_seen_can_be_read_by_the_names_that_stored_items_have(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a", score=3, author="ada")
    warm(village, source)
    village.here.collect(source)
    (cached,), (stored,) = village.app.cache.cached(source, 9), village.here.items(source)
    apart = {"cached_at"}
    assert cached.keys() - apart <= stored.keys()
    assert {name: cached[name] for name in cached.keys() - apart - {"source_id"}} == {
        name: stored[name] for name in cached.keys() - apart - {"source_id"}
    }


def test_the_ranked_listing_is_read_as_far_as_the_settings_say(tmp_path: Path) -> None:
    here = TownApp(
        tmp_path / "home",
        f"sqlite:///{tmp_path / 'catchment.db'}",
        crawler_sort="top",
        crawler_time_filter="week",
        crawler_post_limit=2 * PAGE + 5,
    )
    village = Village(here)
    source = village.follow("one")
    for number in range(40):
        village.square.post("one", f"p{number:02}", score=number)
    warm(village, source)
    assert village.square.asked == [f"https://square.example/one/top?page={page}&t=week" for page in range(3)]
    assert sorted(seen(village, source)) == [f"p{number:02}" for number in range(15, 40)]
    here.close()


@pytest.mark.parametrize(
    ("sort", "listings", "walked"),
    [
        ("hot", (NEW, TOP, HOT), "hot"),
        ("hot", (NEW, TOP), "top"),
        ("new", (NEW, TOP), "new"),
        (None, (NEW, TOP, HOT), "top"),
        ("top", (NEW,), "new"),
    ],
)
def test_what_a_kind_does_not_list_is_read_by_its_ranked_listing_or_as_usual(
    sort: str | None, listings: tuple[Listing, ...], walked: str
) -> None:
    kind = Kind("some", "some", 60, "some", listings, base_limit=7)
    assert ask_for(kind, Wish(sort, "day"), has_key=True) == WalkPlan(walked, 7, time_filter="day", has_key=True)


def test_a_listing_that_goes_in_circles_is_left(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", *map(str, range(2 * PAGE)))
    village.square.communities["one"].is_circular = True
    (result,) = warm(village, source)
    assert (str(result.outcome), len(village.square.asked), len(seen(village, source))) == ("succeeded", 2, PAGE)


def test_what_is_seen_again_lives_on_and_the_rest_goes_with_its_time(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "old", "lasting")
    warm(village, source)
    del village.square.communities["one"].posts["old"]
    village.clock.advance(13 * HOUR)
    warm(village, source)
    village.clock.advance(12 * HOUR)
    assert seen(village, source) == ["lasting"]
    village.app.cache.clear_expired()
    assert seen(village, source) == ["lasting"]
    village.clock.advance(12 * HOUR)
    assert (seen(village, source), village.app.cache.standing()[1]) == ([], 0)


def test_what_is_cached_only_never_enters_the_list_of_what_is_stored(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "stored")
    village.here.collect(source)
    village.square.post("one", "stored", score=99)
    village.square.post("one", "cached only")
    warm(village, source)
    hot, cold = village.app.cache.listed(Filter(source.id), 9), village.store.items.listed(Filter(source.id), 9)
    assert hot == cold
    assert [item.external_id for item in hot.items] == ["stored"]
    assert village.app.cache.hit_rate(village.clock.now() - timedelta(hours=1)) == 1.0


# ── when, and whom ────────────────────────────────────────────────────────────────────────────────────────────────


def run(village: Village, job: Job = WARM_UP) -> list[str]:
    """Run the job; gives the communities that were asked for."""
    village.store.jobs.announce(job.name, village.clock.now())
    village.square.asked.clear()
    assert run_if_due(village.app, job)
    return [url.split("/")[3] for url in village.square.asked]


def test_what_was_read_within_half_the_period_is_left_out(village: Village) -> None:
    visited, warmed = village.follow("visited"), village.follow("warmed")
    village.follow("cold")
    paused = village.follow("paused")
    village.store.sources.set_state(paused.id, SourceState.PAUSED, None, village.clock.now())
    village.follow("of another kind", "corner")
    village.here.collect(visited)
    warm(village, warmed)
    assert run(village) == ["cold"]
    village.clock.advance(HOUR)
    village.clock.advance(HOUR)
    assert sorted(run(village)) == ["cold", "visited", "warmed"]


def test_the_jobs_are_off_until_a_setting_gives_them_a_period(village: Village) -> None:
    seeds = next(job for job in JOBS if job.name == "crawl-seed-communities")
    village.follow("one")
    village.store.jobs.announce(seeds.name, village.clock.now())
    assert seeds.period(village.app.settings) is None
    assert not run_if_due(village.app, seeds)
    assert WARM_UP.period(village.app.settings) == timedelta(hours=2)
    assert run(village) == ["one"]


def test_a_failure_is_written_down_and_counts_against_nobody(village: Village) -> None:
    bad, good = village.follow("bad"), village.follow("good")
    village.square.communities["bad"].fails = Missing("no such community", status=404)
    village.square.post("good", "a")
    before = village.here.progress(bad)
    results = {result.source_id: result for result in warm(village, bad, good)}
    assert (str(results[bad.id].outcome), results[bad.id].error_code) == ("failed", "MISSING")
    assert str(results[good.id].outcome) == "succeeded"
    assert village.here.progress(bad) == before
    assert village.store.cached_sources.of_source(bad.id)["last_warmed_at"] is None
    assert [visit.error_code for visit in village.store.runs.of_source(bad.id)] == ["MISSING"]
    assert village.store.alerts.open() == []


def test_told_to_wait_the_rest_is_left_to_the_next_round_and_it_is_said(village: Village) -> None:
    sources = [village.follow(f"c{number}") for number in range(6)]
    for number in range(6):
        village.square.communities[f"c{number}"].fails = SlowDown("the budget of square is used up")
    results = warm(village, *sources)
    left = [result for result in results if str(result.outcome) == "deferred" and result.notes]
    assert len(village.square.asked) + len(left) == 6
    assert len(left) >= 2
    assert {result.notes for result in left} == {("postponed to the next run: the budget of square is used up",)}


def test_how_many_are_warm_can_be_seen(village: Village) -> None:
    visited, warmed = village.follow("visited"), village.follow("warmed")
    village.follow("cold")
    village.square.post("warmed", "a", "b")
    village.here.collect(visited)
    warm(village, warmed)
    told = village.app.cache.report(warmable(village.app.platforms))
    assert told["warmth"] == {
        "communities": 3,
        "warm": 2,
        "cached_posts": 2,
        "last_warmed_at": village.clock.now().isoformat(),
    }
    assert told["home"] == ("redis" if village.app.settings.redis_url else "database")
    village.clock.advance(25 * HOUR)
    assert village.app.cache.report(warmable(village.app.platforms))["warmth"]["warm"] == 0


# ── forgetting ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_forgotten_vanishes_at_once_and_is_not_cached_again(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a", author="ada")
    village.square.post("one", "b", author="bob")
    warm(village, source)
    village.store.deletion.forget(Forget("author", "square", "me", author="Ada"), village.clock.now())
    # Nobody has told the hot store yet, as if the process had been killed in between.
    assert seen(village, source) == ["b"]
    warm(village, source)
    assert village.store.cached_sources.of_source(source.id)["cached_count"] == 1


def test_what_is_forgotten_leaves_every_home(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a", author="ada")
    village.here.collect(source)
    warm(village, source)
    assert village.app.cache.standing()[1] == 2
    forget_for_good(
        village.store, village.app.cache, Forget("author", "square", "me", author="ada"), village.clock.now()
    )
    assert village.app.cache.standing()[1] == 0


# ── the collector keeps it true ───────────────────────────────────────────────────────────────────────────────────


def is_hit(village: Village, source: Source) -> bool:
    """Whether the hot set answered; and that it said what the archive says."""
    began = village.clock.now().replace(second=0, microsecond=0)
    before = village.app.cache.counts(began).hits
    assert village.app.cache.listed(Filter(source.id), 5) == village.store.items.listed(Filter(source.id), 5)
    return village.app.cache.counts(began).hits > before


def test_a_visit_and_a_second_look_leave_the_hot_set_true(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a", "b")
    village.here.collect(source)
    assert is_hit(village, source)
    village.square.post("one", "a", text="second thoughts")
    village.clock.advance(2 * HOUR)
    (looked,) = village.app.rechecks().run("test")
    assert looked.counts.updated == 1
    assert is_hit(village, source)
    assert "second thoughts" in [item.text for item in village.app.cache.listed(Filter(source.id), 5).items]


def test_what_a_mended_reader_corrects_is_seen_at_once(village: Village) -> None:
    source = village.follow("one")
    village.square.post("one", "a")
    village.here.collect(source)
    assert is_hit(village, source)

    def louder(answer: Answer, request: Request) -> Reading:
        told = read(answer, request)
        return told.replace(items=tuple(item.replace(text=f"{item.text}!") for item in told.items))

    mended = SimpleNamespace(**vars(PLATFORM) | {"PARSER_VERSION": 2, "read": louder})
    reparsing = Reparsing(village.store, Platforms((mended,)), 1_000, Event(), village.here.clock.now(), is_dry=False)
    assert reparsing.run(reparsing.filter()).done.mended == 1
    assert not is_hit(village, source)
    assert village.app.cache.listed(Filter(source.id), 5).items[0].text == "about a!"


def test_a_community_that_shows_the_same_post_is_read_cold_until_it_is_visited(village: Village) -> None:
    first, other = village.follow("one"), village.follow("other")
    for name in ("one", "other"):
        village.square.post(name, "shared")
        village.here.collect(first if name == "one" else other)
    assert (is_hit(village, first), is_hit(village, other)) == (False, True)
    village.square.post("one", "shared", score=5)
    village.here.collect(first)
    assert (is_hit(village, first), is_hit(village, other)) == (True, False)
