"""Reddit of the playground, followed by its tiers: a community of three thousand posts a day outruns nobody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.model import Progress
from catchment.playground.faults import FaultPlan
from catchment.playground.server import Playground
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import Habits, World
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import sqlite_ready

START = datetime(2026, 3, 2, tzinfo=UTC)
HABITS = Habits(removed=0.0, late=0.0, hostile=0.0, silences_a_day=0.0, bursts_a_day=0.0)


class Crowd:
    """A deployment that follows it and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock(START + timedelta(days=1))
        world = World(11, START, 0, 4.0, HABITS, others={"reddit": 1})
        self.playground = Playground(world, self.clock, FaultPlan(11, 0.0))
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(f"sqlite:///{folder / 'catchment.db'}"),
            base_urls={"reddit": self.playground.url},
            master_key="a key for tests",
        )
        self.app: App = open_app(settings, "test")
        self.app.clock = self.clock
        name = names.community(world.places[0])
        follow(self.app.store, self.app.secrets, self.app.platforms, "reddit", f"r/{name}", self.clock.now())

    def with_key(self) -> Crowd:
        secret = Secret.parse(":".join(client()))
        self.app.secrets.add("reddit", "app", secret, self.clock.now(), terms=Terms(is_shared=True))
        return self

    def go_on(self, span: timedelta) -> int:
        """So long, visited whenever it is due; gives how often that was."""
        end, visits = self.clock.now() + span, 0
        while self.clock.now() < end:
            visits += len(self.app.scheduler().due("test", "test"))
            self.clock.advance(60)
        return visits

    @property
    def progress(self) -> Progress:
        return self.app.store.sources.with_progress(1)[1]

    def gaps(self) -> list[int]:
        return [gap.id for gap in self.app.store.gaps.page(include_closed=True)]


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    crowd = Crowd(tmp_path)
    yield crowd
    crowd.app.close()
    crowd.playground.close()


def test_with_a_key_two_hours_are_never_too_long(crowd: Crowd) -> None:
    visits = crowd.with_key().go_on(timedelta(hours=24))
    known = crowd.progress
    assert (known.tier, known.tier_reason, crowd.gaps()) == ("tier1", "tier1: every 2 h", [])
    # Three times by the interval of the kind, then by the tier.
    assert visits == 3 + 10


def test_without_a_key_a_community_is_visited_before_its_feed_has_turned_over(crowd: Crowd) -> None:
    crowd.go_on(timedelta(hours=3))
    known, gaps = crowd.progress, crowd.gaps()
    assert gaps != []
    assert known.tier == "tier1"
    assert known.tier_minutes is not None
    assert known.tier_minutes < 60
    assert "the platform shows no more than the newest" in (known.due_reason or "")
    crowd.go_on(timedelta(hours=9))
    assert crowd.gaps() == gaps
