"""Ten million items cost no more than ten: every question runs along an index, and every list stops at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from catchment.model import Watch
from catchment.refine import fingerprint
from catchment.store import Store
from catchment.store.exports import Chosen
from catchment.store.filtering import newest_with
from catchment.store.forgetting import Forget
from catchment.store.indexing import remove
from catchment.store.leases import living
from catchment.store.mending import Wanted
from catchment.store.troubles import Troubles
from catchment.tell.watching import run_watches
from tests.store.desk import Desk, opened, post
from tests.store.sample import fill
from tests.store.watching import Statement, WatchingDatabase

# They do not grow with what is collected.
SMALL = {"owners", "jobs", "settings", "credentials", "api_keys", "ledger", "budgets", "told", "few"}
SMALL |= {"webhooks", "deliveries", "watches"}

Asking = Callable[[Desk], object]


def days_ago(desk: Desk, days: int) -> datetime:
    return desk.now - timedelta(days=days)


QUESTIONS: dict[str, Asking] = {
    "what is due": lambda desk: desk.due(3),
    "newest": lambda desk: desk.store.items.newest(3),
    "newest, next page": lambda desk: desk.store.items.newest(3, before=(10**16, 5)),
    "newest of a source": lambda desk: desk.store.items.newest(3, source_id=1),
    "newest of a source, next page": lambda desk: desk.store.items.newest(3, source_id=1, before=(10**16, 5)),
    "an export": lambda desk: list(desk.store.exports.of(Chosen())),
    "an export of a kind": lambda desk: list(desk.store.exports.of(Chosen(kind="rss"))),
    "an export of a source": lambda desk: list(desk.store.exports.of(Chosen(source_id=1, since=days_ago(desk, 5)))),
    "an export from some day on": lambda desk: list(desk.store.exports.of(Chosen(since=days_ago(desk, 5)))),
    "one item": lambda desk: desk.store.items.get(1),
    "stored after": lambda desk: desk.store.items.stored_after(1, 3),
    "edited after": lambda desk: desk.store.items.edits_after(0, 3),
    "its revisions": lambda desk: desk.store.items.revisions(1),
    "how many items": lambda desk: desk.store.items.count(),
    "open gaps": lambda desk: desk.store.gaps.page(),
    "open gaps of a source": lambda desk: desk.store.gaps.page(source_id=1),
    "gaps": lambda desk: desk.store.gaps.page(include_closed=True),
    "gaps of a source": lambda desk: desk.store.gaps.page(source_id=1, include_closed=True),
    "how many open gaps": lambda desk: desk.store.gaps.count_open(),
    "runs": lambda desk: desk.store.runs.page(3),
    "runs of a source": lambda desk: desk.store.runs.of_source(1),
    "the last day": lambda desk: desk.store.runs.last_day(desk.now),
    "open alerts": lambda desk: desk.store.alerts.open(),
    "closed alerts": lambda desk: desk.store.alerts.closed(3),
    "late sources": lambda desk: desk.store.alerts.late_sources(desk.now),
    "failing sources": lambda desk: Troubles(desk.store.database).failing(10),
    "sources": lambda desk: desk.store.sources.page(after=1, limit=2),
    "one source": lambda desk: desk.store.sources.with_progress(1),
    "who holds it": lambda desk: desk.store.sources.holder(1),
    "following": lambda desk: [desk.follow("one"), desk.follow("never seen")],
    "silence": lambda desk: desk.store.alerts.keep_open(" silent", {"source 1 silent": ("so", 1)}, desk.now),
    "clearing": lambda desk: desk.store.clearing.clear(
        desk.now + timedelta(days=99), raw_days=1, run_days=1, attempt_days=1, event_days=1
    ),
    "answers to read again": lambda desk: desk.store.mending.waiting(Wanted({"feeds": 2}), (desk.now, 1), 3),
    "answers of a source to read again": lambda desk: desk.store.mending.waiting(Wanted({"feeds": 2}, 1), None, 3),
    "how many answers to read again": lambda desk: desk.store.mending.count(Wanted({"feeds": 2}, 1)),
    "watches": lambda desk: [desk.store.watches.page(), desk.store.watches.get(1), desk.store.watches.newest(3)],
    "what a watch looks at": lambda desk: desk.store.watches.changed_after((1, 2), 3),
    "what a watch hit": lambda desk: desk.store.watches.hits(1),
    "a watch looks": lambda desk: [
        run_watches(desk.store.watches, desk.clock.now, Flag(), batch=2),
        desk.store.watches.add(Watch("another", ("word",)), desk.now),
    ],
    "listeners": lambda desk: [desk.store.deliveries.page(), desk.store.deliveries.due(desk.now, 3)],
    "events after": lambda desk: desk.store.outbox.after(1, 3),
    "items past their time": lambda desk: desk.store.retention.clear({"hackernews": 1, "reddit": 9**5}, desk.now),
    "what was forgotten": lambda desk: desk.store.forgetting.records(3),
    "forgetting an item": lambda desk: desk.store.forgetting.forget(Forget("item", "feeds", "me", item_id=3), desk.now),
    "who is there": lambda desk: living(desk.store.database, desk.store.home, desk.now),
    "freeing what the dead left": lambda desk: desk.presence.bury(desk.now),
    "newest with facets": lambda desk: desk.store.database.read(
        lambda tx: newest_with(tx, [["platform:feeds", "platform:reddit"], ["kind:rss"]], 3, before=(10**16, 5))
    ),
    "how far the index is behind": lambda desk: desk.store.index.behind(),
    "a new page": lambda desk: desk.show(desk.store.sources.get(1), post("x", tags=("日",)), post("y"), body=b"new"),
    "an edited page": lambda desk: desk.show(desk.store.sources.get(1), post("-2", "new"), post("new -3", "new")),
    "indexing": lambda desk: desk.store.index.advance(),
    "leaving the index": lambda desk: desk.store.database.write(lambda tx: remove(tx, [1, 2])),
}


@pytest.fixture
def watched(empty_url: str, tmp_path: Path) -> Iterator[Desk]:
    plain = Desk(opened(empty_url, tmp_path))
    fill(plain)
    plain.close()
    desk = Desk(Store(WatchingDatabase(empty_url), tmp_path, fingerprint), plain.clock)
    desk.run_id
    yield desk
    desk.close()


def asked(desk: Desk, asking: Asking) -> list[Statement]:
    database = desk.store.database
    assert isinstance(database, WatchingDatabase)
    database.told.clear()
    asking(desk)
    assert database.told
    return list(database.told)


def test_every_question_runs_along_an_index(watched: Desk) -> None:
    faults_of = postgres_faults if watched.store.database.is_postgres else sqlite_faults
    found = {
        (what, sql): faults
        for what, asking in QUESTIONS.items()
        for sql, values in asked(watched, asking)
        if (faults := faults_of(watched, sql, values))
    }
    assert found == {}


def sqlite_faults(desk: Desk, sql: str, values: tuple[Any, ...]) -> list[str]:
    """Steps that read a whole table, or sort what no LIMIT of ours bounds."""
    steps = [row[3] for row in desk.store.database.read(lambda tx: tx.all(f"EXPLAIN QUERY PLAN {sql}", *values))]
    scanned = [step for step in steps if step.startswith("SCAN") and " INDEX " not in step and not is_small(step, sql)]
    return scanned + [step for step in steps if "ORDER BY" in step and not is_bounded(sql)]


def is_small(step: str, sql: str) -> bool:
    name = step.split()[1]
    if name in {"CONSTANT", "LIST"} or name in SMALL:
        return True
    return any(f"{table} {name}" in sql or f"{table} AS {name}" in sql for table in SMALL)


def is_bounded(sql: str) -> bool:
    """It asks for what belongs to the few items of a page, or to one item, or source."""
    return " IN (?" in sql or "= ANY(" in sql


def postgres_faults(desk: Desk, sql: str, values: tuple[Any, ...]) -> list[str]:
    """What is left of whole scans and sorts where the planner is told to avoid them at any price."""

    def question(tx: Any) -> Any:
        for dear in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"):
            tx.run(f"SET LOCAL enable_{dear} = off")
        tx.cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", values)
        return tx.cursor.fetchone()[0][0]["Plan"]

    nodes = list(every_node(desk.store.database.read(question)))
    scanned = [f"Seq Scan {node['Relation Name']}" for node in nodes if node["Node Type"] == "Seq Scan"]
    sorts = [node["Node Type"] for node in nodes if "Sort" in node["Node Type"] and not is_bounded(sql)]
    return [one for one in scanned if one.split()[2] not in SMALL] + sorts


def every_node(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from every_node(below)
