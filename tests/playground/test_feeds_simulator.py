"""What the playground says as feeds is what real feeds look like, and what our own reader reads back is the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from catchment.model import Answer, Item, Request
from catchment.platforms import feeds as reader
from catchment.playground.sites import (
    Ask,
    Distortion,
    Page,
    simulators,
)
from catchment.playground.sites.feeds import CODECS, FeedSimulator, wire_id
from catchment.playground.world import Habits, Place, World
from catchment.text.clean import refine

START = datetime(2026, 1, 5, tzinfo=UTC)
BASE = "http://127.0.0.1:8000"
RARE = Habits(new_ids=0.2, moved=0.2, gone=0.2, undated=0.3, hostile=0.3, edited=0.2)
DAYS = [0.0, 1.3, 3.7, 6.9]


@pytest.fixture(scope="module")
def world() -> World:
    return World(3, START, places=80, days=7, habits=RARE)


@pytest.fixture(scope="module")
def simulator(world: World) -> FeedSimulator:
    return FeedSimulator(world)


def ask(place: Place, at: datetime, distortion: Distortion | None = None, **headers: str) -> Ask:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Ask(place.path_at(at), "", told, at, BASE, distortion or Distortion())


def read(page: Page, place: Place, at: datetime) -> tuple[Item, ...]:
    url = BASE + place.path_at(at)
    headers = {name.lower(): value for name, value in page.headers.items()}
    reading = reader.read(Answer(page.status, headers, page.body, url, at), Request(url))
    assert (reading.skipped, reading.notes) == ((), ())
    refined = refine(reading, scope="", answer_url=url)
    assert refined.skipped == ()
    return tuple(item.item for item in refined.items)


def some(world: World, when: Any, kind: str) -> Place:
    return next((place for place in world.places if when(place)), None) or pytest.fail(f"no place that {kind}")


# ── read back ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("day", DAYS)
def test_our_own_reader_reads_back_exactly_what_the_world_shows(
    world: World, simulator: FeedSimulator, day: float
) -> None:
    at = START + timedelta(days=day)
    for place in world.places:
        items = read(simulator.page(place, ask(place, at)), place, at)
        assert [told(item) for item in items] == [meant(world, place, at, *shown) for shown in world.shown(place, at)]


def told(item: Item) -> dict[str, Any]:
    return {
        "id": item.external_id,
        "title": item.title,
        "text": item.text,
        "author": item.author,
        "tags": item.tags,
        "created_at": item.created_at,
        "edited_at": item.edited_at,
        "pictures": [medium.url for medium in item.media],
    }


def meant(world: World, place: Place, at: datetime, post: Any, version: Any) -> dict[str, Any]:
    tells_edits = place.form in ("atom", "jsonfeed") and place.is_dated and version.number > 1
    has_pictures = place.form != "rdf"
    return {
        "id": wire_id(place, post, at),
        "title": version.title,
        "text": version.text,
        "author": post.author,
        "tags": post.tags,
        "created_at": post.created_at if place.is_dated else None,
        "edited_at": version.from_at if tells_edits and version.from_at > post.created_at else None,
        "pictures": [post.picture] if post.picture and has_pictures else [],
    }


def test_the_entries_noted_for_the_log_are_those_in_the_page(world: World, simulator: FeedSimulator) -> None:
    at = START + timedelta(days=3)
    for place in world.places:
        page = simulator.page(place, ask(place, at))
        shown = [(post.id, version.number) for post, version in world.shown(place, at)]
        assert [(entry.post, entry.version) for entry in page.entries] == shown
        assert [entry.wire_id for entry in page.entries] == [item.external_id for item in read(page, place, at)]


def test_nothing_hostile_survives_reading(world: World, simulator: FeedSimulator) -> None:
    at = START + timedelta(days=3)
    pages = [(simulator.page(place, ask(place, at)), place) for place in world.places]
    assert any(b"script" in page.body for page, _ in pages)
    for page, place in pages:
        for item in read(page, place, at):
            assert not re.search(r"<script|onerror|onload|<iframe|<style|srcdoc", item.html or "")


# ── validators, redirects, farewells, new ids ─────────────────────────────────────────────────────────────────────


def test_the_validators_of_a_page_get_a_304_until_the_listing_changes(world: World, simulator: FeedSimulator) -> None:
    at = START + timedelta(days=2)
    for place in world.places:
        if place.gone_at is not None:
            continue
        page = simulator.answer(place, ask(place, at))
        sent = {"ETag": "if_none_match", "Last-Modified": "if_modified_since"}
        known = {sent[name]: value for name, value in page.headers.items() if name in sent}
        assert {name for name in page.headers if name in sent} == {
            {"etag": "ETag", "last-modified": "Last-Modified"}[name] for name in place.validators
        }
        again = simulator.answer(place, ask(place, at, **known))
        assert again.status == (304 if place.validators else 200)
        assert again.body == (b"" if place.validators else page.body)
        later = next((change for change in changes(world, place) if change > at), None)
        if later is not None and simulator.page(place, ask(place, later)).body != page.body:
            assert simulator.answer(place, ask(place, later, **known)).status in (200, 301)


def changes(world: World, place: Place) -> list[datetime]:
    return sorted({at for post in world.posts(place) for at in post.changes()})


ETAG = re.compile(r'(W/)?"[!#-~]+"')
HTTP_DATE = re.compile(r"\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT")
CONTENT_TYPE = re.compile(r"application/(rss\+xml|rdf\+xml|atom\+xml|feed\+json); charset=(utf-8|gb2312)")
GRAMMAR = {"ETag": ETAG, "Last-Modified": HTTP_DATE, "Content-Type": CONTENT_TYPE}


def test_headers_are_written_as_http_wants_them(world: World, simulator: FeedSimulator) -> None:
    for place in world.places:
        headers = simulator.page(place, ask(place, START)).headers
        assert "Content-Type" in headers
        assert [name for name, value in headers.items() if not GRAMMAR[name].fullmatch(value)] == []


def test_some_chinese_places_still_speak_gb2312(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: place.charset == "gb2312", "speaks GB2312")
    page = simulator.page(place, ask(place, START))
    assert page.body.startswith(b'<?xml version="1.0" encoding="GB2312"?>')
    assert place.name in page.body.decode("gb18030")


def test_an_etag_outranks_a_date(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: len(place.validators) == 2 and not place.gone_at, "gives both")
    page = simulator.answer(place, ask(place, START))
    asked = ask(place, START, if_none_match='"another"', if_modified_since=page.headers["Last-Modified"])
    assert simulator.answer(place, asked).status == 200


def test_a_place_that_moves_points_to_its_new_home_from_then_on(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: place.moves_at, "moves")
    assert place.moves_at is not None
    assert place.new_path is not None
    before = place.moves_at - timedelta(seconds=1)
    old, new = ask(place, before), ask(place, place.moves_at)
    assert [simulator.answer(place, old).status, simulator.answer(place, old.replace(path=place.new_path)).status] == [
        200,
        404,
    ]
    page = simulator.answer(place, new.replace(path=place.path))
    assert (page.status, page.headers["Location"]) == (301, BASE + place.new_path)
    moved = simulator.answer(place, new)
    assert moved.status == 200
    assert (BASE + place.new_path).encode() in moved.body
    assert (BASE + place.path).encode() not in moved.body


def test_a_place_that_is_gone_says_so_for_ever(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: place.gone_at, "goes")
    assert place.gone_at is not None
    assert simulator.answer(place, ask(place, place.gone_at - timedelta(seconds=1))).status == 200
    assert {simulator.answer(place, ask(place, place.gone_at + timedelta(days=day))).status for day in (0, 1, 9)} == {
        410
    }


def test_new_ids_are_given_to_all_entries_at_once_and_their_links_stay(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: place.new_ids_at and world.shown(place, place.new_ids_at), "changes its ids")
    assert place.new_ids_at is not None
    at = place.new_ids_at - timedelta(seconds=1)
    before, after = (read(simulator.page(place, ask(place, when)), place, when) for when in (at, place.new_ids_at))
    assert {item.external_id for item in before}.isdisjoint(item.external_id for item in after)
    assert [(item.url, item.created_at) for item in before] == [(item.url, item.created_at) for item in after]


# ── what faults do to the telling ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def busy(world: World) -> Place:
    return max(
        (place for place in world.places if place.is_dated and not (place.gone_at or place.moves_at)),
        key=lambda place: place.pace.posts_a_day,
    )


def test_a_stale_page_is_the_page_of_that_time_with_its_validators(
    world: World, simulator: FeedSimulator, busy: Place
) -> None:
    at = START + timedelta(days=3)
    old = simulator.answer(busy, ask(busy, at - timedelta(hours=7)))
    stale = simulator.answer(busy, ask(busy, at, Distortion(ago=timedelta(hours=7))))
    assert stale == old
    assert stale != simulator.answer(busy, ask(busy, at))


def test_entries_in_disorder_or_twice_are_the_same_entries(simulator: FeedSimulator, busy: Place) -> None:
    at = START + timedelta(days=3)
    straight = simulator.answer(busy, ask(busy, at))
    reordered = simulator.answer(busy, ask(busy, at, Distortion(is_reordered=True)))
    repeated = simulator.answer(busy, ask(busy, at, Distortion(is_repeated=True)))
    assert reordered.entries != straight.entries
    assert sorted(entry.post for entry in reordered.entries) == sorted(entry.post for entry in straight.entries)
    assert repeated.entries[::2] == repeated.entries[1::2] == straight.entries


def test_a_skewed_clock_shifts_every_date_and_nothing_else(simulator: FeedSimulator, busy: Place) -> None:
    at, skew = START + timedelta(days=3), timedelta(hours=5)
    straight = read(simulator.answer(busy, ask(busy, at)), busy, at)
    skewed = read(simulator.answer(busy, ask(busy, at, Distortion(skew=skew))), busy, at)
    assert [item.created_at for item in skewed] == [item.created_at + skew for item in straight if item.created_at]
    assert [(item.external_id, item.text) for item in skewed] == [(item.external_id, item.text) for item in straight]


def test_a_looping_cursor_never_leads_anywhere_new(world: World, simulator: FeedSimulator) -> None:
    place = some(world, lambda place: place.form == "jsonfeed" and not (place.gone_at or place.moves_at), "is JSON")
    first = json.loads(simulator.answer(place, ask(place, START, Distortion(is_looping=True))).body)
    path, _, query = first["next_url"].removeprefix(BASE).partition("?")
    second = json.loads(simulator.answer(place, ask(place, START).replace(path=path, query=query)).body)
    assert second["next_url"] == first["next_url"]
    assert second["items"] == first["items"]


def test_simulators_are_found_automatically(world: World) -> None:
    assert isinstance(simulators(world)["feeds"], FeedSimulator)
    assert simulators(world)["feeds"].find("/feeds/0.nonsense") is None
    assert simulators(world)["feeds"].find("/feeds/99999.xml") is None
    assert [simulators(world)["feeds"].find(place.path) for place in world.places] == list(world.places)


# ── as real feeds are ─────────────────────────────────────────────────────────────────────────────────────────────

XML_FOLDERS = ("xml", "feed-rs", "encodings")
JSON_FILES = (
    "json/3960.json",
    "json/DaringFireball.json",
    "json/allthis.json",
    "json/curt.json",
    "feed-rs/jsonfeed_elastic_1.1.json",
)
ROOTS = {"rss": "rss", "rdf": "RDF", "atom": "{http://www.w3.org/2005/Atom}feed"}
RFC_822 = re.compile(r"\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} (GMT|[+-]\d{4})")
RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:\d{2})")
DATES = {"pubDate": RFC_822, "lastBuildDate": RFC_822, "date": RFC_3339, "published": RFC_3339, "updated": RFC_3339}


def nested(element: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every element with those above it, and every attribute of it; RSS without prefixes for its own elements."""
    path = (*above, str(element.tag))
    yield path
    yield from ((*path, f"@{name}") for name in element.attrib)
    for child in element:
        if isinstance(child.tag, str):
            yield from nested(child, path)


