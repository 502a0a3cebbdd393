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

from catchment.cli import showing
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
    assert showing.when((NOW + distance).isoformat(), NOW) == words


def test_text_of_strangers_cannot_command_the_terminal(catchment: Catchment) -> None:
    rows = [{"target": "https://a.example/", "name": "evil\x1b[2J\x07\u202ename [bold]中文[/bold]"}]
    catchment("sources", "import", "-", stdin=json.dumps(rows).encode())
    shown = catchment("sources", "list").out + catchment("sources", "show", 1).out
    assert not {"\x1b", "\x07", "\u202e"} & {*shown}
    assert "[bold]中文[/bold]" in shown


def test_columns_stay_in_line_with_chinese_names(catchment: Catchment) -> None:
    from rich.cells import cell_len

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
    assert "it was never changed" in catchment("revisions", 1).out
    feed.post("news-1", title="New title", text="It rained. Everybody came. The end.")
    catchment("collect", "--all")
    shown = catchment("revisions", 1).out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"-Old title", "+New title", "-Nobody came.", "+Everybody came."} <= {*lines}
    assert "-It rained." not in lines
    assert "version 1 → 2" in shown
    assert "content_fingerprint_changed" in shown


def test_a_collection_is_summed_up_with_its_failures_and_logs_stay_on_stderr(
    catchment: Catchment, site: FeedSite
) -> None:
    good, bad = site.feed("good", posts=2), site.feed("bad")
    bad.status = 404
    for feed in (good, bad):
        catchment("sources", "add", "rss", feed.url)
    said = catchment("collect")
    assert said.code == 3
    assert "2 sources: 1 succeeded, 1 failed, 0 skipped" in said.out
    assert "MISSING" in said.out
    assert all(json.loads(line)["event"] for line in said.err.splitlines())
    assert "Nothing to collect now." in catchment("collect").out


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


def test_on_a_terminal_there_is_a_bar_and_no_log_in_between(catchment: Catchment, site: FeedSite) -> None:
    bad = site.feed("bad")
    bad.status = 404
    catchment("sources", "add", "rss", bad.url)
    shown = on_a_terminal("collect", "--all")
    assert "collecting" in shown
    assert "source failed" not in shown
    assert "1 source: 0 succeeded, 1 failed" in shown
    assert shown.index("collecting") < shown.index("1 source:")


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
    assert said.index("last reply") < said.index("Weirs") < said.index("Locks")
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
    assert lines[1:] == [
        "it answers, with 2 items:",
        "Ferry is late",
        "– · ada · score 3 · id 7",
        f"{server.url}/n/7",
        "By ten minutes.",
    ]
    assert "left out: not an object (1), as 5" in said.err
