"""The judge of a board's month: titles that are missing or wrong, and floors that were read past, are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catchment.playground.sites.nga.threads import BoardThread, threads_of
from catchment.playground.world import Habits, Version, World
from endure.boards import BoardRows, missed_floors, wrong_titles

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
VERSIONS = [
    Version(number, START + number * DAY, title, "text", "") for number, title in enumerate(("one", "two", "three"), 1)
]
LISTED = [START + DAY + number * timedelta(hours=6) for number in range(12)]


def test_titles_that_stood_for_three_walks_are_owed_in_their_order() -> None:
    assert wrong_titles("t1", ["one", "one", "two", "three"], VERSIONS, LISTED) == []
    assert wrong_titles("t1", ["one", "three"], VERSIONS, LISTED) == [
        "t1: 'two' is not among its titles ['one', 'three']"
    ]
    # Two walks are not enough: the thread may have been shown by an old copy.
    assert wrong_titles("t1", ["one", "three"], VERSIONS, [*LISTED[:6], *LISTED[8:]]) == []


def test_titles_that_the_thread_never_had_are_found() -> None:
    for stored in (["one", "four"], ["two", "one"]):
        (found,) = wrong_titles("t1", stored, VERSIONS, [])
        assert "stored titles" in found


def long_thread() -> BoardThread:
    world = World(5, START, 0, 4.0, Habits(removed=0.3), others={"nga": 1})
    return max(threads_of(world, world.places[0]), key=lambda thread: len(thread.floors))


def test_a_floor_that_was_removed_after_its_thread_was_read_is_owed() -> None:
    thread = long_thread()
    removed = next(floor for floor in thread.floors[1:] if floor.post.removed_at is not None)
    assert removed.post.removed_at is not None
    before, after = removed.post.removed_at - timedelta(minutes=1), removed.post.removed_at + timedelta(minutes=1)
    ids = frozenset(f"p{floor.pid}" for floor in thread.floors if floor is not removed)
    name = f"t{thread.tid}"

    def missed(began: datetime, ended: datetime) -> list[str]:
        return missed_floors(thread, BoardRows({}, ids, {name: [(began, ended)]}, ()))

    assert missed(before, before) == [f"p{removed.pid} was there when {name} was read, and is not stored"]
    assert missed(after, after) == missed(before, after) == []


def test_a_floor_that_is_known_to_have_been_missing_is_not_owed() -> None:
    thread = long_thread()
    floor, name = thread.floors[1], f"t{thread.tid}"
    ids = frozenset(f"p{other.pid}" for other in thread.floors if other is not floor)
    late = max(other.post.shown_from for other in thread.floors) + timedelta(minutes=1)
    rows = BoardRows({}, ids, {name: [(late, late)]}, ())
    assert missed_floors(thread, rows) == [f"p{floor.pid} was there when {name} was read, and is not stored"]
    assert missed_floors(thread, rows.replace(holes=frozenset({(name, floor.number)}))) == []
    assert len(missed_floors(thread, rows.replace(holes=frozenset({(name, floor.number + 1)})))) == 1
