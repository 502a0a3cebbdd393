"""Redaction: no planted secret survives, ordinary text does. Logging: every line passes through it, whoever wrote."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from catchment import logs
from catchment.logs import (
    HIDDEN,
    is_secret_name,
    know_secret,
    redact,
    redact_value,
)

# ── what a secret looks like in a text ─────────────────────────────────────────────────────────────────────────────

SHAPES = (
    "web_session={}",
    "web_session={}; path=/",
    "a1={}; webId=1",
    "auth_token={}",
    "ct0={}",
    "ngaPassportCid={}",
    "sessionid={}",
    "PHPSESSID={}",
    "reddit_session={}",
    "Cookie: x={}; y={}",
    "cookie: plain={}",
    "Set-Cookie: anything={}; HttpOnly",
    '"cookie_value": "{}"',
    '{{"cookie_value":"{}"}}',
    r"{{\"cookie_value\": \"{}\"}}",
    "{{'cookie': '{}'}}",
    '"cookies": "{}',
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "Authorization: {}",
    "Bearer {}",
    "'Authorization': 'Bearer {}'",
    "api_key={}",
    "apikey={}&x=1",
    "token={}",
    "access_token={}",
    "accessToken: '{}'",
    "client_secret={}",
    "secret={}",
    "password={}",
    "password: {}",
    "PASSWD = {}",
    "COOKIE_MASTER_KEY={}",
    "X-API-Key: {}",
    "x-api-key={}",
    "https://user:{}@example.com/x",
    "https://{}@example.com/x",
    "postgresql://u:{}@/db?host=/tmp",
    "https://example.com/x?key={}",
    "https://example.com/x?a=1&sig={}#end",
    "https://example.com/x?page=2&token={}&z=3",
    "{{'headers': {{'X-Api-Key': b'{}'}}}}",
)

# As secrets are made: letters, digits, a few signs, and at least one digit.
secrets = st.from_regex(r"[A-Za-z0-9_-]{5,40}[0-9][A-Za-z0-9]{2,10}", fullmatch=True)
surroundings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\"'\\"), max_size=30)


@given(st.sampled_from(SHAPES), secrets, surroundings, surroundings)
@example("a1={}; webId=1", "00000000", "", "")
def test_a_planted_secret_never_survives(shape: str, secret: str, before: str, after: str) -> None:
    text = f"{before} {shape.format(secret, secret)} {after}"
    assert secret not in redact(text)


@given(st.lists(st.one_of(st.sampled_from(SHAPES).map(lambda shape: shape.format("s3same", "s3same")), surroundings)))
def test_redacting_twice_is_redacting_once(parts: list[str]) -> None:
    once = redact(" ".join(parts))
    assert redact(once) == once


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web_session=0400abc", f"web_session={HIDDEN}"),
        ('"cookie_value": "xxx"', f'"cookie_value": "{HIDDEN}"'),
        ("Cookie: a=b; c=d", f"Cookie: a={HIDDEN}; c={HIDDEN}"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("X-API-Key: abc", f"X-API-Key: {HIDDEN}"),
        ("GET https://u:p@h/x?token=abc&page=2", f"GET https://{HIDDEN}@h/x?token={HIDDEN}&page=2"),
        ("(password: sesame)", f"(password: {HIDDEN})"),
        ("eyJhbGciOiJub25l.eyJzdWIiOiIxIn0.c2ln", HIDDEN),
    ],
)
def test_only_the_value_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "collected 25 items of r/webdev in 0.3 s: 20 new, 5 seen",
        "The secret: never give up",
        "Basic authentication is needed, or a Bearer token",
        "a bearer of bad news; basic income",
        "Password managers are good; choose a long password.",
        "the token is missing; no api key was given",
        "token: missing",
        'the answer has "token": null and "session": ""',
        "https://example.com/@user/feed?page=2&sort=new#top",
        "https://mastodon.social/@author=3",
        "write to someone@example.com about author=bob and monkey=banana",
        "next_token=7140dibdnow9c7btw3w29 pagination_token=abc123abc",
        "max_tokens=500 tokens=12 keyboard=us",
        "cell a1=5, session=3, sid: 17",
        "if token == other: return",
        "the cookie: a small cake",
        "小红书的登录已过期，请更换 cookie。密码：见说明书",
        "https://bbs.nga.cn/read.php?tid=123&page=e，联系 a@example.com",
        "2026-01-01T00:00:00+00:00 GET /api/items?after=120&limit=30 200",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@given(st.text(st.characters(categories=["L", "N", "P", "Z"], exclude_characters="=:@&")))
def test_a_text_without_signs_of_a_value_stays_as_it_is(text: str) -> None:
    if not any(word in text.lower() for word in ("bearer", "basic", "eyj")):
        assert redact(text) == text


def test_a_known_secret_is_hidden_wherever_it_occurs_also_encoded() -> None:
    know_secret('pa/ss "wörd')
    know_secret("pa/ss ")
    text = 'a pa/ss "wörd b pa%2Fss%20%22w%C3%B6rd c pa%2Fss+%22w%C3%B6rd d "pa/ss \\"w\\u00f6rd" e'
    assert redact(text) == f'a {HIDDEN} b {HIDDEN} c {HIDDEN} d "{HIDDEN}" e'


@pytest.mark.parametrize("value", ["", "short", "REDACTED"])
def test_a_value_too_short_or_part_of_the_mark_itself_is_not_taken_for_a_secret(value: str) -> None:
    know_secret(value)
    text = f"a short story, web_session={HIDDEN}"
    assert redact(text) == text


@pytest.mark.parametrize("name", ["token", "X-API-Key", "access_token", "Password", "COOKIE_MASTER_KEY", "web_session"])
def test_a_name_that_promises_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "monkey", "page", "next_token", "key", "credential", "classid", "tokens"])
def test_another_name_is_not_taken_for_one(name: str) -> None:
    assert not is_secret_name(name)


class Opaque:
    def __repr__(self) -> str:
        return "Opaque(token=sesame1)"


def test_a_value_is_redacted_all_the_way_down() -> None:
    value: dict[str, Any] = {
        "headers": {"Authorization": "sesame", "Accept": "*/*"},
        "urls": ["https://u:sesame@h/", "https://h/"],
        "error": ValueError("password=sesame"),
        "body": b"token=sesame&x=1",
        "thing": Opaque(),
        "cookies": {"a": "sesame"},
        "token": None,
        "count": 3,
    }
    assert redact_value(value) == {
        "headers": {"Authorization": HIDDEN, "Accept": "*/*"},
        "urls": [f"https://{HIDDEN}@h/", "https://h/"],
        "error": f"password={HIDDEN}",
        "body": f"token={HIDDEN}&x=1",
        "thing": f"Opaque(token={HIDDEN})",
        "cookies": HIDDEN,
        "token": None,
        "count": 3,
    }


def test_a_value_that_contains_itself_comes_to_an_end() -> None:
    value: dict[str, Any] = {"token": "sesame"}
    value["self"] = value
    assert "sesame" not in json.dumps(redact_value(value))


# ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield io.StringIO()
    root.handlers[:], level = before
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json_with_its_context(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    with logs.bound(request_id="r1", source=7):
        logs.logger("catchment.collect").info("collected", new=3, title="新闻")
    logs.logger("catchment.collect").info("done")
    first, second = lines(stream)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "collected",
        "level": "info",
        "logger": "catchment.collect",
        "new": 3,
        "title": "新闻",
        "request_id": "r1",
        "source": 7,
    }
    assert "request_id" not in second


@pytest.mark.parametrize("format", ["json", "people"])
def test_no_secret_reaches_a_line_whoever_wrote_it(stream: io.StringIO, format: str) -> None:
    logs.configure(format, "info", stream)
    log = logs.logger("catchment")
    log.warning("refused https://u:sesame1@h/?token=sesame1", headers={"X-API-Key": "sesame1"}, api_key="sesame1")
    logging.getLogger("uvicorn.access").info('"GET /items?api_key=%s" 200', "sesame1")
    try:
        raise ValueError("password=sesame1")
    except ValueError:
        log.exception("failed")
        logging.getLogger("sqlalchemy").exception("failed too")
    assert stream.getvalue().count("sesame1") == 0
    assert stream.getvalue().count(HIDDEN) >= 7
    assert stream.getvalue().count("ValueError: password") == 2


@pytest.mark.parametrize("format", ["json", "people"])
@pytest.mark.parametrize("hostile", ["\x1b]0;owned\x07", "\x9b31m", "\nERROR all is lost", "\u202eevil", "\x00\x7f"])
def test_no_control_character_from_a_name_reaches_the_log(stream: io.StringIO, format: str, hostile: str) -> None:
    logs.configure(format, "info", stream)
    logs.logger("catchment").warning(f"late {hostile}", source=f"feed {hostile}", hosts=[{"name": hostile}])
    logging.getLogger("uvicorn.error").warning("refused %s", hostile)
    written = stream.getvalue()
    assert len(written.splitlines()) == 2
    assert [char for char in written if not char.isprintable() and char != "\n"] == []


def test_names_in_the_log_keep_their_letters_and_emoji(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    logs.logger("catchment").info("collected", source="新闻 café 👩\u200d🚀")
    assert lines(stream)[0]["source"] == "新闻 café 👩\u200d🚀"


def test_a_traceback_keeps_its_lines(stream: io.StringIO) -> None:
    logs.configure("people", "info", stream)
    try:
        raise ValueError("torn \x1b[31m page")
    except ValueError:
        logs.logger("catchment").exception("failed")
    assert "Traceback (most recent call last):\n" in stream.getvalue()
    assert "ValueError: torn \\x1b[31m page" in stream.getvalue()


def test_events_below_the_level_are_not_written(stream: io.StringIO) -> None:
    logs.configure("json", "warning", stream)
    logs.logger("catchment").info("small talk")
    logging.getLogger("uvicorn").info("small talk")
    logs.logger("catchment").error("trouble")
    assert [line["event"] for line in lines(stream)] == ["trouble"]


def test_by_itself_the_format_is_json_where_nobody_looks_and_for_people_on_a_terminal(stream: io.StringIO) -> None:
    logs.configure("auto", "info", stream)
    logs.logger("catchment").info("one")
    assert lines(stream)[0]["event"] == "one"
    terminal = Terminal()
    logs.configure("auto", "info", terminal)
    logs.logger("catchment").info("two")
    assert "two" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_ordinary_remarks_of_libraries_are_not_written(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    logging.getLogger("sqlalchemy.engine").info("BEGIN (implicit)")
    assert stream.getvalue() == ""
