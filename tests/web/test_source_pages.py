"""Sources in a browser: the list, following something new, one source and what may be done with it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape

import pytest

from catchment.collect.cooldowns import SharedCooldowns
from catchment.errors import (
    Gone,
    Missing,
    NetworkError,
    PlatformError,
    ServerTrouble,
    SlowDown,
    TimedOut,
)
from catchment.installation import command
from catchment.messages import encode, message
from catchment.model import Answer, Source, Target
from catchment.platforms import reddit
from catchment.platforms.feeds import USUAL_PATHS
from catchment.platforms.reddit import parser
from tests.town import Feed, TownApp
from tests.web.browser import led_to, opened, plain, sent
from tests.web.desk import Desk

HOUR = timedelta(hours=1)


def a_feed(desk: Desk, name: str = "Gazette", count: int = 5, **more: object) -> Source:
    feed = desk.here.town.feed(name.lower().replace(" ", "-"), window=20)
    for number in range(count):
        feed.post(f"{name}-{number}", title=f"{name} {number}", at=desk.here.clock.now() - number * HOUR)
    source = desk.here.follow(feed, name=name, **more)
    desk.here.collect(source)
    return source


def a_broken_feed(desk: Desk, name: str = "Old Blog", times: int = 1) -> Source:
    feed = desk.here.town.feed(name.lower().replace(" ", "-"))
    feed.says.extend([Missing("the feed is not there", "has it <moved>?", status=404)] * 99)
    source = desk.here.follow(feed, name=name)
    for _ in range(times):
        desk.here.collect(source)
    return source


def names(page: str) -> list[str]:
    return [unescape(name) for name in re.findall(r'<a class="headline" href="/sources/\d+">(.*?)</a>', page)]


# ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_list_teaches_the_next_step(desk: Desk) -> None:
    page = opened(desk, "/sources")
    assert "No sources yet" in page
    assert 'href="/sources/add"' in page
    assert 'href="/sources/import"' in page


def test_a_source_that_is_read_in_brief_says_so_in_the_list_and_on_its_page_in_both_languages(both: Desk) -> None:
    source = a_feed(both)
    told = json.dumps({"note": parser.FEED_NOTE})
    both.here.app.store.database.write(lambda tx: tx.run("UPDATE progress SET cursor = ?", told))
    assert both.get(f"/api/sources/{source.id}")["note"] == parser.FEED_NOTE
    for path in ("/sources", f"/sources/{source.id}"):
        assert parser.FEED_NOTE in plain(opened(both, path))
        assert reddit.CHINESE[parser.FEED_NOTE] in plain(opened(both, path, language="zh"))


def test_a_row_tells_how_a_source_stands_and_what_it_brought(both: Desk) -> None:
    a_feed(both, count=3)
    a_broken_feed(both)
    page = opened(both, "/sources")
    assert names(page) == ["Gazette", "Old Blog"]
    said = plain(page)
    assert "Gazette Feed on time 1 min ago in 3 h 3" in said
    assert "Old Blog Feed There is nothing at this address (404)." in said
    assert "failing" in said


def test_the_list_goes_on_page_by_page(both: Desk) -> None:
    for number in range(70):
        both.here.follow(both.here.town.feed(f"feed-{number:02}"), name=f"Feed {number:02}")
    first = opened(both, "/sources")
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = opened(both, unescape(onwards))
    assert names(first) + names(second) == [f"Feed {number:02}" for number in range(70)]
    assert 'rel="next"' not in second


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=gazette", ["Gazette"]),
        ("q=GAZ+ette", ["Gazette"]),
        ("q=晚报", ["城市晚报 Ärger"]),
        ("q=ärger", ["城市晚报 Ärger"]),
        ("q=other.example", ["Other"]),
        ("q=nothing", []),
        ("q=%25", []),
        ("kind=rss", ["Gazette", "城市晚报 Ärger", "Other"]),
        ("kind=reddit", []),
        ("state=paused", ["Other"]),
        ("state=active&q=other", []),
        ("state=nonsense&order=troubled&q=gaz", ["Gazette"]),
    ],
)
def test_the_list_is_filtered_by_words_of_the_name_kind_and_state(both: Desk, query: str, found: list[str]) -> None:
    for name, host in (("Gazette", "gazette"), ("城市晚报 Ärger", "evening"), ("Other", "other")):
        both.here.follow(both.here.town.feed(host), name=name)
    both.here.app.store.sources.set_state(3, "paused", None, both.here.clock.now())  # type: ignore[arg-type]
    assert names(opened(both, f"/sources?{query}")) == found


def test_what_fails_and_what_is_late_comes_first_if_that_is_wanted(both: Desk) -> None:
    here = both.here
    waiting = here.follow(here.town.feed("waiting"), name="Waiting")
    for name in ("A", "B"):
        a_feed(both, name)
    a_broken_feed(both, "Broken")
    here.clock.advance(600)
    assert names(opened(both, "/sources?order=troubled")) == ["Broken", "Waiting", "A", "B"]
    assert names(opened(both, "/sources?order=troubled&q=waiting")) == ["Waiting"]
    assert names(opened(both, f"/sources?order=troubled&after={waiting.id}")) == ["A", "B"]


# ── following something new ───────────────────────────────────────────────────────────────────────────────────────


def test_what_was_typed_is_offered_as_the_kinds_that_understand_it(desk: Desk) -> None:
    page = opened(desk, "/sources/add?target=r/webdev")
    assert re.findall(r'href="(/sources/add\?kind=[^"]+)"', page) == ["/sources/add?kind=reddit&amp;target=r/webdev"]
    page = opened(desk, "/sources/add?target=https://one.example/")
    assert re.findall(r"kind=(\w+)", page)[0] == "rss"
    assert "No kind of source matches" in opened(desk, "/sources/add?target=%21%21")


def test_every_kind_has_its_form_with_its_own_settings(desk: Desk) -> None:
    chosen = opened(desk, "/sources/add")
    for kind in desk.here.app.platforms.kinds():
        assert f'href="/sources/add?kind={kind.name}"' in chosen
        page = opened(desk, f"/sources/add?kind={kind.name}")
        for field in kind.fields:
            assert f'name="set.{field.name}"' in page


def test_a_source_is_tried_before_it_is_followed(both: Desk) -> None:
    feed = both.here.town.feed("one")
    feed.post("p1", "<p>hello & bye</p>", title="<b>First</b>", at=both.here.clock.now())
    answer = sent(both, "/sources/add", kind="rss", target=feed.url, intent="try", name="Mine", interval="30")
    assert answer.status_code == 200
    assert "The source shows 1 item." in answer.text
    assert "&lt;b&gt;First&lt;/b&gt;" in answer.text or "First" in answer.text
    assert f'value="{feed.url}"' in answer.text
    assert 'value="Mine"' in answer.text
    assert both.get("/api/sources")["items"] == []
    assert led_to(both, "/sources/add", kind="rss", target=feed.url, intent="follow", name="Mine", interval="30") == (
        "/sources/1?done=followed"
    )
    (source,) = both.get("/api/sources")["items"]
    assert (source["name"], source["interval_minutes"]) == ("Mine", 30)


def test_a_page_renews_itself_while_its_source_waits_to_be_collected(both: Desk) -> None:
    here = both.here
    source = here.follow(here.town.feed("one"))
    assert "data-awaits" in opened(both, f"/sources/{source.id}")
    here.collect(source)
    assert "data-awaits" not in opened(both, f"/sources/{source.id}")
    assert led_to(both, f"/sources/{source.id}/run") == f"/sources/{source.id}?done=asked"
    assert "data-awaits" in opened(both, f"/sources/{source.id}")
    assert [result.source_id for result in here.app.scheduler().requested("test", "request")] == [source.id]
    assert "data-awaits" not in opened(both, f"/sources/{source.id}")


def test_what_is_followed_already_is_shown(desk: Desk) -> None:
    source = a_feed(desk)
    for intent in ("try", "follow"):
        assert led_to(desk, "/sources/add", kind="rss", target=source.target, intent=intent) == "/sources/1?done=known"


@pytest.mark.parametrize(
    ("fields", "said", "wrong"),
    [
        ({"target": ""}, "it needs an address or a name", 'class="wide is-wrong"'),
        ({"target": "ftp://x.example"}, "ftp", ""),
        ({"target": "https://x.example/", "interval": "soon"}, "is not a number of minutes", 'class="is-wrong"'),
        ({"target": "https://x.example/", "interval": "0"}, "an interval of 0 minutes is not allowed", "is-wrong"),
        ({"target": "https://x.example/", "priority": "huge"}, "unknown priority", ""),
        ({"target": "https://x.example/", "credential": "nobody"}, "nobody", ""),
        ({"target": "https://x.example/\0"}, "cannot be kept", ""),
    ],
)
def test_what_is_wrong_is_said_above_the_form_which_stays_as_it_was(
    desk: Desk, fields: dict[str, str], said: str, wrong: str
) -> None:
    answer = sent(desk, "/sources/add", kind="rss", intent="follow", name="My name", **fields)
    assert answer.status_code in (400, 404, 502)
    assert said in unescape(answer.text)
    assert wrong in answer.text
    assert desk.get("/api/sources")["items"] == []


def test_settings_of_the_kind_are_checked_and_kept(desk: Desk) -> None:
    given = {"kind": "reddit", "target": "r/webdev", "intent": "follow", "set__sort": "top", "set__limit": "50"}
    answer = sent(desk, "/sources/add", **{**given, "set__limit": "0"})
    assert "from 1 to" in unescape(answer.text)
    assert '<option value="top" selected>' in answer.text
    led_to(desk, "/sources/add", **given, set__time_filter="", set__comments="true")
    assert desk.get("/api/sources/1")["settings"] == {"sort": "top", "limit": 50, "comments": True}


def test_a_selector_that_is_none_is_refused_when_a_page_is_followed_and_when_it_is_changed(desk: Desk) -> None:
    given = {"kind": "website", "target": "https://one.example/", "intent": "follow"}
    answer = sent(desk, "/sources/add", **given, set__links="a[")
    assert (answer.status_code, "not a CSS selector" in answer.text) == (400, True)
    led_to(desk, "/sources/add", **given, set__links="h2 a")
    assert sent(desk, "/sources/1/change", set__links="a[").status_code == 400
    assert desk.client.patch("/api/sources/1", json={"settings": {"links": "a["}}).status_code == 400
    assert desk.get("/api/sources/1")["settings"] == {"links": "h2 a"}


def a_site_without_a_feed(desk: Desk) -> str:
    town, body = desk.here.town, b"<!doctype html><html><head><title>Tea</title></head><body><p>Tea.</p></body></html>"
    site = town.feed("tea")
    for path in USUAL_PATHS:
        url = f"https://tea.example{path}"
        town.feeds[url] = Feed(url)
        town.feeds[url].says.append(
            Missing("there is nothing at this address (HTTP 404 Not Found)", "has it moved?", status=404)
        )
    site.says.append(lambda request, now: Answer(200, {"content-type": "text/html"}, body, request.url, now))
    return site.url


def test_a_site_without_a_feed_is_offered_as_a_web_page(desk: Desk) -> None:
    url = a_site_without_a_feed(desk)
    answer = sent(desk, "/sources/add", kind="rss", target=url, intent="try", name="Tea shop")
    said = plain(answer.text)
    assert f"no feed was found at {url}" in said
    assert "404" not in said
    (offer,) = re.findall(r'<form method="post" action="/sources/add">(.*?)</form>', answer.text, re.DOTALL)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', offer))
    assert (fields["kind"], fields["target"], fields["name"], fields["intent"]) == ("website", url, "Tea shop", "try")


def test_a_secret_stays_one_when_a_site_without_a_feed_is_tested_as_a_web_page(desk: Desk) -> None:
    a_site_without_a_feed(desk)
    url = "https://tea.example/?r=AbCdEf0123456789xYzW3v0q"
    # The secret is put back into the address further down, so the stand-in sees it without.
    page = desk.here.town.feeds["https://tea.example/"] = Feed("https://tea.example/")
    page.says.extend(desk.here.town.feed("tea").says)
    answer = sent(desk, "/sources/add", kind="rss", target=url, intent="try", keep_secret="yes")
    (offer,) = re.findall(r'<form method="post" action="/sources/add">(.*?)</form>', answer.text, re.DOTALL)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', offer)) | {"intent": "follow"}
    led_to(desk, "/sources/add", **fields)
    assert desk.get("/api/sources/1")["target"] == "https://tea.example/"


@pytest.mark.parametrize("error", [Missing, Gone, NetworkError, TimedOut, ServerTrouble, SlowDown])
def test_a_form_before_saving_does_not_speak_of_a_source_that_is_there(desk: Desk, error: type[PlatformError]) -> None:
    feed = desk.here.town.feed("one")
    feed.says.append(error("that is how it is", "follow the new address, and remove this one; it is tried again"))
    said = plain(sent(desk, "/sources/add", kind="rss", target=feed.url, intent="try").text)
    assert "that is how it is" in said
    for words in ("new address", "this one", "tried again", "retried", "requested again", "remove this"):
        assert words not in said


def test_a_platform_that_does_not_answer_is_said_in_plain_words(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    feed.says.append(Missing("the feed is not there", "has it moved?", status=404))
    answer = sent(desk, "/sources/add", kind="rss", target=feed.url, intent="try")
    assert answer.status_code == 502
    assert "There is nothing at this address (404)" in answer.text
    chinese = sent(desk, "/sources/add", kind="rss", target="", intent="try", language="zh")
    assert "请检查标出的内容" in chinese.text


def test_trying_a_source_with_a_secret_in_its_address_keeps_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("vault")
    here = TownApp(folder, f"sqlite:///{folder / 'catchment.db'}", master_key="a key that is long enough for this")
    desk = Desk(here)
    feed = here.town.feed("one")
    feed.post("p1", at=here.clock.now())
    address = feed.url.replace("https://", "https://ada:wonderful@")
    answer = sent(desk, "/sources/add", kind="rss", target=address, intent="try")
    assert "The source shows" in answer.text
    assert here.app.store.credentials.page() == []
    led_to(desk, "/sources/add", kind="rss", target=address, intent="follow")
    page = opened(desk, "/sources/1")
    assert "wonderful" not in page
    assert len(here.app.store.credentials.page()) == 1
    here.close()


# ── many at once ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_is_followed_row_by_row_and_what_cannot_be_is_said(both: Desk) -> None:
    rows = "target,name\nhttps://one.example/,One & only\nnot an address at all,Bad\nhttps://two.example/,Two\n"
    page = sent(both, "/sources/import", list=rows).text
    assert "2 sources added" in page
    assert "1 row was rejected" in page
    assert '<a href="/sources/1">One &amp; only</a>' in page
    assert "2 sources existed already" in sent(both, "/sources/import", list=rows).text


def test_the_command_that_helps_with_a_refused_row_is_shown_as_it_is_typed(desk: Desk) -> None:
    rows = "target,credential\nhttps://one.example/,nobody\n"
    page = sent(desk, "/sources/import", list=rows, allow_credentials="yes").text
    assert f"<code>{command()} credentials list</code> shows them" in page
    assert "`" not in plain(page)


def test_a_refused_row_of_an_import_shows_no_secret(desk: Desk) -> None:
    rows = (
        "kind,target,interval\n"
        "rss,https://reader:s3samestreet@feeds.example/a,never\n"
        "rss,ftp://feeds.example/b?token=s3samestreet,60\n"
    )
    page = plain(sent(desk, "/sources/import", list=rows).text)
    assert "line 2" in page
    assert "line 3" in page
    assert "s3samestreet" not in page


def test_what_is_no_list_is_said_and_stays_in_the_form(desk: Desk) -> None:
    answer = sent(desk, "/sources/import", list="<!doctype html><p>hello")
    assert answer.status_code == 400
    assert "this is a web page" in answer.text
    assert "&lt;!doctype html&gt;&lt;p&gt;hello</textarea>" in answer.text


def test_the_starter_set_is_one_button_away(desk: Desk) -> None:
    assert "sources added" in sent(desk, "/sources/import", intent="starter").text
    assert len(names(opened(desk, "/sources"))) >= 10


# ── one source ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_shows_its_rhythm_its_coverage_its_visits_and_when_it_is_next(both: Desk) -> None:
    source = a_feed(both, count=9)
    for day in range(3):
        both.here.town.feed("gazette").post(f"day {day}", at=both.here.clock.now())
        both.here.collect(source, after=25 * HOUR)
    page = opened(both, f"/sources/{source.id}")
    said = plain(page)
    assert "It is collected on schedule" in said
    assert "reason: the interval of its kind" in said
    assert "The newest 12 items by weekday and hour" in said
    assert 'class="warm"' in page
    assert 'class="is-verified"' in page
    assert re.search(r'href="/runs/\d+"', page)
    assert f'href="/items?source={source.id}"' in page


def test_hours_are_those_of_the_reader(desk: Desk) -> None:
    source = a_feed(desk, count=2)
    browser = desk.browser()
    shown = []
    for zone in ("UTC", "Asia/Shanghai"):
        browser.cookies.set("catchment_zone", zone)
        page = browser.get(f"/sources/{source.id}").text
        shown.append(re.findall(r'class="warm"[^>]*><title>(\w+ \d\d)', page))
    assert shown[0] != shown[1]


def test_who_is_late_because_its_platform_is_left_alone_is_told_so_and_until_when(both: Desk) -> None:
    here = both.here
    source, _ = here.app.store.sources.follow(Target("reddit", "r/one", "r/one"), "reddit", here.clock.now())
    here.clock.advance(3600)
    now = here.clock.now()
    assert "left alone" not in plain(opened(both, f"/sources/{source.id}"))
    SharedCooldowns(here.app.store.budgets).start("reddit", now + timedelta(minutes=10), now)
    said = plain(opened(both, f"/sources/{source.id}"))
    assert f"Reddit is not used until {now + timedelta(minutes=10):%Y-%m-%d %H:%M}" in said
    assert "其请求额度已用完，或对方要求等待" in opened(both, f"/sources/{source.id}", language="zh")
    here.clock.advance(600)
    assert "left alone" not in plain(opened(both, f"/sources/{source.id}"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_why_it_is_late_is_answered_in_one_sentence(both: Desk, language: str) -> None:
    here = both.here
    source = a_feed(both)
    broken = a_broken_feed(both, times=6)
    waiting = here.town.feed("busy")
    waiting.says.append(SlowDown("wait", status=429, retry_at=here.clock.now() + timedelta(hours=2)))
    busy = here.follow(waiting, name="Busy")
    limited = here.town.feed("limited")
    limited.says.append(SlowDown("the budget is used up", retry_at=here.clock.now() + timedelta(hours=2)))
    deferred = here.follow(limited, name="Deferred")
    here.collect(busy, deferred)
    new = here.follow(here.town.feed("new"), name="New")
    asked = {
        source.id: ("collected on schedule", "按时采集"),
        broken.id: ("failed 6 times in a row", "连续失败 6 次"),
        busy.id: ("server asked us to wait", "服务器要求等待"),
        deferred.id: ("our own limits for this platform or host allow no request yet", "请求限制暂时不允许访问"),
        new.id: ("starts within a minute", "一分钟内就会首次采集"),
    }
    for source_id, words in asked.items():
        assert words[language == "zh"] in plain(opened(both, f"/sources/{source_id}", language=language))
    here.clock.advance(86_400)
    assert ("sources are waiting", "个来源在等待")[language == "zh"] in plain(
        opened(both, f"/sources/{source.id}", language=language)
    )


def test_why_it_is_visited_then_and_what_was_noted_is_told_in_the_readers_language(both: Desk) -> None:
    source = a_feed(both)
    reason = encode(message("tier.interval", tier="tier1", span=message("span.hours", count=2)))
    both.here.app.store.database.write(
        lambda tx: [
            tx.run("UPDATE progress SET next_due_at = last_polled_at, due_reason = ?", reason),
            tx.run("UPDATE run_sources SET notes = ?", '["junk after the feed", "new <words>"]'),
        ]
    )
    english, chinese = (plain(opened(both, f"/sources/{source.id}", language=language)) for language in ("en", "zh"))
    assert "tier1: every 2 h" in english
    assert "junk after the feed new <words>" in english
    assert "tier1：每 2 小时一次" in chinese
    both.post(f"/api/sources/{source.id}/run", status=202)
    (stored,) = both.here.app.store.database.read(lambda tx: tx.one("SELECT due_reason FROM progress")) or ()
    assert stored == "due.requested"
    english, chinese = (plain(opened(both, f"/sources/{source.id}", language=language)) for language in ("en", "zh"))
    assert "its collection was requested" in english
    assert "已请求立即采集" in chinese
    assert "订阅源之后有多余内容 new <words>" in chinese


def test_where_nobody_collects_that_is_the_reason(town: TownApp) -> None:
    desk = Desk(town, collects=False)
    source = town.follow(town.town.feed("one"), name="One")
    town.clock.advance(3600)
    assert "no process is collecting" in plain(opened(desk, f"/sources/{source.id}"))


def test_a_source_is_paused_resumed_asked_for_and_removed_by_its_buttons(both: Desk) -> None:
    source = a_feed(both)
    path = f"/sources/{source.id}"
    assert led_to(both, f"{path}/pause", reason="on leave") == f"{path}?done=paused"
    page = opened(both, f"{path}?done=paused")
    assert "Paused. It is not collected until you resume it." in page
    assert "It is paused (on leave)" in page
    assert f'action="{path}/resume"' in page
    assert f'action="{path}/run"' not in page
    assert sent(both, f"{path}/run").status_code == 409
    led_to(both, f"{path}/resume")
    assert led_to(both, f"{path}/run") == f"{path}?done=asked"
    assert "its collection was requested" in opened(both, path)
    assert led_to(both, f"{path}/remove") == "/sources?done=removed"
    opened(both, path, status=404)
    assert len(both.here.items()) == 5


def test_name_pace_and_settings_are_changed_by_a_form_that_shows_what_they_are(both: Desk) -> None:
    led_to(both, "/sources/add", kind="reddit", target="r/webdev", intent="follow", set__sort="top", set__limit="50")
    change = {"name": "Web people", "interval": "90", "priority": "high", "categories": "web, 开发，web"}
    led_to(both, "/sources/1/change", **change, set__sort="", set__limit="70", set__nonsense="1")
    shown = both.get("/api/sources/1")
    assert (shown["name"], shown["interval_minutes"], shown["priority"]) == ("Web people", 90, "high")
    assert (shown["categories"], shown["settings"]) == (["web", "开发"], {"limit": 70})
    page = opened(both, "/sources/1")
    assert 'name="set.limit" value="70"' in page
    assert 'name="interval" min="1" max="525600" value="90"' in page
    led_to(both, "/sources/1/change", name="", interval="", categories="", set__limit="")
    shown = both.get("/api/sources/1")
    assert (shown["name"], shown["interval_minutes"], shown["settings"]) == ("Web people", None, {})
    assert sent(both, "/sources/1/change", interval="never").status_code == 400


@pytest.mark.parametrize(
    ("wrong", "said", "field"),
    [
        ({"interval": "never"}, "'never' is not a number of minutes", "interval"),
        ({"priority": "huge"}, "unknown priority", "priority"),
        ({"credential": "nobody"}, "no credential named", ""),
        ({"set__links": "a["}, "not a CSS selector", "set.links"),
    ],
)
def test_what_is_wrong_with_a_change_is_said_above_the_form_which_keeps_what_was_typed(
    desk: Desk, wrong: dict[str, str], said: str, field: str
) -> None:
    led_to(desk, "/sources/add", kind="website", target="https://one.example/", intent="follow")
    before = desk.get("/api/sources/1")
    entered = {"name": "Web people", "interval": "90", "categories": "web, 开发", "set__links": "h2"}
    answer = sent(desk, "/sources/1/change", **{"priority": "high"} | entered | wrong)
    assert answer.status_code == 400
    form = answer.text[answer.text.index("<h2>Edit</h2>") : answer.text.index("<h2>Remove source</h2>")]
    assert said in unescape(form)
    assert all(f'value="{value}"' in form for name, value in entered.items() if name not in wrong)
    assert re.findall(r'class="is-wrong".*?name="([\w.]+)"', form, re.DOTALL) == ([field] if field else [])
    assert desk.get("/api/sources/1") == before


@pytest.mark.parametrize("path", ["/items?since=never", "/items?category=none", "/sources/x"])
def test_a_page_without_a_form_does_not_speak_of_its_fields(desk: Desk, path: str) -> None:
    said = plain(opened(desk, path, status=400))
    assert said.startswith("Something went wrong The input is not valid.")
    assert "field" not in said


def test_a_form_leaves_a_category_as_it_is_whatever_signs_it_has(both: Desk) -> None:
    categories = ["Tech, daily", "新闻，每日", 'The "best"', '"quoted"', "plain"]
    both.post("/api/sources", {"kind": "reddit", "target": "r/webdev", "categories": categories}, status=201)
    (field,) = re.findall(r'name="categories"[^>]* value="([^"]*)"', opened(both, "/sources/1"))
    led_to(both, "/sources/1/change", name="Web people", categories=unescape(field))
    assert both.get("/api/sources/1")["categories"] == categories


@pytest.mark.parametrize(("minutes", "shown"), [("77", "77 min"), ("90", "90 min"), ("120", "2 h"), ("2160", "36 h")])
def test_an_interval_is_shown_exactly_as_it_was_set(desk: Desk, minutes: str, shown: str) -> None:
    led_to(desk, "/sources/add", kind="reddit", target="r/webdev", intent="follow", interval=minutes)
    assert f"Interval every {shown} Complete" in plain(opened(desk, "/sources/1"))


def test_a_credential_that_does_not_exist_is_an_error_of_the_form(desk: Desk) -> None:
    answer = sent(desk, "/sources/add", kind="reddit", target="r/webdev", intent="follow", credential="nobody")
    assert (answer.status_code, "no credential named" in answer.text) == (400, True)


def test_only_known_words_are_shown_as_what_was_done(desk: Desk) -> None:
    a_feed(desk)
    for word in ("<b>hello", "nonsense", "paused "):
        assert 'role="status"' not in opened(desk, f"/sources/1?done={word}")


def test_there_is_no_such_source(desk: Desk) -> None:
    assert "Not found there is no source 7" in plain(desk.browser().get("/sources/7").text)
    for path in ("/sources/0", "/sources/x"):
        assert "Something went wrong" in desk.browser().get(path).text
    assert sent(desk, "/sources/7/pause").status_code == 404


def test_a_kind_without_a_platform_is_added_by_form_and_api_and_shown_as_such(desk: Desk) -> None:
    assert "Xiaohongshu search" in opened(desk, "/sources/add")
    assert "Stored now; collected once a platform for it is installed" in opened(desk, "/sources/add?kind=xhs_keyword")
    assert led_to(desk, "/sources/add", kind="xhs_keyword", target="tea", intent="follow") == "/sources/1?done=followed"
    for path in ("/sources", "/sources/1", "/"):
        page = opened(desk, path)
        assert path == "/" or "no platform is installed for kind &#39;xhs_keyword&#39;" in page
    desk.here.collect(desk.here.app.store.sources.get(1))
    for path in ("/sources", "/sources/1"):
        page = opened(desk, path)
        assert ">no platform</span>" in page
        assert ">on time</span>" not in page
    assert "It is not collected: no platform" in opened(desk, "/sources/1")
    added = desk.post("/api/sources", {"kind": "xhs_keyword", "target": "@nasa"}, status=201)
    assert (added["platform"], added["has_platform"]) == ("xiaohongshu", False)
    status = {source["id"]: source["status"] for source in desk.get("/api/collector/status")["sources"]}
    assert status == {1: "no_platform", 2: "no_platform"}
    tried = sent(desk, "/sources/add", kind="xhs_keyword", target="x", intent="try")
    assert (tried.status_code, "no platform is installed" in tried.text) == (400, True)
