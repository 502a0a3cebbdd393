"""Discourse forums: which forum is meant, what their posts are, how their pages turn, and what they refuse.

The samples are written by hand after public answers of such forums.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

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


def asked() -> Request:
    (request,) = discourse.first(SOURCE, Progress(), WalkPlan("posts", 100))
    return request


def read(body: Any, request: Request) -> Reading:
    return discourse.read(
        Answer(200, {}, body if isinstance(body, bytes) else json.dumps(body).encode(), request.url, NOW), request
    )


def posts_request() -> Request:
    """What the list of topics leads to."""
    (request,) = read(sample("latest"), asked()).follow
    return request


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
    (request,) = discourse.first(source, Progress(), WalkPlan("posts", 100))
    assert (request.url, request.credential) == ("https://example.com/forum/latest.json", "c")
    (posts,) = read(sample("latest"), request).follow
    assert (posts.url, posts.credential) == ("https://example.com/forum/posts.json", "c")
    assert request.fallback is not None
    assert request.fallback.url == "https://example.com/forum/posts.json"


def test_the_last_post_of_a_topic_without_replies_is_none() -> None:
    topics = {"topic_list": {"topics": [{"id": 1, "posts_count": 1, "last_posted_at": "2026-02-03T10:00:00.000Z"}]}}
    (request,) = read(topics, asked()).follow
    (head, reply) = read(shown(1, 2), request).items
    assert [(one.is_head, one.last_reply_at) for one in (head, reply)] == [(True, None), (False, None)]


@pytest.mark.parametrize("body", [b"<html></html>", b"[]", b'{"posts": []}', b'{"latest_posts": [', shown()])
def test_what_is_no_forums_answer_is_unreadable(body: Any) -> None:
    with pytest.raises(Unreadable):
        read(body, posts_request())


def before(number: int) -> Request:
    return posts_request().replace(params={"before": str(number)})


def test_the_next_page_begins_below_the_lowest_post() -> None:
    reading = read(shown(30, 29, 12), posts_request())
    assert [one.params for one in reading.follow] == [{"before": "12"}]
    assert not reading.is_end


def test_a_forum_that_shows_the_post_it_went_on_from_once_more_is_read_to_its_end() -> None:
    reading = read(shown(12, 8), before(12))
    assert [item.external_id for item in reading.items] == ["8"]
    last = read(shown(8), before(8))
    assert (last.items, last.follow, last.is_end) == ((), (), True)
    assert read(shown(), before(8)).is_end


def looked(name: str, external_id: str, url: str) -> Reading:
    (request,) = discourse.recheck([Recheck(external_id, "key", url, SOURCE)])
    assert request.item_id == external_id
    return read(sample(name), request)


def test_a_second_look_at_a_head_goes_by_its_topic_and_finds_the_same_content() -> None:
    then = read(sample("posts"), posts_request())
    now = looked("topic", "120", "https://forum.example/t/welcome/40/1")
    assert [(item.external_id, item.view_count, item.score, item.reply_count) for item in now.items] == [
        ("120", 80, 6, 3)
    ]
    assert [item.last_reply_at for item in now.items] == [datetime(2026, 2, 4, 10, tzinfo=UTC)]
    old, new = (refine(one, scope="", answer_url=FORUM).items[0].fingerprint for one in (then, now))
    assert old == new


def test_a_second_look_at_a_reply_goes_by_its_number() -> None:
    (request,) = discourse.recheck([Recheck("118", "key", "https://forum.example/t/ferry-times/38/3", SOURCE)])
    assert (request.url, request.item_id) == ("https://forum.example/posts/118.json", "118")


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
