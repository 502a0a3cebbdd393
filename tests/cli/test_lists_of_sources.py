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
    assert [(source["name"], source["kind"], source["state"]) for source in listed] == [
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
        {"kind": "website", "target": "https://f.example/", "settings": {"links": "a["}},
        {"target": "https://a.example"},
    ]
    done = imported(catchment, rows)
    assert (done["code"], done["added"], done["known"], done["refused"]) == (8, 2, 1, 7)
    problems = done["problems"]
    assert isinstance(problems, list)
    # The fifth is taken: its secret is encrypted with the master key that is made for it.
    assert sorted(problem["place"] for problem in problems) == [f"entry {number}" for number in (2, 3, 4, 6, 7, 8, 9)]
    assert all(problem["reason"] for problem in problems)
    assert "sesame-open-1" not in json.dumps(done)


def test_a_list_of_which_nothing_can_be_used_is_a_mistake(catchment: Catchment) -> None:
    said = catchment("sources", "import", "-", stdin=b'["file:///etc/passwd"]')
    assert said.code == 2
    assert "entry 1" in said.err


def test_a_list_is_not_fetched_from_an_address(catchment: Catchment) -> None:
    said = catchment("sources", "import", "https://user:hunter2@example.com/subscriptions.opml")
    assert said.code == 2
    assert "example.com/subscriptions.opml is an address, not a file — download the list first" in said.err
    assert "hunter2" not in said.err


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
    assert [{k: v for k, v in source.items() if k not in apart} for source in after] == [
        {k: v for k, v in source.items() if k not in apart} for source in before
    ]


def test_opml_says_how_many_sources_it_could_not_hold(catchment: Catchment, tmp_path: Path) -> None:
    imported(catchment, ROWS)
    said = catchment("sources", "export", "-", "--format", "opml")
    assert 'xmlUrl="https://b.example/feed?x=1&amp;y=2"' in said.out
    assert said.out.count("https://a.example/feed") == 2


# ── pools of communities ──────────────────────────────────────────────────────────────────────────────────────────

POOL = [
    {"name": "r/webdev", "tier": "high", "categories": ["tech", "web"], "quality_score": 0.91},
    {"name": "SaaS", "tier": "low", "categories": ["business"], "quality_score": 0.5, "is_active": False},
]


def communities(catchment: Catchment) -> dict[str, tuple[object, ...]]:
    listed = catchment("sources", "list", "--json").json
    return {
        source["name"]: (source["priority"], source["categories"], source["quality_score"], source["state"])
        for source in listed
    }


def test_a_pool_is_followed_and_known_communities_take_over_what_it_says(
    catchment: Catchment, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    catchment("sources", "add", "reddit", "r/WebDev", "--category", "mine", "--set", "limit=7")
    catchment("sources", "add", "reddit", "r/linux", "--priority", "high")
    done = imported(catchment, {"communities": POOL})
    assert [done[name] for name in ("code", "added", "changed", "same", "refused")] == [0, 1, 1, 0, 0]
    assert communities(catchment) == {
        "r/WebDev": ("high", ["mine", "tech", "web"], 0.91, "active"),
        "r/linux": ("high", [], None, "active"),
        "r/SaaS": ("low", ["business"], 0.5, "paused"),
    }
    assert catchment("sources", "show", 1, "--json").json["settings"] == {"limit": 7}
    again = imported(catchment, POOL)
    assert [again[name] for name in ("added", "changed", "same")] == [0, 0, 2]


def test_what_a_pool_does_not_say_stays_and_so_does_a_persons_pause(catchment: Catchment) -> None:
    imported(catchment, POOL)
    catchment("sources", "pause", 1)
    catchment("sources", "resume", 2)
    moved = [{"name": "webdev", "quality_score": 0.5}, {"name": "r/saas", "is_active": False}]
    assert imported(catchment, moved)["changed"] == 1
    assert communities(catchment) == {
        "r/webdev": ("high", ["tech", "web"], 0.5, "paused"),
        "r/SaaS": ("low", ["business"], 0.5, "active"),
    }


def test_bad_entries_of_a_pool_are_named_with_the_reason(catchment: Catchment) -> None:
    rows = [*POOL, {"name": "r/css", "tier": "tier1"}, {"name": "two words"}, {"name": "webdev", "quality_score": "?"}]
    done = imported(catchment, rows)
    assert (done["code"], done["added"], done["refused"]) == (8, 2, 3)
    problems = {problem["place"]: (problem["target"], problem["reason"]) for problem in done["problems"]}  # type: ignore[attr-defined]
    assert {place: target for place, (target, _) in problems.items()} == {
        "entry 3": "r/css",
        "entry 4": "r/two words",
        "entry 5": "webdev",
    }
    assert "high, medium, low" in problems["entry 3"][1]


def test_the_shipped_pool_is_followed_exported_as_a_pool_and_imported_again(
    catchment: Catchment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(catchment, ROWS)
    done = catchment("sources", "import", "--communities", "--json").json
    assert (done["added"], done["refused"]) == (200, 0)
    file = tmp_path / "pool.json"
    said = catchment("sources", "export", file, "--format", "communities", "--json").json
    assert (said["sources"], said["left_out"]) == (200, 3)
    before = communities(catchment)
    monkeypatch.setenv("CATCHMENT_HOME", str(tmp_path / "elsewhere"))
    assert catchment("sources", "import", file, "--json").json["added"] == 200
    assert communities(catchment) == {name: told for name, told in before.items() if name.startswith("r/")}


def test_people_are_told_how_many_changed(catchment: Catchment) -> None:
    imported(catchment, POOL)
    said = catchment("sources", "import", "-", stdin=json.dumps([{"name": "webdev", "tier": "low"}]).encode())
    assert said.out == "0 added, 1 already there (1 changed), 0 rejected\n"


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
    assert [source["target"] for source in catchment("sources", "list", "--json").json] == rows
