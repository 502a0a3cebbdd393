"""Real trending pages. What must come out was checked against the raw files, and against another project's reader."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.model import Answer, Item, Request
from catchment.platforms import github

ROWS = {
    "daily_2026-04.html": 20,
    "daily_2026-04_3rows.html": 3,
    "typescript_2021.html": 25,
    "v_2021_4rows.html": 4,
}
BESIDE = ["typescript_2021", "v_2021_4rows"]


def items(captures: Path, name: str) -> tuple[Item, ...]:
    body = (captures / "github-trending" / name).read_bytes()
    answer = Answer(200, {}, body, "https://github.com/trending", datetime(2026, 1, 1, tzinfo=UTC))
    assert github.refusal(answer, Request("")) is None
    reading = github.read(answer, Request(""))
    assert (reading.skipped, reading.is_torn) == ((), False)
    return reading.items


def test_every_recorded_page_has_an_expectation(captures):
    assert {path.name for path in (captures / "github-trending").glob("*.html")} == ROWS.keys()


@pytest.mark.parametrize("name", ROWS)
def test_a_real_page_gives_all_its_rows_in_their_order(captures, name):
    found = items(captures, name)
    assert [item.rank for item in found] == list(range(1, ROWS[name] + 1))
    assert all(item.score is not None and item.gained is not None and item.tags for item in found)
    assert all(item.external_id == (item.title or "").lower() for item in found)


@pytest.mark.parametrize("name", BESIDE)
def test_a_real_page_of_2021_says_what_another_reader_found_in_it(captures, name):
    expected = json.loads((captures / "github-trending" / f"{name}.expected.json").read_text())
    assert [
        (item.title, item.url, item.rank, item.score, item.gained, item.tags[0])
        for item in items(captures, f"{name}.html")
    ] == [
        (
            f"{repository['username']}/{repository['repositoryName']}",
            repository["url"],
            repository["rank"],
            repository["totalStars"],
            repository["starsSince"],
            repository["language"],
        )
        for repository in expected
    ]


@pytest.mark.parametrize("name", BESIDE)
def test_a_description_is_that_of_the_other_reader_but_for_the_spaces_that_it_lost(captures, name):
    expected = json.loads((captures / "github-trending" / f"{name}.expected.json").read_text())
    found = ["".join((item.text or "").split()) for item in items(captures, f"{name}.html")]
    assert found == ["".join(repository["description"].split()) for repository in expected]


def test_a_real_page_of_2026_says_what_stands_in_it(captures):
    found = items(captures, "daily_2026-04.html")
    assert (found[0].external_id, found[0].score, found[0].gained) == ("alishahryar1/free-claude-code", 11139, 3975)
    assert [item.external_id for item in found if item.text is None] == ["deepseek-ai/deepseek-v3"]
    assert [item.gained for item in found] == [
        3975, 1200, 469, 78, 1236, 16, 174, 213, 62, 288, 242, 267, 70, 115, 77, 23, 227, 25, 189, 22,
    ]  # fmt: skip


def test_the_sponsors_link_in_a_real_row_is_not_its_title(captures):
    found = items(captures, "daily_2026-04_3rows.html")
    assert [item.external_id for item in found] == [
        "mattpocock/skills",
        "alishahryar1/free-claude-code",
        "z4nzu/hackingtool",
    ]
