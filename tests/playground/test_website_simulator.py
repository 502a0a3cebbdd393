"""What the playground says as web pages has what real ones have, and its main text reads back as the truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

from catchment.model import Answer, Item, Request
from catchment.platforms import website as reader
from catchment.playground.sites import (
    ROBOTS,
    Ask,
    Distortion,
    Page,
)
from catchment.playground.sites.website import (
    SELECTOR,
    THE_PAGE,
    WebsiteSimulator,
    link,
)
from catchment.playground.world import Habits, Place, World
from catchment.text.clean import refine

START = datetime(2026, 1, 5, tzinfo=UTC)
BASE = "http://127.0.0.1:8000"
DAYS = [0.0, 1.3, 3.7, 6.9]
AROUND = ("cookies", "Subscribe", "About us", "All rights reserved", "dataLayer", "owned", "alert(")
RELIED_ON = (
    "html[lang]",
    "head > title",
    "meta[charset]",
    'meta[property="og:title"]',
    'link[rel="canonical"]',
    "script",
)
"""What real pages have that the reader goes by, or has to leave out."""


@pytest.fixture(scope="module")
def world() -> World:
    return World(3, START, places=1, days=7, habits=Habits(hostile=0.3, edited=0.3), busy=3, others={"website": 12})


@pytest.fixture(scope="module")
def simulator(world: World) -> WebsiteSimulator:
    return WebsiteSimulator(world)


def places(world: World) -> list[Place]:
    return [place for place in world.places if place.form == "website"]


def page(simulator: WebsiteSimulator, path: str, at: datetime, distortion: Distortion | None = None) -> Page:
    place = simulator.find(path)
    assert place is not None
    return simulator.answer(place, Ask(path, "", {}, at, BASE, distortion or Distortion()))


def read(told: Page, path: str, **state: str) -> tuple[Item, ...]:
    headers = {name.lower(): value for name, value in told.headers.items()}
    reading = reader.read(Answer(told.status, headers, told.body, BASE + path, START), Request(BASE, state=state))
    return tuple(item.item for item in refine(reading, scope="key", answer_url=BASE + path).items)


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


@pytest.mark.parametrize("day", DAYS)
def test_the_main_text_reads_back_as_the_newest_post_and_nothing_around_it(
    world: World, simulator: WebsiteSimulator, day: float
) -> None:
    at = START + timedelta(days=day)
    for place in places(world):
        (item,) = read(page(simulator, place.path, at), place.path)
        for post, version in world.shown(place, at)[:1]:
            assert (item.title, item.author, item.created_at) == (flat(version.title), post.author, post.created_at)
            assert [part for part in version.text.split("\n\n") if flat(part) not in flat(item.text)] == []
        assert [word for word in AROUND if word in (item.text or "")] == []
        assert (item.external_id, item.url) == (THE_PAGE, BASE + place.path)


@pytest.mark.parametrize("day", DAYS)
def test_an_index_reads_back_as_the_titles_of_all_that_is_shown(
    world: World, simulator: WebsiteSimulator, day: float
) -> None:
    at = START + timedelta(days=day)
    for place in places(world):
        path = f"{place.path}/index"
        items = read(page(simulator, path, at), path, links=SELECTOR)
        assert [(item.external_id, item.text) for item in items] == [
            (link(place, post), flat(version.title)) for post, version in world.shown(place, at)
        ]


def test_the_entries_noted_for_the_log_are_those_in_the_page(world: World, simulator: WebsiteSimulator) -> None:
    at = START + timedelta(days=3)
    for place in places(world):
        shown = [(post.id, version.number) for post, version in world.shown(place, at)]
        noted = page(simulator, place.path, at).entries
        assert [(entry.post, entry.version, entry.wire_id) for entry in noted] == [
            (*shown_post, THE_PAGE) for shown_post in shown[:1]
        ]
        path = f"{place.path}/index"
        listed = page(simulator, path, at)
        assert [(entry.post, entry.version) for entry in listed.entries] == shown
        assert [entry.wire_id for entry in listed.entries] == [
            item.external_id for item in read(listed, path, links=SELECTOR)
        ]


def test_an_old_copy_is_that_of_the_time(world: World, simulator: WebsiteSimulator) -> None:
    at, ago = START + timedelta(days=5), timedelta(days=2)
    for place in places(world):
        assert page(simulator, place.path, at, Distortion(ago=ago)).body == page(simulator, place.path, at - ago).body


def test_a_page_that_breaks_off_is_not_taken_for_a_new_text(world: World, simulator: WebsiteSimulator) -> None:
    (place, *_) = places(world)
    whole = page(simulator, place.path, START + timedelta(days=3))
    for part in range(2, 9):
        with pytest.raises(reader.Unreadable):
            read(whole.replace(body=whole.body[: len(whole.body) * part // 10]), place.path)


def test_other_paths_are_none_of_its(world: World, simulator: WebsiteSimulator) -> None:
    assert [simulator.find(path) for path in ("/website/0", "/website/999", "/website/x", "/", "/feeds/0.xml")] == [
        None
    ] * 5


def test_robots_are_asked_to_leave_private_pages_alone(world: World) -> None:
    rules, place = Protego.parse(ROBOTS.decode()), places(world)[0]
    assert [rules.can_fetch(f"{BASE}{place.path}{end}", "catchment") for end in ("", "/index", "/private")] == [
        True,
        True,
        False,
    ]


def test_the_page_has_what_real_pages_have(world: World, simulator: WebsiteSimulator, captures: Path) -> None:
    real = [LexborHTMLParser(path.read_text()) for path in sorted((captures / "websites").glob("*.html"))]
    ours = LexborHTMLParser(page(simulator, places(world)[0].path, START).body.decode())
    for selector in RELIED_ON:
        assert any(page.css(selector) for page in real), f"no real page has {selector}"
        assert ours.css(selector), f"ours has no {selector}"
    tags = {node.tag for page in real for node in page.css("*")}
    assert {node.tag for node in ours.css("*")} <= tags
