"""A deployment of the distributed engine: its own PostgreSQL database and Redis, a site of feeds, real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis
from celery.__main__ import main as celery_main

from catchment.app import App, open_app, settings_from
from catchment.cli.main import run
from catchment.engines.distributed import tasks
from catchment.engines.distributed.tasks import make_celery
from catchment.jobs import NAMES
from catchment.model import Target
from catchment.settings import Settings
from catchment.settings.table import QUEUES
from catchment.store.leases import ProcessView, living
from catchment.store.sources.sources import SourceRequest
from tests.feedsite import FeedSite
from tests.forked import Forked
from tests.redis_server import RedisServer

WAIT_SECONDS = 300
"""Against tests that hang; everything is waited for by what happens."""


def until(is_so: Callable[[], Any], what: str = "it did not come about") -> Any:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while not (found := is_so()):
        assert time.monotonic() < give_up_at, what
        time.sleep(0.03)
    return found


def command(*arguments: str) -> int:
    """To be run in a process of its own."""
    return run(arguments)


def celery_command(*arguments: str) -> None:
    """To be run in a process of its own: the program `celery`, as the specification uses it."""
    sys.argv = ["celery", "-A", "catchment.engines.distributed", *arguments]
    celery_main()


def impatient_command(*arguments: str) -> int:
    """To be run in a process of its own: no task may take longer than two seconds, and none is asked to end before."""
    tasks.TASK_SECONDS = 2.0
    return run(arguments)


class Deployment:
    """Processes are started with its settings; `app` is one more process of it, in which the test looks at things."""

    def __init__(self, folder: Path, database_url: str, redis_server: RedisServer, **settings: str) -> None:
        self.folder, self.redis, self.site = folder, redis_server, FeedSite()
        self.environ = {
            "CATCHMENT_HOME": str(folder / "home"),
            "CATCHMENT_DATABASE_URL": database_url,
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{redis_server.port}/1",
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "true",
            "CATCHMENT_RETRY_WAITS": "none",
            "CATCHMENT_LOG_FORMAT": "json",
            "COLLECTOR_TICK": "1",
            **settings,
        }
        (folder / "home").mkdir(parents=True, exist_ok=True)
        self.processes: list[Forked] = []
        self.app: App = open_app(self.settings(), "test")

    def settings(self, **more: str) -> Settings:
        return settings_from(self.environ | more, self.folder, NAMES)

    def celery(self) -> Any:
        return make_celery(self.settings())

    def start(self, *arguments: str, **more: str) -> Forked:
        return self._started(command, *arguments, **more)

    def start_impatient(self, *arguments: str) -> Forked:
        return self._started(impatient_command, *arguments)

    def start_celery(self, *arguments: str, **more: str) -> Forked:
        """`celery -A catchment.engines.distributed` with these arguments."""
        return self._started(celery_command, *arguments, **more)

    def _started(self, run: Callable[..., object], *arguments: str, **more: str) -> Forked:
        before, folder = dict(os.environ), os.getcwd()
        try:
            os.environ.update(self.environ | more)
            os.chdir(self.folder)
            process = Forked(run, *arguments)
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)
        self.processes.append(process)
        return process

    def worker(self, concurrency: int = 1, *arguments: str, **more: str) -> Forked:
        """A worker whose children are all there."""
        others = {child.pid for child in self.children()}
        worker = self.start("worker", "--concurrency", str(concurrency), *arguments, **more)
        until(lambda: len({child.pid for child in self.children()} - others) >= concurrency, "no worker came up")
        return worker

    def beat(self, **more: str) -> Forked:
        beat = self.start("beat", **more)
        until(lambda: any(process.pid == beat.pid for process in self.living()), "no beat came up")
        return beat

    def living(self) -> list[ProcessView]:
        return living(self.app.store.database, self.app.store.home, self.app.clock.now())

    def children(self) -> list[ProcessView]:
        return [process for process in self.living() if process.work.startswith("worker ")]

    def follow(self, count: int, posts: int = 3) -> list[int]:
        feeds = [self.site.feed(f"f{number}", posts=posts) for number in range(count)]
        requests = [SourceRequest(Target("rss", feed.url), "feeds") for feed in feeds]
        return [source_id for source_id, _ in self.app.store.sources.follow_many(requests, self.app.clock.now())]

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.app.store.database.read(lambda tx: tx.all(sql, *values))

    def number(self, sql: str) -> int:
        return int(self.rows(sql)[0][0])

    def visited(self) -> int:
        return self.number("SELECT count(*) FROM progress WHERE last_success_at IS NOT NULL")

    def alerts(self) -> list[str]:
        return [alert.subject for alert in self.app.store.alerts.open()]

    def ask(self, name: str, arguments: Sequence[Any] = (), **options: Any) -> Any:
        """Call a task; gives its result."""
        celery = self.celery()
        try:
            return celery.send_task(name, args=list(arguments), **options).get(timeout=WAIT_SECONDS)
        finally:
            celery.close()

    def broker(self) -> redis.Redis:
        """A connection to the database of Redis that carries the messages."""
        return redis.Redis(port=self.redis.port, db=1)

    def is_all_taken(self) -> bool:
        """Whether no message waits."""
        with self.broker() as client:
            return not any(client.llen(name) for name in QUEUES)

    def is_all_answered(self) -> bool:
        """Whether no message waits or is being worked on. Those of a killed worker stay unanswered for ten minutes."""
        with self.broker() as client:
            return self.is_all_taken() and not client.hlen("unacked")

    def close(self) -> None:
        for feed in self.site.feeds.values():
            feed.release()
        for process in self.processes:
            # A stopped process does not hear that it is to end.
            process.signal(signal.SIGCONT)
            process.close()
        self.app.close()
