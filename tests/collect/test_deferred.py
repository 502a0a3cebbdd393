"""A source that our own limits make wait is deferred: neither collected nor failed, due again when they allow it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.collect.scheduler import StillDue, still_due, summed
from catchment.errors import Missing, SlowDown
from catchment.model import (
    Counts,
    Outcome,
    Request,
    VisitResult,
)
from tests.collect.communities import Community
from tests.collect.crowd import Crowd
from tests.town import TownApp

MINUTES = timedelta(minutes=1)


def out_of_budget(here: TownApp, minutes: int = 10) -> SlowDown:
    return SlowDown("the budget is used up", retry_at=here.clock.now() + minutes * MINUTES)


def test_a_deferred_source_is_due_when_the_budget_allows_it_and_nothing_else_changes(here: TownApp) -> None:
    feed = here.town.feed()
    feed.post("a")
    source = here.follow(feed)
    here.collect(source)
    before = here.progress(source)
    error = out_of_budget(here)
    feed.says.append(error)
    (result,) = here.collect(source)
    assert (result.outcome, result.requests, result.deferred_until) == (Outcome.DEFERRED, 0, error.retry_at)
    assert here.progress(source) == before.replace(next_due_at=error.retry_at, due_reason="deferred")
    assert here.app.store.failure_stats.failing(10) == []
    assert [result.outcome for result in here.collect(after=10 * MINUTES)] == [Outcome.UNCHANGED]


def test_a_failing_source_stays_failing_with_its_own_error_while_it_is_deferred(quick: TownApp) -> None:
    feed = quick.town.feed()
    source = quick.follow(feed)
    feed.says.extend([Missing("not there", status=404), out_of_budget(quick)])
    quick.collect(source)
    quick.collect(source)
    progress = quick.progress(source)
    assert (progress.failures_in_a_row, progress.failure_count, progress.last_error_code) == (1, 1, "MISSING")


def test_what_was_stored_before_the_budget_ran_out_is_kept_and_counted(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.fails["top 0"] = lambda: out_of_budget(quick)
    result = community.collect()
    assert (result.outcome, result.counts.new) == (Outcome.DEFERRED, 5)
    progress = community.progress
    assert (progress.poll_count, progress.last_success_at, progress.due_reason) == (1, quick.clock.now(), "deferred")


def test_a_new_source_that_was_deferred_still_goes_first(here: TownApp) -> None:
    crowd = Crowd(here)
    crowd.follow("others", 3)
    crowd.collect()
    (new,) = crowd.follow("others", 4)[3:]
    crowd.before_answering = lambda request: (_ for _ in ()).throw(out_of_budget(here, minutes=1))
    crowd.collect(new)
    crowd.before_answering = lambda request: None
    here.clock.advance(7200)
    store, rules = here.app.store, here.app.rules()
    assert store.sources.overdue(rules.intervals, rules.minutes(""), here.clock.now(), 1) == [new.id]


def test_a_run_counts_deferred_sources_apart_and_the_day_does_too(here: TownApp) -> None:
    well, broken, limited = (here.town.feed(name) for name in ("well", "broken", "limited"))
    broken.says.append(Missing("not there", status=404))
    limited.says.append(out_of_budget(here))
    sources = [here.follow(feed) for feed in (well, broken, limited)]
    here.collect(*sources)
    (run,) = here.app.store.runs.page()
    told = {name: getattr(run, name) for name in ("source_count", "succeeded", "failed", "deferred", "skipped")}
    assert told == {"source_count": 3, "succeeded": 1, "failed": 1, "deferred": 1, "skipped": 0}
    day = here.app.store.runs.last_day(here.clock.now())
    assert (day.fetches, day.errors, day.deferred) == (2, 1, 1)
    visits = here.app.store.runs.visits_since([source.id for source in sources], here.clock.now() - timedelta(days=1))
    well, broken, limited = (visits[source.id] for source in sources)
    assert (well.visits, well.failed, well.new) == (1, 0, 0)
    assert (broken.visits, broken.failed, broken.new) == (1, 1, 0)
    assert (limited.visits, limited.failed, limited.new) == (0, 0, 0)


def test_a_run_over_what_is_due_counts_what_it_did_not_begin_and_says_when_that_goes_on(here: TownApp) -> None:
    crowd = Crowd(here)
    crowd.follow("crowd", 8)
    until = here.clock.now() + 11 * MINUTES

    def refuse(request: Request) -> None:
        raise SlowDown("the budget is used up", retry_at=until)

    crowd.before_answering = refuse
    results = crowd.collect()
    left = here.app.scheduler().still_due(results)
    assert {result.outcome for result in results} == {Outcome.DEFERRED}
    assert left == StillDue(deferred=len(results), not_begun=8 - len(results), next_at=until)
    assert left.not_begun > 0


@pytest.mark.parametrize(
    ("due", "closed", "expected"),
    [
        ({}, {}, (1, 10)),
        ({"crowd": 3}, {"crowd": 5}, (4, 5)),
        ({"crowd": 3, "others": 1}, {"crowd": 5}, (5, 0)),
        ({"others": 0}, {"crowd": 5}, (1, 10)),
    ],
)
def test_what_is_still_due_goes_on_when_the_first_of_it_may(
    here: TownApp, due: dict[str, int], closed: dict[str, int], expected: tuple[int, int]
) -> None:
    now = here.clock.now()
    result = VisitResult(1, "one", "crowd", Outcome.DEFERRED, deferred_until=now + 10 * MINUTES)
    left = still_due([result], due, {kind: now + wait * MINUTES for kind, wait in closed.items()}, now)
    assert (left.count, left.next_at) == (expected[0], now + expected[1] * MINUTES)


def test_the_summary_of_a_run_without_deferred_sources_leaves_nothing_due(quick: TownApp) -> None:
    now = quick.clock.now()
    told = summed([VisitResult(1, "one", "rss", Outcome.SUCCEEDED, Counts(new=2))], now, now)
    assert (told.deferred, told.still_due, told.next_due_at) == (0, 0, None)
