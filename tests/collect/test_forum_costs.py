"""Forums: what a list page, an audit and a page of a thread cost in statements and in time of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.jobs import index_items
from catchment.model import Ordering
from catchment.store.database import Transaction
from catchment.store.search.lists import Filter
from tests import forum as forums
from tests.forum import ForumApp
from tests.test_costs import counted

HEADS = 100


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url)
    yield app
    app.close()


def test_a_list_page_of_a_hundred_heads_takes_at_most_sixty_statements(
    forum: ForumApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forums, "ROWS", HEADS)
    for tid in range(HEADS):
        # Too long to be read: the list is all that is requested.
        forum.board.thread(tid, title=f"[water] Thread {tid}").last_number = 30_000
    counts = []
    for state in ("new", "unchanged", "replied to", "with other titles"):
        for thread in forum.board.threads.values():
            if state == "replied to":
                thread.listed_reply_at, thread.last_number = forum.clock.now(), 30_001
            elif state == "with other titles":
                thread.title = f"[harbour] Thread {thread.tid}, continued"
        with counted(forum.app) as counted_now:
            result = forum.run()
        assert (forum.asked, result.counts.shown) == (["list 1"], HEADS)
        counts.append(counted_now["statements"])
    assert max(counts) <= 60, counts


STEPS_A_FLOOR = 20
"""Of SQLite's virtual machine, which takes some ten million in a second."""
LONG, SHORT, THREADS = 10_000, 1_521, 61
"""Floors of one thread and of the others, and the number of threads."""


def fill(forum: ForumApp) -> None:
    """Adds a hundred thousand floors to the threads that are stored, copies of their first reply, all newer than any
    opening post; every thousandth is missing."""

    def copy(tx: Transaction) -> None:
        def copied(table: str, item: str, changed: dict[str, str]) -> None:
            names = [name for (name,) in tx.all("SELECT name FROM pragma_table_info(?)", table)]
            changed |= {item: f"c.{item} + 1000000 * n.number", "ordered_at": "c.ordered_at + n.number"}
            values = ", ".join(changed.get(name, f"c.{name}") for name in names)
            tx.run(
                f"""
                WITH RECURSIVE n(number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM n WHERE number < {LONG - 1})
                INSERT INTO {table} ({", ".join(names)})
                SELECT {values} FROM items i JOIN {table} c ON c.{item} = i.id CROSS JOIN n
                 WHERE i.floor_number = 1 AND n.number % 1000 <> 7 AND i.id < 1000000
                   AND n.number < CASE WHEN i.thread_id = '3' THEN {LONG} ELSE {SHORT} END
                """
            )

        copied("sightings", "item_id", {})
        copied("postings", "item_id", {})
        changed = {
            "external_id": "c.external_id || '-' || n.number",
            "floor_number": "n.number",
            "content_change_number": "c.content_change_number + 1000 * n.number",
        }
        copied("items", "id", changed)
        tx.run("UPDATE threads SET max_floor = ?", SHORT - 1)
        tx.run("UPDATE threads SET max_floor = ? WHERE thread_id = '3'", LONG - 1)
        # All of them are indexed.
        tx.run(
            "UPDATE index_mark SET (change_number, item_id) = (SELECT max(content_change_number), max(id) FROM items)"
        )

    forum.app.store.database.write(copy)


def steps(forum: ForumApp, work: Callable[[], object]) -> int:
    """How many steps SQLite's virtual machine takes, in tens: what is visited, whatever the machine's speed."""
    count = 0

    def begin(connection: Any, is_postgres: bool) -> Transaction:
        def step() -> int:
            nonlocal count
            count += 1
            return 0

        connection.set_progress_handler(step, 10)
        return Transaction(connection, is_postgres)

    database = forum.app.store.database
    database.transaction = begin  # type: ignore[assignment]
    try:
        work()
    finally:
        database.transaction = Transaction
        database.read(lambda tx: tx.cursor.connection.set_progress_handler(None, 0))
    return count


def newest_threads(forum: ForumApp, order: Ordering) -> Callable[[], object]:
    """The first pages of the list that the API and the pages show."""

    def read() -> None:
        of_threads, after = Filter(source_id=forum.source.id, is_thread=True), None
        for _ in range(2):
            page = forum.app.cache.listed(of_threads, 20, after, order)
            assert [item.is_head for item in page.items] == [True] * 20
            after = page.next

    return read


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_hundred_thousand_floors_are_audited_one_by_one_and_cost_lists_and_pages_nothing(forum: ForumApp) -> None:
    for tid in range(THREADS):
        forum.board.thread(tid, pages=0.1)
    forum.run()
    index_items(forum.app)
    audits, threads, replies = forum.app.store.floor_audits, forum.app.store.threads, forum.app.store.replies
    lists = [newest_threads(forum, order) for order in Ordering]
    before = [steps(forum, read) for read in lists]
    fill(forum)
    assert forum.app.store.database.read(lambda tx: tx.one("SELECT count(*) > 100000 FROM items")) == (1,)
    assert [steps(forum, read) <= 2 * small for read, small in zip(lists, before, strict=True)] == [True] * len(lists)

    # Each floor is looked at twice, for a handful of steps: by the count, and by the numbers that are missing. That is
    # some tenths of a second.
    assert steps(forum, lambda: audits.incomplete(forum.source.id, 0)) * 10 < STEPS_A_FLOOR * 100_000
    _, after, incomplete = audits.incomplete(forum.source.id, 0)
    assert (after, len(incomplete)) == (None, THREADS)
    missing = {thread.thread_id: thread.missing for thread in incomplete}
    assert (missing["3"], missing["4"]) == (tuple(range(7, LONG, 1000)), (7, 1007))

    item_id = forum.state(3).item_id
    assert item_id is not None
    head = forum.app.store.items.get(item_id)

    def page(number: int) -> Callable[[], object]:
        """What the page of a thread reads: the floors from a number on, and the holes between them."""
        first = 20 * (number - 1) + 1

        def read() -> None:
            assert len(replies.floors(head, first, 20)) in (19, 20)
            threads.holes_of_item(head.id, first, first + 19)

        return read

    assert steps(forum, page(500)) <= 2 * steps(forum, page(1))
