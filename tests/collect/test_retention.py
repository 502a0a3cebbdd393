"""The job that clears obeys the days that are set for a kind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from catchment.jobs import clear_old
from tests.town import TownApp


def test_items_of_a_kind_are_cleared_after_their_days_and_do_not_come_back(tmp_path: Path, database_url: str) -> None:
    here = TownApp(tmp_path / "home", database_url, retention_days={"rss": 30})
    feed = here.town.feed(window=2)
    source = here.follow(feed)
    for number in range(4):
        feed.post(f"{number}", at=here.clock.now())
        here.collect(source, after=timedelta(days=1))
    here.clock.advance(timedelta(days=60).total_seconds())
    clear_old(here.app)
    assert {item["external_id"] for item in here.items()} == {"2", "3"}, "the feed shows these still"
    feed.post("4", at=here.clock.now())
    (result,) = here.collect(source)
    assert (result.counts.new, result.counts.duplicate) == (1, 1)
    here.close()
