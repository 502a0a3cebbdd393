"""Secrets: understood as people write them, taken out of addresses, shown nowhere."""

from __future__ import annotations

import io
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from catchment.errors import InvalidInput
from catchment.vault import Secret, strip_url


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("bob:pass:word\n", Secret(basic="bob:pass:word")),
        ("client-id:\n", Secret(basic="client-id:")),
        ("Bearer abc.def", Secret(headers={"Authorization": "Bearer abc.def"})),
        ("Basic Ym9iOnB3", Secret(headers={"Authorization": "Basic Ym9iOnB3"})),
        ("X-API-Key: abc", Secret(headers={"X-API-Key": "abc"})),
        ("x-api-key:abc", Secret(headers={"x-api-key": "abc"})),
        ("Authorization: Bearer abc\nX-Other: d e", Secret(headers={"Authorization": "Bearer abc", "X-Other": "d e"})),
        ("cookie: a=b; c=d", Secret(cookies="a=b; c=d")),
        ("Cookie: a=b\nX-API-Key: abc", Secret(headers={"X-API-Key": "abc"}, cookies="a=b")),
        ("a=b; c=d;", Secret(cookies="a=b; c=d")),
        ("web_session=04:00==", Secret(cookies="web_session=04:00==")),
        ("abcdef123", Secret(headers={"Authorization": "Bearer abcdef123"})),
        ("YWJjZA==", Secret(headers={"Authorization": "Bearer YWJjZA=="})),
        ('{"basic": "a:b", "query": {"key": "c"}}', Secret(basic="a:b", query={"key": "c"})),
    ],
)
def test_a_secret_is_understood_as_people_write_it(text: str, secret: Secret) -> None:
    assert Secret.parse(text) == secret


@pytest.mark.parametrize(
    "text",
    ["", " \n", "two sesames", '{"sesame": 1}', '{"basic": "sesame', "X-Sesame: a\nsesame", "ses\x00ame", "{sesame}"],
)
def test_what_is_not_understood_is_refused_with_what_would_be_right_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Secret.parse(text)
    assert "user:password" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None


FULL = Secret(
    basic="bob:sesame1",
    headers={"Authorization": "Bearer sesame2"},
    query={"key": "sesame3"},
    cookies="a=sesame4; b=sesame5",
)


def test_json_brings_back_the_same_secret() -> None:
    assert Secret.from_json(FULL.to_json()) == FULL
    assert Secret.parse(FULL.to_json()) == FULL


def test_a_shown_secret_names_its_parts_and_no_value() -> None:
    screen = io.StringIO()
    Console(file=screen).print(FULL, [FULL])
    shown = repr(FULL) + str(FULL) + f"{FULL!r}" + screen.getvalue()
    assert "sesame" not in shown
    assert repr(FULL) == "Secret(basic; cookies; headers: Authorization; query: key)"


def test_the_values_of_a_secret_are_all_that_must_not_be_seen() -> None:
    assert set(FULL.values()) == {
        *("bob:sesame1", "sesame1", "Ym9iOnNlc2FtZTE=", "Bearer sesame2", "sesame2", "sesame3"),
        *("a=sesame4; b=sesame5", "sesame4", "sesame5"),
    }
    assert Secret().values() == ()


@pytest.mark.parametrize(
    ("url", "stripped", "secret"),
    [
        ("https://bob:p%40ss@h:8/x?a=1", "https://h:8/x?a=1", Secret(basic="bob:p@ss")),
        ("https://ghp_abc@h/x", "https://h/x", Secret(basic="ghp_abc:")),
        ("https://h/x?token=a%2Bb&page=2", "https://h/x?page=2", Secret(query={"token": "a+b"})),
        (
            "https://h/x?page=2&key=abc&api_key=d#top",
            "https://h/x?page=2#top",
            Secret(query={"key": "abc", "api_key": "d"}),
        ),
        ("https://h/x?Access_Token=abc", "https://h/x", Secret(query={"Access_Token": "abc"})),
        ("https://u:p@h/?sig=s", "https://h/", Secret(basic="u:p", query={"sig": "s"})),
        ("https://h/x#access_token=abc", "https://h/x", None),
    ],
)
def test_what_is_secret_in_an_address_is_taken_out(url: str, stripped: str, secret: Secret | None) -> None:
    assert strip_url(url) == (stripped, secret)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/feed.xml?b=2&a=1&&c=%E4%B8%AD&d",
        "https://example.com/@user?author=bob&tokens=3&sid=1234567",
        "https://example.com/x?state=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
        "https://example.com/x?next_token=abc&token=#top",
        "r/webdev",
        "",
    ],
)
def test_an_address_without_a_secret_stays_letter_by_letter(url: str) -> None:
    assert strip_url(url) == (url, None)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        strip_url("http://[::1/x")


words = st.text("abcdefghij0123456789+/@: &=%中", min_size=1, max_size=12)


@given(st.sampled_from(["token", "api_key", "secret", "password", "auth", "signature"]), words, words)
def test_nothing_secret_is_left_in_a_stripped_address(name: str, value: str, other: str) -> None:
    stripped, secret = strip_url("https://h/x?" + urlencode({"q": other, name: value}))
    assert parse_qs(urlsplit(stripped).query) == {"q": [other]}
    assert secret == Secret(query={name: value})
