"""A month of a busy board that two processes read while they are killed: is every floor stored, is every hole known?

All processes share a clock on which work takes no time, so that nothing but the budget keeps requests apart: at most
one in any second. The playground counts them, and knows which floors were there.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from catchment import logs
from catchment.app import App, open_app
from catchment.clock import moment
from catchment.jobs import recover_leases
from catchment.model import Answer, Record
from catchment.platforms.nga import KINDS
from catchment.playground.faults import FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.nga import NgaSimulator
from catchment.playground.sites.nga.threads import BoardThread, fid_of
from catchment.playground.world import Version, World
from catchment.policy.threads import window
from catchment.settings import Settings
from endure.clocks import LockstepClock
from endure.following import BOARD_LOOK, BOARD_VISIT, Followed, Manner, followed
from endure.judge import is_subsequence
from endure.missing import WALKS_ENOUGH, good_walks
from endure.stored import Visit, plain
from endure.trial import FAULTS, START, Verdict, database_of, judged, most_within, secrets_found

COLLECTORS = 2
TICK = timedelta(minutes=10)
WINDOW_DAYS = 3
REST = timedelta(days=2)
"""The last days pass without faults and kills, so that what waits can be read."""
THREADS_A_DAY = 0.119
"""Of a board that is not busy."""
GIANT_PAGES = 1_200
REQUESTS_A_THREAD = 5
"""About so many does a month cost: kills are spread over them."""


class Month(Record, frozen=True):
    threads: int
    days: float
    kills: int
    fault_rate: float
    seed: int
    database: str

    @property
    def busy(self) -> float:
        return self.threads / self.days / THREADS_A_DAY


def run(month: Month, folder: Path) -> Verdict:
    home, log = folder / "home", folder / "asked.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    world = World(
        *(month.seed, START, 0, month.days),
        busy=month.busy,
        others={"nga": 1},
        giant_pages=GIANT_PAGES,
        most_a_day=inf,
    )
    with ExitStack() as ending:
        database = database_of(month.database, folder)
        ending.callback(database.close)
        clock = LockstepClock(folder / "clock", START, COLLECTORS)
        # Forked before anything here has threads or connections.
        port, playground = _playground(month, world, clock, log)
        ending.callback(_end, playground)
        settings = Settings(
            home=home,
            database_url=database.url,
            master_key="endure master key",
            is_private_allowed=True,
            base_urls={"nga": f"http://127.0.0.1:{port}"},
        )
        source = _board(settings, world, clock)
        kills = _killed(month, settings, world, clock, log, folder / "collectors.log")
        figures, details = judged(settings, world, [source], log, slack=timedelta())
        threads, more = _boards_figures(settings, world, clock)
        history, told = _history_figures(settings, world, clock, log)
        secrets = secrets_found((folder, *database.folders()), settings)
    figures |= {"threads": threads, "kills": kills, **more, **history, "secrets": len(secrets), **_pace(log)}
    is_good = not any(figures[name] for name in (*FAULTS, *history, "false_holes", "waiting"))
    is_within = figures["most_in_a_second"] <= 1 and figures["giants_skipped"] == 1
    return Verdict(figures, tuple(details + told + secrets), is_good and is_within)


# ── the processes ─────────────────────────────────────────────────────────────────────────────────────────────────


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _playground(month: Month, world: World, clock: LockstepClock, log: Path) -> tuple[int, int]:
    """Returns its port and its process."""
    reading, writing = os.pipe()

    def serve() -> None:
        faults = Calming(month, clock, world.end - REST)
        with Playground(world, clock, faults, log=log, slow_seconds=0.0) as playground:
            os.write(writing, f"{playground.port}\n".encode())
            signal.pause()

    pid = _forked(serve)
    with os.fdopen(reading) as said:
        os.close(writing)
        return int(said.readline()), pid


class Calming(FaultPlan):
    """Faults until the last days."""

    def __init__(self, month: Month, clock: LockstepClock, until: datetime) -> None:
        super().__init__(month.seed, month.fault_rate, outage_rate=0.0)
        self._until = until

    def of(self, path: str, credential: str | None, times: int, at: datetime, host: str = "") -> Any:
        return super().of(path, credential, times, at, host) if at < self._until else None


def _board(settings: Settings, world: World, clock: LockstepClock) -> Followed:
    place = world.places[0]
    manner = Manner(
        *("nga_forum", str(fid_of(place)), {"window_days": WINDOW_DAYS}, None),
        visits=BOARD_VISIT,
        looks=BOARD_LOOK,
        has_threads=True,
    )
    with open_app(settings, "endure", clock=clock) as app:
        return followed(app, place, manner)


def _killed(month: Month, settings: Settings, world: World, clock: LockstepClock, log: Path, out: Path) -> int:
    """Lets the collectors live until the world ends; kills one after so many requests. Returns how often."""
    chance = random.Random(month.seed)
    between = month.threads * REQUESTS_A_THREAD / max(1, month.kills + 1)
    collectors = {slot: _collector(settings, world, clock, slot, out) for slot in range(1, COLLECTORS + 1)}
    kills, next_kill = 0, chance.uniform(0.2, 1.0) * between
    requests = 0
    with log.open("rb") as lines:
        while collectors:
            requests += sum(1 for line in lines if line.endswith(b"\n"))
            if kills < month.kills and requests >= next_kill and clock.now() < world.end - REST:
                slot = chance.choice(list(collectors))
                _end(collectors[slot])
                collectors[slot] = _collector(settings, world, clock, slot, out)
                kills, next_kill = kills + 1, next_kill + chance.uniform(0.2, 1.6) * between
            for slot, pid in list(collectors.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    clock.leave(slot)
                    del collectors[slot]
                    if status:
                        raise RuntimeError(f"a collector ended with {status}; see {out}")
            time.sleep(0.005)
    return kills


def _collector(settings: Settings, world: World, clock: LockstepClock, slot: int, out: Path) -> int:
    clock.begin(slot)

    def live() -> None:
        clock.take(slot)
        with out.open("a", encoding="utf-8") as said:
            logs.configure("json", "info", said)

            def send(*request: Any, **more: Any) -> Answer:
                with clock.sending():
                    return app.fetch(*request, **more)

            with open_app(settings, "endure", clock=clock, fetch=send) as app:
                # What the one before it left.
                recover_leases(app)
                while clock.now() < world.end:
                    next_tick = clock.now() + TICK
                    _tick(app)
                    clock.idle(next_tick)

    return _forked(live)


def _tick(app: App) -> None:
    app.presence.heartbeat(app.clock.now())
    app.scheduler().due("collect-due", "schedule")
    app.visitor().read_threads("schedule", app.presence.owner_id)
    app.rechecks().run("schedule")


# ── the verdict ───────────────────────────────────────────────────────────────────────────────────────────────────


def _boards_figures(settings: Settings, world: World, clock: LockstepClock) -> tuple[int, dict[str, Any]]:
    """What the tables of threads say, and how many recorded holes were floors that the board had."""
    threads = {f"t{thread.tid}": thread for thread in NgaSimulator(world).threads(world.places[0])}
    with open_app(replace(settings), "judge", clock=clock) as app:
        rows = app.store.database.read(
            lambda tx: tx.all(
                """
                SELECT t.thread_id, h.floor_number, h.noticed_at
                  FROM thread_holes h JOIN threads t ON t.id = h.thread_row_id
                """
            )
        )
        counts = app.store.database.read(
            lambda tx: tx.one(
                "SELECT count(*), sum(CASE WHEN skipped_since > 0 THEN 1 ELSE 0 END), count(read_reason) FROM threads"
            )
        )
    false_holes = 0
    for thread_id, number, noticed_at in rows:
        floors = threads[thread_id].floors
        floor = next(islice(floors, number, None), None)
        false_holes += floor is not None and floor.is_there(moment(noticed_at))
    assert counts is not None
    return counts[0], {
        "holes": len(rows),
        "false_holes": false_holes,
        "giants_skipped": counts[1],
        "waiting": counts[2],
    }


def _history_figures(
    settings: Settings, world: World, clock: LockstepClock, log: Path
) -> tuple[dict[str, int], list[str]]:
    """Titles that are not in the history, or that no thread ever had; and floors that were read past, and removed
    later: what is gone by the end is owed as well, once a whole reading of its thread could have it."""
    with open_app(replace(settings), "judge", clock=clock) as app:
        stored = app.store.database.read(_board_rows)
    lists = [line for line in read_log(log) if line.path.startswith("/thread.php")]
    walks = good_walks(stored.visits, lists)
    zone = KINDS[0].forum
    assert zone is not None
    wrong, missed = [], []
    for thread in NgaSimulator(world).threads(world.places[0]):
        name = f"t{thread.tid}"
        listed = [
            walk.began
            for walk in walks
            if thread.head.shown_from >= window(zone, WINDOW_DAYS, walk.began).starts_at and thread.is_there(walk.began)
        ]
        if name in stored.titles:
            wrong += wrong_titles(name, stored.titles[name], thread.head.versions, listed)
        elif len(listed) >= WALKS_ENOUGH:
            wrong.append(f"{name} was listed {len(listed)} times and is not stored")
        if not thread.more_floors and not thread.is_hidden:
            missed += missed_floors(thread, stored)
    return {"wrong_titles": len(wrong), "floors_read_past": len(missed)}, wrong + missed


class BoardRows(Record, frozen=True):
    titles: dict[str, list[str]]
    """The titles of each thread, the oldest first."""
    ids: frozenset[str]
    readings: dict[str, list[tuple[datetime, datetime]]]
    """When a thread was read to its end, without an error: from when to when."""
    visits: tuple[Visit, ...]
    holes: frozenset[tuple[str, int]] = frozenset()
    """Threads and numbers of floors that are known to have been missing when their page was read."""


def _board_rows(tx: Any) -> BoardRows:
    titles: dict[str, list[str]] = {}
    for name, title in tx.all(
        """
        SELECT i.external_id, r.title FROM revisions r JOIN items i ON i.id = r.item_id WHERE i.is_head
         ORDER BY r.item_id, r.version
        """
    ):
        titles.setdefault(name, []).append(plain(title))
    for name, title in tx.all("SELECT external_id, title FROM items WHERE is_head"):
        titles.setdefault(name, []).append(plain(title))
    readings: dict[str, list[tuple[datetime, datetime]]] = {}
    for name, started_at, finished_at in tx.all(
        """
        SELECT t.thread_id, r.started_at, r.finished_at FROM thread_runs r JOIN threads t ON t.id = r.thread_row_id
         WHERE r.error_code IS NULL AND NOT r.is_capped AND r.page_count > 0 AND r.finished_at IS NOT NULL
        """
    ):
        readings.setdefault(name, []).append((moment(started_at), moment(finished_at)))
    visits = tuple(
        Visit(row[0], False, moment(row[1]), moment(row[2]), row[3], None, 0, True)
        for row in tx.all(
            """
            SELECT s.source_id, s.started_at, s.finished_at, s.outcome FROM run_sources s JOIN runs r ON r.id = s.run_id
             WHERE r.job = 'collect-due' AND s.finished_at IS NOT NULL AND s.outcome = 'succeeded' ORDER BY s.started_at
            """
        )
    )
    ids = frozenset(row[0] for row in tx.all("SELECT external_id FROM items"))
    holes = frozenset(
        (row[0], row[1])
        for row in tx.all(
            "SELECT t.thread_id, h.floor_number FROM thread_holes h JOIN threads t ON t.id = h.thread_row_id"
        )
    )
    return BoardRows(titles, ids, readings, visits, holes)


def wrong_titles(
    name: str, stored: Sequence[str], versions: Sequence[Version], listed: Sequence[datetime]
) -> list[str]:
    """What is wrong with the titles of a thread that good walks listed at these times."""
    held = [title for title, before in zip(stored, ["", *stored], strict=False) if title != before]
    had = [plain(version.title) for version in versions]
    if not is_subsequence(held, had):
        return [f"{name}: stored titles {held!r:.300}, had {had!r:.300}"]
    ends = [*(version.from_at for version in versions[1:]), datetime.max.replace(tzinfo=UTC)]
    shown = [
        plain(version.title)
        for version, end in zip(versions, ends, strict=True)
        if sum(version.from_at <= at < end for at in listed) >= WALKS_ENOUGH
    ]
    lacking = [title for title in shown if title not in held]
    return [f"{name}: {title!r:.100} is not among its titles {held!r:.300}" for title in lacking]


def missed_floors(thread: BoardThread, stored: BoardRows) -> list[str]:
    """Floors that were there during a whole reading of their thread. Not those that came back after their page had been
    read without them: they are known to be missing, and whether that was so then is judged apart."""
    readings = stored.readings.get(f"t{thread.tid}", [])
    return [
        f"p{floor.pid} was there when t{thread.tid} was read, and is not stored"
        for floor in thread.floors[1:]
        if f"p{floor.pid}" not in stored.ids
        and (f"t{thread.tid}", floor.number) not in stored.holes
        and any(
            floor.post.shown_from < began and floor.is_there(ended) and thread.is_there(ended)
            for began, ended in readings
        )
    ]


def _pace(log: Path) -> dict[str, int]:
    """By the playground's own count; a request for robots.txt is one, too."""
    times: Sequence[datetime] = sorted(line.at for line in read_log(log))
    return {"most_in_a_second": most_within(times, timedelta(seconds=1))}
