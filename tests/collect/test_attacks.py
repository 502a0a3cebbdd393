"""Answers that were made to keep their readers busy: they fail, soon, and nobody else is late because of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from threading import Event, Thread

import pytest

from catchment import child_processes, work_limits
from catchment.collect.reading_slot import Effort, ReadingSlot
from catchment.errors import Stopped, TooComplex
from catchment.model import Answer, Outcome, Request, Source
from tests.town import Feed, Said, TownApp

A_MINUTE = timedelta(minutes=1)
HEALTHY, OF_EACH = 6, 5


def answers(body: bytes, content_type: str) -> Said:
    return lambda request, now: Answer(200, {"content-type": content_type}, body, request.url, now)


def nested() -> bytes:
    entry = (
        f"<item><link>https://feeds.example/{{}}</link><description><![CDATA[{'<div>' * 9_999}]]></description></item>"
    )
    entries = "".join(entry.format(number) for number in range(25))
    return f'<rss version="2.0"><channel><title>x</title>{entries}</channel></rss>'.encode()


def ampersands() -> bytes:
    return f'<rss version="2.0"><channel><item><title>{"&" * 1_100_000}</title></item></channel></rss>'.encode()


def keys() -> bytes:
    return json.dumps({"1" * 390 + f"{number:010}": {} for number in range(5_000)} | {"x": {}}).encode()


def entries_of_a_list() -> bytes:
    return ("<html><body><ul>" + "<li><a href='/x'>x</a></li>" * 4_000 + "</ul></body></html>").encode()


ATTACKS = {
    "nested": ("rss", nested, "application/rss+xml", {}),
    "ampersands": ("rss", ampersands, "application/rss+xml", {}),
    "keys": ("custom_api", keys, "application/json", {}),
    "selector": ("website", entries_of_a_list, "text/html", {"links": "x ~ li ~ li ~ li a"}),
}


def follow_attacks(here: TownApp) -> list[Source]:
    sources = []
    for name, (kind, make, content_type, settings) in ATTACKS.items():
        says = answers(make(), content_type)
        for number in range(OF_EACH):
            feed = here.town.feed(f"{name}{number}")
            feed.says.append(says)
            sources.append(here.follow(feed, kind, interval_minutes=60, settings=settings))
    return sources


def healthy_feeds(here: TownApp) -> tuple[list[Feed], list[Source]]:
    feeds = [here.town.feed(f"healthy{number}") for number in range(HEALTHY)]
    return feeds, [here.follow(feed, interval_minutes=1) for feed in feeds]


@pytest.mark.process
def test_five_of_each_attack_do_not_make_healthy_feeds_of_every_minute_late(
    quick: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_processes, "CPU_SECONDS", 1)
    hostile = follow_attacks(quick)
    feeds, sources = healthy_feeds(quick)
    for minute in range(2):
        for feed in feeds:
            feed.post(f"{feed.title} {feed.url} {minute}", at=quick.clock.now())
        spent = time.process_time()
        ended = quick.collect(after=A_MINUTE)
        results = {result.source_id: result for result in ended}
        if not minute:
            # While the healthy ones end, at least a sort of attack is still being read: nobody waits for those.
            last = max(
                place for place, result in enumerate(ended) if result.source_id in {source.id for source in sources}
            )
            assert len(ended) - 1 - last >= OF_EACH
        # CPU time of all threads: however busy the machine is, a round must fit into the minute.
        assert time.process_time() - spent < 60
        assert [(results[source.id].outcome, results[source.id].counts.new) for source in sources] == [
            (Outcome.SUCCEEDED, 1)
        ] * HEALTHY
        assert all(quick.progress(source).last_success_at == quick.clock.now() for source in sources)
        if not minute:
            codes = {results[source.id].error_code for source in hostile}
            assert codes == {"TOO_COMPLEX", "UNREADABLE"}


@pytest.mark.parametrize("escaped", ["&#", "&amp;#"])
def test_a_character_reference_of_5000_digits_costs_no_entry(here: TownApp, escaped: str) -> None:
    reference = f"{escaped}{'9' * 5_000};"
    feed = here.town.feed(window=30)
    for number in range(20):
        feed.post(f"good {number}")
    feed.post("odd", f"<p>{reference}</p>", title=f"A title {reference}")
    (result,) = here.collect(here.follow(feed))
    assert (result.outcome, result.counts.new) == (Outcome.SUCCEEDED, 21)


# ── the slot ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stop() -> Event:
    return Event()


@pytest.fixture
def slot(stop: Event) -> ReadingSlot:
    return ReadingSlot(stop)


class Crowd:
    """Threads that wait for the slot, one after the other; who had it, in this order."""

    def __init__(self, slot: ReadingSlot) -> None:
        self._slot, self._threads = slot, list[Thread]()
        self.order: list[int] = []

    def join(self, size: int) -> None:
        thread = Thread(target=self._read, args=[size])
        thread.start()
        self._threads.append(thread)
        while self._slot.waiting < len(self._threads):
            thread.join(0.001)

    def read(self, size: int) -> None:
        """One that need not wait."""
        thread = Thread(target=self._read, args=[size])
        thread.start()
        thread.join(timeout=600)

    def _read(self, size: int) -> None:
        with self._slot.taken(size, Effort()):
            self.order.append(size)

    def wait(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def crowd(slot: ReadingSlot) -> Iterator[Crowd]:
    crowd = Crowd(slot)
    yield crowd
    crowd.wait()


def test_small_answers_are_read_before_large_ones_that_wait_longer(slot: ReadingSlot, crowd: Crowd) -> None:
    with slot.taken(1, Effort()):
        for size in (20_000_000, 500, 10_000_000, 200):
            crowd.join(size)
    crowd.wait()
    assert crowd.order == [200, 500, 10_000_000, 20_000_000]


def test_a_visit_counts_once_as_a_reader_whatever_it_reads(slot: ReadingSlot) -> None:
    first, second = Effort(), Effort()
    with slot.room_for(20_000_000, first), slot.taken(20_000_000, first):
        assert slot.readers == 1
        with work_limits.current().waiting(), slot.taken(500, second):
            assert slot.readers == 2
    with slot.room_for(500, first):
        assert slot.readers == 0


def test_whoever_waits_for_a_child_process_lets_others_read(slot: ReadingSlot, crowd: Crowd) -> None:
    with slot.taken(1, Effort()), work_limits.current().waiting():
        crowd.read(500)
        assert crowd.order == [500]


def test_a_stop_leaves_what_is_being_read_a_moment_and_then_ends_it(
    slot: ReadingSlot, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with slot.taken(1, Effort()):
        work_limits.current().check()
        stop.set()
        work_limits.current().check()
        now[0] += 2
        with pytest.raises(Stopped):
            work_limits.current().check()


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_stop_ends_the_reading_of_an_answer_that_is_under_way(
    quick: TownApp, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    entries = "".join(f"<item><guid>{number}</guid><title>{number}</title></item>" for number in range(500))
    body = f'<rss version="2.0"><channel><title>x</title>{entries}</channel></rss>'.encode()
    now = [100.0]

    def stopped_meanwhile(request: Request, at: datetime) -> Answer:
        if is_stopped:
            quick.app.stop.set()
            # From now on, every look at the clock is a second later than the one before it.
            monkeypatch.setattr(time, "monotonic", lambda: now.append(now[-1] + 1) or now[-1])
        return answers(body, "application/rss+xml")(request, at)

    feed = quick.town.feed("long")
    feed.says.append(stopped_meanwhile)
    (result,) = quick.collect(quick.follow(feed))
    monkeypatch.undo()
    assert (result.error_code, result.counts.new) == (("STOPPED", 0) if is_stopped else (None, 500))


def test_a_visit_that_has_spent_its_time_reads_no_further(slot: ReadingSlot) -> None:
    effort = Effort()
    effort.seconds = 1_000
    with slot.taken(1, effort), pytest.raises(TooComplex, match="takes too long"):
        work_limits.current().check()


def test_one_large_answer_is_in_hand_at_a_time_and_a_stop_ends_the_waiting(
    slot: ReadingSlot, stop: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.collect.reading_slot.STOP_GRACE_SECONDS", -1.0)
    stop.set()
    with ExitStack() as others:
        others.enter_context(slot.room_for(20_000_000, Effort()))
        others.enter_context(slot.room_for(1_000, Effort()))
        with pytest.raises(Stopped), slot.room_for(20_000_000, Effort()):
            pass
    with slot.room_for(20_000_000, Effort()):
        pass
