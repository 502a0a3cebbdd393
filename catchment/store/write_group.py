"""Group commit: pages that threads write at the same time go into one transaction.

A commit costs as much as a page of fifty items, and pages that were just written share index pages with the next ones.
So the first thread that has a page to write waits for the others, for a quarter of a second at most, and writes for all
of them. It waits for members only: threads that have received an answer and are about to write its page. Every page is
still written whole, with the progress that it proves; if a group fails, each of its pages is written alone, so that
only the faulty one fails. A database that is unavailable fails for all of them at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

MOST = 10
SECONDS = 0.25


class _Job(Generic[Task, Result]):
    def __init__(self, task: Task) -> None:
        self.task = task
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.is_done = False


class WriteGroup(Generic[Task, Result]):
    """Thread-safe."""

    def __init__(
        self,
        write: Callable[[Sequence[Task]], Sequence[Result]],
        is_everyones: Callable[[Exception], bool] = lambda _: False,
        seconds: float = SECONDS,
    ) -> None:
        """`write` writes all tasks in one transaction, or none of them. `is_everyones`: whether an error would meet
        each task alone, too. The first task waits `seconds` for the others."""
        self._write, self._is_everyones, self._seconds = write, is_everyones, seconds
        self._condition = Condition()
        self._jobs: list[_Job[Task, Result]] = []
        self._has_leader = False
        self._members = 0

    @contextmanager
    def member(self) -> Iterator[None]:
        """Within this block, others wait for a task of this thread."""
        with self._condition:
            self._members += 1
        try:
            yield
        finally:
            with self._condition:
                self._members -= 1
                self._condition.notify_all()

    def write(self, task: Task) -> Result:
        """Writes the task with those of other threads. Returns its result, or raises its own error."""
        job: _Job[Task, Result] = _Job(task)
        with self._condition:
            self._jobs.append(job)
            self._condition.notify_all()
            while not job.is_done:
                if self._has_leader:
                    self._condition.wait()
                else:
                    self._lead()
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    def _lead(self) -> None:
        """Gathers a group and writes it; holds the condition before and after, not while writing."""
        self._has_leader = True
        group: list[_Job[Task, Result]] = []
        try:
            until = time.monotonic() + self._seconds
            while len(self._jobs) < min(MOST, self._members) and (left := until - time.monotonic()) > 0:
                self._condition.wait(left)
            group = self._jobs[:MOST]
            self._condition.release()
            try:
                self._run(group)
            finally:
                self._condition.acquire()
        finally:
            del self._jobs[: len(group)]
            for job in group:
                job.is_done = True
            self._has_leader = False
            self._condition.notify_all()

    def _run(self, group: Sequence[_Job[Task, Result]]) -> None:
        """Writes the group; each task alone if it fails, unless it fails for a cause that all of them share."""
        tasks = [job.task for job in group]
        try:
            for job, result in zip(group, self._write(tasks), strict=True):
                job.result = result
        except Exception as error:  # noqa: BLE001 — raised in the thread that brought the task
            if len(group) == 1 or self._is_everyones(error):
                self._fail(group, error)
            else:
                for job in group:
                    self._run([job])
        except BaseException as error:
            self._fail(group, error)
            raise

    @staticmethod
    def _fail(group: Sequence[_Job[Task, Result]], error: BaseException) -> None:
        for job in group:
            job.error = error
