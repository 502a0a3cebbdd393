"""Who asks "what changed since" misses nothing, whatever is being written meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier, Event

import pytest

from catchment.errors import InvalidInput
from catchment.store.items.change_feed import ChangeCursor, parse_cursor
from tests.store.desk import Desk, post


def reader_by(desk: Desk, way: str) -> Following | Reader:
    return Following(desk) if way == "changes" else Reader(desk, way)


class Following:
    """Reads on from where it was by the store's own verb, in pages of that length."""

    def __init__(self, desk: Desk, limit: int = 2, *, counters: bool = True) -> None:
        self._desk, self._limit, self._counters, self._place = desk, limit, counters, ChangeCursor(0)
        self.seen: list[int] = []

    def read(self) -> None:
        while True:
            page = self._desk.store.changes.after(self._place, self._limit, counters=self._counters)
            self.seen += [item.id for item in page.items]
            # Outside it is a text, and comes back as one.
            self._place = parse_cursor(str(page.next))
            if page.is_end:
                return


class Reader:
    """Reads on from where it was by a column, as an indexer does."""

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
    assert desk.rows("ledger", "id, change_number, last_item_id") == [(1, 2, 3)]
    desk.show(source, post("b", score=7))
    assert desk.item("b")["change_number"] == 3
    assert desk.rows("items", "id, external_id, content_change_number")[1] == (2, "b", 1)


@pytest.mark.parametrize("way", ["changes", "change_number", "id"])
def test_a_reader_does_not_run_past_a_page_that_is_being_written(desk: Desk, way: str) -> None:
    first, second = desk.claim(desk.follow("r/one", "reddit")), desk.claim(desk.follow("r/two", "reddit"))
    reader, is_written, may_commit = reader_by(desk, way), Event(), Event()
    run_id = desk.run_id

    def hang() -> None:
        is_written.set()
        may_commit.wait(600)

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(desk.write, first, [post("a"), post("b")], meanwhile=hang)
        assert is_written.wait(600)
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


@pytest.mark.parametrize("way", ["changes", "change_number", "id"])
def test_a_reader_beside_many_writers_sees_every_row_once(desk: Desk, way: str) -> None:
    writers, pages = 4, 12
    sources = [desk.follow(f"r/{number}", "reddit") for number in range(writers)]
    begin, reader = Barrier(writers + 1), reader_by(desk, way)
    desk.run_id

    def write(number: int) -> None:
        begin.wait()
        for page in range(pages):
            desk.write(desk.claim(sources[number]), [post(f"{number} {page} {each}") for each in range(3)])

    with ThreadPoolExecutor(writers) as pool:
        at_work = [pool.submit(write, number) for number in range(writers)]
        begin.wait()
        while not all(future.done() for future in at_work):
            reader.read()
        for future in at_work:
            future.result()
    reader.read()
    assert sorted(reader.seen) == list(range(1, writers * pages * 3 + 1))
    numbers = {row[1] for row in desk.rows("items", "id, change_number, 1")}
    assert numbers == set(range(1, writers * pages + 1))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_items_that_share_a_number_come_once_however_short_the_pages_are(desk: Desk, limit: int) -> None:
    source = desk.follow()
    desk.show(source, *(post(f"{number}") for number in range(5)))
    desk.show(source, *(post(f"more {number}") for number in range(3)))
    reader = Following(desk, limit)
    reader.read()
    assert reader.seen == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_item_that_changes_again_moves_to_its_later_place(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a"), post("b"), post("c"))
    reader = Following(desk, counters=False)
    reader.read()
    desk.show(source, post("a", "edited"))
    desk.show(source, post("a", "edited twice"), post("d"))
    reader.read()
    assert reader.seen == [1, 2, 3, 1, 4]
    newcomer = Following(desk, counters=False)
    newcomer.read()
    assert newcomer.seen == [2, 3, 1, 4]


def test_what_is_only_counted_anew_comes_to_those_who_ask_for_counters(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", score=1), post("b", score=1))
    readers = {counters: Following(desk, counters=counters) for counters in (True, False)}
    for reader in readers.values():
        reader.read()
    desk.show(source, post("b", score=2))
    for reader in readers.values():
        reader.read()
    assert (readers[True].seen, readers[False].seen) == ([1, 2, 2], [1, 2])


def test_the_place_to_go_on_from_is_told_at_the_end_too_and_with_it_the_newest_number(desk: Desk) -> None:
    source = desk.follow()
    empty = desk.store.changes.after(ChangeCursor(0), 10)
    assert (empty.items, str(empty.next), empty.newest, empty.is_end) == ([], "0", 0, True)
    desk.show(source, post("a", score=1), post("b"))
    desk.show(source, post("a", score=2))
    begun = desk.store.changes.after(ChangeCursor(0), 1)
    assert (str(begun.next), begun.newest, begun.is_end) == ("1-1", 2, False)
    # The second number was for counters alone: who does not ask for them is past it all the same.
    ended = desk.store.changes.after(begun.next, 1)
    assert ([item.id for item in ended.items], str(ended.next), ended.is_end) == ([2], "2", True)
    ahead = desk.store.changes.after(ChangeCursor(99), 1)
    assert (ahead.items, str(ahead.next), ahead.newest) == ([], "99", 99)


@pytest.mark.parametrize("text", ["", "-", "-1", "1-", "a", "1-2-3", "１", "1.5", f"{2**63}", f"1-{2**63}", "9" * 5000])
def test_a_place_among_the_changes_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a change number"):
        parse_cursor(text)
