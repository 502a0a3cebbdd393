"""The verbs of the github platform: what is understood, what is asked, what a row says, what is no list at all."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.errors import (
    InvalidInput,
    Refused,
    Unreadable,
)
from catchment.model import (
    Answer,
    FailureScope,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import github
from catchment.text.clean import refine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://github.com/trending"
SAMPLES = Path(__file__).parent / "github"
REQUEST = Request(URL)


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def answer(body: bytes | str, url: str = URL, status: int = 200) -> Answer:
    return Answer(status, {}, body.encode() if isinstance(body, str) else body, url, NOW)


def read(body: bytes | str) -> Reading:
    return github.read(answer(body), REQUEST)


def row(inside: str) -> str:
    return f"<html><body><article class=Box-row>{inside}</article></body></html>"


def asked(target: str, **settings: str) -> str:
    address = github.understand(target).address
    source = Source(1, "key", "github", "github_trending", address, "Name", NOW, settings=settings)
    (request,) = github.first(source, Progress(), WalkPlan("trending", 100))
    return request.url


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("all", "https://github.com/trending"),
        (" All ", "https://github.com/trending"),
        ("python", "https://github.com/trending/python"),
        ("Python", "https://github.com/trending/python"),
        ("C++", "https://github.com/trending/c%2B%2B"),
        ("c%2B%2B".replace("%2B", "+"), "https://github.com/trending/c%2B%2B"),
        ("C#", "https://github.com/trending/c%23"),
        ("Jupyter Notebook", "https://github.com/trending/jupyter-notebook"),
        ("https://github.com/trending", "https://github.com/trending"),
        ("https://github.com/trending?since=daily", "https://github.com/trending"),
        ("https://github.com/trending/python?since=weekly", "https://github.com/trending/python?since=weekly"),
        ("http://www.github.com/trending/Python/?since=Weekly", "https://github.com/trending/python?since=weekly"),
        ("github.com/trending/c%2B%2B?since=monthly", "https://github.com/trending/c%2B%2B?since=monthly"),
        (
            "https://github.com/trending/go?since=daily&spoken_language_code=zh",
            "https://github.com/trending/go?spoken_language_code=zh",
        ),
    ],
)
def test_a_page_has_one_address_however_it_was_typed(typed, address):
    assert github.understand(typed).address == address
    assert github.understand(address).address == address


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("torvalds/linux", "is not a language"),
        ("https://github.com/torvalds/linux", "only GitHub's trending pages"),
        ("https://github.com/trending/developers", "developers"),
        ("https://github.com/", "only GitHub's trending pages"),
        ("https://gitlab.com/explore", "is not a language"),
        ("", "no language"),
    ],
)
def test_a_wrong_target_is_answered_with_what_would_be_right(typed, words):
    with pytest.raises(InvalidInput, match=words) as failure:
        github.understand(typed)
    assert "https://github.com/trending/python" in failure.value.helps


def test_a_period_that_github_does_not_have_is_answered_with_those_it_has():
    with pytest.raises(InvalidInput, match="daily, weekly, monthly"):
        github.understand("https://github.com/trending?since=yearly")


def test_the_settings_of_a_source_win_over_its_target():
    assert asked("python") == "https://github.com/trending/python"
    assert asked("python", since="weekly") == "https://github.com/trending/python?since=weekly"
    assert asked("all", language="C++", since="monthly") == "https://github.com/trending/c%2B%2B?since=monthly"
    assert asked("https://github.com/trending/go?since=weekly", since="daily") == "https://github.com/trending/go"
    assert asked("go", language="all") == "https://github.com/trending"


def test_a_repository_is_one_item_whatever_case_its_name_is_written_in():
    reading = read(row('<h2><a href="/Ada/Engine">x</a></h2>'))
    (refined,) = refine(reading, scope="", answer_url=URL).items
    assert (refined.item.external_id, refined.item.scope, refined.item.created_at) == ("ada/engine", "", None)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (answer("<html>x</html>", url="https://github.com/login?return_to=x"), Refused),
        (answer("<html><head><title>Just a moment...</title></head></html>", status=403), Refused),
    ],
)
def test_what_comes_in_place_of_the_list_is_refused_as_what_it_is(given, error):
    refusal = github.refusal(given, REQUEST)
    assert refusal is not None
    assert (type(refusal.error), refusal.blames) == (error, FailureScope.HOST)


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 1_000_000,
        b"<div></b>" * 300_000,
        b"<article>" * 100_000,
        b"<a " + b"".join(b"x%d " % number for number in range(300_000)),
        b"<article><h2><a href=/a/b>" * 20_000,
        b'<article><a "' * 100_000,
        b"<script>" * 300_000,
        b"<!--" * 500_000,
    ],
    ids=["deep", "deep, with other ends", "deep rows", "attributes", "links", "quotes", "scripts", "comments"],
)
def test_a_page_made_to_keep_us_busy_does_not(body):
    begun = time.process_time()
    with pytest.raises(Unreadable):
        read(body)
    assert time.process_time() - begun < 5
