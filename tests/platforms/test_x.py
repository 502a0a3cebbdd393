"""X: targets, requests and keys of both services; what recorded answers give."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput, Unreadable
from catchment.model import Answer, Identity, Progress, Reading, Request, Source, Target, WalkPlan, Watermark
from catchment.platforms import x
from catchment.text.clean import refine

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FEED, LIST, BOOKMARKS = "twitter_feed", "twitter_list", "twitter_bookmarks"


@pytest.mark.parametrize(
    ("typed", "kind", "address"),
    [
        ("@NASA", FEED, "@nasa"),
        ("nasa", FEED, "@nasa"),
        ("84839422", FEED, "@84839422"),
        ("84839422", LIST, "84839422"),
        ("https://x.com/NASA", FEED, "@nasa"),
        ("https://x.com/NASA/with_replies?lang=en", FEED, "@nasa"),
        ("mobile.twitter.com/NASA", FEED, "@nasa"),
        ("https://www.twitter.com/@NASA", FEED, "@nasa"),
        ("https://m.twitter.com/i/lists/84839422", LIST, "84839422"),
        ("bookmarks", BOOKMARKS, "bookmarks"),
        ("https://x.com/i/bookmarks", BOOKMARKS, "bookmarks"),
    ],
)
def test_a_target_is_understood_as_the_kind_that_was_named(typed: str, kind: str, address: str) -> None:
    target = x.understand(typed, kind)
    assert (target.kind, target.address) == (kind, address)
    assert x.understand(address, kind).address == address


@pytest.mark.parametrize(("typed", "kind"), [("@nasa", FEED), ("https://x.com/nasa", FEED), ("x.com/i/lists/5", LIST)])
def test_what_is_clearly_on_x_needs_no_kind(typed: str, kind: str) -> None:
    assert x.understand(typed, None).kind == kind


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("nasa", None),
        ("84839422", None),
        ("bookmarks", None),
        ("@nasa", LIST),
        ("https://x.com/nasa", LIST),
        ("https://x.com/i/lists/5", FEED),
        ("https://x.com/nasa/status/1", FEED),
        ("https://x.com/home", FEED),
        ("https://example.org/nasa", FEED),
        ("@a_name_that_is_too_long", FEED),
        ("0", LIST),
        ("mine", BOOKMARKS),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(typed: str, kind: str | None) -> None:
    with pytest.raises(InvalidInput) as failure:
        x.understand(typed, kind)
    assert failure.value.field == "target"
    assert failure.value.helps


def source_of(kind: str, target: str, **settings: Any) -> Source:
    return Source(1, "key", "x", kind, target, target, NOW, settings=settings)


def first(source: Source, progress: Progress | None = None, *keyed: str) -> Request:
    [request] = x.first(source, progress or Progress(), WalkPlan("tweets", 100, keyed=frozenset(keyed)))
    assert request.identity is Identity.NEEDED
    return request


def test_a_source_is_read_through_the_service_that_has_a_key() -> None:
    user = source_of(FEED, "@nasa")
    assert first(user, None, "x").url == "https://api.x.com/2/users/by/username/nasa"
    assert first(user, None, "twitterapi_io").url == "https://api.twitterapi.io/twitter/user/info"
    assert first(user, None, "x", "twitterapi_io").service == "twitterapi_io"
    assert first(source_of(FEED, "@nasa", service="x"), None, "twitterapi_io").service == "x"
    assert first(source_of(BOOKMARKS, "bookmarks"), None, "twitterapi_io").service == "x"


def test_a_known_user_is_asked_for_by_number_and_x_only_for_newer_posts() -> None:
    progress = Progress(cursor={"user_id": "11348282"}, watermark=Watermark(NOW, ("1900000000000000007", "12")))
    asked = first(source_of(FEED, "@nasa", service="x", replies=False), progress)
    assert asked.url == "https://api.x.com/2/users/11348282/tweets"
    assert asked.listing == "tweets_without_replies"
    assert {name: asked.params.get(name) for name in ("since_id", "exclude", "max_results")} == {
        "since_id": "1900000000000000007",
        "exclude": "replies",
        "max_results": "100",
    }
    flat = first(source_of(FEED, "@nasa", service="twitterapi_io"), progress)
    assert flat.params == {"userId": "11348282", "includeReplies": "true", "cursor": ""}


@pytest.mark.parametrize("stored", ["sesame-4711", "Bearer sesame-4711", "X-API-Key: sesame-4711"])
def test_a_key_is_sent_where_its_service_expects_it(stored: str) -> None:
    secret = Secret.parse(stored)
    for service, header in (
        ("x", {"Authorization": "Bearer sesame-4711"}),
        ("twitterapi_io", {"X-API-Key": "sesame-4711"}),
    ):
        request = first(source_of(FEED, "@nasa", service=service))
        assert x.dress(request, secret, NOW, "").headers == header


def test_long_texts_are_cut_at_what_x_allows() -> None:
    tweet = {"id": "1900000000000000001", "text": "w " * 20_000, "author_id": "7", "created_at": "2026-01-01T00:00:00Z"}
    body = {"data": [tweet], "includes": {"users": [{"id": "7", "username": "ada"}]}}
    reading = read(json.dumps(body).encode(), source_of(LIST, "5", service="x"))
    [item] = refine(reading, scope="", answer_url="https://api.x.com/", text_limit=x.TEXT_LIMIT).items
    assert item.is_text_cut
    assert len(item.item.text or "") <= 25_000


def read(body: bytes, source: Source) -> Reading:
    request = first(source, Progress(cursor={"user_id": "783214"}))
    answer = Answer(200, {}, body, request.url, NOW)
    assert x.refusal(answer, request) is None
    return x.read(answer, request)


def test_a_page_of_several_hundred_posts_is_read_whole() -> None:
    tweets = [
        {
            "id": str(1900000000000000000 + number),
            "text": f"post {number}",
            "author_id": "7",
            "created_at": "2026-01-01T00:00:00Z",
        }
        for number in range(700)
    ]
    body = json.dumps({"data": tweets, "includes": {"users": [{"id": "7", "username": "ada"}]}}).encode()
    assert len(read(body, source_of(LIST, "5", service="x")).items) == 700


# ── recorded answers ──────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = {
    "x-v2/cashtags.jsonl": 1,
    "x-v2/cotweet.jsonl": 1,
    "x-v2/edited.jsonl": 1,
    "x-v2/edited_before.jsonl": 1,
    "x-v2/geo_tweets.jsonl": 2,
    "x-v2/kpop.jsonl": 100,
    "x-v2/many_urls.jsonl": 1,
    "x-v2/media_tweet.jsonl": 1,
    "x-v2/mentions_tweet.jsonl": 1,
    "x-v2/quoted_edit.jsonl": 1,
    "x-v2/streaming_output_with_error.jsonl": 7,
    "x-v2/two_tweets.jsonl": 1,
    "x-v2/verified_type.jsonl": 1,
    "twitterapi-io/last_tweets_2026-09.json": 1,
    "twitterapi-io/quote_2025-11.json": 1,
    "twitterapi-io/reply_webhook_2025-08.json": 1,
    "twitterapi-io/retweet_with_video_2025-04.json": 1,
}
"""Recorded answers with all that a post needs, and how many there are."""
BARE = {
    "x-v2/list_tweets.json": 97,
    "x-v2/search_recent.json": 10,
    "x-v2/tweets_by_ids.json": 2,
    "x-v2/users_tweets.json": 2,
}
"""Answers to requests that did not ask for author and time."""


def recorded(captures: Path, name: str) -> Reading:
    return read((captures / name).read_bytes(), source_of(LIST, "84839422", service="x"))


def documents(captures: Path, name: str) -> list[dict[str, Any]]:
    found = []
    for line in (captures / name).read_text().splitlines() if name.endswith("l") else [(captures / name).read_text()]:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize(("name", "count"), WHOLE.items(), ids=list(WHOLE))
def test_a_recorded_answer_gives_every_post(captures: Path, name: str, count: int) -> None:
    reading = recorded(captures, name)
    assert len(reading.items) == count
    assert Counter(skipped.reason for skipped in reading.skipped) == (
        {"a broken line": 1} if "with_error" in name else {}
    )


@pytest.mark.parametrize("name", [name for name in WHOLE if name.startswith("x-v2/")])
def test_ids_times_authors_and_references_are_those_of_the_body(captures: Path, name: str) -> None:
    items = {item.external_id: item for item in recorded(captures, name).items}
    for document in documents(captures, name):
        includes = document.get("includes", {})
        users = {user["id"]: user for user in includes.get("users", [])}
        tweets = {tweet["id"]: tweet for tweet in includes.get("tweets", [])}
        data = document.get("data", [])
        for tweet in data if isinstance(data, list) else [data]:
            item = items[tweet["id"]]
            assert item.author == users[tweet["author_id"]]["username"]
            assert item.created_at == datetime.fromisoformat(tweet["created_at"])
            wanted = [(to["type"], to["id"]) for to in tweet.get("referenced_tweets", [])]
            assert [(to.relation, to.external_id) for to in item.references] == wanted
            for to in item.references:
                other = tweets.get(to.external_id or "")
                assert (to.text is not None) == (other is not None)
                if other is not None and other["author_id"] in users:
                    assert to.author == users[other["author_id"]]["username"]
                    assert to.created_at == datetime.fromisoformat(other["created_at"])


@pytest.mark.parametrize(("name", "count"), BARE.items(), ids=list(BARE))
def test_posts_without_author_or_time_are_skipped_with_the_reason(captures: Path, name: str, count: int) -> None:
    assert Counter(skipped.reason for skipped in recorded(captures, name).skipped) == {"no author": count}


def test_the_recorded_page_of_a_hundred_leads_on(captures: Path) -> None:
    reading = recorded(captures, "x-v2/kpop.jsonl")
    assert reading.follow[0].params["pagination_token"] == "b26v89c19zqg8o3fpds60ssjlg8rrux0bxoa7beulbhbx"
    assert not reading.is_end


def test_a_recorded_edit_has_the_earlier_id_as_its_other_one(captures: Path) -> None:
    [edited] = recorded(captures, "x-v2/edited.jsonl").items
    assert (edited.external_id, edited.aliases) == ("1576994789110992896", ("1576994746135764992",))


@pytest.mark.parametrize(
    "name", ["twitterapi-io/user_info_2026-09.json", "x-v2/user_by_username.json", "twitterapi-io/my_info_2026-09.json"]
)
def test_a_profile_is_no_page_of_posts(captures: Path, name: str) -> None:
    with pytest.raises(Unreadable):
        recorded(captures, name)


def test_the_target_of_a_list_names_it() -> None:
    assert x.understand("5", LIST) == Target(LIST, "5", "X list 5")
