"""A week of many users of X, through both services, by two processes: what is lost, and what does it cost?

Two processes, and a clock on which all work takes no time: every five minutes, both are told to collect what is due;
whoever waits moves the clock for all. The playground sends the bill. A second week has daily caps at half of it.

Users post as real ones did, if their traces are given; otherwise by rates of the same form.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from math import ceil, exp
from pathlib import Path
from typing import Any

from catchment import logs
from catchment.app import App, open_app
from catchment.clock import moment
from catchment.jobs import run_if_due
from catchment.model import Record
from catchment.playground.faults import Moods
from catchment.playground.log import bill_of, read_log
from catchment.playground.posting_rates import Pace, moments
from catchment.playground.rng import chance_of
from catchment.playground.server import Playground
from catchment.playground.sites.x import FLAT_PAGE, REACH, tweet_id
from catchment.playground.world import Habits, Place, World
from catchment.policy.spending import Total, day_of
from catchment.settings import Settings
from catchment.store.spending import DaySpent
from endure.clocks import SharedClock
from endure.communities import CRAWLER
from endure.following import X_SERVICES, Followed, add_x_keys, followed, user
from endure.trial import FAULTS, START, Verdict, database_of, judged, secrets_found

PROCESSES = 2
CLOCK = "clock"
TICK = timedelta(minutes=5)
HISTORY = timedelta(days=28)
HABITS = Habits(restored=0.0, reverted=0.0, late=0.0, future=0.0, hostile=0.0)
FIXED = 100
"""The limit that is compared with."""
PAGES = {"x": 100, "twitterapi_io": FLAT_PAGE}
RATES, LEAST_A_DAY, MOST_A_DAY = (0.12, 1.5), 0.02, 30.0
"""Posts a day are log-normal."""


class Week(Record, frozen=True):
    users: int
    days: float
    fault_rate: float
    seed: int
    database: str
    traces: Path | None = None
    """JSON lines: the first says when and how long, each other one when an account posted."""


def run(week: Week, folder: Path) -> Verdict:
    """Runs the week twice: without caps, and with caps at half of what it cost."""
    free = _live(week, folder / "free", {})
    # By the day: what a cap left above the last stored post is read the day after, as far as its own cap allows.
    days = ceil(week.days)
    caps = {service: max(1, cost["ours"] // 2 // days) for service, cost in free.figures["cost"].items()}
    capped = _live(week, folder / "capped", caps)
    figures = free.figures | {"capped": capped.figures}
    return Verdict(figures, (*free.details, *capped.details), free.is_good and capped.is_good)


def _live(week: Week, folder: Path, caps: dict[str, int]) -> Verdict:
    home, log = folder / "home", folder / "asked.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    world = world_of(week)
    with ExitStack() as ending:
        database = database_of(week.database, folder)
        ending.callback(database.close)
        clock = SharedClock(folder / CLOCK, START)
        # Slow answers are slow on the wall, which tells nothing here; an outage would only save money.
        moods = Moods(week.seed, week.fault_rate, outage_rate=0.0)
        playground = ending.enter_context(Playground(world, clock, moods, log=log, slow_seconds=0.0))
        settings = settings_of(str(home), database.url, playground.url, caps)
        with open_app(settings, "endure", clock=clock) as app:
            add_x_keys(app)
            sources = [
                followed(app, place, user(world, place, X_SERVICES[place.number % len(X_SERVICES)]))
                for place in world.places
            ]
        with processes(str(home), database.url, playground.url, caps) as collectors:
            while clock.now() < world.end:
                clock.go_on(clock.now() + TICK)
                for collector in collectors:
                    collector.go()
                for collector in collectors:
                    collector.heard()
        figures, details = judged(settings, world, sources, log, slack=timedelta())
        secrets = secrets_found((folder, *database.folders()), settings)
        with open_app(settings, "judge", clock=clock) as app:
            missing = _missing(app, world, sources)
            costs = _costs(app, log, caps)
            billed = _billed(app, world, sources, log)
    figures |= {"secrets": len(secrets), "missing": len(missing), "cost": costs, "billed": billed}
    is_good = not any(figures[name] for name in (*FAULTS, "missing")) and all(cost["agrees"] for cost in costs.values())
    return Verdict(figures, tuple(details + secrets + missing), is_good)


# The world


def world_of(week: Week) -> World:
    """Returns a world whose users post as in the traces; without them, by rates of the same form."""
    traced = _traced(week.traces) if week.traces else []
    world = World(week.seed, START, 0, week.days, HABITS, others={"x": week.users})
    world.rhythms = {
        place.number: traced[number % len(traced)] if traced else _made_up(week, place)
        for number, place in enumerate(world.places)
    }
    return world


def _traced(traces: Path) -> list[list[int]]:
    """The seconds at which each account posted, moved so that the measured part begins with the world, and on the same
    day of the week."""
    head, *lines = (json.loads(line) for line in traces.read_text(encoding="utf-8").splitlines())
    begin = head["start"] + head["history_days"] * 86_400
    moved = int(START.timestamp()) - begin
    found = []
    for line in lines:
        at, times = head["start"], []
        for gap in line["dt"]:
            at += gap
            times.append(at + moved)
        found.append(times)
    return found


def _made_up(week: Week, place: Place) -> list[int]:
    chance = chance_of(week.seed, "rhythm", place.number)
    rate = min(MOST_A_DAY, max(LEAST_A_DAY, exp(chance.gauss(*RATES))))
    pace = Pace(rate, True, -5, max(5, round(rate * HISTORY.days)), 0.005, 0.015)
    end = START + timedelta(days=week.days)
    return moments(chance, pace, int(START.timestamp()), int(end.timestamp()))


# The processes


def settings_of(home: str, database_url: str, address: str, caps: dict[str, int]) -> Settings:
    return Settings(
        home=Path(home),
        database_url=database_url,
        master_key="endure master key",
        is_private_allowed=True,
        base_urls=dict.fromkeys(X_SERVICES, address),
        daily_caps=caps,
    )


class Collector:
    """A process that collects what is due whenever it is told the time."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "endure.users", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def heard(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "done\n":
            raise RuntimeError(f"a collector ended with {self._process.wait()}")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def processes(home: str, database_url: str, address: str, caps: dict[str, int]) -> Iterator[list[Collector]]:
    collectors = [Collector(home, database_url, address, json.dumps(caps)) for _ in range(PROCESSES)]
    try:
        yield collectors
    finally:
        for collector in collectors:
            collector.close()


