"""The parser: what answers of either service give, recorded ones among them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import Missing, Unreadable
from catchment.model import Answer, FailureScope, Gap, Progress, Reading, WalkPlan
from catchment.platforms import x
from catchment.policy.continuity import End
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


def of_list_page(*errors: dict[str, Any]) -> dict[str, Any]:
    return {"errors": list(errors), "meta": {"result_count": 0, "next_token": "n"}}


POST_ERROR = {
    "resource_type": "tweet",
    "parameter": "referenced_tweets.id",
    "resource_id": "7",
    "title": "Not Found Error",
    "detail": "Could not find tweet with referenced_tweets.id: [7].",
}
AUTHOR_ERROR = {
    "resource_type": "user",
    "parameter": "entities.mentions.username",
    "resource_id": "leeseunggi",
    "title": "Forbidden",
    "detail": "User has been suspended: [leeseunggi].",
}


@pytest.mark.parametrize("error", [POST_ERROR, AUTHOR_ERROR], ids=["post", "author"])
@pytest.mark.parametrize(("kind", "target"), [(LIST, "5"), (FEED, "@ada")])
def test_errors_about_what_posts_refer_to_are_not_about_the_list_or_the_user(
    kind: str, target: str, error: dict[str, Any]
) -> None:
    reading = read(json.dumps(of_list_page(error)).encode(), source_of(kind, target, service="x"))
    assert (reading.items, len(reading.follow)) == ((), 1)


@pytest.mark.parametrize(
    ("kind", "target", "error", "words"),
    [
        (FEED, "@ada", {"detail": "User has been suspended: [783214].", "resource_id": "783214"}, "has suspended"),
        (FEED, "@ada", {"detail": "Could not find user with id: [783214].", "parameter": "id"}, "there is no user"),
        (LIST, "5", {"detail": "Could not find list with id: [5].", "resource_type": "list"}, "there is no list 5"),
    ],
)
def test_among_several_errors_the_one_about_what_was_asked_for_counts(
    kind: str, target: str, error: dict[str, Any], words: str
) -> None:
    request = first(source_of(kind, target, service="x"), Progress(cursor={"user_id": "783214"}))
    body = {"errors": [POST_ERROR, AUTHOR_ERROR, error]}
    refusal = x.refusal(Answer(200, {}, json.dumps(body).encode(), request.url, NOW), request)
    assert refusal is not None
    assert words in str(refusal.error)


def test_lines_after_one_that_has_only_errors_are_read() -> None:
    tweet = {"id": "12", "text": "Lock 7", "author_id": "783214", "created_at": "2026-01-01T00:00:00Z"}
    page = {"data": [tweet], "meta": {"result_count": 1, "next_token": "n"}}
    lines = [{"errors": [POST_ERROR]}, page, {"errors": [POST_ERROR]}]
    reading = read(b"\n".join(json.dumps(line).encode() for line in lines), source_of(FEED, "@ada", service="x"))
    assert [item.external_id for item in reading.items] == ["12"]
    assert reading.follow[0].params["pagination_token"] == "n"


NOT_ENROLLED = {"title": "Client Forbidden", "detail": "You must use another account.", "reason": "client-not-enrolled"}


@pytest.mark.parametrize(("is_recent", "blames", "words"), [(True, True, "key"), (False, False, "older than a week")])
def test_a_search_that_is_forbidden_blames_the_key_unless_it_goes_back_further_than_a_week(
    is_recent: bool, blames: bool, words: str
) -> None:
    ago = timedelta(days=1 if is_recent else 30)
    gap = Gap(True, NOW - ago, NOW - ago + timedelta(hours=1), End.REPEATS)
    [request] = x.reach(source_of(FEED, "@ada", service="x"), gap, WalkPlan("tweets", 100), NOW)
    answer = Answer(403, {}, json.dumps(NOT_ENROLLED).encode(), request.url, NOW)
    refusal = x.refusal(answer, request.replace(credential="key"))
    assert refusal is not None
    assert (refusal.blames == FailureScope.CREDENTIAL, words in str(refusal.error)) == (blames, True)


# ── retweets, threads and versions ────────────────────────────────────────────────────────────────────────────────


def v2(*tweets: dict[str, Any], included: tuple[dict[str, Any], ...] = ()) -> bytes:
    users = [{"id": "783214", "username": "ada", "name": "Ada"}]
    return json.dumps({"data": tweets, "includes": {"users": users, "tweets": included}}).encode()


def post(number: int, **more: Any) -> dict[str, Any]:
    """A post in the form of X's own API."""
    return {
        "id": str(number),
        "text": f"Lock {number}",
        "author_id": "783214",
        "created_at": "2026-01-01T00:00:00Z",
        **more,
    }


def test_a_retweet_has_the_counters_of_the_original_as_far_as_they_are_known() -> None:
    zeros = {"like_count": 0, "reply_count": 0, "impression_count": 0}
    retweet = post(12, referenced_tweets=[{"type": "retweeted", "id": "11"}], public_metrics=zeros)
    original = post(11, public_metrics={"like_count": 73, "reply_count": 5})
    [item] = read(v2(retweet, included=(original,)), source_of(LIST, "5", service="x")).items
    assert (item.score, item.reply_count, item.view_count) == (73, 5, 0)
    [alone] = read(v2(retweet), source_of(LIST, "5", service="x")).items
    assert alone.score == 0


def test_a_recorded_retweet_has_the_views_of_the_original(captures: Path) -> None:
    [item] = recorded(captures, "twitterapi-io/retweet_with_video_2025-04.json").items
    assert (item.score, item.view_count) == (157, 16_335)


def test_an_edit_stays_in_the_thread_of_its_first_version() -> None:
    versions = {"edit_history_tweet_ids": ["11", "12"]}
    edited = post(12, conversation_id="12", **versions)
    early = post(13, conversation_id="11", referenced_tweets=[{"type": "replied_to", "id": "11"}])
    late = post(14, conversation_id="12", referenced_tweets=[{"type": "replied_to", "id": "12"}])
    items = read(v2(edited, early, late), source_of(LIST, "5", service="x")).items
    assert [(item.thread_id, item.is_head) for item in items] == [("11", True), ("11", False), ("11", False)]
    # The head may also stand beside the posts.
    [reply] = read(v2(late, included=(edited,)), source_of(LIST, "5", service="x")).items
    assert reply.thread_id == "11"


@pytest.mark.parametrize("data", [None, {}, []])
@pytest.mark.parametrize("service", ["x", "twitterapi_io"])
def test_an_empty_profile_is_that_of_nobody(service: str, data: Any) -> None:
    request = first(source_of(FEED, "@ada", service=service))
    refusal = x.refusal(Answer(200, {}, json.dumps({"data": data}).encode(), request.url, NOW), request)
    assert refusal is not None
    assert isinstance(refusal.error, Missing)
