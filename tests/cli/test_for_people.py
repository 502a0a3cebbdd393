"""What people see: tables, times, differences; harmless on any terminal, plain in pipes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from catchment.app import open_app
from catchment.cli import output
from catchment.jobs import JOBS
from catchment.settings import Settings
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite
from tests.hostile import Hostile, reply

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(seconds=0.4), "now"),
        (timedelta(seconds=-30), "30 s ago"),
        (timedelta(seconds=89), "in 89 s"),
        (timedelta(minutes=-5), "5 min ago"),
        (timedelta(hours=3, minutes=5), "in 3 h"),
        (timedelta(hours=-47), "47 h ago"),
        (timedelta(days=-2), "2026-04-29 12:00"),
        (timedelta(days=400), "2027-06-05 12:00"),
    ],
)
def test_a_time_is_told_by_its_distance_while_that_says_more(distance: timedelta, words: str) -> None:
    assert output.when((NOW + distance).isoformat(), NOW) == words


def test_text_of_strangers_cannot_command_the_terminal(catchment: Catchment) -> None:
    rows = [{"target": "https://a.example/", "name": "evil\x1b[2J\x07\u202ename [bold]中文[/bold]"}]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    shown = catchment("sources", "list").out + catchment("sources", "show", 1).out
    assert not {"\x1b", "\x07", "\u202e"} & {*shown}
    assert "[bold]中文[/bold]" in shown


def test_columns_stay_in_line_with_chinese_names(catchment: Catchment) -> None:
    rows = [{"target": "https://a.example/", "name": "中文名字"}, {"target": "https://b.example/", "name": "Latin"}]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    lines = [line for line in catchment("sources", "list").out.splitlines() if "waiting" in line]
    assert len({cell_len(line.partition("waiting")[0]) for line in lines}) == 1


def test_the_past_of_an_item_is_shown_as_a_difference_with_time_and_reason(
    catchment: Catchment, site: FeedSite
) -> None:
    feed = site.feed("news", posts=1)
    feed.post("news-1", title="Old title", text="It rained. Nobody came. The end.")
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    assert "It has not changed since it was first seen" in catchment("revisions", 1).out
    feed.post("news-1", title="New title", text="It rained. Everybody came. The end.")
    catchment("collect", "--all")
    shown = catchment("revisions", 1).out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"-Old title", "+New title", "-Nobody came.", "+Everybody came."} <= {*lines}
    assert "-It rained." not in lines
    assert "Version 1 → 2" in shown
    assert "content changed" in shown
    assert "content_fingerprint_changed" not in shown


def test_status_has_its_headings_over_the_right_columns_and_tells_which_jobs_are_off(
    catchment: Catchment, site: FeedSite, home: Path
) -> None:
    bad = site.feed("bad")
    bad.status = 404
    rows = [{"kind": "rss", "target": bad.url, "name": "Bad news"}]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    catchment("collect")
    with open_app(Settings(home=home, database_url=f"sqlite:///{home / 'catchment.db'}"), "test") as app:
        # As a collector does when it starts.
        for job in JOBS:
            app.store.jobs.announce(job.name, app.clock.now())
    shown = catchment("status").out
    lines = [line.split(maxsplit=2) for line in shown.splitlines()]
    heading = next(place for place, line in enumerate(lines) if line[:2] == ["ID", "Failing"])
    assert shown.splitlines()[heading].split() == ["ID", "Failing", "source", "Failures", "Reason"]
    row = shown.splitlines()[heading + 1]
    assert row.split()[:4] == ["1", "Bad", "news", "1"]
    assert "Bad news (source 1)" not in row
    jobs = {
        line.split()[0]: line.split()
        for line in shown.splitlines()
        if line.split()[:1] in (["warm-up"], ["collect-due"])
    }
    assert jobs["warm-up"][1:4] == ["off", "–", "0"]
    assert "off" not in jobs["collect-due"]
    told = {job["name"]: job for job in catchment("status", "--json").json["jobs"]}
    assert (told["warm-up"]["period_seconds"], told["warm-up"]["next_run_at"]) == (None, None)


def test_status_tells_a_missing_network_once(catchment: Catchment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Behind a proxy that takes no connection nothing can be reached, and no packet leaves this machine. Hosts of our
    # own network would say nothing about the connection.
    monkeypatch.setenv("CATCHMENT_PROXY", "http://127.0.0.1:1")
    rows = [{"kind": "rss", "target": f"http://93.184.215.{number}/feed"} for number in (1, 2, 3)]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    collected = catchment("collect").out
    assert "none of 3 hosts could be reached: this machine seems to be offline; 3 sources wait" in collected
    assert "93.184.215." not in collected
    status = catchment("status")
    assert "none of 3 hosts could be reached: this machine seems to be offline; 3 sources wait" in " ".join(
        status.out.split()
    )
    assert "Failing source" not in status.out
    (outage,) = catchment("status", "--json").json["outages"]
    assert (outage["level"], outage["source_count"], outage["error_code"]) == ("network", 3, "NETWORK_ERROR")


def test_a_collection_is_summed_up_with_its_failures_and_logs_stay_on_stderr(
    catchment: Catchment, site: FeedSite
) -> None:
    good, bad = site.feed("good", posts=2), site.feed("bad")
    bad.status = 404
    for feed in (good, bad):
        catchment("sources", "add", "rss", feed.url)
    said = catchment("collect")
    assert said.code == 3
    assert "2 sources: 1 succeeded, 1 failed, 0 deferred, 0 skipped" in said.out
    assert "MISSING" in said.out
    assert all(json.loads(line)["event"] for line in said.err.splitlines())
    assert "No source is due; the next one is due in" in catchment("collect").out


def on_a_terminal(*arguments: str, **environ: str) -> str:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "catchment", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm", "COLUMNS": "150", **environ},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            # The way in which Linux says that nobody is left on the other side.
            break
        if not piece:
            break
        written += piece
    process.wait()
    os.close(leader)
    return written.decode()


@pytest.mark.process
def test_on_a_terminal_there_is_a_bar_and_no_log_in_between(catchment: Catchment, site: FeedSite) -> None:
    bad = site.feed("bad")
    bad.status = 404
    catchment("sources", "add", "rss", bad.url)
    shown = on_a_terminal("collect", "--all")
    assert "Collecting" in shown
    assert "source failed" not in shown
    assert "1 source: 0 succeeded, 1 failed" in shown
    assert shown.index("Collecting") < shown.index("1 source:")


@pytest.mark.process
def test_colours_are_for_terminals_that_want_them(catchment: Catchment) -> None:
    coloured = "\x1b[1m"
    catchment("sources", "add", "rss", "https://a.example/")
    assert coloured in on_a_terminal("sources", "show", "1")
    assert "\x1b[3" not in on_a_terminal("sources", "show", "1", NO_COLOR="1")
    assert "\x1b" not in catchment("sources", "show", "1").out


def test_what_was_answered_last_is_listed_first_where_that_is_asked(catchment: Catchment) -> None:
    replied = {"Locks": "2026-01-03T00:00:00Z", "Weirs": "2026-01-05T00:00:00Z", "Silence": None}
    posts = [{"id": key, "title": key, "last_reply_at": at} for key, at in replied.items()]
    with Hostile() as server:
        url = server.on("/posts", reply(json.dumps(posts).encode(), content_type="application/json"))
        catchment("sources", "add", "custom_api", url)
        catchment("collect", "--all")
    said = catchment("items", "--order", "replied").out
    assert said.index("Last reply") < said.index("Weirs") < said.index("Locks")
    assert "Silence" not in said
    first, second = catchment("items", "--order", "replied", "--json").lines
    assert (first["title"], second["title"]) == ("Weirs", "Locks")
    (after,) = catchment("items", "--order", "replied", "--before", first["key"], "--json").lines
    assert after == second
    assert "2026-01-05" in catchment("show", str(first["id"])).out


def test_a_dry_run_shows_people_what_would_be_stored(catchment: Catchment) -> None:
    posts = [
        {"id": 7, "title": "Ferry is late", "text": "By ten minutes.", "author": "ada", "likes": 3, "url": "/n/7"},
        5,
    ]
    with Hostile() as server:
        url = server.on("/posts", reply(json.dumps({"x": {"y": posts}}).encode(), content_type="application/json"))
        said = catchment("sources", "add", "custom_api", url, "--set", "items=[x.y][0]", "--check")
    assert said.code == 0
    lines = [line.strip() for line in said.out.splitlines()]
    assert lines[:-1] == [
        "It answers with 2 items:",
        "Ferry is late",
        "– · ada · score 3 · id 7",
        f"{server.url}/n/7",
        "By ten minutes.",
    ]
    assert "skipped: not an object (1), for example 5" in said.err


def test_sources_are_listed_one_a_line_on_a_terminal_of_80_columns(
    catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    bad = site.feed("bad")
    bad.status = 404
    rows = [
        {"target": bad.url, "name": "A name that is much longer than what fits on a line, and goes on and on"},
        {"target": "https://b.example/", "name": "很长的来源名称" * 8, "state": "paused"},
        {"kind": "github_trending", "target": "all", "name": "Trending"},
    ]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    catchment("collect", "--source", 1)
    header, *lines, count = catchment("sources", "list").out.splitlines()
    assert header.split() == ["ID", "Name", "Kind", "State", "Last", "Next", "Error"]
    assert count == "3 sources"
    assert len(lines) == 3
    assert all(cell_len(line) <= 80 for line in lines)
    assert lines[0].split()[-1] == "MISSING"
    # The sentence stands where one source is shown.
    assert "there is nothing at this address (HTTP 404 Not Found)" in " ".join(
        catchment("sources", "show", 1).out.split()
    )


def test_items_visits_and_webhooks_are_listed_one_a_line_on_a_terminal_of_80_columns(
    catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    blog = site.feed("blog")
    blog.post("1", title="A title that is much longer than what fits on one line of a terminal, and goes on and on")
    blog.post("2", title="Short")
    catchment("sources", "add", "rss", blog.url)
    catchment("sources", "add", "xhs_keyword", "@nasa")
    catchment("collect", "--all")
    catchment("webhooks", "add", "hook", "https://hooks.example/a/rather/long/address")
    header, *lines = catchment("items").out.splitlines()
    assert header.split() == ["ID", "Posted", "Source", "Title", "Version"]
    assert len(lines) == 2
    webhooks = catchment("webhooks", "list").out.splitlines()
    assert len(webhooks) == 2
    visits = catchment("sources", "show", 2).out.split("Collected ")[1].splitlines()
    assert visits[2:] == ["", "No open gaps."]
    assert all(cell_len(line) <= 80 for line in (*lines, *webhooks, *visits))


def test_a_source_is_shown_in_groups_without_what_is_empty(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=1).url, "--name", "News", "--category", "Daily")
    catchment("collect")
    shown = catchment("sources", "show", 1).out
    assert [line for line in shown.splitlines() if line and not line.startswith(" ")][:3] == [
        "Source 1: News",
        "State",
        "Figures",
    ]
    assert "Daily" in shown
    for empty in ("Credential", "Settings", "Quality score", "Tier", "–"):
        assert empty not in shown.partition("Collected ")[0]


def test_lists_of_items_name_their_source(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=1).url, "--name", "River news")
    catchment("collect")
    for arguments in (("items",), ("show", 1), ("search", "news-1"), ("items", "--source", "river")):
        assert "River news" in catchment(*arguments).out


def test_a_text_is_wrapped_at_words(catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = site.feed("news", posts=0)
    feed.post("long", text="wonderful " * 40)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    monkeypatch.setenv("COLUMNS", "47")
    words = catchment("show", 1).out.partition("\n\n")[2].split()
    assert words == ["wonderful"] * 40


@pytest.mark.parametrize(
    ("arguments", "helps"),
    [
        (("sources", "list"), "`catchment sources import --starter`"),
        (("items",), "`catchment sources import --starter`"),
        (("changes",), "`catchment sources import --starter`"),
        (("search", "word"), "try fewer words"),
        (("watches", "list"), "`catchment watches add NAME WORDS`"),
        (("webhooks", "list"), "`catchment webhooks add NAME URL`"),
        (("credentials", "list"), "`catchment credentials add PLATFORM NAME`"),
        (("collect",), "`catchment sources import --starter`"),
    ],
)
def test_an_empty_list_says_what_to_do_next(catchment: Catchment, arguments: tuple[str, ...], helps: str) -> None:
    catchment("migrate")
    told = catchment(*arguments)
    assert (told.code, told.out) == (0, "")
    assert helps in told.err


def test_collecting_when_nothing_is_due_says_when_and_how_not_to_wait(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=1).url, "--interval", 120)
    catchment("collect")
    assert catchment("collect").out == (
        "No source is due; the next one is due in 2 h. Run `catchment collect --all` to collect all sources now.\n"
    )


def test_items_and_sources_are_listed_by_category(catchment: Catchment, site: FeedSite) -> None:
    for name in ("news", "science"):
        catchment("sources", "add", "rss", site.feed(name, posts=1).url, "--name", name, "--category", name.title())
    catchment("collect")
    assert [item["source_id"] for item in catchment("items", "--category", "science", "--json").lines] == [2]
    assert [source["id"] for source in catchment("sources", "list", "--category", "NEWS", "--json").json] == [1]
    assert [item["source_id"] for item in catchment("search", "news-1", "--category", "news", "--json").lines] == [1]
    told = catchment("items", "--category", "scienc", "--json")
    assert (told.failure, "did you mean Science?" in told.err) == ((2, "INVALID_INPUT"), True)


def test_a_name_that_may_mean_several_sources_is_asked_about(catchment: Catchment) -> None:
    for name in ("north", "south"):
        catchment("sources", "add", "rss", f"https://{name}.example/feed", "--name", f"News of the {name}")
    told = catchment("items", "--source", "news", "--json")
    assert told.failure == (2, "INVALID_INPUT")
    assert "1 (News of the north), 2 (News of the south)" in told.err
    assert catchment("items", "--source", "nowhere", "--json").failure == (4, "NOT_FOUND")
    assert catchment("items", "--source", "south", "--json").code == 0
