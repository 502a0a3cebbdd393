"""Pages of several threads in one transaction: who waits for whom, and what a faulty page costs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from catchment.model import Item, PageWrite
from catchment.store.items.page_writer import OverlappingPages, PageTask
from catchment.store.write_group import MOST, WriteGroup
from tests.store.desk import Desk, post

GROUPS = list[list[str]]


def recorded(groups: GROUPS, moment: float = 600) -> WriteGroup[str, str]:
    def write(tasks: Sequence[str]) -> list[str]:
        groups.append([*tasks])
        if "bad" in tasks:
            raise ValueError("bad")
        if "down" in tasks:
            raise ConnectionError("down")
        return [task.upper() for task in tasks]

    # Longer than any machine takes: nothing here happens because time is up.
    return WriteGroup(write, is_everyones=lambda error: isinstance(error, ConnectionError), seconds=600, moment=moment)


def written_together(group: WriteGroup[str, str], tasks: Sequence[str]) -> list[str | BaseException]:
    """Each task by a member of its own; all are members before the first one writes."""
    ready = Barrier(len(tasks))

    def write(task: str) -> str | BaseException:
        with group.member():
            ready.wait()
            try:
                return group.write(task)
            except (ValueError, ConnectionError, SystemExit) as error:
                return error

    with ThreadPoolExecutor(len(tasks)) as threads:
        return [*threads.map(write, tasks)]


def test_who_is_alone_waits_for_nobody() -> None:
    groups: GROUPS = []
    group = recorded(groups)
    with group.member():
        assert group.write("a") == "A"
    assert group.write("b") == "B"
    assert groups == [["a"], ["b"]]


def test_all_members_write_in_one_transaction_and_each_gets_its_own_result() -> None:
    groups: GROUPS = []
    assert written_together(recorded(groups), ["a", "b", "c"]) == ["A", "B", "C"]
    assert [sorted(group) for group in groups] == [["a", "b", "c"]]


def test_a_group_has_no_more_than_its_limit() -> None:
    groups: GROUPS = []
    tasks = [f"{number}" for number in range(MOST + 3)]
    assert written_together(recorded(groups), tasks) == tasks
    assert max(len(group) for group in groups) <= MOST
    assert sorted(task for group in groups for task in group) == sorted(tasks)


def test_a_faulty_page_fails_alone() -> None:
    groups: GROUPS = []
    a, bad, c = written_together(recorded(groups), ["a", "bad", "c"])
    assert (a, c) == ("A", "C")
    assert isinstance(bad, ValueError)
    assert sorted(map(sorted, groups[1:])) == [["a"], ["bad"], ["c"]]


def test_no_page_counts_as_written_if_writing_each_alone_is_ended_by_an_exit() -> None:
    errors = [ValueError("bad"), SystemExit("exit")]

    def write(tasks: Sequence[str]) -> list[str]:
        raise errors.pop(0)

    results = written_together(WriteGroup(write, seconds=600), ["a", "b", "c"])
    assert [str(result) for result in results] == ["exit"] * 3


def test_a_cause_that_all_share_fails_all_of_them_at_once() -> None:
    groups: GROUPS = []
    results = written_together(recorded(groups), ["a", "down", "c"])
    assert [str(result) for result in results] == ["down"] * 3
    assert len(groups) == 1


def test_a_member_that_leaves_is_not_waited_for() -> None:
    groups: GROUPS = []
    group = recorded(groups)
    is_member, may_leave = Event(), Event()

    def leave() -> None:
        with group.member():
            is_member.set()
            may_leave.wait()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(leave)
        is_member.wait()
        with group.member():
            may_leave.set()
            assert group.write("a") == "A"
    assert groups == [["a"]]


def test_a_page_waits_a_moment_for_visits_that_are_on_their_way() -> None:
    groups: GROUPS = []
    group = recorded(groups, moment=600)
    on_their_way = Barrier(3)

    def visit(task: str) -> str:
        with group.visit():
            on_their_way.wait()
            with group.member():
                return group.write(task)

    with ThreadPoolExecutor(3) as threads:
        assert [*threads.map(visit, "abc")] == ["A", "B", "C"]
    assert [sorted(tasks) for tasks in groups] == [["a", "b", "c"]]


@pytest.mark.parametrize("moment", [0.001, 600])
def test_a_visit_that_takes_long_or_ends_without_a_page_is_not_waited_for(moment: float) -> None:
    groups: GROUPS = []
    group = recorded(groups, moment=moment)
    is_on_its_way, is_over = Event(), Event()

    def visit() -> None:
        with group.visit():
            is_on_its_way.set()
            is_over.wait()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(visit)
        is_on_its_way.wait()
        if moment > 1:
            is_over.set()
        with group.visit(), group.member():
            assert group.write("a") == "A"
        is_over.set()
    assert groups == [["a"]]


class Gathered(Exception):
    pass


class Gathering:
    """Stands for the group: takes pages and writes none of them."""

    def __init__(self) -> None:
        self.tasks: list[PageTask] = []

    def write(self, task: PageTask) -> PageWrite:
        self.tasks.append(task)
        raise Gathered


def gathered(desk: Desk, *items: str | Item) -> list[PageTask]:
    """Pages of as many sources, each with one item, given by its id or whole."""
    group = Gathering()
    desk.store.page_writer.group = group  # type: ignore[assignment]
    for number, item in enumerate(items):
        source = desk.follow(f"{number}", kind="hackernews")
        with pytest.raises(Gathered):
            desk.show(source, post(item) if isinstance(item, str) else item)
    return group.tasks


def test_pages_of_a_group_are_written_together(desk: Desk) -> None:
    tasks = gathered(desk, "1", "2")
    written = desk.store.database.write(lambda tx: desk.store.page_writer.write_in(tx, tasks))
    assert [page.counts.new for page in written] == [1, 1]
    assert (desk.count("items"), desk.count("sightings")) == (2, 2)


def test_pages_that_show_the_same_item_are_not_written_together(desk: Desk) -> None:
    tasks = gathered(desk, "1", "1")
    with pytest.raises(OverlappingPages):
        desk.store.database.write(lambda tx: desk.store.page_writer.write_in(tx, tasks))
    assert desk.count("items") == 0
    for task in tasks:
        desk.store.database.write(lambda tx, task=task: desk.store.page_writer.write_in(tx, [task]))
    assert (desk.count("items"), desk.count("sightings")) == (1, 2)


def test_two_versions_of_an_item_that_arrive_together_are_one_item_with_the_newer_text(desk: Desk) -> None:
    before = post("1").replace(aliases=("2",), is_superseded=True)
    tasks = gathered(desk, post("2").replace(aliases=("1",), text="Edited."), before)
    with pytest.raises(OverlappingPages):
        desk.store.database.write(lambda tx: desk.store.page_writer.write_in(tx, tasks))
    for task in tasks:
        desk.store.database.write(lambda tx, task=task: desk.store.page_writer.write_in(tx, [task]))
    assert (desk.count("items"), desk.count("sightings"), desk.count("revisions")) == (1, 2, 0)
    assert desk.item("2")["text"] == "Edited."
