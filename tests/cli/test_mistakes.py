"""What is given wrongly: the exit code says the sort, one line says what, --json says it to programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.cli import context
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        (("sources", "show", "7"), (4, "NOT_FOUND")),
        (("sources", "pause", "7"), (4, "NOT_FOUND")),
        (("sources", "remove", "7"), (4, "NOT_FOUND")),
        (("collect", "--source", "7"), (4, "NOT_FOUND")),
        (("items", "--source", "7"), (4, "NOT_FOUND")),
        (("gaps", "--source", "7"), (4, "NOT_FOUND")),
        (("revisions", "7"), (4, "NOT_FOUND")),
        (("credentials", "remove", "nobody"), (4, "NOT_FOUND")),
        (("sources", "add", "rss", "https://a.example/", "--credential", "nobody"), (4, "NOT_FOUND")),
        (("sources", "show", "x"), (2, "INVALID_INPUT")),
        (("sources", "show", "0"), (2, "INVALID_INPUT")),
        (("sources", "show", str(2**64)), (2, "INVALID_INPUT")),
        (("items", "--limit", "0"), (2, "INVALID_INPUT")),
        (("items", "--before", "yesterday"), (2, "INVALID_INPUT")),
        (("sources", "list", "--state", "asleep"), (2, "INVALID_INPUT")),
        (("sources", "add", "nosuchkind", "x"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "not an address"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "file:///etc/passwd"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "https://a.example/", "--interval", "0"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "https://a.example/", "--priority", "urgent"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "https://a.example/", "--set", "depth"), (2, "INVALID_INPUT")),
        (("sources", "add", "rss", "https://a.example/", "--set", "depth=3"), (2, "INVALID_INPUT")),
        (("sources", "add", "website", "https://a.example/", "--set", "links=a["), (2, "INVALID_INPUT")),
        (("sources", "add", "custom_api", "https://a.example/", "--set", "items=a["), (2, "INVALID_INPUT")),
        (("collect", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("collect", "--kind", "entry"), (2, "INVALID_INPUT")),
        (("items", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("items", "--platform", "nosuchplatform"), (2, "INVALID_INPUT")),
        (("search", "word", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("search", "word", "--platform", "nosuchplatform"), (2, "INVALID_INPUT")),
        (("export", "--kind", "nosuchkind", "--output", "x.jsonl"), (2, "INVALID_INPUT")),
        (("metrics", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("sources", "list", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("reparse", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("plan", "--platform", "nosuchplatform"), (2, "INVALID_INPUT")),
        (("watches", "add", "chips", "word", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("watches", "try", "word", "--kind", "nosuchkind"), (2, "INVALID_INPUT")),
        (("collect", "--all", "--due"), (2, "INVALID_INPUT")),
        (("export", "--format", "xlsx", "--output", "x"), (2, "INVALID_INPUT")),
        (("export", "--output", "/proc/no/such/folder/x"), (2, "INVALID_INPUT")),
        (("sources", "export", "list"), (2, "INVALID_INPUT")),
        (("sources", "import", "no-such-file"), (2, "INVALID_INPUT")),
        (("credentials", "add", "nosuchplatform", "x"), (2, "INVALID_INPUT")),
        (("credentials", "add", "feeds", "x"), (2, "INVALID_INPUT")),
        (("forget", "author", "rss", "somebody", "--yes"), (2, "INVALID_INPUT")),
        (("watches", "try", "word", "--source", "7"), (4, "NOT_FOUND")),
        (("watches", "try", "word", "--source", str(2**64)), (2, "INVALID_INPUT")),
        (("items", "--changed-since", "-1"), (2, "INVALID_INPUT")),
        (("items", "--changed-since", str(2**64)), (2, "INVALID_INPUT")),
        (("restore", "no-such-file"), (2, "INVALID_INPUT")),
        (("nosuchcommand",), (2, "INVALID_INPUT")),
        (("items", "--nosuchoption"), (2, "INVALID_INPUT")),
    ],
)
def test_a_mistake_has_its_exit_code_and_its_error_code(
    catchment: Catchment, arguments: tuple[str, ...], failure: tuple[int, str]
) -> None:
    catchment("migrate")
    said = catchment(*arguments, "--json")
    assert said.failure == failure
    assert said.json["error"].keys() == {"code", "message", "retryable"}
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err


def test_a_mistake_is_one_line_on_stderr_and_nothing_on_stdout(catchment: Catchment) -> None:
    catchment("migrate")
    said = catchment("sources", "show", 7)
    assert (said.code, said.out) == (4, "")
    assert said.err == "error: there is no source 7 — `catchment sources list` shows all sources\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("itms",), "unknown command itms — did you mean items? `catchment --help` shows the usage"),
        (("items", "--limti", "3"), "unknown option --limti — did you mean --limit? `catchment items --help` …"),
        (("items", "--limit"), "--limit needs a value — `catchment --help` …"),
        (("items", "--json=1"), "--json takes no value — `catchment --help` …"),
        (("items", "--limit", "x"), "--limit must be a whole number — `catchment items --help` …"),
        (("items", "--order", "new"), "--order must be one of posted, replied — `catchment items --help` …"),
        (("items", "a", "b"), "unexpected argument: a b — `catchment items --help` …"),
        (("sources", "show"), "ID is missing — `catchment sources show --help` …"),
        (("sources", "show", "x"), "ID must be a whole number — `catchment sources show --help` …"),
        (("serve", "--port", "99999"), "--port must be a whole number from 0 to 65535 — `catchment serve --help` …"),
    ],
)
def test_a_command_line_that_is_wrong_is_told_in_our_own_words(
    catchment: Catchment, arguments: tuple[str, ...], said: str
) -> None:
    told = catchment(*arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err == f"error: {said.replace('…', 'shows the usage')}\n"


def test_a_group_without_a_command_shows_its_help(catchment: Catchment) -> None:
    told = catchment("sources")
    assert (told.code, told.err.startswith("Usage: catchment sources")) == (2, True)


def test_a_list_that_cannot_be_read_says_where_and_not_in_a_parser_s_words(catchment: Catchment) -> None:
    told = catchment("sources", "import", "-", stdin=b'[{"target": ]')
    assert (told.code, "the list is not valid JSON (from byte 12 on)" in told.err) == (2, True)


def test_items_are_asked_for_since_a_time_counted_back_from_now(catchment: Catchment) -> None:
    catchment("migrate")
    catchment("migrate")
    assert catchment("items", "--since", "yesterday", "--until", "2d", "--json").code == 0
    told = catchment("items", "--since", "never")
    assert told.err.startswith("error: --since: 'never' is not a time; use one like 2026-03-01")


def test_what_is_followed_already_is_a_conflict_that_names_the_source(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    said = catchment("sources", "add", "rss", "A.example/feed", "--json")
    assert said.failure == (5, "CONFLICT")
    assert "source 1" in said.err


def test_a_setting_that_cannot_be_used_is_refused_by_every_command(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_PORT", "many")
    assert catchment("items", "--json").failure == (2, "BAD_SETTING")
    assert catchment("collect", "--json").failure == (2, "BAD_SETTING")


def test_a_database_that_is_away_is_said_with_what_helps(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", f"postgresql://me:sesame-open@127.0.0.1:{free_port}/catchment")
    said = catchment("items", "--json")
    assert said.failure == (6, "STORE_ERROR")
    assert said.json["error"]["retryable"] is True
    assert "CATCHMENT_DATABASE_URL" in said.err
    assert "sesame-open" not in said.out + said.err


def test_a_mistake_of_ours_shows_no_inside_unless_the_log_is_asked(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise TypeError("deep inside")

    monkeypatch.setattr(context, "settings", broken)
    said = catchment("items", "--json")
    assert said.failure == (1, "INTERNAL")
    assert "internal error (TypeError)" in said.err
    assert "deep inside" not in said.err
    monkeypatch.setenv("CATCHMENT_LOG_LEVEL", "debug")
    assert "deep inside" in catchment("items", "--json").err


def test_a_source_that_points_to_this_machine_is_not_asked_unless_allowed(
    catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CATCHMENT_ALLOW_PRIVATE_NETWORKS")
    feed = site.feed("inner", posts=1)
    catchment("sources", "add", "rss", feed.url)
    said = catchment("collect", "--json")
    assert (said.code, said.json["results"][0]["error"]["code"]) == (3, "ADDRESS_REFUSED")
    assert feed.requests == 0


def test_a_file_that_cannot_be_written_leaves_nothing_behind(catchment: Catchment, tmp_path: Path) -> None:
    catchment("migrate")
    (tmp_path / "taken").mkdir()
    assert catchment("export", "--output", tmp_path / "taken", "--json").code == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
