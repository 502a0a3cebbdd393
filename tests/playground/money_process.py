"""What other processes do with a cap on spending: visit many users at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from catchment.app import open_app
from catchment.settings import Settings
from tests.clocks import HandClock

THREADS = 4
CAP = 40_000


def settings_of(home: str, url: str, playground: str) -> Settings:
    return Settings(
        home=Path(home),
        database_url=url,
        base_urls={"twitterapi_io": playground},
        master_key="a key for tests",
        is_private_allowed=True,
        concurrency=THREADS,
        log_level="error",
        rate_limits={"twitterapi_io": 10_000},
        daily_caps={"twitterapi_io": CAP},
    )


def visit_at_once(home: str, url: str, playground: str, part: str) -> None:
    """To be run in a process of its own: visits every second source, and prints what became of each."""
    from tests.x.scene import START

    clock = HandClock(START)
    clock.advance(86_400)
    with open_app(settings_of(home, url, playground), "test", clock=clock) as app:
        ids = [source.id for source, _ in app.store.sources.page(0, 1_000)][int(part) :: 2]
        sys.stdout.write("ready\n")
        sys.stdin.readline()
        for result in app.scheduler().these(ids, "test", "test"):
            sys.stdout.write(f"{result.outcome} {result.error_code}\n")


def paced(home: str, url: str, playground: str) -> Settings:
    """A day after the world's start, on a clock on which a retry after seconds takes a moment."""
    from dataclasses import replace

    return replace(
        settings_of(home, url, playground),
        clock="2026-03-03T00:00:00+00:00,20",
        daily_caps={},
        concurrency=2,
        task_minutes=10_080,
    )


def run_task(home: str, url: str, playground: str, task_id: str) -> None:
    """To be run in a process of its own: works on the task until it is finished."""
    with open_app(paced(home, url, playground), "worker") as app:
        while app.store.tasks.get(task_id).finished_at is None:
            app.task_runner().run()
    os._exit(0)
