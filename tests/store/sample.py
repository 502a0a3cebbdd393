"""A small database with something in every table, and its dump: `python -m tests.store.sample`.

A dump is made once for each released schema and never again: it stands for the databases that are out there.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from catchment.clock import micros
from catchment.events.watches import run_watches
from catchment.model import (
    UNDATED,
    AlertRequest,
    Booking,
    Counts,
    Item,
    ListNote,
    Media,
    Page,
    PageWrite,
    ReadReason,
    Reference,
    Request,
    ShownEntries,
    Source,
    SourceState,
    StoredEntries,
    ThreadMarks,
    ThreadResult,
    ThreadSeen,
    Watch,
)
from catchment.policy.tiers import Tier, Tiers
from catchment.store.cache import CacheCounts, CachedSet, CacheKey
from catchment.store.delivery.webhooks import SealedWebhook
from catchment.store.item_fields import to_json
from catchment.store.items.deletion import Forget
from catchment.store.items.follow_ups import queue_follow_ups
from catchment.store.items.shown_entries import keep_shown
from catchment.store.search.index import terms_of
from catchment.store.sources.alerts import raise_alert
from catchment.store.sources.metrics import GlobalMetrics, Measure, MetricSpan
from catchment.store.sources.tasks import TaskTarget
from catchment.store.spending import PaidCall, keep_walk
from catchment.store.version import HEAD
from tests.store.desk import Desk, opened, post

DUMPS = Path(__file__).parent / "schemas"


def fill(desk: Desk) -> None:
    """Something in every table, through the store's own verbs."""
    store, now = desk.store, desk.now
    feed, board = desk.follow("one", interval_minutes=15, categories=["news"]), desk.follow("r/two", "reddit")
    other = desk.follow("three", credential="somebody")
    old = [
        post(f"{day}", f"第 {day} 天", created_at=now + timedelta(days=day), tags=("日", "day"), score=day)
        for day in range(-6, -1)
    ]
    store.webhooks.add(SealedWebhook(0, "mine", "https://hooks.example/", ("watch.matched",), "key", b"sealed"), now)
    store.tasks.add("1", "rss", [TaskTarget("one", "https://one.example/")], 100, "a request", now)
    calls = [PaidCall("x", None, feed.id, "2026-01-01", 150) for _ in range(2)]
    (first, _), _ = (store.spending.reserve(call, 1, now, lambda totals, cost: None) for call in calls)
    store.spending.settle([Booking("x", None, feed.id, "2026-01-01", first, items=1, amount=150)])
    store.database.write(lambda tx: keep_walk(tx, feed.id, b"{}", 1))
    entries = ShownEntries(b"hash", {}, StoredEntries([5, -6], [1, 2], [micros(desk.now), UNDATED]))
    store.database.write(lambda tx: keep_shown(tx, feed, entries, (), {}))
    store.watches.add(Watch("days", ("天", "-night")), now)
    desk.show(feed, *old, body=b"<rss/>")
    desk.show(feed, *(item.replace(external_id=f"new {item.external_id}") for item in old))
    desk.show(feed, *(post(f"late {day}", created_at=now + timedelta(days=9 + day)) for day in range(3)))
    desk.recheck_ages = (timedelta(hours=1), timedelta(days=7))
    desk.show(board, post("t3_a", media=(Media("https://m.example/1.png"),), is_pinned=True), _reply("t3_b", "t3_a"))
    desk.show(board, Item("t3_a", title="About t3_a", is_deleted=True), _reply("t3_b", "t3_a").replace(text="edited"))
    desk.recheck_ages = ()
    desk.tiers = Tiers((Tier("tier3", 0, 24, "top", "month", 100),), crawls=10, least_crawls=2)
    lively = desk.follow("r/four", "reddit")
    for day in range(3):
        desk.show(lively, post(f"t3_{day}", created_at=now))
    desk.tiers = None
    desk.show(board, post("t3_c", score=12, rank=1, gained=3))
    head = post("t3_d", thread_id="t3_d", is_head=True)
    desk.show(board, head, _reply("t1_e", "t3_d").replace(thread_id="t3_d", created_at=now))
    desk.show(board, post("t3_f", last_reply_at=now))
    newest = store.cached_sources.newest(board.id)
    assert newest
    made = CachedSet(newest[0], [*map(to_json, newest[1])])
    store.cache_table.put(CacheKey(board.id, False), made, now, now + timedelta(days=1))
    store.cached_sources.count(now, CacheCounts(2, 1))
    store.sources.set_state(board.id, SourceState.PAUSED, "on leave", desk.now)
    desk.show(other, post("told in confidence", author="somebody"))
    store.deletion.forget(Forget("author", "feeds", "test", "requested", author="somebody"), desk.now)
    _fill_forum(desk, other)
    store.jobs.announce("collect-due", now)
    store.credentials.add("feeds", "somebody", "key", b"sealed", now)
    store.api_keys.add("n8n", "secret", now)
    store.sessions.open("token", now, now + timedelta(days=30), "link", "a browser")
    store.sign_in_links.add("token", now, now + timedelta(minutes=15))
    store.settings.put_interval("rss", 30, now)
    store.budgets.change("reddit", now, lambda _: ([[1, 2]], None))
    store.metrics.keep(MetricSpan.HOUR, MetricSpan.HOUR.start(now), [Measure("rss", "feeds", succeeded=3)])
    store.metrics.keep_global_metrics(MetricSpan.HOUR, MetricSpan.HOUR.start(now), GlobalMetrics(3, 1, {"tier1": 2}))
    store.index.advance()
    run_watches(store.watches, desk.clock.now, Event())
    store.database.write(
        lambda tx: queue_follow_ups(tx, board, [(1, (Request("https://r.example/replies", about_item="a"),))], 1)
    )
    store.database.write(lambda tx: raise_alert(tx, AlertRequest("source 1 failing", "so it is", source_id=feed.id), 1))


