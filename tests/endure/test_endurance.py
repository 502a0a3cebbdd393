"""A small endurance test: real processes, real faults, ten kills; `make endure` is the large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from endure import communities
from endure.trial import FAULTS, Plan, run


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_ten_kills_in_three_days_lose_nothing_and_leave_nothing_unexplained(tmp_path: Path, database: str) -> None:
    others = (("hackernews", 1), ("github", 1), ("website", 2), ("json_api", 4), ("discourse", 2), ("reddit", 2))
    plan = Plan(places=96, days=3.0, kills=10, fault_rate=0.2, seed=7, minutes=0.5, database=database, others=others)
    verdict = run(plan, tmp_path)
    # Not its gaps: on a busy machine there are a dozen or none, too few to judge their share of false ones. The large
    # trial does.
    faults = {name: verdict.figures[name] for name in FAULTS}
    assert not any(faults.values()), (verdict.figures, verdict.details)
    assert verdict.figures["kills"] >= 9  # the last may be a polite stop, if the time runs out
    assert verdict.figures["faults"] > 20


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_seventy_communities_that_are_due_at_once_never_exceed_the_budget_of_their_key(
    tmp_path: Path, database: str
) -> None:
    week = communities.Week(communities=70, days=0.01, fault_rate=0.05, seed=7, database=database)
    verdict = communities.run(week, tmp_path)
    assert verdict.is_good, (verdict.figures, verdict.details)
    # Nearly used up: it was the budget that kept them apart, not that there was little to ask for.
    assert 50 < verdict.figures["most_in_a_window"] <= 60
    assert verdict.figures["told_to_wait"] == 0
