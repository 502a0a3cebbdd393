"""What the playground says as Hacker News looks like the real thing, and our own reader reads back the truth."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.model import (
    Answer,
    Item,
    Reading,
    Request,
)
from catchment.platforms import hackernews as reader
from catchment.platforms.hackernews import algolia, firebase
from catchment.playground.sites import (
    Ask,
    Distortion,
    Page,
    simulators,
)
from catchment.playground.sites.hackernews import (
    INDEXED_AFTER,
    NOT_YET,
    HackerNewsSimulator,
    farewell,
    listed_before_told,
    sort_of,
    wire_id,
)
from catchment.playground.world import (
    Habits,
    Place,
    Post,
    World,
)
from catchment.text.clean import refine
from tests.playground.shapes import fields

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=4)
BASE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def world() -> World:
    habits = Habits(edited=0.3, removed=0.25, wires=1.0)
    return World(5, START, places=2, days=7, habits=habits, busy=1.0, others={"hackernews": 2})


@pytest.fixture(scope="module")
def place(world: World) -> Place:
    return world.places[2]


@pytest.fixture(scope="module")
def simulator(world: World) -> HackerNewsSimulator:
    return HackerNewsSimulator(world)


def page(
    simulator: HackerNewsSimulator, request: Request, at: datetime = AT, distortion: Distortion | None = None
) -> Page:
    path = "/" + request.url.split("/", 3)[3]
    query = "&".join(f"{name}={value}" for name, value in request.params.items())
    found = simulator.find(path)
    assert found is not None
    return simulator.answer(found, Ask(path, query, {}, at, BASE, distortion or Distortion()))


def read(
    simulator: HackerNewsSimulator, request: Request, at: datetime = AT, distortion: Distortion | None = None
) -> Reading:
    said = page(simulator, request, at, distortion)
    answer = Answer(said.status, {}, said.body, request.url, at)
    assert reader.refusal(answer, request) is None
    return reader.read(answer, request)


def item(simulator: HackerNewsSimulator, world: World, place: Place, post: Post, at: datetime = AT) -> Reading:
    return read(simulator, firebase.item_request(str(wire_id(world, place, post)), firebase.RECHECK), at)


def living(world: World, place: Place, at: datetime = AT) -> list[Post]:
    return [post for post in world.posts(place) if post.shown_from <= at and not post.is_removed(at)]


def refined(reading: Reading) -> list[Item]:
    assert reading.skipped == ()
    return [item.item for item in refine(reading, scope="", answer_url="https://news.ycombinator.com/").items]


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_lists_what_came_out_and_is_not_removed_by_falling_ids(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    listed = [int(item_id) for item_id in read(simulator, firebase.list_request("new")).listed]
    came = [post for post in living(world, place) if sort_of(world, post) != "job"]
    assert listed == [wire_id(world, place, post) for post in reversed(came)][:500]
    assert listed == sorted(listed, reverse=True)
    assert len(listed) > 100


def test_ids_go_up_with_the_time_of_appearance_and_never_change(world: World, place: Place) -> None:
    posts = world.posts(place)
    ids = [wire_id(world, place, post) for post in posts]
    assert ids == sorted(set(ids))
    longer = World(5, START, places=2, days=9, habits=world.habits, others={"hackernews": 2})
    early = [post for post in posts if post.shown_from < AT]
    assert [wire_id(longer, longer.places[2], post) for post in early] == ids[: len(early)]


@pytest.mark.parametrize("name", ["ask", "show", "job"])
def test_a_list_of_one_sort_has_only_that_sort(
    world: World, simulator: HackerNewsSimulator, place: Place, name: str
) -> None:
    by_id = {str(wire_id(world, place, post)): post for post in world.posts(place)}
    assert {sort_of(world, by_id[item_id]) for item_id in read(simulator, firebase.list_request(name)).listed} == {name}


def test_top_is_by_score_and_age_and_best_by_score(world: World, simulator: HackerNewsSimulator, place: Place) -> None:
    by_id = {str(wire_id(world, place, post)): post for post in world.posts(place)}
    top, best, new = (read(simulator, firebase.list_request(name)).listed for name in ("top", "best", "new"))
    scores = [max(1, world.counters(by_id[item_id], AT).score) for item_id in best]
    assert scores == sorted(scores, reverse=True)
    assert top not in (new, best)
    ages = [sum((AT - by_id[item_id].shown_from for item_id in listed[:30]), timedelta()) for listed in (top, best)]
    assert ages[0] < ages[1]


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_our_own_reader_reads_back_every_story_as_it_is(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    posts = [post for post in living(world, place) if post.shown_from + NOT_YET <= AT]
    for post in posts:
        (story,) = refined(item(simulator, world, place, post))
        version, counters = post.version(AT), world.counters(post, AT)
        assert (story.title, story.text, story.author) == (version.title, version.text, post.author)
        assert (story.external_id, story.created_at) == (str(wire_id(world, place, post)), post.shown_from)
        assert story.score == max(1, counters.score)
        assert story.reply_count == (None if story.kind == "job" else counters.reply_count)
        assert bool(story.target_url) == (sort_of(world, post) in ("link", "show"))
    assert {post.version(AT).number for post in posts} >= {1, 2}
    assert {sort_of(world, post) for post in posts} >= {"link", "ask", "show"}


def test_a_page_notes_which_version_of_which_post_it_shows_and_a_list_of_ids_shows_none(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    post = next(post for post in living(world, place) if post.version(AT).number == 2)
    request = firebase.item_request(str(wire_id(world, place, post)), firebase.RECHECK)
    (entry,) = page(simulator, request).entries
    assert (entry.post, entry.version, entry.wire_id) == (post.id, 2, str(wire_id(world, place, post)))
    assert page(simulator, firebase.list_request("new")).entries == ()


@pytest.mark.parametrize("as_what", ["dead", "deleted", "null"])
def test_a_removed_story_leaves_the_lists_and_says_so_when_asked_for(
    world: World, simulator: HackerNewsSimulator, place: Place, as_what: str
) -> None:
    post = next(
        post
        for post in world.posts(place)
        if post.removed_at and post.restored_at and post.removed_at > START and farewell(world, post) == as_what
    )
    assert post.removed_at
    assert post.restored_at
    id = str(wire_id(world, place, post))
    assert id not in read(simulator, firebase.list_request("new"), post.removed_at).listed
    gone = item(simulator, world, place, post, post.removed_at)
    marked = [(item.external_id, item.is_deleted) for item in gone.items]
    assert (marked, gone.gone) == (([], (id,)) if as_what == "null" else ([(id, True)], ()))
    told = page(simulator, firebase.item_request(id, firebase.RECHECK), post.removed_at).entries
    assert [(entry.post, entry.is_deleted) for entry in told] == ([] if as_what == "null" else [(post.id, True)])
    assert not item(simulator, world, place, post, post.restored_at).items[0].is_deleted


def test_a_brand_new_story_is_listed_and_null_for_a_moment(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    post = next(post for post in living(world, place) if listed_before_told(world, post) and post.shown_from > START)
    id, at = str(wire_id(world, place, post)), post.shown_from
    assert id in read(simulator, firebase.list_request("new"), at).listed
    detail = firebase.item_request(id, firebase.DETAIL, "new")
    assert read(simulator, detail, at) == Reading(is_unfinished=True)
    assert read(simulator, detail, at + NOT_YET).items[0].external_id == id


@pytest.mark.parametrize(
    "path", ["/v0/item/47999999.json", "/v0/item/48000001.json", "/v0/item/99999999.json", "/v0/hotstories.json"]
)
def test_what_is_not_there_is_null(simulator: HackerNewsSimulator, place: Place, path: str) -> None:
    assert simulator.find(path) == place
    assert simulator.answer(place, Ask(path, "", {}, AT, BASE)).body == b"null"


# ── searches ──────────────────────────────────────────────────────────────────────────────────────────────────────


def walked(simulator: HackerNewsSimulator, words: str, size: int) -> list[Item]:
    """All that a search finds, page by page, as the reader goes on."""
    request = algolia.request(words)
    waiting, found = [request.replace(params=request.params | {"hitsPerPage": str(size)})], []
    while waiting:
        reading = read(simulator, waiting.pop())
        found += refined(reading)
        waiting += reading.follow
    return found


def test_a_search_walks_down_to_the_very_first_story_that_matches(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    matching = [
        post
        for post in living(world, place)
        if post.shown_from <= AT - INDEXED_AFTER
        and sort_of(world, post) != "job"
        and "harbor" in f"{post.version(AT).title} {post.version(AT).text}".lower()
    ]
    found = walked(simulator, "harbor", 10)
    assert list(dict.fromkeys(item.external_id for item in found)) == [
        str(wire_id(world, place, post)) for post in reversed(matching)
    ]
    assert len(matching) > 50


def test_both_services_tell_of_a_story_in_the_same_words(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    by_id = {str(wire_id(world, place, post)): post for post in world.posts(place)}
    for found in walked(simulator, "harbor", 100):
        (other,) = refined(item(simulator, world, place, by_id[found.external_id]))
        assert found == other


def test_the_search_hears_of_a_story_some_minutes_later(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    post = next(
        post for post in world.posts(place) if post.shown_from > START and not post.removed_at
        and sort_of(world, post) == "link"
    )  # fmt: skip
    id = str(wire_id(world, place, post))
    request = algolia.request(post.versions[0].title.split()[0])
    seen = [
        id in {item.external_id for item in read(simulator, request, post.shown_from + after).items}
        for after in (timedelta(), INDEXED_AFTER)
    ]
    assert seen == [False, True]


# ── what faults do to the telling ──────────────────────────────────────────────────────────────────────────────────

NEW, SEARCH = firebase.list_request("new"), algolia.request("harbor")


def shown(reading: Reading) -> list[str]:
    return list(reading.listed) or [item.external_id for item in reading.items]


@pytest.mark.parametrize("request_", [NEW, SEARCH], ids=["list", "search"])
def test_a_stale_answer_is_that_of_its_time(simulator: HackerNewsSimulator, request_: Request) -> None:
    ago = timedelta(hours=9)
    stale = read(simulator, request_, AT, Distortion(ago=ago))
    assert stale == read(simulator, request_, AT - ago)
    assert stale != read(simulator, request_, AT)


@pytest.mark.parametrize("request_", [NEW, SEARCH], ids=["list", "search"])
def test_in_disorder_or_twice_they_are_the_same_stories(simulator: HackerNewsSimulator, request_: Request) -> None:
    straight = shown(read(simulator, request_))
    reordered = shown(read(simulator, request_, AT, Distortion(is_reordered=True)))
    assert reordered != straight
    assert sorted(reordered) == sorted(straight)
    assert set(shown(read(simulator, request_, AT, Distortion(is_repeated=True)))) == set(straight)
    assert page(simulator, request_, AT, Distortion(is_repeated=True)).body.count(straight[0].encode()) > page(
        simulator, request_
    ).body.count(straight[0].encode())


def test_a_skewed_clock_shifts_the_dates_of_items_and_hits(
    world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    skew = Distortion(skew=timedelta(hours=5))
    straight, skewed = read(simulator, SEARCH).items, read(simulator, SEARCH, AT, skew).items
    assert [item.created_at for item in skewed] == [item.created_at + skew.skew for item in straight if item.created_at]
    post = living(world, place)[0]
    request = firebase.item_request(str(wire_id(world, place, post)), firebase.RECHECK)
    assert read(simulator, request, AT, skew).items[0].created_at == post.shown_from + skew.skew


def test_a_looping_search_leads_back_to_where_it_began(simulator: HackerNewsSimulator) -> None:
    request = SEARCH.replace(params=SEARCH.params | {"hitsPerPage": "10"})
    loop = Distortion(is_looping=True)
    first = read(simulator, request, AT, loop)
    assert shown(read(simulator, first.follow[0], AT, loop)) == shown(first)


def test_the_site_has_its_paths_to_itself(world: World, simulator: HackerNewsSimulator, place: Place) -> None:
    assert isinstance(simulators(world)["hackernews"], HackerNewsSimulator)
    assert simulator.find("/v0/topstories.json") == simulator.find("/api/v1/search_by_date") == place
    assert [simulator.find(path) for path in ("/feeds/0.xml", "/api/v1/items/1", "/v0/", "/latest.json")] == [None] * 4
    assert HackerNewsSimulator(World(5, START, places=2, days=1)).find("/v0/topstories.json") is None


# ── as the real answers are ───────────────────────────────────────────────────────────────────────────────────────


def real(captures: Path, pattern: str) -> set[tuple[str, ...]]:
    found = [json.loads(path.read_bytes()) for path in sorted((captures / "hn").glob(pattern))]
    assert found
    return {path for document in found for path in fields(document)}


def test_every_key_of_an_item_occurs_in_real_ones_with_its_type(
    captures: Path, world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    requests = [
        firebase.item_request(str(wire_id(world, place, post)), firebase.RECHECK)
        for post in world.posts(place)
        if post.shown_from + NOT_YET <= AT
    ]
    told = [json.loads(page(simulator, request).body) for request in requests]
    ours = {path for document in told if document for path in fields(document)}
    assert ours - real(captures, "firebase/item_*.json") == set()
    assert {"dead", "deleted", "parts", "kids", "url", "text"} <= {path[0] for path in ours}


def test_a_dead_and_a_deleted_story_have_exactly_the_keys_of_real_ones(
    captures: Path, world: World, simulator: HackerNewsSimulator, place: Place
) -> None:
    ours: dict[str, set[str]] = {}
    for post in world.posts(place):
        if post.is_removed(AT):
            told = page(simulator, firebase.item_request(str(wire_id(world, place, post)), firebase.RECHECK)).body
            ours.setdefault(farewell(world, post), set(json.loads(told) or ()))
    dead = json.loads((captures / "hn/firebase/item_dead_story_49280269.json").read_bytes())
    deleted = json.loads((captures / "hn/firebase/item_deleted_comment_47367592.json").read_bytes())
    assert ours == {"dead": set(dead), "deleted": set(deleted) - {"parent"}, "null": set()}


def test_a_list_is_a_list_of_numbers_like_a_real_one(captures: Path, simulator: HackerNewsSimulator) -> None:
    ours = set(fields(json.loads(page(simulator, NEW).body)))
    assert ours == real(captures, "firebase/newstories_2026.json")


def test_every_key_of_a_search_occurs_in_real_ones_with_its_type(
    captures: Path, simulator: HackerNewsSimulator
) -> None:
    ours = set(fields(json.loads(page(simulator, SEARCH).body)))
    assert ours - real(captures, "algolia/*.json") == set()
    of_today = set(fields(json.loads((captures / "hn/algolia/search_by_date_2026.json").read_bytes())))
    assert of_today - ours == set()
