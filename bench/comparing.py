"""What others cost on the standing workload, and whether they have afterwards what they must have.

Runs in a process of its own, smaller than any of them: what starts a program must not be larger than what it measures.
`python -m bench.comparing MODULE VERSION BASE FEEDS` prints its figures as JSON.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.processes import Cost, run, turn
from bench.world import EDIT_WORD, World

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
    """CPU of each round, without its start-up."""
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
    words = [sys.executable, "-m", "bench.comparing", peer.module, version, base, str(world.feeds)]
    told = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    return Compared(**told | {"seconds": {int(number): spent for number, spent in told["seconds"].items()}})


def compare(peer: Peer, version: str, base: str, world: World) -> Compared:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)

        def do(deed: str) -> Cost:
            words = [str(PYTHON), "-m", f"bench.peers.{peer.module}", deed, base, str(world.feeds), str(home)]
            return run(words, {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "PYTHONPATH": str(ROOT)})[1]

        do("prepare")
        start_up = min(do("idle").cpu_seconds for _ in range(2))
        costs = {}
        for number in (1, 2, 3):
            turn(base, number)
            costs[number] = do("collect")
        return Compared(
            peer.name,
            version,
            {number: cost.cpu_seconds - start_up for number, cost in costs.items()},
            max(cost.peak_mb for cost in costs.values()),
            _missing(home / "peer.db", world),
        )


def _missing(file: Path, world: World) -> str:
    expected = world.expected()
    with closing(sqlite3.connect(file)) as database:
        count, edits = database.execute(
            "SELECT count(*), sum(content LIKE ?) FROM entries", (f"%{EDIT_WORD}%",)
        ).fetchone()
    if (count, edits) == (expected.items, len(expected.edited)):
        return ""
    return f"{count} entries of {expected.items}, {edits} edits of {len(expected.edited)}"


def main() -> None:
    module, version, base, feeds = sys.argv[1:]
    peer = next(one for one in PEERS if one.module == module)
    print(json.dumps(asdict(compare(peer, version, base, World(int(feeds))))))


if __name__ == "__main__":
    main()
