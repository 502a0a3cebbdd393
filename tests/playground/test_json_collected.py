"""JSON APIs and forums of the playground, followed by the whole collector through fair weather and foul."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.collect.following import follow
from catchment.model import Outcome, Result, Source
from catchment.playground.log import read_log
from catchment.playground.moods import Cue, Moods
from catchment.playground.server import Playground
from catchment.playground.voices import generic
from catchment.playground.world import Place, World
from catchment.settings import Settings
from catchment.shop import open_shop
from endure.judge import Findings, Trial, stored_of
from tests.clocks import HandClock

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
KINDS = {"json_api": "custom_api", "discourse": "discourse_forum"}


class Scene:
    """Busy places of the playground, all of them followed."""

    def __init__(self, folder: Path, moods: Moods, others: dict[str, int]) -> None:
        self.clock = HandClock(START + 24 * HOUR)
        self.world = World(11, START, 0, 7.0, busy=30.0, others=others)
        self.log = folder / "asked.jsonl"
        self.playground = Playground(self.world, self.clock, moods, log=self.log, slow_seconds=0.01)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=f"sqlite:///{folder / 'c.db'}",
            is_private_allowed=True,
            retry_waits=(),
            timeout_seconds=5,
            host_requests_per_second=1000,
        )
        self.shop = open_shop(settings, "test")
        self.shop.clock = self.clock
        self.sources = {place.number: self._follow(place) for place in self.world.places}

    def _follow(self, place: Place) -> Source:
        shop, address = self.shop, self.playground.address(place)
        settings = generic.settings(place) if place.form == "json_api" else {}
        kind = KINDS[place.form]
        source, _ = follow(shop.store, shop.safe, shop.platforms, kind, address, self.clock.now(), settings=settings)
        return source

    def visit(self, *numbers: int, after: timedelta = HOUR) -> list[Result]:
        self.clock.advance(after.total_seconds())
        ids = [self.sources[number].id for number in numbers or self.sources]
        return self.shop.rounds().these(ids, "test", "test")

    def findings(self) -> dict[int, Findings]:
        asked = defaultdict(list)
        for one in read_log(self.log):
            asked[one.place].append(one)
        return {
            place.number: Trial(
                self.world,
                place,
                asked[place.number],
                stored_of(self.shop.store, self.sources[place.number].id, self.sources[place.number].key),
            ).findings()
            for place in self.world.places
        }

    def close(self) -> None:
        self.shop.close()
        self.playground.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    moods, others = getattr(request, "param", (Moods(1, 0.0), {"json_api": 4, "discourse": 2}))
    one = Scene(tmp_path, moods, others)
    yield one
    one.close()


def test_pages_are_followed_down_to_the_watermark_and_no_further(scene: Scene) -> None:
    first = scene.visit()
    assert {one.outcome for one in first} == {Outcome.SUCCEEDED}
    assert all(one.counts.new >= 30 for one in first)
    soon = scene.visit(after=timedelta(minutes=10))
    assert all(one.requests <= 2 for one in soon)
    later = scene.visit(after=8 * HOUR)
    assert all(one.counts.invalid == 0 for one in later)
    for number, found in scene.findings().items():
        assert (number, found.lost, found.twice, found.wrong, found.unexplained) == (number, (), (), (), ())
    assert scene.shop.store.gaps.page() == []


def test_what_is_beyond_an_apis_reach_lies_in_a_gap_and_a_forum_reaches_everything(scene: Scene) -> None:
    scene.visit()
    scene.visit(after=96 * HOUR)
    gaps = {one["source_id"]: (one["certainty"], one["cause"]) for one in scene.shop.store.gaps.page()}
    apis = {scene.sources[place.number].id for place in scene.world.places if place.form == "json_api"}
    assert gaps == dict.fromkeys(apis, ("known", "cap"))
    for number, found in scene.findings().items():
        assert (number, found.lost, found.twice, found.wrong, found.unexplained) == (number, (), (), (), ())


@pytest.mark.parametrize("scene", [(Moods(5, 0.3), {"json_api": 4, "discourse": 2})], indirect=True)
def test_nothing_is_lost_or_stored_twice_in_foul_weather(scene: Scene) -> None:
    outcomes = {one.outcome for _ in range(30) for one in scene.visit(after=1.5 * HOUR)}
    assert outcomes >= {Outcome.SUCCEEDED, Outcome.FAILED}
    for number, found in scene.findings().items():
        assert (number, found.lost, found.twice, found.wrong, found.unexplained) == (number, (), (), (), ())
    assert scene.shop.store.items.count() > 500


LOOPING = Cue(mood="looping_cursor", path="*", from_at=START + 30 * HOUR, to_at=START + 60 * HOUR)


@pytest.mark.parametrize("scene", [(Moods(1, 0.0, [LOOPING]), {"json_api": 4, "discourse": 1})], indirect=True)
def test_pages_that_lead_in_a_circle_leave_a_gap_which_the_next_good_visit_closes(scene: Scene) -> None:
    scene.visit()
    # More is new than one page holds, and the way to the second one leads back.
    scene.visit(after=30 * HOUR)
    assert {one["source_id"] for one in scene.shop.store.gaps.page()} == {one.id for one in scene.sources.values()}
    scene.visit(after=HOUR)
    for number, found in scene.findings().items():
        assert (number, found.lost, found.twice, found.wrong, found.unexplained) == (number, (), (), (), ())
