"""Importing and exporting what is followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment

ROWS = [
    {"target": "https://a.example/feed", "name": "A", "categories": ["news", "tech"], "interval_minutes": 15},
    {"kind": "digest_feed", "target": "https://b.example/feed?x=1&y=2", "priority": "high", "quality_score": 0.5},
    {"target": "https://c.example/feed", "state": "paused"},
]


def imported(catchment: Catchment, rows: object) -> dict[str, object]:
    said = catchment("sources", "import", "-", "--json", stdin=json.dumps(rows).encode())
    return {"code": said.code} | said.json


def test_a_list_is_followed_and_what_was_known_stays(
    catchment: Catchment, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    catchment("sources", "add", "rss", "https://a.example/feed", "--name", "Mine")
    done = imported(catchment, ROWS)
    assert (done["code"], done["added"], done["known"], done["refused"]) == (0, 2, 1, 0)
    listed = catchment("sources", "list", "--json").json
    assert [(one["name"], one["kind"], one["state"]) for one in listed] == [
        ("Mine", "rss", "active"),
        ("https://b.example/feed?x=1&y=2", "digest_feed", "active"),
        ("https://c.example/feed", "rss", "paused"),
    ]


def test_bad_rows_are_reported_one_by_one_and_the_rest_goes_on(catchment: Catchment) -> None:
    rows = [
        {"target": "https://a.example/"},
        {"target": "file:///etc/passwd"},
        {"target": "https://b.example/", "priority": "urgent"},
        {"target": "https://c.example/", "interval_minutes": 0},
        {"target": "https://me:sesame-open-1@d.example/"},
        {"target": "https://e.example/", "credential": "nobody"},
        {"kind": "nosuchkind", "target": "x"},
        {"interval_minutes": 5},
        {"target": "https://a.example"},
    ]
    done = imported(catchment, rows)
    assert (done["code"], done["added"], done["known"], done["refused"]) == (8, 1, 1, 7)
    problems = done["problems"]
    assert isinstance(problems, list)
    assert sorted(one["place"] for one in problems) == [f"entry {number}" for number in range(2, 9)]
    assert all(one["reason"] for one in problems)
    assert "sesame-open-1" not in json.dumps(done)


def test_a_list_of_which_nothing_can_be_used_is_a_mistake(catchment: Catchment) -> None:
    said = catchment("sources", "import", "-", stdin=b'["file:///etc/passwd"]')
    assert said.code == 2
    assert "entry 1" in said.err


@pytest.mark.parametrize("format", ["json", "csv"])
def test_what_is_exported_can_be_imported_elsewhere_and_is_the_same(
    catchment: Catchment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    imported(catchment, ROWS)
    file = tmp_path / f"list.{format}"
    assert catchment("sources", "export", file, "--json").json["sources"] == 3
    before = catchment("sources", "list", "--json").json
    monkeypatch.setenv("CATCHMENT_HOME", str(tmp_path / "elsewhere"))
    assert catchment("sources", "import", file, "--json").json["added"] == 3
    after = catchment("sources", "list", "--json").json
    apart = {"created_at", "state_reason", "next_fetch_reason"}
    assert [{k: v for k, v in one.items() if k not in apart} for one in after] == [
        {k: v for k, v in one.items() if k not in apart} for one in before
    ]


def test_opml_says_how_many_sources_it_could_not_hold(catchment: Catchment, tmp_path: Path) -> None:
    imported(catchment, ROWS)
    said = catchment("sources", "export", "-", "--format", "opml")
    assert 'xmlUrl="https://b.example/feed?x=1&amp;y=2"' in said.out
    assert said.out.count("https://a.example/feed") == 2


def test_real_lists_are_imported_whole(catchment: Catchment, captures: Path) -> None:
    file = captures / "feeds" / "opml" / "Subs.opml"
    first = catchment("sources", "import", file, "--json").json
    again = catchment("sources", "import", file, "--json").json
    assert first["refused"] == 0
    assert first["added"] > 80
    assert (again["added"], again["known"]) == (0, first["added"] + first["known"])


def test_ten_thousand_rows_are_imported_in_their_order(catchment: Catchment) -> None:
    rows = [f"https://a{number}.example/feed" for number in range(10_000)]
    assert imported(catchment, rows)["added"] == 10_000
    assert [one["target"] for one in catchment("sources", "list", "--json").json] == rows
