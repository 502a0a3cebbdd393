"""`python -m bench`: what catchment costs, as multiples of the floor; written to docs/benchmarks.md.

Ends with 1 if a promise is broken. `--quick` tells in seconds whether everything works; its figures are not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import collecting, ticking
from bench.collecting import Collected
from bench.processes import Cost, run, served_world
from bench.ticking import Tick
from bench.world import World
from catchment import __version__

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
ROUNDS = {
    1: "everything is new",
    2: "1 feed in 8 has changed, the others answer 304",
    3: "200 with identical bytes, no validators",
}
MOST = {1: 5.0, 2: 6.0, 3: 6.0}
"""At most so many times the floor."""
MOST_MB = 120.0
REPEATS = 3
FOLLOWED = (1_000, 100_000, 1_000_000)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    options.add_argument("--quick", action="store_true", help="50 feeds, once; judges and keeps nothing")
    is_quick = options.parse_args().quick
    world, repeats, followed = (World(50), 1, FOLLOWED[:1]) if is_quick else (World(), REPEATS, FOLLOWED)

    with served_world(world.feeds) as base:
        floors, passes = [], []
        for number in range(repeats):
            tell(f"the floor, and collecting {world.feeds} feeds: pass {number + 1} of {repeats}")
            floors.append(measure_floor(base, world))
            passes.append(collecting.measure(base, world))
    floor = {number: min(one[number] for one in floors) for number in ROUNDS}
    ticks = []
    for count in followed:
        tell(f"ticking with {count:,} sources")
        ticks.append(ticking.measure(count))

    report = Report(world, floor, passes, ticks)
    print(report.text())
    if is_quick:
        return 0
    broken = report.broken()
    for promise in broken:
        print(f"broken: {promise}", file=sys.stderr)
    PAGE.write_text(report.page())
    return 1 if broken else 0


def measure_floor(base: str, world: World) -> dict[int, float]:
    answer, _ = run([sys.executable, "-m", "bench.floor", base, str(world.feeds)])
    seconds = json.loads(answer)
    return {number: seconds[str(number)] for number in ROUNDS}


def tell(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


class Report:
    """The figures in words and tables."""

    def __init__(self, world: World, floor: dict[int, float], passes: list[Collected], ticks: list[Tick]) -> None:
        self.world, self.floor, self.passes, self.ticks = world, floor, passes, ticks

    def start_up(self) -> Cost:
        return min((cost for one in self.passes for cost in one.start_ups), key=lambda cost: cost.cpu_seconds)

    def round(self, number: int) -> Cost:
        """The best pass, as with the floor: what disturbs a measurement only ever adds to it."""
        return min((one.rounds[number] for one in self.passes), key=lambda cost: cost.cpu_seconds)

    def seconds(self, number: int) -> float:
        # The best of all rounds less the best of all start-ups. Differences within each pass would not do: the best of
        # those is the pass with the most disturbed start-up.
        return self.round(number).cpu_seconds - self.start_up().cpu_seconds

    def times(self, number: int) -> float:
        return self.seconds(number) / self.floor[number]

    def peak_mb(self) -> float:
        return max(cost.peak_mb for one in self.passes for cost in one.rounds.values())

    def broken(self) -> list[str]:
        """Promises that do not hold, and figures that cannot be true: what is below the floor is noise."""
        broken = []
        for number, most in MOST.items():
            if self.times(number) > most:
                broken.append(f"round {number} costs {self.times(number):.1f} × the floor; promised are {most:.0f}")
            elif self.times(number) < 1:
                broken.append(f"round {number} seems to cost less than the floor: the machine is too busy to measure")
        if self.peak_mb() >= MOST_MB:
            broken.append(f"collecting needs {self.peak_mb():.0f} MB; promised are less than {MOST_MB:.0f}")
        return broken

    def text(self) -> str:
        return "\n\n".join((self._rounds(), self._beside(), self._ticks()))

    def _rounds(self) -> str:
        head = "| round | | floor, CPU s | catchment, CPU s | × floor | at most |\n|---|---|---|---|---|---|\n"
        return head + "\n".join(
            f"| {number} | {what} | {self.floor[number]:.3f} | {self.seconds(number):.3f} "
            f"| **{self.times(number):.1f}** | {MOST[number]:.0f} |"
            for number, what in ROUNDS.items()
        )

    def _beside(self) -> str:
        start = self.start_up()
        importing = min(one.importing.cpu_seconds for one in self.passes)
        return "\n".join(
            (
                "| beside it | |\n|---|---|",
                f"| start-up of a command, taken off above | {start.cpu_seconds:.2f} CPU s, {start.peak_mb:.0f} MB |",
                f"| import of {self.world.feeds} sources from OPML | {importing:.2f} CPU s |",
                f"| peak memory of a round | {self.peak_mb():.0f} MB (at most {MOST_MB:.0f}) |",
                f"| round 1 on the clock | {self.round(1).wall_seconds:.1f} s |",
                f"| database afterwards, raw answers included | {self.passes[-1].database_mb:.0f} MB |",
            )
        )

    def _ticks(self) -> str:
        head = "| sources followed | tick with nothing due, CPU µs | with 10 due and claimed |\n|---|---|---|\n"
        return head + "\n".join(
            f"| {tick.followed:,} | {tick.idle_microseconds:.0f} | {tick.busy_microseconds:.0f} |"
            for tick in self.ticks
        )

    def _verdict(self) -> str:
        broken = self.broken()
        return "\n".join(f"- **Not kept:** {promise}." for promise in broken) if broken else "All of it is as promised."

    def page(self) -> str:
        entries = f"{self.world.feeds} feeds of {self.world.entries} entries"
        return f"""# Benchmarks

Written by `make bench`; run it to get your own. Figures are multiples of a floor that is measured in the same run, so
they mean the same on every machine: the floor only downloads the same bytes, only parses them with the fastest parser
there is, only inserts them into a plain table, each alone. catchment also keeps the raw answers, sanitises, derives the
text, fingerprints, tells edits from news, keeps what was said before, and proves what it has.

The workload: {entries} with 1.5 KB of HTML each, three fifths in English, two fifths in Chinese,
RSS and Atom by turns, served on the same machine by `bench/world.py`. The real commands run as processes of their own,
with a fresh home and default settings, except that the limit of requests a second to one host is off: here all feeds
have the same host. CPU is that of the whole process, user and system, less the start-up of the same command with
nothing to do; both sides show the best of {REPEATS}. After each pass it is checked that every item is there once, and
every edit with the text before it.

{self.text()}

{self._verdict()}

catchment {__version__} · {datetime.now(UTC):%Y-%m-%d} · {machine()} · `make bench`
"""


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    return f"{system}, {platform.python_implementation()} {platform.python_version()}, SQLite {sqlite3.sqlite_version}"


if __name__ == "__main__":
    sys.exit(main())
