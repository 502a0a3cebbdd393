"""`sources set`, intervals of kinds, and sources given by name or target."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def test_a_source_is_changed_without_removing_it(catchment: Catchment) -> None:
    catchment("sources", "add", "github_trending", "C++", "--set", "since=weekly", "--category", "code")
    said = catchment(
        *("sources", "set", 1, "--interval", "45", "--set", "since=monthly", "--priority", "high"),
        *("--category", "trends", "--json"),
    )
    assert said.code == 0
    shown = said.json
    assert (shown["interval_minutes"], shown["priority"], shown["categories"]) == (45, "high", ["trends"])
    assert (shown["settings"], shown["name"]) == ({"since": "monthly"}, "GitHub Trending: c++, monthly")
    said = catchment("sources", "set", "GitHub Trending: c++, monthly", "--name", "Mine", "--interval", "kind")
    assert said.out == "Changed source 1 (Mine): name Mine, interval 240 min\n"
    shown = catchment("sources", "set", "Mine", "--set", "since=", "--category", "", "--json").json
    assert (shown["settings"], shown["categories"], shown["interval_minutes"]) == ({}, [], None)


def test_a_change_that_cannot_be_is_refused_with_what_would_help(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    for arguments, words in (
        ((), "nothing to change"),
        (("--interval", "often"), "'often' is not a number of minutes — enter a whole number, such as 60, or kind"),
        (("--interval", "0"), "1 to 525600"),
        (("--set", "sort=new"), "rss has no setting 'sort'"),
        (("--name", " "), "a source needs a name"),
    ):
        said = catchment("sources", "set", 1, *arguments)
        assert (said.code, words in said.err) == (2, True), said.err
    assert catchment("sources", "set", "nothing.example", "--name", "x", "--json").failure == (4, "NOT_FOUND")


def test_the_interval_of_a_kind_is_set_in_the_database_and_taken_away_again(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    shown = catchment("settings", "intervals", "rss", "30", "--json").json
    assert (shown["interval_minutes"], shown["origin"], shown["default_minutes"]) == (30, "database", 240)
    assert catchment("sources", "show", 1, "--json").json["fetch_interval_minutes"] == 30
    assert "database" in catchment("settings", "intervals").out
    shown = catchment("settings", "intervals", "rss", "default", "--json").json
    assert (shown["interval_minutes"], shown["origin"]) == (240, "default")
    kinds = {
        setting["kind"]: setting["interval_minutes"] for setting in catchment("settings", "intervals", "--json").json
    }
    assert (kinds["rss"], kinds["hackernews"]) == (240, 60)
    assert catchment("settings", "intervals", "rsss", "30", "--json").failure == (2, "INVALID_INPUT")
    assert catchment("settings", "intervals", "rss", "0", "--json").failure == (2, "INVALID_INPUT")
    for minutes in ("soon", "9" * 5000):
        assert catchment("settings", "intervals", "rss", minutes, "--json").failure == (2, "INVALID_INPUT")


def test_a_source_is_collected_by_its_name_or_target_and_the_result_says_how_it_went(
    catchment: Catchment, site: FeedSite
) -> None:
    news, other = site.feed("news", posts=1), site.feed("other", posts=1)
    catchment("sources", "add", "rss", news.url, "--name", "Daily news")
    catchment("sources", "add", "rss", other.url, "--name", "Other news")
    (result,) = catchment("collect", "--source", "daily NEWS", "--json").json["results"]
    assert (result["source_id"], result["new"], result["watermark_updated"]) == (1, 1, True)
    assert 0 < result["duration_seconds"] < 600
    (result,) = catchment("collect", "--source", news.url, "--json").json["results"]
    assert (result["source_id"], result["new"], result["watermark_updated"]) == (1, 0, False)
    said = catchment("collect", "--source", "news", "--json")
    assert said.failure == (2, "INVALID_INPUT")
    for words in ("1 (Daily news)", "2 (Other news)", "use the number of one"):
        assert words in said.err
    assert catchment("collect", "--source", "weather", "--json").failure == (4, "NOT_FOUND")
    assert catchment("collect", "--source", 7, "--json").failure == (4, "NOT_FOUND")
    assert other.requests == 0


def test_a_kind_without_a_platform_is_added_listed_skipped_exported_and_imported(
    catchment: Catchment, tmp_path: Path
) -> None:
    said = catchment("sources", "add", "xhs_keyword", "@nasa", "--set", "limit=50", "--json")
    assert (said.code, said.json["platform"], said.json["has_platform"]) == (0, "xiaohongshu", False)
    said = catchment("sources", "add", "xhs_note", "64b95d01000000000c034587")
    assert (
        said.out.splitlines()[-1]
        == "no platform is installed for kind 'xhs_note': it is skipped until one is installed"
    )
    assert "no platform" in catchment("sources", "list").out
    collected = catchment("collect", "--json")
    assert (collected.code, collected.json["skipped"], collected.json["failed"]) == (0, 2, 0)
    assert {note for result in collected.json["results"] for note in result["notes"]} == {
        "no platform is installed for kind 'xhs_keyword'",
        "no platform is installed for kind 'xhs_note'",
    }
    assert "@nasa: no platform is installed for kind 'xhs_keyword'" in catchment("collect", "--all").out
    assert catchment("status", "--json").code == 0
    catchment("sources", "export", tmp_path / "list.json")
    catchment("sources", "remove", 1)
    again = catchment("sources", "import", tmp_path / "list.json", "--json").json
    assert (again["added"], again["known"], again["refused"]) == (1, 1, 0)
    assert catchment("sources", "add", "xhs_keywords", "@nasa", "--json").failure == (2, "INVALID_INPUT")
    said = catchment("sources", "add", "xhs_keyword", "@esa", "--check")
    assert (said.code, "no platform is installed" in said.err) == (2, True)
