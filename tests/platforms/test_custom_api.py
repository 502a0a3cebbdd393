"""Any JSON API: the shapes of lists, the values in them, the ways in which pages turn, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.credentials.secret import Secret
from catchment.errors import (
    InvalidInput,
    LoginNeeded,
    Refused,
    SlowDown,
    Unreadable,
)
from catchment.fetch.auth import dressed
from catchment.model import (
    Answer,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
    Watermark,
)
from catchment.platforms import custom_api
from catchment.platforms.custom_api.fields import OF_ITEMS, PRESETS, settled
from catchment.platforms.custom_api.items import USUAL

NOW = datetime(2026, 3, 2, tzinfo=UTC)
URL = "https://api.example/v1/posts"
SAMPLES = Path(__file__).parent / "custom_api"
KIND = custom_api.KINDS[0]
POST = {"id": 1, "title": "One"}


def asked(progress: Progress | None = None, url: str = URL, **settings: Any) -> Request:
    source = Source(1, "key", "custom_api", "custom_api", url, "API", NOW, settings=checked_settings(KIND, settings))
    (request,) = custom_api.first(source, progress or Progress(), WalkPlan("snapshot", 100))
    return request


def read(
    document: Any, request: Request | None = None, headers: dict[str, str] | None = None, **settings: Any
) -> Reading:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return custom_api.read(Answer(200, headers or {}, body, URL, NOW), request or asked(**settings))


SHAPES: dict[str, Any] = {
    "at the top": [POST],
    "under one key": {"items": [POST]},
    "under a key that nobody could guess": {"wombats": [POST], "total": 1},
    "under two keys": {"status": "success", "data": {"tweets": [POST]}},
    "each in a wrapper": {"kind": "Listing", "data": {"children": [{"kind": "t3", "data": POST}]}},
    "as a feed in JSON": {"rss": {"channel": {"title": "News", "item": [POST]}}},
    "as edges of a graph": {"data": {"posts": {"edges": [{"cursor": "x", "node": POST}]}}},
    "as hits of a search": {"hits": {"total": 1, "hits": [{"_id": "1", "_source": {"title": "One"}}]}},
    "keyed by id": {"1": {"title": "One"}},
    "keyed by id, under a key": {"posts": {"1": {"title": "One"}}},
    "with attributes": {"data": [{"type": "post", "id": "1", "attributes": {"title": "One"}}]},
    "behind a mark of order": b"\xef\xbb\xbf" + json.dumps([POST]).encode(),
}


@pytest.mark.parametrize("document", SHAPES.values(), ids=SHAPES)
def test_the_list_is_found_wherever_it_stands(document: Any) -> None:
    assert [(item.external_id, item.title) for item in read(document).items] == [("1", "One")]


@pytest.mark.parametrize("document", [[], {}, {"items": []}, {"meta": {"result_count": 0}}, {"data": {"tweets": []}}])
def test_no_items_are_no_failure_where_the_answer_says_so(document: Any) -> None:
    assert read(document) == Reading()


@pytest.mark.parametrize("document", [3, "x", True, {"a": 1, "b": "c"}, b"", b"<html></html>", b'{"items": [', b"[1"])
def test_what_holds_no_list_is_unreadable_and_says_what_would_help(document: Any) -> None:
    with pytest.raises(Unreadable) as failure:
        read(document)
    assert failure.value.helps


def test_an_expression_says_where_the_list_is() -> None:
    document = {"a": [{"title": "no"}], "b": [{"c": [POST]}]}
    assert [item.title for item in read(document, items="b[0].c").items] == ["One"]
    assert [item.external_id for item in read({"x": {"7": {"title": "t"}}}, items="x").items] == ["7"]


def test_an_expression_that_finds_nothing_is_told_and_one_that_finds_no_list_is_an_error() -> None:
    assert read({"a": []}, items="b").notes == ("`items` finds nothing in the answer",)
    with pytest.raises(Unreadable, match="finds a str"):
        read({"a": "text"}, items="a")
    with pytest.raises(Unreadable, match="does not fit the answer"):
        read({"a": "text"}, items="sum(a)")


def test_every_part_of_an_item_has_usual_names() -> None:
    assert list(USUAL) == [field.name for field in OF_ITEMS]


def test_an_item_that_an_expression_does_not_fit_is_skipped() -> None:
    assert [
        skipped_entry.reason for skipped_entry in read([{"a": 1}, {"a": "x", "title": "t"}], score="abs(a)").skipped
    ] == [
        "no content",
        "`score` cannot be used on it",
    ]


def followed(document: Any, request: Request | None = None, **settings: Any) -> tuple[str, dict[str, str]] | None:
    reading = read(document, request, **settings)
    return (reading.follow[0].url, reading.follow[0].params) if reading.follow else None


CURSORS: dict[str, Any] = {
    "beside the list": {"items": [POST], "next_cursor": "c2"},
    "at the root, the list below": {"data": {"items": [POST]}, "nextCursor": "c2"},
    "in meta": {"items": [POST], "meta": {"next_token": "c2"}},
    "as a number": {"items": [POST], "paging": {"after": 0, "next": "c2"}},
    "in page info": {"items": [POST], "pageInfo": {"hasNextPage": True, "endCursor": "c2"}},
}


@pytest.mark.parametrize("document", CURSORS.values(), ids=CURSORS)
def test_a_cursor_is_found_where_cursors_usually_are(document: Any) -> None:
    assert followed(document, paging="cursor") == (URL, {"cursor": "c2"})


@pytest.mark.parametrize("cursor", [None, "", False, 0])
@pytest.mark.parametrize("settings", [{}, {"cursor": "next_cursor"}])
def test_a_cursor_that_says_nothing_is_the_end(cursor: Any, settings: dict[str, Any]) -> None:
    assert read({"items": [POST], "next_cursor": cursor}, paging="cursor", **settings).is_end
    assert read({"items": [POST]}, paging="cursor", **settings).is_end
    assert read({"items": [POST], "next": "x", "has_more": False}, paging="cursor", **settings).is_end


def test_a_cursor_goes_into_the_parameter_that_takes_it_and_other_parameters_stay() -> None:
    request = asked(url=URL + "?q=x&after=old", paging="cursor", cursor="n.c", cursor_param="after", size_param="n")
    assert (request.url, request.params) == (URL + "?q=x", {"n": "50"})
    assert followed({"items": [POST], "n": {"c": 12}}, request) == (URL + "?q=x", {"n": "50", "after": "12"})


def test_a_cursor_that_is_an_address_is_followed_without_the_credential_to_another_host() -> None:
    request = asked(paging="cursor").replace(credential="c")
    there = read({"items": [POST], "next": "https://api.example/v1/posts?p=2"}, request).follow[0]
    elsewhere = read({"items": [POST], "next": "https://evil.example/?p=2"}, request).follow[0]
    assert (there.url, there.credential) == ("https://api.example/v1/posts?p=2", "c")
    assert (elsewhere.url, elsewhere.credential) == ("https://evil.example/?p=2", None)


def test_cursors_that_lead_back_end_the_walk_and_do_not_pass_for_its_end() -> None:
    request, cursors = asked(paging="cursor"), iter("abcab")
    for number in range(3):
        (request,) = read({"items": [POST | {"id": number}], "next_cursor": next(cursors)}, request).follow
    reading = read({"items": [POST | {"id": 3}], "next_cursor": next(cursors)}, request)
    assert (reading.follow, reading.is_end) == ((), False)
    assert reading.notes == ("its pages lead back to one that was read",)


def test_pages_by_number_go_on_until_one_is_empty_or_there_are_enough() -> None:
    request = asked(url=URL + "?page=1", paging="page", first_page=0, max_pages=3, size_param="per", page_size=2)
    assert (request.url, request.params) == (URL, {"per": "2", "page": "0"})
    (second,) = read([POST], request).follow
    (third,) = read([POST | {"id": 2}], second).follow
    assert (second.params["page"], third.params["page"]) == ("1", "2")
    assert read([], third).is_end
    at_the_cap = read([POST], third)
    assert (at_the_cap.follow, at_the_cap.is_end) == ((), False)
    assert at_the_cap.notes == ("not read beyond 3 pages (max_pages)",)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_made_of_settings_that_are_allowed_and_what_a_source_says_comes_before_it(preset: str) -> None:
    settings = checked_settings(KIND, PRESETS[preset])
    assert settled({"preset": preset}) | settings == settled({"preset": preset})
    assert settled({"preset": preset, "paging": "none"})["paging"] == "none"


def test_an_offset_grows_by_what_was_shown_usable_or_not() -> None:
    (second,) = read([POST, None, POST], asked(paging="offset", offset_param="skip")).follow
    assert second.params == {"skip": "3"}
    assert read([], second).follow == ()


@pytest.mark.parametrize(
    ("header", "leads_to"),
    [
        ('<https://api.example/p?page=2>; rel="next", <https://api.example/p?page=9>; rel="last"', 2),
        ('</p?page=1>; rel="prev first", </p?page=2>; title="a, b"; rel=next', 2),
        ("<https://api.example/p?page=9>; rel=last", None),
        ('</p?page=9>; title="this is rel=next"; rel=last', None),
        ('</p?page=9>; rel="nextdoor"', None),
        ('</p?page=2>; REL="Last  Next"', 2),
        ("nonsense", None),
        ("", None),
    ],
)
def test_a_link_header_leads_on(header: str, leads_to: int | None) -> None:
    reading = read([POST], headers={"link": header}, paging="link")
    expected = [f"https://api.example/p?page={leads_to}"] if leads_to else []
    assert [request.url for request in reading.follow] == expected


def test_a_list_that_ends_at_its_reach_has_not_shown_everything() -> None:
    assert read([POST] * 4, paging="cursor", reach=10).is_end
    assert not read([POST] * 6, paging="cursor", reach=10).is_end


@pytest.mark.parametrize(
    ("form", "told"), [("iso", "2026-01-31T23:59:59Z"), ("epoch", "1769903999"), ("epoch_ms", "1769903999000")]
)
def test_what_is_new_since_the_watermark_is_asked_for_with_a_second_to_spare(form: str, told: str) -> None:
    newest = datetime(2026, 2, 1, tzinfo=UTC)
    for progress in (Progress(watermark=Watermark(newest)), Progress(newest_shown_at=newest)):
        assert asked(progress, since_param="since", since_format=form).params == {"since": told}
    assert asked(since_param="since").params == {}


@pytest.mark.parametrize(
    ("document", "settings", "error"),
    [
        ({"error": {"message": "Rate limit exceeded"}}, {}, SlowDown),
        ({"errors": [{"message": "Invalid API key"}]}, {}, LoginNeeded),
        ({"status": "error", "error": "no such list"}, {}, Refused),
        ({"code": 7, "items": []}, {"error": "code"}, Refused),
        ({"code": 0, "items": [POST]}, {"error": "code"}, None),
        ({"errors": [], "items": [POST]}, {}, None),
        ({"errors": ["one of them is broken"], "items": [POST]}, {}, None),
    ],
)
def test_an_error_that_calls_itself_200_is_found(document: Any, settings: dict[str, Any], error: type | None) -> None:
    answer = Answer(200, {}, json.dumps(document).encode(), URL, NOW)
    refusal = custom_api.refusal(answer, asked(**settings))
    assert (type(refusal.error) if refusal else None) is error


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("items", "data[", "not a JMESPath expression"),
        ("title", "shout(@)", "no function shout"),
        ("text", "a" * 501, "the limit is 500"),
        ("id", 3, "not a JMESPath expression"),
        ("paging", "magic", "one of none, cursor"),
        ("page_size", 0, "from 1 to 1000"),
        ("max_pages", "many", "not a whole number"),
        ("since_param", "a b", "not the name of a parameter"),
        ("header", "X Key", "a header's name"),
        ("headers", {"Authorization": "Bearer abcdefghij"}, "belongs into the vault"),
        ("headers", {"X-Api-Key": "abcdefghij"}, "belongs into the vault"),
        ("headers", {"Accept": "a\nb"}, "on one line"),
        ("headers", {"Accept": "a\0b"}, "on one line"),
        ("headers", {"Acc\0ept": "a"}, "not the name of a header"),
        ("headers", {"Host": "127.0.0.1"}, "set by the HTTP client"),
        ("headers", {"content-length": "0"}, "set by the HTTP client"),
        ("headers", {"Transfer-Encoding": "chunked"}, "set by the HTTP client"),
        ("header", "Host", "set by the HTTP client"),
        ("headers", "Accept: x", "an object"),
        ("shoe_size", 43, "its settings: preset"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_its_value_and_what_is_allowed(
    field: str, value: Any, says: str
) -> None:
    with pytest.raises(InvalidInput) as failure:
        checked_settings(KIND, {field: value})
    assert (failure.value.field, field in str(failure.value), says in str(failure.value)) == (field, True, True)
    assert "abcdefghij" not in str(failure.value)


@pytest.mark.parametrize(
    ("setting", "expression"),
    [
        ("items", "[@,@][]|" * 40 + "@"),
        ("items", "[@,@]|" * 60 + "to_string(@)"),
        ("items", "[@,@]|" * 60 + "@==`1`"),
        ("title", "[@,@][]|" * 40 + "@"),
    ],
)
def test_an_expression_that_makes_too_much_is_stopped(setting: str, expression: str) -> None:
    with pytest.raises(Unreadable, match="too much"):
        read([[{"title": "x"}]] if setting == "items" else [POST] * 1000, **{setting: expression})


@pytest.mark.parametrize(
    ("header", "secret", "sent"),
    [
        (None, "abcdef", {"Authorization": "Bearer abcdef"}),
        ("X-Api-Key", "abcdef", {"X-Api-Key": "abcdef"}),
        ("Authorization: Token", "abcdef", {"Authorization": "Token abcdef"}),
        ("X-Api-Key", "abc:def", {"X-Api-Key": "abc:def"}),
        ("X-Key", "X-Other: abcdef", {"X-Key": "abcdef"}),
    ],
)
def test_the_credential_goes_into_the_header_that_the_source_names(
    header: str | None, secret: str, sent: dict[str, str]
) -> None:
    request = asked(**({"header": header} if header else {}))
    put_on = dressed(request, Secret.parse(secret))
    assert {name: put_on.headers[name] for name in put_on.headers.keys() - request.headers.keys()} == sent