def collect(home: str, database_url: str, address: str, caps: str) -> None:
    """Runs in a process of its own: collects what is due whenever it is told to."""
    folder = Path(home).parent
    clock = SharedClock(folder / CLOCK)
    settings = settings_of(home, database_url, address, json.loads(caps))
    with (
        (folder / f"collector-{os.getpid()}.log").open("w", encoding="utf-8") as said,
        open_app(settings, "endure", clock=clock) as app,
    ):
        logs.configure("json", "info", said)
        for job in CRAWLER:
            app.store.jobs.announce(job.name, clock.now())
        while sys.stdin.readline():
            app.presence.heartbeat(clock.now())
            for job in CRAWLER:
                run_if_due(app, job)
            sys.stdout.write("done\n")
            sys.stdout.flush()


# The verdict


def _missing(app: App, world: World, sources: Sequence[Followed]) -> list[str]:
    """Posts that the platform still showed at the last good visit, and that are neither stored nor in a gap."""
    found = []
    for source in sources:
        place = world.places[source.place]
        progress = app.store.sources.with_progress(source.source_id)[1]
        if progress.last_success_at is None or progress.watermark is None:
            continue
        ids, gaps = _stored(app, source.source_id)
        for post in world.posts(place):
            until = progress.watermark.at
            is_owed = START + TICK < post.shown_from <= until and not post.is_removed(progress.last_success_at)
            is_stored = any(str(tweet_id(post, version.number)) in ids for version in post.versions)
            if is_owed and not is_stored and not any(begin <= post.shown_from <= end for begin, end in gaps):
                found.append(f"{post.id} of {post.shown_from:%d %H:%M:%S} is missing")
    return found


