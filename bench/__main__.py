"""`python -m bench`: what catchment costs, as multiples of the floor; written to docs/benchmarks.md.

Ends with 1 if a promise is broken. `--quick` tells in about a minute whether everything works; it keeps no figures.
Parts can be measured one by one (`python -m bench rounds`): what each measured last is kept in build/bench, and the
page is made of that, so that the machine need not be quiet for an hour at once. Large archives take long to fill:
`--archives FOLDER` keeps them for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import sqlite3
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import changes, collecting, comparing, move, pages, scale, serving, ticking, variants, workers, x
from bench.collecting import Collected
from bench.comparing import Compared
from bench.move import Move
from bench.processes import Cost, run, served_world
from bench.scale import Scale
from bench.serving import Served
from bench.ticking import Tick
from bench.timing import Times
from bench.variants import FromSlowServers, InLargeArchive, OnPostgres
from bench.workers import Workers
from bench.world import World
from bench.x import Load
from catchment import __version__

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
KEPT = ROOT / "build" / "bench"
ROUNDS = {
    1: "everything is new",
    2: "1 feed in 8 has changed, the others answer 304",
    3: "200 with identical bytes, no validators",
}
MOST = {1: 5.0, 2: 5.0, 3: 4.0}
"""At most so many times the floor."""
MOST_MB = 100.0
LARGE = 1_000_000
"""Promises about large archives are made for so many items."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    world: World
    repeats: int
    followed: tuple[int, ...]
    archives: scale.Sizes
    served: World
    day_seconds: float
    """A day of `serve` on the wall."""
    shared: int
    """Sources that workers share."""
    idle_seconds: float
    users: int = 100
    """Of X, in one task."""
    kept_in: Path | None = None
    """Where archives stay for the next time."""


FULL = Sizes(
    World(), 3, (1_000, 100_000, 1_000_000), scale.Sizes(10_000, 25_000, LARGE), World(10_000, 10), 20.0, 200, 120.0
)
QUICK = Sizes(World(50), 1, (1_000,), scale.Sizes(5_000, 5_000, 6_000), World(100, 10), 1.5, 24, 5.0, users=5)


def main() -> int:
    asked = options().parse_args()
    sizes = replace(QUICK if asked.quick else FULL, kept_in=asked.archives)
    kept = {} if asked.quick else kept_parts()
    for part in asked.parts or PARTS:
        begun = time.monotonic()
        kept[part] = PARTS[part](sizes)
        tell(f"{part} took {time.monotonic() - begun:,.0f} s")
        if not asked.quick:
            keep(part, kept[part])

    report = Report(kept)
    print(report.text())
    if asked.quick:
        return 0
    broken = report.broken()
    for promise in broken:
        print(f"broken: {promise}", file=sys.stderr)
    before = PAGE.read_text() if PAGE.exists() else ""
    after = report.page()
    for figure in changes.worse(before, after) or ["nothing"]:
        print(f"worse than docs/benchmarks.md had it: {figure}", file=sys.stderr)
    PAGE.write_text(after)
    return 1 if broken else 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="everything small, once; judges and keeps nothing")
    parser.add_argument("--archives", type=Path, metavar="FOLDER", help="where archives are kept for the next time")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these of {', '.join(PARTS)}")
    return parser


def keep(part: str, figures: object) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / part).write_bytes(pickle.dumps(figures))


def kept_parts() -> dict[str, Any]:
    return {part: pickle.loads((KEPT / part).read_bytes()) for part in PARTS if (KEPT / part).exists()}


# ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rounds:
    feeds: int
    entries: int
    floor: dict[int, float]
    passes: list[Collected]


@dataclass(frozen=True)
class Beside:
    """Others, with the floor of their own run."""

    floor: dict[int, float]
    peers: list[Compared]
    absent: list[str]


def measure_rounds(sizes: Sizes) -> Rounds:
    world, floors, passes = sizes.world, [], []
    with served_world(world.feeds) as base:
        for number in range(sizes.repeats):
            tell(f"the floor, and collecting {world.feeds} feeds: pass {number + 1} of {sizes.repeats}")
            floors.append(measure_floor(base, world))
            passes.append(collecting.measure(base, world))
    floor = {number: min(floor[number] for floor in floors) for number in ROUNDS}
    return Rounds(world.feeds, world.entries, floor, passes)


def measure_peers(sizes: Sizes) -> Beside:
    world, peers, absent = sizes.world, [], []
    with served_world(world.feeds) as base:
        floor = measure_floor(base, world)
        for peer in comparing.PEERS:
            version = comparing.version_of(peer)
            if version is None:
                tell(f"{peer.name} is not installed, and left out")
                absent.append(peer.name)
                continue
            tell(f"{peer.name} collects {world.feeds} feeds")
            peers.append(comparing.measure(peer, version, base, world))
    return Beside(floor, peers, absent)


