"""The plan of budgets, from what is followed and from what visits took."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment import jobs
from catchment.collect.budget_plan import taken_lately, taken_of_late
from catchment.model import (
    Counts,
    Outcome,
    Source,
    Target,
    VisitResult,
)
from catchment.policy.budget_plan import PlatformPlan
from catchment.store.credentials import Terms
from catchment.store.sources.runs import note_results
from catchment.store.sources.stats import RequestsUsed
from tests.town import TownApp

HOUR = timedelta(hours=1)


def communities(here: TownApp, count: int, **more: object) -> list[Source]:
    found = []
    for number in range(count):
        name = f"r/{more.get('priority', 'medium')}{number}"
        wanted = Target("reddit", name, name)
        found.append(here.app.store.sources.follow(wanted, "reddit", here.clock.now(), **more)[0])
    return found


def visited(here: TownApp, source: Source, requests: int, job: str = "collect-due", by: str = "schedule") -> None:
    now = here.clock.now()
    run_id = here.app.store.runs.begin(job, by, here.app.presence.owner_id, now)
    result = VisitResult(
        source.id, source.name, source.kind, Outcome.SUCCEEDED, Counts(), requests, started_at=now, finished_at=now
    )
    here.app.store.database.write(lambda tx: note_results(tx, [(run_id, result)]))


def plan_of(here: TownApp, platform: str = "reddit") -> PlatformPlan:
    (found,) = [plan for plan in here.app.plans() if plan.platform == platform]
    return found


def test_before_the_first_visit_each_listing_is_reckoned_with_a_request(here: TownApp) -> None:
    communities(here, 30)
    here.follow(here.town.feed())
    plan = plan_of(here)
    assert (plan.source_count, plan.needed) == (30, pytest.approx(1.0))
    assert (plan_of(here, "feeds").needed, plan_of(here, "feeds").allowed) == (1 / 240, None)


def test_afterwards_it_is_reckoned_with_what_visits_took_and_for_others_with_the_mean_of_their_kind(
    here: TownApp,
) -> None:
    first, second, _ = communities(here, 3)
    visited(here, first, 2)
    visited(here, first, 4)
    visited(here, second, 9)
    visited(here, second, 500, job="recheck")
    assert plan_of(here).needed == pytest.approx((3 + 9 + 6) / 60)
    here.clock.advance(4 * 86_400)
    assert plan_of(here).needed == pytest.approx(3 * 2 / 60), "what is older says nothing about today"


def test_own_intervals_and_tiers_count(here: TownApp) -> None:
    own, tiered, _ = communities(here, 3)
    here.app.store.sources.change(own.id, interval_minutes=10)
    here.app.store.database.write(
        lambda tx: tx.run("UPDATE progress SET tier = 'tier1', tier_minutes = 120 WHERE source_id = ?", tiered.id)
    )
    assert plan_of(here).needed == pytest.approx(2 / 10 + 2 / 120 + 2 / 60)


def test_what_other_jobs_ask_comes_besides_and_what_a_person_asks_does_not(here: TownApp) -> None:
    (source,) = communities(here, 1)
    visited(here, source, 1440, job="recheck")
    visited(here, source, 720, job="crawl-low-quality-communities")
    visited(here, source, 9999, job="collect", by="command")
    assert plan_of(here).besides == 1.5


def test_paused_sources_need_nothing(quick: TownApp) -> None:
    for source in communities(quick, 2):
        quick.app.store.sources.set_state(source.id, "paused", None, quick.clock.now())
    assert quick.app.plans() == []


def test_each_usable_credential_has_the_whole_budget(quick: TownApp) -> None:
    communities(quick, 1)
    for name in ("one", "two"):
        quick.app.store.credentials.add("reddit", name, "key", b"x", quick.clock.now(), terms=Terms(is_shared=True))
    assert plan_of(quick).allowed == 120
    quick.app.credential_manager.pause("two", "on leave")
    assert plan_of(quick).allowed == 60
    quick.app.credential_manager.pause("one", "on leave")
    assert plan_of(quick).allowed == 10, "what Reddit allows a stranger"


def test_for_a_page_visits_are_counted_by_the_job_and_what_is_followed_counts_at_once(here: TownApp) -> None:
    (source,) = communities(here, 1)
    visited(here, source, 3)
    visited(here, source, 1440, job="recheck")
    store, now = here.app.store, here.clock.now()
    assert taken_of_late(store, now) == taken_lately(store, now) == RequestsUsed({source.id: 3.0}, {"reddit": 1440})
    jobs.plan_budgets(here.app)
    visited(here, source, 9)
    communities(here, 1, priority="low")
    (plan,) = here.app.plans(taken_of_late(store, now))
    assert (plan.source_count, plan.needed, plan.besides) == (2, pytest.approx(2 * 3 / 60), 1.0)
    jobs.plan_budgets(here.app)
    assert taken_of_late(store, now).a_visit == {source.id: 6}


def test_a_budget_that_does_not_suffice_is_told_until_it_does(quick: TownApp) -> None:
    quick.app.store.credentials.add("reddit", "one", "key", b"x", quick.clock.now(), terms=Terms(is_shared=True))
    sources = communities(quick, 10, interval_minutes=1) + communities(quick, 50, interval_minutes=1, priority="low")
    jobs.plan_budgets(quick.app)
    (alert,) = quick.app.store.alerts.open()
    assert (alert.subject, alert.severity) == ("platform reddit budget", "P2")
    assert alert.message.startswith("reddit: 60 sources need 120 of 60 requests per minute: 50 will be late")
    for source in sources[10:]:
        quick.app.store.sources.set_state(source.id, "paused", None, quick.clock.now())
    jobs.plan_budgets(quick.app)
    assert quick.app.store.alerts.open() == []
