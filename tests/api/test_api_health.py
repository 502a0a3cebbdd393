"""What the API tells about running: metrics, and alerts with their past."""

from __future__ import annotations

from datetime import timedelta

from catchment.errors import LoginNeeded, Missing
from tests.api.desk import Desk

HOUR = timedelta(hours=1)


def test_metrics_are_told_by_the_hour_and_by_the_day_and_of_one_kind(both: Desk) -> None:
    here = both.here
    good, bad = here.town.feed("good"), here.town.feed("bad")
    good.post("a", at=here.clock.now())
    bad.says.append(Missing("not there", status=404))
    here.collect(here.follow(good), here.follow(bad))
    here.clock.advance(3600)
    hours = both.get("/api/metrics")["items"]
    assert len(hours) == 24
    assert [(one["succeeded"], one["failed"], one["success_rate"]) for one in hours[-2:]] == [(1, 1, 0.5), (0, 0, None)]
    assert [one["is_over"] for one in hours[-2:]] == [True, False]
    (kind,) = hours[-2]["kinds"]
    assert (kind["kind"], kind["platform"], kind["new_count"]) == ("rss", "feeds", 1)
    (day,) = both.get("/api/metrics", span="day", limit=1)["items"]
    assert (day["starts_at"], day["source_count"]) == ("2026-01-01T00:00:00+00:00", 2)
    assert both.get("/api/metrics", kind="reddit", limit=2)["items"][0]["source_count"] == 0


def test_alerts_are_told_page_by_page_and_those_that_are_over_if_asked_for(both: Desk) -> None:
    here = both.here
    feeds = [here.town.feed(name) for name in ("one", "two", "three")]
    sources = [here.follow(feed) for feed in feeds]
    for feed in feeds:
        feed.says.append(LoginNeeded("who are you?", status=401))
    # One after the other: side by side, any of them may be the first.
    for source in (*sources, sources[0]):
        here.collect(source)
    assert [one["source_id"] for page in both.pages("/api/alerts", limit=1) for one in page] == [3, 2]
    everything = [one for page in both.pages("/api/alerts", limit=2, include_closed=True) for one in page]
    assert [(one["source_id"], one["closed_at"] is None) for one in everything] == [(3, True), (2, True), (1, False)]
