"""Every fault of the playground, met by the whole collector: what happens at once, and that nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.app import App, open_app
from catchment.model import Outcome, SourceState, VisitResult
from catchment.playground.faults import FAULTS, Cue, FaultPlan
from catchment.playground.server import Playground
from catchment.playground.world import Place, World
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.databases import sqlite_ready

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
FAULTY = START + 2 * DAY
# The fault comes with the third; a stale one then shows the listing of six hours before, which is that of the first.
VISITS = (FAULTY + timedelta(minutes=5, hours=-6), FAULTY - timedelta(minutes=1), FAULTY + timedelta(minutes=5))

GOOD, BAD = Outcome.SUCCEEDED, Outcome.FAILED
MET: dict[str, tuple[Outcome, str | None]] = {
    "login_needed": (BAD, "LOGIN_NEEDED"),
    "forbidden": (BAD, "REFUSED"),
    "missing": (BAD, "MISSING"),
    "gone": (BAD, "GONE"),
    "slow_down": (BAD, "SLOW_DOWN"),
    "slow_down_until": (BAD, "SLOW_DOWN"),
    "slow_down_somehow": (BAD, "SLOW_DOWN"),
    "server_error": (BAD, "SERVER_TROUBLE"),
    "bad_gateway": (BAD, "SERVER_TROUBLE"),
    "unavailable": (BAD, "SERVER_TROUBLE"),
    "unavailable_for": (BAD, "SLOW_DOWN"),
    "slow_first_byte": (GOOD, None),
    "slow_drip": (GOOD, None),
    "reset": (BAD, "NETWORK_ERROR"),
    "cut_body": (BAD, "NETWORK_ERROR"),
    "torn_body": (GOOD, None),
    "gzip_garbage": (BAD, "UNREADABLE"),
    "malformed": (GOOD, None),
    "empty": (BAD, "UNREADABLE"),
    "html_page": (BAD, "UNREADABLE"),
    "captcha": (BAD, "REFUSED"),
    "stale": (BAD, "STALE_ANSWER"),
    "reordered": (GOOD, None),
    "repeated": (GOOD, None),
    "clock_skew": (GOOD, None),
    "looping_cursor": (GOOD, None),
    "outage": (BAD, "NETWORK_ERROR"),
}
"""By fault: what a visit comes to that meets it at every attempt."""
SAME_AS_BEFORE = "SLOW_DOWN SERVER_TROUBLE GONE"
"""Codes that rows of the page leave to the row before them."""


class Scene:
    """A busy place of the playground, followed; its second visit meets the fault."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.clock = HandClock(START + DAY)
        self.world = World(7, START, 40, 7.0)
        form = "jsonfeed" if fault == "looping_cursor" else "atom"
        self.place = next(place for place in self.world.places if place.form == form and self._is_lively(place))
        cue = Cue(fault=fault, from_at=FAULTY, to_at=FAULTY + DAY / 2)
        self.playground = Playground(self.world, self.clock, FaultPlan(7, 0.0, [cue]), slow_seconds=0.05)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(f"sqlite:///{folder / 'c.db'}"),
            is_private_allowed=True,
            retry_waits=(0.5,),
            timeout_seconds=600,
        )
        self.app: App = open_app(settings, "test")
        self.app.clock = self.clock
        address = self.playground.address(self.place)
        now = self.clock.now()
        self.source, _ = follow(self.app.store, self.app.secrets, self.app.platforms, "rss", address, now)

    def _is_lively(self, place: Place) -> bool:
        """It posts between the visits, and nothing else happens to it."""
        is_calm = place.moves_at is None and place.gone_at is None and place.new_ids_at is None and place.is_dated
        newest = [max((post.created_at for post, _ in self.world.shown(place, at)), default=START) for at in VISITS]
        return is_calm and newest[0] < newest[1] < VISITS[1] and place.pace.posts_a_day < 30

    def visit(self, at: datetime) -> VisitResult:
        self.clock.advance((at - self.clock.now()).total_seconds())
        (result,) = self.app.scheduler().these([self.source.id], "test", "test")
        return result

    def missing(self) -> list[str]:
        """What was shown at the moments of good visits and is not stored."""
        stored = {item.title for item in self.app.store.items.newest(10_000)}
        shown = self.world.shown(self.place, self.clock.now())
        return [version.title for _, version in shown if version.title not in stored]

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, request.param)
    yield scene
    scene.close()


def test_every_fault_has_its_expectation_and_its_words() -> None:
    assert MET.keys() == FAULTS.keys()
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    assert FAULTS.keys() <= rows.keys()
    assert [fault for fault, (_, code) in MET.items() if code and code not in rows[fault] + SAME_AS_BEFORE] == []


@pytest.mark.parametrize(("scene", "expected"), MET.items(), ids=MET, indirect=["scene"])
def test_a_fault_is_met_as_promised_and_nothing_is_lost_by_it(
    scene: Scene, expected: tuple[Outcome, str | None]
) -> None:
    assert [scene.visit(at).outcome for at in VISITS[:2]] == [GOOD, GOOD]
    met = scene.visit(VISITS[2])
    outcome = GOOD if met.outcome == Outcome.UNCHANGED else met.outcome
    assert (outcome, met.error_code) == expected
    if expected[1] == "GONE":
        assert scene.app.store.sources.get(scene.source.id).state == SourceState.RETIRED
        return
    after = scene.visit(START + 3 * DAY)
    assert after.outcome in (GOOD, Outcome.UNCHANGED)
    assert scene.missing() == []
    held = scene.app.store.database.read(lambda tx: tx.one("SELECT count(*) FROM leases WHERE owner_id IS NOT NULL"))
    assert held == (0,)
