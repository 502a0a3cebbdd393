"""/api/admin/scrape and /api/tasks: requested collections, their progress and their results."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import Field

from catchment.collect.tasks import DEFAULT_LIMIT, LEAST_LIMIT, MOST_LIMIT, checked_targets, request_task
from catchment.errors import Conflict, InvalidInput, TimedOut
from catchment.model import as_json
from catchment.platforms import Platforms, no_platform
from catchment.policy.tasks import TIMED_OUT, TargetResult
from catchment.store.sources.tasks import TaskView
from catchment.web.api.errors import InvalidRequest
from catchment.web.api.params import ResourcePage, limit
from catchment.web.api.schemas.common import Moment, PageSchema, RequestBody, Resource, example, failure, shows
from catchment.web.dependencies import AppDep

KIND = "twitter_feed"
"""The kind of source that `usernames` refers to."""
_MOST_CHARACTERS = 30_000
_NAMES = r"^\s*@?[A-Za-z0-9_]{1,15}\s*(,\s*@?[A-Za-z0-9_]{1,15}\s*)*$"
State = Literal["pending", "running", "completed", "failed"]
TaskId = Annotated[str, Path(min_length=1, max_length=64, pattern="^[A-Za-z0-9._:-]+$", description="The task's id.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=64,
        pattern="^[A-Za-z0-9._:-]+$",
        # Described with the route, like X-Request-ID: clients that are generated need not pass it.
        include_in_schema=False,
    ),
]


class ScrapeRequest(RequestBody):
    """The users to collect, and how many posts to request first."""

    model_config = example(usernames="nasa,esa", limit=100)
    usernames: Annotated[
        str, Field(min_length=1, max_length=_MOST_CHARACTERS, json_schema_extra={"pattern": _NAMES})
    ] = Field(description="User names, separated by commas.")
    limit: Annotated[int, Field(ge=LEAST_LIMIT, le=MOST_LIMIT, strict=True)] = DEFAULT_LIMIT


class ScrapeAccepted(Resource):
    task_id: str
    status: State


class TaskProgress(Resource):
    done: int
    total: int
    current: str | None = Field(description="The user that is being collected.")


class TaskStatusResponse(Resource):
    """The progress of a task and, at its end, the result of each user."""

    task_id: str
    status: State
    result: dict[str, Any] | None = Field(description="Null: not finished.")
    progress: TaskProgress
    created_at: Moment
    updated_at: Moment


@shows(TargetResult, outcome="Null: not decided yet.")
class TaskTargetSchema(Resource):
    """The result of one target."""


@shows(TaskView, current="The target that is being collected.", next_attempt_at="When it continues, if it has to wait.")
class TaskSchema(Resource):
    """A requested collection of sources."""


class ScrapeRoute(APIRoute):
    """Checks the user names even if another field is wrong, so that one answer names everything that is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_and_check(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                usernames = error.body.get("usernames") if isinstance(error.body, dict) else None
                wrong = _wrong_names(request.state.context.app.platforms, usernames)
                raise (InvalidRequest(error, wrong) if wrong else error) from None

        return handle_and_check


def _wrong_names(platforms: Platforms, usernames: Any) -> InvalidInput | None:
    if not isinstance(usernames, str) or len(usernames) > _MOST_CHARACTERS or platforms.of_kind(KIND) is None:
        return None
    try:
        checked_targets(platforms, KIND, usernames.split(","), "usernames")
    except InvalidInput as error:
        return error
    return None


router = APIRouter(prefix="/api", tags=["tasks"])
NO_TASK = failure(404, "There is no such task. Tasks are kept for 24 hours.")
RUNNING = failure(409, "A task of this type is already running; `task_id` has its id.")


def request_scrape(
    app: AppDep, request: Request, body: ScrapeRequest, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """Collect the posts of these users now. A user without a source gets a paused one.

    Requests with the same `Idempotency-Key` (1 to 64 letters, digits and `._:-`) refer to the same task; without one,
    requests with the same `X-Request-ID`.
    """
    if app.platforms.of_kind(KIND) is None:
        raise Conflict(no_platform(KIND), "install a package that provides it")
    given_id = request.state.request_id if "x-request-id" in request.headers else None
    task = request_task(
        app.store,
        app.platforms,
        KIND,
        body.usernames.split(","),
        body.limit,
        app.clock.now(),
        request_id=idempotency_key or given_id,
        field="usernames",
    )
    return {"task_id": task.task_id, "status": str(task.state)}


router.add_api_route(
    "/admin/scrape",
    request_scrape,
    methods=["POST"],
    status_code=202,
    response_model=ScrapeAccepted,
    responses=RUNNING,
    route_class_override=ScrapeRoute,
)


@router.get(
    "/admin/scrape/{task_id}",
    response_model=TaskStatusResponse,
    responses=NO_TASK | failure(504, "The task exceeded its time limit; /api/tasks has the results so far."),
)
def show_scrape(app: AppDep, task_id: TaskId) -> dict[str, Any]:
    """The progress of the task and, at its end, the result of each user."""
    task = app.store.tasks.get(task_id)
    if task.error_code == TIMED_OUT and task.error is not None:
        raise TimedOut(task.error, "request the rest again, or raise CATCHMENT_TASK_MINUTES")
    return task_status(task)


@router.post("/admin/scrape/{task_id}/cancel", response_model=TaskStatusResponse, responses=NO_TASK | RUNNING)
def cancel_scrape(app: AppDep, task_id: TaskId) -> dict[str, Any]:
    """Cancel the task. Users that have been started are completed."""
    return task_status(_cancelled(app, task_id))


@router.get("/tasks", response_model=PageSchema[TaskSchema])
def list_tasks(app: AppDep, most: Annotated[int, limit(200)] = 50) -> ResourcePage[TaskView]:
    """The tasks of the last 24 hours, newest first."""
    return ResourcePage(app.store.tasks.page(most))


@router.get("/tasks/{task_id}", response_model=TaskSchema, responses=NO_TASK)
def show_task(app: AppDep, task_id: TaskId) -> TaskView:
    """A task and the result of each target."""
    return app.store.tasks.get(task_id)


@router.post("/tasks/{task_id}/cancel", response_model=TaskSchema, responses=NO_TASK | RUNNING)
def cancel_task(app: AppDep, task_id: TaskId) -> TaskView:
    """Cancel the task. Targets that have been started are completed."""
    return _cancelled(app, task_id)


def _cancelled(app: AppDep, task_id: str) -> TaskView:
    task = app.store.tasks.cancel(task_id, app.clock.now())
    app.store.jobs.wake("run-tasks", app.clock.now())
    return task


def task_status(task: TaskView) -> dict[str, Any]:
    """The task in the form of `TaskStatusResponse`."""
    shown = as_json(task)
    return {
        "task_id": task.task_id,
        "status": str(task.state),
        "result": _result(task) if task.finished_at is not None else None,
        "progress": {"done": task.done, "total": task.total, "current": task.current},
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
    }


def _result(task: TaskView) -> dict[str, Any]:
    sums = ("new", "updated", "duplicate", "invalid", "requests")
    failed = sum(1 for target in task.targets if target.is_failed)
    return {
        "total": task.total,
        "succeeded": task.done - failed,
        "failed": failed,
        **{name: sum(getattr(target, name) for target in task.targets) for name in sums},
        "error": _error(task.error_code, task.error),
        "users": [
            {
                "username": target.name,
                "source_id": target.source_id,
                "outcome": str(target.outcome) if target.outcome else None,
                **{name: getattr(target, name) for name in sums},
                "error": _error(target.error_code, target.error),
            }
            for target in task.targets
        ],
    }


def _error(code: str | None, text: str | None) -> dict[str, str] | None:
    return {"code": code, "message": str(text or code)} if code else None
