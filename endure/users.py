"""A week of many users of X, through both services, by two processes: what is lost, and what does it cost?

Two processes, and a clock on which all work takes no time: every five minutes, both are told to collect what is due;
whoever waits moves the clock for all. The playground sends the bill. Each service has two keys, and the account of one
of them is used up on the way.

A second week has daily caps from its second day on, at half of what such a day costs without them. Then the caps are
lifted for some hours: what they had held back is read, and what is still missing must lie in a gap.

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
from catchment.credentials.secret import Secret
from catchment.jobs import run_if_due
from catchment.model import Record, Severity
from catchment.playground.faults import FaultPlan
from catchment.playground.log import Asked, bill_of, read_log
from catchment.playground.posting_rates import Pace, moments
from catchment.playground.rng import chance_of
from catchment.playground.server import Playground
from catchment.playground.sites.x import FLAT_PAGE, REACH, tweet_id
from catchment.playground.world import Habits, Place, World
from catchment.policy.spending import Total, day_of
from catchment.settings import Settings
from catchment.store.credentials import Terms
from endure.clocks import SharedClock
from endure.communities import CRAWLER
from endure.following import KEY, X_SERVICES, Followed, add_x_keys, followed, user
from endure.judge import by_place
from endure.missing import good_walks
from endure.stored import stored_of
from endure.trial import FAULTS, START, Verdict, database_of, judged, secrets_found

PROCESSES = 2
CLOCK, LOG = "clock", "asked.jsonl"
TICK = timedelta(minutes=5)
HISTORY = timedelta(days=28)
HABITS = Habits(restored=0.0, reverted=0.0, late=0.0, future=0.0, hostile=0.0)
CAPS_FROM = timedelta(days=1)
"""The first day is not capped: its first visits read the history of all users, and cost more than the days after it."""
LIFTED = timedelta(hours=3)
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


class Caps(Record, frozen=True):
    """Daily caps, in millionths of a dollar by service, and when they hold."""

    amounts: dict[str, int]
    from_at: datetime
    until: datetime


def run(week: Week, folder: Path) -> Verdict:
    """Runs the week twice: without caps, and with caps at half of what it cost."""
    free = _live(week, folder / "free")
    capped = _live(week, folder / "capped", caps_at_half(week, read_log(folder / "free" / LOG)))
    figures = free.figures | {"capped": capped.figures}
    return Verdict(figures, (*free.details, *capped.details), free.is_good and capped.is_good)


def caps_at_half(week: Week, asked: Sequence[Asked]) -> Caps:
    """Returns daily caps at half of what the days after the first cost. In a trial of a day or less, they come with its
    second half, and leave room for what was spent before."""
    end = START + timedelta(days=week.days)
    from_at = min(START + CAPS_FROM, START + timedelta(days=week.days / 2))
    days = len({day_of(from_at + timedelta(hours=hour)) for hour in range(ceil((end - from_at) / timedelta(hours=1)))})
    amounts = {}
    for service in X_SERVICES:
        charged = [line for line in asked if _service(line) == service]
        before = sum(line.cost for line in charged if day_of(line.at) == day_of(from_at) and line.at < from_at)
        after = sum(line.cost for line in charged if line.at >= from_at)
        amounts[service] = max(1, before + after // 2 // days)
    return Caps(amounts, from_at, end)


def _live(week: Week, folder: Path, caps: Caps | None = None) -> Verdict:
    home, log = folder / "home", folder / LOG
    home.mkdir(parents=True, exist_ok=True)
    world = world_of(week)
    with ExitStack() as ending:
        database = database_of(week.database, folder)
        ending.callback(database.close)
        clock = SharedClock(folder / CLOCK, START)
        # Slow answers are slow on the wall, which tells nothing here; an outage would only save money.
        faults = FaultPlan(week.seed, week.fault_rate, outage_rate=0.0)
        playground = ending.enter_context(Playground(world, clock, faults, log=log, slow_seconds=0.0))
        settings = settings_of(str(home), database.url, playground.url, {})
        with open_app(settings, "endure", clock=clock) as app:
            add_x_keys(app)
            _add_limited_keys(app, week)
            sources = [
                followed(app, place, user(world, place, X_SERVICES[place.number % len(X_SERVICES)]))
                for place in world.places
            ]
        spent_before: dict[str, int] = {}
        fullest: dict[str, int] = {}
        for until, amounts in _phases(world, caps):
            if caps is not None and amounts:
                with open_app(settings, "judge", clock=clock) as app:
                    spent_before = _fullest_days(app, read_log(log), caps)
            with processes(str(home), database.url, playground.url, amounts) as collectors:
                _collect_until(until, clock, collectors)
            if caps is not None and amounts:
                with open_app(settings, "judge", clock=clock) as app:
                    fullest = _fullest_days(app, read_log(log), caps)
        figures, details = judged(settings, world, sources, log, slack=timedelta())
        secrets = secrets_found((folder, *database.folders()), settings, _limited_keys(week).values())
        asked = read_log(log)
        with open_app(settings, "judge", clock=clock) as app:
            missing, starved = holes(app, world, sources, asked), never_read(app, sources)
            costs = _costs(app, asked)
            billed = _billed(app, world, sources, asked)
            used_up = _used_up(app, asked)
            gaps = Counter(
                gap.cause for is_open in (True, False) for gap in app.store.gaps.newest(10_000, is_open=is_open)
            )
    # Stricter than where some places are gone before anybody comes: here, everybody is there on the first day.
    figures |= {"unvisited": len(starved)}
    figures |= {"secrets": len(secrets), "missing": len(missing), "gaps_by_cause": dict(gaps), "cost": costs}
    figures |= {"billed": billed, "used_up": used_up}
    if caps is not None:
        figures |= {"caps": caps.amounts, "fullest_days": fullest}
    must_be_none = (*FAULTS, "missing", "unvisited")
    is_good = not any(figures[name] for name in must_be_none) and all(cost["agrees"] for cost in costs.values())
    if caps is not None:
        # In a short trial, a day may have cost more than its cap before the cap came: then nothing is added to it.
        allowed = {service: max(cap, spent_before[service]) for service, cap in caps.amounts.items()}
        is_good = is_good and all(fullest[service] <= allowed[service] for service in allowed)
    return Verdict(figures, tuple(details + secrets + missing + starved), is_good)


def _phases(world: World, caps: Caps | None) -> list[tuple[datetime, dict[str, int]]]:
    """Returns until when the collectors work with which caps."""
    if caps is None:
        return [(world.end, {})]
    return [(caps.from_at, {}), (caps.until, caps.amounts), (caps.until + LIFTED, {})]


def _collect_until(until: datetime, clock: SharedClock, collectors: Sequence[Collector]) -> None:
    while clock.now() < until:
        clock.go_on(min(clock.now() + TICK, until))
        for collector in collectors:
            collector.go()
        for collector in collectors:
            collector.heard()


def _limited_keys(week: Week) -> dict[str, str]:
    """By service, a key whose account is used up before the week is over."""
    users = max(1, week.users // len(X_SERVICES))
    # X: less than the first visits need; TwitterAPI.io: a few visits a day for each user, of 48.
    return {
        "x": f"cap-{10 * users}-endureKeyOfX",
        "twitterapi_io": f"credits-{ceil(1_000 * users * week.days)}-endureKeyOfTwitterApi",
    }


def _add_limited_keys(app: App, week: Week) -> None:
    for service, key in _limited_keys(week).items():
        terms = Terms(is_shared=True)
        app.secrets.add(service, f"{KEY}-limited-{service}", Secret.parse(key), app.clock.now(), terms=terms)


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


def holes(app: App, world: World, sources: Sequence[Followed], asked: Sequence[Asked]) -> list[str]:
    """Returns the posts that the platform showed and that are neither stored, nor inside a gap, nor below the last page
    of a first visit that is not over.

    A source owes everything from the oldest post on that its own first visit stored, up to its last good visit; what
    was removed before that visit was not shown any more.
    """
    said, found = by_place(asked), []
    for source in sources:
        place = world.places[source.place]
        stored = stored_of(app.store, [source])
        visits = [visit for visit in stored.visits if visit.outcome in ("succeeded", "unchanged")]
        walks = good_walks(visits, said.get(place.number, ()))
        ids = {name for item in stored.items for name in item.ids}
        posts = world.posts(place)
        held = {
            post.id for post in posts if any(str(tweet_id(post, version.number)) in ids for version in post.versions)
        }
        if not walks or not held:
            continue
        begin, end = min(post.shown_from for post in posts if post.id in held), walks[-1].began
        for post in posts:
            is_owed = begin < post.shown_from <= end and not post.is_removed(end)
            is_in_gap = any(gap.from_at <= post.shown_from <= gap.to_at for gap in stored.gaps)
            if is_owed and post.id not in held and not is_in_gap:
                found.append(f"{post.id} of {post.shown_from:%d %H:%M:%S} ({source.manner.target}) is missing")
    return found


def never_read(app: App, sources: Sequence[Followed]) -> list[str]:
    """Returns the users of whom no visit succeeded."""
    return [f"{source.manner.target} was never read" for source in sources if not _visits(app, source.source_id)]


def _service(line: Asked) -> str:
    return "x" if line.path.startswith("/2/") else "twitterapi_io"


def _used_up(app: App, asked: Sequence[Asked]) -> dict[str, int]:
    """By service: how often an account was asked that had nothing left, 402 at one and a monthly cap at the other; and
    the most urgent alerts that told of it."""
    counted = dict.fromkeys(X_SERVICES, 0)
    for line in asked:
        # Only what the account itself refuses has no fault of the playground's behind it.
        if line.fault is None and line.status in (402, 429):
            counted[_service(line)] += 1
    alerts = [alert for alert in app.store.alerts.page(1000, include_closed=True) if alert.severity == Severity.P0]
    return counted | {"alerts": len(alerts)}


def _costs(app: App, asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    """By service, in millionths of a dollar: the playground's bill, and our books."""
    costs = {}
    for service in X_SERVICES:
        bill = bill_of(line for line in asked if _service(line) == service)
        spent = [day for day in app.store.spending.by_day("2000-01-01") if day.service == service]
        ours = Total(sum(day.amount for day in spent), sum(day.uncertain_amount for day in spent))
        costs[service] = {
            "bill": bill.amount,
            "hidden": bill.hidden,
            "ours": ours.amount,
            "uncertain": ours.uncertain_amount,
            # What an answer cost that never came whole can only be bounded.
            "agrees": ours.amount == bill.plain and bill.hidden <= ours.uncertain_amount,
        }
    return costs


def _fullest_days(app: App, asked: Sequence[Asked], caps: Caps) -> dict[str, int]:
    """By service: the most that any day with a cap cost, by the bill or by our books."""
    days: dict[str, Counter[tuple[str, str]]] = {service: Counter() for service in X_SERVICES}
    for line in asked:
        days[_service(line)]["bill", day_of(line.at)] += line.cost
    for row in app.store.spending.by_day(day_of(caps.from_at)):
        days[row.service]["books", row.day] += row.amount + row.uncertain_amount
    first = day_of(caps.from_at)
    return {
        service: max((amount for (_, day), amount in spent.items() if day >= first), default=0)
        for service, spent in days.items()
    }


def _billed(
    app: App, world: World, sources: Sequence[Followed], asked: Sequence[Asked]
) -> dict[str, dict[str, list[int]]]:
    """By service and way to read: posts and calls that are paid for, at the very moments of our own visits."""
    totals = {service: {way: [0, 0] for way in ("ours", "fixed", "watermark", "optimum")} for service in X_SERVICES}
    for line in asked:
        if line.cost:
            of_ours = totals[_service(line)]["ours"]
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
