"""Tasks: requested collections of sources, with the state of each. At most one unfinished task per kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.messages import Message, decode, encode
from catchment.model import AlertRequest, Lease, Outcome, Record, View
from catchment.policy.tasks import TargetResult, TargetVisit, TaskEnd, TaskState, state_of_waiting
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, reads, writes
from catchment.store.delivery import events
from catchment.store.items.change_feed import changed_items
from catchment.store.sources import alerts

RESOURCE = "task"
_COLUMNS = (
    "id, task_id, kind, state, item_limit, request_id, created_at, updated_at, started_at, finished_at, "
    "next_attempt_at, is_cancelled, error_code, error, from_change_number"
)


class TaskTarget(Record, frozen=True):
    """A source of a task, as the client named it and as its platform understands it."""

    name: str
    address: str


class TaskRow(View, frozen=True):
    """A task without its targets."""

    id: int
    task_id: str
    kind: str
    state: TaskState
    item_limit: int
    request_id: str | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    next_attempt_at: datetime | None
    """When it continues, if our own limits make it wait."""
    is_cancelled: bool
    error_code: str | None
    error: Message | None
    from_change_number: int


class TaskView(TaskRow, frozen=True):
    """A task, and the results of its targets so far."""

    targets: tuple[TargetResult, ...] = ()
    current: str | None = None
    """The target that is being collected."""

    @property
    def total(self) -> int:
        return len(self.targets)

    @property
    def done(self) -> int:
        return sum(1 for target in self.targets if target.outcome is not None)

    @property
    def new(self) -> int:
        return sum(target.new for target in self.targets)

    @property
    def updated(self) -> int:
        return sum(target.updated for target in self.targets)


class TaskRunning(Conflict):
    """A task of this kind is unfinished; `task_id` is its id."""

    def __init__(self, task_id: str, kind: str) -> None:
        what = "a task for {kind} is running: {task_id}"
        super().__init__(what, "wait until it has ended, or cancel it", kind=kind, task_id=task_id)
        self.task_id = task_id


class Tasks(StorePart):
    @writes
    def add(
        self,
        tx: Transaction,
        task_id: str,
        kind: str,
        targets: Sequence[TaskTarget],
        item_limit: int,
        request_id: str | None,
        now: datetime,
    ) -> str:
        """Add a task; returns its id, or that of the task with the same request id. Raises TaskRunning.

        That there is one unfinished task per kind is checked here, because only the database can promise it: of two at
        once, one fails at a unique index; its transaction is repeated, and finds the other's task.
        """
        if request_id is not None and (row := tx.one("SELECT task_id FROM tasks WHERE request_id = ?", request_id)):
            return str(row[0])
        if row := tx.one("SELECT task_id, request_id FROM tasks WHERE kind = ? AND finished_at IS NULL", kind):
            if request_id is not None and row[1] == request_id:
                # Committed between the two reads.
                return str(row[0])
            raise TaskRunning(row[0], kind)
        sql = """
            INSERT INTO tasks (task_id, kind, state, item_limit, request_id, created_at, updated_at, is_cancelled,
                               from_change_number)
            SELECT ?, ?, 'pending', ?, ?, ?, ?, ?, change_number FROM ledger WHERE id = 1 RETURNING id
        """
        at = micros(now)
        number = tx.number(sql, task_id, kind, item_limit, request_id, at, at, False)
        rows = [(number, position, target.name, target.address) for position, target in enumerate(targets)]
        tx.insert("task_targets", ("task_id", "position", "name", "address"), rows)
        leases.announce(tx, RESOURCE, [number], now)
        return task_id

    @reads
    def get(self, tx: Transaction, task_id: str) -> TaskView:
        row = tx.record(TaskView, f"SELECT {_COLUMNS} FROM tasks WHERE task_id = ?", task_id)
        if row is None:
            raise NotFound("there is no task {task_id}", "tasks are kept for 24 hours", task_id=task_id)
        (task,) = _with_targets(tx, [row])
        return task

    @reads
    def page(self, tx: Transaction, limit: int = 50) -> list[TaskView]:
        """Returns the latest tasks, newest first."""
        sql = f"SELECT {_COLUMNS} FROM tasks ORDER BY id DESC LIMIT ?"
        return _with_targets(tx, tx.records(TaskView, sql, limit))

    def waiting(self, now: datetime) -> list[int]:
        """Returns the unfinished tasks that can continue, oldest first."""
        sql = """
            SELECT id FROM tasks WHERE finished_at IS NULL AND (next_attempt_at IS NULL OR next_attempt_at <= ?)
             ORDER BY id
        """
        return self._column(sql, micros(now))

    def counts(self) -> dict[str, int]:
        """Returns how many tasks there are in each state; they are kept for 24 hours."""
        counts: dict[str, int] = dict(self._all("SELECT state, count(*) FROM tasks GROUP BY state"))
        return {str(state): counts.get(str(state), 0) for state in TaskState}

    @writes
    def claim(self, tx: Transaction, number: int, owner_id: int, now: datetime) -> tuple[Lease, TaskView] | None:
        """Claim the task and mark it as running; returns None if it is taken or over."""
        lease = leases.claim_one(tx, RESOURCE, number, owner_id, now)
        if lease is None:
            return None
        sql = """
            UPDATE tasks SET state = 'running', updated_at = ?, started_at = coalesce(started_at, ?),
                   next_attempt_at = NULL
             WHERE id = ? AND finished_at IS NULL
        """
        if not tx.run(sql, micros(now), micros(now), number):
            leases.release(tx, lease)
            return None
        return lease, _task(tx, number)

    @reads
    def current(self, tx: Transaction, number: int) -> TaskView:
        return _task(tx, number)

    def is_cancelled(self, number: int) -> bool:
        return bool(self._one("SELECT 1 FROM tasks WHERE id = ? AND is_cancelled", number))

    @writes
    def set_sources(self, tx: Transaction, lease: Lease, sources: Mapping[str, int]) -> None:
        """Record which sources the targets are, by their addresses."""
        leases.check(tx, lease)
        tx.many(
            "UPDATE task_targets SET source_id = ? WHERE task_id = ? AND address = ?",
            [(source_id, lease.resource_id, address) for address, source_id in sources.items()],
        )

    @writes
    def touch(self, tx: Transaction, lease: Lease, now: datetime) -> None:
        """Record progress."""
        tx.run("UPDATE tasks SET updated_at = ? WHERE id = ?", micros(now), lease.resource_id)

    @writes
    def put_back(self, tx: Transaction, lease: Lease, now: datetime, next_attempt_at: datetime | None) -> None:
        """Leave the rest to a later run: a stop was requested, or (with a time) our own limits make it wait."""
        leases.check(tx, lease)
        at = None if next_attempt_at is None else micros(next_attempt_at)
        sql = "UPDATE tasks SET state = ?, updated_at = ?, next_attempt_at = ? WHERE id = ?"
        tx.run(sql, str(state_of_waiting(next_attempt_at)), micros(now), at, lease.resource_id)
        leases.release(tx, lease)

    @writes
    def finish(self, tx: Transaction, lease: Lease, end: TaskEnd, now: datetime, *, tells_ready: bool) -> None:
        """Record how the task ended, and tell those who listen."""
        leases.check(tx, lease)
        _finish(tx, _task(tx, lease.resource_id), end, now, tells_ready=tells_ready)
        leases.release(tx, lease)

    def cancel(self, task_id: str, now: datetime) -> TaskView:
        """Cancel an unfinished task: sources that have begun are finished, no other begins. Raises Conflict if it is
        over."""
        if self.get(task_id).finished_at is not None:
            raise Conflict("task {task_id} has already ended", task_id=task_id)
        sql = """
            UPDATE tasks SET is_cancelled = ?, updated_at = ?, next_attempt_at = NULL
             WHERE task_id = ? AND finished_at IS NULL
        """
        self._run(sql, True, micros(now), task_id)
        return self.get(task_id)

    @writes
    def clear(self, tx: Transaction, before: datetime) -> int:
        """Delete tasks that ended before that time; returns how many."""
        sql = "SELECT id FROM tasks WHERE created_at < ? AND finished_at < ?"
        old = [row[0] for row in tx.all(sql, micros(before), micros(before))]
        for number in old:
            tx.run("DELETE FROM task_targets WHERE task_id = ?", number)
            tx.run("DELETE FROM tasks WHERE id = ?", number)
            tx.run("DELETE FROM leases WHERE resource = ? AND resource_id = ?", RESOURCE, number)
        return len(old)


def _task(tx: Transaction, number: int) -> TaskView:
    (task,) = _with_targets(tx, tx.records(TaskView, f"SELECT {_COLUMNS} FROM tasks WHERE id = ?", number))
    return task


def _with_targets(tx: Transaction, tasks: Sequence[TaskView]) -> list[TaskView]:
    """Returns the tasks with the result of each target: the sum of its visits in the runs of the task."""
    numbers = [task.id for task in tasks]
    sql = """
        SELECT t.task_id, t.source_id, t.name, t.address, coalesce(s.state = 'removed', FALSE)
          FROM task_targets t LEFT JOIN sources s ON s.id = t.source_id
         WHERE t.task_id IN {values} ORDER BY t.task_id, t.position
    """
    visits = _visits(tx, numbers)
    targets: dict[int, list[TargetResult]] = {number: [] for number in numbers}
    for number, source_id, name, address, is_removed in tx.select_in(sql, numbers):
        result = TargetResult(name, address, source_id).after_all(visits.get((number, source_id), ()))
        targets[number].append(result.without_source() if is_removed else result)
    active = _active(tx, [task.id for task in tasks if task.finished_at is None])
    shown = []
    for task in tasks:
        results = targets[task.id]
        current = next(
            (target.name for target in results if target.outcome is None and (task.id, target.source_id) in active),
            None,
        )
        shown.append(task.replace(targets=tuple(results), current=current))
    return shown


def _visits(tx: Transaction, numbers: Sequence[int]) -> dict[tuple[int, int | None], list[TargetVisit]]:
    sql = """
        SELECT r.task_id, v.source_id, v.outcome, v.new_count, v.updated_count, v.duplicate_count, v.invalid_count,
               v.request_count, v.error_code, v.error
          FROM runs r JOIN run_sources v ON v.run_id = r.id
         WHERE r.task_id IS NOT NULL AND r.task_id IN {values} ORDER BY r.task_id, r.id
    """
    visits: dict[tuple[int, int | None], list[TargetVisit]] = {}
    for number, source_id, outcome, *counts, code, error in tx.select_in(sql, numbers):
        new, updated, duplicate, invalid, requests = counts
        why = decode(error) if error is not None else None
        ending = Outcome(outcome) if outcome else None
        visit = TargetVisit(ending, new, updated, duplicate, invalid, requests, code, why)
        visits.setdefault((number, source_id), []).append(visit)
    return visits


def _active(tx: Transaction, numbers: Sequence[int]) -> set[tuple[int, int]]:
    """Returns which sources of these tasks are being collected."""
    sql = """
        SELECT t.task_id, t.source_id FROM task_targets t JOIN leases l ON l.resource_id = t.source_id
         WHERE l.resource = 'source' AND l.owner_id IS NOT NULL AND t.task_id IN {values}
    """
    return {(number, source_id) for number, source_id in tx.select_in(sql, numbers)}


def _finish(tx: Transaction, task: TaskView, end: TaskEnd, now: datetime, *, tells_ready: bool) -> None:
    at = micros(now)
    sql = """
        UPDATE tasks SET state = ?, error_code = ?, error = ?, updated_at = ?, finished_at = ?, next_attempt_at = NULL
         WHERE id = ?
    """
    error = None if end.error is None else encode(end.error)
    tx.run(sql, str(end.state), end.error_code, error, at, at, task.id)
    subject = f"task {task.kind} failing"
    if end.alert is not None:
        alerts.raise_alert(tx, AlertRequest(subject, end.alert), at)
    elif end.is_alert_over:
        alerts.close(tx, subject, at)
    counts = {"new": task.new, "updated": task.updated}
    failed = sum(1 for target in task.targets if target.is_failed)
    about = {"task_id": task.task_id, "kind": task.kind, "state": str(end.state), "total": len(task.targets)}
    events.tell(tx, "task.finished", {**about, "done": task.done, "failed": failed, **counts, "error": end.error}, at)
    if tells_ready and any(counts.values()):
        source_ids = [target.source_id for target in task.targets if target.source_id is not None]
        which = changed_items(tx, source_ids, task.from_change_number)
        events.tell(tx, "items.ready", {"task_id": task.task_id, **counts, **which}, at)
