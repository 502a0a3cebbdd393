"""Everything can be reached by keys."""

from __future__ import annotations

import re
from datetime import timedelta

from playwright.sync_api import expect

from catchment.errors import Missing
from catchment.model import Watch
from tests.browser.conftest import Site, Visitor

LISTS = (
    "/", "/items", "/search?q=天气", "/sources", "/sources/1", "/runs", "/runs/1", "/alerts", "/credentials",
    "/watches",
)  # fmt: skip


def a_paper(site: Site, count: int = 40) -> None:
    feed = site.here.town.feed("one", window=count)
    for number in range(count):
        feed.post(f"p{number}", "天气很好", title=f"Title {number}", at=site.here.clock.now() - timedelta(hours=number))
    site.here.collect(site.here.follow(feed, name="Gazette"))
    site.index()


def focused(visitor: Visitor) -> str:
    return str(visitor.page.evaluate("document.activeElement.textContent.trim()"))


def test_j_and_k_go_through_the_list_and_enter_opens(site: Site) -> None:
    a_paper(site)
    with site.visitor() as visitor:
        page = visitor.open("/items")
        for key, title in (("j", "Title 0"), ("j", "Title 1"), ("j", "Title 2"), ("k", "Title 1")):
            page.keyboard.press(key)
            assert focused(visitor) == title
        page.keyboard.press("Enter")
        page.wait_for_url("**/items/*")
        assert page.locator("h1").inner_text() == "Title 1"
        visitor.check()


def test_a_slash_searches_and_n_turns_the_page(site: Site) -> None:
    a_paper(site)
    with site.visitor() as visitor:
        page = visitor.open("/items")
        page.keyboard.press("/")
        page.keyboard.type("天气")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?q=*")
        assert page.locator("mark").first.inner_text() == "天气"
        page.keyboard.press("n")
        page.wait_for_url("**after=*")
        assert page.locator("[data-row]").count() == 10
        visitor.check()


def test_g_and_a_letter_go_to_a_page_and_a_question_mark_tells_which(site: Site) -> None:
    a_paper(site, 3)
    with site.visitor() as visitor:
        page = visitor.open("/")
        page.keyboard.press("?")
        assert page.locator("dialog#keys").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator("dialog#keys").is_visible()
        letters = page.locator("[data-go]").evaluate_all("links => [...new Set(links.map(a => a.dataset.go))]")
        for letter in letters:
            page.keyboard.press("g")
            page.keyboard.press(letter)
            expect(page.locator(f'.side [data-go="{letter}"]')).to_have_attribute("aria-current", "page")
        visitor.check()


def test_what_is_typed_into_a_field_is_no_command(site: Site) -> None:
    with site.visitor() as visitor:
        page = visitor.open("/items")
        page.locator("#find").focus()
        page.keyboard.type("gi?jk")
        assert (visitor.path, page.locator("#find").input_value()) == ("/items", "gi?jk")


def test_times_are_those_of_the_readers_zone_from_the_first_page_on(site: Site) -> None:
    a_paper(site, 1)
    with site.visitor(timezone_id="Asia/Shanghai") as visitor:
        expect(visitor.page.locator("time").first).to_have_attribute("title", re.compile(r"\+0800"))
        assert "+0800" in str(visitor.open("/items").locator("time").first.get_attribute("title"))
        visitor.check()


def test_j_finds_the_first_of_every_list(site: Site) -> None:
    now = site.here.clock.now()
    site.here.app.store.credentials.add("feeds", "reader", "key", b"sealed", now)
    site.here.app.store.watches.add(Watch("weather", ("天气",)), now)
    a_paper(site)
    lost = site.here.town.feed("two")
    lost.says.extend([Missing("the feed is not there", status=404)] * 6)
    source = site.here.follow(lost, name="An old blog")
    for _ in range(6):
        site.here.collect(source)
    with site.visitor() as visitor:
        for path in LISTS:
            page = visitor.open(path)
            page.keyboard.press("j")
            assert page.evaluate("Boolean(document.activeElement.closest('[data-list] [data-row]'))"), path
        visitor.check()


def test_the_way_out_is_reached_by_tab_and_shut_behind(site: Site) -> None:
    with site.visitor() as visitor:
        page = visitor.open("/settings")
        while focused(visitor) != "Sign out":
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement !== document.body"), "no way out by keys"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "Sign in with the link printed in the terminal" in page.locator("h1").inner_text()
        assert visitor.open("/items").locator("#find").count() == 0


def test_the_way_out_is_clicked_without_scripts_on_a_phone(site: Site) -> None:
    with site.visitor(java_script_enabled=False, viewport={"width": 390, "height": 844}) as visitor:
        page = visitor.open("/items")
        page.get_by_text("Menu", exact=True).click()
        with page.expect_navigation():
            page.locator(".menu").get_by_role("button", name="Sign out").click()
        assert page.locator("#find").count() == 0