def measure_on_postgres(sizes: Sizes) -> OnPostgres:
    tell("the rounds on PostgreSQL, and beside it on SQLite")
    with served_world(sizes.world.feeds) as base:
        return variants.on_postgres(base, sizes.world)


def measure_in_large_archive(sizes: Sizes) -> InLargeArchive:
    tell(f"the rounds in an archive of {sizes.archives.large:,} items, and beside it in an empty one")
    with served_world(sizes.world.feeds) as base:
        return variants.in_large_archive(base, sizes.world, sizes.archives.large, sizes.repeats)


def measure_slow_servers(sizes: Sizes) -> FromSlowServers:
    tell("feeds of slow servers")
    return variants.from_slow_servers(sizes.world)


def measure_ticks(sizes: Sizes) -> list[Tick]:
    ticks = []
    for count in sizes.followed:
        tell(f"ticking with {count:,} sources")
        ticks.append(ticking.measure(count))
    return ticks


def measure_scale(sort: str) -> Callable[[Sizes], Scale]:
    def measured(sizes: Sizes) -> Scale:
        told = " and ".join(f"{size:,}" for size in sizes.archives)
        tell(f"{scale.SORTS[sort]}: archives of {told} items are filled, indexed and read")
        return scale.measure(sort, sizes.archives, sizes.kept_in)

    return measured


def measure_serving(sizes: Sizes) -> Served:
    world = sizes.served
    tell(f"`serve` with {world.feeds:,} sources and {world.feeds * world.entries:,} items, for a week of its clock")
    return serving.measure(world, sizes.day_seconds)


def measure_move(sizes: Sizes) -> Move:
    tell(f"an archive of {sizes.archives.large:,} items is moved to PostgreSQL, and a smaller one back")
    return move.measure(sizes.archives.large, None if sizes.kept_in is None else sizes.kept_in / "move")


def measure_x(sizes: Sizes) -> Load:
    tell(f"a task of {sizes.users} users of X, and a thousand posts of one")
    return x.measure(sizes.users, 100)


def measure_workers(sizes: Sizes) -> Workers:
    tell(f"{sizes.shared} sources are shared by workers; then these have nothing to do")
    return workers.measure(sizes.shared, sizes.idle_seconds)


PARTS: dict[str, Callable[[Sizes], Any]] = {
    "rounds": measure_rounds,
    "rounds-postgres": measure_on_postgres,
    "rounds-large": measure_in_large_archive,
    "slow-servers": measure_slow_servers,
    "peers": measure_peers,
    "ticks": measure_ticks,
    **{sort: measure_scale(sort) for sort in scale.SORTS},
    "serving": measure_serving,
    "workers": measure_workers,
    "move": measure_move,
    "x": measure_x,
}


def measure_floor(base: str, world: World) -> dict[int, float]:
    answer, _ = run([sys.executable, "-m", "bench.floor", base, str(world.feeds)], weighs=False)
    seconds = json.loads(answer)
    return {number: seconds[str(number)] for number in ROUNDS}


