"""JSON APIs and forums of the playground, followed by the whole collector through fair weather and foul."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from catchment.app import open_app
from catchment.model import Outcome, VisitResult
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites import discourse, json_api
from catchment.playground.world import Place, World
from catchment.settings import Settings
from endure.following import Followed, followed, manners
from endure.judge import Findings, Trial
from endure.stored import stored_of
from tests.clocks import HandClock
from tests.databases import sqlite_ready

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@cache
def world_of(others: tuple[tuple[str, int], ...]) -> World:
    """One for all tests: it never changes, and remembers what it was asked."""
    return World(11, START, 0, 7.0, busy=30.0, others=dict(others))


class Scene:
    """Busy places of the playground, all of them followed."""

    def __init__(self, folder: Path, faults: FaultPlan, others: dict[str, int]) -> None:
        self.clock = HandClock(START + 24 * HOUR)
        self.world = world_of(tuple(others.items()))
        self.log = folder / "asked.jsonl"
        self.playground = Playground(self.world, self.clock, faults, log=self.log, slow_seconds=0.01)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(f"sqlite:///{folder / 'c.db'}"),
            is_private_allowed=True,
            base_urls={"nga": self.playground.url},
            retry_waits=(),
            timeout_seconds=600,
            host_requests_per_second=1000,
        )
        self.app = open_app(settings, "test")
        self.app.clock = self.clock
        self.sources = {place.number: self._follow(place) for place in self.world.places}

    def _follow(self, place: Place) -> Followed:
        (manner,) = manners(self.world, place, self.playground.port)
        return followed(self.app, place, manner)

    def visit(self, *numbers: int, after: timedelta = HOUR) -> list[VisitResult]:
        self.clock.advance(after.total_seconds())
        ids = [self.sources[number].source_id for number in numbers or self.sources]
        return self.app.scheduler().these(ids, "test", "test")

    def findings(self) -> dict[int, Findings]:
        asked = defaultdict(list)
        for line in read_log(self.log):
            asked[line.place].append(line)
        return {
            place.number: Trial(
                self.world,
                place,
                [self.sources[place.number]],
                asked[place.number],
                stored_of(self.app.store, [self.sources[place.number]]),
                timedelta(minutes=5),
            ).findings()
            for place in self.world.places
        }

    def stored(self, place: Place) -> set[str]:
        """The ids of what is stored of a place."""
        source_id = self.sources[place.number].source_id
        return {item.external_id for item in self.app.store.items.newest(10_000, source_id=source_id)}

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    faults, others = getattr(request, "param", (FaultPlan(1, 0.0), {"json_api": 4, "discourse": 2}))
    scene = Scene(tmp_path, faults, others)
    yield scene
    scene.close()


def blame(scene: Scene) -> list[str]:
    return [
        f"place {number} {name}: {words:.300}"
        for number, found in scene.findings().items()
        for name in ("lost", "twice", "wrong", "unexplained")
        for words in getattr(found, name)
    ]


def came_out(scene: Scene, place: Place, hours: float) -> int:
    """How many posts came out in the last hours."""
    now = scene.clock.now()
    return sum(1 for post in scene.world.posts(place) if now - hours * HOUR < post.shown_from <= now)


def test_pages_are_followed_down_to_the_watermark_and_no_further(scene: Scene) -> None:
    assert {result.outcome for result in scene.visit()} == {Outcome.SUCCEEDED}
    asked = len(read_log(scene.log))
    scene.visit(after=timedelta(minutes=5))
    # Of a forum the stream, the list, and topics with new replies.
    listings = [line.place for line in read_log(scene.log)[asked:] if "/t/" not in line.path]
    assert max(Counter(listings).values()) <= 3
    later = {result.source_id: result.requests for result in scene.visit(after=8 * HOUR)}
    busiest = max(scene.world.places, key=lambda place: came_out(scene, place, 8) if place.form == "json_api" else 0)
    assert came_out(scene, busiest, 8) > 2 * json_api.PAGE_SIZE
    assert later[scene.sources[busiest.number].source_id] > 2
    assert blame(scene) == []
    assert scene.app.store.gaps.page() == []


def test_what_is_beyond_an_apis_reach_lies_in_a_gap_and_a_forum_reaches_everything(scene: Scene) -> None:
    scene.visit()
    scene.visit(after=96 * HOUR)
    apis = [place for place in scene.world.places if place.form == "json_api"]
    beyond = [place for place in apis if came_out(scene, place, 96) > 1.2 * json_api.reach(place)]
    assert beyond
    gaps = {gap.source_id: (gap.certainty, gap.cause) for gap in scene.app.store.gaps.page()}
    assert gaps == {scene.sources[place.number].source_id: ("known", "cap") for place in beyond}
    assert blame(scene) == []


@pytest.mark.parametrize("scene", [(FaultPlan(5, 0.2), {"nga": 1, "discourse": 1})], indirect=True)
def test_every_floor_that_boards_showed_is_stored_in_foul_weather(scene: Scene) -> None:
    """One of six visits comes late, so that the threads of several are read at once, and threads leave the window."""
    for number in range(11):
        if number == 8:
            scene.playground.faults.rate = scene.playground.faults.outage_rate = 0.0
        scene.visit(after=(6 if number % 6 == 5 else 1.5) * HOUR)
        scene.app.visitor().read_threads("test", scene.app.presence.owner_id)
        scene.app.rechecks().run("test")
    assert blame(scene) == []
    counted = "SELECT count(*), sum(is_folded), sum(is_deleted), max(floor_number) FROM items"
    count, folded, deleted, highest = scene.app.store.database.read(lambda tx: tx.one(counted))
    assert count > 500
    assert min(folded, deleted) > 0
    assert highest > 20


OLD_COPIES = [
    Cue(fault="stale", path=path, from_at=START + 39 * HOUR, to_at=START + 41 * HOUR)
    for path in ("/read.php", "/discourse/*/t/*")
]


@pytest.mark.parametrize("scene", [(FaultPlan(5, 0.0, OLD_COPIES), {"nga": 1, "discourse": 1})], indirect=True)
def test_threads_of_which_old_copies_came_are_read_again(scene: Scene) -> None:
    """The fourth of six visits gets nothing but copies that are six hours old."""
    for _ in range(6):
        scene.visit(after=4 * HOUR)
        scene.app.visitor().read_threads("test", scene.app.presence.owner_id)
    assert blame(scene) == []
    questions = (
        "SELECT count(DISTINCT source_id), count(*) FROM thread_runs WHERE error_code = 'STALE_ANSWER'",
        # What is hidden is not read.
        "SELECT max(stale_count), count(next_page) FROM threads WHERE gone_since IS NULL",
    )
    (boards, stale), after = (scene.app.store.database.read(lambda tx, sql=sql: tx.one(sql)) for sql in questions)
    assert (boards, after) == (2, (0, 0))
    assert stale > 5


LOOP = Cue(fault="looping_cursor", path="/discourse/*", from_at=START + 48 * HOUR, to_at=START + 80 * HOUR)


@pytest.mark.parametrize("scene", [(FaultPlan(1, 0.0, (LOOP,)), {"discourse": 2})], ids=["looping"], indirect=True)
def test_a_gap_of_a_forum_is_repaired_by_reading_its_posts_before_the_ones_shown(scene: Scene) -> None:
    scene.visit()
    scene.visit(after=48 * HOUR)
    gaps = scene.app.store.gaps.page()
    assert {gap.cause for gap in gaps} == {"cap"}
    # While its pages lead back, nothing is proven.
    assert scene.app.floor_audit().run("test", is_repairing=True).repaired_gap_count == 0
    scene.clock.advance(10 * 3600)
    audit = scene.app.floor_audit().run("test", is_repairing=True)
    assert (audit.gap_count, audit.repaired_gap_count, scene.app.store.gaps.page()) == (len(gaps), len(gaps), [])
    now, simulator = scene.clock.now(), discourse.DiscourseSimulator(scene.world)
    missing = {
        (place.number, wire_id)
        for place in scene.world.places
        for stored in [scene.stored(place)]
        for post in scene.world.posts(place)
        if START + 25 * HOUR <= post.shown_from <= now - 11 * HOUR and post.removed_at is None
        if (wire_id := simulator.wire_id(place, post)) not in stored
    }
    assert missing == set()


@pytest.mark.parametrize("scene", [(FaultPlan(5, 0.3), {"json_api": 4, "discourse": 2})], indirect=True)
def test_nothing_is_lost_or_stored_twice_in_foul_weather(scene: Scene) -> None:
    outcomes = {result.outcome for _ in range(30) for result in scene.visit(after=1.5 * HOUR)}
    assert outcomes >= {Outcome.SUCCEEDED, Outcome.FAILED}
    # What is missing is known once a walk comes down to what is stored: the last visits meet no fault.
    scene.playground.faults.rate = scene.playground.faults.outage_rate = 0.0
    scene.visit(after=1.5 * HOUR)
    assert blame(scene) == []
    assert scene.app.store.items.count() > 500


LOOPING = Cue(fault="looping_cursor", path="*", from_at=START + 30 * HOUR, to_at=START + 60 * HOUR)


@pytest.mark.parametrize("scene", [(FaultPlan(1, 0.0, [LOOPING]), {"json_api": 4, "discourse": 2})], indirect=True)
def test_pages_that_lead_in_a_circle_lose_nothing_once_they_go_on(scene: Scene) -> None:
    scene.visit()
    scene.visit(after=30 * HOUR)
    sizes = {"json_api": json_api.PAGE_SIZE, "discourse": discourse.PAGE_SIZE}
    deep = [place for place in scene.world.places if came_out(scene, place, 30) > 2 * sizes[place.form]]
    assert {place.form for place in deep} == sizes.keys()
    # More is new than one page holds, and the way to the second one leads back to the first: a JSON API fails, for its
    # settings may be wrong; a forum, whose paging is known, leaves a gap.
    sources = {form: {scene.sources[place.number].source_id for place in deep if place.form == form} for form in sizes}
    gaps = {gap.source_id: gap.cause for gap in scene.app.store.gaps.page()}
    assert gaps.keys() >= sources["discourse"]
    assert {*gaps.values()} <= {"cap", "repeats"}
    errors = {
        number: scene.app.store.sources.with_progress(number)[1].last_error_code for number in sources["json_api"]
    }
    assert {*errors.values()} == {"UNREADABLE"}
    scene.visit(after=HOUR)
    assert blame(scene) == []
