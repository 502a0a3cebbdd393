"""The verbs of the Hacker News platform, and that its two services tell one story."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import (
    InvalidInput,
    Refused,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.model import (
    Answer,
    Item,
    Kind,
    Order,
    Progress,
    Reading,
    Recheck,
    Refusal,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import hackernews, listing_of
from catchment.text.clean import refine

NOW = datetime(2026, 8, 6, 9, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "hackernews"
(KIND,) = hackernews.KINDS


def source(typed: str, **settings: Any) -> Source:
    target = hackernews.understand(typed)
    return Source(
        1,
        "key",
        "hackernews",
        "hackernews",
        target.address,
        target.name or "",
        NOW,
        settings={**target.settings, **settings},
    )


def first(typed: str, **settings: Any) -> Request:
    followed = source(typed, **settings)
    (request,) = hackernews.first(followed, Progress(), WalkPlan(followed.settings["listing"], 100))
    return request


def look(external_id: str) -> Request:
    (request,) = hackernews.recheck([Recheck(external_id, "", None, source("new"))])
    return request


def read(body: bytes | str | Any, request: Request) -> Reading:
    if not isinstance(body, bytes | str):
        body = json.dumps(body)
    answer = Answer(200, {}, body.encode() if isinstance(body, str) else body, request.url, NOW)
    return hackernews.read(answer, request)


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.json").read_bytes()


def detail(external_id: str) -> Request:
    """The request by which a list asks for one of its stories."""
    (request,) = read([int(external_id)], first("new")).follow
    return request


def refined(reading: Reading, url: str) -> list[tuple[Item, bytes]]:
    return [(item.item, item.fingerprint) for item in refine(reading, scope="", answer_url=url).items]


@pytest.mark.parametrize(
    ("typed", "address", "listing"),
    [
        ("top", "top", "top"),
        ("NEW", "new", "new"),
        (" best ", "best", "best"),
        ("ask", "ask", "ask"),
        ("show", "show", "show"),
        ("job", "job", "job"),
        ("newest", "new", "new"),
        ("jobs", "job", "job"),
        ("https://news.ycombinator.com/", "top", "top"),
        ("https://news.ycombinator.com", "top", "top"),
        ("https://news.ycombinator.com/news", "top", "top"),
        ("http://news.ycombinator.com/news?p=2", "top", "top"),
        ("https://news.ycombinator.com/newest", "new", "new"),
        ("news.ycombinator.com/best", "best", "best"),
        ("https://news.ycombinator.com/ask", "ask", "ask"),
        ("https://news.ycombinator.com/show", "show", "show"),
        ("https://news.ycombinator.com/jobs", "job", "job"),
        ("search:rust", "search:rust", "search"),
        ("Search:  memory   safety ", "search:memory safety", "search"),
        ("search:河流", "search:河流", "search"),
        ('search:"exact words" -not', 'search:"exact words" -not', "search"),
        ("https://hn.algolia.com/?q=memory+safety", "search:memory safety", "search"),
        ("hn.algolia.com/?dateRange=all&query=rust&type=story&page=3", "search:rust", "search"),
    ],
)
def test_a_list_or_a_search_has_one_address(typed: str, address: str, listing: str) -> None:
    target = hackernews.understand(typed)
    assert (target.kind, target.address, target.settings) == ("hackernews", address, {"listing": listing})
    assert hackernews.understand(target.address) == target


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "worst",
        "search:",
        "search:   ",
        "search:" + "x" * 600,
        "search:a\x00b",
        "https://news.ycombinator.com/item?id=1",
        "https://news.ycombinator.com/submitted?id=ada",
        "https://example.com/newest",
        "ftp://news.ycombinator.com/newest",
        "https://[news.ycombinator.com/newest",
        "https://hn.algolia.com/",
        "https://hn.algolia.com/?q=rust&type=comment",
        "https://hn.algolia.com/api",
        "r/webdev",
    ],
)
def test_a_wrong_target_is_answered_with_right_ones(typed: str) -> None:
    with pytest.raises(InvalidInput, match=r"top, new, best, ask, show, job or search:WORDS") as failure:
        hackernews.understand(typed)
    assert failure.value.field == "target"


def test_only_new_and_searches_are_said_to_be_newest_first() -> None:
    orders = {listing.name: (listing.order, listing.reach) for listing in KIND.listings}
    ranked = Order.RANKED
    assert orders == {
        "new": (Order.NEWEST_FIRST, 500),
        "search": (Order.NEWEST_FIRST, None),
        "top": (ranked, 500),
        "best": (ranked, 500),
        "ask": (ranked, 200),
        "show": (ranked, 200),
        "job": (ranked, 200),
    }
    assert KIND.interval_minutes == 60


def test_the_budget_is_what_the_search_service_allows() -> None:
    budget = hackernews.BUDGET
    assert budget is not None
    assert (budget.limit, budget.window_seconds, budget.is_per_credential) == (10_000, 3600, False)


@pytest.mark.parametrize("listing", ["top", "new", "best", "ask", "show", "job"])
def test_a_list_is_asked_of_the_site_itself(listing: str) -> None:
    url = f"https://hacker-news.firebaseio.com/v0/{listing}stories.json"
    assert first(listing) == Request(url, listing=listing)


def test_a_search_is_asked_for_stories_and_polls_newest_first() -> None:
    request = first("search:memory safety")
    assert (request.url, request.listing) == ("https://hn.algolia.com/api/v1/search_by_date", "search")
    assert request.params == {"query": "memory safety", "tags": "(story,poll)", "hitsPerPage": "100"}


def test_the_setting_listing_outranks_the_list_of_the_target() -> None:
    assert checked_settings(KIND, {"listing": "best"}) == {"listing": "best"}
    assert first("new", listing="best").url.endswith("/v0/beststories.json")
    with pytest.raises(InvalidInput, match="top, best, ask"):
        checked_settings(KIND, {"listing": "hot"})


@pytest.mark.parametrize(("typed", "listing"), [("search:rust", "top"), ("top", "search")])
def test_a_search_is_no_list_and_a_list_no_search(typed: str, listing: str) -> None:
    with pytest.raises(InvalidInput, match="listing"):
        first(typed, listing=listing)


def test_a_second_look_asks_for_one_item_at_four_ages() -> None:
    assert look("48000412").url == "https://hacker-news.firebaseio.com/v0/item/48000412.json"
    assert look("48000412").item_id == "48000412"
    assert KIND.recheck_ages == (timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30))


@pytest.mark.parametrize("body", ["null", "{}", "7", '"x"', "[1, 2", "", "[]", "[null]"])
def test_a_list_of_stories_that_is_none_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, first("new"))


def test_a_text_post_has_no_target_and_its_html_is_kept() -> None:
    ((item, _),) = refined(read(sample("ask"), detail("48000405")), "https://hacker-news.firebaseio.com/")
    assert (item.target_url, item.tags) == (None, ("Ask HN",))
    assert item.text == "or how to mend nets\n\nI don't know. See nets\n\nknot(a, b)"
    assert '<a href="https://nets.example/"' in (item.html or "")


def test_replies_are_counted_by_the_site_and_not_by_the_first_of_them() -> None:
    told = json.loads(sample("story"))
    assert read(told | {"descendants": 0}, look("48000412")).items[0].reply_count == 0
    del told["descendants"]
    assert read(told, look("48000412")).items[0].reply_count is None


@pytest.mark.parametrize("name", ["score", "descendants", "by", "time", "url", "text"])
@pytest.mark.parametrize("value", [None, "", True, [], {"x": 1}, 1e300])
def test_a_value_of_the_wrong_sort_is_unknown_and_the_story_is_read(name: str, value: Any) -> None:
    whole = read(sample("story"), look("48000412")).items[0]
    fields = {
        "score": "score", "descendants": "reply_count", "by": "author", "time": "created_at", "url": "target_url",
        "text": "html",
    }  # fmt: skip
    (item,) = read(json.loads(sample("story")) | {name: value}, look("48000412")).items
    assert item == whole.replace(**{fields[name]: None})


@pytest.mark.parametrize("body", ["[]", "7", '{"id": 8, "type": "story", "title": "T"}', '{"title": "T"}', '{"id": 7'])
def test_an_item_that_was_not_asked_for_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, detail("7"))


def hits(*seconds: int, **more: Any) -> dict[str, Any]:
    found = [
        {"objectID": str(number), "title": "T", "created_at_i": at, "_tags": ["story"]}
        for number, at in enumerate(seconds, 1)
    ]
    return {"hits": found, "nbHits": 5_000, "hitsPerPage": 100, "page": 0, **more}


def test_a_full_page_leads_on_from_its_oldest_second_and_includes_it() -> None:
    request = first("search:rust")
    (older,) = read(hits(*range(2000, 1900, -1)), request).follow
    assert older.params == request.params | {"numericFilters": "created_at_i<=1901"}
    (oldest,) = read(hits(*range(1901, 1801, -1)), older).follow
    assert oldest.params == request.params | {"numericFilters": "created_at_i<=1802"}


def test_a_second_that_fills_whole_pages_is_read_page_by_page() -> None:
    request = first("search:rust")
    (older,) = read(hits(*[1901] * 100), request).follow
    (deeper,) = read(hits(*[1901] * 100), older).follow
    assert deeper.params == older.params | {"page": "1"}
    (deepest,) = read(hits(*[1901] * 100, page=1), deeper).follow
    assert deepest.params == older.params | {"page": "2"}
    (below,) = read(hits(*[1901] * 99, 1800, page=2), deepest).follow
    assert below.params == request.params | {"numericFilters": "created_at_i<=1800"}


def test_a_search_ends_with_a_page_that_is_not_full_or_that_shows_all_there_is() -> None:
    request = first("search:rust")
    assert read(hits(*range(2000, 1901, -1)), request).is_end
    assert read(hits(*range(2000, 1900, -1), nbHits=100), request).is_end
    assert not read(hits(*range(2000, 1900, -1), nbHits=None), request).is_end
    assert read(hits(), request) == Reading()


@pytest.mark.parametrize(
    "body", ["null", "[]", "{}", '{"hits": null}', '{"hits": {}}', '{"hits": [', "", "{'hits': []}"]
)
def test_a_page_without_hits_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, first("search:rust"))


def by_site(**fields: Any) -> tuple[Item, bytes]:
    told = {"id": 7, "type": "story", "time": 1786000412, "by": "ada", "title": "T", **fields}
    (story,) = refined(read(told, detail("7")), "https://hacker-news.firebaseio.com/v0/item/7.json")
    return story


def by_search(**fields: Any) -> tuple[Item, bytes]:
    told = {"objectID": "7", "_tags": ["story"], "created_at_i": 1786000412, "author": "ada", "title": "T", **fields}
    (story,) = refined(read({"hits": [told]}, first("search:x")), "https://hn.algolia.com/api/v1/search_by_date")
    return story


@pytest.mark.parametrize(
    ("site", "search"),
    [
        ({"url": "https://a.example/?x=1&y=2"}, {"url": "https://a.example/?x=1&y=2"}),
        ({}, {"url": None, "story_text": None}),
        ({"url": "", "text": ""}, {"url": "", "story_text": ""}),
        ({"title": "R&amp;D &lt;b&gt; &#x27;x&#x27;"}, {"title": "R&D <b> 'x'"}),
        ({"title": "What &amp;amp; means"}, {"title": "What &amp; means"}),
        ({"title": "<i>New</i> things"}, {"title": "&lt;i&gt;New&lt;/i&gt; things"}),
        ({"title": "Use <i> and Q&AMP &notit"}, {"title": "Use <i> and Q&AMP &notit"}),
        ({"title": " Two  spaces "}, {"title": "Two spaces"}),
        ({"text": "One<p>Two &#x2F; <i>three</i>"}, {"story_text": "One<p>Two / <i>three</i>"}),
        ({"url": "item?id=363"}, {"url": "item?id=363"}),
        ({"title": "Ask HN: Why?"}, {"title": "Ask HN: Why?", "_tags": ["story", "ask_hn", "front_page"]}),
        ({"type": "poll"}, {"_tags": ["poll"]}),
        ({"type": "job"}, {"_tags": ["job"]}),
    ],
)
def test_a_story_is_the_same_item_whichever_service_tells_of_it(site: Any, search: Any) -> None:
    assert by_site(**site) == by_search(**search)


def test_an_address_on_the_site_itself_is_made_whole() -> None:
    assert by_site(url="item?id=363")[0].target_url == "https://news.ycombinator.com/item?id=363"


def test_a_title_that_speaks_of_markup_keeps_it() -> None:
    assert by_site(title="The &lt;i&gt; element, and Q&AMP")[0].title == "The <i> element, and Q&AMP"


def test_the_samples_of_both_services_agree_but_for_the_counters() -> None:
    found = {item.external_id: (item, mark) for item, mark in refined(read(sample("search"), first("search:x")), "")}
    for name, external_id in (("story", "48000412"), ("ask", "48000405"), ("poll", "48000388")):
        ((item, mark),) = refined(read(sample(name), detail(external_id)), "")
        other, other_mark = found[external_id]
        assert mark == other_mark
        assert other.replace(score=item.score, reply_count=item.reply_count) == item


def refusal(body: bytes | str, status: int = 200) -> Refusal | None:
    request = first("search:rust")
    told = body.encode() if isinstance(body, str) else body
    return hackernews.refusal(Answer(status, {}, told, request.url, NOW), request)


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ('{"message":"numericFilters: Unexpected token","status":400}', 400, Refused),
        ('{"message":"Index not found"}', 200, ServerTrouble),
        ('{"error":"Permission denied"}', 401, Refused),
        ('{"error":"Permission denied"}', 403, Refused),
        ("<h1>401</h1>", 401, Refused),
        ('{"message":"Rate limit exceeded"}', 403, SlowDown),
        ("<!DOCTYPE html><title>Sign in to the network</title>", 200, Refused),
        ("\ufeff  <html>", 200, Refused),
    ],
)
def test_an_error_in_the_place_of_data_is_refused(body: str, status: int, error: type) -> None:
    refused = refusal(body, status)
    assert refused is not None
    assert type(refused.error) is error
    assert refused.error.helps


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_a_status_that_says_everything_is_left_to_speak(status: int) -> None:
    assert refusal("<h1>Sorry</h1>", status) is None
    assert refusal('{"message":"Too many requests"}', status) is None


def test_every_listing_is_found_by_its_name() -> None:
    kind: Kind = KIND
    assert [listing_of(kind, listing.name) for listing in kind.listings] == list(kind.listings)
