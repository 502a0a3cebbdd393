"""Forums: a page of a thread that comes from a cache and is older than the list does not pass for the thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import ServerTrouble
from catchment.model import Counts, Outcome
from tests.forum import ForumApp, Thread

HOUR = timedelta(hours=1)


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url)
    yield app
    app.close()


def read_thread(forum: ForumApp, pages: float = 0.5) -> Thread:
    """A thread that is stored, an hour ago."""
    thread = forum.board.thread(7, pages=pages)
    forum.run()
    forum.clock.advance(3600)
    return thread


def thread_runs(forum: ForumApp) -> list[Any]:
    store = forum.app.store.threads
    boards = reversed(store.board_runs(forum.source.id))
    return [run for board in boards for run in store.thread_runs(board.run_id)]


def test_a_thread_of_which_an_old_copy_came_is_read_again(forum: ForumApp) -> None:
    thread = read_thread(forum)
    forum.board.copy("thread 7 1")
    forum.board.reply(thread, 3)
    forum.run()
    assert (forum.asked, forum.floors(7)) == (["list 1", "thread 7 1"], list(range(10)))
    state = forum.state(7)
    assert (state.next_page, state.stale_count, state.read_reply_at == state.last_reply_at) == (1, 1, False)
    forum.run()
    assert (forum.asked, forum.floors(7)) == (["list 1", "thread 7 1"], list(range(13)))
    state = forum.state(7)
    assert (state.next_page, state.stale_count, state.read_reply_at == state.last_reply_at) == (None, 0, True)
    forum.run()
    assert forum.asked == ["list 1"]
    assert [(run.error_code, run.new_count) for run in thread_runs(forum)] == [
        (None, 9),
        ("STALE_ANSWER", 0),
        (None, 3),
    ]


def test_an_old_copy_takes_back_no_edit_and_hides_no_floor(forum: ForumApp) -> None:
    thread = read_thread(forum)
    forum.board.copy("thread 7 1")
    copy = forum.board.copies.pop("thread 7 1")
    thread.floors[3].text = "mended"
    forum.board.reply(thread)
    forum.run()
    pid, last = f"p{thread.floors[3].pid}", f"p{thread.floors[10].pid}"
    before = forum.item(pid)
    assert (before["text"], before["version"]) == ("mended", 2)
    forum.board.copies["thread 7 1"] = copy
    forum.clock.advance(3600)
    forum.board.reply(thread)
    result = forum.run()
    # Nothing is taken back, and the floor that the copy lacks is not looked for.
    assert (forum.item(pid), result.counts) == (before, Counts(0, 1, 10))
    assert forum.app.rechecks().run("test") == []
    assert not forum.item(last)["is_deleted"]


def test_a_floor_that_only_an_old_copy_shows_is_stored(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=0.5)
    forum.board.copy("thread 7 1")
    thread.floors[4].is_shown = False
    forum.clock.advance(3600)
    forum.board.reply(thread)
    forum.run()
    assert forum.floors(7) == list(range(10))
    forum.run()
    # What the page does not show any more is looked at by its id, as always.
    assert forum.floors(7) == list(range(11))
    assert forum.app.store.threads.holes(forum.state(7).id) == [4]


def test_an_old_copy_that_ends_too_early_does_not_end_the_thread(forum: ForumApp) -> None:
    thread = read_thread(forum, pages=1.5)
    forum.board.copy("thread 7 2")
    forum.board.reply(thread, 30)
    forum.run()
    assert (forum.asked, forum.state(7).next_page, forum.state(7).page_count) == (["list 1", "thread 7 2"], 2, 3)
    forum.run()
    assert forum.asked == ["list 1", "thread 7 2", "thread 7 3"]
    assert (forum.floors(7), forum.state(7).next_page) == (list(range(60)), None)


def test_after_an_old_copy_the_reading_goes_on_and_begins_there_the_next_time(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=2.5)
    forum.board.copy("thread 7 1")
    thread.floors[3].text = "mended"
    forum.clock.advance(3600)
    forum.board.reply(thread, 3)
    forum.run()
    assert forum.asked == ["list 1", "thread 7 1", "thread 7 2", "thread 7 3"]
    # What nobody has seen before is stored: the text of the opening post, too.
    assert (forum.floors(7), forum.state(7).next_page, forum.state(7).stale_count) == (list(range(53)), 1, 1)
    assert (forum.item("t7")["text"], forum.item("t7")["reply_count"]) == ("floor 0 of 7", 52)
    forum.run()
    assert forum.asked == ["list 1", "thread 7 1", "thread 7 2", "thread 7 3"]
    assert (forum.state(7).next_page, forum.state(7).stale_count) == (None, 0)
    assert forum.item(f"p{thread.floors[3].pid}")["text"] == "mended"


def test_an_error_after_an_old_copy_leaves_its_page_to_be_read(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=1.5)
    forum.board.copy("thread 7 1")
    forum.clock.advance(3600)
    forum.board.reply(thread)
    forum.board.says["thread 7 2"] = deque([ServerTrouble("500", status=500)])
    forum.run()
    assert (forum.state(7).next_page, forum.state(7).stale_count) == (1, 1)
    forum.run()
    assert (forum.floors(7), forum.state(7).next_page, forum.state(7).stale_count) == (list(range(31)), None, 0)


def test_a_list_that_is_wrong_for_ever_costs_three_more_requests_and_is_believed_no_longer(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=0.5)
    thread.listed_reply_at = forum.clock.now() + HOUR
    asked = []
    for _ in range(6):
        forum.run()
        asked.append(len(forum.asked))
    assert asked == [2, 2, 2, 2, 1, 1]
    assert (forum.state(7).next_page, forum.state(7).stale_count) == (None, 3)
    assert [run.error_code for run in thread_runs(forum)] == ["STALE_ANSWER"] * 4
    # From then on a reply costs one request, as ever, and edits are taken over.
    thread.floors[3].text = "mended"
    forum.board.reply(thread)
    thread.listed_reply_at = forum.clock.now() + 24 * HOUR
    for expected in (2, 1):
        forum.run()
        assert len(forum.asked) == expected
    assert (len(forum.floors(7)), forum.item(f"p{thread.floors[3].pid}")["text"]) == (11, "mended")
    # Until the list is right.
    thread.listed_reply_at = None
    forum.clock.advance(3600)
    forum.board.reply(thread)
    forum.run()
    assert (len(forum.floors(7)), forum.state(7).stale_count) == (12, 0)


def test_where_no_time_is_stated_fewer_pages_than_in_the_list_show_an_old_copy(forum: ForumApp) -> None:
    thread = read_thread(forum, pages=1)
    forum.board.copy("thread 7 1")
    for body in forum.board.copies["thread 7 1"]:
        del body["last"]
    forum.board.reply(thread, 5)
    forum.run()
    assert (forum.state(7).next_page, forum.state(7).stale_count) == (1, 1)
    forum.run()
    assert (forum.floors(7), forum.state(7).next_page) == (list(range(25)), None)


def test_a_last_reply_that_is_removed_before_its_thread_is_read_leaves_nothing_open(forum: ForumApp) -> None:
    thread = read_thread(forum)
    forum.board.reply(thread)
    thread.listed_reply_at = thread.last_reply_at
    thread.floors[10].is_shown = False
    forum.run()
    assert forum.state(7).next_page == 1
    thread.listed_reply_at = None
    forum.run()
    assert (forum.asked, forum.state(7).next_page, forum.state(7).stale_count) == (["list 1", "thread 7 1"], None, 0)
    assert forum.app.store.threads.holes(forum.state(7).id) == [10]
    forum.run()
    assert forum.asked == ["list 1"]


def test_a_recheck_that_gets_an_old_copy_is_put_off_and_takes_back_nothing(forum: ForumApp) -> None:
    thread = read_thread(forum)
    forum.board.copy("thread 7 1")
    copies = forum.board.copies.pop("thread 7 1")
    for number in (3, 4):
        thread.floors[number].text = "mended"
    forum.board.reply(thread)
    forum.run()
    before = forum.items()
    forum.board.copies["thread 7 1"] = copies
    forum.clock.advance(9 * 24 * 3600)
    forum.board.asked.clear()
    (result,) = forum.app.rechecks().run("test")
    assert (forum.asked, result.outcome, result.error_code) == (["thread 7 1"], Outcome.FAILED, "STALE_ANSWER")
    assert forum.items() == before
    forum.clock.advance(2 * 3600)
    (result,) = forum.app.rechecks().run("test")
    assert result.outcome == Outcome.SUCCEEDED
    assert [item["version"] for item in forum.items()] == [item["version"] for item in before]
