"""What became of a task's target over several runs, and what the end of a task means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from catchment.messages import message
from catchment.model import Outcome
from catchment.policy.tasks import TargetResult, TargetVisit, TaskEnd, TaskState, state_of_waiting

TARGET = TargetResult("r/a", "a", 1)


def test_what_was_stored_before_a_visit_was_cut_short_counts_too() -> None:
    visits = [TargetVisit(Outcome.FAILED, new=2, error_code="CUT_OFF"), TargetVisit(Outcome.SUCCEEDED, new=3)]
    result = TARGET.after_all(visits)
    assert (result.outcome, result.new, result.error_code) == (Outcome.SUCCEEDED, 5, None)


def test_a_target_without_visits_is_not_settled() -> None:
    assert TARGET.after_all([]) == TARGET


def test_a_task_that_waits_for_our_limits_runs_and_one_that_was_stopped_is_pending() -> None:
    assert state_of_waiting(datetime(2026, 1, 1, tzinfo=UTC)) == TaskState.RUNNING
    assert state_of_waiting(None) == TaskState.PENDING


@pytest.mark.parametrize(
    ("end", "is_over"),
    [
        (TaskEnd(TaskState.COMPLETED), True),
        (TaskEnd(TaskState.COMPLETED, alert=message("task.cancelled")), False),
        (TaskEnd(TaskState.FAILED), False),
    ],
)
def test_an_alert_is_over_with_a_task_that_succeeds_and_raises_none(end: TaskEnd, is_over: bool) -> None:
    assert end.is_alert_over == is_over
