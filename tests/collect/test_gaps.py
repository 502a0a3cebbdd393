"""Where more was posted between two visits than the feed shows, the hole is recorded; and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest

from catchment.model import Answer, Outcome, Request
from tests.town import Feed, TownApp

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def steady(here: TownApp, first: int, last: int, feed: Feed | None = None) -> Feed:
    """Entries numbered so, a minute apart, the last one now."""
    feed = feed or here.town.feed(window=5)
    for number in range(first, last + 1):
        feed.post(f"p{number}", at=here.clock.now() - (last - number) * MINUTE)
    return feed


def test_a_window_that_overflowed_between_two_visits_opens_a_possible_gap_with_its_edges(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    newest_stored = datetime.fromisoformat(here.item("p5")["created_at"])
    here.clock.advance(3600)
    steady(here, 6, 20, feed)
    here.collect(source)
    (gap,) = here.gaps()
    assert (gap.certainty, gap.cause, gap.from_at) == ("possible", "window", newest_stored)
    assert gap.to_at == datetime.fromisoformat(here.item("p16")["created_at"])
    assert here.progress(source).watermark.ids == ("p20",)


def test_a_window_that_reaches_what_is_stored_opens_none(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 9, feed)
    here.collect(source)
    assert here.gaps() == []


def behind(feed: Feed, lag: timedelta) -> Callable[[Request, datetime], Answer]:
    """The listing as it is now, from a server whose clock is behind by so much, and by which it dates the entries."""
    entries = {key: entry | {"at": entry["at"] - lag} for key, entry in feed.entries.items()}
    body = replace(feed, entries=entries).body()

    def says(request: Request, now: datetime) -> Answer:
        return Answer(200, {"date": format_datetime(now - lag, usegmt=True)}, body, request.url, now)

    return says


@pytest.mark.parametrize("hours", [1, 2, 8])
def test_a_window_that_overflowed_opens_a_gap_although_a_clock_that_is_behind_dates_all_of_it_too_early(
    here: TownApp, hours: int
) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 20, feed)
    feed.says.append(behind(feed, hours * HOUR))
    here.collect(source)
    (gap,) = here.gaps()
    assert gap.from_at == feed.entries["p5"]["at"].replace(microsecond=0)
    assert feed.entries["p15"]["at"].replace(microsecond=0) < gap.to_at <= here.clock.now()
    here.clock.advance(600)
    steady(here, 21, 22, feed)
    here.collect(source)
    assert len(here.gaps()) == 1


def test_a_window_of_a_clock_that_is_behind_opens_no_gap_if_it_shows_what_is_stored(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 9, feed)
    feed.says.append(behind(feed, 2 * HOUR))
    here.collect(source)
    assert here.gaps() == []


def test_a_gap_is_closed_when_the_feed_shows_it_from_edge_to_edge_again(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 20, feed)
    here.collect(source)
    feed.window = 50
    here.collect(source)
    assert here.gaps() == []
    (gap,) = here.gaps(include_closed=True)
    assert gap.closed_because == "shown again"
    assert len(here.items()) == 20


def test_the_next_good_visit_after_a_gap_opens_no_second_one(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 20, feed)
    here.collect(source)
    here.clock.advance(600)
    steady(here, 21, 22, feed)
    here.collect(source)
    assert len(here.gaps()) == 1


def test_a_feed_of_two_entries_says_nothing_about_what_it_left_out(quick: TownApp) -> None:
    feed = quick.town.feed(window=2)
    feed.post("a", at=quick.clock.now())
    source = quick.follow(feed)
    quick.collect(source)
    for number in range(5):
        feed.post(f"b{number}", at=quick.clock.now() + (number + 1) * MINUTE)
    quick.collect(source, after=HOUR)
    assert quick.gaps() == []


def test_an_empty_feed_is_a_success_and_opens_no_gap(quick: TownApp) -> None:
    feed = steady(quick, 1, 5)
    source = quick.follow(feed)
    quick.collect(source)
    kept, feed.entries = feed.entries, {}
    (result,) = quick.collect(source)
    assert (result.outcome, quick.gaps()) == (Outcome.SUCCEEDED, [])
    feed.entries = kept
    quick.collect(source)
    assert quick.gaps() == []


def test_a_rotating_list_of_old_entries_opens_no_gap(quick: TownApp) -> None:
    feed = steady(quick, 1, 5)
    source = quick.follow(feed)
    quick.collect(source)
    began = quick.clock.now() - timedelta(days=300)
    feed.entries = {}
    for number in range(5):
        feed.post(f"old{number}", at=began + number * HOUR)
    quick.collect(source)
    assert quick.gaps() == []
    assert len(quick.items()) == 10


def test_undated_entries_that_are_all_new_open_a_possible_gap(quick: TownApp) -> None:
    feed = quick.town.feed(window=5)
    for number in range(5):
        feed.post(f"a{number}", f"text a{number}")
    source = quick.follow(feed)
    quick.collect(source)
    first = quick.clock.now()
    feed.entries = {}
    for number in range(5):
        feed.post(f"b{number}", f"text b{number}")
    quick.collect(source, after=HOUR)
    (gap,) = quick.gaps()
    assert (gap.from_at, gap.to_at) == (first, quick.clock.now())


def test_a_late_arrival_on_top_of_a_feed_by_arrival_does_not_hide_a_gap(here: TownApp) -> None:
    feed = steady(here, 1, 5)
    source = here.follow(feed)
    here.collect(source)
    here.clock.advance(3600)
    steady(here, 6, 20, feed)
    feed.post("late", at=here.clock.now() - timedelta(days=3))
    shown = ["late", "p20", "p19", "p18", "p17"]
    feed.shown = lambda: shown  # type: ignore[method-assign]
    here.collect(source)
    (gap,) = here.gaps()
    edges = [datetime.fromisoformat(here.item(key)["created_at"]) for key in ("p5", "p17")]
    assert [gap.from_at, gap.to_at] == edges
    assert here.item("late")["text"] == "text"
