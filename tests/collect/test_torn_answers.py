"""An answer that breaks off in the middle, with nothing to tell so: what came is stored, and the rest is still owed."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

import pytest

from catchment.fetch.settings import Attempt
from catchment.model import Answer, Item, Kind, Listing, Order, Outcome, Platform, Reading, Request, Target
from tests.playing import Answering, played
from tests.town import Feed, TownApp

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def torn_after(feed: Feed, entries: int):  # type: ignore[no-untyped-def]
    """The listing as it is now, broken off inside the entry after so many."""
    body = feed.body()
    tag = b'"the whole"'
    end = body.index(b"<item>", body.replace(b"</item>", b"<!item>", entries - 1).index(b"</item>")) + 20

    def says(request, now):  # type: ignore[no-untyped-def]
        return Answer(200, {"etag": tag.decode()}, body[:end], request.url, now)

    return says


def steady(here: TownApp, first: int, last: int) -> Feed:
    feed = here.town.feed(window=10)
    for number in range(first, last + 1):
        feed.post(f"p{number}", at=here.clock.now() - (last - number) * MINUTE)
    return feed


def test_what_a_torn_answer_left_out_comes_with_the_next_whole_one(here: TownApp) -> None:
    feed = steady(here, 1, 10)
    source = here.follow(feed)
    feed.says.append(torn_after(feed, 4))
    (torn,) = here.collect(source)
    assert (torn.outcome, torn.counts.new, torn.counts.invalid) == (Outcome.SUCCEEDED, 4, 1)
    assert here.progress(source).etag is None
    (whole,) = here.collect(source)
    assert (whole.counts.new, len(here.items())) == (6, 10)


def test_what_came_after_a_first_answer_that_was_torn_lies_in_a_gap_if_the_next_one_does_not_show_it(
    here: TownApp,
) -> None:
    feed = steady(here, 1, 10)
    source = here.follow(feed)
    feed.says.append(torn_after(feed, 3))
    here.collect(source)
    newest = feed.entries["p10"]["at"]
    here.clock.advance(3600)
    steady(here, 11, 25)
    here.collect(source)
    (gap,) = here.gaps()
    assert (gap.certainty, gap.cause) == ("possible", "window")
    assert (gap.from_at, gap.to_at) == tuple(at.replace(microsecond=0) for at in (newest, feed.entries["p16"]["at"]))


def test_a_first_answer_that_was_torn_leaves_no_gap_if_the_next_one_goes_on_from_it(here: TownApp) -> None:
    feed = steady(here, 1, 10)
    source = here.follow(feed)
    feed.says.append(torn_after(feed, 3))
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 11, 15)
    here.collect(source)
    assert (here.gaps(), len(here.items())) == ([], 10)


def test_the_older_pages_of_a_feed_are_read_after_a_first_answer_that_was_torn(quick: TownApp) -> None:
    """Each of its three pages has two entries."""
    torn = deque([True])

    class Site(Answering):
        def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
            attempts.append(Attempt(platform.NAME, quick.clock.now(), "200", 0.0))
            return Answer(200, {}, b"", request.url, quick.clock.now())

    def page(number: int) -> Request:
        return Request("https://paged.example/", params={"page": str(number)})

    def read(answer: Answer, request: Request) -> Reading:
        number = int(request.params["page"])
        items = tuple(Item(f"{number}.{place}", text="text", created_at=answer.answered_at) for place in range(2))
        follow = (page(number + 1),) if number < 2 else ()
        return Reading(items, follow=follow, is_end=not follow, is_torn=bool(torn and torn.pop()))

    listings = (Listing("window", Order.NEWEST_FIRST, is_window=True),)
    kinds = (Kind("paged", "a paged feed", 60, "window", listings),)
    quick.play(Site(), played(NAME="paged", KINDS=kinds, first=lambda *_: [page(0)], read=read))
    source, _ = quick.app.store.sources.follow(Target("paged", "paged"), "paged", quick.clock.now())
    quick.collect(source)
    assert len(quick.items()) == 2
    quick.collect(source)
    assert len(quick.items()) == 6


@pytest.mark.parametrize("then", [15, 18])
def test_entries_that_left_the_window_behind_a_torn_answer_lie_in_a_gap(here: TownApp, then: int) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 15)
    feed.says.append(torn_after(feed, 3))
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 16, then + 5)
    here.collect(source)
    stored = {item["external_id"] for item in here.items()}
    missing = [name for name in feed.entries if name not in stored]
    assert missing
    (gap,) = here.gaps()
    assert all(gap.from_at <= feed.entries[name]["at"] <= gap.to_at for name in missing)
