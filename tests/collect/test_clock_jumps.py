"""The machine's clock is set forward, or back: nothing is lost, nothing is stored twice, nobody waits for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.jobs import JOBS, recover_leases, run_if_due
from catchment.model import Outcome
from catchment.sources.add import request_collection
from tests.town import TownApp

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def post(here: TownApp, *names: str) -> None:
    """Posts of this moment, by the world's own clock, which nobody set."""
    feed = here.town.feed(window=20)
    for name in names:
        feed.post(name, at=here.world_now)  # type: ignore[attr-defined]


@pytest.mark.parametrize("jump", [-400 * DAY, -3 * DAY, -5 * HOUR, 5 * HOUR, 3 * DAY, 400 * DAY])
def test_a_clock_that_jumps_loses_nothing_and_doubles_nothing(here: TownApp, jump: timedelta) -> None:
    here.world_now = here.clock.now()  # type: ignore[attr-defined]
    post(here, "a1", "a2", "a3")
    source = here.follow(here.town.feed())
    here.collect(source)
    here.clock.advance(jump.total_seconds())
    here.world_now += HOUR  # type: ignore[attr-defined]
    post(here, "b1", "b2", "b3")
    (during,) = here.collect(source)
    here.clock.advance(-jump.total_seconds())
    here.world_now += HOUR  # type: ignore[attr-defined]
    post(here, "c1", "c2", "c3")
    (after,) = here.collect(source)
    assert [during.outcome, after.outcome] == [Outcome.SUCCEEDED] * 2
    names = sorted(item["external_id"] for item in here.items(source))
    assert names == ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"]
    assert here.gaps() == []


@pytest.mark.parametrize("jump", [-400 * DAY, 400 * DAY])
def test_after_a_clock_was_wrong_for_a_while_sources_are_visited_again_within_their_interval(
    here: TownApp, jump: timedelta
) -> None:
    here.world_now = here.clock.now()  # type: ignore[attr-defined]
    post(here, "a1", "a2", "a3")
    source = here.follow(here.town.feed())
    here.clock.advance(jump.total_seconds())
    here.collect(source)
    here.clock.advance(-jump.total_seconds())
    here.clock.advance(900)
    recover_leases(here.app)
    assert len(here.collect(after=5 * HOUR)) == 1


def test_a_source_that_was_added_while_the_clock_ran_ahead_is_visited_once_it_is_right(here: TownApp) -> None:
    here.world_now = here.clock.now()  # type: ignore[attr-defined]
    post(here, "a1", "a2", "a3")
    here.clock.advance((400 * DAY).total_seconds())
    source = here.follow(here.town.feed())
    request_collection(here.app.store, source.id, here.clock.now())
    here.clock.advance(-(400 * DAY).total_seconds())
    assert here.collect() == []
    recover_leases(here.app)
    (result,) = here.collect()
    assert result.outcome is Outcome.SUCCEEDED


def test_after_a_clock_ran_ahead_edits_are_seen_again(here: TownApp) -> None:
    here.world_now = here.clock.now()  # type: ignore[attr-defined]
    feed = here.town.feed(window=20)
    post(here, "a1", "a2", "a3")
    source = here.follow(feed)
    here.clock.advance((400 * DAY).total_seconds())
    here.collect(source)
    here.clock.advance(-(400 * DAY).total_seconds())
    feed.post("a1", "second thoughts")
    here.collect(source, after=HOUR)
    assert here.item("a1")["text"] == "second thoughts"


def test_a_job_that_a_wrong_clock_put_far_ahead_runs_again(here: TownApp) -> None:
    job = next(job for job in JOBS if job.name == "recover-leases")
    here.clock.advance((400 * DAY).total_seconds())
    here.app.store.jobs.announce(job.name, here.clock.now())
    assert run_if_due(here.app, job)
    here.clock.advance(-(400 * DAY).total_seconds())
    assert run_if_due(here.app, job)
    assert not run_if_due(here.app, job)
