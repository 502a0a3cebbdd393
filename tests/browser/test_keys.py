"""Everything can be reached by keys."""

from __future__ import annotations

from datetime import timedelta

from tests.browser.conftest import Site, Visitor


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
            page.wait_for_load_state()
            assert page.locator(f'.side [data-go="{letter}"]').get_attribute("aria-current") == "page", letter
        visitor.check()


def test_what_is_typed_into_a_field_is_no_command(site: Site) -> None:
    with site.visitor() as visitor:
        page = visitor.open("/items")
        page.locator("#find").focus()
        page.keyboard.type("gi?jk")
        assert (visitor.path, page.locator("#find").input_value()) == ("/items", "gi?jk")


def test_times_are_those_of_the_readers_zone_from_the_second_page_on(site: Site) -> None:
    a_paper(site, 1)
    with site.visitor(timezone_id="Asia/Shanghai") as visitor:
        visitor.open("/items")
        assert "+0800" in str(visitor.open("/items").locator("time").first.get_attribute("title"))
