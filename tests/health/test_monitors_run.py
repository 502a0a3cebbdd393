"""The monitors at work: each opens its alert once, and closes it by itself; the settings decide when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from catchment import jobs
from catchment.clock import micros
from catchment.collect.outages import JOB
from catchment.errors import ServerTrouble, SlowDown
from catchment.jobs import JOBS
from catchment.model import Target
from catchment.store.cache import CacheCounts
from catchment.store.credentials import Terms
from catchment.store.sources.metrics import count_attempts
from tests.town import TownApp

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def open_alerts(here: TownApp) -> list[tuple[str, str]]:
    return [(alert.subject, alert.severity) for alert in here.app.store.alerts.open()]


def with_settings(here: TownApp, **settings: Any) -> None:
    here.app.settings = replace(here.app.settings, **settings)


def called(here: TownApp, count: int, platform: str = "reddit") -> None:
    minute = here.clock.now().replace(second=0, microsecond=0)
    here.app.store.database.write(lambda tx: count_attempts(tx, platform, {("200", minute): count}))


def looked_at(here: TownApp, job: str, *, after: timedelta = MINUTE) -> list[tuple[str, str]]:
    here.clock.advance(after.total_seconds())
    next(candidate for candidate in JOBS if candidate.name == job).run(here.app)
    return open_alerts(here)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_too_many_calls_in_a_minute_open_an_alert_once_and_it_closes_when_they_are_fewer(here: TownApp) -> None:
    called(here, 55)
    assert looked_at(here, "monitor-api-calls") == []
    called(here, 30)
    called(here, 26)
    for _ in range(3):
        assert looked_at(here, "monitor-api-calls") == [("platform reddit calls", "P2")]
    assert looked_at(here, "monitor-api-calls", after=6 * MINUTE) == []
    assert len(here.app.store.alerts.page(include_closed=True)) == 1


@pytest.mark.parametrize(("threshold", "is_alarming"), [(19, True), (20, False)])
def test_the_threshold_of_calls_can_be_set(quick: TownApp, threshold: int, is_alarming: bool) -> None:
    with_settings(quick, monitor_api_threshold=threshold)
    called(quick, 20)
    assert bool(looked_at(quick, "monitor-api-calls")) is is_alarming


def test_with_two_usable_credentials_twice_as_many_calls_are_as_usual(quick: TownApp) -> None:
    credentials = quick.app.store.credentials
    for name in ("one", "two"):
        credentials.add("reddit", name, "key", b"sealed", quick.clock.now(), terms=Terms(is_shared=True))
    called(quick, 110)
    assert looked_at(quick, "monitor-api-calls") == []
    quick.app.credential_manager.pause("two", "on leave")
    assert looked_at(quick, "monitor-api-calls") == [("platform reddit calls", "P2")]


# ── the hot store ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cold_hot_store_is_told_and_silence_about_it_is_not(here: TownApp) -> None:
    home = here.app.store.cached_sources
    assert looked_at(here, "monitor-cache-health") == []
    home.count(here.clock.now(), CacheCounts(hits=69, misses=31))
    assert looked_at(here, "monitor-cache-health") == [("hot store hits", "P2")]
    home.count(here.clock.now(), CacheCounts(hits=10))
    assert looked_at(here, "monitor-cache-health") == []
    home.count(here.clock.now(), CacheCounts(misses=99))
    assert looked_at(here, "monitor-cache-health") == [("hot store hits", "P2")]
    assert looked_at(here, "monitor-cache-health", after=10 * MINUTE) == [], "nobody reads"


@pytest.mark.parametrize(("threshold", "is_alarming"), [(0.5, False), (0.51, True), (0.0, False)])
def test_the_wanted_share_of_hits_can_be_set(quick: TownApp, threshold: float, is_alarming: bool) -> None:
    with_settings(quick, monitor_hit_threshold=threshold)
    quick.app.store.cached_sources.count(quick.clock.now(), CacheCounts(hits=5, misses=5))
    assert bool(looked_at(quick, "monitor-cache-health")) is is_alarming


# ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def ten_feeds(here: TownApp) -> list[Any]:
    return [here.follow(here.town.feed(f"feed{number}")) for number in range(10)]


def fail(here: TownApp, count: int, error: Any = None) -> None:
    for number in range(count):
        here.town.feed(f"feed{number}").says.append(error or ServerTrouble("in trouble", status=503))


def test_a_platform_where_too_much_fails_is_told_until_enough_goes_well_again(here: TownApp) -> None:
    sources = ten_feeds(here)
    fail(here, 2)
    here.collect(*sources)
    assert looked_at(here, "monitor-success") == [("platform feeds visits", "P1")]
    (alert,) = here.app.store.alerts.open()
    assert "2 of 10 sources failed in 10 minutes, most often with SERVER_TROUBLE" in alert.message
    assert looked_at(here, "monitor-success", after=HOUR) != [], "a quiet hour proves nothing"
    here.collect(*sources)
    assert looked_at(here, "monitor-success") == []


def test_deferred_visits_are_no_failures_but_refusals_are(quick: TownApp) -> None:
    sources = ten_feeds(quick)
    fail(quick, 9, SlowDown("the budget is used up"))
    quick.collect(*sources)
    assert looked_at(quick, "monitor-success") == []
    fail(quick, 2, SlowDown("asked to wait", status=429))
    quick.collect(*sources)
    assert looked_at(quick, "monitor-success") == [("platform feeds visits", "P1")]


def test_what_is_followed_no_more_is_alarming_no_more(quick: TownApp) -> None:
    sources = ten_feeds(quick)
    fail(quick, 5)
    quick.collect(*sources)
    assert looked_at(quick, "monitor-success") != []
    for source in sources:
        quick.app.store.sources.set_state(source.id, "paused", None, quick.clock.now())
    assert looked_at(quick, "monitor-success", after=HOUR) == []


# ── standing still ────────────────────────────────────────────────────────────────────────────────────────────────


def watched_for(here: TownApp, span: timedelta) -> list[tuple[str, str]]:
    """The monitor of collecting looks every five minutes, as it does while a collector runs."""
    (job,) = [job for job in JOBS if job.name == JOB]
    here.app.store.jobs.announce(job.name, here.clock.now())
    for _ in range(span // (5 * MINUTE)):
        here.clock.advance(300)
        jobs.run_if_due(here.app, job)
    return open_alerts(here)


def test_it_is_told_if_nothing_is_visited_for_long_although_something_is_due(here: TownApp) -> None:
    source = here.follow(here.town.feed())
    here.collect(source)
    assert watched_for(here, 4 * HOUR) == []
    assert watched_for(here, 85 * MINUTE) == [], "due for so long"
    assert watched_for(here, 10 * MINUTE) == [("collecting stalled", "P0")]
    here.collect(source)
    assert watched_for(here, 5 * MINUTE) == []


def test_a_source_that_was_never_visited_is_due_since_it_is_followed(here: TownApp) -> None:
    here.follow(here.town.feed())
    assert watched_for(here, 90 * MINUTE) == []
    assert watched_for(here, 5 * MINUTE) == [("collecting stalled", "P0")]


def test_nothing_due_is_no_standstill(quick: TownApp) -> None:
    quick.app.store.sources.set_state(quick.follow(quick.town.feed()).id, "paused", None, quick.clock.now())
    assert watched_for(quick, 9 * HOUR) == []


@pytest.mark.parametrize(("minutes", "is_alarming"), [(30, True), (31, False)])
def test_how_long_nothing_may_be_visited_can_be_set(quick: TownApp, minutes: int, is_alarming: bool) -> None:
    with_settings(quick, monitor_stale_minutes=minutes)
    quick.follow(quick.town.feed(), interval_minutes=5)
    assert bool(watched_for(quick, 35 * MINUTE)) is is_alarming


# ── first visits ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_first_visits_that_were_begun_and_do_not_go_on_are_told(here: TownApp) -> None:
    sources = ten_feeds(here)
    assert looked_at(here, "monitor-warmup-metrics", after=HOUR) == [], "none was begun"
    here.collect(*sources[:3])
    assert looked_at(here, "monitor-warmup-metrics", after=29 * MINUTE) == []
    assert looked_at(here, "monitor-warmup-metrics", after=2 * MINUTE) == [("rss warm-up", "P1")]
    assert "3 of 10 sources" in here.app.store.alerts.open()[0].message
    here.collect(sources[3])
    assert looked_at(here, "monitor-warmup-metrics") == []
    here.collect(*sources)
    assert looked_at(here, "monitor-warmup-metrics", after=9 * HOUR) == []


def test_a_community_that_was_warmed_waits_for_no_first_visit(here: TownApp) -> None:
    follow, database = here.app.store.sources.follow, here.app.store.database
    first, other = (follow(Target("reddit", name), "reddit", here.clock.now())[0].id for name in ("r/one", "r/other"))

    def warmed(source_id: int) -> None:
        sql = "INSERT INTO hot_sources (source_id, last_warmed_at, cached_count) VALUES (?, ?, 9)"
        database.write(lambda tx: tx.run(sql, source_id, micros(here.clock.now())))

    warmed(first)
    assert looked_at(here, "monitor-warmup-metrics", after=31 * MINUTE) == [("reddit warm-up", "P1")]
    warmed(other)
    assert looked_at(here, "monitor-warmup-metrics", after=HOUR) == []


# ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_while_all_is_well_monitors_write_nothing(quick: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.collect(quick.follow(quick.town.feed()))
    watched_for(quick, 10 * MINUTE)
    monkeypatch.setattr(quick.app.store.database, "write", lambda _: pytest.fail("it writes"))
    for job in JOBS:
        if job.name.startswith("monitor-"):
            job.run(quick.app)
