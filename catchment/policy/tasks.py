"""Tasks: requested collections of sources. What became of each source, and when a task is over and how. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce

from catchment.errors import NotFound
from catchment.messages import Message, message
from catchment.model import Outcome, Record

UNSETTLED = frozenset({"CUT_OFF", "STOPPED", "HELD", "NOT_VISITED", "LEASE_LOST", "STORE_ERROR"})
"""Error codes of visits that ended for a reason of ours: they are repeated."""
NOT_AWAITED = frozenset({"SPENDING_CAP"})
"""Error codes of deferred visits that are not repeated: a cap lasts until the end of the day or month, or until it is
raised. The schedule waits for that, a task does not."""
ENDS_TASK = frozenset({"LOGIN_NEEDED"})
"""With a refused credential, no other visit can succeed: each would be refused as well."""
NOT_ALARMING = frozenset({"MISSING", "GONE", "INVALID_INPUT"})
"""The target itself is wrong: nothing that an operator could repair."""
CANCELLED, TIMED_OUT = "CANCELLED", "TIMEOUT_ERROR"


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class TargetVisit(Record, frozen=True):
    """One visit to a target in one run of the task."""

    outcome: Outcome | None
    """None: in progress, or the process was killed."""
    new: int = 0
    updated: int = 0
    duplicate: int = 0
    invalid: int = 0
    requests: int = 0
    error_code: str | None = None
    error: Message | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it is the target's final result: not cut short, and not deferred."""
        if self.outcome == Outcome.DEFERRED:
            return self.error_code in NOT_AWAITED
        return self.outcome is not None and self.error_code not in UNSETTLED


class TargetResult(Record, frozen=True):
    """What became of one target over all runs of the task."""

    name: str
    address: str
    source_id: int | None = None
    outcome: Outcome | None = None
    """None: not settled yet."""
    new: int = 0
    updated: int = 0
    duplicate: int = 0
    invalid: int = 0
    requests: int = 0
    error_code: str | None = None
    error: Message | None = None
    """Not settled yet: what it waits for."""

    @property
    def is_failed(self) -> bool:
        return self.outcome in (Outcome.FAILED, Outcome.SKIPPED)

    def after(self, visit: TargetVisit) -> TargetResult:
        """Returns the result with one more visit: what earlier ones stored before they were cut short counts, too."""
        failure = {"error_code": visit.error_code, "error": visit.error}
        if visit.is_settled:
            failure |= {"outcome": Outcome.FAILED if visit.outcome == Outcome.DEFERRED else visit.outcome}
        return self.replace(
            new=self.new + visit.new,
            updated=self.updated + visit.updated,
            duplicate=self.duplicate + visit.duplicate,
            invalid=self.invalid + visit.invalid,
            requests=self.requests + visit.requests,
            **(failure if visit.is_settled or visit.outcome == Outcome.DEFERRED else {}),
        )

    def after_all(self, visits: Iterable[TargetVisit]) -> TargetResult:
        return reduce(TargetResult.after, visits, self)

    def without_source(self) -> TargetResult:
        """Returns the result now that the target's source is removed: it is not collected any more."""
        if self.outcome is not None:
            return self
        return self.replace(outcome=Outcome.FAILED, error_code=NotFound.code, error=message("visit.removed"))


class TaskEnd(Record, frozen=True):
    """How a task ended."""

    state: TaskState
    error_code: str | None = None
    error: Message | None = None
    alert: Message | None = None
    """What an operator should know; None: nothing."""

    @property
    def is_alert_over(self) -> bool:
        """Whether an alert of an earlier task of the kind is over: only a task that succeeds shows that."""
        return self.alert is None and self.state == TaskState.COMPLETED


def ended(
    kind: str, targets: Sequence[TargetResult], *, is_cancelled: bool, is_late: bool, patience: timedelta
) -> TaskEnd | None:
    """Returns how the task has ended; None: it continues."""
    if is_cancelled:
        return TaskEnd(TaskState.FAILED, CANCELLED, message("task.cancelled"))
    if refused := next((target for target in targets if target.error_code in ENDS_TASK), None):
        why = refused.error or Message(refused.error_code or "")
        return _failed(kind, refused.error_code, message("task.refused", name=refused.name, why=why))
    if all(target.outcome is not None for target in targets):
        return _settled(kind, targets)
    if is_late:
        done = sum(1 for target in targets if target.outcome is not None)
        minutes = int(patience.total_seconds() // 60)
        what = message("task.timed_out", minutes=minutes, done=done, total=len(targets))
        return _failed(kind, TIMED_OUT, what)
    return None


def _settled(kind: str, targets: Sequence[TargetResult]) -> TaskEnd:
    failed = [target for target in targets if target.is_failed]
    alarming = [target for target in failed if target.error_code not in NOT_ALARMING]
    alert = None
    if alarming:
        why = alarming[0].error or Message(alarming[0].error_code or "")
        alert = message("task.partly_failed", kind=kind, failed=len(alarming), total=len(targets), why=why)
    if len(failed) < len(targets):
        return TaskEnd(TaskState.COMPLETED, alert=alert)
    first = failed[0]
    why = first.error or Message(first.error_code or "")
    return TaskEnd(TaskState.FAILED, first.error_code, message("task.all_failed", why=why), alert)


def _failed(kind: str, code: str | None, why: Message) -> TaskEnd:
    return TaskEnd(TaskState.FAILED, code, why, message("task.failed", kind=kind, why=why))


def next_attempt(started_at: datetime | None, deferred_until: datetime, patience: timedelta) -> datetime:
    """Returns when a task continues that waits until then: at the end of its time at the latest, to say so."""
    return deferred_until if started_at is None else min(deferred_until, started_at + patience)


def state_of_waiting(next_attempt_at: datetime | None) -> TaskState:
    """Returns the state of a task that continues later: one that waits for our own limits is still running, one that
    was stopped waits for a process."""
    return TaskState.PENDING if next_attempt_at is None else TaskState.RUNNING


def is_late(started_at: datetime | None, now: datetime, patience: timedelta) -> bool:
    """Whether a task has run out of its time; the time that it waited for a process does not count."""
    return started_at is not None and now >= started_at + patience
