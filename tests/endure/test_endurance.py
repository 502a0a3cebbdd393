"""A small endurance test: real processes, real faults, ten kills; `make endure` is the large one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from endure import communities
from endure.trial import FAULTS, Plan, run
from tests.databases import POSTGRESQL, postgres_copy

pytestmark = pytest.mark.process


OTHERS = (("hackernews", 1), ("github", 1), ("website", 2), ("json_api", 4), ("discourse", 2), ("reddit", 2))
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
        assert not any(verdict.figures[name] for name in FAULTS), (verdict.figures, verdict.details)
        # The last kill may be a polite stop, if the time runs out.
        if verdict.figures["kills"] >= 9 and verdict.figures["faults"] > 20:
            return
    pytest.fail(f"even in {TRIALS[-1]:g} minutes too little happened: {verdict.figures}")


def test_seventy_communities_that_are_due_at_once_never_exceed_the_budget_of_their_key(
    tmp_path: Path,
) -> None:
    week = communities.Week(communities=70, days=0.004, fault_rate=0.05, seed=7, database="sqlite")
    verdict = communities.run(week, tmp_path)
    assert verdict.is_good, (verdict.figures, verdict.details)
    # Nearly used up: it was the budget that kept them apart, not that there was little to ask for.
    assert 50 < verdict.figures["most_in_a_window"] <= 60
    assert verdict.figures["told_to_wait"] == 0
