"""Every answer in `tests/platforms/NAME/` is read, or refused, as the file beside it says: whole outcomes, as data."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from catchment.errors import InvalidInput
from catchment.model import Platform
from catchment.platforms import feeds, installed
from tests.platforms.cases import Case, bodies, cases, problems

FEED = b"<rss><channel><title>News</title><item><title>One</title></item></channel></rss>"
READING = {"items": [{"external_id": "", "title": "One"}], "title": "News"}
RIGHT = {"origin": "written for this test", "reading": READING}


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_case_is_read_as_the_file_beside_it_says(case: Case, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--write-expected"):
        case.write()
    case.check()


def test_every_case_has_an_expectation_and_every_expectation_a_case() -> None:
    assert list(problems()) == []


@pytest.mark.parametrize("name", installed().by_name)
def test_every_platform_has_cases(name: str) -> None:
    assert bodies(name), f"put answers into tests/platforms/{name}/"


def written(folder: Path, expectation: Any, body: bytes = FEED) -> Case:
    path = folder / "feeds" / "case.xml"
    path.parent.mkdir()
    path.write_bytes(body)
    path.with_name("case.expected.json").write_text(json.dumps(expectation))
    return Case(path)


def test_a_right_expectation_passes(tmp_path: Path) -> None:
    written(tmp_path, RIGHT).check()
    assert list(problems(tmp_path)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"reading": {"items": "WRONG ON PURPOSE"}},
        {"reading": {**READING, "title": "Olds"}},
        {"reading": {**READING, "titel": "News"}},
        {"reading": None},
        {"error": {"type": "Unreadable"}},
        {"refusal": {}},
        {"readings": {}},
        {"request": {"steps": "list"}},
        {"settings": {"sort": "new"}},
        {"origin": " "},
        {"origin": None},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_wrong_expectation_fails(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, InvalidInput)):
        written(tmp_path, {**RIGHT, **change}).check()


def test_files_that_belong_to_nothing_are_named(tmp_path: Path) -> None:
    written(tmp_path, RIGHT)
    for name in ("feeds/alone.xml", "feeds/lost.expected.json", "feeds/case.json", "myspace/case.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(problems(tmp_path)) == [
        "feeds/lost.expected.json: there is no case of this name",
        "feeds/alone: no alone.expected.json beside it",
        "feeds/case: 2 cases of one name",
        "myspace/: there is no platform of this name",
        "myspace/case: no case.expected.json beside it",
    ]


def test_an_outcome_that_is_written_passes_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    case = written(tmp_path, {"origin": "by hand", "url": "https://example.com/a", "refusal": {"old": "outcome"}})
    case.write()
    case.check()
    expectation = case.expectation()
    assert (expectation.origin, expectation.url, expectation.refusal) == ("by hand", "https://example.com/a", None)
    assert expectation.reading == READING


def test_a_case_written_for_the_first_time_fails_until_its_origin_is_told(tmp_path: Path) -> None:
    case = written(tmp_path, RIGHT)
    case.beside.unlink()
    case.write()
    with pytest.raises(AssertionError, match="where the body comes from"):
        case.check()


def test_an_outcome_that_differs_is_shown_line_by_line(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as failure:
        written(tmp_path, {**RIGHT, "reading": {**READING, "title": "Olds"}}).check()
    changed = [line for line in str(failure.value).splitlines() if line.startswith(("-  ", "+  "))]
    assert changed == ['-    "title": "Olds"', '+    "title": "News"']


def test_an_item_of_an_undeclared_kind_is_named() -> None:
    platform = ModuleType("catchment.platforms.feeds")
    vars(platform).update(vars(feeds) | {"KINDS": tuple(kind.replace(item_kind="link") for kind in feeds.KINDS)})
    (case, *_) = [case for case in cases() if case.platform is feeds and case.expectation().reading]
    with pytest.raises(AssertionError, match="declares as one of its items: entry"):
        Case(case.path, cast(Platform, platform)).check()