def tell(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


class Report:
    """The figures in words and tables."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self.rounds: Rounds | None = parts.get("rounds")
        self.elsewhere = [parts[part] for part in ("rounds-postgres", "rounds-large", "slow-servers") if part in parts]
        self.beside: Beside | None = parts.get("peers")
        self.ticks: list[Tick] = parts.get("ticks", [])
        self.scales: list[Scale] = [parts[sort] for sort in scale.SORTS if sort in parts]
        self.served: Served | None = parts.get("serving")
        self.workers: Workers | None = parts.get("workers")
        self.moved: Move | None = parts.get("move")
        self.load: Load | None = parts.get("x")
        self.absent = [part for part in PARTS if part not in parts]

    @property
    def floor(self) -> dict[int, float]:
        return self.rounds.floor if self.rounds else {}

    @property
    def passes(self) -> list[Collected]:
        return self.rounds.passes if self.rounds else []

    def start_up(self) -> Cost:
        return min((cost for pass_ in self.passes for cost in pass_.start_ups), key=lambda cost: cost.cpu_seconds)

    def round(self, number: int) -> Cost:
        """The best pass, as with the floor: what disturbs a measurement only ever adds to it."""
        return min((pass_.rounds[number] for pass_ in self.passes), key=lambda cost: cost.cpu_seconds)

    def seconds(self, number: int) -> float:
        # The best of all rounds less the best of all start-ups. Differences within each pass would not do: the best of
        # those is the pass with the most disturbed start-up.
        return self.round(number).cpu_seconds - self.start_up().cpu_seconds

    def times(self, number: int) -> float:
        return self.seconds(number) / self.floor[number]

    def peak_mb(self) -> float:
        return max(cost.peak_mb for pass_ in self.passes for cost in pass_.rounds.values())

    def broken(self) -> list[str]:
        """Promises that do not hold, and figures that cannot be true: what is below the floor is noise."""
        broken = [f"not measured: {part}" for part in self.absent]
        broken += self._broken_rounds() if self.rounds else []
        broken += [promise for found in self.elsewhere for promise in variants.broken(found)]
        for archive in self.scales:
            broken += archive.broken()
            if archive.large < LARGE:
                broken.append(
                    f"{scale.SORTS[archive.sort]} was measured up to {archive.large:,} items only, not {LARGE:,}"
                )
        broken += self.workers.broken() if self.workers else []
        broken += self.moved.broken() if self.moved else []
        broken += self.load.broken() if self.load else []
        return broken + (self.served.broken() if self.served else [])

    def _broken_rounds(self) -> list[str]:
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
        return "\n\n".join(
            filter(
                None,
                (
                    self._collecting(),
                    self._elsewhere(),
                    self._peers(),
                    self._ticks(),
                    *self._scales(),
                    self._serving(),
                    self.workers.text() if self.workers else "",
                    self.moved.text() if self.moved else "",
                    self.load.text() if self.load else "",
                ),
            )
        )

    def _collecting(self) -> str:
        return f"## Collecting\n\n{self._rounds()}\n\n{self._beside()}" if self.rounds else ""

    def _rounds(self) -> str:
        head = "| round | | floor, CPU s | catchment, CPU s | × floor | at most |\n|---|---|---|---|---|---|\n"
        return head + "\n".join(
            f"| {number} | {what} | {self.floor[number]:.3f} | {self.seconds(number):.3f} "
            f"| **{self.times(number):.1f}** | {MOST[number]:.0f} |"
            for number, what in ROUNDS.items()
        )

    def _beside(self) -> str:
        start = self.start_up()
        importing = min(pass_.importing.cpu_seconds for pass_ in self.passes)
        return "\n".join(
            (
                "| in addition | |\n|---|---|",
                f"| start-up of a command, taken off above | {start.cpu_seconds:.2f} CPU s, {start.peak_mb:.0f} MB |",
                f"| import of {self.rounds.feeds if self.rounds else 0} sources from OPML | {importing:.2f} CPU s |",
                f"| peak memory of a round | {self.peak_mb():.0f} MB (at most {MOST_MB:.0f}) |",
                f"| round 1 on the clock | {self.round(1).wall_seconds:.1f} s |",
                f"| database afterwards, raw answers and index included | {self.passes[-1].database_mb:.0f} MB |",
            )
        )

    def _elsewhere(self) -> str:
        if not self.elsewhere:
            return ""
        head = "## Collecting elsewhere\n\n| | × | at most |\n|---|---|---|\n"
        return head + "\n".join(map(variants.text_of, self.elsewhere))

    def _peers(self) -> str:
        if not self.beside:
            return ""
        head = (
            "## Others\n\nOn the same workload, less their own start-up, against a floor measured with them; each once."
            "\n\n| | round 1, × floor | round 2 | round 3 | peak memory, MB | what is missing at the end |\n"
            "|---|---|---|---|---|---|\n"
        )
        floor = self.beside.floor
        lines = [
            f"| {peer.name} {peer.version} | "
            + " | ".join(
                f"{peer.seconds[number] / floor[number]:.1f}" if number in peer.seconds else "–" for number in ROUNDS
            )
            + f" | {f'{peer.peak_mb:.0f}' if peer.peak_mb else '–'} | {peer.missing or 'nothing'} |"
            for peer in self.beside.peers
        ]
        lines += [f"| {name} | not installed | | | | |" for name in self.beside.absent]
        if self.rounds:
            ours = " | ".join(f"**{self.times(number):.1f}**" for number in ROUNDS)
            lines.append(
                f"| catchment, from above | {ours} | {self.peak_mb():.0f} | nothing; it has what was said before, too |"
            )
        return head + "\n".join(lines)

    def _ticks(self) -> str:
        if not self.ticks:
            return ""
        head = (
            "## The tick\n\n| sources followed | with nothing due, CPU µs | with 10 due and claimed |\n|---|---|---|\n"
        )
        return head + "\n".join(
            f"| {tick.followed:,} | {tick.idle_microseconds:.0f} | {tick.busy_microseconds:.0f} |"
            for tick in self.ticks
        )

    def _scales(self) -> list[str]:
        return [
            f"## Reading a large archive: {scale.SORTS[archive.sort]}\n\n"
            f"| | {archive.small:,} items, ms | {archive.large:,} items, ms | × | at most |\n|---|---|---|---|---|\n"
            + "\n".join(
                f"| {each.question} | {each.small_ms:.2f} | {each.large_ms:.2f} "
                f"| **{each.times:.1f}** | {each.most:.0f} |"
                for each in archive.answers
            )
            + f"\n\nThe indexer takes {archive.indexed_per_second:,.0f} items a second. {_gained(archive)}\n\n"
            + _shown(archive)
            for archive in self.scales
        ]

    def _serving(self) -> str:
        if not self.served:
            return ""
        served = self.served
        return "\n".join(
            (
                f"## `serve` with {served.sources:,} sources\n\n| | |\n|---|---|",
                f"| {served.items:,} items collected from nothing | in {served.filling_seconds:.0f} s |",
                f"| peak memory, then and later | {served.peak_mb:.0f} MB (less than {serving.MOST_MB:.0f}) |",
                f"| second day of the week | {served.early_mb:.0f} MB |",
                f"| last day, after {served.visits:,} more visits | {served.late_mb:.0f} MB, {served.growth:.2f} × |",
            )
        )

    def _verdict(self) -> str:
        broken = self.broken()
        return "\n".join(f"- **Not kept:** {promise}." for promise in broken) if broken else "All promises are kept."

    def page(self) -> str:
        entries = f"{FULL.world.feeds} feeds of {FULL.world.entries} entries"
        return f"""# Benchmarks

`make bench` writes this page; run it to get your own figures. They are multiples of a floor that is measured in the
same run, so that they can be compared between machines. The floor is the minimum that any program needs: to download
the same bytes, to parse them with the fastest parser available, and to insert them into a plain table, each measured
alone. catchment also keeps the raw answers, sanitises the HTML, extracts the text, computes fingerprints, distinguishes
edits from new items, keeps earlier versions, and records what it can prove.

The workload: {entries} with 1.5 KB of HTML each, three fifths in English, two fifths in Chinese, RSS and Atom in turn,
served on the same machine by `bench/world.py`. The real commands run as separate processes, with a new data folder and
default settings. Only the limit of requests per second to one host is off, because all feeds are on the same host. CPU
time is that of the whole process, user and system, minus the start-up of the same command with nothing to do. Both
sides show the best of {FULL.repeats} runs. After each round, the benchmark checks that search finds the new words, and
after each pass that every item is stored once, and every edit with its earlier text.

Reading is measured with the functions of the store that the API calls, in archives that `bench/archives.py` fills and
the real indexer indexes: {scale.REPEATS} warm calls in wall-clock time, alternating between the small and the large
archive. The table compares the 10th percentiles, because disturbances only make a measurement slower. Pages are
requested over HTTP from the application that `serve` runs, on the same machine, and measured {pages.REPEATS} times from
the request to the last byte; the table compares the medians. The archives also contain the records of three months of
running (`bench/records.py`), so that the overview has realistic amounts to sum up. A small archive has no page
{pages.FAR_PAGE:,}; its last page is used instead.

`serve` is the real command, with a clock on which a week takes minutes; its resident memory is sampled twice a second.
Sections may have been measured at different times; all figures of a section are from one run.

{self.text()}

{self._verdict()}

catchment {__version__} · {datetime.now(UTC):%Y-%m-%d} · {machine()} · `make bench`
"""


def _gained(measured: Scale) -> str:
    """What the cache gains over the archive; figures of an earlier run may lack it."""
    took = {each.question: each.large_ms for each in measured.answers}
    if scale.CACHED not in took:
        return ""
    archive, cache = took[scale.OF_SOURCE], took[scale.CACHED]
    return (
        f"The cache answers a source's list in {cache:.2f} ms, the archive in {archive:.2f} ({archive / cache:.1f} ×)."
    )


def _shown(archive: Scale) -> str:
    """What the pages took."""
    head = (
        f"| page | {archive.smallest:,} items: fastest tenth, median, worst, ms "
        f"| {archive.large:,} items | × | at most |\n"
        "|---|---|---|---|---|\n"
    )
    return head + "\n".join(
        f"| {each.page} | {_times(each.small)} | {_times(each.large)} | **{each.times:.1f}** | {each.promise} |"
        for each in archive.pages
    )


def _times(took: Times) -> str:
    return f"{took.fastest:.1f} · {took.median:.1f} · {took.worst:.0f}"


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    is_optimised = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    build = "built with" if is_optimised else "built without"
    python = f"{platform.python_implementation()} {platform.python_version()} ({build} profile-guided optimisation)"
    return f"{system}, {python}, SQLite {sqlite3.sqlite_version}"


if __name__ == "__main__":
    sys.exit(main())
