"""What collecting costs, counted instead of timed: the same figures on every machine.

A fixed small world is collected twice by one worker. Each figure may differ by 5 % from the one that stands here; a
change that raises one changes the figure, and says why in its commit.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import catchment
from catchment.app import App, open_app
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.database import Transaction
from catchment.text import html
from tests.feedsite import FeedSite

FEEDS, ENTRIES = 4, 25
HTML = '<p>Some <strong>words</strong> in a paragraph, and <a href="https://example.org/">a link</a>.</p>'

NEW = {
    # In a process that has cleaned many items. An entry is found in the bytes and hashed (+ 3), and the hashes of a
    # page are kept (+ 1 statement), for the next visit.
    "calls an entry": 61.0,
    "calls a page": 577.75,
    "statements a page": 22.25,
    "rows an entry": 2.0,
    "bytes an entry": 1843.0,
}
REPEATED = {"calls": 5.0, "rows": 0.0, "statements": 26.25}
"""For each entry that is as last time, on a page with a new one; and the statements of such a page. 15 calls before,
and a row: what is as last time is judged and written in columns, its sightings in one statement."""
UNCHANGED = {"calls a page": 123.75, "statements a page": 3.75, "rows a page": 4.25}
"""120 calls before: workers take their next source themselves. The thread of the run, whose calls are not counted, did
that for each visit, and wrote the end of each alone if there is one worker (8.25 statements)."""


class CountingCursor:
    def __init__(self, cursor: Any, counts: Counter[str]) -> None:
        self._cursor, self._counts = cursor, counts

    def execute(self, sql: str, values: Sequence[Any] = (), **more: Any) -> Any:
        self._count(sql, [values])
        return self._cursor.execute(sql, values, **more)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        self._count(sql, rows)
        return self._cursor.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def _count(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._counts["statements"] += 1
        if not sql.lstrip().startswith("SELECT"):
            self._counts["rows"] += len(rows)
            self._counts["bytes"] += sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))


@contextmanager
def counted(app: App) -> Iterator[Counter[str]]:
    """Counts calls of our own functions in visits; and statements, rows and bytes."""
    counts: Counter[str] = Counter()
    package = Path(catchment.__file__).parent
    # libcurl calls back more often, the longer an answer takes.
    timed = str(package / "fetch" / "transport.py")

    def begin(connection: Any, is_postgres: bool) -> Transaction:
        transaction = Transaction(connection, is_postgres)
        transaction.cursor = CountingCursor(transaction.cursor, counts)
        return transaction

    def profile(frame: FrameType, event: str, _: object) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        # Comprehensions are calls before Python 3.12, and none since.
        if event == "call" and file.startswith(str(package)) and file != timed and not name.startswith("<"):
            counts["calls"] += 1

    app.store.database.transaction = begin  # type: ignore[assignment]
    # Only in new threads, those of the visits: this one waits for them, and looks up now and then.
    threading.setprofile(profile)
    try:
        yield counts
    finally:
        threading.setprofile(None)
        app.store.database.transaction = Transaction


def collected(app: App, ids: Sequence[int]) -> Counter[str]:
    with counted(app) as counts:
        results = app.scheduler().these(ids, "test", "test")
    assert [result.error for result in results if result.error] == []
    return counts


def test_what_an_entry_and_a_page_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first items of a process take another way through the cleaner, and so do all where there is compiled code:
    # which way must depend neither on the tests before nor on the machine.
    monkeypatch.setattr(html, "_sanitised", count(html._FEW))
    monkeypatch.setattr(html, "html_and_text_if_plain", html._html_and_text_if_plain)
    settings = Settings(
        home=tmp_path, database_url=f"sqlite:///{tmp_path / 'c.db'}", is_private_allowed=True, concurrency=1
    )
    with FeedSite() as site, open_app(settings, "test") as app:
        ids: dict[int, list[int]] = {2: [], 1: [], ENTRIES: []}
        feeds = []
        for entries, sources in ids.items():
            for number in range(FEEDS):
                feed = site.feed(f"f{entries}-{number}", posts=0)
                feeds.append(feed)
                for post in range(entries):
                    feed.post(f"p{post}", text=HTML * 10)
                source, _ = follow(app.store, app.secrets, app.platforms, "rss", feed.url, app.clock.now())
                sources.append(source.id)
        collected(app, ids[2])  # what a process does once, such as compiling its mappers
        single, full = collected(app, ids[1]), collected(app, ids[ENTRIES])
        unchanged = collected(app, ids[ENTRIES])
        for feed in feeds:
            feed.post("new", text=HTML * 10)
        grown_single, grown = collected(app, ids[1]), collected(app, ids[ENTRIES])
    entries = FEEDS * (ENTRIES - 1)
    costs = {
        "calls an entry": (full["calls"] - single["calls"]) / entries,
        "calls a page": single["calls"] / FEEDS,
        "statements a page": full["statements"] / FEEDS,
        "rows an entry": (full["rows"] - single["rows"]) / entries,
        "bytes an entry": (full["bytes"] - single["bytes"]) / entries,
    }
    quiet = {f"{name} a page": unchanged[name] / FEEDS for name in ("calls", "statements", "rows")}
    assert costs == pytest.approx(NEW, rel=0.05)
    assert quiet == pytest.approx(UNCHANGED, rel=0.05)
    repeated = {name: (grown[name] - grown_single[name]) / entries for name in ("calls", "rows")}
    repeated["statements"] = grown["statements"] / FEEDS
    assert repeated == pytest.approx(REPEATED, rel=0.05)
