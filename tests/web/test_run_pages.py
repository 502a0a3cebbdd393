"""Runs, gaps and alerts in a browser."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest

from catchment.errors import Missing, SlowDown
from catchment.messages import Message
from catchment.model import AlertRequest, Source
from catchment.store.credentials import about_credential, about_pool
from catchment.store.sources.alerts import raise_alert
from catchment.web.pages.locale.names import NAMES
from tests.web.browser import opened, plain
from tests.web.desk import Desk


def a_feed_with_a_gap(desk: Desk, name: str = "Gazette") -> Source:
    """Everything that it shows has changed between two visits."""
    feed = desk.here.town.feed(name.lower(), window=5)
    source = desk.here.follow(feed, name=name)
    for day in range(2):
        for number in range(5):
            feed.post(f"{day}-{number}", at=desk.here.clock.now() - timedelta(minutes=number))
        desk.here.collect(source)
        desk.here.clock.advance(86_400)
    return source


def a_broken_feed(desk: Desk, times: int = 5) -> Source:
    feed = desk.here.town.feed("two")
    feed.says.extend([Missing("the feed is not there", "has it <moved>?", status=404)] * times)
    source = desk.here.follow(feed, name="An <old> blog")
    for _ in range(times):
        desk.here.collect(source)
    return source


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_page_by_page_and_lead_to_their_results(both: Desk) -> None:
    assert "No runs yet" in opened(both, "/runs")
    source = a_feed_with_a_gap(both)
    for _ in range(33):
        both.here.collect(source)
    first = opened(both, "/runs")
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = opened(both, unescape(onwards))
    ids = [re.findall(r'class="headline" href="/runs/(\d+)"', page) for page in (first, second)]
    assert [len(page_ids) for page_ids in ids] == [30, 5]
    assert [int(item_id) for page in ids for item_id in page] == list(range(35, 0, -1))
    assert "Gazette" in plain(opened(both, "/runs/1"))


def test_a_run_tells_what_became_of_each_source(both: Desk) -> None:
    good, broken = a_feed_with_a_gap(both), a_broken_feed(both, 1)
    both.here.collect(good, broken)
    run = opened(both, "/runs/4")
    assert "Gazette Feed no changes" in plain(run)
    assert "An <old> blog" in plain(opened(both, "/runs/3"))
    said = plain(opened(both, "/runs/3?outcome=failed"))
    assert "There is nothing at this address (404)." in said
    assert "Gazette" not in plain(opened(both, "/runs/4?outcome=failed"))
    assert "No results" in plain(opened(both, "/runs/4?outcome=skipped"))
    assert "没有内容（404）" in opened(both, "/runs/3", language="zh")


def test_deferred_sources_are_shown_as_that_and_not_as_failures(both: Desk) -> None:
    here = both.here
    feed = here.town.feed("limited")
    feed.says.append(SlowDown("the budget is used up", retry_at=here.clock.now() + timedelta(hours=1)))
    here.collect(here.follow(feed, name="Limited"))
    said = plain(opened(both, "/runs/1"))
    assert "Failed 0 Deferred 1 Skipped 0" in said
    assert "Requests are limited at the moment" in said
    assert "失败 0 已推迟 1 跳过 0" in plain(opened(both, "/runs/1", language="zh"))
    assert "0 failed, last 24 hours · 1 deferred" in plain(opened(both, "/"))
    assert "推迟 1 次" in plain(opened(both, "/", language="zh"))
    run = both.get("/api/runs/1")
    assert (run["failed"], run["deferred"], run["results"][0]["outcome"]) == (0, 1, "deferred")
    assert both.get("/api/runs/1?outcome=deferred")["results"][0]["source_name"] == "Limited"
    stats = both.get("/api/collector/status")["stats"]
    assert (stats["fetches_24h"], stats["errors_24h"], stats["deferred_24h"]) == (0, 0, 1)


def test_a_run_under_way_shows_what_it_has_come_to_so_far(both: Desk) -> None:
    here = both.here
    source = a_feed_with_a_gap(both)
    run_id = here.app.store.runs.begin("collect-due", "schedule", here.app.presence.owner_id, here.clock.now())
    here.app.store.database.write(
        lambda tx: tx.run(
            """
            INSERT INTO run_sources (run_id, source_id, started_at, new_count, updated_count, duplicate_count,
                                     invalid_count, request_count, notes) VALUES (?, ?, 1, 12, 0, 0, 0, 3, '[]')
            """,
            run_id,
            source.id,
        )
    )
    assert "Collect due sources in progress 1 0 0 12 0 3 –" in plain(opened(both, "/runs"))
    said = plain(opened(both, f"/runs/{run_id}"))
    assert "in progress" in said
    assert "New 12" in said


@pytest.mark.parametrize(
    "path", ["/runs/77", "/runs/0", "/runs/x", "/runs?after=x", "/gaps?after=-1", "/gaps?source=x"]
)
def test_what_is_not_there_is_said_in_plain_words(desk: Desk, path: str) -> None:
    answer = desk.browser().get(path)
    assert answer.status_code in (400, 404)
    assert re.search("Something went wrong|Not found", answer.text)


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gaps_are_shown_by_source_and_closed_ones_apart(both: Desk) -> None:
    assert "Nothing is known to be missing" in opened(both, "/gaps")
    assert "No closed gaps" in opened(both, "/gaps?show=closed")
    first, other = a_feed_with_a_gap(both), a_feed_with_a_gap(both, "Other")
    page = opened(both, "/gaps")
    assert "possible gap" in page
    assert "All entries of the feed were replaced between two collections." in page
    assert f'<a href="/gaps?source={first.id}">Gazette</a> <span class="quiet">1 gap</span>' in page
    of_one = plain(opened(both, f"/gaps?source={other.id}"))
    assert "Other" in of_one
    assert "Gazette" not in of_one
    both.here.app.store.database.write(
        lambda tx: tx.run(
            "UPDATE gaps SET closed_at = 1700000000000000, closed_because = 'gap.shown_again' WHERE source_id = ?",
            first.id,
        )
    )
    assert "Gazette" not in plain(opened(both, "/gaps"))
    closed = plain(opened(both, "/gaps?show=closed"))
    assert "The missing items were found after all." in closed
    assert "Other" not in closed


def test_many_gaps_go_on_page_by_page(desk: Desk) -> None:
    source = a_feed_with_a_gap(desk)
    rows = [(source.id, False, number, number + 1, "[]", "window", number) for number in range(1, 41)]
    columns = ("source_id", "is_certain", "from_at", "to_at", "from_ids", "cause", "opened_at")
    desk.here.app.store.database.write(lambda tx: tx.insert("gaps", columns, rows))
    first = opened(desk, f"/gaps?source={source.id}")
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', first)
    assert unescape(onwards).startswith(f"/gaps?source={source.id}&after=")
    second = opened(desk, unescape(onwards))
    assert [page.count('<li class="row"') for page in (first, second)] == [30, 11]


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_alerts_say_what_is_wrong_and_what_helps_and_where_to_go(both: Desk) -> None:
    assert "No open alerts" in opened(both, "/alerts")
    source = a_broken_feed(both)
    page = opened(both, "/alerts")
    said = plain(page)
    assert "P1 · today" in said
    assert "An <old> blog keeps failing" in said
    assert "The page of the source says why and what to do." in said
    assert f'<a class="headline" href="/sources/{source.id}">' in page
    assert '<span class="count">1</span>' in page
    assert "持续失败" in opened(both, "/alerts", language="zh")
    both.here.town.feed("two").says.clear()
    both.here.collect(source)
    after = opened(both, "/alerts")
    assert "No open alerts" in after
    assert "Recently closed" in after
    assert "recovered" in after


@pytest.mark.parametrize(
    ("subject", "english", "chinese"),
    [
        (
            about_credential("x main", "used up"),
            ("x main has no credit left", "Top up its account"),
            "余额已用完",
        ),
        (about_credential("main", "refused"), ("main was refused", "Test it:"), "被拒绝"),
        (about_pool("reddit"), ("Reddit has no usable credential", "Resume one"), "没有可用凭据"),
        ("task rss failing", ("has tasks that fail", "The tasks page shows why"), "有任务失败"),
        ("rss warm-up", ("first collections make no progress", "may be used up"), "首次采集"),
        ("network offline", ("This machine seems to be offline", "Check the network"), "离线"),
    ],
)
def test_an_alert_is_shown_in_words_with_a_remedy_and_never_as_its_key(
    desk: Desk, subject: str, english: tuple[str, str], chinese: str
) -> None:
    desk.here.app.store.database.write(lambda tx: raise_alert(tx, AlertRequest(subject, Message("so it is")), 1))
    said = plain(opened(desk, "/alerts"))
    assert [part for part in english if part not in said] == []
    assert subject not in said
    assert chinese in plain(opened(desk, "/alerts", language="zh"))


def test_every_type_of_alert_has_a_remedy() -> None:
    assert [type_ for type_ in NAMES["alert"] if type_ not in NAMES["alert_helps"]] == []


def test_an_alert_that_we_have_no_words_for_is_shown_as_it_was_said(desk: Desk) -> None:
    desk.here.app.store.database.write(
        lambda tx: tx.run(
            "INSERT INTO alerts (subject, severity, message, opened_at) VALUES (?, ?, ?, ?)",
            "moon full",
            "P0",
            "the moon is full <b>",
            1,
        )
    )
    said = plain(opened(desk, "/alerts"))
    assert "moon full" in said
    assert "the moon is full <b>" in said
