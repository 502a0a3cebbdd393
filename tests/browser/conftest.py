"""Pages as people see them: in a real Chromium, served by a real server on loopback."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from catchment.web.app import application
from catchment.web.dependencies import open_web_context
from catchment.web.middleware import hosts_for
from catchment.web.server import Server, listening
from tests.town import TownApp

EVERY_PLACE = (
    "/sources", "/sources?order=troubled", "/sources/1", "/sources/add", "/sources/add?kind=rss", "/sources/import",
    "/runs", "/runs/1", "/tasks", "/gaps", "/alerts", "/credentials", "/watches", "/notifications", "/settings",
)  # fmt: skip
"""The pages for running it; the first source and the first run are there."""
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# It must ask nobody but us: a browser that is started anew likes to call home.
SILENT = (
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--disable-quic", "--disable-gpu",
)  # fmt: skip


PATIENCE = 600_000
"""Milliseconds: enough for a machine that has much else to do."""
# What a page is expected to show has five seconds unless this is set: the time of a context does not hold for it.
expect.set_options(timeout=PATIENCE)


def chromium_path() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and sys.platform == "darwin" and Path(MAC).exists():
        found = MAC
    if found is None:
        pytest.fail("the pages are tested in Chromium, and there is none: install it, or set CHROMIUM to its path")
    return found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=[*SILENT, *(("--no-sandbox",) if is_root else ())]
        )
        yield browser
        browser.close()


@dataclass
class Visitor:
    """Somebody at a browser, and everything that must not happen while they look."""

    context: BrowserContext
    page: Page
    base: str
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What the browser's console says: errors, and what the page's own rules forbade."""
    strangers: list[str] = field(default_factory=list)
    """Requests to anybody but us."""

    def __post_init__(self) -> None:
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.context.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.base, "data:image/svg+xml,")):
            self.strangers.append(url)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}", wait_until="load")
        return self.page

    @property
    def path(self) -> str:
        parts = urlsplit(self.page.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def check(self) -> None:
        """Nothing happened that must not."""
        assert (self.dialogs, self.complaints, self.strangers) == ([], [], [])


@dataclass
class Site:
    """An app with the feeds of a town; its pages are served on loopback."""

    here: TownApp
    base: str
    login: str
    chromium: Browser

    @contextmanager
    def visitor(self, **how: Any) -> Iterator[Visitor]:
        """Somebody who has just come by the link."""
        context = self.chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **how})
        context.set_default_timeout(PATIENCE)
        try:
            visitor = Visitor(context, context.new_page(), self.base)
            visitor.page.goto(self.login)
            yield visitor
        finally:
            context.close()

    def index(self) -> None:
        while self.here.app.store.index.advance():
            pass


@pytest.fixture
def site(tmp_path: Path, chromium: Browser) -> Iterator[Site]:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    context = open_web_context(here.app, collects=True)
    with listening("127.0.0.1", 0) as socket:
        app = application(context, hosts_for("127.0.0.1"))
        server = Server(app, here.app, threads=4)
        serving = threading.Thread(target=server.run, args=([socket],))
        serving.start()
        base = f"http://127.0.0.1:{socket.getsockname()[1]}"
        yield Site(here, base, f"{base}/login?token={context.sessions.token}", chromium)
        server.should_exit = True
        serving.join()
    here.close()
