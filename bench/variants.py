"""The standing workload elsewhere: on PostgreSQL, in a large archive, and with servers that answer slowly.

`python -m bench.variants HOME SIZE` fills an archive whose own sources are paused.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import collecting
from bench.collecting import Collected, Installation, opml
from bench.postgres import postgres
from bench.processes import run, served_world
from bench.world import World

MOST_OF_SQLITE = 1.5
"""CPU of our own process in round 1, PostgreSQL to SQLite."""
MOST_GROWTH = 1.1
"""CPU of rounds 2 and 3 in the large archive, to that in an empty one."""
MOST_DELAY = 1.3
"""Wall time, to what politeness and concurrency dictate."""
SLOW_HOSTS = 50
SECONDS_AN_ANSWER = 1.0
CONCURRENCY, HOST_CONCURRENCY, HOST_PER_SECOND = 5, 4, 5.0
"""Set, so that the limits are known whatever the defaults are."""


@dataclass(frozen=True)
class OnPostgres:
    sqlite: Collected
    postgres: Collected
    transactions_a_page: float
    """In round 1."""

    @property
    def times(self) -> float:
        """Round 1 less the start-up, to that on SQLite."""
        return own_seconds(self.postgres, 1) / own_seconds(self.sqlite, 1)


@dataclass(frozen=True)
class InLargeArchive:
    items: int
    small: list[Collected]
    large: list[Collected]

    def times(self, number: int) -> float:
        small, large = (min(own_seconds(pass_, number) for pass_ in passes) for passes in (self.small, self.large))
        return large / small


@dataclass(frozen=True)
class FromSlowServers:
    feeds: int
    wall_seconds: float
    dictated: dict[str, float]
    """Seconds, by the limit that dictates them."""

    @property
    def limit(self) -> str:
        """The limit that binds."""
        return max(self.dictated, key=lambda limit: self.dictated[limit])

    @property
    def times(self) -> float:
        return self.wall_seconds / self.dictated[self.limit]


def own_seconds(collected: Collected, number: int) -> float:
    return collected.rounds[number].cpu_seconds - min(cost.cpu_seconds for cost in collected.start_ups)


def on_postgres(base: str, world: World) -> OnPostgres:
    """SQLite in the same run, so that both meet the same machine."""
    with tempfile.TemporaryDirectory() as folder, postgres(Path(folder)) as server:
        server.empty("rounds")
        sqlite = collecting.measure(base, world)
        before = server.transactions("rounds")
        measured = collecting.measure(base, world, server.address("rounds"), rounds=(1,))
        transactions = (server.transactions("rounds") - before) / world.feeds
    return OnPostgres(sqlite, measured, transactions)


def in_large_archive(base: str, world: World, size: int, repeats: int) -> InLargeArchive:
    """By turns, so that what disturbs one disturbs the other."""
    small, large = [], []
    with tempfile.TemporaryDirectory() as folder:
        filled, home = Path(folder) / "filled", Path(folder) / "home"
        run([sys.executable, "-m", "bench.variants", str(filled), str(size)], weighs=False)
        for _ in range(repeats):
            small.append(collecting.measure(base, world))
            shutil.copytree(filled, home)
            large.append(collecting.measure(base, world, home=home))
            shutil.rmtree(home)
    return InLargeArchive(size, small, large)


def from_slow_servers(world: World) -> FromSlowServers:
    with (
        served_world(world.feeds, world.entries, hosts=SLOW_HOSTS, seconds=SECONDS_AN_ANSWER) as base,
        tempfile.TemporaryDirectory() as folder,
    ):
        catchment = Installation(Path(folder) / "home")
        catchment.environment |= {
            "COLLECTOR_CONCURRENCY": str(CONCURRENCY),
            "CATCHMENT_HOST_CONCURRENCY": str(HOST_CONCURRENCY),
            "CATCHMENT_HOST_REQUESTS_PER_SECOND": str(HOST_PER_SECOND),
        }
        catchment.collect()  # sets the database up
        _, start_up = catchment.collect()
        feeds = Path(folder) / "feeds.opml"
        feeds.write_text(opml(base, world, SLOW_HOSTS))
        catchment.run("sources", "import", str(feeds))
        result, cost = catchment.collect()
    collecting.check_round_1(result, world)
    seconds = cost.wall_seconds - start_up.wall_seconds
    return FromSlowServers(world.feeds, seconds, dictated(world.feeds, SLOW_HOSTS))


def dictated(feeds: int, hosts: int) -> dict[str, float]:
    """Returns the seconds that each limit alone dictates for requests that take a second each."""
    of_one_host = -(-feeds // hosts)
    return {
        "COLLECTOR_CONCURRENCY": feeds * SECONDS_AN_ANSWER / CONCURRENCY,
        "CATCHMENT_HOST_CONCURRENCY": of_one_host * SECONDS_AN_ANSWER / HOST_CONCURRENCY,
        "CATCHMENT_HOST_REQUESTS_PER_SECOND": of_one_host / HOST_PER_SECOND,
    }


def fill(home: Path, size: int) -> None:
    # Here, not above: the benchmark itself must stay smaller than what it weighs.
    from bench import archives
    from catchment.store import open_store
    from catchment.text.clean import fingerprint

    home.mkdir(parents=True)
    store = open_store(f"sqlite:///{home / 'catchment.db'}", home, archives.NOW, fingerprint)
    try:
        archives.fill(store, archives.Archive(size))
        store.database.write(lambda tx: tx.run("UPDATE sources SET state = 'paused'"))
        store.database.write(lambda tx: tx.run("UPDATE progress SET is_active = ?", False))
    finally:
        store.close()


def text_of(found: OnPostgres | InLargeArchive | FromSlowServers) -> str:
    """Returns rows of the table about collecting elsewhere."""
    if isinstance(found, OnPostgres):
        return (
            f"| round 1 on PostgreSQL, CPU of our process, to SQLite | **{found.times:.2f}** × | {MOST_OF_SQLITE} |\n"
            f"| transactions a page, in that round | {found.transactions_a_page:.2f} | |"
        )
    if isinstance(found, InLargeArchive):
        return "\n".join(
            f"| round {number} with {found.items:,} items more in the archive, CPU | **{found.times(number):.2f}** × "
            f"| {MOST_GROWTH} |"
            for number in (2, 3)
        )
    return (
        f"| {found.feeds} feeds on {SLOW_HOSTS} hosts that answer after {SECONDS_AN_ANSWER:.0f} s: "
        f"{found.wall_seconds:.0f} s, to the {found.dictated[found.limit]:.0f} s that {found.limit} dictates "
        f"| **{found.times:.2f}** × | {MOST_DELAY} |"
    )


def broken(found: OnPostgres | InLargeArchive | FromSlowServers) -> list[str]:
    if isinstance(found, OnPostgres) and found.times > MOST_OF_SQLITE:
        return [f"round 1 on PostgreSQL costs {found.times:.2f} × SQLite's CPU; promised are {MOST_OF_SQLITE}"]
    if isinstance(found, InLargeArchive):
        return [
            f"round {number} costs {found.times(number):.2f} × as much with {found.items:,} items in the archive; "
            f"promised are {MOST_GROWTH}"
            for number in (2, 3)
            if found.times(number) > MOST_GROWTH
        ]
    if isinstance(found, FromSlowServers) and found.times > MOST_DELAY:
        return [f"slow servers take {found.times:.2f} × what {found.limit} dictates; promised are {MOST_DELAY}"]
    return []


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]))
