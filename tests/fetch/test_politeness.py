"""Politeness towards others' hosts, within one process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import SlowDown, Stopped
from catchment.fetch.throttle import Cooldowns, HostPacing, Slots
from catchment.model import Budget
from tests.fetch.surroundings import SomePlatform
from tests.hostile import reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PUBLIC = "http://93.184.216.34"
"""Never reached: it is asked by way of a proxy, which is the test's own server."""


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_burst_is_free_and_then_turns_are_spaced():
    turns = HostPacing(per_second=2, burst=3, longest_wait=seconds(5))
    assert [turns.take("a", NOW).total_seconds() for _ in range(6)] == [0, 0, 0, 0.5, 1.0, 1.5]
    assert turns.take("b", NOW) == seconds(0)
    assert turns.take("a", NOW + seconds(60)) == seconds(0)


def test_a_turn_that_is_too_far_away_is_not_taken():
    turns = HostPacing(per_second=1, burst=1, longest_wait=seconds(2))
    assert [turns.take("a", NOW).total_seconds() for _ in range(5)] == [0, 1, 2, 3, 3]


@given(st.lists(st.floats(0, 3), max_size=40), st.integers(1, 5), st.sampled_from([0.5, 1.0, 2.0, 5.0]))
def test_no_stretch_of_time_holds_more_than_a_burst_and_the_rate(pauses, burst, per_second):
    turns, now, sent = HostPacing(per_second, burst, longest_wait=seconds(5)), NOW, []
    for pause in pauses:
        now += seconds(pause)
        wait = turns.take("a", now)
        if wait <= seconds(5):
            sent.append(now + wait)
    for first, begin in enumerate(sent):
        for count, end in enumerate(sent[first:], start=1):
            assert count <= burst + (end - begin).total_seconds() * per_second + 0.001


def test_a_clock_that_was_set_back_does_not_close_a_host_for_long():
    turns = HostPacing(per_second=2, burst=4, longest_wait=seconds(5))
    turns.take("a", NOW + timedelta(days=365))
    assert turns.take("a", NOW) == seconds(5.5)
    assert turns.take("a", NOW + seconds(1)) == seconds(4.5)


def test_no_limit_means_that_every_turn_is_now():
    turns = HostPacing(per_second=0, burst=1, longest_wait=seconds(5))
    assert {turns.take("a", NOW) for _ in range(1000)} == {seconds(0)}


def test_pauses_end_by_themselves_and_the_later_end_wins():
    pauses = Cooldowns()
    pauses.begin("host a", NOW + seconds(60))
    pauses.begin("host a", NOW + seconds(5))
    assert pauses.until("host a", NOW + seconds(59)) == NOW + seconds(60)
    assert pauses.until("host b", NOW) is None
    assert pauses.until("host a", NOW + seconds(60)) is None
    assert not pauses


def test_there_are_never_more_at_once_than_slots():
    slots, now_inside, most, together = Slots(60, lambda: False), [], [], Event()

    def action() -> None:
        with slots.one_of("a", 2) as is_held:
            assert is_held
            now_inside.append(1)
            most.append(len(now_inside))
            if len(most) == 2:
                together.set()
            together.wait()
            now_inside.pop()

    threads = [Thread(target=action) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (max(most), len(most)) == (2, 6)


def test_without_a_free_slot_nothing_is_held_and_nothing_is_freed():
    slots = Slots(0, lambda: False)
    with slots.one_of("a", 1) as first, slots.one_of("a", 1) as second, slots.one_of("b", 1) as other:
        assert (first, second, other) == (True, False, True)
    with slots.one_of("a", 1) as again:
        assert again


def test_a_stop_ends_the_wait_for_a_slot():
    with Slots(3600, lambda: True).one_of("a", 0) as is_held:
        assert not is_held


def test_a_public_host_is_asked_politely(new_door, server):
    door = new_door(proxy=server.url, per_host_burst=2, per_host_per_second=0.5)
    server.on(f"{PUBLIC}/", reply())
    for _ in range(4):
        door.ask(f"{PUBLIC}/")
    assert door.clock.waits == [2.0, 2.0]


def test_a_wait_for_politeness_that_is_too_long_ends_the_call(new_door, server):
    door = new_door(proxy=server.url, per_host_burst=1, per_host_per_second=0.1)
    server.on(f"{PUBLIC}/", reply())
    door.ask(f"{PUBLIC}/")
    with pytest.raises(SlowDown) as caught:
        door.ask(f"{PUBLIC}/")
    assert (caught.value.retry_at, len(door.attempts)) == (door.clock.now() + seconds(10), 1)


def test_own_machines_are_asked_as_fast_as_they_answer(new_door, server):
    door = new_door(per_host_burst=1, per_host_per_second=0.01, base_urls={"somewhere": server.url})
    server.on("/", reply())
    for _ in range(5):
        door.ask("https://example.org/")
        door.platform.HOSTS = ("example.org",)
        door.ask(server.url + "/")
        door.platform.HOSTS = ()
    assert door.clock.waits == []


def test_a_declared_budget_takes_the_place_of_politeness(new_door, server):
    door = new_door(proxy=server.url, per_host_burst=1, per_host_per_second=0.01)
    door.platform = SomePlatform(budget=Budget("some", 100, 60.0))
    server.on(f"{PUBLIC}/", reply())
    for _ in range(5):
        door.ask(f"{PUBLIC}/")
    assert door.clock.waits == []


def test_enough_under_way_at_a_host_is_enough(new_door, server):
    door = new_door(longest_wait_seconds=0.0)
    door.platform = SomePlatform(budget=Budget("some", 100, 60.0, concurrency=1))
    go_on = Event()

    def slow(connection, seen):
        go_on.wait()
        return reply()(connection, seen)

    url = server.on("/", slow)
    first = Thread(target=door.ask, args=(url,))
    first.start()
    server.arrived.wait()
    with pytest.raises(SlowDown, match="enough requests are in progress"):
        door.ask(url)
    door.stop.set()
    with pytest.raises(Stopped):
        door.ask(url)
    go_on.set()
    first.join()
    assert len(server.seen) == 1
