"""The parser: what answers of either service give, recorded ones among them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import Missing, Unreadable
from catchment.model import Answer, Reading
from catchment.platforms import x
from tests.x.asking import FEED, LIST, NOW, first, read, source_of


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


def flat(number: int, **more: Any) -> dict[str, Any]:
    """A post in the form of TwitterAPI.io."""
    author = {"userName": "ada", "id": "783214", "name": "Ada", "pinnedTweetIds": ["1800000000000000001"]}
    return {
        "id": str(number),
        "text": f"Lock {number}",
        "createdAt": "Thu Nov 13 08:16:34 +0000 2025",
        "author": author,
        **more,
    }


def test_a_post_that_its_author_has_pinned_is_no_stop_mark_wherever_it_stands() -> None:
    tweets = [flat(1800000000000000001), flat(1900000000000000001)]
    reading = read(json.dumps({"data": {"tweets": tweets}}).encode(), source_of(FEED, "@ada", service="twitterapi_io"))
    assert [item.is_pinned for item in reading.items] == [True, None]


@pytest.mark.parametrize(
    ("pair", "leads_on"),
    [
        ({"has_next_page": True, "next_cursor": "c"}, True),
        ({"next_cursor": "c"}, True),
        ({"has_next_page": False, "next_cursor": "c"}, False),
        ({"has_next_page": True, "next_cursor": ""}, False),
        ({"has_next_page": True}, False),
    ],
)
@pytest.mark.parametrize("is_inside", [True, False])
def test_a_cursor_is_followed_unless_the_answer_says_that_it_is_the_last_page(
    pair: dict[str, Any], leads_on: bool, is_inside: bool
) -> None:
    data = {"tweets": [flat(1900000000000000001)]}
    body = {"data": data | pair} if is_inside else {"data": data} | pair
    reading = read(json.dumps(body).encode(), source_of(FEED, "@ada", service="twitterapi_io"))
    assert (len(reading.follow) == 1, reading.is_end) == (leads_on, not leads_on)


def test_errors_about_posts_do_not_spoil_a_page_without_any() -> None:
    error = {"resource_type": "tweet", "title": "Not Found Error", "detail": "Could not find tweet with id: [7]."}
    body = {"errors": [error], "meta": {"result_count": 0, "next_token": "n"}}
    reading = read(json.dumps(body).encode(), source_of(FEED, "@ada", service="x"))
    assert (reading.items, len(reading.follow), reading.is_end) == ((), 1, False)


@pytest.mark.parametrize("data", [None, {}, []])
@pytest.mark.parametrize("service", ["x", "twitterapi_io"])
def test_an_empty_profile_is_that_of_nobody(service: str, data: Any) -> None:
    request = first(source_of(FEED, "@ada", service=service))
    refusal = x.refusal(Answer(200, {}, json.dumps({"data": data}).encode(), request.url, NOW), request)
    assert refusal is not None
    assert isinstance(refusal.error, Missing)
