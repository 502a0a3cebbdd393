"""`metrics` and `alerts`, as they are typed."""

from __future__ import annotations

from datetime import datetime

import pytest

from catchment.cli import output
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def test_metrics_tell_what_visiting_came_to_hour_by_hour_and_day_by_day(catchment: Catchment, site: FeedSite) -> None:
    feed, broken = site.feed("news", posts=3), site.feed("broken")
    broken.status = 503
    for site_feed in (feed, broken):
        catchment("sources", "add", "rss", site_feed.url)
    catchment("collect")
    hours = catchment("metrics", "--hours", 2, "--json").json
    assert len(hours) == 2
    assert datetime.fromisoformat(hours[1]["ends_at"]) > datetime.fromisoformat(hours[1]["starts_at"])
    (day,) = catchment("metrics", "--days", 1, "--json").json
    # The hour, or the day, may turn while we look: what was counted is counted in all.
    for found in (hours, catchment("metrics", "--days", 2, "--json").json):
        sums = {name: sum(period[name] for period in found) for name in ("succeeded", "empty", "failed", "new_count")}
        assert sums == {"succeeded": 1, "empty": 0, "failed": 1, "new_count": 3}
    assert day.keys() == hours[0].keys()
    assert catchment("metrics", "--kind", "reddit", "--json").json[-1]["succeeded"] == 0
    shown = catchment("metrics").out
    assert "50 %" in shown
    assert "█  3" in shown
    (collections,) = [line for line in shown.splitlines() if line.startswith("Collections")]
    assert collections.endswith("  2")


def test_hours_and_days_exclude_each_other(catchment: Catchment) -> None:
    assert catchment("metrics", "--hours", 2, "--days", 2, "--json").failure == (2, "INVALID_INPUT")


def test_open_alerts_are_listed_and_with_all_those_that_are_over(catchment: Catchment, site: FeedSite) -> None:
    catchment("migrate")
    assert catchment("alerts").out == "No open alerts.\n"
    feed = site.feed("news", posts=1)
    catchment("sources", "add", "rss", feed.url)
    feed.status = 401
    catchment("collect")
    (alert,) = catchment("alerts", "--json").json
    assert (alert["severity"], alert["source_id"], alert["closed_at"]) == ("P1", 1, None)
    assert "LOGIN" not in catchment("alerts").out
    assert "P1" in catchment("alerts").out
    feed.status = 200
    catchment("collect", "--all")
    assert catchment("alerts", "--json").json == []
    (over,) = catchment("alerts", "--all", "--json").json
    assert (over["id"], over["closed_at"] is None) == (alert["id"], False)
    assert "the newest 1" in catchment("alerts", "--all", "--limit", 1).err


@pytest.mark.parametrize(
    ("figures", "most", "line"),
    [
        ([0, 1, 2, 4, 8], None, "▁▂▃▅█"),
        ([0.001, 8], None, "▂█"),
        ([None, 0.9, 1], 1.0, "·██"),
        ([0, 0], None, "▁▁"),
        ([], None, ""),
    ],
)
def test_a_line_of_bars_shows_the_least_that_there_is_and_a_dot_for_what_is_unknown(
    figures: list[float | None], most: float | None, line: str
) -> None:
    assert output.spark(figures, most) == line


@pytest.mark.parametrize(
    ("part", "words"), [(None, "–"), (1, "100 %"), (0.9999, "99.9 %"), (0.29, "29 %"), (0, "0 %"), (2 / 3, "66.6 %")]
)
def test_a_share_is_never_rounded_to_more_than_it_is(part: float | None, words: str) -> None:
    assert output.share(part) == words
