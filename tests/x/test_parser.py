"""The parser: what answers of either service give, recorded ones among them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from catchment.errors import Missing, Refused
from catchment.model import Answer, FailureScope, Gap, Progress, WalkPlan, Watermark
from catchment.platforms import x
from catchment.platforms.x import parser, requests
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


def test_an_older_post_above_newer_ones_is_pinned_although_nothing_says_so() -> None:
    times = ["2025-05-01T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T12:00:00Z"]
    tweets = [{**flat(1900000000000000001 + place), "createdAt": at} for place, at in enumerate(times)]
    for tweet in tweets:
        tweet["author"]["pinnedTweetIds"] = []
    body = json.dumps({"data": {"tweets": tweets}}).encode()
    source = source_of(FEED, "@ada", service="twitterapi_io")
    assert [item.is_pinned for item in read(body, source).items] == [True, None, None, None]
    # Pins are above the first page of a user only.
    request = first(source, Progress(cursor={"user_id": "783214"}))
    later = request.replace(state={**request.state, "cursors": ["DAAB"]})
    reading = x.read(Answer(200, {}, body, later.url, NOW), later)
    assert [item.is_pinned for item in reading.items] == [None] * 4
    members = read(body, source_of(LIST, "5", service="twitterapi_io"))
    assert [item.is_pinned for item in members.items] == [None] * 4


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


@pytest.mark.parametrize(("count", "settings", "is_believed"), [
    (155, {}, False),
    (0, {}, True),
    (None, {}, True),
    # All of its posts may be replies.
    (155, {"replies": False}, True),
    (0, {"replies": False}, True),
])  # fmt: skip
def test_an_empty_page_is_not_believed_if_the_profile_counts_posts(
    count: int | None, settings: dict[str, Any], is_believed: bool
) -> None:
    """The profile may be a copy from before the account was protected, which would end the reading without a word."""
    source = source_of(FEED, "@ada", service="twitterapi_io", **settings)
    counted = {} if count is None else {"statusesCount": count}
    profile = json.dumps({"status": "success", "data": {"id": "783214", "userName": "ada", **counted}}).encode()
    empty = json.dumps({"status": "success", "data": {"tweets": []}}).encode()
    known = Progress(cursor={"user_id": "783214"}, last_polled_at=NOW, watermark=Watermark(NOW, ("12",)))
    for begun in (known, Progress()):
        asked, answers = first(source, begun), (empty, profile) if begun is known else (profile, empty)
        reading = x.read(Answer(200, {}, answers[0], asked.url, NOW), asked)
        (asked,) = reading.follow
        if is_believed:
            note = x.read(Answer(200, {}, answers[1], asked.url, NOW), asked).cursor["note"]
            silent = parser.NOTHING_BUT_REPLIES if count else parser.NOTHING_YET
            assert note == (parser.NOTHING_LEFT if begun is known else silent)
        else:
            with pytest.raises(Refused, match="no posts of @ada are shown, although the profile counts 155"):
                x.read(Answer(200, {}, answers[1], asked.url, NOW), asked)


def test_an_empty_page_is_not_believed_at_the_next_visit_either() -> None:
    """That visit does not read the profile, because it was read less than a day ago."""
    source = source_of(FEED, "@ada", service="twitterapi_io")
    profile, empty = ({"id": "783214", "userName": "ada", "statusesCount": 155}, {"tweets": []})
    asked = first(source)
    reading = x.read(Answer(200, {}, json.dumps({"data": profile}).encode(), asked.url, NOW), asked)
    again = first(source, Progress(cursor=reading.cursor, last_polled_at=NOW))
    assert again.step == requests.TWEETS
    with pytest.raises(Refused, match="no posts of @ada are shown, although the profile counts 155"):
        x.read(Answer(200, {}, json.dumps({"data": empty}).encode(), again.url, NOW), again)
    # A day later, the profile counts none any more.
    later = NOW + timedelta(days=1)
    asked = first(source, Progress(cursor=reading.cursor, last_polled_at=later))
    profile["statusesCount"] = 0
    (asked,) = x.read(Answer(200, {}, json.dumps({"data": profile}).encode(), asked.url, later), asked).follow
    reading = x.read(Answer(200, {}, json.dumps({"data": empty}).encode(), asked.url, later), asked)
    assert reading.cursor["note"] == parser.NOTHING_YET


def test_an_empty_page_before_others_does_not_mean_that_nothing_was_posted() -> None:
    body = json.dumps({"meta": {"result_count": 0, "next_token": "b26"}}).encode()
    reading = read(body, source_of(FEED, "@ada", service="x"))
    assert (len(reading.follow), reading.cursor) == (1, {"user_id": "783214"})
    # TwitterAPI.io announces pages that do not exist.
    flat = json.dumps({"data": {"tweets": []}, "has_next_page": True, "next_cursor": "DAAB"}).encode()
    asked = first(
        source_of(FEED, "@ada", service="twitterapi_io"),
        Progress(cursor={"user_id": "783214", "checked_at": int(NOW.timestamp())}, last_polled_at=NOW),
    )
    reading = x.read(Answer(200, {}, flat, asked.url, NOW), asked)
    assert (reading.follow, reading.cursor["note"]) == ((), parser.NOTHING_YET)


def test_an_answered_post_of_the_same_page_is_told_through_either_service() -> None:
    times = {11: "2026-01-01T00:00:00.000Z", 12: "2026-01-01T00:05:00.000Z"}
    tweets = [
        {"id": str(number), "text": f"post {number}", "author_id": "7", "created_at": at}
        for number, at in times.items()
    ]
    tweets[1]["referenced_tweets"] = [{"type": "replied_to", "id": "11"}]
    includes = {"users": [{"id": "7", "username": "ada", "name": "Ada"}]}
    author = {"id": "7", "userName": "ada", "name": "Ada"}
    flat = [
        {"id": str(number), "text": f"post {number}", "author": author, "createdAt": at} for number, at in times.items()
    ]
    flat[1]["inReplyToId"] = "11"
    bodies = {"x": {"data": tweets, "includes": includes}, "twitterapi_io": {"tweets": flat}}
    for service, page in bodies.items():
        reading = read(json.dumps(page).encode(), source_of(LIST, "5", service=service))
        (answered,) = reading.items[1].references
        assert (answered.relation, answered.external_id, answered.text) == ("replied_to", "11", "post 11"), service
        assert (answered.author, answered.author_display_name) == ("ada", "Ada")
        assert answered.created_at == reading.items[0].created_at
