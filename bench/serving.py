"""What `serve` needs of the memory with many sources, and whether that stays the same for a week.

The real command, alone in its process, collects a world of feeds from nothing on a clock that runs fast
(CATCHMENT_CLOCK). Its resident memory is looked at twice a second: from its start to the last item for the peak, and on
for seven days of its clock for the growth. The sources come due as often as the clock says; a machine that cannot keep
up visits them as often as it can, and the visits are counted.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from bench.collecting import PROGRAM, Installation, opml
from bench.processes import served_world, turn
from bench.world import World

MOST_MB = 200.0
MOST_GROWTH = 1.10
"""A day's resident memory at the end of the week against that of its second day: what is less is noise."""
DAYS = 7
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Served:
    sources: int
    items: int
    filling_seconds: float
    peak_mb: float
    early_mb: float
    """In the second day of the week, in the middle of all looks."""
    late_mb: float
    """In the last one."""
    visits: int
    """During the week."""

    @property
    def growth(self) -> float:
        return self.late_mb / self.early_mb

    def broken(self) -> list[str]:
        broken = []
        if self.peak_mb >= MOST_MB:
            broken.append(f"`serve` needs {self.peak_mb:.0f} MB; promised are less than {MOST_MB:.0f}")
        if self.growth > MOST_GROWTH:
            broken.append(f"`serve` grows to {self.growth:.2f} × within a week; promised is that it stays flat")
        return broken


def measure(world: World, day_seconds: float) -> Served:
    """`day_seconds`: how long a day of its clock lasts on the wall."""
    with served_world(world.feeds, world.entries) as base, tempfile.TemporaryDirectory() as folder:
        turn(base, 1)
        here = Path(folder)
        catchment = Installation(here / "home")
        catchment.environment["CATCHMENT_CLOCK"] = f"2026-06-01T00:00:00Z,{86_400 / day_seconds}"
        list_of_feeds = here / "feeds.opml"
        list_of_feeds.write_text(opml(base, world))
        catchment.run("sources", "import", str(list_of_feeds))
        with (here / "log").open("wb") as log:
            serve = subprocess.Popen(
                [PROGRAM, "serve", "--port", "0"], env=catchment.environment, stdout=log, stderr=log
            )
            try:
                return _watched(serve, catchment.home / "catchment.db", world, day_seconds)
            finally:
                serve.send_signal(signal.SIGTERM)
                serve.wait()


def _watched(serve: subprocess.Popen[bytes], file: Path, world: World, day_seconds: float) -> Served:
    process, wanted = psutil.Process(serve.pid), world.expected().items_after_round_1
    begun = time.monotonic()
    filling = [_look(process)]
    while _ask(file, "SELECT last_item_id FROM ledger") < wanted:
        filling.append(_look(process))
    filled = time.monotonic()
    before = _visits(file)
    days: list[list[float]] = [[] for _ in range(DAYS)]
    while (day := int((time.monotonic() - filled) / day_seconds)) < DAYS:
        days[day].append(_look(process))
    peak = max(*filling, *(look for day_looks in days for look in day_looks))
    early, late = median(days[1]), median(days[-1])
    return Served(world.feeds, wanted, filled - begun, peak, early, late, _visits(file) - before)


def _look(process: psutil.Process) -> float:
    time.sleep(_LOOK_SECONDS)
    # It has ended by itself: that is a failure, and psutil says so.
    return float(process.memory_info().rss) / 2**20


def _visits(file: Path) -> int:
    return _ask(file, "SELECT sum(poll_count) FROM progress")


def _ask(file: Path, question: str) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as database:
        return int(database.execute(question).fetchone()[0] or 0)
