"""Forums: what a list page, an audit and a page of a thread cost in statements and in time of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.store.database import Transaction
from tests import forum as forums
from tests.forum import ForumApp
from tests.test_costs import counted

HEADS, FLOORS, A_THREAD = 100, 100_000, 10_000


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
        forum.board.thread(tid).last_number = 30_000
    counts = []
    for _ in ("new", "unchanged"):
        with counted(forum.app) as counted_now:
            result = forum.run()
        assert (forum.asked, result.counts.shown) == (["list 1"], HEADS)
        counts.append(counted_now["statements"])
    assert max(counts) <= 60, counts


def fill(forum: ForumApp) -> None:
    """Ten threads of ten thousand floors, copied from one that was collected; every thousandth is missing."""
    for tid in range(FLOORS // A_THREAD):
        forum.board.thread(tid, pages=0.1)
    forum.run()

    def copy(tx: Transaction) -> None:
        names = [name for (name,) in tx.all("SELECT name FROM pragma_table_info('items')")]
        changed = {
            "id": "i.id + 1000000 * n.number",
            "external_id": "i.external_id || '-' || n.number",
            "floor_number": "n.number",
        }
        values = ", ".join(changed.get(name, f"i.{name}") for name in names)
        tx.run(
            f"""
            WITH RECURSIVE n(number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM n WHERE number < {A_THREAD - 1})
            INSERT INTO items ({", ".join(names)})
            SELECT {values} FROM items i, n WHERE i.floor_number = 1 AND n.number % 1000 <> 7
            """
        )
        tx.run("UPDATE threads SET max_floor = ?", A_THREAD - 1)

    forum.app.store.database.write(copy)


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three runs: nothing else in this process, and no other process, counts."""
    spent = []
    for _ in range(3):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_of_a_hundred_thousand_floors_an_audit_takes_two_seconds_and_the_last_page_no_longer_than_the_first(
    forum: ForumApp,
) -> None:
    fill(forum)
    audits, threads = forum.app.store.floor_audits, forum.app.store.threads
    assert seconds(lambda: audits.incomplete(forum.source.id, 0)) < 2
    _, after, incomplete = audits.incomplete(forum.source.id, 0)
    assert (after, len(incomplete)) == (None, FLOORS // A_THREAD)
    assert {thread.missing for thread in incomplete} == {tuple(range(7, A_THREAD, 1000))}

    def page(number: int) -> Callable[[], object]:
        first = 20 * (number - 1)
        return lambda: [threads.floor_ids("forum", "", "3", first, first + 19) for _ in range(300)]

    assert len(threads.floor_ids("forum", "", "3", 9_980, 9_999)) == 20
    assert seconds(page(500)) < 2 * seconds(page(1))
