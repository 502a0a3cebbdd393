"""Tasks: collections of sources that a program requested, with a limit. They survive the process that runs them.

The result of each source is recorded when its visit ends, in the same transaction: a process that continues a task
knows exactly which sources remain.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import Event

from catchment import logs
from catchment.clock import Clock
from catchment.collect.scheduler import Scheduler
from catchment.credentials.secret import strip_url
from catchment.errors import InvalidInput, StoreError
from catchment.messages import encode, message
from catchment.model import Lease, VisitResult
from catchment.platforms import Platforms
from catchment.policy import tasks as policy
from catchment.store import Presence, Store
from catchment.store.sources.sources import SourceRequest
from catchment.store.sources.tasks import TaskTarget, TaskView

JOB = "run-tasks"
MOST_TARGETS = 1_000
LEAST_LIMIT, MOST_LIMIT, DEFAULT_LIMIT = 1, 1_000, 100
_RETRY = timedelta(seconds=5)
"""For a source that another process is collecting."""
_LONGEST_NAME = 100

log = logs.logger(__name__)


def request_task(
    store: Store,
    platforms: Platforms,
    kind: str,
    names: Sequence[str],
    item_limit: int,
    now: datetime,
    *,
    request_id: str | None = None,
    field: str = "targets",
) -> TaskView:
    """Request the collection of these sources, each with at most this many items at first. The same `request_id` is the
    same task. Raises InvalidInput, which names every target that cannot be used, and TaskRunning."""
    if not LEAST_LIMIT <= item_limit <= MOST_LIMIT:
        raise InvalidInput("the limit is {least} to {most}", field="limit", least=LEAST_LIMIT, most=MOST_LIMIT)
    targets = checked_targets(platforms, kind, names, field)
    task_id = store.tasks.add(uuid.uuid4().hex, kind, targets, item_limit, request_id, now)
    store.jobs.wake(JOB, now)
    return store.tasks.get(task_id)


def checked_targets(platforms: Platforms, kind: str, names: Sequence[str], field: str) -> list[TaskTarget]:
    """Returns the targets as their platform understands them, each once."""
    platform = platforms.needed(kind)
    targets: dict[str, TaskTarget] = {}
    bad: dict[str, None] = {}
    for name in filter(None, (name.strip() for name in names)):
        try:
            if len(name) > _LONGEST_NAME and "/" not in name:
                raise InvalidInput("the name is too long")
            address = platform.understand(strip_url(name)[0], kind).address
            targets.setdefault(address, TaskTarget(name, address))
        except InvalidInput as error:
            bad[f"{logs.redact(name)[:_LONGEST_NAME]!r} ({error.what})"] = None
    if bad:
        raise InvalidInput("cannot be collected: {bad}", field=field, bad="; ".join(list(bad)[:MOST_TARGETS]))
    if not targets:
        raise InvalidInput("there is nothing to collect", "specify at least one", field=field)
    if len(targets) > MOST_TARGETS:
        raise InvalidInput("a task has at most {most} targets", "request several tasks", field=field, most=MOST_TARGETS)
    return list(targets.values())


class TaskRunner:
    """Runs the unfinished tasks of a deployment, one after the other."""

    def __init__(
        self,
        store: Store,
        presence: Presence,
        clock: Clock,
        stop: Event,
        scheduler: Callable[[int], Scheduler],
        source_request: Callable[[str, str], SourceRequest],
        *,
        patience: timedelta,
        tells_ready: bool = False,
    ) -> None:
        """`scheduler` makes one for a limit of items; `source_request` turns a kind and an address into a source."""
        self._store, self._presence, self._clock, self._stop = store, presence, clock, stop
        self._scheduler, self._source_request = scheduler, source_request
        self._patience, self._tells_ready = patience, tells_ready

    def run(self) -> None:
        """Run every task that can continue now."""
        for number in self._store.tasks.waiting(self._clock.now()):
            if self._stop.is_set():
                return
            claimed = self._store.tasks.claim(number, self._presence.owner_id, self._clock.now())
            if claimed is not None:
                lease, task = claimed
                # Log lines name the request that the task is of, like those of the request itself.
                with logs.bound(task=task.task_id, **({"request_id": task.request_id} if task.request_id else {})):
                    self._run(lease, task)

    def _run(self, lease: Lease, task: TaskView) -> None:
        try:
            while not self._finished(lease, task := self._store.tasks.current(task.id)):
                deferred_until = self._collect(lease, task)
                if self._stop.is_set():
                    self._store.tasks.put_back(lease, self._clock.now(), None)
                    return
                task = self._store.tasks.current(task.id)
                if self._end(task) is None:
                    # Every target had its turn: the rest waits for our own limits, or for another process.
                    now = self._clock.now()
                    at = policy.next_attempt(task.started_at, deferred_until or now + _RETRY, self._patience)
                    self._store.tasks.put_back(lease, now, at)
                    return
        except StoreError:
            # Another process continues it once the database is back.
            self._presence.release_later(lease)
            raise

    def _finished(self, lease: Lease, task: TaskView) -> bool:
        end = self._end(task)
        if end is None:
            return False
        self._store.tasks.finish(lease, end, self._clock.now(), tells_ready=self._tells_ready)
        log.info("task ended", state=str(end.state), done=task.done, total=len(task.targets))
        return True

    def _end(self, task: TaskView) -> policy.TaskEnd | None:
        return policy.ended(
            task.kind,
            task.targets,
            is_cancelled=task.is_cancelled,
            is_late=policy.is_late(task.started_at, self._clock.now(), self._patience),
            patience=self._patience,
        )

    def _collect(self, lease: Lease, task: TaskView) -> datetime | None:
        """Visits the targets that are left; returns when the first of those that were deferred can be visited."""
        addresses = [target.address for target in task.targets if target.source_id is None]
        if addresses:
            self._add_sources(lease, task, addresses)
            task = self._store.tasks.current(task.id)
        left = [target.source_id for target in task.targets if target.outcome is None and target.source_id is not None]
        is_refused = False

        def seen(result: VisitResult) -> None:
            nonlocal is_refused
            is_refused = is_refused or result.error_code in policy.ENDS_TASK
            self._store.tasks.touch(lease, self._clock.now())

        def is_over() -> bool:
            return is_refused or self._is_cancelled_or_late(task)

        results = self._scheduler(task.item_limit).these(
            left, JOB, "request", seen, is_over=is_over, task_id=task.id, request_id=task.request_id
        )
        return min((result.deferred_until for result in results if result.deferred_until), default=None)

    def _is_cancelled_or_late(self, task: TaskView) -> bool:
        is_late = policy.is_late(task.started_at, self._clock.now(), self._patience)
        return is_late or self._store.tasks.is_cancelled(task.id)

    def _add_sources(self, lease: Lease, task: TaskView, addresses: Sequence[str]) -> None:
        """Find the sources of the targets; those that are not there yet are added, paused."""
        requests = [self._source_request(task.kind, address) for address in addresses]
        why = encode(message("task.source"))
        ids = self._store.sources.follow_paused(requests, why, self._clock.now())
        self._store.tasks.set_sources(lease, dict(zip(addresses, ids, strict=True)))
