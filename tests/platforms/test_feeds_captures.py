"""Real feeds, as servers sent them. What must come out was checked against the raw files and another parser."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.errors import Unreadable
from catchment.model import Answer, Request
from catchment.platforms import feeds
from catchment.text import charset

EXPECTED = json.loads((Path(__file__).parent / "feeds_captures.expected.json").read_text())
PAGES = sorted(name for name in EXPECTED if "discovers" in EXPECTED[name])
UNREADABLE = sorted(name for name in EXPECTED if "error" in EXPECTED[name])
FEEDS = sorted(EXPECTED.keys() - {*PAGES, *UNREADABLE})
URL = "https://example.org/feed"
FIRST = Request(URL, state={"discover": True})


def answer(captures: Path, name: str) -> Answer:
    kind = EXPECTED[name].get("content_type")
    headers = {"content-type": kind} if kind else {}
    return Answer(200, headers, (captures / "feeds" / name).read_bytes(), URL, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("name", FEEDS)
def test_a_real_feed_gives_its_entries(captures, name):
    expected, reading = EXPECTED[name], feeds.read(answer(captures, name), FIRST)
    assert reading.title == expected["title"]
    assert len(reading.items) == expected["entries"]
    assert [skipped.reason for skipped in reading.skipped] == expected.get("skipped", [])
    assert bool(reading.notes) == expected["is_repaired"]


@pytest.mark.parametrize("name", [name for name in FEEDS if "first" in EXPECTED[name]])
def test_the_first_entry_of_a_real_feed_says_what_the_file_says(captures, name):
    expected = EXPECTED[name]["first"]
    first = feeds.read(answer(captures, name), FIRST).items[0]
    created_at = first.created_at.isoformat() if first.created_at else None
    assert (first.external_id, first.title, first.url, created_at) == tuple(
        expected[field] for field in ("external_id", "title", "url", "created_at")
    )


@pytest.mark.parametrize("name", FEEDS)
def test_the_encoding_of_a_real_feed_is_found(captures, name):
    real = answer(captures, name)
    assert charset.label(real.body, real.headers.get("content-type")) == EXPECTED[name]["codec"]


@pytest.mark.parametrize("name", [name for name in FEEDS if name.startswith("encodings/")])
def test_the_encoding_of_a_real_feed_is_found_even_if_it_calls_itself_utf_8(captures, name):
    assert charset.label(answer(captures, name).body, "text/xml; charset=utf-8") == EXPECTED[name]["codec"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_feed_is_said_to_be_none(captures, name):
    with pytest.raises(Unreadable) as failure:
        feeds.read(answer(captures, name), FIRST)
    assert failure.value.what == EXPECTED[name]["error"]


@pytest.mark.parametrize("name", PAGES)
def test_the_feed_of_a_real_page_is_found(captures, name):
    (follow,) = feeds.read(answer(captures, name), FIRST).follow
    assert follow.url == EXPECTED[name]["discovers"]


def test_every_recorded_feed_has_an_expectation(captures):
    folder = captures / "feeds"
    recorded = {str(path.relative_to(folder)) for path in folder.glob("*/*")}
    assert {name for name in recorded if not name.startswith("opml/")} == EXPECTED.keys()