def fields(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a JSON document with those above it, and its type."""
    yield (*above, type(value).__name__)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from fields(inner, (*above, name))
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, (*above, "[]"))


def recorded_trees(captures: Path) -> Iterator[Any]:
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
    for folder in XML_FOLDERS:
        for file in sorted((captures / "feeds" / folder).iterdir()):
            root = etree.fromstring(file.read_bytes(), parser)
            if root is not None:
                yield root


def pages(world: World, simulator: FeedSimulator, form: str) -> list[str]:
    at = START + timedelta(days=3)
    return [
        simulator.page(place, ask(place, at)).body.decode(CODECS[place.charset])
        for place in world.places
        if place.form == form
    ]


def trees(world: World, simulator: FeedSimulator, form: str) -> list[Any]:
    # Without the declaration: what is text already has no encoding.
    return [etree.fromstring(page.partition("?>")[2].lstrip()) for page in pages(world, simulator, form)]


@pytest.mark.parametrize("form", ["rss", "rdf", "atom"])
def test_every_element_and_attribute_occurs_in_real_feeds_of_its_form(
    world: World, simulator: FeedSimulator, captures: Path, form: str
) -> None:
    real = {path for root in recorded_trees(captures) if root.tag.endswith(ROOTS[form]) for path in nested(root)}
    ours = {path for root in trees(world, simulator, form) for path in nested(root)}
    assert ours
    assert ours - real == set()


def test_every_field_occurs_in_real_json_feeds_with_its_type(
    world: World, simulator: FeedSimulator, captures: Path
) -> None:
    real = {path for name in JSON_FILES for path in fields(json.loads((captures / "feeds" / name).read_bytes()))}
    ours = {path for body in pages(world, simulator, "jsonfeed") for path in fields(json.loads(body))}
    assert ours
    assert ours - real == set()


@pytest.mark.parametrize("form", ["rss", "rdf", "atom"])
def test_dates_are_written_as_their_form_wants_them(world: World, simulator: FeedSimulator, form: str) -> None:
    dated = [
        (etree.QName(element).localname, element.text)
        for root in trees(world, simulator, form)
        for element in root.iter()
        if etree.QName(element).localname in DATES
    ]
    assert dated
    assert [(name, text) for name, text in dated if not DATES[name].fullmatch(text)] == []
