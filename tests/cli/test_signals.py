"""Signals, in real processes: what is under way may finish, a second signal cuts, and the exit code tells."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Catchment, Process
from tests.feedsite import FeedSite

Start = Callable[..., Process]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_what_is_under_way_finishes_and_nothing_new_begins(
    catchment: Catchment, start: Start, site: FeedSite, number: int
) -> None:
    first, other = site.feed("one", posts=2), site.feed("other", posts=2)
    catchment("sources", "add", "rss", first.url)
    catchment("sources", "add", "rss", other.url)
    first.hold()
    collecting = start("collect", "--json", COLLECTOR_CONCURRENCY="1")
    assert site.server.arrived.wait(600)
    collecting.signal(number)
    collecting.wait_for_words("stopping")
    first.release()
    said = collecting.said()
    assert (said.code, said.json["succeeded"], said.json["new"]) == (0, 1, 2)
    assert other.requests == 0
    assert catchment("status", "--json").json["collector"]["is_running"] is False


def test_a_second_signal_cuts_at_once_and_the_source_is_due_as_before(
    catchment: Catchment, start: Start, site: FeedSite
) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.hold()
    collecting = start("collect", "--json")
    assert site.server.arrived.wait(600)
    collecting.signal(signal.SIGTERM)
    collecting.signal(signal.SIGINT)
    said = collecting.said()
    assert (said.code, said.json["skipped"], said.json["failed"]) == (1, 1, 0)
    assert said.json["results"][0]["error"]["code"] == "STOPPED"
    feed.release()
    assert catchment("collect", "--due", "--json").json["new"] == 1


def test_when_patience_ends_what_is_under_way_is_cut(catchment: Catchment, start: Start, site: FeedSite) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.hold()
    collecting = start("collect", "--json", CATCHMENT_STOP_SECONDS="0.2")
    assert site.server.arrived.wait(600)
    collecting.signal(signal.SIGTERM)
    assert collecting.said().code == 1


def test_the_loop_collects_what_is_due_until_it_is_stopped(catchment: Catchment, start: Start, site: FeedSite) -> None:
    feed = site.feed("news", posts=2)
    catchment("sources", "add", "rss", feed.url)
    looping = start("collect", "--loop", "--json")
    assert site.server.arrived.wait(600)
    looping.signal(signal.SIGTERM)
    said = looping.said()
    assert (said.code, said.json) == (0, {"is_clean": True})
    assert len(catchment("items", "--json").lines) == 2


def test_a_loop_whose_transfer_a_stop_cuts_off_says_so_by_its_exit_code(
    catchment: Catchment, start: Start, site: FeedSite
) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.hold()
    looping = start("collect", "--loop", "--json", CATCHMENT_STOP_SECONDS="0.2")
    assert site.server.arrived.wait(600)
    looping.signal(signal.SIGTERM)
    said = looping.said()
    assert (said.code, said.json) == (1, {"is_clean": False})
    assert catchment("items", "--json").lines == []


def test_a_source_that_another_process_is_collecting_is_skipped_and_says_who(
    catchment: Catchment, start: Start, site: FeedSite
) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.hold()
    collecting = start("collect", "--json")
    assert site.server.arrived.wait(600)
    said = catchment("collect", "--source", 1, "--json")
    assert (said.code, said.json["skipped"]) == (0, 1)
    assert f"process {collecting.process.pid}" in said.json["results"][0]["error"]["message"]
    running = catchment("status", "--json").json["collector"]
    assert [(process["work"], process["pid"]) for process in running["processes"]] == [
        ("collect", collecting.process.pid)
    ]
    feed.release()
    assert collecting.said().code == 0


def test_a_killed_collector_leaves_its_source_free_for_the_next_one(
    catchment: Catchment, start: Start, site: FeedSite
) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.hold()
    collecting = start("collect")
    assert site.server.arrived.wait(600)
    collecting.process.kill()
    collecting.said()
    feed.release()
    said = catchment("collect", "--json")
    assert (said.code, said.json["succeeded"], said.json["new"]) == (0, 1, 1)


def test_a_reader_that_goes_away_is_no_failure_worth_words(catchment: Catchment, start: Start, site: FeedSite) -> None:
    feed = site.feed("long", posts=1)
    feed.post("long-2", text="word " * 50_000)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    reading = start("items", "--json")
    assert reading.process.stdout is not None
    reading.process.stdout.close()
    reading.process.wait(600)
    assert reading.process.stderr is not None
    assert reading.process.stderr.read() == b""
    reading.process.stdout = None


@pytest.mark.process
def test_a_signal_that_the_system_gives_to_another_thread_stops_a_sleeping_process() -> None:
    script = """
import signal
from threading import Event, Thread, get_ident
from catchment.cli.context import StopSignals

with StopSignals() as stopping:
    stop = Event()
    stopping.watch(stop, Event(), 60, print)
    Thread(target=lambda: signal.pthread_kill(get_ident(), signal.SIGTERM)).start()
    stop.wait()
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
    assert said.stdout.startswith("stopping")
