"""A small endurance test: real processes, real faults, ten kills; `make endure` is the large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from endure.trial import FAULTS, Plan, run


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_ten_kills_in_three_days_lose_nothing_and_leave_nothing_unexplained(tmp_path: Path, database: str) -> None:
    others = (("hackernews", 1), ("github", 1), ("website", 2), ("json_api", 4), ("discourse", 2))
    plan = Plan(places=96, days=3.0, kills=10, fault_rate=0.2, seed=7, minutes=0.5, database=database, others=others)
    verdict = run(plan, tmp_path)
    # Not its gaps: on a busy machine there are a dozen or none, too few to judge their share of false ones. The large
    # trial does.
    faults = {name: verdict.figures[name] for name in FAULTS}
    assert not any(faults.values()), (verdict.figures, verdict.details)
    assert verdict.figures["kills"] >= 9  # the last may be a polite stop, if the time runs out
    assert verdict.figures["faults"] > 50
