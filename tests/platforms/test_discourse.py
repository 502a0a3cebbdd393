"""Discourse forums: which forum is meant, what their posts are, how their pages turn, and what they refuse.

The samples are written by hand after public answers of such forums.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import (
    InvalidInput,
    LoginNeeded,
    PlatformError,
    Refused,
    SlowDown,
    Unreadable,
)
from catchment.model import (
    Answer,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import discourse
from catchment.text.clean import refine

NOW = datetime(2026, 3, 2, tzinfo=UTC)
FORUM = "https://forum.example/"
SAMPLES = Path(__file__).parent / "discourse"
SOURCE = Source(1, "key", "discourse", "discourse_forum", FORUM, "Forum", NOW)


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.json").read_bytes()


def asked(listing: str = "posts") -> Request:
    (request,) = discourse.first(SOURCE, Progress(), WalkPlan(listing, 100))
    return request


def read(body: Any, request: Request) -> Reading:
    return discourse.read(
        Answer(200, {}, body if isinstance(body, bytes) else json.dumps(body).encode(), request.url, NOW), request
    )


def shown(*ids: int) -> dict[str, Any]:
    return {"latest_posts": [{"id": id, "topic_id": 1, "post_number": id, "cooked": "<p>x</p>"} for id in ids]}


@pytest.mark.parametrize(
    ("typed", "forum"),
    [
        ("forum.example", FORUM),
        ("https://forum.example/latest", FORUM),
        ("https://forum.example/t/welcome/40/3?u=ada", FORUM),
        ("https://forum.example/posts.json", FORUM),
        ("https://example.com/forum", "https://example.com/forum/"),
        ("https://example.com/forum/c/news/4", "https://example.com/forum/"),
        ("https://example.com/topics", "https://example.com/topics/"),
    ],
)
def test_a_forum_is_understood_by_any_of_its_pages(typed: str, forum: str) -> None:
    assert discourse.understand(typed).address == forum


def test_what_is_no_address_is_answered_with_what_would_be_right() -> None:
    with pytest.raises(InvalidInput, match=r"meta\.discourse\.org"):
        discourse.understand("ftp://forum.example")


def test_a_forum_in_a_folder_is_asked_there() -> None:
    source = SOURCE.replace(target="https://example.com/forum/", credential="c")
    for listing, path in (("posts", "posts.json"), ("topics", "latest.json")):
        (request,) = discourse.first(source, Progress(), WalkPlan(listing, 100))
        assert (request.url, request.credential) == (f"https://example.com/forum/{path}", "c")
    page = discourse.floors(source, "40", 3)
    assert (page.url, page.credential) == ("https://example.com/forum/t/40/46.json", "c")


def test_the_last_post_of_a_topic_without_replies_is_none() -> None:
    topics = {"topic_list": {"topics": [{"id": 1, "posts_count": 1, "last_posted_at": "2026-02-03T10:00:00.000Z"}]}}
    reading = read(topics, asked("topics"))
    assert [(row.is_head, row.last_reply_at) for row in reading.items] == [(True, None)]
    # Which differs from that of a topic whose only reply came later.
    assert [row.last_reply_at for row in reading.threads] == [datetime(2026, 2, 3, 10, tzinfo=UTC)]


@pytest.mark.parametrize("body", [b"<html></html>", b"[]", b'{"posts": []}', b'{"latest_posts": [', shown()])
def test_what_is_no_forums_answer_is_unreadable(body: Any) -> None:
    with pytest.raises(Unreadable):
        read(body, asked())


def before(number: int) -> Request:
    return asked().replace(params={"before": str(number)})


def test_the_next_page_begins_below_the_lowest_post() -> None:
    reading = read(shown(30, 29, 12), asked())
    assert [request.params for request in reading.follow] == [{"before": "12"}]
    assert not reading.is_end


def test_a_forum_that_shows_the_post_it_went_on_from_once_more_is_read_to_its_end() -> None:
    reading = read(shown(12, 8), before(12))
    assert [item.external_id for item in reading.items] == ["8"]
    last = read(shown(8), before(8))
    assert (last.items, last.follow, last.is_end) == ((), (), True)
    assert read(shown(), before(8)).is_end


# ── topics ────────────────────────────────────────────────────────────────────────────────────────────────────────


def topic(numbers: set[int], near: int, **more: Any) -> dict[str, Any]:
    """A topic with posts of these numbers, as a forum shows it near one of them: five below it, or all there are, and
    so many from it on that they are twenty."""
    there = sorted(numbers)
    # Some forums know where a deleted post was, others take the nearest that is left.
    begin = min(there, key=lambda number: (abs(number - near), number))
    low = [number for number in there if number < begin][-5:]
    shown = [*low, *[number for number in there if number >= begin][: 20 - len(low)]]
    posts = [{"id": 100 + number, "topic_id": 7, "post_number": number, "cooked": "<p>x</p>"} for number in shown]
    stream = [100 + number for number in there]
    return {"id": 7, "highest_post_number": max(there), "post_stream": {"posts": posts, "stream": stream}, **more}


def near(request: Request) -> int:
    place = request.url.removesuffix(".json").partition("/t/7/")[2]
    return int(place or 1)


@settings(max_examples=60)
@given(st.sets(st.integers(2, 70), max_size=60))
def test_whatever_was_deleted_the_pages_of_a_topic_show_every_post_once_and_every_hole(deleted: set[int]) -> None:
    numbers = {*range(1, 72)} - deleted
    shown: list[int | None] = []
    holes: list[int] = []
    pages = {discourse.FORUM.page_of(max(numbers))}
    for page in range(1, discourse.FORUM.page_of(max(numbers)) + 1):
        request = discourse.floors(SOURCE, "7", page)
        reading = read(topic(numbers, near(request)), request)
        assert reading.thread_page is not None
        pages.add(reading.thread_page.page_count or 0)
        shown += [item.floor_number for item in reading.items]
        holes += reading.thread_page.holes
    assert len(pages) == 1
    assert shown == sorted(numbers)
    assert holes == sorted({*range(1, max(numbers))} - numbers)


@pytest.mark.parametrize("damage", ["a post is not shown", "a post cannot be read", "the end is not shown"])
def test_a_page_that_does_not_show_all_says_of_no_post_that_it_is_gone(damage: str) -> None:
    request = discourse.floors(SOURCE, "7", 1)
    request = request.replace(state={**request.state, "rechecked": ["105", "106"]})
    body = topic({*range(1, 18)} - {5, 9}, 1)
    whole = read(body, request)
    assert whole.thread_page is not None
    assert (whole.thread_page.holes, whole.gone) == ((5, 9), ("105",))
    posts = body["post_stream"]["posts"]
    if damage == "a post is not shown":
        del posts[7]
    elif damage == "a post cannot be read":
        posts[7]["post_number"] = "x"
    else:
        del posts[-3:]
    reading = read(body, request)
    assert reading.thread_page is not None
    assert (reading.thread_page.holes, reading.gone) == ((), ())


def test_a_topic_that_is_too_long_for_a_stream_has_holes_by_its_numbers() -> None:
    request = discourse.floors(SOURCE, "7", 2)
    body = topic({*range(1, 50)} - {30}, near(request))
    del body["post_stream"]["stream"]
    reading = read(body, request)
    assert reading.thread_page is not None
    assert (reading.thread_page.holes, reading.thread_page.page_count) == ((30,), 3)


def recheck(external_id: str, number: int | None, thread_id: str = "40", **more: Any) -> Recheck:
    return Recheck(external_id, "key", None, SOURCE, thread_id=thread_id, floor_number=number, **more)


def test_a_second_look_at_a_head_goes_by_its_topic_and_finds_the_same_content() -> None:
    (then, *_) = read(sample("posts"), asked()).items
    (request,) = discourse.recheck([recheck("t40", 1)])
    assert request.item_id == "t40"
    reading = read(sample("topic"), request)
    now = reading.items[0]
    assert (now.external_id, now.view_count, now.score, now.reply_count) == ("t40", 80, 6, 3)
    assert now.last_reply_at == datetime(2026, 2, 4, 10, tzinfo=UTC)
    old, new = (refine(Reading((item,)), scope="", answer_url=FORUM).items[0].fingerprint for item in (then, now))
    assert old == new
    # The same thing as the row of the list, and as the post that other answers call by its number.
    rows = read(sample("latest"), asked("topics")).items
    assert [(row.title, row.url) for row in rows if row.external_id == "t40"] == [(now.title, now.url)]
    assert now.aliases == ("120",)


def test_posts_of_one_page_are_looked_at_together_and_one_that_was_not_there_by_its_number() -> None:
    together = [recheck("118", 22, "38"), recheck("119", 40, "38")]
    alone = [recheck("130", 41, "38"), recheck("131", 23, "38", is_unconfirmed=True), recheck("132", None)]
    page, *others = discourse.recheck([*together, *alone])
    assert (page.url, page.item_id) == ("https://forum.example/t/38/26.json", None)
    assert page.state["rechecked"] == ["118", "119"]
    assert sorted((request.url, request.item_id or "") for request in others) == [
        (f"https://forum.example/posts/{id_}.json", id_) for id_ in ("130", "131", "132")
    ]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (403, {"errors": ["You need to be logged in."], "error_type": "not_logged_in"}, LoginNeeded),
        (403, {"errors": ["no"], "error_type": "invalid_access"}, LoginNeeded),
        (403, {"errors": ["no"]}, None),
        (404, {"errors": ["nothing"], "error_type": "not_found"}, None),
        (503, "<html></html>", None),
        (200, "<!doctype html><title>Just a moment...</title>", Refused),
    ],
)
def test_a_forum_says_why_it_refuses(status: int, body: Any, error: type[PlatformError] | None) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    refusal = discourse.refusal(Answer(status, {}, data, FORUM, NOW), asked())
    assert (type(refusal.error) if refusal else None) is error


@pytest.mark.parametrize(
    ("told", "waits"), [(15, 15), (0.5, 0.5), ("soon", None), (True, None), (-3, None), (1e99, None)]
)
def test_a_forum_that_asks_for_patience_says_how_long(told: Any, waits: float | None) -> None:
    body = json.dumps({"errors": ["slow"], "error_type": "rate_limit", "extras": {"wait_seconds": told}}).encode()
    refusal = discourse.refusal(Answer(429, {}, body, FORUM, NOW), asked())
    assert refusal is not None
    assert isinstance(refusal.error, SlowDown)
    assert refusal.error.retry_at == (NOW + timedelta(seconds=waits) if waits is not None else None)
