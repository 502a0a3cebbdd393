"""A platform whose budget is used up, or that told us to wait, is left alone until then, and keeps nobody waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from catchment.collect.cooldowns import SharedCooldowns
from catchment.errors import PlatformError, SlowDown
from catchment.model import Outcome, Request
from tests.collect.crowd import Crowd
from tests.town import TownApp

MINUTES = timedelta(minutes=1)


def the_budget_is_used_up(here: TownApp) -> PlatformError:
    return SlowDown("the budget is used up", retry_at=here.clock.now() + 10 * MINUTES)


def the_platform_tells_to_wait(here: TownApp) -> PlatformError:
    error = SlowDown("429", status=429, retry_at=here.clock.now() + 10 * MINUTES)
    error.is_beyond_request = True
    return error


def one_request_is_refused(here: TownApp) -> PlatformError:
    return SlowDown("429", status=429, retry_at=here.clock.now() + 10 * MINUTES)


def refusing(crowd: Crowd, why: Callable[[TownApp], PlatformError]) -> None:
    def refuse(request: Request) -> None:
        if request.params["name"].startswith("crowd"):
            raise why(crowd.here)

    crowd.before_answering = refuse


@pytest.mark.parametrize("why", [the_budget_is_used_up, the_platform_tells_to_wait])
def test_nothing_more_is_asked_of_it_and_its_sources_stay_as_due_as_they_are(
    here: TownApp, why: Callable[[TownApp], PlatformError]
) -> None:
    crowd = Crowd(here)
    sources = crowd.follow("crowd", 8)
    crowd.follow("others", 3)
    refusing(crowd, why)
    results = crowd.collect()
    refused = {result.source_id for result in results if result.error_code == "SLOW_DOWN"}
    assert 1 <= len(refused) <= 2
    assert sorted(request for request in crowd.asked if request.startswith("others")) == [
        "others 0",
        "others 1",
        "others 2",
    ]
    # No attempt, no record, no change of when they are due; and free for whoever may ask sooner.
    untouched = [source for source in sources if source.id not in refused]
    for source in untouched:
        progress = here.progress(source)
        assert (progress.last_polled_at, progress.next_due_at, progress.poll_count) == (None, None, 0)
        assert (here.app.store.runs.of_source(source.id), here.app.store.sources.holder(source.id)) == ([], None)
    assert crowd.collect(after=60) == []
    crowd.before_answering = lambda request: None
    assert len(crowd.collect(after=600)) == 8


def test_others_are_due_as_ever_meanwhile(here: TownApp) -> None:
    crowd = Crowd(here)
    crowd.follow("crowd", 8)
    refusing(crowd, the_budget_is_used_up)
    crowd.collect()
    crowd.follow("others", 2)
    assert len(crowd.collect()) == 2


def test_what_was_asked_for_by_name_is_asked_all_the_same(quick: TownApp) -> None:
    crowd = Crowd(quick)
    sources = crowd.follow("crowd", 4)
    refusing(crowd, the_budget_is_used_up)
    crowd.collect()
    crowd.before_answering = lambda request: None
    (result,) = crowd.collect(sources[3])
    assert result.outcome == Outcome.SUCCEEDED


def test_what_is_said_about_one_request_closes_nothing(quick: TownApp) -> None:
    crowd = Crowd(quick)
    crowd.follow("crowd", 8)
    refusing(crowd, one_request_is_refused)
    assert len(crowd.collect()) == 8


def test_a_source_with_a_credential_of_its_own_waits_for_itself_alone(quick: TownApp) -> None:
    crowd = Crowd(quick)
    crowd.follow("crowd", 8, credential="its own")
    refusing(crowd, the_budget_is_used_up)
    assert len(crowd.collect()) == 8


def test_where_sources_bring_their_own_hosts_one_that_must_wait_closes_nothing(quick: TownApp) -> None:
    crowd = Crowd(quick)
    quick.app.platforms.by_name["crowd"].HOSTS = ()
    crowd.follow("crowd", 8)
    refusing(crowd, the_budget_is_used_up)
    assert len(crowd.collect()) == 8


# ── two processes ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("why", [the_budget_is_used_up, the_platform_tells_to_wait])
def test_what_one_process_was_told_all_obey(here: TownApp, why: Callable[[TownApp], PlatformError]) -> None:
    crowd = Crowd(here)
    crowd.follow("crowd", 8)
    refusing(crowd, why)
    crowd.collect()
    crowd.asked.clear()
    crowd.follow("others", 1)
    with here.another("serve", crowd, here.app.platforms) as second:
        assert [result.kind for result in second.scheduler().due("collect-due", "schedule")] == ["others"]
        assert crowd.asked == ["others 0"]
        crowd.before_answering = lambda request: None
        here.clock.advance(601)
        assert (
            len([result for result in second.scheduler().due("collect-due", "schedule") if result.kind == "crowd"]) == 8
        )


def test_the_later_end_wins_and_what_a_clock_that_was_wrong_has_told_is_not_believed(here: TownApp) -> None:
    first, other = SharedCooldowns(here.app.store.budgets), SharedCooldowns(here.app.store.budgets)
    now = here.clock.now()
    first.start("crowd", now + 10 * MINUTES, now)
    other.start("crowd", now + 5 * MINUTES, now)
    for each in (first, other):
        assert each.until(["crowd", "others"], now) == {"crowd": now + 10 * MINUTES}
    assert other.until(["crowd"], now + 10 * MINUTES) == {}
    first.start("others", now + 900 * MINUTES, now + 800 * MINUTES)
    assert other.until(["others"], now) == {}
