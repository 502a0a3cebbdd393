"""The tasks page: requested collections, with their progress and the result of each target."""

from __future__ import annotations

from fastapi import APIRouter, Response

from catchment.web.api.tasks import TaskId, cancel_task
from catchment.web.dependencies import AppDep
from catchment.web.pages.render import redirect, render
from catchment.web.pages.session import TheForm, TheReader

router = APIRouter()

_TONES = {"pending": "quiet", "running": "warn", "completed": "good", "failed": "bad"}


@router.get("/tasks")
def tasks(app: AppDep, reader: TheReader) -> Response:
    return render("tasks.html", reader, rows=app.store.tasks.page(), tones=_TONES)


@router.get("/tasks/{task_id}")
def task(app: AppDep, reader: TheReader, task_id: TaskId) -> Response:
    return render("task.html", reader, task=app.store.tasks.get(task_id), tones=_TONES)


@router.post("/tasks/{task_id}/cancel")
def cancel(app: AppDep, task_id: TaskId, form: TheForm) -> Response:
    cancel_task(app, task_id)
    return redirect(f"/tasks/{task_id}?done=task_cancelled")
