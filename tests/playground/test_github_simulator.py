"""What the playground says as GitHub's trending page is what the real one looks like, and reads back as the truth."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.model import Answer, Item, Request
from catchment.platforms import github as reader
from catchment.playground.sites import (
    Ask,
    Distortion,
    Page,
    simulators,
)
from catchment.playground.sites.github import (
    LANGUAGES,
    GitHubSimulator,
    description,
    full_name,
    stars,
)
from catchment.playground.world import Habits, Place, World

START = datetime(2026, 1, 5, tzinfo=UTC)
BASE = "https://github.com"
DAYS = [0.0, 1.3, 3.7, 6.9]
MISLEADING = ('article a[href^="/sponsors/"]', 'article a[href^="/login?return_to="]', 'article a[href$="/forks"]')
RELIED_ON = (
    "article.Box-row",
    "article h2.h3 > a[href]",
    "article h2 span.text-normal",
    "article p.col-9",
    'article div.f6 span[itemprop="programmingLanguage"]',
    'article div.f6 > a[href$="/stargazers"]',
    "article div.f6 > span.float-sm-right",
    *MISLEADING,
)
"""What the reader goes by, and what would mislead one that goes by something else."""


@pytest.fixture(scope="module")
def world() -> World:
    return World(5, START, places=1, days=7, habits=Habits(edited=0.2), busy=4, others={"github": 4})


@pytest.fixture(scope="module")
def simulator(world: World) -> GitHubSimulator:
    return GitHubSimulator(world)


def places(world: World) -> list[Place]:
    return [place for place in world.places if place.form == "github"]


def page(
    simulator: GitHubSimulator, place: Place, at: datetime, since: str = "daily", distortion: Distortion | None = None
) -> Page:
    address = reader.understand(simulator.target(place)).address
    path = address.removeprefix(BASE)
    assert simulator.find(path) is place
    return simulator.answer(place, Ask(path, f"since={since}", {}, at, BASE, distortion or Distortion()))


def read(told: Page) -> tuple[Item, ...]:
    reading = reader.read(Answer(told.status, {}, told.body, f"{BASE}/trending", START), Request(BASE))
    assert (reading.skipped, reading.is_torn) == ((), False)
    return reading.items


@pytest.mark.parametrize("day", DAYS)
def test_our_own_reader_reads_back_exactly_what_the_world_shows(
    world: World, simulator: GitHubSimulator, day: float
) -> None:
    at = START + timedelta(days=day)
    for place in places(world):
        shown = {full_name(post): (post, version) for post, version in world.shown(place, at)[:25]}
        items = read(page(simulator, place, at))
        assert {item.title for item in items} == shown.keys()
        for item in items:
            post, version = shown[item.title or ""]
            assert item.text in (None, " ".join(description(version).split()))
            assert item.score == stars(world, post, at)
            assert item.gained == stars(world, post, at) - stars(world, post, at - timedelta(days=1))
        assert [item.gained for item in items] == sorted((item.gained or 0 for item in items), reverse=True)


def test_the_entries_noted_for_the_log_are_those_in_the_page(world: World, simulator: GitHubSimulator) -> None:
    for place in places(world):
        told = page(simulator, place, START + timedelta(days=3))
        assert [entry.wire_id for entry in told.entries] == [item.external_id for item in read(told)]
        assert {entry.post for entry in told.entries} <= {post.id for post in world.posts(place)}


def test_the_first_place_is_the_page_of_all_and_each_other_that_of_a_language(
    world: World, simulator: GitHubSimulator
) -> None:
    assert [simulator.target(place) for place in places(world)] == ["all", *LANGUAGES[:3]]
    assert [simulator.find(path) for path in ("/trending/cobol", "/trending/", "/other")] == [None, None, None]
    spoken = {tag for place in places(world)[1:2] for item in read(page(simulator, place, START)) for tag in item.tags}
    assert spoken <= {LANGUAGES[0]}


def test_stars_never_shrink(world: World, simulator: GitHubSimulator) -> None:
    (place, *_) = places(world)
    for post in world.posts(place)[:20]:
        counted = [stars(world, post, START + timedelta(hours=hours)) for hours in range(0, 160, 7)]
        assert counted == sorted(counted)


def test_a_longer_period_gains_more(world: World, simulator: GitHubSimulator) -> None:
    (place, *_) = places(world)
    at = START + timedelta(days=6)
    daily, monthly = (
        {item.external_id: item.gained or 0 for item in read(page(simulator, place, at, since))}
        for since in ("daily", "monthly")
    )
    assert all(monthly[name] >= gained for name, gained in daily.items())


def test_no_two_answers_are_the_same_to_the_byte(world: World, simulator: GitHubSimulator) -> None:
    (place, *_) = places(world)
    assert page(simulator, place, START).body != page(simulator, place, START + timedelta(seconds=1)).body


def test_distortions_change_the_page(world: World, simulator: GitHubSimulator) -> None:
    (place, *_) = places(world)
    at = START + timedelta(days=3)
    straight = page(simulator, place, at).entries
    assert set(page(simulator, place, at, distortion=Distortion(is_reordered=True)).entries) == set(straight)
    assert len(page(simulator, place, at, distortion=Distortion(is_repeated=True)).entries) == 2 * len(straight)
    assert (
        page(simulator, place, at, distortion=Distortion(ago=timedelta(days=1))).entries
        == page(simulator, place, at - timedelta(days=1)).entries
    )


def test_all_that_misleads_occurs(world: World, simulator: GitHubSimulator) -> None:
    pages = [LexborHTMLParser(page(simulator, place, START).body.decode()) for place in places(world)]
    for selector in MISLEADING:
        assert any(page.css(selector) for page in pages), selector
    items = [
        item for place in places(world) for day in DAYS for item in read(page(simulator, place, START + timedelta(day)))
    ]
    assert any(item.text is None for item in items)
    assert any(not item.tags for item in items)
    assert any((item.score or 0) >= 1000 for item in items)


# ── as the real page ──────────────────────────────────────────────────────────────────────────────────────────────


def trails(nodes: Iterable[LexborNode]) -> set[str]:
    """The elements inside these, each with where it stands: article>h2>a."""
    return {_trail(inner) for node in nodes for inner in node.css("*")}


def _trail(node: LexborNode) -> str:
    names = []
    while node.tag not in (None, "div") or (node.parent is not None and node.parent.tag == "article"):
        names.append(node.tag or "")
        if node.tag == "article" or node.parent is None:
            break
        node = node.parent
    return ">".join(reversed(names))


def test_the_page_has_what_the_reader_goes_by_as_the_real_one_has(
    world: World, simulator: GitHubSimulator, captures: Path
) -> None:
    folder = captures / "github-trending"
    real = [
        LexborHTMLParser((folder / name).read_text()) for name in ("daily_2026-04.html", "daily_2026-04_3rows.html")
    ]
    ours = [LexborHTMLParser(page(simulator, place, START).body.decode()) for place in places(world)]
    for selector in RELIED_ON:
        assert any(page.css(selector) for page in real), f"the real page has no {selector}"
        assert any(page.css(selector) for page in ours), f"ours has no {selector}"


def test_every_element_of_a_row_stands_where_one_stands_in_a_real_row(
    world: World, simulator: GitHubSimulator, captures: Path
) -> None:
    folder = captures / "github-trending"
    real = trails(
        row
        for name in ("daily_2026-04.html", "daily_2026-04_3rows.html")
        for row in LexborHTMLParser((folder / name).read_text()).css("article")
    )
    ours = trails(
        row
        for place in places(world)
        for row in LexborHTMLParser(page(simulator, place, START).body.decode()).css("article")
    )
    assert ours - real == set()


def test_the_simulator_is_found_automatically(world: World) -> None:
    assert {"github", "website"} <= simulators(world).keys()
