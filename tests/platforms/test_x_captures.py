"""Real answers of X and of TwitterAPI.io: every recorded one, and what must come out of it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import LoginNeeded, SlowDown, Unreadable
from catchment.fetch.responses import told_to_wait_until
from catchment.model import Answer, FailureScope, Item, Reading, Request
from catchment.platforms import x
from tests.platforms import x_oracle
from tests.x.asking import FEED, LIST, NOW, first, source_of

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "x_captures.expected.json").read_text())
FOLDERS = ("x-v2", "twitterapi-io")
NO_PAGES = {
    "x-v2/users_tweets.headers.json",
    "x-v2/user_by_username.json",
    "x-v2/tweets_compliance.jsonl",
    "twitterapi-io/error_403.json",
    "twitterapi-io/error_429_free_tier.json",
    "twitterapi-io/my_info_2026-09.json",
    "twitterapi-io/user_info_2026-09.json",
}
"""Recorded answers without posts: headers, profiles, a balance, deletions, errors."""
BARE = ("list_tweets.json", "search_recent.json", "tweets_by_ids.json", "users_tweets.json")
"""Answers to requests that did not ask for author and time."""


def asked(name: str) -> Request:
    service = "x" if name.startswith("x-v2/") else "twitterapi_io"
    return first(source_of(LIST, "84839422", service=service))


def reading(captures: Path, name: str) -> Reading:
    request = asked(name)
    answer = Answer(200, {}, (captures / name).read_bytes(), request.url, NOW)
    assert x.refusal(answer, request) is None
    return x.read(answer, request)


def shown(told: Reading) -> dict[str, Any]:
    """A reading as data, without what it says of nothing."""
    items = told.items
    facts = {
        "posts": len(items),
        "first": said(items[0]) if items else None,
        "last": said(items[-1]) if len(items) > 1 else None,
        "score": sum(item.score or 0 for item in items),
        "replies": sum(item.reply_count or 0 for item in items),
        "views": sum(item.view_count or 0 for item in items),
        "languages": dict(Counter(item.language for item in items if item.language)),
        "tags": sum(len(item.tags) for item in items),
        "adult": sum(item.is_adult is True for item in items),
        "heads": sum(item.is_head for item in items),
        "aliases": {item.external_id: list(item.aliases) for item in items if item.aliases},
        "media": dict(Counter(medium.kind for item in items for medium in item.media)),
        "sized": sum(medium.width is not None for item in items for medium in item.media),
        "references": dict(Counter(to.relation for item in items for to in item.references)),
        "resolved": sum(to.text is not None for item in items for to in item.references),
        "with media": sum(bool(to.media) for item in items for to in item.references),
        "skipped": dict(Counter(skipped.reason for skipped in told.skipped)),
        "goes on after": [
            request.params.get("pagination_token") or request.params.get("cursor") for request in told.follow
        ],
        "ends": told.is_end,
    }
    return {name: value for name, value in facts.items() if value}


def said(item: Item) -> dict[str, Any]:
    """Who wrote it and what is compared with the body below: no names of people here."""
    facts = {"external_id": item.external_id, "thread_id": item.thread_id, "score": item.score}
    facts |= {"view_count": item.view_count, "created_at": str(item.created_at), "characters": len(item.text or "")}
    return {name: value for name, value in facts.items() if value is not None}


def test_every_recorded_answer_has_its_expectation(captures: Path) -> None:
    files = {f"{folder}/{path.name}" for folder in FOLDERS for path in (captures / folder).glob("*.json*")}
    assert files == EXPECTED.keys() | NO_PAGES


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_answer_gives_what_the_file_says(captures: Path, name: str) -> None:
    assert shown(reading(captures, name)) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if not name.endswith(BARE)))
def test_texts_media_authors_times_and_references_are_those_of_the_body(captures: Path, name: str) -> None:
    found = x_oracle.documents((captures / name).read_bytes())
    known = x_oracle.Known(found)
    posts = {tweet["id"]: x_oracle.post_of(tweet, known) for page in found for tweet in x_oracle.listed(page)}
    items = reading(captures, name).items
    assert [item.external_id for item in items] == list(posts)
    for item in items:
        post = posts[item.external_id]
        assert (item.author, item.author_display_name) == (post["author"], post["name"])
        assert (item.created_at, item.text, item.score) == (post["at"], post["text"], post["likes"])
        assert [medium.url for medium in item.media] == post["media"]
        assert [(to.relation, to.external_id) for to in item.references] == [
            (relation, id_) for relation, id_, _ in post["references"]
        ]
        for to, (_, _, other) in zip(item.references, post["references"], strict=True):
            if other is None:
                assert (to.text, to.created_at, to.media) == (None, None, ())
                continue
            assert (to.text, to.created_at) == (other["text"], other["at"])
            assert (to.author, to.author_display_name) == (other["author"], other["name"])
            assert [medium.url for medium in to.media] == other["media"]


def test_a_recorded_retweet_is_known_by_its_object_and_has_the_video_of_the_original(captures: Path) -> None:
    name = "twitterapi-io/retweet_with_video_2025-04.json"
    body = json.loads((captures / name).read_bytes())
    assert body["tweets"][0]["isRetweet"] is False
    (item,) = reading(captures, name).items
    (to,) = item.references
    assert to.relation == "retweeted"
    assert not (item.text or "").startswith("RT @")
    (video,) = item.media
    assert (video.kind, video.mime, to.media) == ("video", "video/mp4", (video,))
    assert video.width
    assert video.height


def test_a_recorded_reply_and_a_recorded_quote_refer_to_the_other_post(captures: Path) -> None:
    (reply,) = reading(captures, "twitterapi-io/reply_webhook_2025-08.json").items
    assert [to.relation for to in reply.references] == ["replied_to"]
    assert reply.references[0].external_id
    (quote,) = reading(captures, "twitterapi-io/quote_2025-11.json").items
    assert [to.relation for to in quote.references] == ["quoted"]
    assert quote.references[0].text


def test_the_recorded_page_has_its_paging_inside_and_leads_on(captures: Path) -> None:
    name = "twitterapi-io/last_tweets_2026-09.json"
    body = json.loads((captures / name).read_bytes())
    inside = {key: body["data"].pop(key) for key in ("has_next_page", "next_cursor")}
    assert "next_cursor" not in body
    (request,) = reading(captures, name).follow
    assert request.params["cursor"] == inside["next_cursor"]
    # The same pair outside, as others have seen it.
    answer = Answer(200, {}, json.dumps(body | inside).encode(), request.url, NOW)
    assert x.read(answer, asked(name)).follow == (request,)


def test_a_recorded_refusal_is_about_the_key(captures: Path) -> None:
    request = first(source_of(FEED, "@nasa", service="twitterapi_io")).replace(credential="key")
    answer = Answer(403, {}, (captures / "twitterapi-io/error_403.json").read_bytes(), request.url, NOW)
    refusal = x.refusal(answer, request)
    assert refusal is not None
    assert isinstance(refusal.error, LoginNeeded)
    assert refusal.blames == FailureScope.CREDENTIAL


def test_the_recorded_limit_of_free_accounts_is_waited_for(captures: Path) -> None:
    request = first(source_of(FEED, "@nasa", service="twitterapi_io"))
    answer = Answer(429, {}, (captures / "twitterapi-io/error_429_free_tier.json").read_bytes(), request.url, NOW)
    refusal = x.refusal(answer, request)
    assert refusal is not None
    assert isinstance(refusal.error, SlowDown)
    assert refusal.error.retry_at == NOW + timedelta(seconds=5)


def test_the_recorded_headers_of_x_say_when_its_window_ends(captures: Path) -> None:
    headers = json.loads((captures / "x-v2/users_tweets.headers.json").read_text())
    answered_at = parsedate_to_datetime(headers["date"].replace("UTC", "GMT"))
    assert told_to_wait_until(headers, answered_at) is None
    until = told_to_wait_until(headers | {"x-rate-limit-remaining": "0"}, answered_at)
    assert until == datetime(2022, 10, 7, 22, 53, 48, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(name for name in NO_PAGES if "error" not in name and "headers" not in name))
def test_what_has_no_posts_is_no_page_of_posts(captures: Path, name: str) -> None:
    with pytest.raises(Unreadable):
        reading(captures, name)
