"""The jobs that measure run by the clock: at full hours, and at midnight."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.jobs import JOBS, Job, run_if_due
from catchment.store.sources.metrics import MetricSpan
from tests.town import TownApp

HOUR = timedelta(hours=1)


def job(name: str) -> Job:
    (found,) = [job for job in JOBS if job.name == name]
    return found


def told_to_run_at(here: TownApp, job: Job) -> str:
    """Run it, if it is due, and tell when it runs next."""
    here.app.store.jobs.announce(job.name, here.clock.now())
    run_if_due(here.app, job)
    (known,) = [row for row in here.app.store.jobs.all() if row.name == job.name]
    assert known.last_error is None
    return known.next_run_at.isoformat()


@pytest.mark.parametrize(
    ("name", "next_runs"),
    [("measure-hours", ("2026-01-01T11:00", "2026-01-01T12:00")), ("daily-metrics", ("2026-01-02T00:00",) * 2)],
)
def test_a_job_on_the_clock_runs_next_when_the_hour_or_the_day_is_full(
    quick: TownApp, name: str, next_runs: tuple[str, str]
) -> None:
    due_job = job(name)
    quick.clock.advance(10 * 3600 + 1234)
    first = told_to_run_at(quick, due_job)
    quick.clock.advance(3600)
    assert (first[:16], told_to_run_at(quick, due_job)[:16]) == next_runs


def test_a_collected_hour_is_closed_by_its_job_once(here: TownApp) -> None:
    feed = here.town.feed()
    feed.post("a", at=here.clock.now())
    source = here.follow(feed)
    here.collect(source)
    hourly, metrics = job("measure-hours"), here.app.store.metrics
    told_to_run_at(here, hourly)
    since, until = here.clock.now() - HOUR, here.clock.now() + HOUR
    assert metrics.kept(MetricSpan.HOUR, since, until) == [], "the hour is under way"
    here.collect(source, after=HOUR)
    told_to_run_at(here, hourly)
    ((_, kept),) = metrics.kept(MetricSpan.HOUR, since, until)
    assert (kept.kind, kept.succeeded, kept.new_count, kept.request_count) == ("rss", 1, 1, 1)
