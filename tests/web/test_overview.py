"""The overview: what needs somebody now comes first, with what helps; then how it runs, hour by hour."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from catchment.errors import (
    Gone,
    Missing,
    NetworkError,
    ServerTrouble,
    SlowDown,
)
from catchment.model import Source, SourceState, Target
from catchment.store.credentials import Terms
from catchment.web.pages import charts
from tests.town import Feed, TownApp
from tests.web.browser import opened, plain
from tests.web.desk import Desk

HOUR = timedelta(hours=1)


def a_busy_feed(desk: Desk, hours: int = 5, name: str = "Gazette") -> Source:
    """Three posts an hour, each captured ten minutes later."""
    feed = desk.here.town.feed(name.lower(), window=50)
    source = desk.here.follow(feed, name=name)
    desk.here.collect(source)
    for hour in range(hours):
        for number in range(3):
            feed.post(f"{hour}-{number}", at=desk.here.clock.now())
        desk.here.collect(source, after=timedelta(minutes=10))
        desk.here.clock.advance(3000)
    return source


def part(page: str, name: str) -> str:
    """One part of the page, by its id."""
    start = page.index(f'id="{name}"')
    return page[start : page.find("data-renew", start + 200)]


# ── what needs a look ─────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_needs_a_look_where_all_is_well(both: Desk) -> None:
    a_busy_feed(both)
    page = opened(both, "/")
    assert "No problems" in page
    assert 'class="list needs"' not in page


def test_what_fails_is_late_or_missing_is_on_top_with_what_helps_and_a_link(both: Desk) -> None:
    here = both.here
    source = a_busy_feed(both)
    broken = here.town.feed("two")
    broken.says.extend([Missing("the feed is not there", status=404)] * 9)
    lost = here.follow(broken, name="Lost")
    here.collect(lost)
    here.follow(here.town.feed("three"), name="Waiting")
    here.clock.advance(900)
    needs = part(opened(both, "/"), "needs")
    assert (
        f'<a class="headline" href="/sources/{lost.id}">Lost</a> <span class="light">last collection failed</span>'
        in needs
    )
    assert "There is nothing at this address (404)." in needs
    assert "1 source is late" in needs
    assert '<a href="/sources/3">Waiting</a>' in needs
    assert "2 problems" in opened(both, "/")
    assert "2 个问题" in opened(both, "/", language="zh")
    assert f"/sources/{source.id}" not in needs


def test_thirteen_sources_without_a_network_are_one_problem(both: Desk) -> None:
    here = both.here
    for number in range(13):
        feed = here.town.feed(f"site{number}")
        feed.says.extend([NetworkError("the host is not known")] * 2)
        here.follow(feed, name=f"Feed {number}")
    here.collect()
    said = plain(opened(both, "/"))
    assert "This machine seems to be offline None of 13 hosts can be reached" in said
    assert "Check the network, DNS and proxy of this machine." in said
    assert "1 problem" in said
    assert "本机似乎已离线" in opened(both, "/", language="zh")


def test_sources_of_one_host_that_does_not_answer_are_one_problem(desk: Desk) -> None:
    a_busy_feed(desk)
    for number in range(3):
        feed = desk.here.town.feeds[f"https://feeds.example/{number}"] = Feed(f"https://feeds.example/{number}")
        feed.says.append(ServerTrouble("in trouble", status=502))
        desk.here.follow(feed, name=f"Feed {number}")
    desk.here.collect()
    said = plain(opened(desk, "/"))
    assert "feeds.example does not answer: 3 sources" in said
    assert "1 problem" in said


def test_a_source_that_is_gone_is_not_said_to_be_tried_again(desk: Desk) -> None:
    feed = desk.here.town.feed("two")
    feed.says.append(Gone("it is permanently gone", status=410))
    source = desk.here.follow(feed, name="Old")
    desk.here.collect(source)
    for path in ("/", "/alerts"):
        said = plain(opened(desk, path))
        assert "Old is gone and no longer collected" in said
        assert "If it has a new address, add that" in said
        assert "retried automatically" not in said
    assert "不再采集" in opened(desk, "/alerts", language="zh")
    desk.here.app.store.sources.set_state(source.id, SourceState.REMOVED, None, desk.here.clock.now())
    assert "No open alerts" in opened(desk, "/alerts")


def test_who_was_asked_to_wait_is_no_trouble(desk: Desk) -> None:
    a_busy_feed(desk)
    feed = desk.here.town.feed("two")
    feed.says.append(SlowDown("wait", retry_at=desk.here.clock.now() + HOUR))
    desk.here.collect(desk.here.follow(feed, name="Busy"))
    assert "No problems" in opened(desk, "/")


def test_a_job_that_failed_is_named(desk: Desk) -> None:
    a_busy_feed(desk)
    store = desk.here.app.store
    store.jobs.announce("clear-old", desk.here.clock.now())
    store.database.write(lambda tx: tx.run("UPDATE jobs SET last_error = 'no room <left>'"))
    needs = part(opened(desk, "/"), "needs")
    assert "Delete expired records" in needs
    assert "no room &lt;left&gt;" in needs


def test_where_nobody_collects_that_is_what_needs_a_look(town: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(town, collects=False)
    town.follow(town.town.feed("one"), name="One")
    town.clock.advance(3600)
    needs = plain(opened(desk, "/"))
    assert "No process is collecting 1 source is waiting" in needs
    assert "catchment collect --loop" in needs


def communities(desk: Desk, count: int, **more: Any) -> None:
    for number in range(count):
        name = f"r/{more.get('priority', 'medium')}{number}"
        desk.here.app.store.sources.follow(Target("reddit", name, name), "reddit", desk.here.clock.now(), **more)


def keys(desk: Desk, *names: str) -> None:
    for name in names:
        terms = Terms(is_shared=True)
        desk.here.app.store.credentials.add("reddit", name, "key", b"x", desk.here.clock.now(), terms=terms)


def test_a_budget_that_is_used_up_is_told(desk: Desk) -> None:
    here = desk.here
    a_busy_feed(desk)
    communities(desk, 1)
    keys(desk, "one")
    minute = here.clock.now().replace(second=0, microsecond=0) - timedelta(minutes=2)
    columns = ("minute", "platform", "outcome", "count")
    row = (int(minute.timestamp()) * 1_000_000, "reddit", "200", 60)
    here.app.store.database.write(lambda tx: tx.insert("attempts", columns, [row]))
    page = plain(opened(desk, "/"))
    assert "has used its request budget" in page
    assert "60 in 24 hours" in page


def test_how_full_a_budget_is_now_is_told_key_by_key_and_until_when(desk: Desk) -> None:
    app, now = desk.here.app, desk.here.clock.now()
    communities(desk, 1)
    keys(desk, "one", "two")
    ((budget, _), _) = app.budgets_by_credential()["reddit"]
    while app.windows.take(budget, "two", now).tokens:
        pass
    app.windows.take(budget, "one", now)
    desk.here.clock.advance(5)
    said = plain(opened(desk, "/"))
    assert "Reddit 49 % used 59 of 120 requests in 1 min" in said
    assert "one: 1 of 60" in said
    assert "two: 58 of 60 – used up; next request in 1 min" in said
    assert "two：58 / 60 – 已用完，1 分钟后恢复" in plain(opened(desk, "/", language="zh"))
    desk.here.clock.advance(70)
    assert "Reddit < 1 % used now" not in (later := plain(opened(desk, "/")))
    assert "Reddit 0 % used 0 of 120 requests in 1 min" in later


# Each needs two requests for a visit; with a key there are 60 a minute.
@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({"medium": 1}, ["Forecast 3 % 1 source needs 2 of 60 requests per minute. The budget is sufficient."]),
        ({"medium": 26}, ["Forecast 87 % 26 sources need 52 of 60 requests per minute.", "just sufficient"]),
        (
            {"high": 20, "low": 20},
            ["Forecast 133 %", "is not sufficient: high-priority sources go first; 20 sources will be late"],
        ),
        ({"high": 30, "low": 1}, ["31 sources will be late", "r/low0 : never collected", "and 28 more"]),
    ],
)
def test_the_forecast_says_what_is_needed_whether_it_suffices_and_who_gives_way(
    desk: Desk, counts: dict[str, int], told: list[str]
) -> None:
    keys(desk, "one")
    for priority, count in counts.items():
        communities(desk, count, priority=priority, interval_minutes=1)
    said = plain(opened(desk, "/"))
    assert [sentence for sentence in told if sentence not in said] == []
    assert "预测" in opened(desk, "/", language="zh")


def test_where_services_have_the_budgets_the_forecast_compares_with_none(desk: Desk) -> None:
    target = Target("twitter_feed", "@nasa", "@nasa")
    desk.here.app.store.sources.follow(target, "x", desk.here.clock.now(), interval_minutes=30)
    said = plain(opened(desk, "/"))
    assert "Forecast 1 source needs 48 requests per day." in said
    assert "is sufficient" not in said


def test_a_little_is_forecast_by_the_day(desk: Desk) -> None:
    keys(desk, "one")
    communities(desk, 1, interval_minutes=1440)
    assert "1 source needs 2 of 86,400 requests per day. The budget is sufficient." in plain(opened(desk, "/"))


# ── how it runs ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_items_visits_and_delays_are_drawn_hour_by_hour(both: Desk) -> None:
    a_busy_feed(both)
    page = opened(both, "/")
    said = plain(page)
    assert "New items per hour 15 in 48 hours" in said
    assert page.count('class="part-1"') == 5
    assert "Feeds 15" in said
    assert "Success rate 100 %" in said
    assert "Capture delay 10 min" in said
    assert re.search(r"<title>[^<]+: median 10 min</title>", page)


def test_what_was_posted_before_its_source_was_followed_is_no_delay(both: Desk) -> None:
    feed = both.here.town.feed("one")
    for number in range(5):
        feed.post(f"p{number}", at=both.here.clock.now() - number * HOUR)
    both.here.collect(both.here.follow(feed, name="Gazette"))
    assert "Not enough data yet." in part(opened(both, "/"), "trends")


def test_figures_lead_to_what_they_count(desk: Desk) -> None:
    a_busy_feed(desk)
    figures = part(opened(desk, "/"), "figures")
    assert re.findall(r'href="([^"]+)"', figures) == ["/sources", "/items", "/runs", "/runs", "/gaps"]


def test_a_line_is_broken_where_nothing_is_known_and_a_lonely_value_is_seen() -> None:
    drawn = charts.lines(["a", "b", "c", "d", "e"], [[1.0, 0.5, None, 1.0, None]], 1.0, width=50, height=10)
    assert drawn.paths == ["M5,0L15,5"]
    assert drawn.dots == [[(35.0, 0.0)]]
    assert [mark.words for mark in drawn.columns] == ["a", "b", "c", "d", "e"]


def test_parts_of_a_bar_stand_on_each_other_and_none_is_drawn_for_nothing() -> None:
    drawn = charts.stacked([("x", [1, 0, 3]), ("y", [0, 0, 0])], width=20, height=100, gap=0)
    assert drawn.most == 5
    first, second = drawn.columns
    assert [(series, mark.y, mark.height) for series, mark in first.parts] == [(0, 80, 20), (2, 20, 60)]
    assert second.parts == []
