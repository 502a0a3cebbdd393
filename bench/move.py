"""What moving an archive costs: SQLite to PostgreSQL beside a plain COPY of the same rows, and back again.

Both write into the same tables with the same indexes. The move also reads the rows from SQLite, and reads them again
from PostgreSQL to compare them. Runs in a process of its own, which prints its figures as JSON:
`python -m bench.move 1000000 FOLDER`. A third word says how large the archive is that is killed on its way, and moved
back: `python -m bench.move 1000000 FOLDER 1000000`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import records
from bench.archives import NOW, Archive, fill
from bench.postgres import PostgresServer, postgres
from bench.processes import Cost, run
from catchment.store import open_store
from catchment.store.database import Database
from catchment.store.move import MOVED
from catchment.store.table_copy import CopiedTable, ReadOnlyDatabase, RowsHash, TableRows
from catchment.text.clean import fingerprint

LEAST_SHARE = 1 / 3
"""Of the speed of a plain COPY."""
MOST_MB = 300.0
KILLS = 5
START_SECONDS = 1.0
"""Before a command copies anything."""
SMALLER = 10
"""The archive that is killed on its way, and moved back, is so many times smaller: indexing takes longest."""


@dataclass(frozen=True)
class Move:
    """What a move took, in seconds."""

    items: int
    rows: int
    plain: float
    """A plain COPY of the same rows."""
    there: dict[str, float]
    """To PostgreSQL, by stage."""
    there_mb: float
    back_items: int
    back: dict[str, float]
    """To SQLite, by stage."""
    back_mb: float
    kills: int
    killed: float
    """All attempts of a move that was killed so often, until it was complete."""

    @property
    def share(self) -> float:
        return self.plain / (self.there["copying"] + self.there["verifying"])

    def text(self) -> str:
        there, back = self.there, self.back
        return "\n".join(
            (
                f"## Moving {self.items:,} items ({self.rows:,} rows) to PostgreSQL\n\n| | |\n|---|---|",
                f"| a plain COPY of the same rows into the same tables and indexes | {self.plain:.0f} s |",
                f"| `catchment move`: copying | {there['copying']:.0f} s |",
                f"| reading and comparing what was copied | {there['verifying']:.0f} s |",
                f"| speed of both, as a share of a plain COPY | **{self.share:.2f}** (at least a third) |",
                f"| building the search index | {there['indexing']:.0f} s |",
                f"| peak memory | {self.there_mb:.0f} MB (less than {MOST_MB:.0f}) |",
                f"| {self.back_items:,} items, killed {self.kills} times at random moments, with all attempts "
                f"| {self.killed:.0f} s; equal |",
                f"| and back to SQLite: copying, comparing, indexing | {back['copying']:.0f}, {back['verifying']:.0f}, "
                f"{back['indexing']:.0f} s, {self.back_mb:.0f} MB; equal |",
            )
        )

    def broken(self) -> list[str]:
        broken = []
        if self.share < LEAST_SHARE:
            broken.append(f"a move has {self.share:.2f} of the speed of a plain COPY; promised is a third")
        if self.kills < KILLS:
            broken.append(f"a move was killed only {self.kills} times before it was complete, not {KILLS}")
        most = max(self.there_mb, self.back_mb)
        if most >= MOST_MB:
            broken.append(f"a move needs {most:.0f} MB; promised are less than {MOST_MB:.0f}")
        return broken


def measure(size: int, kept_in: Path | None = None) -> Move:
    with tempfile.TemporaryDirectory() if kept_in is None else nullcontext(kept_in) as folder:
        answer, _ = run([sys.executable, "-m", "bench.move", str(size), str(folder)], weighs=False)
    return Move(**json.loads(answer))


def report(size: int, folder: Path, smaller: int) -> Move:
    folder.mkdir(parents=True, exist_ok=True)
    large, small = _filled(size, folder), _filled(smaller, folder)
    with postgres(folder / "postgres") as server:
        for name in ("moved", "plain", "killed"):
            server.empty(name)
        there, there_cost = _moved(folder, large, server.address("moved"))
        plain = _plain_copy(server, folder)
        _refuse_differences(large, server.address("moved"))
        expected = sum(there["seconds"].values()) / (size / smaller)
        kills, attempts = _killed_moves(folder, small, server.address("killed"), expected)
        while kills < KILLS and expected > START_SECONDS:
            # It was complete before the last kill: again, with less time between kills.
            expected /= 2
            server.empty("killed")
            kills, attempts = _killed_moves(folder, small, server.address("killed"), expected)
        back_url = f"sqlite:///{folder / 'back.db'}"
        for file in folder.glob("back.db*"):
            file.unlink()
        back, back_cost = _moved(folder, server.address("killed"), back_url)
        _refuse_differences(small, server.address("killed"), back_url)
    rows = sum(there["rows"].values())
    seconds = there["seconds"], back["seconds"]
    return Move(
        size, rows, plain, seconds[0], there_cost.peak_mb, smaller, seconds[1], back_cost.peak_mb, kills, attempts
    )


def _filled(size: int, folder: Path) -> str:
    """An archive without a search index, which is not moved; it is filled unless it is there already."""
    url, note = f"sqlite:///{folder / f'unindexed-{size}.db'}", folder / f"unindexed-{size}.done"
    if not note.exists():
        _tell(f"filling an archive with {size:,} items")
        for file in folder.glob(f"unindexed-{size}.db*"):
            file.unlink()
        with closing(open_store(url, folder / str(size), NOW, fingerprint)) as store:
            fill(store, Archive(size))
            records.keep(store, Archive(size))
        note.touch()
    return url


def _command(target: str) -> list[str]:
    return [sys.executable, "-m", "catchment", "move", "--to", target, "--json"]


def _environment(folder: Path, source: str) -> dict[str, str]:
    # The notes about databases that held items would refuse one that is emptied for the next run.
    (folder / "databases.json").unlink(missing_ok=True)
    return os.environ | {"CATCHMENT_HOME": str(folder), "CATCHMENT_DATABASE_URL": source}


def _moved(folder: Path, source: str, target: str) -> tuple[dict[str, Any], Cost]:
    _tell(f"moving {source.split(':')[0]} to {target.split(':')[0]}")
    answer, cost = run(_command(target), _environment(folder, source))
    _tell(answer)
    return json.loads(answer), cost


def _killed_moves(folder: Path, source: str, target: str, expected: float) -> tuple[int, float]:
    """Kills a move that takes `expected` seconds at random moments, and continues it each time. Returns how often, and
    the seconds of it all."""
    chance, began = random.Random(14), time.monotonic()
    moments = sorted(chance.uniform(0.05, 0.9) for _ in range(KILLS))
    for number, (before, moment) in enumerate(pairwise((0.0, *moments))):
        patience = START_SECONDS + (moment - before) * expected
        process = subprocess.Popen(
            _command(target), env=_environment(folder, source), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode != -signal.SIGKILL:
            # It was faster than expected.
            return number, time.monotonic() - began
        _tell(f"killed after {patience:.1f} s")
    run(_command(target), _environment(folder, source))
    return KILLS, time.monotonic() - began


def _plain_copy(server: PostgresServer, folder: Path) -> float:
    """Returns the seconds that COPY alone takes, from files in PostgreSQL's own format."""
    with closing(open_store(server.address("plain"), folder / "plain", NOW, fingerprint)):
        pass
    with closing(Database(server.address("moved"))) as moved, closing(moved.connect()) as connection:
        for table in MOVED:
            with (folder / f"{table.name}.copy").open("wb") as file, connection.cursor().copy(_out(table)) as copy:
                for data in copy:
                    file.write(data)
    seconds = 0.0
    with closing(Database(server.address("plain"))) as plain, closing(plain.connect()) as connection:
        connection.execute("DELETE FROM ledger")
        for table in MOVED:
            began = time.monotonic()
            with (folder / f"{table.name}.copy").open("rb") as file, connection.cursor().copy(table.copy) as copy:
                while data := file.read(1 << 18):
                    copy.write(data)
            connection.commit()
            seconds += time.monotonic() - began
            (folder / f"{table.name}.copy").unlink()
    _tell(f"a plain COPY takes {seconds:.1f} s")
    return seconds


def _out(table: CopiedTable) -> str:
    columns = ", ".join(f'"{name}"' for name in table.columns)
    order = ", ".join(f'"{name}"' for name in table.key)
    return f"COPY (SELECT {columns} FROM {table.name} ORDER BY {order}) TO STDOUT"


def _refuse_differences(*urls: str) -> None:
    hashes = [_hashes(url) for url in urls]
    for other in hashes[1:]:
        if other != hashes[0]:
            raise SystemExit(f"differs: {[name for name in other if other[name] != hashes[0][name]]}")


def _hashes(url: str) -> dict[str, RowsHash]:
    with closing(ReadOnlyDatabase(url)) as database, closing(database.connect()) as connection:
        rows = TableRows(database, connection)
        return {table.name: rows.hashed(table, lambda count: None) for table in MOVED}


def _tell(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    size = int(sys.argv[1])
    smaller = int(sys.argv[3]) if len(sys.argv) > 3 else size // SMALLER
    found = report(size, Path(sys.argv[2]), smaller)
    _tell("\n".join((found.text(), *found.broken())))
    print(json.dumps(asdict(found)))
