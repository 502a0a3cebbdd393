"""Who asks "what changed since" misses nothing, whatever is being written meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier, Event

import pytest

from tests.store.desk import Desk, post


class Reader:
    """Reads on from where it was, as a consumer of the API or an indexer does."""

    def __init__(self, desk: Desk, column: str) -> None:
        self._desk, self._column, self._last = desk, column, 0
        self.seen: list[int] = []

    def read(self) -> None:
        rows = self._desk.store.database.read(
            lambda tx: tx.all(
                f"SELECT {self._column}, id FROM items WHERE {self._column} > ? ORDER BY {self._column}, id", self._last
            )
        )
        self.seen += [row[1] for row in rows]
        self._last = max([self._last, *(row[0] for row in rows)])


def test_numbers_and_ids_have_no_holes_even_where_a_page_failed(desk: Desk) -> None:
    source = desk.follow()

    def fail() -> None:
        raise RuntimeError("in the middle of the transaction")

    desk.show(source, post("a"), post("b"))
    claimed = desk.claim(source)
    with pytest.raises(RuntimeError):
        desk.write(claimed, [post("lost")], meanwhile=fail)
    desk.write(claimed, [post("c"), post("a", "edited")])
    assert desk.rows("items", "id, external_id, change_number, content_change_number") == [
        (1, "a", 2, 2),
        (2, "b", 1, 1),
        (3, "c", 2, 2),
    ]
    assert desk.rows("ledger") == [(1, 2, 3)]
    desk.show(source, post("b", score=7))
    assert desk.item("b")["change_number"] == 3
    assert desk.rows("items", "id, external_id, content_change_number")[1] == (2, "b", 1)


@pytest.mark.parametrize("column", ["change_number", "id"])
def test_a_reader_does_not_run_past_a_page_that_is_being_written(desk: Desk, column: str) -> None:
    first, second = desk.claim(desk.follow("r/one", "reddit")), desk.claim(desk.follow("r/two", "reddit"))
    reader, is_written, may_commit = Reader(desk, column), Event(), Event()
    run_id = desk.run_id

    def hang() -> None:
        is_written.set()
        may_commit.wait(30)

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(desk.write, first, [post("a"), post("b")], meanwhile=hang)
        assert is_written.wait(30)
        quick = pool.submit(desk.write, second, [post("c")])
        # Time for the second to overtake, if it could.
        wait([quick], timeout=0.3)
        reader.read()
        may_commit.set()
        wait([slow, quick])
        reader.read()
    assert run_id == 1
    assert reader.seen == [1, 2, 3]
    assert quick.result().counts.new == 1


@pytest.mark.parametrize("column", ["change_number", "id"])
def test_a_reader_beside_many_writers_sees_every_row_once(desk: Desk, column: str) -> None:
    writers, pages = 4, 12
    sources = [desk.follow(f"r/{number}", "reddit") for number in range(writers)]
    begin, reader = Barrier(writers + 1), Reader(desk, column)
    desk.run_id

    def write(number: int) -> None:
        begin.wait()
        for page in range(pages):
            desk.write(desk.claim(sources[number]), [post(f"{number} {page} {each}") for each in range(3)])

    with ThreadPoolExecutor(writers) as pool:
        at_work = [pool.submit(write, number) for number in range(writers)]
        begin.wait()
        while not all(one.done() for one in at_work):
            reader.read()
        for one in at_work:
            one.result()
    reader.read()
    assert sorted(reader.seen) == list(range(1, writers * pages * 3 + 1))
    numbers = {row[1] for row in desk.rows("items", "id, change_number, 1")}
    assert numbers == set(range(1, writers * pages + 1))
