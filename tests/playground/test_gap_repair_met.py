"""Gaps of the playground's sites, repaired over real HTTP: what was missing is stored once, and the gap closed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from catchment.app import App, open_app
from catchment.model import Source
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites import hackernews as hn
from catchment.playground.world import Habits, World
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.items.floor_audits import AuditView
from catchment.store.sources.gaps import GapView
from tests.clocks import HandClock
from tests.databases import ON_BOTH, sqlite_ready

pytestmark = pytest.mark.long

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
CALM = Habits(edited=0.0, removed=0.0, late=0.0, future=0.0, hostile=0.0, wires=1.0)


@cache
def world() -> World:
    """One for all tests: it never changes."""
    return World(11, START, 0, 12.0, CALM, busy=0.5, others={"hackernews": 1})


class Scene:
    """A site that posts more between two visits than its list shows."""

    def __init__(self, folder: Path, database_url: str, script: tuple[Cue, ...] = ()) -> None:
        self.clock = HandClock(START + DAY)
        self.world = world()
        self.log = folder / "asked.jsonl"
        self.playground = Playground(self.world, self.clock, FaultPlan(11, 0.0, script), log=self.log)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(database_url),
            base_urls={"hackernews": self.playground.url},
            retry_waits=(0.5,),
            timeout_seconds=600,
        )
        self.app: App = open_app(settings, "test", clock=self.clock)
        now = self.clock.now()
        self.source: Source = follow(self.app.store, self.app.secrets, self.app.platforms, "hackernews", "new", now)[0]

    def overflow(self) -> GapView:
        """Visits, waits until more was posted than the list shows, and visits again: returns the gap."""
        for wait in (8 * DAY, timedelta()):
            self.app.scheduler().these([self.source.id], "test", "test")
            self.clock.advance(wait.total_seconds())
        (gap,) = self.app.store.gaps.page()
        return gap

    def repair(self) -> AuditView:
        self.clock.advance(3600)
        return self.app.floor_audit().run("test", is_repairing=True)

    def gap(self) -> GapView:
        (gap,) = self.app.store.gaps.page(include_closed=True)
        return gap

    def stored(self) -> dict[str, int]:
        """How often each story is stored."""
        ids = [item.external_id for item in self.app.store.items.newest(10_000, source_id=self.source.id)]
        return {id_: ids.count(id_) for id_ in ids}

    def within(self, gap: GapView) -> set[str]:
        """The stories of that time."""
        (place,) = self.world.places
        return {
            str(hn.wire_id(self.world, place, post))
            for post in self.world.posts(place)
            if gap.from_at <= post.shown_from <= gap.to_at and hn.sort_of(self.world, post) != "job"
        }

    def asked(self, path: str) -> int:
        return sum(line.path.startswith(path) for line in read_log(self.log))

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Iterator[Scene]:
    """With the cues that a test asks for, if it does."""
    opened = Scene(tmp_path, database_url, getattr(request, "param", ()))
    yield opened
    opened.close()


@ON_BOTH
def test_a_gap_of_hacker_news_is_repaired_by_search_and_every_story_in_it_is_stored_once(scene: Scene) -> None:
    gap = scene.overflow()
    assert gap.cause == "reach"
    missing = scene.within(gap) - scene.stored().keys()
    assert len(missing) > 100
    audit = scene.repair()
    assert (audit.gap_count, audit.repaired_gap_count, audit.unreachable_gap_count) == (1, 1, 0)
    assert scene.within(gap) - scene.stored().keys() == set()
    assert set(scene.stored().values()) == {1}
    closed = scene.gap()
    assert (closed.closed_because, closed.last_result, closed.closed_at) == ("repaired", "repaired", scene.clock.now())
    (repair,) = scene.app.store.gaps.repairs(gap.id)
    assert (repair.audit_id, repair.new_count >= len(missing), repair.stopped_by) == (audit.id, True, None)
    assert repair.request_count == repair.page_count == scene.asked("/api/v1/search_by_date")
    # Nothing is left to do, and nothing is asked.
    assert scene.repair().gap_count == 0
    assert scene.asked("/api/v1/search_by_date") == repair.request_count


FAULTS = {"server_error": "error", "looping_cursor": "repeats"}
# The first repair is an hour after the gap was found, the second an hour later.
UNTIL = START + 9 * DAY + timedelta(minutes=90)
CASES = [((Cue(fault=fault, path="/api/*", first=3, to_at=UNTIL),), stopped_by) for fault, stopped_by in FAULTS.items()]


@pytest.mark.parametrize(("scene", "stopped_by"), CASES, ids=FAULTS, indirect=["scene"])
def test_a_repair_that_breaks_off_leaves_what_it_did_not_reach_open_and_the_next_goes_on_there(
    scene: Scene, stopped_by: str
) -> None:
    gap = scene.overflow()
    audit = scene.repair()
    assert (audit.repaired_gap_count, audit.partial_gap_count) == (0, 1)
    left = scene.gap()
    assert (left.closed_at, left.last_result, left.stopped_by, left.attempt_count) == (None, "partial", stopped_by, 0)
    assert left.repaired_from_at is not None
    assert gap.from_at < left.repaired_from_at < gap.to_at
    # What is said to be repaired is stored, and the rest is not.
    repaired = set(scene.within(gap.replace(from_at=left.repaired_from_at)))
    assert repaired - scene.stored().keys() == set()
    assert scene.within(gap) - scene.stored().keys()
    assert scene.repair().repaired_gap_count == 1
    assert scene.within(gap) - scene.stored().keys() == set()
    assert set(scene.stored().values()) == {1}
    first, second = scene.app.store.gaps.repairs(gap.id)[::-1]
    assert (first.left_to_at, second.to_at) == (left.repaired_from_at, left.repaired_from_at)
