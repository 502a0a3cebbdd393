"""`catchment search`, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.store.search import index
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


@pytest.fixture(autouse=True)
def _database(home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)


@pytest.fixture(autouse=True)
def _collected(_database: None, catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", title="新闻", posts=3).url)
    assert catchment("collect").code == 0


def test_words_find_items_one_object_a_line(catchment: Catchment) -> None:
    everything = catchment("items", "--json").lines
    word = everything[0]["title"].split()[0]
    said = catchment("search", word, "--json")
    assert said.code == 0
    assert [item["id"] for item in said.lines] == [item["id"] for item in everything]
    assert everything[0].keys() <= said.lines[0].keys() | {"key"}
    assert catchment("search", word.upper(), "--limit", 2, "--json").lines == said.lines[:2]
    rest = catchment("search", word, "--after", said.lines[1]["key"], "--json")
    assert rest.lines == said.lines[2:]
    assert len(catchment("search", word, "--best", "--kind", "rss", "--source", 1, "--json").lines) == 3
    assert catchment("search", word, "--author", "nobody", "--json").lines == []


def test_people_see_title_and_snippet_and_how_to_go_on(catchment: Catchment) -> None:
    title = catchment("items", "--json").lines[0]["title"]
    said = catchment("search", title.split()[0], "--limit", 1)
    assert title in said.out
    assert "3 results" in said.err
    assert "more: --after" in said.err


def test_a_question_without_a_word_is_refused(catchment: Catchment) -> None:
    assert catchment("search", "?!", "--json").failure == (2, "INVALID_INPUT")
    said = catchment("search", "…")
    assert (said.code, "no word" in said.err) == (2, True)


def test_an_index_too_far_behind_is_brought_up_first(catchment: Catchment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_SCANNED", 1)
    title = catchment("items", "--json").lines[0]["title"]
    assert len(catchment("search", title.split()[0], "--json").lines) == 3
