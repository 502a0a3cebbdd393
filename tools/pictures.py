"""For the README: `python -m tools.pictures` takes pictures of the pages, from the demo, into docs/images.

Needs the packages of `make test`, and a Chromium. The demo is the same each time; only what the clock says differs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE: ViewportSize = {"width": 1200, "height": 1180}
RATE, SECONDS = 240, 200
"""How fast and how long the demo runs before the first picture: by then there are failures, recoveries,
edits and gaps, and half a day of data."""


@contextmanager
def demo(folder: str) -> Iterator[str]:
    """Runs the demo as a separate process; yields the sign-in link."""
    words = [sys.executable, "-m", "catchment", "demo", "--port", "0", "--rate", str(RATE), "--keep", f"{folder}/home"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := re.findall(r"http://\S+/login\S+", line)))
        finally:
            process.terminate()
            process.stdout.read()


def take(page: Page, base: str, ending: str) -> None:
    open_punctual_overview(page, base)
    page.screenshot(path=IMAGES / f"overview{ending}.png")
    open_telling_item(page, base)
    page.screenshot(path=IMAGES / f"item{ending}.png")


def open_punctual_overview(page: Page, base: str) -> None:
    """Opens the overview when no source is late: on a busy machine, a fast clock makes all sources late for a while."""
    for _ in range(120):
        page.goto(base)
        if not page.locator(".need a.headline[href='/sources?order=troubled']").count():
            return
        page.wait_for_timeout(500)


def open_telling_item(page: Page, base: str) -> None:
    for address in edited_posts(page, base):
        page.goto(address)
        if is_telling(page):
            return
    raise SystemExit("no item of the demo shows its growth and a change at a glance: let it run longer")


def edited_posts(page: Page, base: str) -> Iterator[str]:
    following: str | None = f"{base}/items?state=edited&platform=reddit&kind=post"
    while following:
        page.goto(following)
        further = page.locator("[data-next]")
        following = f"{base}{further.get_attribute('href')}" if further.count() else None
        yield from page.locator("a.headline").evaluate_all("links => links.map(one => one.href)")


def is_telling(page: Page) -> bool:
    """Whether its counters have grown, and the last change's new words are visible without scrolling."""
    change = page.locator(".history > li:first-child:has(ins)")
    box = change.bounding_box() if change.count() else None
    return box is not None and box["y"] + box["height"] < SIZE["height"] and page.locator(".growth circle").count() > 8


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or which("chromium") or which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, demo(folder) as login, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(login)
        page.wait_for_timeout(SECONDS * 1000)
        for ending in ("", "-dark"):
            context = browser.new_context(viewport=SIZE, color_scheme="dark" if ending else "light", locale="en-GB")
            page = context.new_page()
            page.goto(login)
            take(page, login.partition("/login")[0], ending)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
