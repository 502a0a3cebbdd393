"""A small endurance test: real processes, real faults, ten kills; `make endure` is the large one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from endure import boards, claimers, communities, users
from endure.trial import FAULTS, START, Plan, run
from tests.databases import POSTGRESQL, postgres_copy

pytestmark = pytest.mark.process


OTHERS = (
    ("hackernews", 1),
    ("github", 1),
    ("website", 2),
    ("json_api", 4),
    ("discourse", 2),
    ("reddit", 2),
    ("nga", 1),
    ("x", 2),
)
TRIALS = (0.5, 2.0, 8.0, 32.0)
"""Minutes for the same day and a half. On a busy machine little is asked in the shortest: then a longer one follows."""


@pytest.fixture(params=["sqlite", POSTGRESQL])
def new_database(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[str]]:
    """A database for one trial: `sqlite` is one in the trial's own folder."""
    if request.param == "sqlite":
        return lambda: nullcontext("sqlite")
    server, template = request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_template")
    return lambda: postgres_copy(server, template)


def test_ten_kills_in_a_day_and_a_half_lose_nothing_and_leave_nothing_unexplained(
    tmp_path: Path, new_database: Callable[[], AbstractContextManager[str]]
) -> None:
    for minutes in TRIALS:
        with new_database() as database:
            plan = Plan(24, 1.5, kills=10, fault_rate=0.2, seed=7, minutes=minutes, database=database, others=OTHERS)
            verdict = run(plan, tmp_path / f"{minutes:g} minutes")
        # Not its gaps: there are a dozen or none, too few to judge their share of false ones. The large trial does.
        assert not any(verdict.figures[name] for name in FAULTS), f"{verdict.figures} {verdict.details}"
        # The last kill may be a polite stop, if the time runs out.
        if verdict.figures["kills"] >= 9 and verdict.figures["faults"] > 20:
            return
    pytest.fail(f"even in {TRIALS[-1]:g} minutes too little happened: {verdict.figures}")


def test_seventy_communities_that_are_due_at_once_never_exceed_the_budget_of_their_key(
    tmp_path: Path,
) -> None:
    week = communities.Week(communities=70, days=0.004, fault_rate=0.05, seed=7, database="sqlite")
    verdict = communities.run(week, tmp_path)
    assert verdict.is_good, f"{verdict.figures} {verdict.details}"
    # Nearly used up: it was the budget that kept them apart, not that there was little to ask for.
    assert 50 < verdict.figures["most_in_a_window"] <= 60
    assert verdict.figures["told_to_wait"] == 0


def test_a_few_users_of_x_cost_what_the_bill_says_and_with_caps_half_of_it(tmp_path: Path) -> None:
    week = users.Week(users=6, days=0.2, fault_rate=0.1, seed=7, database="sqlite")
    verdict = users.run(week, tmp_path)
    assert verdict.is_good, f"{verdict.figures} {verdict.details}"
    assert verdict.figures["items"] > 50
    costs, capped = verdict.figures["cost"], verdict.figures["capped"]
    # That no day costs more than its cap, or than what was spent before it came, is part of the verdict.
    assert all(capped["fullest_days"][name] > 0 and capped["caps"][name] < costs[name]["bill"] for name in costs)
    # One account has no credits left: it is asked now and then whether that has changed.
    assert 0 < verdict.figures["used_up"]["twitterapi_io"] < verdict.figures["requests"] / 3
    billed = verdict.figures["billed"]["x"]
    # X's own API is asked only for what is newer: at most a few answers that came twice after a fault.
    assert billed["optimum"][0] <= billed["ours"][0] < billed["fixed"][0]


def test_what_other_ways_to_read_are_billed_for() -> None:
    assert users.ways(new=0, there=500, page=20) == {"fixed": (100, 5), "watermark": (20, 1), "optimum": (0, 0)}
    assert users.ways(new=20, there=500, page=20) == {"fixed": (100, 5), "watermark": (40, 2), "optimum": (20, 1)}
    assert users.ways(new=3, there=7, page=100) == {"fixed": (7, 1), "watermark": (7, 1), "optimum": (3, 1)}


def test_traced_accounts_post_in_the_world_at_the_same_hours_of_the_week(tmp_path: Path) -> None:
    traces = tmp_path / "traces.jsonl"
    # A Monday, two days of history; one post on the first day, one on the third at 10:00.
    head = '{"start": 1629072000, "days": 9, "history_days": 7, "unit": "s"}'
    traces.write_text(f'{head}\n{{"source": "a", "kind": "x", "dt": [36000, 604800]}}\n')
    world = users.world_of(users.Week(2, 2.0, 0.0, 7, "sqlite", traces))
    shown = [post.shown_from - START for post in world.posts(world.places[1])]
    assert shown == [timedelta(days=-7, hours=10), timedelta(hours=10)]


def test_claimers_in_two_processes_keep_one_budget_while_redis_dies_comes_back_empty_and_dies_again(
    tmp_path: Path, postgres_url: str
) -> None:
    for minutes in (20.0, 60.0, 200.0):
        trial = claimers.Claimers(12, minutes, processes=2, rate=60.0, database=postgres_url)
        figures = claimers.run(trial, tmp_path / f"{minutes:g} minutes").figures
        # By when tokens were granted: on this clock, a busy machine delays a request by a whole window. The large
        # trial counts what arrives.
        assert figures["most_granted_in_a_window"] <= figures["limit"], figures
        if figures["by_phase"]["redis"] and figures["by_phase"]["empty"]:
            return
    pytest.fail(f"too little happened: {figures}")


def test_a_board_that_two_processes_read_while_they_are_killed_is_stored_floor_by_floor(
    tmp_path: Path, new_database: Callable[[], AbstractContextManager[str]]
) -> None:
    with new_database() as database:
        verdict = boards.run(boards.Month(20, 4, kills=3, fault_rate=0.1, seed=7, database=database), tmp_path)
    assert verdict.is_good, f"{verdict.figures} {verdict.details}"
    assert (verdict.figures["kills"], verdict.figures["most_in_a_second"]) == (3, 1)
    assert verdict.figures["items"] > 200
    assert verdict.figures["holes"] > 0
