"""An answer that breaks off in the middle, with nothing to tell so: what came is stored, and the rest is still owed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.model import Answer, Outcome
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
