"""JSON APIs and Discourse forums of the playground: our own readers read back exactly what the world says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import Unreadable
from catchment.model import (
    Answer,
    Item,
    Platform,
    Progress,
    Recheck,
    Request,
    Source,
)
from catchment.model import WalkPlan as Wish
from catchment.platforms import discourse, installed
from catchment.playground.sites import (
    Ask,
    Distortion,
    Entry,
    simulators,
)
from catchment.playground.sites import discourse as forum_site
from catchment.playground.sites import json_api as api_site
from catchment.playground.world import Habits, Place, World
from catchment.text.clean import refine

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=3)
BASE = "http://127.0.0.1:8000"
KINDS = {"json_api": "custom_api", "discourse": "discourse_forum"}

# As they stand in public answers of Discourse 3: of a post in /posts.json, and of a topic in /latest.json.
POST_KEYS = """
    id name username avatar_template created_at cooked post_number post_type posts_count updated_at reply_count
    reply_to_post_number quote_count incoming_link_count reads readers_count score yours topic_id topic_slug topic_title
    topic_html_title category_id display_username primary_group_name version can_edit can_delete can_recover can_wiki
    user_title bookmarked raw actions_summary moderator admin staff user_id hidden trust_level deleted_at user_deleted
    edit_reason excerpt cooked_hidden
"""
TOPIC_KEYS = """
    id title fancy_title slug posts_count reply_count highest_post_number image_url created_at last_posted_at bumped
    bumped_at archetype unseen pinned unpinned pinned_globally visible closed archived bookmarked liked tags
    tags_descriptions views like_count has_summary last_poster_username category_id featured_link posters excerpt
