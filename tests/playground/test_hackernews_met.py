"""Hacker News of the playground, collected over real HTTP: its lists and a search together, day after day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.model import Outcome, VisitResult, as_dict
from catchment.platforms import hackernews
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.server import Playground
from catchment.playground.sites.hackernews import (
    INDEXED_AFTER,
    NOT_YET,
    farewell,
    listed_before_told,
    sort_of,
    wire_id,
)
from catchment.playground.world import Habits, Post, World
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.databases import ON_BOTH, sqlite_ready

pytestmark = pytest.mark.long

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AGES = hackernews.KINDS[0].recheck_ages
TARGETS = ("new", "top", "search:harbor")


@cache
def world() -> World:
    """One for all tests: it never changes, and remembers what it was asked."""
    habits = Habits(edited=0.25, removed=0.35, wires=1.0, hostile=0.0)
    return World(11, START, 0, 12.0, habits, busy=0.5, others={"hackernews": 1})


class Scene:
    """A lively site, of which two lists and a search are followed from the first day on."""

    def __init__(self, folder: Path, database_url: str, script: tuple[Cue, ...] = ()) -> None:
        self.clock = HandClock(START + DAY)
        self.world = world()
        (self.place,) = self.world.places
        self.playground = Playground(self.world, self.clock, FaultPlan(11, 0.0, script))
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(database_url),
            base_urls={"hackernews": self.playground.url},
            retry_waits=(0.5,),
            timeout_seconds=600,
        )
        self.app: App = open_app(settings, "test")
        self.app.clock = self.clock
        self.sources = {
            typed: follow(self.app.store, self.app.secrets, self.app.platforms, "hackernews", typed, self.clock.now())[
                0
            ].id
            for typed in TARGETS
        }

    def visit(self, *typed: str) -> list[VisitResult]:
        return self.app.scheduler().these([self.sources[target] for target in typed or TARGETS], "test", "test")

    def later(self, wait: timedelta) -> None:
        self.clock.advance(wait.total_seconds())

    def id(self, post: Post) -> str:
        return str(wire_id(self.world, self.place, post))

    def told(self) -> dict[str, Post]:
        """What came out since following began, is listed now, and can be asked for; by id."""
        now = self.clock.now()
        return {
            self.id(post): post
            for post in self.world.posts(self.place)
            if START + DAY <= post.shown_from <= now - listed_before_told(self.world, post)
            and not post.is_removed(now)
            and sort_of(self.world, post) != "job"
        }

    def matching(self) -> set[str]:
        """Of these, what the search finds."""
        heard = self.clock.now() - INDEXED_AFTER
        return {id for id, post in self.told().items() if post.shown_from <= heard and "harbor" in said(post, heard)}

    def stored(self, typed: str | None = None) -> dict[str, dict[str, Any]]:
        source_id = self.sources[typed] if typed else None
        items = self.app.store.items.newest(10_000, source_id=source_id)
        by_id = {item.external_id: as_dict(item) for item in items}
        assert len(by_id) == len(items)
        return by_id

    def gaps(self) -> list[tuple[int, str]]:
        return [(gap.source_id, gap.cause) for gap in self.app.store.gaps.page()]

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Iterator[Scene]:
    """With the cues that a test asks for, if it does."""
    scene = Scene(tmp_path, database_url, getattr(request, "param", ()))
    yield scene
    scene.close()


def said(post: Post, at: datetime) -> str:
    return f"{post.version(at).title} {post.version(at).text}".lower()


def words(item: Any) -> tuple[str, str]:
    """Of an item, or of a revision of one."""
    values = item if isinstance(item, dict) else as_dict(item)
    return values["title"], values["text"]


@ON_BOTH
def test_lists_and_a_search_become_one_archive_in_which_nothing_is_missing_twice_or_made_up(scene: Scene) -> None:
    for _ in range(7):
        assert {result.outcome for result in scene.visit()} <= {Outcome.SUCCEEDED, Outcome.UNCHANGED}
        scene.later(4 * HOUR)
    scene.visit()
    items, told = scene.stored(), scene.told()
    assert len(told) > 50
    assert told.keys() - items.keys() == set()
    assert scene.matching() - scene.stored("search:harbor").keys() == set()
    assert scene.gaps() == []
    for id, post in told.items():
        versions = [(version.title, version.text) for version in post.versions]
        earlier = [words(revision) for revision in scene.app.store.items.revisions(items[id]["id"])]
        # Two services and three sources told of it: what it said stands once for each time it was changed.
        held = [*earlier, words(items[id])]
        assert [versions.index(version) for version in held] == sorted({versions.index(version) for version in held})


def test_what_is_listed_before_it_can_be_asked_for_is_stored_by_the_next_visit(scene: Scene) -> None:
    scene.visit("new")
    post = next(
        post
        for post in scene.world.posts(scene.place)
        if post.shown_from > scene.clock.now() and listed_before_told(scene.world, post) and not post.removed_at
    )
    scene.later(post.shown_from - scene.clock.now())
    scene.visit("new")
    assert scene.id(post) not in scene.stored()
    scene.later(NOT_YET)
    scene.visit("new")
    assert scene.id(post) in scene.stored()


def test_what_died_before_the_first_visit_is_not_stored_and_what_lives_is_asked_for_once(scene: Scene) -> None:
    first, second = (scene.visit("new")[0], scene.visit("new")[0])
    assert first.counts.new > 50
    assert first.requests == 1 + first.counts.new + first.counts.invalid
    assert (second.outcome, second.requests) == (Outcome.UNCHANGED, 1)


def test_after_a_week_away_the_search_goes_back_to_where_it_was_and_the_list_says_what_it_cannot_show(
    scene: Scene,
) -> None:
    scene.visit()
    scene.later(8 * DAY)
    new, search = scene.visit("new", "search:harbor")
    assert (new.outcome, search.outcome) == (Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    assert search.requests > 2
    assert scene.matching() - scene.stored("search:harbor").keys() == set()
    assert scene.gaps() == [(scene.sources["new"], "reach")]


LOOP = (Cue(fault="looping_cursor", path="/api/*", from_at=START + 2 * DAY),)


@pytest.mark.parametrize("scene", [LOOP], ids=["looping"], indirect=True)
def test_a_search_whose_pages_lead_back_ends_and_says_that_something_is_missing(scene: Scene) -> None:
    scene.visit("search:harbor")
    scene.later(8 * DAY)
    (result,) = scene.visit("search:harbor")
    assert (result.outcome, result.requests) == (Outcome.SUCCEEDED, 2)
    assert scene.gaps() == [(scene.sources["search:harbor"], "repeats")]


def looks_at(post: Post, runs: list[datetime], stored_at: datetime) -> list[datetime]:
    """When it is looked at, if these are the moments at which anybody looks."""
    found, at = [], stored_at
    for due in (post.shown_from + age for age in AGES):
        run = next((run for run in runs if run >= due), None)
        if due > at and run is not None:
            found.append(run)
            at = run
    return found


@ON_BOTH
def test_edits_and_removals_are_noticed_by_second_looks_and_nothing_we_hold_is_lost_by_them(scene: Scene) -> None:
    scene.visit("search:harbor")
    first_stored: dict[str, datetime] = {}
    runs = []
    for number in range(80):
        runs.append(scene.clock.now())
        if number < 16:
            scene.visit("new", "top")
            first_stored = {**dict.fromkeys(scene.stored(), runs[-1]), **first_stored}
        scene.app.rechecks().run("test")
        scene.later(3 * HOUR)
    items, edited, removed, restored = scene.stored(), 0, 0, 0
    for post in scene.world.posts(scene.place):
        if scene.id(post) not in items or farewell(scene.world, post) == "null":
            continue
        item, stored_at = items[scene.id(post)], first_stored[scene.id(post)]
        seen = [stored_at, *looks_at(post, runs, stored_at)]
        alive = [at for at in seen if not post.is_removed(at)]
        version = post.version(alive[-1])
        assert words(item) == (version.title, version.text)
        assert item["is_deleted"] == post.is_removed(seen[-1])
        edited += version != post.version(stored_at)
        removed += item["is_deleted"]
        restored += not item["is_deleted"] and alive != seen
    assert (edited > 5, removed > 5, restored > 0) == (True, True, True)


def test_a_story_that_is_not_there_any_more_is_marked_when_a_second_look_says_so_again(scene: Scene) -> None:
    for _ in range(16):
        scene.visit("new")
        scene.later(3 * HOUR)
    known = scene.stored()
    post = next(
        post
        for post in scene.world.posts(scene.place)
        if scene.id(post) in known
        and post.removed_at is not None
        and post.restored_at is None
        and farewell(scene.world, post) == "null"
    )
    marks = []
    for wait in (7 * DAY, HOUR / 2, HOUR):
        scene.later(wait)
        while scene.app.rechecks().run("test"):
            pass
        marks.append(scene.stored()[scene.id(post)]["is_deleted"])
    assert marks == [False, False, True]
    item = scene.stored()[scene.id(post)]
    assert words(item) == words(known[scene.id(post)])
    assert [revision.reasons for revision in scene.app.store.items.revisions(item["id"])] == [
        ("marked_deleted_by_source",)
    ]
