"""Whether budgets suffice, and who is late where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.collect.budget_plan import (
    budget_alerts,
    is_tight,
    late_summary,
    summary,
)
from catchment.model import PRIORITIES, Budget
from catchment.policy.budget_plan import Need, PlannedDelay, planned

REDDIT = Budget("reddit", limit=100, window_seconds=60)
numbers = iter(range(1, 10**9))


def need(interval: int = 60, requests: float = 60, priority: str = "medium", name: str = "r/foo") -> Need:
    """By default, one request a minute."""
    return Need(next(numbers), name, priority, interval, requests)


def test_a_source_needs_the_requests_of_a_visit_in_each_interval() -> None:
    needs = [need(60, 1)] * 60 + [need(1440, 14.4)] * 100
    plan = planned("reddit", needs, REDDIT, besides=0.5)
    assert (plan.source_count, round(plan.needed, 6), plan.allowed, round(plan.share or 0, 6)) == (160, 2.0, 100, 0.025)
    assert plan.late == ()


def test_a_budget_for_an_hour_is_one_for_its_minutes() -> None:
    assert planned("hackernews", [], Budget("hackernews", 10_000, 3600)).allowed == pytest.approx(166.67, abs=0.01)


def test_without_a_budget_nobody_is_late() -> None:
    plan = planned("feeds", [need() for _ in range(9999)], None)
    assert (plan.allowed, plan.share, plan.late) == (None, None, ())


def test_where_it_does_not_suffice_those_of_one_priority_are_late_in_proportion_to_their_intervals() -> None:
    needs = [need(60) for _ in range(100)] + [need(120, 120) for _ in range(50)]
    late = planned("reddit", needs, REDDIT).late
    assert {(source.need.interval_minutes, source.minutes) for source in late} == {(60, 30), (120, 60)}
    assert [source.minutes for source in late] == [60] * 50 + [30] * 100, "the worst first"


def test_the_higher_priority_has_what_it_needs_first() -> None:
    needs = [
        *(need(priority="high") for _ in range(70)),
        *(need(priority="medium") for _ in range(40)),
        *(need(priority="low") for _ in range(10)),
    ]
    late = planned("reddit", needs, REDDIT).late
    assert [(source.need.priority, source.minutes) for source in late] == [("low", None)] * 10 + [("medium", 20)] * 40


def test_what_is_asked_besides_and_what_is_not_aimed_at_cannot_be_planned_with() -> None:
    needs = [need() for _ in range(91)]
    assert planned("reddit", needs, REDDIT, besides=9, aim=1.0).late == ()
    assert len(planned("reddit", needs, REDDIT, besides=9.1, aim=1.0).late) == 91
    assert len(planned("reddit", needs, REDDIT, besides=9, aim=0.97).late) == 91
    assert {source.minutes for source in planned("reddit", needs, REDDIT, besides=200).late} == {None}


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0.1, 50), st.sampled_from(PRIORITIES)), max_size=30))
def test_stretched_by_their_lateness_all_that_are_visited_fit_into_the_budget(
    rows: list[tuple[int, float, str]],
) -> None:
    needs = [need(interval, requests, priority) for interval, requests, priority in rows]
    budget = Budget("it", 10, 60)
    plan = planned("it", needs, budget)
    late = {source.need.source_id: source.minutes for source in plan.late}
    # Minutes are rounded, so that half a minute may be missing from each.
    stretched = [
        need.requests / (need.interval_minutes + (late.get(need.source_id, 0) or 0) + 0.5)
        for need in needs
        if late.get(need.source_id, 0) is not None
    ]
    assert sum(stretched) <= 10 * 1.0001
    assert bool(late) == (plan.needed > 10)


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_is_told_in_a_line() -> None:
    plan = planned("reddit", [need(100, 23) for _ in range(400)], REDDIT)
    assert summary(plan) == "reddit: 400 sources need 92 of 100 requests per minute"
    assert summary(planned("feeds", [need(240, 1)], None)) == (
        "feeds: 1 source needs 0.00417 requests per minute; no budget is declared"
    )


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (40, "r/foo will be 40 min late"),
        (600, "r/foo will be 10 h late"),
        (None, "r/foo will not be collected: sources of higher priority use the whole budget"),
    ],
)
def test_who_is_late_is_told_by_name(minutes: int | None, words: str) -> None:
    assert late_summary(PlannedDelay(need(), minutes)) == words


def test_a_budget_is_tight_before_it_is_used_up_and_alarming_when_it_does_not_suffice() -> None:
    plans = [planned("it", [need() for _ in range(count)], REDDIT) for count in (80, 81, 101)]
    assert [is_tight(plan) for plan in plans] == [False, True, True]
    (alarm,) = budget_alerts(plans)
    assert alarm.message.startswith("it: 101 sources need 101 of 100 requests per minute: 101 will be late")
