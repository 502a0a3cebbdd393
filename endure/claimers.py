"""Many claimers of one budget, on one Redis that dies, comes back empty and dies again: is the budget ever exceeded?

Each claimer has a connection to Redis and blocks of tokens of its own, as a process would; they are threads of a few
processes. Every token becomes a request to a server that counts. `python -m endure.claimers` is one of the processes;
it ends when its input is closed.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from catchment.app import open_app
from catchment.clock import Clock, clock_from, micros, moment
from catchment.fetch.budgets import Asked, Budgets, Grant, Level, Tokens, budgets_in
from catchment.model import Budget, Record
from catchment.redis import RedisLink
from catchment.settings import Settings
from endure.fleet import Redis
from endure.trial import START, Verdict, database_of, most_within

CONNECTIONS = 3
"""To the database, of each process."""
PHASES = (("redis", 0.3), ("away", 0.15), ("empty", 0.3), ("away again", 0.15), ("back", 0.1))
"""What happens to Redis, and for which share of the time."""


class Claimers(Record, frozen=True):
    count: int
    minutes: float
    """By the deployment's clock."""
    processes: int = 8
    budget: Budget = Budget("trial", 60, 60)
    rate: float = 1.0
    """How fast the deployment's clock runs."""
    database: str = "postgresql"


def run(trial: Claimers, folder: Path) -> Verdict:
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        database = database_of(trial.database, folder)
        ending.callback(database.close)
        redis = Redis(folder)
        ending.callback(redis.close)
        spec = f"{START.isoformat()},{trial.rate:g}"
        settings = Settings(home=home, database_url=database.url, redis_url=redis.url, clock=spec)
        with open_app(settings, "endure"):
            pass
        clock = clock_from(spec, home)
        times = ending.enter_context(counting_server(clock))
        arguments = (home, database.url, redis.url, spec, times.port, -(-trial.count // trial.processes))
        budget = (trial.budget.limit, trial.budget.window_seconds)
        processes = [ending.enter_context(_process(*arguments, *budget)) for _ in range(trial.processes)]
        for process in processes:
            assert process.stdout is not None
            # They begin when all are there.
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        by_phase = _disturbed(trial, clock, redis, times)
    window = timedelta(seconds=trial.budget.window_seconds)
    most, most_granted = (most_within(sorted(moments), window) for moments in (times.arrived, times.granted))
    figures = {
        "claimers": -(-trial.count // trial.processes) * trial.processes,
        "processes": trial.processes,
        "minutes": trial.minutes,
        "requests": len(times.arrived),
        "by_phase": by_phase,
        "limit": trial.budget.limit,
        "most_in_a_window": most,
        "most_granted_in_a_window": most_granted,
        "longest_delay_seconds": round(max(times.delays(), default=0.0), 2),
    }
    return Verdict(figures, (), most <= trial.budget.limit and all(by_phase[name] for name in ("redis", "empty")))


def _disturbed(trial: Claimers, clock: Clock, redis: Redis, times: Times) -> dict[str, int]:
    """Returns how many requests came in each phase."""
    counts, never = {}, Event()
    for name, share in PHASES:
        before = len(times.arrived)
        if name.startswith("away"):
            redis.close()
        elif name != "redis":
            redis.restart(is_emptied=True)
        clock.wait(trial.minutes * 60 * share, never)
        counts[name] = len(times.arrived) - before
    return counts


class Times:
    """Of all requests, by the deployment's clock: when their tokens were granted, and when they arrived."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, Lock()
        self.granted: list[datetime] = []
        self.arrived: list[datetime] = []
        self.port = 0

    def add(self, granted_at: datetime) -> None:
        now = self._clock.now()
        with self._lock:
            self.granted.append(granted_at)
            self.arrived.append(now)

    def delays(self) -> list[float]:
        return [
            (arrived - granted).total_seconds() for granted, arrived in zip(self.granted, self.arrived, strict=True)
        ]


@contextmanager
def counting_server(clock: Clock) -> Iterator[Times]:
    times = Times(clock)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            times.add(moment(int(self.path[1:])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        times.port = server.server_address[1]
        Thread(target=server.serve_forever, daemon=True).start()
        yield times
        server.shutdown()


@contextmanager
def _process(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "endure.claimers", *map(str, arguments)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout is not None
        process.stdout.close()
        if process.wait():
            raise RuntimeError("a claimer failed: its error is on the error output")


class Noted:
    """Budgets of a claimer that takes one token at a time; knows when the last one was granted."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self.granted_at = START

    def take(self, budget: Budget, credential: str | None, now: datetime) -> Grant:
        block = self._budgets.take(budget, credential, now)
        self.granted_at = block.granted_at
        return block

    def levels(self, asked: Sequence[Asked], now: datetime) -> list[Level]:
        return self._budgets.levels(asked, now)


def claim(
    home: str, database_url: str, redis_url: str, spec: str, port: str, count: str, limit: str, window: str
) -> None:
    """One process: so many claimers, until the input is closed."""
    settings = Settings(home=Path(home), database_url=database_url, redis_url=redis_url, clock=spec)
    budget, stop = Budget("trial", int(limit), float(window)), Event()
    with open_app(settings, "claimer", connections=CONNECTIONS) as app:

        def work(_: int) -> None:
            # Its pause after a failure, too, is by the deployment's clock.
            link = RedisLink(redis_url, "trial:", lambda: time.monotonic() / app.clock.wall_seconds(1.0))
            budgets = Noted(budgets_in(app.store.budgets, link, app.clock))
            tokens = Tokens(budgets, app.clock)
            while not stop.is_set():
                now = app.clock.now()
                until = tokens.take(budget, None, now)
                if until is None:
                    with suppress(OSError):
                        urllib.request.urlopen(
                            f"http://127.0.0.1:{port}/{micros(budgets.granted_at)}", timeout=60
                        ).close()
                else:
                    app.clock.wait((until - now).total_seconds(), stop)
            link.close()

        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        with ThreadPoolExecutor(int(count)) as pool:
            claimers = pool.map(work, range(int(count)))
            sys.stdin.read()
            stop.set()
            # Raises what any of them raised.
            list(claimers)


if __name__ == "__main__":
    claim(*sys.argv[1:])
