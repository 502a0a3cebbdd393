"""The demo: within moments there is everything to see, it stops when asked, and nothing of it is left."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from rich.console import Console

from catchment.model import Progress, Source, SourceState
from catchment.playground.demo_snapshot import (
    Event,
    Happening,
    Look,
    Scene,
    Sighted,
)
from catchment.playground.demo_view import screen
from catchment.playground.demo_world import ROLES, Stage, start_before
from catchment.web.middleware import SAFE_HEADERS
from tests.cli.conftest import Catchment, Process

REPOSITORY = Path(__file__).parents[2]
Start = Callable[..., Process]
NOW = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)
LINE = re.compile(r"([\d,]+) items?, ([\d,]+) edits?, ([\d,]+) gaps?, (\d+) failing, (\d+) recovered")
LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/login\?token=\S+")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def read_until(process: Process, is_enough: Callable[[str], object]) -> str:
    """The line on stderr that is enough."""
    assert process.process.stderr is not None
    while not is_enough(line := process.process.stderr.readline().decode()):
        assert line, "it ended too early"
    return line


def shows_everything(line: str) -> bool:
    found = LINE.search(line)
    return found is not None and all(int(found[group].replace(",", "")) for group in (1, 2, 3, 5))


# ── as a process ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_shows_items_edits_a_gap_a_failure_and_its_recovery_and_leaves_nothing(start: Start, scratch: Path) -> None:
    demo = start("demo", "--rate", 600, "--port", 0, "--json")
    link = LINK.search(read_until(demo, LINK.search))
    assert link is not None
    read_until(demo, shows_everything)
    with build_opener(HTTPCookieProcessor(CookieJar())).open(link[0]) as answer:
        page, headers = answer.read().decode(), answer.headers
    assert headers["Content-Security-Policy"] == SAFE_HEADERS["Content-Security-Policy"]
    assert all(words in page for words in ("Demo: ", "time runs 600 times as fast", "Open gaps"))
    demo.signal(signal.SIGTERM)
    said = demo.said()
    figures = said.json
    assert (said.code, figures["is_clean"], figures["sources"]) == (0, True, len(ROLES))
    assert all(figures[name] > 0 for name in ("items", "edits", "gaps", "failures", "recoveries", "visits", "faults"))
    assert list(scratch.iterdir()) == []


HELD = """
import os, tempfile, time

made = tempfile.mkdtemp


def held(*arguments, **more):
    folder = made(*arguments, **more)
    while not os.path.exists(os.environ["HELD_UNTIL"]):
        time.sleep(0.01)
    return folder


tempfile.mkdtemp = held
"""
"""Loaded by the interpreter before anything else: the first temporary folder is made, and then nothing goes on until a
file is there. So the signal comes while it is opening, however fast or slow the machine is."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_it_is_still_opening_leaves_nothing_either(
    start: Start, scratch: Path, tmp_path: Path, number: int
) -> None:
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(HELD)
    paths = f"{tmp_path / 'held'}{os.pathsep}{REPOSITORY}"
    demo = start("demo", "--port", 0, PYTHONPATH=paths, HELD_UNTIL=str(tmp_path / "go on"))
    while not any(scratch.iterdir()):
        assert demo.process.poll() is None
        time.sleep(0.01)
    demo.signal(number)
    (tmp_path / "go on").touch()
    assert demo.said().code == 0
    assert list(scratch.iterdir()) == []


