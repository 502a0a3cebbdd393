"""Pages that everybody can use: axe finds nothing serious, in light and dark, English and Chinese, wide and narrow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Response

from tests.browser.conftest import EVERY_PLACE, Site

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def a_lively_place(site: Site) -> None:
    feed, now = site.here.town.feed("one", window=40), site.here.clock.now()
    source = site.here.follow(feed, name="Gazette")
    for number in range(40):
        feed.post(f"p{number}", "<p>old words</p>", title=f"Title {number}", at=now - timedelta(hours=number))
    site.here.collect(source)
    feed.post("p0", "<p>new words, and a <a href='https://x.example/'>link</a></p>", title="Title 0", at=now)
    site.here.collect(source)
    site.index()


PAGES = (
    "/", "/items", "/items?kind=entry&state=edited", "/items?tag=none", "/items?order=replied", "/items/1",
    "/search", "/search?q=words", *EVERY_PLACE,
)  # fmt: skip


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"color_scheme": "light", "viewport": WIDE, "locale": "zh-CN"}, "light, wide and Chinese"),
        ({"color_scheme": "dark", "viewport": PHONE}, "dark and narrow"),
    ],
)
def test_every_page_is_accessible_fits_its_window_and_is_small_at_first_view(
    site: Site, how: dict[str, Any], name: str
) -> None:
    """One look at each page answers all three: opening them is what takes the time."""
    a_lively_place(site)
    found = []
    with site.visitor(**how) as visitor:
        answers: list[Response] = []
        visitor.page.on("response", lambda answer: answers.append(answer))
        # As on a first visit: a browser that is looked over the shoulder keeps nothing from page to page.
        visitor.page.route("**/*", lambda route: route.continue_())
        for path in PAGES:
            answers.clear()
            page = visitor.open(path)
            # What is running is told as long as the page is open: that has no end.
            sizes = {answer.url: len(answer.body()) for answer in answers if not answer.url.endswith("/live")}
            loaded = [url.rpartition(".")[2] for url in sizes if "/static/" in url]
            found += [f"{path}: loads {loaded}"] if loaded != ["css", "js"] else []
            found += [f"{path}: is large: {sizes}"] if sum(sizes.values()) >= 150_000 else []
            if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                found.append(f"{path}: is wider than its window")
            results = Axe().run(page)
            found += [
                f"{path}: {violation['id']}: {node['target']}"
                for violation in results.response["violations"]
                if violation["impact"] in ("serious", "critical")
                for node in violation["nodes"]
            ]
        visitor.check()
    assert found == [], name


def test_everything_is_there_without_scripts(site: Site) -> None:
    a_lively_place(site)
    with site.visitor(java_script_enabled=False) as visitor:
        page = visitor.open("/items")
        page.locator("summary", has_text="Filters").click()
        page.locator("select[name=state]").select_option("edited")
        page.locator("form.fields button").click()
        assert page.locator("[data-row] h2").all_inner_texts() == ["Title 0"]
        page.locator("a.headline").first.click()
        assert page.locator("ins").first.inner_text().startswith("new")
        page.locator("footer button", has_text="Dark").click()
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.locator("footer button", has_text="中文").click()
        assert page.locator("html").get_attribute("lang") == "zh"
