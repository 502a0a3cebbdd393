"""A week of many communities at the intervals of their tiers, with one key: is the budget ever exceeded?

One process, and a clock on which all work takes no time: whatever is due in a minute is asked for in the same moment,
so that nothing but the budget keeps requests apart. The playground counts them; what is stored is judged as always.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.jobs import JOBS, run_if_due
from catchment.model import Record
from catchment.platforms import reddit
from catchment.playground.faults import FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import World
from catchment.settings import Settings
from catchment.store.credentials import Terms
from endure.clocks import PatientClock
from endure.following import KEY, community, followed
from endure.trial import FAULTS, START, Verdict, database_of, judged, most_within, secrets_found

TICK = timedelta(minutes=1)
CRAWLER = tuple(job for job in JOBS if job.queue == "crawler")
"""The jobs that ask anything of a platform."""


class Week(Record, frozen=True):
    communities: int
    days: float
    fault_rate: float
    seed: int
    database: str


def run(week: Week, folder: Path) -> Verdict:
    home, log = folder / "home", folder / "asked.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    world = World(week.seed, START, 0, week.days, others={"reddit": week.communities})
    with ExitStack() as ending:
        database = database_of(week.database, folder)
        ending.callback(database.close)
        clock = PatientClock(START)
        # Outages would only leave the budget alone; and slow answers are slow on the wall, which tells nothing here.
        faults = FaultPlan(week.seed, week.fault_rate, outage_rate=0.0)
        playground = ending.enter_context(Playground(world, clock, faults, log=log, slow_seconds=0.0))
        settings = Settings(
            home=home,
            database_url=database.url,
            master_key="endure master key",
            is_private_allowed=True,
            base_urls={"reddit": playground.url},
        )
        with open_app(settings, "endure") as app:
            app.clock = clock
            # In the pool, for whoever needs one; its tier is all that a community goes by.
            terms = Terms(is_shared=True)
            app.secrets.add("reddit", KEY, Secret.parse(":".join(client())), clock.now(), terms=terms)
            sources = [followed(app, place, community(place, {}).replace(has_key=False)) for place in world.places]
            _live(app, clock, world.end)
            tiers = _tiers(app, week.days)
        figures, details = judged(settings, world, sources, log, slack=timedelta())
        secrets = secrets_found((folder, *database.folders()), settings)
    figures |= {"secrets": len(secrets), "tiers": tiers, **_counted(log)}
    # How much of the gaps was none is told, and not judged: there are few, and of a walk that broke off nobody can say
    # how far it came.
    is_good = not any(figures[name] for name in FAULTS) and figures["most_in_a_window"] <= _limit()
    return Verdict(figures, tuple(details + secrets), is_good)


def _live(app: App, clock: PatientClock, until: datetime) -> None:
    """Minute by minute, whatever is due."""
    for job in CRAWLER:
        app.store.jobs.announce(job.name, clock.now())
    while clock.now() < until:
        next_tick = clock.now() + TICK
        app.presence.heartbeat(clock.now())
        for job in CRAWLER:
            run_if_due(app, job)
        clock.go_on(next_tick)


def _limit() -> int:
    assert reddit.BUDGET is not None
    return reddit.BUDGET.limit


def _counted(log: Path) -> dict[str, Any]:
    """By the playground's own count: the most that one client asked for within any window, and how often it was told
    to wait for no other reason than that."""
    assert reddit.BUDGET is not None
    asked = read_log(log)
    clients = {request.credential for request in asked if request.credential is not None}
    times = {name: [request.at for request in asked if request.credential == name] for name in clients}
    window = timedelta(seconds=reddit.BUDGET.window_seconds)
    return {
        "most_in_a_window": max((most_within(moments, window) for moments in times.values()), default=0),
        "told_to_wait": sum(1 for request in asked if request.status == 429 and request.fault is None),
    }


def _tiers(app: App, days: float) -> dict[str, Any]:
    """How many communities came to be in each tier, and how often a day each of them was visited."""
    rows = app.store.database.read(
        lambda tx: tx.all(
            """
            SELECT p.tier, count(DISTINCT p.source_id), count(s.run_id)
              FROM progress p JOIN run_sources s ON s.source_id = p.source_id JOIN runs r ON r.id = s.run_id
             WHERE r.job = 'collect-due' AND s.outcome IN ('succeeded', 'unchanged')
             GROUP BY p.tier
            """
        )
    )
    counted = Counter({row[0]: row[1] for row in rows})
    return {
        str(tier): {"communities": counted[tier], "visits_a_day": round(visits / counted[tier] / days, 1)}
        for tier, _, visits in sorted(rows, key=lambda row: str(row[0]))
    }
