"""A deployment with something of everything that a page can show, and the paths of all pages."""

from __future__ import annotations

import re
from datetime import timedelta

from catchment.errors import Missing
from catchment.model import Watch
from catchment.store.sources.tasks import TaskTarget
from catchment.web.app import PAGES
from tests.web.desk import Desk


def a_whole_deployment(desk: Desk) -> None:
    """Something of everything that a page can show."""
    here = desk.here
    here.app.store.credentials.add("feeds", "reader", "key", b"sealed", here.clock.now())
    here.app.store.watches.add(Watch("bridges", ("bridge",)), here.clock.now())
    here.app.store.tasks.add("1", "rss", [TaskTarget("one", "https://one.example/")], 10, None, here.clock.now())
    feed = here.town.feed("one", window=5)
    source = here.follow(feed, name="Gazette", categories=["news"], interval_minutes=15)
    for day in range(3):
        for number in range(5):
            feed.post(f"p{day}-{number}", f"a bridge, {day}", at=here.clock.now() - timedelta(minutes=number))
        here.collect(source)
        here.clock.advance(86_400)
    broken = here.town.feed("two")
    broken.says.extend([Missing("the feed is not there", "has it <moved>?", status=404)] * 9)
    lost = here.follow(broken, name="An <old> blog")
    for _ in range(6):
        here.collect(lost)
    here.follow(here.town.feed("three"), name="Waiting")
    board = here.follow(here.town.feed("four"), "discourse_forum", name="A board")
    counts = ("scanned_count", "changed_count", "updated_count", "request_count", "started_at", "updated_at")
    columns = ("run_id", "source_id", "run_trigger", *counts)
    here.app.store.database.write(lambda tx: tx.insert("board_runs", columns, [(1, board.id, "manual", *[1] * 6)]))
    here.app.floor_audit().run("test", is_repairing=False)
    here.clock.advance(3600)
    assert here.gaps()


def browsing_paths(method: str) -> set[str]:
    """The pages' own paths, with numbers where ids go."""
    return {
        re.sub(r"{\w+}", "1", route.path)  # type: ignore[attr-defined]
        for router in PAGES
        for route in router.routes
        if method in getattr(route, "methods", ())
    }
