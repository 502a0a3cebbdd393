"""Trending pages and web pages of the playground, followed by the whole collector: fetched, read, judged, stored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.model import Outcome, Source, VisitResult, as_json
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.server import Playground
from catchment.playground.sites.github import stars
from catchment.playground.sites.website import SELECTOR, link
from catchment.playground.world import Place, World
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.databases import sqlite_ready

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
BROKEN_FROM = START + timedelta(days=20)
"""Beyond all that the other tests look at: from then on every page comes torn."""


class Web:
    """A small web, and an app with the sources that a test needs."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.clock = HandClock(START + DAY)
        self.world = World(7, START, places=0, days=21, busy=3, others={"github": 2, "website": 6})
        faults = FaultPlan(7, 0.0, [Cue(fault="torn_body", path="/website/*", from_at=BROKEN_FROM)])
        self.playground = Playground(self.world, self.clock, faults)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(database_url),
            is_private_allowed=True,
            retry_waits=(),
            base_urls={"github": self.playground.url},
        )
        self.app: App = open_app(settings, "test", may_migrate=True)
        self.app.clock = self.clock

    def follow(self, kind: str, target: str, **settings: str) -> Source:
        app = self.app
        source, _ = follow(app.store, app.secrets, app.platforms, kind, target, self.clock.now(), settings=settings)
        return source

    def visit(self, source: Source, at: datetime) -> VisitResult:
        self.clock.advance((at - self.clock.now()).total_seconds())
        (result,) = self.app.scheduler().these([source.id], "test", "test")
        return result

    def items(self) -> dict[str, dict[str, Any]]:
        return {item["external_id"]: item for item in as_json(self.app.store.items.newest(1000))}

    def revisions(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        return as_json(self.app.store.items.revisions(item["id"]))

    def changing(self) -> tuple[Place, list[datetime]]:
        """A page, and three moments between which its newest post is another one, and a younger one each time."""
        for place in self.world.places:
            moments = [START + timedelta(hours=hours) for hours in range(25, 20 * 24)]
            newest = [(at, self.world.shown(place, at)[0]) for at in moments if self.world.shown(place, at)]
            young: list[tuple[datetime, Any]] = []
            for at, (post, version) in newest:
                is_younger = not young or post.created_at > young[-1][1][0].created_at
                if place.form == "website" and version.number == 1 and post.created_at <= at and is_younger:
                    young.append((at, (post, version)))
            if len(young) >= 3:
                return place, [at for at, _ in young[:3]]
        raise AssertionError("no page changes often enough")

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def web(tmp_path: Path, database_url: str) -> Iterator[Web]:
    web = Web(tmp_path, database_url)
    yield web
    web.close()


def test_a_repository_that_trends_for_three_days_is_one_item_with_three_appearances(web: Web) -> None:
    (place, *_) = (place for place in web.world.places if place.form == "github")
    source = web.follow("github_trending", "all")
    days = [START + number * DAY + timedelta(hours=1) for number in (2, 3, 4)]
    results = [web.visit(source, at) for at in days]
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 3
    shown = [{post.id: post for post, _ in web.world.shown(place, at)[:25]} for at in days]
    (post, *_) = [post for id, post in shown[0].items() if id in shown[1] and id in shown[2]]
    (item,) = [item for item in web.items().values() if item["url"].lower().endswith(f"-{post.place}.{post.number}")]
    assert (item["kind"], item["score"]) == ("repository", stars(web.world, post, days[2]))
    assert len(web.items()) == len({id for ids in shown for id in ids})
    series = as_json(web.app.store.items.appearances(item["id"]))
    assert [(point["day"], point["score"]) for point in series] == [
        (f"{at:%Y-%m-%d}", stars(web.world, post, at)) for at in days
    ]
    assert all(1 <= point["rank"] <= 25 and point["gained"] <= point["score"] for point in series)


def test_a_page_that_is_edited_twice_has_two_revisions(web: Web) -> None:
    place, moments = web.changing()
    source = web.follow("website", web.playground.address(place))
    results = [web.visit(source, at) for at in moments]
    assert [(result.outcome, result.error) for result in results] == [(Outcome.SUCCEEDED, None)] * 3
    (item,) = web.items().values()
    before = web.revisions(item)
    assert (item["external_id"], item["version"], len(before)) == ("page", 3, 2)
    texts = [*(revision["text"] for revision in before), item["text"]]
    for at in moments:
        (_, version) = web.world.shown(place, at)[0]
        assert any(version.text.split("\n\n")[0] in text for text in texts)


def test_the_links_of_an_index_are_items_of_their_own(web: Web) -> None:
    place, (at, *_) = web.changing()
    source = web.follow("website", f"{web.playground.address(place)}/index", links=SELECTOR)
    assert web.visit(source, at).outcome == Outcome.SUCCEEDED
    shown = {link(place, post): " ".join(version.title.split()) for post, version in web.world.shown(place, at)}
    assert {id: item["text"] for id, item in web.items().items()} == shown


def test_a_page_is_read_anew_when_its_settings_are_changed_even_if_it_is_the_same(web: Web) -> None:
    place, (at, *_) = web.changing()
    source = web.follow("website", f"{web.playground.address(place)}/index", links="nav a")
    assert [web.visit(source, at).outcome for _ in range(2)] == [Outcome.SUCCEEDED, Outcome.UNCHANGED]
    web.app.store.sources.change(source.id, settings={"links": SELECTOR})
    result = web.visit(source, at)
    assert (result.outcome, result.counts.new) == (Outcome.SUCCEEDED, len(web.world.shown(place, at)))


def test_a_page_that_robots_are_asked_to_leave_alone_is_left_alone_and_said_so(web: Web) -> None:
    place, (at, *_) = web.changing()
    source = web.follow("website", f"{web.playground.address(place)}/private")
    result = web.visit(source, at)
    assert (result.outcome, result.error_code, result.is_retryable) == (Outcome.FAILED, "DISALLOWED", False)
    assert "robots.txt" in (result.error or "")
    assert web.items() == {}


def test_a_page_that_breaks_off_leaves_no_revision(web: Web) -> None:
    place, (at, *_) = web.changing()
    source = web.follow("website", web.playground.address(place))
    web.visit(source, at)
    result = web.visit(source, BROKEN_FROM + timedelta(hours=1))
    (item,) = web.items().values()
    assert (result.error_code, item["version"]) == ("UNREADABLE", 1)
