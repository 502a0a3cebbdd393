"""Secrets: understood as people write them, taken out of addresses, shown nowhere."""

from __future__ import annotations

import io
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from catchment.credentials.secret import Secret, strip_url, unsure_names, unsure_notes
from catchment.errors import InvalidInput
from catchment.logs import redact


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
        ("https://h/x?a=1;token=abc;b=2", "https://h/x?a=1;b=2", Secret(query={"token": "abc"})),
        ("https://h/x?token2=abc&token[]=d", "https://h/x", Secret(query={"token2": "abc", "token[]": "d"})),
        *(
            (f"https://h/x?{name}=hush&page=2", "https://h/x?page=2", Secret(query={name: "hush"}))
            for name in (
                "password2",
                "api_key2",
                "secret1",
                "torrentpass",
                "userpass",
                "rssauth",
                "creds",
                "access_code",
            )
        ),
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


# ── what addresses hide under other names ─────────────────────────────────────────────────────────────────────────

NAMES = (
    *("passkey", "authkey", "pass", "pw", "jwt", "feed_key", "rsskey", "user_credentials", "subscription-key"),
    *("app_key", "bearer", "auth_code", "fancykey", "X-Feed-Key", "my.pass"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_promises_a_secret_has_its_value_taken_out_and_hidden(name: str) -> None:
    address = f"https://a.example/feed?lang=en&{name}=9f3a77c1"
    assert strip_url(address) == ("https://a.example/feed?lang=en", Secret(query={name: "9f3a77c1"}))
    assert "9f3a77c1" not in redact(f"could not fetch {address}: 404")


@pytest.mark.parametrize(
    "query",
    [
        *(
            "sortkey=title",
            "author=ada",
            "author_id=77",
            "authority=x1234567",
            "keyword=tea",
            "monkey=see",
            "compass=n",
        ),
        *("page_token=CAUQAA", "channel_id=UC_x5XG1OV2P6uZZ5FSM9Ttw", "list=PLBCF2DAC6FFB574DE", "v=dQw4w9WgXcQ"),
        *("title=2026-01-31-what-a-long-day-that-was", "passed=true", "password_hint=", "compass=n"),
    ],
)
def test_what_is_no_secret_stays_in_the_address(query: str) -> None:
    address = f"https://a.example/feed?{query}"
    assert (strip_url(address, takes_unsure=True), unsure_names(address)) == ((address, None), [])
    assert redact(address) == address


@pytest.mark.parametrize(
    "value", ["0123456789abcdef0123456789abcdef", "hT7gQ2LmZx9Wc4Rb8NvK", "AbCd3fGh1jKlMn0pQrSt.uV5-x"]
)
def test_a_long_random_value_under_another_name_is_taken_only_if_that_is_wanted(value: str) -> None:
    address = f"https://a.example/feed?u={value}"
    assert (strip_url(address), unsure_names(address)) == ((address, None), ["u"])
    assert strip_url(address, takes_unsure=True) == ("https://a.example/feed", Secret(query={"u": value}))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("/private/0123456789abcdef0123456789abcdef/feed.xml", "a part of the path of the address"),
        ("/0123456789abcdef0123456789abcdef.xml", "a part of the path of the address"),
        ("/feed?0123456789abcdef0123456789abcdef", "the query of the address"),
        ("/feed;jsessionid=9F3A?page=2", "the value of jsessionid in the path of the address"),
        ("/feed;token=hush/x", "the value of token in the path of the address"),
    ],
)
def test_a_secret_that_is_no_parameter_of_the_query_is_noted(address: str, place: str) -> None:
    (note,) = unsure_notes(f"https://a.example{address}")
    assert note.startswith(f"{place} looks like a secret")


@pytest.mark.parametrize(
    "address",
    [
        "/shows/5f0c1d6e-7a3b-4c2d-9e8f-0a1b2c3d4e5f/feed",
        "/2026/01/31/what-a-long-day-that-was-in-the-year-2026",
        "/channel/UC_x5XG1OV2P6uZZ5FSM9Ttw;page=2;sort=new",
        "/alerts/feeds/12345678901234567890123456789012345",
        "/feed?2026-01-31",
    ],
)
def test_ids_dates_and_titles_in_a_path_are_no_secrets(address: str) -> None:
    assert unsure_notes(f"https://a.example{address}") == []
