"""NGA collected over real HTTP: boards of the playground as a guest meets them, and pages as they were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.model import Outcome, VisitResult
from catchment.playground.faults import FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.nga import NgaSimulator
from catchment.playground.sites.nga.payloads import ROWS_A_PAGE
from catchment.playground.sites.nga.threads import fid_of
from catchment.playground.world import Habits, World
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.conftest import CAPTURES
from tests.databases import sqlite_ready
from tests.hostile import Connection, Hostile, Seen, reply

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
MOST_ROUNDS = 60
"""A visit reads threads for four minutes; what is left is read by later ones."""

Row = dict[str, Any]


def opened(folder: Path, url: str, clock: HandClock) -> App:
    settings = Settings(
        home=folder,
        database_url=sqlite_ready(f"sqlite:///{folder / 'c.db'}"),
        base_urls={"nga": url},
        retry_waits=(0.5,),
        timeout_seconds=600,
    )
    app = open_app(settings, "test")
    app.clock = clock
    return app


def added(app: App, target: str, **settings: Any) -> int:
    now = app.clock.now()
    return follow(app.store, app.secrets, app.platforms, "nga_forum", target, now, settings=settings)[0].id


def collected(app: App, source_id: int, clock: HandClock) -> list[VisitResult]:
    """Visits until no thread waits to be read."""
    results = []
    for _ in range(MOST_ROUNDS):
        (result,) = app.scheduler().these([source_id], "test", "test")
        results.append(result)
        if result.outcome != Outcome.SUCCEEDED or not app.store.threads.count_waiting(source_id):
            return results
        clock.advance(60)
    raise AssertionError("threads are still waiting")


def stored(app: App) -> list[Row]:
    names = (
        "external_id", "title", "text", "author", "author_id", "created_at", "last_reply_at", "reply_count",
        "thread_id", "floor_number", "is_head", "is_deleted", "is_folded", "version",
    )  # fmt: skip
    query = f"SELECT {', '.join(names)} FROM items ORDER BY id"
    return [dict(zip(names, row, strict=True)) for row in app.store.database.read(lambda tx: tx.all(query))]


def squeezed(text: str | None) -> str:
    return "".join((text or "").split())


@pytest.fixture
def clock() -> HandClock:
    return HandClock(START + 2 * DAY)


def test_a_board_is_collected_as_a_guest_within_a_request_per_second(tmp_path: Path, clock: HandClock) -> None:
    world = World(5, START, 0, 4.0, Habits(edited=0.2, removed=0.1, hostile=0.0), others={"nga": 1})
    place = world.places[0]
    simulator = NgaSimulator(world)
    log = tmp_path / "asked.jsonl"
    with (
        Playground(world, clock, FaultPlan(5, 0.0), log=log) as playground,
        closing(opened(tmp_path, playground.url, clock)) as app,
    ):
        source_id = added(app, str(fid_of(place)), window_days=100_000)
        results = collected(app, source_id, clock)
        # Days later, when hidden threads were refused twice, nothing has changed: that costs the list's pages alone.
        for _ in range(2):
            clock.advance(3 * 86_400)
            results += collected(app, source_id, clock)
        asked_before = len(read_log(log))
        (again,) = app.scheduler().these([source_id], "test", "test")
        asked_again = [asked.path for asked in read_log(log)[asked_before:]]
        rows = {row["external_id"]: row for row in stored(app)}
    assert {result.outcome for result in results} == {Outcome.SUCCEEDED}
    at = clock.now()
    threads = [thread for thread in simulator.threads(place) if thread.is_there(at - timedelta(hours=2))]
    assert len(threads) > 20
    listed = -(-sum(thread.is_there(at) for thread in simulator.threads(place)) // ROWS_A_PAGE)
    lists = [path for path in asked_again if path.startswith("/thread.php")]
    # A guest may meet an advertisement, or need another cookie.
    assert listed <= len(lists) == len(asked_again) == again.requests <= listed + 2
    for thread in threads:
        head = rows[f"t{thread.tid}"]
        assert squeezed(head["title"])
        assert (head["is_head"], head["floor_number"]) == (True, 0)
    old = START + DAY
    readable = [thread for thread in threads if not thread.is_hidden]
    assert len(readable) < len(threads)
    floors = [floor for thread in readable for floor in thread.floors if floor.post.shown_from < old]
    kept = [floor for floor in floors if floor.pid and floor.is_there(at) and floor.is_there(old + DAY)]
    assert kept
    for floor in kept:
        row = rows[f"p{floor.pid}"]
        assert row["floor_number"] == floor.number
        texts = {squeezed(version.text) for version in floor.post.versions}
        assert any(squeezed(row["text"]).startswith(text) for text in texts)
    # Of any second that begins with a request, none has a second one.
    times = sorted(asked.at for asked in read_log(log))
    assert min(later - earlier for earlier, later in pairwise(times)) >= timedelta(seconds=1)


def test_what_was_served_in_foul_weather_is_stored_once(tmp_path: Path, clock: HandClock) -> None:
    """Two boards, visited twice a day; one request of ten meets a fault."""
    world = World(8, START, 0, 6.0, Habits(edited=0.2, removed=0.1, hostile=0.0), others={"nga": 2})
    log = tmp_path / "asked.jsonl"
    with (
        Playground(world, clock, FaultPlan(8, 0.1), log=log, slow_seconds=0.01) as playground,
        closing(opened(tmp_path, playground.url, clock)) as app,
    ):
        ids = [added(app, str(fid_of(place)), window_days=1) for place in world.places]
        for _ in range(4):
            for _ in range(2):
                app.scheduler().these(ids, "test", "test")
                clock.advance(300)
            clock.advance(12 * 3600 - 600)
        rows = stored(app)
    by_id = {row["external_id"]: row for row in rows}
    served = {entry.wire_id for asked in read_log(log) if asked.is_whole for entry in asked.entries}
    assert len(served) > 100
    assert served <= by_id.keys()
    assert len(by_id) == len(rows)
    numbered = [(row["thread_id"], row["floor_number"]) for row in rows if row["floor_number"] is not None]
    assert len(numbered) == len(set(numbered))
    assert {asked.fault for asked in read_log(log)} > {None}


# ── pages as they were recorded ───────────────────────────────────────────────────────────────────────────────────

FOLDER = CAPTURES / "nga"
LISTS = ["list-fid-7neg-output8.gbk.json", "list-fid-7neg-2019.utf8.html", "list-user205511-p1.utf8.html"]
THREADS = {
    44191387: ("read-44191387-p1.gbk.html", 19),
    46186286: ("read-46186286-p1-output8.gbk.json", 19),
    3593852: ("read-3593852-output8-deleted-floors.gbk.json", 2),
}
NOT_FOUND = "read-notfound.gbk.html"


def raw(name: str) -> bytes:
    body = (FOLDER / name).read_bytes()
    return body.decode().encode("gb18030") if ".utf8." in name else body


def recorded_threads(connection: Connection, seen: Seen) -> bool:
    """Sends the first page of a thread, whichever is requested."""
    tid = re.search(r"\btid=(\d+)", seen.path)
    name, _ = THREADS.get(int(tid[1]) if tid else 0, (NOT_FOUND, 0))
    return reply(raw(name), content_type="text/html; charset=utf-8")(connection, seen)


@pytest.fixture
def site() -> Iterator[Hostile]:
    with Hostile() as server:
        yield server


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no recorded answers beside the repository")
@pytest.mark.parametrize("name", LISTS)
def test_a_recorded_list_leaves_a_head_for_each_row_and_each_floor_once(
    tmp_path: Path, clock: HandClock, site: Hostile, name: str
) -> None:
    """The list is sent for every page, and of threads the first page that was recorded."""
    clock.advance(365 * 86_400)
    site.on("/thread.php", reply(raw(name), content_type="text/html"))
    site.on("/read.php", recorded_threads)
    with closing(opened(tmp_path, site.url, clock)) as app:
        source_id = added(app, "-7", window_days=100_000)
        results = collected(app, source_id, clock)
        rows = stored(app)
    assert results[0].outcome == Outcome.SUCCEEDED
    heads = [row for row in rows if row["is_head"]]
    tids = set(re.findall(r"(?:\"tid\":|'-?\d+',)(\d{6,})", raw(name).decode("gb18030")))
    assert {row["external_id"] for row in heads} <= {f"t{tid}" for tid in tids}
    assert len(heads) == {LISTS[0]: 51, LISTS[1]: 40, LISTS[2]: 7}[name]
    for row in heads:
        assert all(
            row[field] is not None for field in ("title", "author", "created_at", "last_reply_at", "reply_count")
        )
    for tid, (_, count) in THREADS.items():
        floors = [row for row in rows if row["thread_id"] == f"t{tid}"]
        if f"t{tid}" in {row["external_id"] for row in heads}:
            assert len(floors) == len({row["floor_number"] for row in floors}) == count
            for row in floors:
                assert all(row[field] for field in ("text", "author", "author_id", "created_at"))
    assert not [row for row in rows if "�" in f"{row['title']}{row['text']}{row['author']}"]