def test_it_ends_by_itself_and_keeps_what_it_is_told_to_keep(
    catchment: Catchment, start: Start, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    said = start("demo", "--port", 0, "--seconds", 2, "--keep", kept).said()
    assert said.code == 0
    assert f"CATCHMENT_HOME={kept} catchment items" in said.out
    monkeypatch.setenv("CATCHMENT_HOME", str(kept))
    # Whether two seconds were enough for an item depends on the machine; what it follows is there from the beginning.
    kinds = {source["kind"] for source in catchment("sources", "list", "--json").json}
    assert kinds == {"rss", "reddit", "hackernews", "discourse_forum"}
    assert catchment("demo", "--keep", kept, "--json").failure == (2, "INVALID_INPUT")


def test_it_stays_clear_of_what_is_set_up_and_running_on_the_machine(
    catchment: Catchment, start: Start, scratch: Path, home: Path
) -> None:
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 8700))
            taken.listen()
        except OSError:
            pass  # Somebody else has it: just as well.
        demo = start("demo", "--seconds", 0, "--json", CATCHMENT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
        assert "127.0.0.1:8700" not in read_until(demo, LINK.search)
        assert demo.said().code == 0
        # A port that was asked for by its number is another matter.
        assert catchment("demo", "--port", 8700, "--json").failure == (5, "CONFLICT")
    assert list(scratch.iterdir()) == []
    assert not home.exists()


# ── the stage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def minute(stage: Stage, number: float) -> datetime:
    return stage.start + timedelta(minutes=number)


def test_what_the_failing_source_showed_before_is_out_of_sight_when_it_is_back() -> None:
    stage = Stage(start_before(NOW))
    wire, role = stage.places[0], ROLES[0]
    before = {post.id for post, _ in stage.shown(wire, minute(stage, role.from_minute))}
    after = {post.id for post, _ in stage.shown(wire, minute(stage, role.to_minute))}
    assert len(after) == role.window
    assert before & after == set()


def test_every_script_ends_within_the_first_hour_which_is_a_minute_on_the_wall() -> None:
    ends = [(role.to_minute, role.moves_minute or 0, role.gone_minute or 0) for role in ROLES]
    assert max(max(minutes) for minutes in ends) < 45
    assert sum(1 for role in ROLES if role.fault) == 3
    assert [sum(1 for moment in moments if moment) for moments in zip(*ends, strict=True)] == [3, 1, 1]


def test_the_world_is_the_same_whenever_it_begins() -> None:
    first, other = Stage(start_before(NOW)), Stage(start_before(NOW + timedelta(days=10)))
    assert other.start - first.start in (timedelta(days=7), timedelta(days=14))
    told = [
        [(post.versions, post.shown_from - stage.start) for post in stage.posts(stage.places[5])][:200]
        for stage in (first, other)
    ]
    assert [(len(versions), at) for versions, at in told[0]] == [(len(versions), at) for versions, at in told[1]]
    assert [versions[0].title for versions, _ in told[0]] == [versions[0].title for versions, _ in told[1]]


# ── the view ──────────────────────────────────────────────────────────────────────────────────────────────────────


def sighted(number: int, name: str, health: str) -> Sighted:
    source = Source(number, f"k{number}", "feeds", "rss", f"http://{number}.example/", name, NOW)
    if health == "retired":
        source = source.replace(state=SourceState.RETIRED)
    error = "the server is in trouble" if health == "failing" else None
    return Sighted(source, Progress(last_polled_at=NOW, last_new_at=NOW, failures_in_a_row=3, last_error=error), health)


def a_look() -> Look:
    item: Any = SimpleNamespace(
        id=1, source_id=1, title="渡轮重新开放 \x1b[31m", text="", url=None, version=2, ordered_at=NOW
    )
    return Look(
        at=NOW,
        item_count=1234,
        newest=(item,) * 40,
        sources=(sighted(1, "Gazette", "ok"), sighted(2, "Wire", "failing"), sighted(3, "Boats", "retired")),
        alerts=({},),
        counts={Happening.EDITED: 40, Happening.FAILED: 1},
        events=(
            *(Event(NOW, Happening.EDITED, "Gazette", f"edit {number}") for number in range(40)),
            Event(NOW, Happening.FAILED, "Wire", "fails: the server is in trouble"),
        ),
    )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60)])
def test_the_view_fills_any_terminal_and_shows_what_is_rare_among_what_is_frequent(width: int, height: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    link = f"http://127.0.0.1:8700/login?token={'x' * 32}"
    scene = Scene(60, ("listening", f"open in a browser: {link}"))
    console.print(screen(a_look(), scene, width, height))
    file = console.file
    assert isinstance(file, io.StringIO)
    shown = file.getvalue()
    assert len(shown.splitlines()) == height
    for words in ("1,234", "Tue 24 Nov 12:30", link, "渡轮重新开放", "failed 3 times", "fails: the server", "Ctrl-C"):
        assert words in shown, words
    assert "\x1b[31m" not in shown
