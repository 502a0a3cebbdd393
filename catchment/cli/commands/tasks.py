"""`tasks`: collections that were requested through the API."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson
from catchment.collect.tasks import JOB
from catchment.store.sources.tasks import TaskView

TaskId = Annotated[str, typer.Argument(metavar="TASK_ID", help="The id of the task.")]


def list_tasks(as_json: AsJson = False) -> None:
    """Tasks are kept for 24 hours."""
    with context.opened_store(context.settings()) as (store, now):
        tasks = store.tasks.page()
    output.listing(
        as_json,
        tasks,
        ("Task", "Kind", "State", "#Done", "#Total", "#New", "Requested"),
        lambda task: (
            task.task_id,
            task.kind,
            _state(task),
            task.done,
            task.total,
            task.new,
            output.when(task.created_at, now),
        ),
        empty=("no tasks in the last 24 hours", "`POST /api/admin/scrape` requests one"),
    )


def show(task_id: TaskId, as_json: AsJson = False) -> None:
    """Shows the results so far, target by target."""
    with context.opened_store(context.settings()) as (store, now):
        task = store.tasks.get(task_id)
    if as_json:
        output.document(task)
        return
    output.facts(
        (
            ("Task", task.task_id),
            ("Kind", task.kind),
            ("State", _state(task)),
            ("Progress", f"{task.done} of {task.total}" + (f", now {task.current}" if task.current else "")),
            ("Requested", output.at(task.created_at, now)),
            ("Error", task.error or "–"),
        )
    )
    output.say()
    output.table(
        ("Target", "#Source", "Outcome", "#New", "#Updated", "#Duplicate", "#Invalid", "Error"),
        (
            (
                target.name,
                target.source_id,
                str(target.outcome or "–"),
                target.new,
                target.updated,
                target.duplicate,
                target.invalid,
                target.error or "",
            )
            for target in task.targets
        ),
    )


def cancel(task_id: TaskId, as_json: AsJson = False) -> None:
    """Targets that have been started are completed; no further target is started."""
    with context.opened_store(context.settings()) as (store, now):
        task = store.tasks.cancel(task_id, now)
        store.jobs.wake(JOB, now)
    output.result(as_json, task, f"Task {task_id} ends when the targets in progress are done.")


def _state(task: TaskView) -> str:
    if task.is_cancelled:
        return "cancelled"
    return f"{task.state} (waiting)" if task.next_attempt_at is not None else str(task.state)
