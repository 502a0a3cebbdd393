"""What a large archive costs who reads the pages: the same pages of a small one and of a large one, by turns.

Asked is the real application, as `serve` runs it, by a browser that has come in, over HTTP on this machine: the time
ends with the last byte of the page. The clock of both stands where their archives end, so that the overview has its
hours and nothing is late. By turns: whatever else the machine does disturbs both alike.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode, urlsplit

from bench.archives import CHINESE_WORD, FREQUENT, HEADS, MIXED, NOW, RARE, Archive
from bench.records import Records
from bench.timing import Times, by_turns
from catchment.clock import MovedClock, moment
from catchment.settings import Settings
from catchment.store.items.items import key_text

if TYPE_CHECKING:
    from catchment.app import App

LISTS, SEARCH, MOST_MS = 2.0, 5.0, 300.0
"""At most so many times as long as with the small archive; the pages about running at most so many milliseconds."""
FAR_PAGE = 1_000
SEARCHES = {
    "a rare word": RARE,
    "a frequent word": FREQUENT,
    "two Chinese characters": CHINESE_WORD,
    "English and Chinese": MIXED,
}
WARM_UPS, REPEATS = 3, 40


@dataclass(frozen=True)
class Shown:
    """One page, of both archives. Promised is how much longer the large one takes, or how long it takes at most."""

    page: str
    most_times: float | None
    small: Times
    large: Times

    @property
    def times(self) -> float:
        # A page is many questions: what disturbs it is spread, and its median moves less than its best.
        return self.large.median / self.small.median

    @property
    def promise(self) -> str:
        return f"{MOST_MS:.0f} ms" if self.most_times is None else f"{self.most_times:.0f} ×"

    @property
    def is_kept(self) -> bool:
        return self.large.median < MOST_MS if self.most_times is None else self.times <= self.most_times


class Question(NamedTuple):
    page: str
    path: str
    most_times: float | None
    links: str
    least: int = 20
    """So many links of that sort are on the page: a quick nothing must not pass for fast."""


def questions(archive: Archive) -> Iterator[Question]:
    # In the middle, and not the first of its page or of its kind: nothing about it is special.
    number = archive.size // 2 + 3
    source_id, author, tag = archive.source_of(number), archive.author_of(number), archive.tags_of(number)[0]
    yield Question("the list", "/items", LISTS, "items")
    filtered = urlencode({"source": source_id, "tag": tag, "kind": archive.kind_of(number)})
    yield Question("… of a source, with a tag, of a kind", f"/items?{filtered}", LISTS, "items")
    yield Question("… of what was edited", "/items?state=edited", LISTS, "items")
    yield Question("… of an author", f"/items?{urlencode({'author': author})}", LISTS, "items")
    until = urlencode({"tag": tag, "until": moment(archive.time_of(number)).isoformat()})
    yield Question("… with a tag, up to a day", f"/items?{until}", LISTS, "items")
    yield Question(f"… page {FAR_PAGE:,} by key", f"/items?after={key_text(far_key(archive))}", LISTS, "items")
    yield Question("… by last reply", "/items?order=replied", LISTS, "items", 5)
    head = archive.size // 2 // HEADS * HEADS
    yield Question("an item with its history and its replies", f"/items/{head}", LISTS, "items")
    for what, words in SEARCHES.items():
        yield Question(f"search: {what}", f"/search?{urlencode({'q': words})}", SEARCH, "items")
    yield Question("the overview", "/", None, "items", 12)
    yield Question("the sources", "/sources", None, "sources", 1)
    yield Question("… what needs a look first", "/sources?order=troubled", None, "sources", 1)
    yield Question("a source", f"/sources/{source_id}", None, "runs", 10)
    yield Question("the runs", "/runs", None, "runs")
    yield Question("a run", f"/runs/{Records(archive).last_run_of(source_id) + 1}", None, "sources", 1)
    yield Question("the gaps", "/gaps", None, "sources", 1)
    yield Question("the alerts", "/alerts", None, "sources", 1)


def far_key(archive: Archive) -> tuple[int, int]:
    """Where the far page begins, as whoever walks there page by page would get it; in a small archive, its last one."""
    # Here, not above, as all of the application: the benchmark itself must stay smaller than what it weighs.
    from catchment.web.pages.items import A_PAGE

    pages = min(FAR_PAGE, archive.size // A_PAGE)
    last_before = archive.size - (pages - 1) * A_PAGE + 1
    return archive.time_of(last_before), last_before


class Browser:
    """Somebody who came in by the link, and asks for one page after the other over one connection."""

    def __init__(self, link: str) -> None:
        where = urlsplit(link)
        self._connection = HTTPConnection(where.hostname or "", where.port)
        self._headers = {"Accept": "text/html"}
        answer = self._asked(f"{where.path}?{where.query}")
        answer.read()
        self._headers["Cookie"] = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def get(self, path: str) -> str:
        try:
            answer = self._asked(path)
        except RemoteDisconnected:
            # While the other archive was asked nobody spoke here, and the server hung up; the next request calls again.
            answer = self._asked(path)
        page = answer.read().decode()
        if answer.status != 200:
            raise SystemExit(f"{path} answers {answer.status}:\n{page[:2_000]}")
        return page

    def _asked(self, path: str) -> HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def browser_of(address: str, home: Path) -> Iterator[Browser]:
    """In the pages of a deployment with this database, which is served as long as the block lasts."""
    from catchment import logs
    from catchment.app import open_app

    logs.configure(level="warning")
    app = open_app(Settings(home=home, database_url=address), "bench", may_migrate=True)
    app.clock = MovedClock(NOW + timedelta(minutes=1), 1.0, time.time())
    said: SimpleQueue[str] = SimpleQueue()
    serving = Thread(target=_serve, args=(app, said))
    serving.start()
    browser = Browser(_link_in(said))
    try:
        yield browser
    finally:
        browser.close()
        app.stop.set()
        serving.join()
        app.close()


def _serve(app: App, said: SimpleQueue[str]) -> None:
    from catchment.web.server import serve

    try:
        serve(app, "127.0.0.1", 0, collects=False, announce=said.put)
    finally:
        # Whoever waits for the link must not wait for ever.
        said.put("")


def _link_in(said: SimpleQueue[str]) -> str:
    while line := said.get():
        if found := re.search(r"http://\S+/login\S+", line):
            return found[0]
    raise SystemExit("the pages are not served")


def compare(small: tuple[Browser, Archive], large: tuple[Browser, Archive]) -> list[Shown]:
    pairs = zip(questions(small[1]), questions(large[1]), strict=True)
    return [_shown_by_turns((small[0], of_small), (large[0], of_large)) for of_small, of_large in pairs]


def _shown_by_turns(small: tuple[Browser, Question], large: tuple[Browser, Question]) -> Shown:
    for browser, question in (small, large):
        check(question, browser.get(question.path))
        for _ in range(WARM_UPS):
            browser.get(question.path)
    of_small, of_large = by_turns(lambda: small[0].get(small[1].path), lambda: large[0].get(large[1].path), REPEATS)
    return Shown(large[1].page, large[1].most_times, of_small, of_large)


def check(question: Question, page: str) -> None:
    found = len(set(re.findall(rf'href="/{question.links}/\d+', page)))
    if found < question.least:
        raise SystemExit(f"{question.page} ({question.path}) has {found} links to {question.links}")