"""


@pytest.fixture(scope="module")
def world() -> World:
    habits = Habits(edited=0.2, hostile=0.2, removed=0.1)
    return World(3, START, 0, 7, habits=habits, busy=20.0, others={"json_api": 8, "discourse": 2})


class Reader:
    """Asks a place by way of our own platform, page after page, without a socket in between."""

    def __init__(self, world: World, place: Place, at: datetime, distortion: Distortion | None = None) -> None:
        self.place, self.at, self.distortion = place, at, distortion or Distortion()
        self.simulator = simulators(world)[place.form]
        kind = installed().kind(KINDS[place.form])
        platform = installed().of_kind(KINDS[place.form])
        assert kind is not None
        assert platform is not None
        self.platform: Platform = platform
        settings = checked_settings(kind, api_site.settings(place)) if place.form == "json_api" else {}
        target = platform.understand(BASE + place.path, kind.name).address
        self.source = Source(1, "key", platform.NAME, kind.name, target, "x", START, settings=settings)
        self.entries: list[Entry] = []
        self.pages = 0

    @property
    def forum(self) -> forum_site.DiscourseSimulator:
        assert isinstance(self.simulator, forum_site.DiscourseSimulator)
        return self.simulator

    def answer(self, request: Request) -> Answer:
        parts = urlsplit(request.url)
        query = "&".join(part for part in (parts.query, urlencode(request.params)) if part)
        place = self.simulator.find(parts.path)
        assert place == self.place
        page = self.simulator.answer(place, Ask(parts.path, query, {}, self.at, BASE, self.distortion))
        self.entries += page.entries
        headers = {name.lower(): value for name, value in page.headers.items()}
        return Answer(page.status, headers, page.body, request.url, self.at)

    def items(self) -> Iterator[Item]:
        yield from self.walk("posts" if self.place.form == "discourse" else "")

    def walk(self, listing: str) -> Iterator[Item]:
        waiting = self.platform.first(self.source, Progress(), Wish(listing, 100, is_first=True))
        while waiting:
            request = waiting.pop(0)
            answer = self.answer(request)
            assert self.platform.refusal(answer, request) is None
            reading = self.platform.read(answer, request)
            assert reading.skipped == ()
            self.pages += 1
            yield from (item.item for item in refine(reading, scope="", answer_url=answer.url).items)
            waiting += reading.follow


def told(item: Item) -> dict[str, Any]:
    return {
        "id": item.external_id,
        "text": item.text,
        "author": item.author,
        "created_at": item.created_at and item.created_at.replace(microsecond=0),
        "replies": item.reply_count,
    }


def places(world: World, form: str) -> list[Place]:
    return [place for place in world.places if place.form == form]


def test_an_api_in_every_manner_is_read_back_whole_and_newest_first(world: World) -> None:
    for place in places(world, "json_api"):
        reader = Reader(world, place, AT)
        items = list(reader.items())
        there = [post for post in reversed(world.posts(place)) if post.shown_from <= AT and not post.is_removed(AT)]
        there = there[: api_site.reach(place)]
        assert [told(item) for item in items] == [
            {
                "id": api_site.wire_id(place, post),
                "text": post.version(AT).text,
                "author": post.author,
                "created_at": post.shown_from,
                "replies": world.counters(post, AT).reply_count,
            }
            for post in there
        ]
        assert [item.title for item in items] == [post.version(AT).title for post in there]
        assert [item.score for item in items] == [world.counters(post, AT).score for post in there]
        assert [item.tags for item in items] == [post.tags for post in there]
        assert [len(item.media) for item in items] == [post.picture is not None for post in there]
        assert reader.pages >= len(items) / api_site.PAGE_SIZE
    assert {api_site.manner(place) for place in places(world, "json_api")} == set(api_site.MANNERS)


def test_a_forum_is_read_back_whole_and_newest_first(world: World) -> None:
    for place in places(world, "discourse"):
        reader = Reader(world, place, AT)
        items = list(reader.items())
        there = [post for post in reversed(world.posts(place)) if post.shown_from <= AT and not post.is_removed(AT)]
        assert [(item.external_id, item.text, item.author, item.created_at) for item in items] == [
            (
                topic_post.wire_id,
                None if topic_post.is_hidden(AT) else topic_post.post.version(AT).text,
                topic_post.post.author,
                topic_post.post.shown_from,
            )
            for topic_post in (reader.forum.posts(place)[post.id] for post in there)
        ]
        ids = [int(item.aliases[0] if item.is_head else item.external_id) for item in items]
        assert ids == sorted(ids, reverse=True)
        assert {bool(item.title) for item in items if item.floor_number == 1} == {True}
        assert {item.title for item in items if item.floor_number != 1} == {None}


@pytest.mark.parametrize("form", KINDS)
def test_the_entries_noted_for_the_log_are_those_in_the_pages(world: World, form: str) -> None:
    for place in places(world, form):
        reader = Reader(world, place, AT)
        assert [item.external_id for item in reader.items()] == [entry.wire_id for entry in reader.entries]
        assert len({entry.post for entry in reader.entries}) == len(reader.entries)


@pytest.mark.parametrize("form", KINDS)
def test_a_distorted_answer_differs_as_its_fault_says(world: World, form: str) -> None:
    for place in places(world, form):
        straight = list(Reader(world, place, AT).items())
        ago = Reader(world, place, AT + timedelta(hours=5), Distortion(ago=timedelta(hours=5))).items()
        assert [next(ago).external_id for _ in range(10)] == [item.external_id for item in straight[:10]]
        skewed = next(Reader(world, place, AT, Distortion(skew=timedelta(hours=5))).items())
        assert skewed.created_at == (straight[0].created_at or AT) + timedelta(hours=5)
        shuffled = Reader(world, place, AT, Distortion(is_reordered=True))
        assert {item.external_id for item in shuffled.items()} == {item.external_id for item in straight}
        looping = Reader(world, place, AT, Distortion(is_looping=True))
        first_page = {item.external_id for item, _ in zip(straight, range(forum_site.PAGE_SIZE), strict=False)}
        seen = set()
        # A page that repeats the one before it is refused by the JSON API's own parser.
        with suppress(Unreadable):
            for item, _ in zip(looping.items(), range(2000), strict=False):
                seen.add(item.external_id)
        assert seen
        assert seen <= first_page


def test_the_list_of_topics_shows_each_of_them_once_by_creation(world: World) -> None:
    for place in places(world, "discourse"):
        reader = Reader(world, place, AT)
        rows = list(reader.walk("topics"))
        topics = reader.forum.topics(place)
        there = [topic for topic in reversed(topics.values()) if topic[0].is_there(AT)]
        assert [(row.external_id, row.author, row.created_at, row.lacks_text) for row in rows] == [
            (f"t{topic[0].topic_id}", topic[0].post.author, topic[0].post.shown_from, True) for topic in there
        ]
        assert [row.reply_count for row in rows] == [
            sum(1 for topic_post in topic if topic_post.is_there(AT)) - 1 for topic in there
        ]
        assert reader.pages == -(-len(there) // forum_site.TOPICS)
        assert reader.entries == []


def test_topics_are_read_back_whole_with_their_holes(world: World) -> None:
    long = holes = hidden = 0
    for place in places(world, "discourse"):
        reader = Reader(world, place, AT)
        for topic_id, topic in reader.forum.topics(place).items():
            there = {topic_post.number: topic_post for topic_post in topic if topic_post.is_there(AT)}
            if not there:
                continue
            items: list[Item] = []
            absent: list[int] = []
            pages = discourse.FORUM.page_of(max(there))
            for page in range(1, pages + 1):
                request = discourse.floors(reader.source, str(topic_id), page)
                reading = discourse.read(reader.answer(request), request)
                assert reading.thread_page is not None
                assert (reading.thread_page.number, reading.thread_page.page_count) == (page, pages)
                absent += reading.thread_page.holes
                items += (item.item for item in refine(reading, scope="", answer_url=request.url).items)
            assert [(item.external_id, item.floor_number, item.text) for item in items] == [
                (topic_post.wire_id, number, None if topic_post.is_hidden(AT) else topic_post.post.version(AT).text)
                for number, topic_post in there.items()
            ]
            assert absent == sorted({*range(1, max(there))} - there.keys())
            long, holes = long + (pages > 1), holes + len(absent)
            hidden += sum(item.is_folded for item in items)
    assert min(long, holes, hidden) > 1


def test_a_post_can_be_looked_at_again_and_is_missing_once_it_was_removed(world: World) -> None:
    place = places(world, "discourse")[0]
    reader = Reader(world, place, AT)
    for item in list(reader.items())[:8]:
        again = Recheck(item.external_id, "key", item.url, reader.source, is_unconfirmed=True)
        (request,) = discourse.recheck([again])
        answer = reader.answer(request)
        found = [item.item for item in refine(discourse.read(answer, request), scope="", answer_url=answer.url).items]
        assert (item.external_id, item.title, item.text) in [
            (item.external_id, item.title, item.text) for item in found
        ]
    gone = next(
        topic_post
        for topic_post in reader.forum.posts(place).values()
        if topic_post.post.is_removed(AT) and topic_post.number > 1
    )
    assert reader.answer(Request(f"{BASE}{place.path}/posts/{gone.id}.json")).status == 404


def test_a_forum_tells_nothing_that_real_forums_do_not_tell(world: World) -> None:
    reader = Reader(world, places(world, "discourse")[0], AT)
    posts = json.loads(reader.answer(Request(f"{BASE}{reader.place.path}/posts.json")).body)["latest_posts"]
    topics = json.loads(reader.answer(Request(f"{BASE}{reader.place.path}/latest.json")).body)["topic_list"]["topics"]
    assert set().union(*posts) <= {*POST_KEYS.split()}
    assert set().union(*topics) <= {*TOPIC_KEYS.split()}


def test_a_parameter_that_makes_no_sense_is_answered_with_an_error(world: World) -> None:
    for place in places(world, "json_api"):
        query = {"cursor": "after=x", "page": "page=-1", "offset": "skip=x", "link": "page=0"}[api_site.manner(place)]
        assert api_site.JsonApiSimulator(world).answer(place, Ask(place.path, query, {}, AT, BASE)).status == 400
