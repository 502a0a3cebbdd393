"""The verbs of the Hacker News platform, and that its two services tell one story."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.following import checked_settings
from catchment.errors import InvalidInput, Refused, ServerTrouble, SlowDown, Unreadable
from catchment.model import Answer, Ask, Item, Kind, Look, Order, Progress, Reading, Refusal, Request, Source
from catchment.platforms import hackernews, listing_of
from catchment.refine import refine

NOW = datetime(2026, 8, 6, 9, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "samples" / "hackernews"
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
    one = source(typed, **settings)
    (request,) = hackernews.first(one, Progress(), Ask(one.settings["listing"], 100))
    return request


def look(external_id: str) -> Request:
    (request,) = hackernews.look_again([Look(external_id, "", None, source("new"))])
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
    return [(one.item, one.fingerprint) for one in refine(reading, scope="", answer_url=url).items]


# ── what a person types ───────────────────────────────────────────────────────────────────────────────────────────


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
    with pytest.raises(InvalidInput, match=r"top, new, best, ask, show or job, search:WORDS") as failure:
        hackernews.understand(typed)
    assert failure.value.field == "target"


# ── what is declared and asked ────────────────────────────────────────────────────────────────────────────────────


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
    assert look("48000412").asks_for == "48000412"
    assert KIND.look_after == (timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30))


# ── lists of ids ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_gives_its_ids_in_order_and_proposes_to_ask_for_each() -> None:
    reading = read(sample("list"), first("top"))
    assert reading.listed == ("48000412", "48000405", "48000391", "48000388")
    assert [request.asks_for for request in reading.follow] == list(reading.listed)
    assert reading.follow[0].url == "https://hacker-news.firebaseio.com/v0/item/48000412.json"
    assert {request.listing for request in reading.follow} == {"top"}
    assert (reading.items, reading.skipped, reading.is_end) == ((), (), True)


def test_an_id_is_listed_once_and_what_is_none_is_counted() -> None:
    reading = read('[7, 7, "8", null, -1, 0, true, 2.5, {"id": 9}, 1e30]', first("new"))
    assert reading.listed == ("7", "8")
    assert [skipped.reason for skipped in reading.skipped] == ["bad id"] * 7


@pytest.mark.parametrize("body", ["null", "{}", "7", '"x"', "[1, 2", "", "[]", "[null]"])
def test_a_list_of_stories_that_is_none_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, first("new"))


def test_a_list_that_may_be_empty_may_be_empty() -> None:
    assert read("[]", first("ask")) == Reading()


# ── one item ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_story_is_read_with_all_it_says() -> None:
    reading = read(sample("story"), detail("48000412"))
    assert reading.items == (
        Item(
            "48000412",
            kind="story",
            created_at=datetime.fromtimestamp(1786000412, UTC),
            title='R&D at the harbour: "a < b"',
            base_url="https://news.ycombinator.com/",
            url="https://news.ycombinator.com/item?id=48000412",
            target_url="https://harbour.example/notes?a=1&b=2",
            author="ada",
            score=57,
            reply_count=12,
        ),
    )


def test_a_text_post_has_no_target_and_its_html_is_kept() -> None:
    ((item, _),) = refined(read(sample("ask"), detail("48000405")), "https://hacker-news.firebaseio.com/")
    assert (item.target_url, item.tags) == (None, ("Ask HN",))
    assert item.text == "or how to mend nets\n\nI don't know. See nets\n\nknot(a, b)"
    assert '<a href="https://nets.example/"' in (item.html or "")


def test_a_job_without_an_address_has_none_and_no_count_of_replies() -> None:
    (item,) = read(sample("job"), detail("48000391")).items
    assert (item.kind, item.target_url, item.score, item.reply_count) == ("job", None, 1, None)


def test_a_poll_is_read_and_its_empty_text_is_none() -> None:
    (item,) = read(sample("poll"), detail("48000388")).items
    assert (item.kind, item.title, item.html, item.reply_count) == ("poll", "Poll: 河流还是海?", None, 2)


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
    assert item == whole.plus(**{fields[name]: None})


def test_an_item_that_is_not_there_yet_is_asked_for_at_the_next_visit() -> None:
    assert read("null", detail("48000412")) == Reading(is_unfinished=True)


def test_an_item_that_is_there_no_more_is_gone() -> None:
    assert read("null", look("48000412")) == Reading(gone=("48000412",))


@pytest.mark.parametrize("name", ["dead", "deleted"])
def test_what_died_before_it_was_read_is_counted_and_not_stored(name: str) -> None:
    reading = read(sample(name), detail("48000412"))
    assert (reading.items, [skipped.reason for skipped in reading.skipped]) == ((), [name])


@pytest.mark.parametrize("name", ["dead", "deleted"])
def test_what_died_since_is_marked_without_a_word_that_could_replace_ours(name: str) -> None:
    ((item, _),) = refined(read(sample(name), look("48000412")), "https://hacker-news.firebaseio.com/")
    assert (item.external_id, item.is_deleted) == ("48000412", True)
    assert (item.title, item.text, item.html, item.target_url) == (None, None, None, None)


def test_an_old_dead_story_that_kept_its_title_is_a_mark_as_well() -> None:
    (item,) = read(json.loads(sample("story")) | {"dead": True}, look("48000412")).items
    assert (item.is_deleted, item.title, item.target_url) == (True, None, None)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"id": 7, "type": "comment", "text": "Hi", "parent": 3}, "not a story"),
        ({"id": 7, "type": "pollopt", "text": "Yes", "poll": 3}, "not a story"),
        ({"id": 7, "type": "story", "time": 1786000412}, "no content"),
        ({"id": 7}, "not a story"),
    ],
)
def test_what_is_no_story_is_counted_with_its_reason(told: Any, reason: str) -> None:
    assert [skipped.reason for skipped in read(told, detail("7")).skipped] == [reason]


@pytest.mark.parametrize("body", ["[]", "7", '{"id": 8, "type": "story", "title": "T"}', '{"title": "T"}', '{"id": 7'])
def test_an_item_that_was_not_asked_for_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, detail("7"))


# ── searches ──────────────────────────────────────────────────────────────────────────────────────────────────────


def hits(*seconds: int, **more: Any) -> dict[str, Any]:
    found = [
        {"objectID": str(number), "title": "T", "created_at_i": at, "_tags": ["story"]}
        for number, at in enumerate(seconds, 1)
    ]
    return {"hits": found, "nbHits": 5_000, "hitsPerPage": 100, "page": 0, **more}


def test_a_search_reads_its_hits_with_their_keys_missing_or_null() -> None:
    reading = read(sample("search"), first("search:harbour"))
    assert [(item.external_id, item.kind, item.score, item.reply_count) for item in reading.items] == [
        ("48000412", "story", 55, 11),
        ("48000405", "story", 9, 3),
        ("48000388", "poll", 4, None),
    ]
    assert (reading.skipped, reading.follow, reading.is_end) == ((), (), True)


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


def test_a_bad_hit_is_counted_and_the_rest_is_read() -> None:
    page = hits(2000)
    page["hits"] += [
        None,
        "x",
        {"objectID": "x1", "title": "T"},
        {"objectID": "7"},
        {"objectID": "8", "_tags": ["comment"], "comment_text": "Hi"},
    ]
    reading = read(page, first("search:rust"))
    assert [item.external_id for item in reading.items] == ["1"]
    assert [skipped.reason for skipped in reading.skipped] == [
        "not a hit", "not a hit", "bad id", "no content", "not a story",
    ]  # fmt: skip


def test_a_hit_without_its_seconds_is_dated_by_its_words() -> None:
    told = {"objectID": "7", "title": "T"}
    (item,) = read({"hits": [told | {"created_at": "2026-04-25T17:53:46Z"}]}, first("search:x")).items
    assert item.created_at == datetime(2026, 4, 25, 17, 53, 46, tzinfo=UTC)
    assert read({"hits": [told | {"created_at": "some day"}]}, first("search:x")).items[0].created_at is None


@pytest.mark.parametrize(
    "body", ["null", "[]", "{}", '{"hits": null}', '{"hits": {}}', '{"hits": [', "", "{'hits': []}"]
)
def test_a_page_without_hits_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, first("search:rust"))


def test_a_full_page_without_a_date_is_unreadable() -> None:
    page = hits(*[0] * 100)
    with pytest.raises(Unreadable, match="without a single date"):
        read(page, first("search:rust"))


# ── two services, one story ───────────────────────────────────────────────────────────────────────────────────────


def by_site(**fields: Any) -> tuple[Item, bytes]:
    told = {"id": 7, "type": "story", "time": 1786000412, "by": "ada", "title": "T", **fields}
    (one,) = refined(read(told, detail("7")), "https://hacker-news.firebaseio.com/v0/item/7.json")
    return one


def by_search(**fields: Any) -> tuple[Item, bytes]:
    told = {"objectID": "7", "_tags": ["story"], "created_at_i": 1786000412, "author": "ada", "title": "T", **fields}
    (one,) = refined(read({"hits": [told]}, first("search:x")), "https://hn.algolia.com/api/v1/search_by_date")
    return one


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
        assert other.plus(score=item.score, reply_count=item.reply_count) == item


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


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


def test_the_words_of_the_service_are_told() -> None:
    refused = refusal(sample("error"), 400)
    assert refused is not None
    assert "numericFilters: Unexpected token" in str(refused.error)


@pytest.mark.parametrize("name", ["list", "story", "ask", "job", "poll", "dead", "deleted", "null", "search"])
def test_a_good_answer_is_not_refused(name: str) -> None:
    assert refusal(sample(name)) is None


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_a_status_that_says_everything_is_left_to_speak(status: int) -> None:
    assert refusal("<h1>Sorry</h1>", status) is None
    assert refusal('{"message":"Too many requests"}', status) is None


def test_every_listing_is_found_by_its_name() -> None:
    kind: Kind = KIND
    assert [listing_of(kind, listing.name) for listing in kind.listings] == list(kind.listings)
