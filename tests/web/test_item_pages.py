"""Reading in a browser: the list and its filters, the search, the item with all that became of it."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from catchment.model import Answer, Request
from catchment.platforms import feeds
from tests.store.desk import Desk as StoreDesk
from tests.store.desk import post
from tests.web.browser import led_to, links_of, plain
from tests.web.desk import Desk

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ATOM = "{http://www.w3.org/2005/Atom}"


def opened(desk: Desk, path: str, *, status: int = 200, language: str = "en") -> str:
    answer = desk.browser(language).get(path)
    assert answer.status_code == status, answer.text
    return str(answer.text)


def titles(page: str) -> list[str]:
    return [unescape(title) for title in re.findall(r'<a class="headline"[^>]*>(.*?)</a>', page)]


def a_feed(desk: Desk, count: int, name: str = "Gazette", **more: Any) -> None:
    feed = desk.here.town.feed(name.lower().replace(" ", "-"), window=count)
    for number in range(count):
        feed.post(f"{name}-{number}", title=f"{name} {number}", at=desk.here.clock.now() - number * HOUR, **more)
    desk.here.collect(desk.here.follow(feed, name=name))
    while desk.here.app.store.index.advance():
        pass


# ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_list_goes_on_page_by_page_and_every_page_has_an_address(both: Desk) -> None:
    a_feed(both, 45)
    browser = both.browser()
    first = browser.get("/items").text
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = browser.get(unescape(onwards)).text
    assert titles(first) + titles(second) == [f"Gazette {number}" for number in range(45)]
    assert 'rel="next"' not in second
    assert 'rel="prev"' in second


def answered(desk: Desk, *replies: tuple[str, int], **more: Any) -> None:
    """Posts, and how many days ago each was answered last; nothing is known of it for 0."""
    at = StoreDesk(desk.here.app.store, desk.here.clock)
    told = [
        post(key, title=key, created_at=at.now - 99 * DAY, last_reply_at=at.now - days * DAY if days else None, **more)
        for key, days in replies
    ]
    at.show(at.follow(), *told)
    at.presence.leave(at.now)
    while desk.here.app.store.index.advance():
        pass


def test_the_list_by_last_reply_has_what_was_answered_and_says_so(both: Desk) -> None:
    answered(both, ("old", 9), ("silent", 0), ("lively", 1), ("middling", 3), author="ada")
    page = opened(both, "/items?order=replied")
    assert titles(page) == ["lively", "middling", "old"]
    assert page.count("last reply <time") == 3
    assert "Items without a known reply are not listed" in page
    # A filter keeps the order, the order keeps the filter; a feed of the list has both.
    assert '<input type="hidden" name="order" value="replied">' in page
    page = opened(both, "/items?order=replied&author=ada&since=2000-01-01")
    assert titles(page) == ["lively", "middling", "old"]
    (by_time, by_reply) = re.findall(r'<a href="([^"]+)"(?: aria-current="true")?>By ', page)
    assert unescape(by_time) == "/items?author=ada&since=2000-01-01"
    assert unescape(by_reply) == "/items?order=replied&author=ada&since=2000-01-01"
    assert len(titles(opened(both, unescape(by_time)))) == 4
    told = both.browser().get(formats(page)["JSON Feed"]).json()
    assert [item["title"] for item in told["items"]] == ["lively", "middling", "old"]
    assert told["title"].startswith("catchment · Items by last reply")
    lines = both.browser().get(formats(page)["CSV"]).text.splitlines()
    assert all(line["last_reply_at"] for line in csv.DictReader(lines))


def test_the_list_by_last_reply_goes_on_page_by_page(both: Desk) -> None:
    answered(both, *((f"{number}", 1 + number * 7 % 45) for number in range(45)))
    first = opened(both, "/items?order=replied")
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', first)
    found = titles(first) + titles(opened(both, unescape(onwards)))
    assert found == sorted(map(str, range(45)), key=lambda key: int(key) * 7 % 45)


def test_where_nothing_was_answered_the_list_by_last_reply_explains_itself(desk: Desk) -> None:
    a_feed(desk, 2)
    page = opened(desk, "/items?order=replied")
    assert "No replies yet" in page
    assert '<a class="button primary" href="/items">By posting time</a>' in page
    assert "还没有已知的回复" in opened(desk, "/items?order=replied", language="zh-CN")
    # What is no order is none; the list is as it always is.
    assert len(titles(opened(desk, "/items?order=sideways"))) == 2


def test_an_item_tells_when_it_was_last_answered(desk: Desk) -> None:
    answered(desk, ("lively", 1), ("silent", 0))
    (lively, silent) = (item["id"] for item in reversed(desk.get("/api/items")["items"]))
    assert "last reply <time" in opened(desk, f"/items/{lively}")
    assert "last reply" not in opened(desk, f"/items/{silent}")


def test_an_empty_archive_teaches_the_next_step(desk: Desk) -> None:
    page = opened(desk, "/items")
    assert "No items yet" in page
    assert 'href="/sources/add"' in page


def test_what_is_filtered_by_is_shown_and_can_be_taken_away(both: Desk) -> None:
    a_feed(both, 2)
    a_feed(both, 2, "Other Paper")
    page = opened(both, "/items?source=1&kind=entry&since=2020-01-01")
    assert titles(page) == ["Gazette 0", "Gazette 1"]
    assert "<b>Gazette</b>" in page
    without = [unescape(href) for href in re.findall(r'<a href="(/items[^"]*)" aria-label="Remove', page)]
    assert set(without) == {
        "/items?kind=entry&since=2020-01-01",
        "/items?source=1&since=2020-01-01",
        "/items?kind=entry&source=1",
    }
    assert "No items match" in opened(both, "/items?tag=nowhere")


def test_edited_and_deleted_items_can_be_listed(both: Desk) -> None:
    a_feed(both, 3)
    feed = both.here.town.feed("gazette")
    feed.post("Gazette-1", "other words", title="Gazette 1", at=both.here.clock.now() - HOUR)
    both.here.collect(both.here.app.store.sources.get(1))
    assert titles(opened(both, "/items?state=edited")) == ["Gazette 1"]
    assert titles(opened(both, "/items?state=deleted")) == []
    assert len(titles(opened(both, "/items?state=present"))) == 3


def test_a_day_is_the_readers_own_and_belongs_to_what_it_ends(desk: Desk) -> None:
    a_feed(desk, 48)
    browser = desk.browser()
    days = {}
    for zone in ("UTC", "Asia/Shanghai"):
        browser.cookies.set("catchment_zone", zone)
        day = (desk.here.clock.now() - 24 * HOUR).date()
        days[zone] = titles(browser.get(f"/items?since={day}&until={day}").text)
    assert len(days["UTC"]) == len(days["Asia/Shanghai"]) == 24
    assert days["UTC"] != days["Asia/Shanghai"]


@pytest.mark.parametrize(
    "query",
    [
        "source=99999999999999999999",
        "since=someday",
        "after=1-2-3",
        "after=x",
        "kind=entyr",
        "platform=redit",
    ],
)
def test_what_cannot_be_understood_is_said_in_plain_words(desk: Desk, query: str) -> None:
    page = opened(desk, f"/items?{query}", status=400)
    assert "Something went wrong" in page
    assert "Traceback" not in page


@pytest.mark.parametrize(("path", "status"), [("/items?", 400), ("/search?q=fox&", 200), ("/sources?", 400)])
def test_a_kind_that_there_is_not_is_said_so_with_the_nearest_one(desk: Desk, path: str, status: int) -> None:
    page = opened(desk, f"{path}kind=rsss", status=status)
    assert "unknown kind" in page
    assert "did you mean rss?" in page


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_words_that_were_looked_for_are_marked(both: Desk) -> None:
    feed = both.here.town.feed("one")
    feed.post("p1", "<p>明天天气很好 & sunny</p>", title="天气预报", at=both.here.clock.now())
    both.here.collect(both.here.follow(feed, name="Weather"))
    page = opened(both, "/search?q=天气")
    assert "<mark>天气</mark>预报" in page
    assert "明天<mark>天气</mark>很好 &amp; sunny" in page
    assert "No results" in opened(both, "/search?q=snow")
    assert "All words occur" in opened(both, "/search")


def test_a_question_that_cannot_be_asked_is_said_on_the_page(desk: Desk) -> None:
    assert 'class="notice"' in opened(desk, "/search?q=%22")


# ── the item ──────────────────────────────────────────────────────────────────────────────────────────────────────


def an_edited_item(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    source = desk.here.follow(feed, name="Gazette")
    for text in ("<p>The old bridge is closed.</p>", "<p>The new bridge is closed.</p>"):
        feed.post("p1", text, title="Bridge", at=desk.here.clock.now() - HOUR)
        desk.here.collect(source)
        desk.here.clock.advance(3600)


def test_an_item_shows_what_it_says_and_what_it_said(both: Desk) -> None:
    an_edited_item(both)
    page = opened(both, "/items/1")
    assert "The new bridge is closed." in page
    assert "The <del>old</del><ins>new</ins> bridge is closed." in page
    assert "content changed" in page
    then = re.findall(r'href="(/items/1\?at=[^"]+)"', page)
    assert "The old bridge is closed." in opened(both, unescape(then[0]))
    assert "内容变化" in opened(both, "/items/1", language="zh")


def test_there_is_no_such_item(desk: Desk) -> None:
    assert "Not found there is no item 77" in plain(opened(desk, "/items/77", status=404))
    assert "没有编号为 77 的条目" in opened(desk, "/items/77", status=404, language="zh")


def test_the_page_of_a_former_version_has_the_whole_history_and_says_until_when_it_held(desk: Desk) -> None:
    an_edited_item(desk)
    then = quote(desk.get("/api/items/1/revisions")["items"][0]["valid_from"])
    page = plain(opened(desk, f"/items/1?at={then}"))
    assert "The old bridge is closed." in page
    assert "Current until" in page
    assert "Unchanged since it was first seen" not in page
    assert "Revision 1" in page


def test_a_time_before_an_item_was_first_seen_is_said_to_be_unknown_and_leads_to_the_first_version(desk: Desk) -> None:
    an_edited_item(desk)
    page = opened(desk, "/items/1?at=2001-01-01", status=404)
    assert "This item was first seen on" in plain(page)
    assert "Page not found" not in page
    (first,) = [link for link in links_of(page) if "?at=" in link]
    assert "The old bridge is closed." in opened(desk, first)
    assert "此条目首次发现于" in opened(desk, "/items/1?at=2001-01-01", status=404, language="zh")


@pytest.mark.parametrize("since", ["yesterday", "2d", "12h", "昨天"])
def test_a_page_understands_a_time_counted_back_from_now(desk: Desk, since: str) -> None:
    an_edited_item(desk)
    assert "/items/1" in links_of(opened(desk, f"/items?since={quote(since)}"))
    assert "/items/1" not in links_of(opened(desk, "/items?until=2d"))


def test_html_of_strangers_is_harmless_on_the_page_even_if_it_were_not_in_the_store(desk: Desk) -> None:
    an_edited_item(desk)
    hostile = (
        '<p onclick="x()">hello <script>alert(1)</script><img src="https://spy.example/p.gif">'
        '<a href="javascript:x()">a</a><a href="https://good.example/">b</a>'
        '<form action="/logout"><button>c</button></form><iframe src="/"></iframe></p>'
    )
    desk.here.app.store.database.write(lambda tx: tx.run("UPDATE items SET html = ? WHERE id = 1", hostile))
    said = re.search(r'<div class="said".*?</div>', opened(desk, "/items/1"), re.DOTALL)
    assert said
    assert not re.search(r"<script|<img|<form|<button|<iframe|onclick|javascript:", said[0])
    assert '<a href="https://good.example/" rel="noopener noreferrer nofollow">b</a>' in said[0]


# ── the way in, and changes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/", "/items", "/items/1", "/search?q=x"])
def test_nobody_reads_without_coming_in(desk: Desk, path: str) -> None:
    answer = desk.caller({"Accept": "text/html"}).get(path)
    assert answer.status_code == 401
    assert "Sign in with the link printed in the terminal" in answer.text


def test_a_key_of_the_api_lets_in_too(desk: Desk) -> None:
    browser = desk.caller({"Accept": "text/html"})
    assert "This API key is not valid." in browser.post("/login", data={"key": "wrong"}).text
    answer = browser.post("/login", data={"key": desk.key, "back": "/items"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/items")
    assert "HttpOnly; Max-Age=2592000; Path=/; SameSite=lax" in answer.headers["set-cookie"]
    assert browser.get("/items").status_code == 200


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", ""])
def test_the_way_back_stays_here(desk: Desk, back: str) -> None:
    assert desk.browser().post("/preferences", data={"back": back, "theme": "dark"}).headers["location"] == "/"


def test_language_and_colours_are_the_readers_choice_and_stay(desk: Desk) -> None:
    browser = desk.browser()
    answer = browser.post("/preferences", data={"back": "/items", "theme": "dark", "language": "zh"})
    assert answer.headers["location"] == "/items"
    page = browser.get("/items").text
    assert '<html lang="zh" data-theme="dark">' in page
    assert "条目" in page
    browser.post("/preferences", data={"theme": "pink", "language": "fr"})
    assert '<html lang="zh" data-theme="dark">' in browser.get("/items").text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_a_change_that_another_page_asks_for_is_refused(desk: Desk, headers: dict[str, str]) -> None:
    browser = desk.browser()
    (token,) = {desk.context.sessions.token_of(browser.cookies[desk.context.sessions.cookie_name])}
    assert browser.post("/preferences", data={"theme": "dark"}, headers=headers).status_code == 403
    assert browser.post("/logout", data={"token": token}, headers=headers).status_code == 403
    assert browser.post("/logout", data={"token": token}).status_code == 303
    assert browser.get("/items").status_code == 401


def test_a_change_needs_the_token_of_its_reader(desk: Desk) -> None:
    browser = desk.browser()
    for data in ({}, {"token": ""}, {"token": "0" * 64}):
        assert browser.post("/logout", data=data).status_code == 403
    assert browser.get("/items").status_code == 200


@pytest.mark.parametrize(("language", "word"), [("en", "Sign out"), ("zh", "退出登录")])
def test_every_page_has_a_way_out_and_whoever_takes_it_is_outside(desk: Desk, language: str, word: str) -> None:
    browser = desk.browser(language)
    form = re.search(r'<form[^>]*method="post" action="/logout">(.*?)</form>', browser.get("/settings").text)
    assert form is not None
    assert f">{word}</button>" in form[1]
    token = re.findall(r'name="token" value="([^"]+)"', form[1])[0]
    answer = browser.post("/logout", data={"token": token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    outside = browser.get("/")
    assert outside.status_code == 401
    assert "/logout" not in outside.text


def test_times_are_told_in_the_readers_zone(desk: Desk) -> None:
    an_edited_item(desk)
    browser = desk.browser()
    browser.cookies.set("catchment_zone", "Asia/Shanghai")
    assert "+0800" in browser.get("/items/1").text
    browser.cookies.set("catchment_zone", "../../etc/passwd")
    assert "+0000" in browser.get("/items/1").text


# ── the same list, for others ─────────────────────────────────────────────────────────────────────────────────────


def formats(page: str) -> dict[str, str]:
    return {name: unescape(href) for href, name in re.findall(r'<a href="([^"]+)" type="[^"]+">([^<]+)</a>', page)}


def a_paper(desk: Desk) -> None:
    feed = desk.here.town.feed("paper")
    now = desk.here.clock.now()
    feed.post("p1", "<p>one & <b>two</b></p><script>x()</script>", title="=1+1 & more", at=now - HOUR)
    feed.post("p2", "<p>天气很好</p>", title="天气", at=now)
    desk.here.collect(desk.here.follow(feed, name="Paper"))


def test_every_list_is_a_feed_and_a_table_too(both: Desk) -> None:
    a_paper(both)
    browser = both.browser()
    for path in ("/items", "/items?source=1", "/search?q=天气"):
        found = formats(browser.get(path).text)
        assert set(found) == {"Atom", "JSON Feed", "CSV", "JSONL"}
        expected = ["天气"] if "search" in path else ["天气", "=1+1 & more"]
        feed = ElementTree.fromstring(browser.get(found["Atom"]).content)
        assert [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")] == expected
        assert [item["title"] for item in browser.get(found["JSON Feed"]).json()["items"]] == expected
        rows = list(csv.DictReader(browser.get(found["CSV"]).text.splitlines()))
        assert [row["title"] for row in rows] == [title.replace("=", "'=") for title in expected]
        lines = browser.get(found["JSONL"]).text.splitlines()
        assert [json.loads(line)["title"] for line in lines] == expected


def test_our_own_reader_understands_our_feeds(desk: Desk) -> None:
    a_paper(desk)
    browser = desk.browser()
    for name in ("Atom", "JSON Feed"):
        answer = browser.get(formats(browser.get("/items").text)[name])
        assert answer.headers["content-type"].startswith(("application/atom+xml", "application/feed+json"))
        told = Answer(200, {}, answer.content, "http://127.0.0.1:8700/items", desk.here.clock.now())
        items = feeds.read(told, Request("http://127.0.0.1:8700/items")).items
        assert [(item.title, item.url) for item in items] == [
            ("天气", "https://feeds.example/p2"),
            ("=1+1 & more", "https://feeds.example/p1"),
        ]
        assert "<script" not in answer.text


def test_a_sealed_address_opens_that_list_and_nothing_else(desk: Desk) -> None:
    a_paper(desk)
    stranger = desk.caller()
    sealed = formats(desk.browser().get("/items?source=1").text)["Atom"]
    assert stranger.get(sealed).status_code == 200
    assert stranger.get(f"{sealed}&lang=zh").status_code == 200
    for other in (
        sealed.replace("source=1", "source=2"),
        sealed.replace("format=atom", "format=csv"),
        sealed.replace("/items", "/search"),
        sealed.replace("&format=atom", ""),
        f"{sealed}&author=bo",
        sealed[:-1],
        "/items?format=atom",
    ):
        assert stranger.get(other).status_code == 401, other


def test_a_long_list_tells_where_it_goes_on(desk: Desk) -> None:
    a_feed(desk, 60)
    browser = desk.browser()
    answer = browser.get(formats(browser.get("/items").text)["JSON Feed"])
    first = [item["title"] for item in answer.json()["items"]]
    more = desk.caller().get(answer.links["next"]["url"]).json()["items"]
    assert first + [item["title"] for item in more] == [f"Gazette {number}" for number in range(60)]


def test_an_unknown_format_is_said(desk: Desk) -> None:
    assert "known formats" in opened(desk, "/items?format=pdf", status=400)


def test_a_thread_shows_what_was_said_in_it(both: Desk) -> None:
    a_feed(both, 40)
    both.here.app.store.database.write(
        lambda tx: tx.run("UPDATE items SET thread_id = 'a topic', is_head = external_id = 'Gazette-39'")
    )
    head = next(
        item["id"] for item in both.get("/api/items", limit=200)["items"] if item["external_id"] == "Gazette-39"
    )
    said = both.pages(f"/api/items/{head}/replies", limit=25)
    expected = [f"Gazette {number}" for number in range(38, -1, -1)]
    assert [item["title"] for page in said for item in page] == expected
    page = opened(both, f"/items/{head}")
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', page)
    assert titles(page) + titles(opened(both, unescape(onwards).partition("#")[0])) == expected
    assert both.get(f"/api/items/{head - 1}/replies")["items"] == []


# ── images within texts ───────────────────────────────────────────────────────────────────────────────────────────

PICTURES = (
    '<p>Look: <img src="https://img.example/cat.png?a=1&amp;b=2" alt="A cat &quot;on&quot; a wall" onerror="x()"></p>'
    '<p><a href="https://good.example/"><img src="https://img.example/dog.png" alt="dog"></a>'
    '<img src="data:image/png;base64,AAAA" alt="inline"></p>'
)


def an_item_with_pictures(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    feed.post("p1", PICTURES, title="Pictures", at=desk.here.clock.now())
    desk.here.collect(desk.here.follow(feed, name="Gazette"))


def body_of(page: str) -> str:
    (said,) = re.findall(r'<div class="said"[^>]*>(.*?)</div>', page, re.S)
    return str(said)


def test_images_are_shown_as_their_text_with_a_link_and_nothing_is_loaded(desk: Desk) -> None:
    an_item_with_pictures(desk)
    answer = desk.browser().get("/items/1")
    said = body_of(answer.text)
    assert "<img" not in said
    assert 'href="https://img.example/cat.png?a=1&amp;b=2"' in said
    assert "[image: A cat &#34;on&#34; a wall]</a>" in said
    # An image within a link does not make a link within a link.
    assert re.search(r'<a href="https://good.example/"[^>]*>\[image: dog\]</a>', said)
    assert "img-src data:;" in answer.headers["content-security-policy"]
    assert "[图片: A cat" in opened(desk, "/items/1", language="zh")


def test_images_are_loaded_where_a_reader_asks_for_it_and_only_there(desk: Desk) -> None:
    an_item_with_pictures(desk)
    browser = desk.browser()
    (link,) = re.findall(r'href="(/items/1\?images=[^"]+)"', browser.get("/items/1").text)
    answer = browser.get(link)
    images = re.findall(r"<img[^>]*>", body_of(answer.text))
    assert len(images) == 2
    assert all('referrerpolicy="no-referrer"' in image and 'loading="lazy"' in image for image in images)
    assert "onerror" not in answer.text
    assert "img-src data: https: http:;" in answer.headers["content-security-policy"]
    assert "img-src data:;" in browser.get("/items").headers["content-security-policy"]
    assert "img-src data:;" in browser.get("/items/1").headers["content-security-policy"]
    browser.post("/preferences", data={"images": "on", "back": "/items/1"})
    assert "<img" in browser.get("/items/1").text
    browser.post("/preferences", data={"images": "off", "back": "/items/1"})
    assert "<img" not in browser.get("/items/1").text


@pytest.mark.parametrize("value", ["1", "on", "0" * 32])
def test_a_link_that_somebody_else_has_made_loads_no_images(desk: Desk, value: str) -> None:
    """It may stand in a text that was collected: its author would learn who follows it, and from where."""
    an_item_with_pictures(desk)
    answer = desk.browser().get(f"/items/1?images={value}")
    assert "<img" not in body_of(answer.text)
    assert "img-src data:;" in answer.headers["content-security-policy"]


def test_images_of_a_source_are_loaded_once_somebody_has_said_so(desk: Desk) -> None:
    an_item_with_pictures(desk)
    assert led_to(desk, "/sources/1/images", load="1", back="/items/1") == "/items/1?done=images_on"
    assert "<img" in opened(desk, "/items/1")
    led_to(desk, "/sources/1/images", load="", back="/items/1")
    assert "<img" not in opened(desk, "/items/1")


def test_feeds_keep_images(desk: Desk) -> None:
    an_item_with_pictures(desk)
    browser = desk.browser()
    assert 'img src="https://img.example/cat.png?a=1&amp;amp;b=2"' in browser.get("/items?format=atom").text.replace(
        "&lt;", ""
    ).replace("&quot;", '"')
    assert "img.example/dog.png" in browser.get("/items?format=json").json()["items"][0]["content_html"]


# ── sources and categories to choose from ─────────────────────────────────────────────────────────────────────────


def two_gazettes(desk: Desk) -> None:
    for name, folder in (("Gazette North", "News"), ("Gazette South", "Science")):
        feed = desk.here.town.feed(name.lower().replace(" ", "-"))
        feed.post(name, title=f"From {name}", at=desk.here.clock.now())
        source = desk.here.follow(feed, name=name)
        desk.here.app.store.sources.change(source.id, categories=[folder])
        desk.here.collect(source)


@pytest.mark.parametrize("path", ["/items?", "/search?q=From&"])
def test_a_list_is_filtered_by_a_source_s_name(desk: Desk, path: str) -> None:
    two_gazettes(desk)
    page = opened(desk, f"{path}source=gazette+south")
    assert titles(page) == ["From Gazette South"] or "South" in plain(page)
    assert "North" not in re.sub(r"<datalist.*?</datalist>", "", page, flags=re.S)
    # The field shows the name, and the addresses of the page carry the number.
    assert 'name="source" list="source-names"' in page
    assert 'value="Gazette South"' in page
    assert "source=2" in page


def test_a_name_that_means_several_sources_is_a_choice(desk: Desk) -> None:
    two_gazettes(desk)
    page = opened(desk, "/items?source=gazette")
    assert "Several sources match “gazette”:" in page
    assert {"/items?source=1", "/items?source=2"} <= set(links_of(page))
    assert titles(page) == []
    assert "There is no source named “nobody”." in opened(desk, "/items?source=nobody")
    assert "没有名为“nobody”的来源。" in opened(desk, "/items?source=nobody", language="zh")


def test_sources_of_the_same_name_are_told_apart_by_their_ids(desk: Desk) -> None:
    for name in ("one", "two"):
        desk.here.follow(desk.here.town.feed(name), name="Gazette")
    page = opened(desk, "/items?source=gazette")
    assert "Several sources match “gazette”: Gazette (1) Gazette (2)" in plain(page)
    assert '<option value="1">Gazette</option><option value="2">Gazette</option>' in page


def test_lists_of_items_and_of_sources_are_filtered_by_category(desk: Desk) -> None:
    two_gazettes(desk)
    assert titles(opened(desk, "/items?category=science")) == ["From Gazette South"]
    assert titles(opened(desk, "/items?category=News")) == ["From Gazette North"]
    assert "From" in plain(opened(desk, "/search?q=From&category=News"))
    page = opened(desk, "/sources?category=Science")
    assert ("Gazette South" in page, "Gazette North" in page) == (True, False)
    assert '<option value="News">News (1)</option>' in page
    assert "unknown category" in opened(desk, "/items?category=nowhere", status=400)
    listed = desk.get("/api/items", category="science")["items"]
    assert [item["title"] for item in listed] == ["From Gazette South"]
    assert [item["name"] for item in desk.get("/api/sources", category="NEWS")["items"]] == ["Gazette North"]
