"""Trying again: what, how often, after how long; and stopping."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest

from catchment.errors import (
    NetworkError,
    PlatformError,
    ServerTrouble,
    SlowDown,
    Stopped,
    TimedOut,
)
from catchment.fetch.client import Fetch
from catchment.fetch.settings import FetchSettings
from catchment.model import Request
from tests.clocks import HandClock
from tests.fetch.memory_budgets import MemoryBudgets
from tests.fetch.surroundings import NOBODY, SomePlatform
from tests.hostile import cut, cut_chunked, drip, raw, reply, reset, silent, status


@pytest.mark.parametrize("trouble", [status(500), status(502), status(408), reset(), cut()])
def test_what_may_pass_is_tried_again_and_every_attempt_is_counted(door, server, trouble):
    url = server.on("/", trouble, trouble, reply(b"at last"))
    assert door.ask(url).body == b"at last"
    assert (len(server.seen), len(door.attempts), door.clock.waits) == (3, 3, [1.0, 2.0])
    assert {attempt.platform for attempt in door.attempts} == {"somewhere"}


@pytest.mark.parametrize(
    ("trouble", "error", "limit"),
    [(status(503), ServerTrouble, 60), (reset(), NetworkError, 60), (silent(), TimedOut, 0.05)],
)
def test_it_ends_after_the_last_wait(new_door, server, trouble, error, limit):
    door = new_door(timeout_seconds=limit)
    with pytest.raises(error):
        door.ask(server.on("/", trouble))
    assert (len(door.attempts), door.clock.waits) == (4, [1.0, 2.0, 4.0])
    assert door.attempts[1].at - door.attempts[0].at == timedelta(seconds=1)


def test_what_dies_with_a_connection_that_was_used_before_is_sent_again_by_nobody_but_us(door, server):
    url = server.on("/", reply(b"first"), reset(), reply(b"at last"))
    assert door.ask(url).body == b"first"
    assert door.ask(url).body == b"at last"
    assert (len(server.seen), len(door.attempts), door.clock.waits) == (3, 3, [1.0])


def test_nobody_listening_is_a_network_error(new_door, server):
    door = new_door(retry_waits=())
    with pytest.raises(NetworkError, match="refuses connections"):
        door.ask("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    "trouble",
    [
        reset(),
        raw(b""),
        cut(),
        cut_chunked(),
        drip(),
        silent(),
        reply(gzip.compress(b"hello")[:-3], content_encoding="gzip"),
    ],
)
def test_an_other_end_that_was_reached_is_not_our_own_line(new_door, server, trouble):
    # Long enough to get a connection on the busiest machine; two of these troubles take all of it.
    door = new_door(retry_waits=(), timeout_seconds=2)
    with pytest.raises(PlatformError) as caught:
        door.ask(server.on("/", trouble))
    assert caught.value.is_contact


def test_a_refused_connection_was_refused_by_somebody(new_door, free_port):
    with pytest.raises(NetworkError) as caught:
        new_door(retry_waits=()).ask(f"http://127.0.0.1:{free_port}/")
    assert caught.value.is_contact


def test_a_proxy_that_is_not_there_says_nothing_about_the_other_end(new_door, free_port):
    door = new_door(retry_waits=(), proxy=f"http://127.0.0.1:{free_port}")
    with pytest.raises(NetworkError) as caught:
        door.ask("http://93.184.216.34/")
    assert not caught.value.is_contact


def test_an_old_connection_that_falls_silent_says_nothing_about_the_other_end(new_door, server):
    door = new_door(retry_waits=(), timeout_seconds=60)
    url = server.on("/", reply(), silent())
    door.ask(url)
    with pytest.raises(TimedOut) as caught:
        door.ask(url, timeout_seconds=0.3)
    assert not caught.value.is_contact


@pytest.mark.parametrize("told", ["3", "Thu, 01 Jan 2026 00:00:03 GMT"])
def test_a_short_wait_is_waited_for_as_told(door, server, told):
    assert door.ask(server.on("/", status(429, retry_after=told), reply())).status == 200
    assert door.clock.waits == [3.0]


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("told", ["6", "Thu, 01 Jan 2026 00:00:06 GMT"])
def test_a_long_wait_ends_the_call_and_says_until_when(door, server, code, told):
    with pytest.raises(SlowDown) as caught:
        door.ask(server.on("/", status(code, retry_after=told)))
    assert caught.value.retry_at == datetime(2026, 1, 1, 0, 0, 6, tzinfo=UTC)
    assert (len(server.seen), door.clock.waits) == (1, [])


def test_a_planned_wait_that_is_too_long_ends_the_call_too(new_door, server):
    door = new_door(retry_waits=(5.0, 15.0, 45.0))
    with pytest.raises(ServerTrouble) as caught:
        door.ask(server.on("/", status(500)))
    assert (len(server.seen), door.clock.waits) == (2, [5.0])
    assert caught.value.retry_at == door.clock.now() + timedelta(seconds=15)


def test_waits_are_spread_by_chance(server):
    clock = HandClock()
    fetch = Fetch(
        FetchSettings("test", allow_private_networks=True),
        clock,
        stop=Event(),
        budgets=MemoryBudgets(),
        credentials=NOBODY,
        random=lambda: 0.5,
    )
    fetch(Request(server.on("/", status(500), reply())), SomePlatform(), subject="x", attempts=[])
    fetch.close()
    assert clock.waits == [pytest.approx(1.05)]


def test_nothing_is_begun_after_a_stop(door, server):
    door.stop.set()
    with pytest.raises(Stopped):
        door.ask(server.on("/", reply()))
    assert (server.connections, door.attempts) == (0, [])


def test_a_stop_ends_a_wait(server):
    class StoppedWhileWaiting(HandClock):
        def wait(self, seconds: float, stop: Event) -> bool:
            stop.set()
            return True

    stop, attempts = Event(), []
    fetch = Fetch(
        FetchSettings("test", allow_private_networks=True),
        StoppedWhileWaiting(),
        stop=stop,
        budgets=MemoryBudgets(),
        credentials=NOBODY,
    )
    with pytest.raises(Stopped):
        fetch(Request(server.on("/", status(500))), SomePlatform(), subject="x", attempts=attempts)
    fetch.close()
    assert len(attempts) == len(server.seen) == 1


def when_it_has_begun(server, action):
    def run():
        server.arrived.wait()
        action()

    thread = Thread(target=run)
    thread.start()
    return thread


def test_a_transfer_under_way_may_finish_after_a_stop(door, server):
    go_on = Event()

    def slow(connection, seen):
        go_on.wait()
        return reply(b"finished")(connection, seen)

    def stop():
        door.stop.set()
        go_on.set()

    thread = when_it_has_begun(server, stop)
    assert door.ask(server.on("/", slow)).body == b"finished"
    thread.join()


def test_a_transfer_that_is_cut_ends_at_once(door, server):
    thread = when_it_has_begun(server, door.cut.set)
    with pytest.raises(Stopped, match="interrupted"):
        door.ask(server.on("/", silent()))
    thread.join()
    assert door.outcomes == ["STOPPED"]
