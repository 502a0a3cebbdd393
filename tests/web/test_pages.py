"""The start page: what it shows, in two languages, with nothing from elsewhere and nothing that runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from catchment.errors import Missing
from catchment.jobs import JOBS
from catchment.web.pages.locale import (
    Locale,
    language,
)
from catchment.web.pages.locale.names import NAMES
from catchment.web.pages.render import ASSETS
from tests.town import TownApp
from tests.web.desk import Desk

NOW = datetime(2026, 2, 25, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCRIPT = next(path for path in ASSETS if path.endswith(".js"))


def a_lively_town(desk: Desk) -> None:
    here = desk.here
    feed = here.town.feed("one")
    feed.post("p1", title="<script>alert(1)</script> & more", at=here.clock.now() - 2 * HOUR)
    feed.post("p2", title="今天的新闻", at=here.clock.now() - HOUR)
    broken = here.town.feed("two")
    broken.says.extend([Missing("the feed is not there", "has it <moved>?", status=404)] * 9)
    sources = [here.follow(feed, name="Morning Post"), here.follow(broken, name="An <old> blog")]
    here.collect(*sources)


def start_page(desk: Desk, spoken: str = "en") -> str:
    answer = desk.browser(spoken).get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return answer.text


def test_an_empty_deployment_is_told_how_to_begin(desk: Desk) -> None:
    page = start_page(desk)
    assert "No sources yet" in page
    assert "catchment sources add https://example.org/" in page
    assert 'href="/sources/add"' in page
    assert 'name="intent" value="starter"' in page


def test_it_shows_what_came_in_what_fails_and_what_runs(both: Desk) -> None:
    a_lively_town(both)
    page = start_page(both)
    assert "1 problem" in page
    for shown in (
        "今天的新闻",
        "Morning Post",
        "1 h ago",
        "An &lt;old&gt; blog",
        "the feed is not there",
        "last collection failed",
    ):
        assert shown in page, shown
    assert all(NAMES["job"][job.name] in page for job in JOBS)


def test_a_source_with_an_alert_is_one_thing_to_look_at(desk: Desk) -> None:
    a_lively_town(desk)
    for _ in range(5):
        desk.here.collect(desk.here.app.store.sources.get(2))
    assert len(desk.get("/api/alerts")["items"]) == 1
    page = start_page(desk)
    assert "1 problem" in page
    needs = page[page.index('id="needs"') : page.index('id="figures"')]
    assert needs.count("An &lt;old&gt; blog") == 1


def test_gaps_are_shown(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    for number in range(5):
        feed.post(f"p{number}", at=desk.here.clock.now() - HOUR * number)
    source = desk.here.follow(feed, name="Gazette")
    desk.here.collect(source)
    feed.entries.clear()
    desk.here.clock.advance(86_400)
    for number in range(5):
        feed.post(f"q{number}", at=desk.here.clock.now() - timedelta(minutes=number))
    desk.here.collect(source)
    assert desk.get("/api/gaps")["items"][0]["source_name"] == "Gazette"
    page = start_page(desk)
    assert "1 gap is open" in page
    assert '<a href="/gaps?source=1">Gazette</a>' in page


def test_a_source_that_is_back_is_said_to_be_and_is_no_trouble_any_more(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    feed.post("p1", at=desk.here.clock.now())
    source = desk.here.follow(feed, name="Gazette")
    feed.says.extend([Missing("the feed is not there", status=404)] * 5)
    for _ in range(5):
        desk.here.collect(source)
    assert "Recovered" not in start_page(desk)
    desk.here.collect(source)
    page = start_page(desk)
    assert "No problems" in page
    assert 'href="/sources/1">Gazette</a> <span class="tag is-good">recovered</span>' in page
    desk.here.clock.advance(86_400)
    assert "Recovered" not in start_page(desk)


def test_an_item_that_was_edited_says_so(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    source = desk.here.follow(feed, name="Gazette")
    shown = []
    for text in ("first", "second thoughts", "third thoughts"):
        feed.post("p1", text, at=desk.here.clock.now() - HOUR)
        desk.here.collect(source)
        shown.append(re.findall(r'class="tag is-edited">(edited[^<]*)<', start_page(desk)))
    assert shown == [[], ["edited"], ["edited 2 times"]]


def test_only_a_demonstration_says_that_it_is_one_and_renews_itself(town: TownApp) -> None:
    usual, shown = (Desk(town, **more).browser().get("/") for more in ({}, {"demo_rate": 60.0}))
    assert ('http-equiv="refresh"' in usual.text, "A demonstration" in usual.text) == (False, False)
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in shown.text
    assert 'data-renews="2"' in shown.text
    assert "time runs 60 times as fast" in shown.text


def test_what_others_wrote_cannot_become_part_of_the_page(desk: Desk) -> None:
    a_lively_town(desk)
    page = start_page(desk)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert re.findall("<script[^>]*>", page) == [f'<script src="{SCRIPT}" defer>']
    assert "<moved>" not in page


def test_only_web_addresses_become_links(desk: Desk) -> None:
    a_lively_town(desk)
    desk.here.app.store.database.write(
        lambda tx: tx.run("UPDATE items SET url = ? WHERE external_id = 'p2'", "javascript:alert(1)")
    )
    page = start_page(desk)
    assert "javascript:" not in page
    assert 'data-original="https://feeds.example/p1"' in page


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline(desk: Desk, spoken: str) -> None:
    a_lively_town(desk)
    for page in (start_page(desk, spoken), desk.stranger.get("/").text, desk.browser().get("/nothing").text):
        loaded = re.findall(r'(?:src|<link[^>]+href)="([^"]*)"', page)
        assert all(url.startswith(("/", "data:image/svg+xml,")) for url in loaded)
        assert not re.search(r"<style|\sstyle=|\son\w+=|<iframe|<img|http-equiv", page)
    assert not any(re.search(rb"@import|url\(|https?://", asset.body) for asset in ASSETS.values())


def test_the_stylesheet_is_found_and_may_be_kept_for_ever(desk: Desk) -> None:
    (path,) = re.findall(r'<link rel="stylesheet" href="([^"]+)"', start_page(desk))
    answer = desk.stranger.get(path)
    assert (answer.status_code, answer.content) == (200, ASSETS[path].body)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]


def test_a_process_that_does_not_collect_says_so(town: TownApp) -> None:
    assert "it does not collect" in start_page(Desk(town, collects=False))


# ── words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_speaks_chinese_to_those_who_ask_for_it(desk: Desk) -> None:
    a_lively_town(desk)
    page = start_page(desk, "zh-CN,zh;q=0.9,en;q=0.8")
    assert '<html lang="zh"' in page
    assert "最新条目" in page
    assert "Latest" not in page
    assert "Latest" in desk.browser("zh").get("/?lang=en").text


@pytest.mark.parametrize(
    ("asked", "accepted", "spoken"),
    [
        ("zh", "en", "zh"),
        ("fr", "zh", "zh"),
        (None, "zh-TW,en;q=0.5", "zh"),
        (None, "en-GB,zh;q=0.9", "en"),
        (None, "fr,zh;q=0.2,en;q=0.1", "zh"),
        (None, "zh;q=0,fr", "en"),
        (None, "zh;q=nonsense", "en"),
        (None, "*", "en"),
        (None, "", "en"),
        (None, None, "en"),
        (None, ";;;,=,q=1", "en"),
    ],
)
def test_the_language_is_the_readers_choice(asked: str | None, accepted: str | None, spoken: str) -> None:
    assert language(asked, accepted) == spoken


@pytest.mark.parametrize(
    ("distance", "english", "chinese"),
    [
        (timedelta(0), "just now", "刚刚"),
        (timedelta(seconds=-40), "40 s ago", "40 秒前"),
        (timedelta(minutes=-5), "5 min ago", "5 分钟前"),
        (timedelta(hours=-30), "1 d ago", "1 天前"),
        (timedelta(minutes=90), "in 1 h", "1 小时后"),
        (timedelta(days=-60), "2025-12-27", "2025-12-27"),
    ],
)
def test_times_are_told_as_people_tell_them(distance: timedelta, english: str, chinese: str) -> None:
    at = (NOW + distance).isoformat()
    assert [Locale(language, NOW).when(at) for language in ("en", "zh")] == [english, chinese]


def test_a_failure_is_told_in_the_readers_language_and_as_it_was_said(desk: Desk) -> None:
    page = desk.browser("zh").get("/items?since=someday").text
    assert "输入无效。" in page
    assert "&#39;someday&#39;：not a time" in page
    assert "没有编号为 404 的条目" in desk.browser("zh").get("/items/404").text
    assert "请检查地址是否完整" in desk.browser("zh").get("/nowhere").text


def test_a_filter_is_named_in_the_readers_language(desk: Desk) -> None:
    a_lively_town(desk)
    page = desk.browser("zh").get("/items?platform=feeds&kind=entry&state=edited").text
    assert re.findall(r'class="chip">\S+ <b>(.*?)</b>', page) == ["订阅源", "文章", "已修改"]
    assert '<option value="feeds" selected>订阅源</option>' in page
    assert "符合条件的内容，最新" in page
