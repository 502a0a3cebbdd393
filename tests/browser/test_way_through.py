"""From the first start to a well-kept archive, as people go: by clicking, and again by keys alone.

The real `serve` on a made-up internet, each a process of its own, on a clock that runs a thousand times as fast.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from catchment.playground.world import Place, World
from tests.browser.conftest import PATIENCE, Visitor

pytestmark = pytest.mark.process

START = datetime(2026, 3, 2, tzinfo=UTC)
SEED, PLACES, DAYS, BUSY = 11, 12, 30.0, 200.0
CLOCK = f"{(START + timedelta(hours=59)).isoformat()},1000"
"""From here on, the feed below edits something every hour: nobody has to wait long for it."""


class Internet:
    def __init__(self, url: str) -> None:
        self.port = int(url.rpartition(":")[2])
        world = World(SEED, START, PLACES, DAYS, busy=BUSY)
        feeds = [place for place in world.places if place.is_dated and not place.moves_at and not place.gone_at]
        self.chinese = max((feed for feed in feeds if feed.language == "zh"), key=lambda feed: feed.pace.posts_a_day)

    def address(self, place: Place) -> str:
        return f"http://{place.host}.localhost:{self.port}{place.path}"

    @property
    def lost(self) -> str:
        """Where nothing is."""
        return f"http://{self.chinese.host}.localhost:{self.port}/feeds/4040.xml"


@contextmanager
def started(*words: str, environ: dict[str, str] | None = None, line: str) -> Iterator[str]:
    """A process of ours; gives the first line that it prints with these words in it."""
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(
        command, env={**os.environ, **(environ or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield next(output for output in process.stdout if line in output)
        finally:
            process.terminate()
            process.stdout.read()


@pytest.fixture
def internet(tmp_path: Path) -> Iterator[Internet]:
    more = ("--seed", str(SEED), "--places", str(PLACES), "--days", str(DAYS), "--busy", str(BUSY))
    timed = ("--start", START.isoformat(), "--clock", CLOCK, "--home", str(tmp_path))
    with started("catchment.playground", *more, *timed, line="http://") as url:
        yield Internet(url.strip())


@pytest.fixture
def visitor(internet: Internet, tmp_path: Path, chromium: Browser) -> Iterator[Visitor]:
    environ = {"CATCHMENT_HOME": str(tmp_path), "CATCHMENT_CLOCK": CLOCK, "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1"}
    with started("catchment", "serve", "--port", "0", environ=environ, line="/login?token=") as said:
        login = re.findall(r"http://\S+", said)[0]
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
        context.set_default_timeout(PATIENCE)
        found = Visitor(context, context.new_page(), login.partition("/login")[0])
        found.page.goto(login)
        yield found
        context.close()


def until(page: Page, path: str, selector: str) -> None:
    """Open the page again and again, until it shows that."""
    for _ in range(PATIENCE // 1_000):
        page.goto(path)
        if page.locator(selector).count():
            return
        # Every page takes its time from the server that we wait for.
        page.wait_for_timeout(1_000)
    raise AssertionError(f"{path} never showed {selector}")


def a_word_of(page: Page) -> str:
    """Two Chinese characters that stand together in what is listed."""
    titles = page.locator("a.headline").all_inner_texts()
    return next(found[0] for title in titles if (found := re.search("[\u4e00-\u9fff]{2}", title)))


def test_by_clicking(visitor: Visitor, internet: Internet) -> None:
    page, base = visitor.page, visitor.base
    # first start
    expect(page.locator("h1")).to_contain_text("No sources yet")
    # add a source, tried before it is followed
    page.locator(".side a[href='/sources']").click()
    page.locator("main a[href='/sources/add']").first.click()
    page.locator("main a[href*='kind=rss'], main button[value='rss']").first.click()
    page.get_by_label("Address or name").fill(internet.address(internet.chinese))
    page.get_by_label("Interval in minutes").fill("5")
    page.get_by_role("button", name="Test first").click()
    expect(page.locator("#preview li").first).to_be_visible()
    page.get_by_role("button", name="Add source", exact=True).click()
    page.wait_for_url("**/sources/1*")
    # its first collection shows without anybody opening the page again
    expect(page.locator("#collections a.headline").first).to_be_visible()
    expect(page.locator("[data-awaits]")).to_have_count(0)
    # see items
    until(page, f"{base}/items", "a.headline")
    word = a_word_of(page)
    # search a word of two characters
    page.locator("#find").fill(word)
    page.locator("#find").press("Enter")
    page.wait_for_url("**/search?q=*")
    expect(page.locator("mark").first).to_have_text(word)
    # read an item with a diff
    until(page, f"{base}/items?state=edited", "a.headline")
    page.locator("a.headline").first.click()
    expect(page.locator("#history ins, #history del").first).to_be_visible()
    # pause
    page.locator("article .source").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    # an alert
    page.goto(f"{base}/sources/add?kind=rss")
    page.get_by_label("Address or name").fill(internet.lost)
    page.get_by_label("Interval in minutes").fill("1")
    page.get_by_role("button", name="Add source", exact=True).click()
    until(page, f"{base}/alerts", "main .tag.is-bad")
    # language and colours
    page.locator("footer button", has_text="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.locator("footer button", has_text="深色").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert (visitor.dialogs, visitor.complaints, visitor.strangers) == ([], [], [])


def tab_to(page: Page, selector: str) -> None:
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"no way to {selector} by keys")


def go(page: Page, path: str) -> None:
    key = page.locator(f"[data-go][href='{path}']").first.get_attribute("data-go")
    page.keyboard.press("g")
    page.keyboard.press(str(key))
    page.wait_for_url(f"**{path}")


def test_by_keys_alone(visitor: Visitor, internet: Internet) -> None:
    page, base = visitor.page, visitor.base
    go(page, "/sources")
    tab_to(page, "main a[href='/sources/add']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sources/add")
    tab_to(page, "main a[href*='kind=rss'], main button[value='rss']")
    page.keyboard.press("Enter")
    page.wait_for_url("**kind=rss*")
    tab_to(page, "input[name=target]")
    page.keyboard.type(internet.address(internet.chinese))
    tab_to(page, "input[name=interval]")
    page.keyboard.type("5")
    tab_to(page, "button[value=follow]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sources/1*")
    until(page, f"{base}/items", "a.headline")
    word = a_word_of(page)
    page.keyboard.press("/")
    page.keyboard.type(word)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    until(page, f"{base}/items?state=edited", "a.headline")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/items/*")
    expect(page.locator("#history ins, #history del").first).to_be_visible()
    tab_to(page, "article .source")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sources/1")
    tab_to(page, "form[action$='/pause'] button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    tab_to(page, "footer button[value=zh]")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    assert (visitor.dialogs, visitor.complaints, visitor.strangers) == ([], [], [])
