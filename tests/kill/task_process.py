"""What other processes do to a task: run it, and request it many times at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Barrier, Thread

from catchment.app import open_app
from catchment.collect.tasks import request_task
from catchment.settings import Settings
from catchment.store.sources.tasks import TaskRunning

THREADS = 10


def settings_of(home: str, url: str) -> Settings:
    # One at a time: a kill is to find as many moments of a task as there are.
    return Settings(home=Path(home), database_url=url, is_private_allowed=True, concurrency=2, log_level="error")


def run_tasks(home: str, url: str) -> None:
    """To be run in a process of its own."""
    with open_app(settings_of(home, url), "worker") as app:
        app.task_runner().run()
    os._exit(0)


def post_at_once(home: str, url: str, target: str, key: str) -> None:
    """To be run in a process of its own: posts from ten threads, and prints each answer. An empty key: one for each."""
    with open_app(settings_of(home, url), "test") as app:
        starting = Barrier(THREADS)
        answers: list[str] = []

        def post(number: int) -> None:
            request_id = key or f"{os.getpid()}-{number}"
            starting.wait()
            try:
                task = request_task(
                    app.store, app.platforms, "rss", [target], 10, app.clock.now(), request_id=request_id
                )
                answers.append(f"accepted {task.task_id}")
            except TaskRunning as running:
                answers.append(f"refused {running.task_id}")

        sys.stdout.write("ready\n")
        sys.stdin.readline()
        threads = [Thread(target=post, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.stdout.write("".join(f"{answer}\n" for answer in answers))
