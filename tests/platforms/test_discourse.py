"""Discourse forums: which forum is meant, what their posts are, how their pages turn, and what they refuse.

The samples are written by hand after public answers of such forums.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import InvalidInput, LoginNeeded, PlatformError, Refused, SlowDown, Unreadable
from catchment.model import Answer, Ask, Item, Look, Progress, Reading, Reference, Request, Source
from catchment.platforms import discourse
from catchment.refine import refine

NOW = datetime(2026, 3, 2, tzinfo=UTC)
FORUM = "https://forum.example/"
SAMPLES = Path(__file__).parent / "samples" / "discourse"
SOURCE = Source(1, "key", "discourse", "discourse_forum", FORUM, "Forum", NOW)


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.json").read_bytes()


def asked() -> Request:
    (request,) = discourse.first(SOURCE, Progress(), Ask("posts", 100))
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


# ── which forum ───────────────────────────────────────────────────────────────────────────────────────────────────


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
    source = SOURCE.plus(target="https://example.com/forum/", credential="c")
    (request,) = discourse.first(source, Progress(), Ask("posts", 100))
    assert (request.url, request.credential) == ("https://example.com/forum/latest.json", "c")
    (posts,) = read(sample("latest"), request).follow
    assert (posts.url, posts.credential) == ("https://example.com/forum/posts.json", "c")
    assert request.otherwise is not None
    assert request.otherwise.url == "https://example.com/forum/posts.json"


# ── posts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_post_of_a_topic_has_its_title_and_what_the_list_of_topics_tells() -> None:
    head = read(sample("posts"), posts_request()).items[0]
    assert head == Item(
        "120",
        kind="post",
        title="Welcome",
        html="<p>Welcome to the <b>harbour</b>.</p>",
        base_url=FORUM,
        url="https://forum.example/t/welcome/40/1",
        created_at=datetime(2026, 2, 3, 10, 0, 0, 123000, tzinfo=UTC),
        edited_at=datetime(2026, 2, 3, 10, 5, tzinfo=UTC),
        author="ada",
        author_id="7",
        author_display_name="Ada",
        score=5,
        reply_count=2,
        view_count=77,
        last_reply_at=datetime(2026, 2, 3, 10, 4, tzinfo=UTC),
        thread_id="40",
        floor_number=1,
        is_head=True,
        is_pinned=True,
        tags=("news",),
    )


def test_the_last_post_of_a_topic_without_replies_is_none() -> None:
    topics = {"topic_list": {"topics": [{"id": 1, "posts_count": 1, "last_posted_at": "2026-02-03T10:00:00.000Z"}]}}
    (request,) = read(topics, asked()).follow
    (head, reply) = read(shown(1, 2), request).items
    assert [(one.is_head, one.last_reply_at) for one in (head, reply)] == [(True, None), (False, None)]


def test_a_reply_has_no_title_and_says_what_it_answers() -> None:
    reply = read(sample("posts"), posts_request()).items[1]
    assert (reply.title, reply.tags, reply.floor_number, reply.is_folded, reply.edited_at) == (None, (), 3, True, None)
    assert (reply.score, reply.view_count, reply.author_display_name) == (0, 4, None)
    assert reply.references == (
        Reference("replied_to", url="https://forum.example/t/ferry-times/38/2", author="ada", text="Ferry times"),
    )


def test_of_a_deleted_post_the_mark_is_kept_and_the_words_in_its_place_are_not() -> None:
    gone = read(sample("posts"), posts_request()).items[2]
    assert (gone.is_deleted, gone.html, gone.text, gone.score) == (True, None, None, None)


def test_what_is_no_post_is_skipped_and_the_rest_goes_on() -> None:
    reading = read(sample("posts"), posts_request())
    assert [item.external_id for item in reading.items] == ["120", "118", "117"]
    assert [one.reason for one in reading.skipped] == ["not a post"] * 2


def test_without_the_list_of_topics_posts_are_read_all_the_same() -> None:
    otherwise = asked().otherwise
    assert otherwise is not None
    head = read(sample("posts"), otherwise).items[0]
    assert (head.title, head.view_count, head.reply_count, head.is_pinned) == ("Welcome", None, 2, False)


@pytest.mark.parametrize("body", [b"<html></html>", b"[]", b'{"posts": []}', b'{"latest_posts": [', shown()])
def test_what_is_no_forums_answer_is_unreadable(body: Any) -> None:
    with pytest.raises(Unreadable):
        read(body, posts_request())


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def before(number: int) -> Request:
    return posts_request().plus(params={"before": str(number)})


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


def test_pages_that_lead_back_do_not_pass_for_the_end() -> None:
    reading = read(shown(30, 29, 12), before(12))
    assert (reading.items, reading.follow, reading.is_end) == ((), (), False)
    assert reading.notes == ("its pages lead back to one that was read",)


# ── second looks ──────────────────────────────────────────────────────────────────────────────────────────────────


def looked(name: str, external_id: str, url: str) -> Reading:
    (request,) = discourse.look_again([Look(external_id, "key", url, SOURCE)])
    assert request.asks_for == external_id
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
    (request,) = discourse.look_again([Look("118", "key", "https://forum.example/t/ferry-times/38/3", SOURCE)])
    assert request.url == "https://forum.example/posts/118.json"
    (item,) = looked("post", "118", "https://forum.example/t/ferry-times/38/3").items
    assert (item.external_id, item.title, item.score, item.edited_at is not None) == ("118", None, 1, True)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


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
