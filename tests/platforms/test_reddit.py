"""Reddit: which community is meant, what is asked, what its posts and comments are, with a key and without.

The samples have Reddit's form, after recorded answers; their content is invented.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import InvalidInput, LoginNeeded, Unreadable
from catchment.model import (
    Answer,
    Identity,
    Item,
    Order,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
    Target,
    WalkPlan,
    Watermark,
)
from catchment.platforms import reddit
from catchment.platforms.reddit import requests
from catchment.text.clean import refine

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "reddit"
SOURCE = Source(1, "key", "reddit", "reddit", "r/riverboats", "r/RiverBoats", NOW, credential="app")
SITE = "https://www.reddit.com/"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def with_key(listing: str = "new", source: Source = SOURCE, mark: Watermark | None = None, **more: Any) -> Request:
    ask = WalkPlan(listing, more.pop("limit", 100), has_key=True, **more)
    (request,) = reddit.first(source, Progress(watermark=mark), ask)
    return request


def without_key(listing: str = "new", **more: Any) -> Request:
    (request,) = reddit.first(SOURCE.replace(credential=None), Progress(), WalkPlan(listing, 100, **more))
    return request


def with_comments() -> Request:
    return with_key(source=SOURCE.replace(settings={"comments": True}))


def read(body: bytes | Any, request: Request | None = None) -> Reading:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = request or with_key()
    answer = Answer(200, {}, body, request.url, NOW)
    assert reddit.refusal(answer, request) is None
    return reddit.read(answer, request)


def listing(*posts: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    return {"kind": "Listing", "data": {"children": [{"kind": "t3", "data": post} for post in posts], "after": after}}


def posts() -> dict[str, Item]:
    return {item.external_id: item for item in read(sample("new.json")).items}


@pytest.mark.parametrize(
    "typed",
    [
        "r/RiverBoats",
        "/r/riverboats/",
        " R/RIVERBOATS ",
        "reddit.com/r/RiverBoats",
        "https://www.reddit.com/r/RiverBoats/",
        "http://old.reddit.com/r/RiverBoats/about",
        "https://np.reddit.com/r/riverboats",
        "https://new.reddit.com/r/RiverBoats/wiki/index",
        "https://www.reddit.com/r/RiverBoats.json",
        "https://www.reddit.com/r/RiverBoats/.rss",
    ],
)
def test_a_community_has_one_address_however_it_is_written(typed: str) -> None:
    target = reddit.understand(typed)
    assert (target.kind, target.address, target.settings) == ("reddit", "r/riverboats", {})


@pytest.mark.parametrize(
    ("typed", "settings"),
    [
        ("https://www.reddit.com/r/RiverBoats/top/?t=week", {"sort": "top", "time_filter": "week"}),
        ("https://www.reddit.com/r/RiverBoats/top", {"sort": "top"}),
        ("r/RiverBoats/new", {"sort": "new"}),
        ("https://old.reddit.com/r/RiverBoats/hot.json?t=week", {"sort": "hot"}),
        ("https://www.reddit.com/r/RiverBoats/controversial?t=nonsense", {"sort": "controversial"}),
    ],
)
def test_the_address_of_a_listing_sets_which_is_read(typed: str, settings: dict[str, str]) -> None:
    assert reddit.understand(typed) == Target("reddit", "r/riverboats", "r/RiverBoats", settings)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("u/spez", "only communities"),
        ("https://www.reddit.com/user/spez/submitted", "only communities"),
        ("RiverBoats", "does not name a community"),
        ("https://www.reddit.com/", "does not name a community"),
        ("r/", "does not name a community"),
        ("r/a+b", "add each one separately"),
        ("r/random", "a different one each time"),
        ("r/what a name", "is not a valid name"),
        ("https://www.reddit.com/r/RiverBoats/comments/a1/locks/", "its community is r/RiverBoats"),
        ("https://www.reddit.com/r/RiverBoats/s/AbC", "its community is r/RiverBoats"),
        ("https://www.reddit.com/r/RiverBoats/search?q=locks", "searches"),
        ("https://www.reddit.com/r/RiverBoats/gilded", "one of new, top"),
        ("https://www.reddit.com/comments/a1", "one post"),
        ("https://redd.it/a1", "not the address of a community"),
        ("https://example.com/r/RiverBoats", "not the address of a community"),
        ("ftp://www.reddit.com/r/RiverBoats", "not the address of a community"),
        ("https://[www.reddit.com/r/x", "malformed"),
    ],
)
def test_what_is_no_community_is_answered_with_what_would_be_right(typed: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as failure:
        reddit.understand(typed)
    assert failure.value.helps


def test_the_settings_of_a_source_are_of_the_right_sort() -> None:
    (kind,) = reddit.KINDS
    given = {"sort": "top", "time_filter": "week", "limit": "80", "comments": "true", "without_key": "refuse"}
    assert checked_settings(kind, given) == {**given, "limit": 80, "comments": True}
    assert checked_settings(kind, {"comments": False}) == {"comments": False}
    for wrong in ({"sort": "best"}, {"time_filter": "decade"}, {"limit": 1001}, {"comments": "maybe"}):
        with pytest.raises(InvalidInput):
            checked_settings(kind, wrong)


def test_the_newest_are_read_past_what_is_known_and_the_others_are_ranked() -> None:
    (kind,) = reddit.KINDS
    told = {
        listing.name: (listing.order, listing.reach, listing.page_size, listing.overlap, listing.is_window)
        for listing in kind.listings
    }
    ranked = (Order.RANKED, 1000, 100, 0, False)
    assert told == {
        "new": (Order.NEWEST_FIRST, 1000, 100, 100, False),
        **dict.fromkeys(("top", "hot", "rising", "controversial"), ranked),
        "atom": (Order.NEWEST_FIRST, None, None, 0, True),
    }
    assert (kind.listings[0].name, kind.newest, kind.is_tiered) == ("new", "new", True)


def test_with_a_key_the_interface_is_asked_for_whole_pages_of_the_newest() -> None:
    request = with_key(limit=50)
    assert (request.url, request.params) == (
        "https://oauth.reddit.com/r/riverboats/new",
        {"limit": "100", "raw_json": "1"},
    )
    assert (request.identity, request.credential, request.listing) == (Identity.NEEDED, "app", "new")


def test_a_ranked_listing_is_asked_for_as_much_as_is_wanted_of_its_time() -> None:
    assert with_key("top", limit=80, time_filter="week").params == {"limit": "80", "t": "week", "raw_json": "1"}
    assert with_key("top", limit=500).params == {"limit": "100", "raw_json": "1"}
    assert with_key("hot", time_filter="week").params == {"limit": "100", "raw_json": "1"}


def test_without_a_key_the_feed_is_read_which_is_a_window() -> None:
    request = without_key()
    assert (request.url, request.params) == ("https://www.reddit.com/r/riverboats/new/.rss", {"limit": "100"})
    assert (request.identity, request.credential, request.listing) == (Identity.NONE, None, "atom")
    assert without_key("atom") == request
    ranked = without_key("top", time_filter="week")
    assert (ranked.url, ranked.params["t"], ranked.listing) == (
        "https://www.reddit.com/r/riverboats/top/.rss",
        "week",
        "top",
    )


def test_a_source_that_wants_no_feed_says_that_a_key_is_missing() -> None:
    source = SOURCE.replace(settings={"without_key": "refuse"})
    with pytest.raises(LoginNeeded, match=r"no API key.*credentials add reddit.*on request only.*without_key=atom"):
        reddit.first(source, Progress(), WalkPlan("new", 100))
    assert reddit.first(source, Progress(), WalkPlan("new", 100, has_key=True))


def test_an_answer_of_endless_things_is_read_in_part_and_the_rest_is_counted() -> None:
    reading = read({"kind": "Listing", "data": {"children": [{"kind": "t5", "data": {}}] * 5_010}})
    assert Counter(skipped_entry.reason for skipped_entry in reading.skipped) == {
        "neither post nor comment": 5_000,
        "too many in one answer": 10,
    }


def test_an_answer_whose_signs_came_encoded_is_read_as_if_they_had_not() -> None:
    body = sample("new.json").decode().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert read(body.encode()) == read(sample("new.json"))
    # Where they did not, what somebody typed is left as it is.
    title = read(listing({"name": "t3_x1", "title": "&amp;lt; in HTML"})).items[0].title
    assert title == "&amp;lt; in HTML"


def test_a_listing_that_breaks_off_above_what_is_stored_proves_nothing() -> None:
    known = requests.next_page(with_key(mark=Watermark(NOW)), "t3_a9")
    reading = read(sample("empty.json"), known)
    assert (reading.is_torn, reading.notes) == (
        True,
        ("a page was empty although more was announced: it will be requested again",),
    )
    for legitimate in (with_key(), with_key("top", mark=Watermark(NOW))):
        assert not read(sample("empty.json"), requests.next_page(legitimate, "t3_a9")).is_torn


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'{"kind": "Listing"}', b'{"data": {"children": {}}}', b"12", b"null"])
def test_what_is_no_listing_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read(body)


def test_items_are_looked_at_again_a_hundred_at_a_time() -> None:
    looks = [Recheck(f"t3_{number}", "", None, SOURCE) for number in range(250)]
    asked = reddit.recheck(looks)
    assert [len(request.params["id"].split(",")) for request in asked] == [100, 100, 50]
    assert {(request.url, request.identity, request.credential) for request in asked} == {
        ("https://oauth.reddit.com/api/info", Identity.NEEDED, "app")
    }
    assert reddit.recheck([]) == []


def test_without_a_key_nothing_can_be_looked_at_again() -> None:
    assert reddit.recheck([Recheck("t3_a1", "", None, SOURCE, has_key=False)]) == []


def test_strangers_are_allowed_less_than_a_key() -> None:
    assert reddit.BUDGET is not None
    assert (reddit.BUDGET.of("app").limit, reddit.BUDGET.of(None).limit) == (60, 10)


def test_what_may_only_have_been_unreadable_is_not_taken_for_gone() -> None:
    (request,) = reddit.recheck([Recheck(item_id, "", None, SOURCE) for item_id in ("t3_a1", "t3_q1")])
    reading = read(sample("new.json"), request)
    assert (len(reading.skipped), reading.gone) == (2, ())


def test_a_second_look_finds_the_same_content() -> None:
    def marks(reading: Reading) -> dict[str, bytes]:
        return {item.item.external_id: item.fingerprint for item in refine(reading, scope="", answer_url=SITE).items}

    (request,) = reddit.recheck([Recheck("t3_a1", "", None, SOURCE)])
    listed, looked = marks(read(sample("new.json"))), marks(read(sample("new.json"), request))
    assert listed == looked


def thread_request() -> Request:
    return next(
        request for request in read(sample("new.json"), with_comments()).follow if request.about_item == "t3_a1"
    )


def test_a_thread_read_from_a_deep_comment_does_not_lead_there_again() -> None:
    deeper = read(sample("thread.json"), thread_request()).follow[-1]
    again = read(sample("thread.json"), deeper).follow
    assert deeper not in again
    assert {request.step for request in again} == {requests.STUB}


def test_a_post_says_the_same_in_brief_and_whole() -> None:
    def mark(item: Item) -> bytes:
        return refine(Reading((item,)), scope="", answer_url=SITE).items[0].fingerprint

    brief = {item.external_id: item for item in read(sample("feed.xml"), without_key()).items}
    assert [mark(brief[name]) for name in ("t3_a1", "t3_a2", "t3_a3")] == [
        mark(posts()[name]) for name in ("t3_a1", "t3_a2", "t3_a3")
    ]
