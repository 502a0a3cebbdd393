"""What others cost on the standing workload, and whether they have afterwards what they must have.

They tell their own peak of memory: some are smaller than the benchmark, which then cannot see it from outside.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.processes import TooLong, run, turn
from bench.world import EDIT_WORD, World

PATIENCE_SECONDS = 300.0
"""A round that takes longer on the clock is broken off; what comes after it is not measured."""
ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-bench" / "bin" / "python"


@dataclass(frozen=True)
class Peer:
    name: str
    module: str
    package: str


PEERS = (
    Peer("reader", "feedreader", "reader"),
    Peer("Scrapy, SQLite pipeline", "spider", "scrapy"),
    Peer("dlt → SQLite", "loader", "dlt"),
)


@dataclass(frozen=True)
class Compared:
    name: str
    version: str
    seconds: dict[int, float]
    """CPU of each round, without its start-up; those that it did not end in time are absent."""
    peak_mb: float
    missing: str
    """What it has not got of what it must have; empty: nothing."""


def version_of(peer: Peer) -> str | None:
    """None: it is not installed."""
    if not PYTHON.exists():
        return None
    ask = f"import importlib.metadata as known; print(known.version({peer.package!r}))"
    told = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=False)
    return told.stdout.strip() or None


def measure(peer: Peer, version: str, base: str, world: World) -> Compared:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)

        def do(action: str) -> tuple[float, float]:
            words = [str(PYTHON), "-m", f"bench.peers.{peer.module}", action, base, str(world.feeds), str(home)]
            environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "PYTHONPATH": str(ROOT)}
            said, cost = run(words, environment, weighs=False, within_seconds=PATIENCE_SECONDS)
            return cost.cpu_seconds, float(said.split()[-1])

        do("prepare")
        start_up = min(do("idle")[0] for _ in range(2))
        seconds, peaks = {}, []
        for number in (1, 2, 3):
            turn(base, number)
            try:
                spent, peak_mb = do("collect")
            except TooLong:
                late = f"round {number} had not ended after {PATIENCE_SECONDS:.0f} s"
                return Compared(peer.name, version, seconds, max(peaks, default=0.0), late)
            seconds[number] = spent - start_up
            peaks.append(peak_mb)
        return Compared(peer.name, version, seconds, max(peaks), _missing(home / "peer.db", world))


def _missing(file: Path, world: World) -> str:
    expected = world.expected()
    with closing(sqlite3.connect(file)) as database:
        count, edits = database.execute(
            "SELECT count(*), sum(content LIKE ?) FROM entries", (f"%{EDIT_WORD}%",)
        ).fetchone()
    if (count, edits) == (expected.items, len(expected.edited)):
        return ""
    return f"{count} entries of {expected.items}, {edits} edits of {len(expected.edited)}"
