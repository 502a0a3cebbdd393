"""Real pages. Titles and authors are compared with what Mozilla's Readability finds, texts with the pages themselves.

How much of the main text is owed: so many characters at least, what stands early on the page in the first third of the
text, what stands late in the last, and all of Readability's excerpt where that is taken from the page.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from catchment.errors import Refused, Unreadable
from catchment.model import (
    Answer,
    Item,
    Reading,
    Request,
)
from catchment.platforms import website

URL = "https://site.example/page"


class Expected(NamedTuple):
    """Of a page's main text: how long it is at least, in characters, and what stands early and late in it."""

    least: int
    early: str
    late: str
    created_on: str | None = None


ARTICLES = {
    "ebb-org": Expected(10_000, "The last 33 days have been unprecedentedly difficult", "software freedom"),
    "gmw": Expected(3_000, "翱翔于距地球数千公里的太空中", "太空", "2017-03-10"),
    "heise": Expected(1_500, "Das in der iOS-Version bereits enthaltene TOTP-Feature", "1Password", "2015-04-08"),
    "lwn-1": Expected(20_000, "The Arduino has been one of the biggest success stories", "layer information"),
    "mozilla-2": Expected(
        1_500, "Get to know the features that make it the most complete browser", "associated with a Web page"
    ),
    "v8-blog": Expected(14_000, "Emscripten has always focused first and foremost", "WebAssembly", "2019-11-21"),
}
SAME_TITLE = ["ebb-org", "gmw", "heise", "lwn-1", "mozilla-2"]
SAME_AUTHOR = ["ebb-org", "gmw", "heise"]
EXCERPT_IS_IN_THE_TEXT = ["gmw", "heise", "lwn-1"]
"""Of the others, Readability's excerpt is a description that does not stand on the page."""
NO_ARTICLES = {
    "a2web_arxiv_list_cs_CL_recent",
    "a2web_example_com_tiny_page",
    "a2web_xcancel_antibot_interstitial",
}


def answer(captures: Path, name: str) -> Answer:
    body = (captures / "websites" / f"{name}.html").read_bytes()
    return Answer(200, {}, body, URL, datetime(2026, 1, 1, tzinfo=UTC))


def page(captures: Path, name: str) -> Item:
    real = answer(captures, name)
    assert website.refusal(real, Request(URL)) is None
    (item,) = website.read(real, Request(URL)).items
    return item


def links(captures: Path, name: str, selector: str) -> Reading:
    return website.read(answer(captures, name), Request(URL, state={"links": selector}))


def readability(captures: Path, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((captures / "websites" / f"{name}.expected.json").read_text())
    return found


def flat(text: str | None) -> str:
    return "".join((text or "").split())


def test_every_recorded_page_has_an_expectation(captures):
    assert {path.stem for path in (captures / "websites").glob("*.html")} == ARTICLES.keys() | NO_ARTICLES


@pytest.mark.parametrize("name", ARTICLES)
def test_the_main_text_of_a_real_page_is_found(captures, name):
    expected, item = ARTICLES[name], page(captures, name)
    text = flat(item.text)
    assert len(item.text or "") >= expected.least
    assert flat(expected.early) in text[: len(text) // 3]
    assert flat(expected.late) in text[-len(text) // 3 :]
    assert (item.created_at.date().isoformat() if item.created_at else None) == expected.created_on


@pytest.mark.parametrize("name", SAME_TITLE)
def test_the_title_of_a_real_page_is_readabilitys(captures, name):
    assert page(captures, name).title == readability(captures, name)["title"]


def test_a_title_is_kept_whole_where_readability_takes_the_first_half_for_the_sites_name(captures):
    title = page(captures, "v8-blog").title
    assert title == f"Outside the web: {readability(captures, 'v8-blog')['title']}"


@pytest.mark.parametrize("name", SAME_AUTHOR)
def test_the_author_of_a_real_page_is_readabilitys(captures, name):
    assert page(captures, name).author == readability(captures, name)["byline"]


@pytest.mark.parametrize("name", EXCERPT_IS_IN_THE_TEXT)
def test_what_readability_excerpts_from_a_real_page_stands_in_its_main_text(captures, name):
    assert flat(readability(captures, name)["excerpt"]) in flat(page(captures, name).text)


def test_a_real_check_for_browsers_is_refused(captures):
    refusal = website.refusal(answer(captures, "a2web_xcancel_antibot_interstitial"), Request(URL))
    assert refusal is not None
    assert isinstance(refusal.error, Refused)


def test_a_real_page_of_hardly_any_words_says_so(captures):
    with pytest.raises(Unreadable, match="hardly any text"):
        page(captures, "a2web_example_com_tiny_page")


def test_a_real_list_gives_its_links(captures):
    reading = links(captures, "a2web_arxiv_list_cs_CL_recent", 'dt a[title="Abstract"]')
    assert (len(reading.items), reading.skipped, reading.title) == (50, (), "Computation and Language")
    assert (reading.items[0].text, reading.items[0].url) == ("arXiv:2607.22529", "https://site.example/abs/2607.22529")
    assert "arXiv:2607.22529" in (page(captures, "a2web_arxiv_list_cs_CL_recent").text or "")