_COUNTS = (
    *("thread_count", "missing_thread_count", "repaired_thread_count", "partial_thread_count", "failed_thread_count"),
    *("failed_http_count", "failed_parse_count", "failed_db_count", "failed_unknown_count"),
    *("missing_floor_count", "repaired_floor_count", "ignored_floor_count"),
    *("gap_count", "repaired_gap_count", "partial_gap_count", "failed_gap_count", "unreachable_gap_count"),
)
_AUDIT: dict[str, dict[str, Any]] = {
    "floor_audits": {
        "id": 1,
        "run_trigger": "manual",
        "is_repairing": True,
        "started_at": 1,
        **dict.fromkeys(_COUNTS, 1),
    },
    "reply_counts": {
        "item_id": 1,
        "source_id": 3,
        **dict.fromkeys(("declared_count", "stored_count", "hole_count", "missing_count"), 1),
    },
    "gap_repairs": {"id": 1, "gap_id": 1, "source_id": 3, "from_at": 1, "to_at": 2, "started_at": 3},
    "floor_audit_threads": {
        "id": 1,
        "audit_id": 1,
        "thread_row_id": 1,
        "thread_id": "d",
        "source_id": 3,
        "max_floor": 19,
        "floor_count": 18,
        "missing_count": 1,
        "ignored_count": 0,
        "result": "missing",
    },
    "floor_audit_floors": {"audit_thread_id": 1, "floor_number": 4, "result": "missing", "attempts_before": 0},
    "floor_repairs": {
        "thread_row_id": 1,
        "floor_number": 4,
        "attempt_count": 1,
        "first_attempted_at": 1,
        "last_attempted_at": 1,
    },
}


def _fill_forum(desk: Desk, board: Source) -> None:
    """A thread of a board: seen on a list, read, audited."""
    store, day = desk.store, date(2026, 1, 1)
    lease = desk.claim(board).lease
    page = Page(board, lease, desk.run_id, desk.now, (), 1)
    seen = ThreadSeen("d", ("", "t3_d"), None, 1, desk.now, 3, True, desk.now, ReadReason.NEW, desk.now)
    note = ListNote(day, day, 1, 1, True)
    store.page_writer.write(page, lambda facts: PageWrite((), Counts(), threads=(seen,), list_note=note))
    claimed = store.threads.claim(board.id, desk.presence.owner_id, desk.now, desk.run_id)
    assert claimed
    marks = ThreadMarks(claimed.thread, 3, 2, 19, "t1_e", truncated_at_page=1, is_over=True, holes=(7,), filled=(0, 1))
    read = page.replace(lease=claimed.lease)
    store.page_writer.write(read, lambda facts: PageWrite((), Counts(), thread_marks=marks))
    store.threads.end(claimed.lease, desk.run_id, ThreadResult(claimed.thread), None, desk.now)
    store.sources.give_back([lease])
    head = "SELECT id FROM items WHERE external_id = 't3_d'"
    store.database.write(lambda tx: tx.run(f"UPDATE threads SET item_id = ({head})"))
    for table, values in _AUDIT.items():
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        store.database.write(lambda tx, sql=sql, values=values: tx.run(sql, *values.values()))  # type: ignore[misc]


def _reply(key: str, to: str) -> Item:
    return post(key, references=(Reference("replied_to", external_id=to),))


def dumped(connection: sqlite3.Connection) -> Iterator[str]:
    """As `iterdump`, which knows nothing of virtual tables: these are told what they had been told."""
    virtual = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    (words,) = virtual.fetchall()
    told = connection.execute("SELECT place, facets, words FROM indexed ORDER BY place").fetchall()
    connection.execute(f"DROP TABLE {words[0]}")
    yield from connection.iterdump()
    yield f"{words[1]};"
    for place, facets, segments in told:
        yield f"INSERT INTO {words[0]} (rowid, terms) VALUES ({place}, '{terms_of(facets, segments)}');"


def write_dump(folder: Path = DUMPS) -> Path:
    file = folder / f"{HEAD}.sqlite.sql"
    with TemporaryDirectory() as temporary:
        home = Path(temporary)
        desk = Desk(opened(f"sqlite:///{home / 'catchment.db'}", home))
        fill(desk)
        with closing(sqlite3.connect(home / "catchment.db", isolation_level=None)) as connection:
            connection.execute("UPDATE owners SET machine = 'somewhere', pid = 1, lock_name = 'a lock'")
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(dumped(connection)) + "\n")
        desk.close()
    return file


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write_dump().name}\n")
