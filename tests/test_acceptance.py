"""The eighteen acceptance cases of scheduled collection, by their numbers, on a moved clock."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from catchment.engines.embedded import Embedded
from catchment.jobs import JOBS, run_if_due
from catchment.model import (
    Answer,
    Kind,
    Outcome,
    Source,
)
from catchment.platforms import Platforms, feeds, installed
from catchment.settings import read_settings
from tests.feedsite import FeedSite
from tests.town import Feed, TownApp
from tests.web.desk import Desk

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
COLLECT_DUE = next(job for job in JOBS if job.name == "collect-due")


@pytest.fixture
def here(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    app = TownApp(tmp_path / "home", database_url)
    app.app.platforms = Platforms((*installed(), hackernews()))
    yield app
    app.close()


def hackernews() -> Any:
    """Stands for a platform whose kind has another interval; what it reads is a feed all the same."""
    names = {name: getattr(feeds, name) for name in ("first", "read", "refusal", "understand", "HOSTS", "BUDGET")}
    kind = Kind("hackernews", "stories", 60, "top", feeds.KINDS[0].listings)
    return SimpleNamespace(NAME="hackernews", KINDS=(kind,), IS_SCOPED=True, PARSER_VERSION=1, **names)


def a_feed(here: TownApp, name: str = "one") -> Feed:
    feed = here.town.feed(name)
    feed.post("p1", at=here.clock.now() - HOUR)
    return feed


def visited(here: TownApp, source: Source, ago: timedelta) -> None:
    """It was collected so long ago."""
    here.collect(source)
    here.clock.advance(ago.total_seconds())


def tick(here: TownApp) -> int:
    """One tick of the collector; gives how many requests it made."""
    before = sum(map(len, here.town.asked.values()))
    here.app.store.jobs.announce("collect-due", here.clock.now())
    assert run_if_due(here.app, COLLECT_DUE)
    return sum(map(len, here.town.asked.values())) - before


def test_01_a_source_never_visited_is_collected_at_once_when_the_loop_starts(here: TownApp) -> None:
    here.follow(a_feed(here))
    here.town.clock.wall_seconds = lambda seconds: seconds  # type: ignore[method-assign]
    engine = Embedded(here.app)
    engine.start()
    for _ in range(10_000):
        if here.items():
            break
        here.app.stop.wait(0.05)
    assert engine.stop(500)
    assert len(here.items()) == 1


def test_02_rss_visited_three_hours_ago_is_not_collected(here: TownApp) -> None:
    visited(here, here.follow(a_feed(here)), 3 * HOUR)
    assert tick(here) == 0


def test_03_rss_visited_five_hours_ago_is_collected(here: TownApp) -> None:
    visited(here, here.follow(a_feed(here)), 5 * HOUR)
    assert tick(here) == 1


def test_04_hackernews_visited_50_minutes_ago_is_not_collected(here: TownApp) -> None:
    visited(here, here.follow(a_feed(here), kind="hackernews"), 50 * MINUTE)
    assert tick(here) == 0


def test_05_hackernews_visited_70_minutes_ago_is_collected(here: TownApp) -> None:
    visited(here, here.follow(a_feed(here), kind="hackernews"), 70 * MINUTE)
    assert tick(here) == 1


def test_06_fetch_interval_rss_60_makes_rss_due_after_an_hour(tmp_path: Path) -> None:
    settings = read_settings({"FETCH_INTERVAL_RSS": "60"}, tmp_path, kinds=["rss"])
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'c.db'}", intervals=settings.intervals)
    visited(here, here.follow(a_feed(here)), 59 * MINUTE)
    assert tick(here) == 0
    here.clock.advance(60)
    assert tick(here) == 1
    here.close()


def test_07_a_source_added_while_it_runs_is_found_at_the_next_tick(here: TownApp) -> None:
    assert tick(here) == 0
    here.follow(a_feed(here))
    here.clock.advance(60)
    assert tick(here) == 1


def test_08_a_kind_without_a_platform_is_skipped_without_an_error_and_warned_of_once(
    here: TownApp, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    from catchment.model import Target

    for name in ("nasa", "esa"):
        here.app.store.sources.follow(Target("xhs_keyword", f"@{name}"), "xiaohongshu", here.clock.now())
    results = here.collect()
    assert [(result.outcome, result.error) for result in results] == [(Outcome.SKIPPED, None)] * 2
    assert here.collect() == []  # not again with every tick
    assert len(here.collect(after=60 * MINUTE)) == 2
    said = caplog.text + "".join(capsys.readouterr())
    assert said.count("no platform is installed for kind 'xhs_keyword'") == 1


def test_09_ten_due_sources_are_collected_three_at_a_time_if_so_set(tmp_path: Path) -> None:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'c.db'}", concurrency=3)
    meeting, numbers = Barrier(3, timeout=600), count(1)

    def waits_for_two_others(request, now):  # type: ignore[no-untyped-def]
        if next(numbers) < 10:  # the tenth has nobody left to meet
            meeting.wait()
        return Answer(200, {}, b'<rss version="2.0"><channel><title>t</title></channel></rss>', request.url, now)

    for number in range(10):
        feed = a_feed(here, f"n{number}")
        feed.says.append(waits_for_two_others)
        here.follow(feed)
    assert len(here.collect()) == 10
    assert here.town.most_at_once == 3
    here.close()


def test_10_an_error_is_recorded_and_touches_no_other_source(here: TownApp) -> None:
    bad, good = a_feed(here, "bad"), a_feed(here, "good")
    source, other = here.follow(bad), here.follow(good)
    bad.says.append(lambda request, now: Answer(404, {}, b"", request.url, now))
    here.collect()
    assert (here.progress(source).failure_count, here.progress(source).last_error_code) == (1, "MISSING")
    assert (here.progress(other).failure_count, len(here.items())) == (0, 1)


def test_11_five_failures_in_a_row_take_a_source_out_of_its_schedule(here: TownApp) -> None:
    feed = a_feed(here)
    source = here.follow(feed)
    feed.says.extend(lambda request, now: Answer(500, {}, b"", request.url, now) for _ in range(5))
    for _ in range(5):
        here.collect(source)
    here.clock.advance((4 * HOUR + MINUTE).total_seconds())
    assert tick(here) == 0
    assert here.progress(source).due_reason == "probation"
    assert len(here.app.store.alerts.open()) == 1


@pytest.mark.process
def test_12_a_collector_told_to_stop_finishes_what_is_under_way_and_leaves_cleanly(tmp_path: Path) -> None:
    with FeedSite() as site:
        feed = site.feed("slow", posts=3)
        environ = {
            **os.environ,
            "CATCHMENT_HOME": str(tmp_path),
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1",
        }
        catchment = [sys.executable, "-m", "catchment"]
        subprocess.run([*catchment, "sources", "add", "rss", feed.url], env=environ, check=True, capture_output=True)
        feed.hold()
        with subprocess.Popen([*catchment, "collect", "--loop"], env=environ, stderr=subprocess.DEVNULL) as collector:
            while not feed.requests:
                assert collector.poll() is None
                time.sleep(0.02)
            collector.terminate()
            feed.release()
            assert collector.wait(600) == 0
        listed = subprocess.run([*catchment, "items", "--json"], env=environ, check=True, capture_output=True)
        assert len(listed.stdout.splitlines()) == 3


def test_13_the_collectors_status_needs_a_key(here: TownApp) -> None:
    assert Desk(here).stranger.get("/api/collector/status").status_code == 401


def test_14_with_a_key_the_status_tells_of_every_source_and_the_sums(here: TownApp) -> None:
    for name in ("one", "two"):
        here.follow(a_feed(here, name))
    here.collect()
    status = Desk(here).get("/api/collector/status")
    assert [(source["type"], source["fetch_count"], source["status"]) for source in status["sources"]] == [
        ("rss", 1, "ok")
    ] * 2
    assert (status["stats"]["total_sources"], status["stats"]["items_24h"]) == (2, 2)


def test_15_the_next_visit_is_the_last_one_plus_the_interval(here: TownApp) -> None:
    here.follow(a_feed(here))
    here.collect()
    (source,) = Desk(here).get("/api/collector/status")["sources"]
    last, due = (datetime.fromisoformat(source[name]) for name in ("last_fetched_at", "next_fetch_at"))
    assert due - last == timedelta(minutes=source["interval_minutes"]) == 4 * HOUR


def test_16_without_any_setting_the_tick_is_a_minute_and_the_intervals_are_the_published_ones(tmp_path: Path) -> None:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'c.db'}")
    published = {
        "twitter_feed": 30, "twitter_list": 30, "twitter_bookmarks": 60, "hackernews": 60, "reddit": 60, "rss": 240,
        "digest_feed": 240, "github_trending": 240, "website": 240, "custom_api": 120,
    }  # fmt: skip
    assert COLLECT_DUE.period(here.settings) == MINUTE
    assert published.items() <= here.app.intervals().items()
    here.close()


def test_17_one_source_asked_for_is_collected_whatever_its_schedule_says(here: TownApp) -> None:
    source = here.follow(a_feed(here))
    visited(here, source, MINUTE)
    assert tick(here) == 0
    (result,) = here.collect(source)
    assert result.outcome == Outcome.UNCHANGED


def test_18_the_older_collector_interval_still_sets_the_tick(tmp_path: Path) -> None:
    assert read_settings({"COLLECTOR_INTERVAL": "300"}, tmp_path).tick_seconds == 300
    assert read_settings({"COLLECTOR_INTERVAL": "300", "COLLECTOR_TICK": "30"}, tmp_path).tick_seconds == 30
