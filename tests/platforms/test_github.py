"""The verbs of the github platform: what is understood, what is asked, what a row says, what is no list at all."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.errors import InvalidInput, Missing, Refused, SlowDown, Unreadable
from catchment.model import Answer, Ask, Blame, Item, Progress, Reading, Request, Source
from catchment.platforms import github
from catchment.refine import refine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://github.com/trending"
SAMPLES = Path(__file__).parent / "samples" / "github"
REQUEST = Request(URL)


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def answer(body: bytes | str, url: str = URL, status: int = 200) -> Answer:
    return Answer(status, {}, body.encode() if isinstance(body, str) else body, url, NOW)


def read(body: bytes | str) -> Reading:
    return github.read(answer(body), REQUEST)


def row(inside: str) -> str:
    return f"<html><body><article class=Box-row>{inside}</article></body></html>"


def one(inside: str) -> Item:
    (item,) = read(row(inside)).items
    return item


def said(item: Item) -> dict[str, Any]:
    """What an item says beyond its defaults, as JSON."""
    fields = [field for field in msgspec.structs.fields(item) if getattr(item, field.name) != field.default]
    return {field.name: json.loads(msgspec.json.encode(getattr(item, field.name))) for field in fields}


def asked(target: str, **settings: str) -> str:
    address = github.understand(target).address
    source = Source(1, "key", "github", "github_trending", address, "Name", NOW, settings=settings)
    (request,) = github.first(source, Progress(), Ask("trending", 100))
    return request.url


# ── what a person types ───────────────────────────────────────────────────────────────────────────────────────────


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
        ("https://github.com/torvalds/linux", "only the trending pages"),
        ("https://github.com/trending/developers", "developers"),
        ("https://github.com/", "only the trending pages"),
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


# ── what a row says ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["rows_2026", "rows_2021"])
def test_a_page_of_either_layout_is_read_as_the_file_beside_it_says(name):
    reading = read(sample(f"{name}.html"))
    assert [said(item) for item in reading.items] == json.loads(sample(f"{name}.expected.json"))
    assert not reading.is_torn


def test_a_row_that_names_no_repository_is_counted_and_keeps_its_rank_to_itself():
    reading = read(sample("rows_2026.html"))
    assert [skipped.reason for skipped in reading.skipped] == ["no repository"]


def test_the_sponsors_link_before_the_title_is_not_the_title():
    item = one('<h2><a href="/sponsors/ada">Sponsor</a> <a href="/ada/engine">ada / engine</a></h2>')
    assert item.external_id == "ada/engine"


def test_the_address_names_the_repository_not_the_text():
    assert one('<h2><a href="/Ada/Engine">Someone /\n else</a></h2>').title == "Ada/Engine"


def test_a_row_whose_title_is_no_heading_any_more_is_known_by_its_stars():
    item = one('<div><a href="/ada/engine">ada/engine</a></div><a href="/ada/engine/stargazers">12</a>')
    assert (item.external_id, item.score) == ("ada/engine", 12)


def test_what_a_row_does_not_say_is_unknown_and_not_zero():
    item = one('<h2><a href="/ada/engine">x</a></h2>')
    assert (item.text, item.tags, item.score, item.gained) == (None, (), None, None)


@pytest.mark.parametrize(
    ("words", "gained"),
    [
        ("3,975 stars today", 3975),
        ("1 star today", 1),
        ("0 stars today", 0),
        ("12 stars this week", 12),
        ("1,234,567 stars this month", 1234567),
        ("many stars today", None),
    ],
)
def test_the_stars_of_a_period_are_read_as_written(words, gained):
    assert one(f'<h2><a href="/a/b">x</a></h2><span class="float-sm-right"> {words}\n</span>').gained == gained


def test_a_repository_is_one_item_whatever_case_its_name_is_written_in():
    reading = read(row('<h2><a href="/Ada/Engine">x</a></h2>'))
    (refined,) = refine(reading, scope="", answer_url=URL).items
    assert (refined.item.external_id, refined.item.scope, refined.item.created_at) == ("ada/engine", "", None)


# ── what is no list ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", Unreadable),
        (b"<html><body><p>A page</p></body></html>", Unreadable),
        (sample("none_listed.html"), Missing),
        (b"<html><body><article>no link</article></body></html>", Unreadable),
    ],
)
def test_a_page_without_a_repository_is_a_failure_never_nothing_trending(body, error):
    with pytest.raises(error) as failure:
        read(body)
    assert type(failure.value) is error
    assert failure.value.helps


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (answer(sample("slow_down.html")), SlowDown),
        (answer(sample("login.html")), Refused),
        (answer("<html>x</html>", url="https://github.com/login?return_to=x"), Refused),
        (answer("<html><head><title>Just a moment...</title></head></html>", status=403), Refused),
    ],
)
def test_what_comes_in_place_of_the_list_is_refused_as_what_it_is(given, error):
    refusal = github.refusal(given, REQUEST)
    assert refusal is not None
    assert (type(refusal.error), refusal.blames) == (error, Blame.HOST)


def test_a_good_page_is_not_refused():
    assert github.refusal(answer(sample("rows_2026.html")), REQUEST) is None


def test_of_a_page_that_breaks_off_only_whole_rows_are_taken():
    whole = sample("rows_2026.html")
    reading = read(whole[: whole.index(b"7</a>")])
    assert [item.external_id for item in reading.items] == ["harbour/tide.js"]
    assert reading.is_torn


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