def _stored(app: App, source_id: int) -> tuple[set[str], list[tuple[datetime, datetime]]]:
    def question(tx: Any) -> set[str]:
        rows = tx.all(
            """
            SELECT i.external_id FROM sightings s JOIN items i ON i.id = s.item_id WHERE s.source_id = ?
            UNION ALL
            SELECT a.external_id FROM sightings s JOIN aliases a ON a.item_id = s.item_id WHERE s.source_id = ?
            """,
            source_id,
            source_id,
        )
        return {row[0] for row in rows}

    gaps = app.store.gaps.newest(source_id=source_id, limit=1000)
    return app.store.database.read(question), [(gap.from_at, gap.to_at) for gap in gaps]


def _costs(app: App, log: Path, caps: dict[str, int]) -> dict[str, dict[str, Any]]:
    """By service, in millionths of a dollar: the playground's bill, and our books."""
    asked, costs = read_log(log), {}
    for service in X_SERVICES:
        bill = bill_of(line for line in asked if line.path.startswith("/2/") == (service == "x"))
        spent = [day for day in app.store.spending.by_day("2000-01-01") if day.service == service]
        ours = Total(sum(day.amount for day in spent), sum(day.uncertain_amount for day in spent))
        bills = Counter[str]()
        for line in asked:
            if line.path.startswith("/2/") == (service == "x"):
                bills[day_of(line.at)] += line.cost
        is_within = service not in caps or max((*bills.values(), *_by_day(spent).values())) <= caps[service]
        costs[service] = {
            "bill": bill.amount,
            "hidden": bill.hidden,
            "ours": ours.amount,
            "uncertain": ours.uncertain_amount,
            "cap": caps.get(service),
            # What an answer cost that never came whole can only be bounded.
            "agrees": ours.amount == bill.plain and bill.hidden <= ours.uncertain_amount and is_within,
        }
    return costs


def _by_day(spent: Sequence[DaySpent]) -> Counter[str]:
    days = Counter[str]()
    for row in spent:
        days[row.day] += row.amount + row.uncertain_amount
    return days


def _billed(app: App, world: World, sources: Sequence[Followed], log: Path) -> dict[str, dict[str, list[int]]]:
    """By service and way to read: posts and calls that are paid for, at the very moments of our own visits."""
    totals = {service: {way: [0, 0] for way in ("ours", "fixed", "watermark", "optimum")} for service in X_SERVICES}
    for line in read_log(log):
        if line.cost:
            of_ours = totals["x" if line.path.startswith("/2/") else "twitterapi_io"]["ours"]
            of_ours[0] += len(line.entries)
            of_ours[1] += 1
    for source in sources:
        service = source.manner.settings["service"]
        shown = sorted(post.shown_from for post in world.posts(world.places[source.place]))
        before: int | None = None
        for at in _visits(app, source.source_id):
            there = bisect_right(shown, at)
            new = there - before if before is not None else min(there, FIXED)
            before = there
            for way, (posts, calls) in ways(new, min(there, REACH), PAGES[service]).items():
                totals[service][way][0] += posts
                totals[service][way][1] += calls
    return totals


def ways(new: int, there: int, page: int) -> dict[str, tuple[int, int]]:
    """Returns the posts and the calls that a visit is billed for that finds so many new ones: with a fixed limit, down
    to the watermark in whole pages, and if one knew what is new."""
    fixed = min(FIXED, there)
    down = ceil((new + 1) / page)
    return {
        "fixed": (fixed, max(1, ceil(fixed / page))),
        "watermark": (min(there, page * down), down),
        "optimum": (new, ceil(new / page)),
    }


def _visits(app: App, source_id: int) -> list[datetime]:
    sql = """
        SELECT started_at FROM run_sources
         WHERE source_id = ? AND outcome IN ('succeeded', 'unchanged') ORDER BY started_at
    """
    return [moment(row[0]) for row in app.store.database.read(lambda tx: tx.all(sql, source_id))]


if __name__ == "__main__":
    collect(*sys.argv[1:])
