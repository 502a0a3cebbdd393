"""Forums: a board's list is read down to its window's edge, and threads that are new or changed, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from catchment.clock import micros
from catchment.errors import Missing, Refused, ServerTrouble, SlowDown
from catchment.fetch.paid_calls import CallCosts
from catchment.model import Answer, Booking, Counts, Forum, Outcome, ReadReason
from catchment.policy.threads import window
from tests.forum import Board, ForumApp

DAY = timedelta(days=1)


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url)
    yield app
    app.close()


def test_a_thread_is_stored_with_its_row_and_all_its_floors(forum: ForumApp) -> None:
    forum.board.thread(7, pages=1.5, title="Locks")
    result = forum.run()
    assert (result.outcome, result.counts, result.requests) == (Outcome.SUCCEEDED, Counts(30, 1), 3)
    assert forum.asked == ["list 1", "thread 7 1", "thread 7 2"]
    assert forum.floors(7) == list(range(30))
    head = forum.item("t7")
    assert (head["title"], head["text"], head["floor_number"], head["reply_count"], head["is_partial"]) == (
        *("Locks", "floor 0 of 7", 0, 29, False),
    )
    state = forum.state(7)
    assert (state.max_floor, state.max_floor_id, state.page_count, state.next_page) == (29, "p1030", 2, None)
    assert (state.first_list_page, state.read_reply_at, state.read_reason) == (1, state.last_reply_at, None)


def test_a_run_in_which_nothing_changed_costs_the_list_pages_alone(forum: ForumApp) -> None:
    for tid in range(25):
        forum.board.thread(tid)
    forum.run()
    result = forum.run()
    assert forum.asked == ["list 1", "list 2", "list 3"]
    assert result.counts == Counts(duplicate=25)


def test_three_more_replies_cost_a_list_page_and_a_thread_page(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=2.2)
    forum.run()
    forum.board.reply(thread, 3)
    result = forum.run()
    assert forum.asked == ["list 1", "thread 7 3"]
    assert (result.counts.new, forum.floors(7)) == (3, list(range(47)))


def test_a_thread_of_23_pages_takes_five_runs(forum: ForumApp) -> None:
    forum.board.thread(7, pages=23)
    pages, marks = [], []
    for _ in range(6):
        forum.run(DAY / 4)
        pages.append(len([asked for asked in forum.asked if asked.startswith("thread")]))
        state = forum.state(7)
        marks.append((state.next_page, state.truncated_at_page, state.max_floor))
    assert pages == [5, 5, 5, 5, 3, 0]
    assert marks == [(6, 5, 99), (11, 10, 199), (16, 15, 299), (21, 20, 399), (None, None, 459), (None, None, 459)]
    assert forum.floors(7) == list(range(460))
    runs = [
        run
        for board in forum.app.store.threads.board_runs(forum.source.id)
        for run in forum.app.store.threads.thread_runs(board.run_id)
    ]
    assert [(run.read_reason, run.page_count, run.is_capped) for run in reversed(runs)] == [
        ("new", 5, True),
        *[("pages_pending", 5, True)] * 3,
        ("pages_pending", 3, False),
    ]


def test_of_a_thread_of_more_than_a_thousand_pages_only_the_head_is_stored(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=1)
    thread.last_number = 1_000 * 20
    forum.run()
    since = forum.state(7).skipped_since
    assert (forum.asked, since) == (["list 1"], forum.clock.now())
    forum.run()
    assert (forum.asked, forum.state(7).skipped_since, forum.floors(7)) == (["list 1"], since, [])
    # 1,000 pages are not too many.
    thread.last_number = 1_000 * 20 - 1
    forum.run()
    assert (forum.asked[1], forum.state(7).skipped_since) == ("thread 7 1", None)


def test_the_window_is_counted_in_days_of_the_forum(forum: ForumApp) -> None:
    shanghai = Forum(zone="Asia/Shanghai")
    at = datetime(2026, 5, 10, 0, 30, tzinfo=ZoneInfo("Asia/Shanghai")).astimezone(UTC)
    days = window(shanghai, 3, at)
    assert (f"{days.first_day}", f"{days.last_day}") == ("2026-05-08", "2026-05-10")
    assert days.starts_at == datetime(2026, 5, 7, 16, tzinfo=UTC)
    assert f"{window(shanghai, 3, at - timedelta(hours=1)).last_day}" == "2026-05-09"
    assert window(shanghai, 100_000, at).starts_at.year < 1800


def test_the_list_is_read_down_to_the_edge_of_the_window_whatever_the_first_page_says(forum: ForumApp) -> None:
    now = forum.clock.now()
    for tid in range(60):
        forum.board.thread(tid, at=now - tid * timedelta(hours=3))
    forum.board.thread(99, at=now - 90 * DAY).is_pinned = True
    forum.run(timedelta())
    first_day = window(Forum(zone="Asia/Shanghai"), 3, now).starts_at
    inside = sum(1 for tid in range(60) if now - tid * timedelta(hours=3) >= first_day)
    assert [asked for asked in forum.asked if asked.startswith("list")] == [
        f"list {page}" for page in range(1, -(-inside // 10) + 2)
    ]
    # What the last page showed beyond the edge is stored as well: it was paid for.
    assert forum.state(99).first_list_page == 1


def test_after_a_pause_the_list_is_read_down_to_what_is_stored(forum: ForumApp) -> None:
    forum.board.thread(1)
    forum.run()
    for number in range(40):
        forum.board.thread(100 + number, at=forum.clock.now() + number * timedelta(hours=6))
    forum.run(10 * DAY)
    assert forum.asked[:5] == ["list 1", "list 2", "list 3", "list 4", "list 5"]


def test_the_page_of_a_removed_last_reply_is_read_again_and_the_reply_looked_at(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=1)
    forum.clock.advance(60)
    forum.board.reply(thread)
    forum.run()
    gone = forum.state(7).max_floor_id
    thread.floors[20].is_shown = False
    forum.run()
    assert forum.asked == ["list 1", "thread 7 2"]
    assert not forum.item(gone)["is_deleted"]
    for after in (60, 3700):
        forum.clock.advance(after)
        forum.app.rechecks().run("test")
    assert forum.item(gone)["is_deleted"]
    assert [revision["reasons"] for revision in forum.revisions(gone)] == [["marked_deleted_by_source"]]
    assert forum.app.store.threads.holes(forum.state(7).id) == [20]


def test_replies_on_pages_that_are_not_there_any_more_are_looked_at(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=2)
    forum.clock.advance(60)
    forum.board.reply(thread, 2)
    forum.run()
    gone = [f"p{thread.floors.pop(number).pid}" for number in (40, 41)]
    thread.last_number = 39
    forum.run()
    assert forum.asked == ["list 1", "thread 7 2"]
    for after in (60, 3700):
        forum.clock.advance(after)
        forum.board.asked.clear()
        forum.app.rechecks().run("test")
        assert sorted(forum.asked) == [f"post {id_[1:]}" for id_ in gone]
    assert [forum.item(id_)["is_deleted"] for id_ in gone] == [True, True]
    # Of a page in the middle, nothing is said about the pages behind it.
    other = forum.board.thread(8, pages=4)
    forum.run()
    forum.board.reply(other)
    forum.run()
    forum.board.asked.clear()
    forum.app.rechecks().run("test")
    assert forum.asked == []


def test_an_edit_on_a_page_that_is_read_is_a_revision(forum: ForumApp) -> None:
    thread = forum.board.thread(7)
    forum.run()
    thread.floors[3].text = "edited"
    forum.board.reply(thread)
    result = forum.run()
    assert (result.counts.new, result.counts.updated) == (1, 2)
    (revision,) = forum.revisions(f"p{thread.floors[3].pid}")
    assert (revision["text"], revision["reasons"]) == ("floor 3 of 7", ["content_fingerprint_changed"])


def test_a_second_post_under_a_taken_number_is_stored_without_it(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=0.5)
    forum.run()
    first = thread.floors[4]
    forum.board.reply(thread)
    thread.floors[4] = thread.floors.pop(10)
    thread.last_number = 9
    first.is_shown = False
    forum.run()
    assert forum.item(f"p{first.pid}")["floor_number"] == 4
    second = forum.item(f"p{thread.floors[4].pid}")
    assert (second["floor_number"], second["thread_id"], second["text"]) == (None, "7", "floor 10 of 7")
    # The run's record says so.
    (run,) = [run for run in (1, 2) if any(row.doubled_floors for row in forum.app.store.threads.thread_runs(run))]
    (row,) = forum.app.store.threads.thread_runs(run)
    assert (run, row.thread_id, row.doubled_floors) == (2, "7", (4,))
    assert forum.run().counts == Counts(duplicate=1)


def test_a_moved_post_follows_its_thread(forum: ForumApp) -> None:
    one, two = forum.board.thread(1, pages=0.5), forum.board.thread(2, pages=0.5)
    forum.run()
    moved = one.floors.pop(9)
    two.floors[10], two.last_number = moved, 10
    moved.at = forum.clock.now()
    forum.run()
    item = forum.item(f"p{moved.pid}")
    assert (item["thread_id"], item["floor_number"], item["version"]) == ("2", 10, 1)


def test_a_thread_that_fails_is_recorded_and_read_in_the_next_run(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.board.thread(8)
    forum.board.says["thread 8 1"] = deque([ServerTrouble("500", status=500)])
    result = forum.run()
    assert (result.outcome, forum.floors(8), len(forum.floors(7))) == (Outcome.SUCCEEDED, [], 20)
    (run,) = forum.app.store.threads.board_runs(forum.source.id)
    failed = [thread_run for thread_run in forum.app.store.threads.thread_runs(run.run_id) if thread_run.error_code]
    assert [(thread_run.thread_id, thread_run.http_status, thread_run.error_code) for thread_run in failed] == [
        ("8", 500, "SERVER_TROUBLE")
    ]
    forum.run()
    assert (forum.asked, len(forum.floors(8))) == (["list 1", "thread 8 1"], 20)


def test_a_thread_that_is_gone_is_not_requested_again_and_again(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.board.says["thread 7 1"] = deque([Missing("404", status=404)] * 3)
    forum.run()
    since = forum.state(7).gone_since
    assert since is not None
    # Twice within the hour proves nothing.
    forum.run(timedelta(minutes=20))
    assert (forum.asked, forum.state(7).next_page) == (["list 1", "thread 7 1"], 1)
    forum.run()
    assert (forum.asked, forum.state(7).gone_since) == (["list 1", "thread 7 1"], since)
    forum.run()
    assert forum.asked == ["list 1"]


def test_a_thread_that_was_only_said_to_be_gone_is_read_in_the_next_run(forum: ForumApp) -> None:
    forum.board.thread(7, pages=1.5)
    forum.board.says["thread 7 2"] = deque([Missing("404", status=404)])
    forum.run()
    assert forum.floors(7) == list(range(20))
    forum.run()
    assert forum.floors(7) == list(range(30))
    assert (forum.state(7).gone_since, forum.state(7).next_page) == (None, None)


def test_who_asks_to_wait_is_obeyed_and_the_rest_is_read_with_the_next_tick(forum: ForumApp) -> None:
    for tid in (7, 8):
        forum.board.thread(tid)
    until = forum.clock.now() + timedelta(minutes=13)
    forum.board.says["thread 7 1"] = deque([SlowDown("429", status=429, retry_at=until)])
    forum.board.says["thread 8 1"] = deque([SlowDown("429", status=429, retry_at=until)])
    result = forum.run(timedelta(minutes=1))
    assert (result.outcome, len(forum.asked), forum.floors(7) + forum.floors(8)) == (Outcome.SUCCEEDED, 2, [])
    forum.clock.advance(900)
    forum.board.says.clear()
    owner = forum.app.presence.owner_id
    (read,) = forum.app.visitor().read_threads("schedule", owner)
    assert (read.counts.new, len(forum.floors(7)), len(forum.floors(8))) == (38, 20, 20)
    assert forum.app.visitor().read_threads("schedule", owner) == []


def refusal() -> Refused:
    """What a platform says of a thread that it hides: in another form it would say the same."""
    error = Refused("hidden")
    error.is_final = True
    return error


def test_a_thread_that_is_not_shown_to_us_costs_nothing_until_it_is_replied_to(forum: ForumApp) -> None:
    thread = forum.board.thread(7)
    forum.board.says["thread 7 1"] = deque([refusal()] * 3)
    forum.run()
    # Twice within the hour proves nothing.
    forum.run(timedelta(minutes=20))
    assert forum.asked == ["list 1", "thread 7 1"]
    forum.run()
    assert forum.asked == ["list 1", "thread 7 1"]
    for _ in range(3):
        forum.run()
        assert forum.asked == ["list 1"]
    forum.board.reply(thread)
    forum.run()
    assert (forum.asked, forum.floors(7)) == (["list 1", "thread 7 1", "thread 7 2"], list(range(21)))


def test_a_thread_that_waits_for_review_is_requested_by_every_run_until_it_is_shown(forum: ForumApp) -> None:
    forum.board.thread(7)
    in_review = refusal()
    in_review.is_passing = True
    forum.board.says["thread 7 1"] = deque([in_review] * 4)
    for _ in range(5):
        forum.run()
        assert forum.asked == ["list 1", "thread 7 1"]
    assert (forum.floors(7), forum.state(7).gone_since) == (list(range(20)), None)


def test_a_list_of_sub_boards_alone_is_read_down_to_the_edge_of_the_window(forum: ForumApp) -> None:
    now = forum.clock.now()
    for tid in range(60):
        forum.board.thread(tid, pages=0.05, at=now - tid * timedelta(hours=3)).is_of_sub_board = True
    forum.run(timedelta())
    edge = window(Forum(zone="Asia/Shanghai"), 3, now).starts_at
    pages = sum(1 for tid in range(60) if now - tid * timedelta(hours=3) >= edge) // 10 + 2
    lists = [asked for asked in forum.asked if asked.startswith("list")]
    assert lists == [f"list {page}" for page in range(1, pages + 1)]
    assert forum.progress(forum.source).watermark.at == now
    # After a pause, down to what is stored.
    forum.board.thread(99, pages=0.05, at=now + timedelta(hours=1)).is_of_sub_board = True
    forum.run(20 * DAY)
    assert forum.asked[0] == "list 1"
    assert forum.state(99).last_list_page == 1


def test_a_title_that_changed_before_the_thread_was_read_is_in_its_history(forum: ForumApp) -> None:
    thread = forum.board.thread(7, title="Locks")
    forum.board.hook = lambda about: setattr(thread, "title", "Locks, opened") if about == "thread 7 1" else None
    forum.run()
    head = forum.item("t7")
    assert (head["title"], head["text"], head["version"], head["is_partial"]) == (
        *("Locks, opened", "floor 0 of 7", 2, False),
    )
    assert [(revision["title"], revision["reasons"]) for revision in forum.revisions("t7")] == [
        ("Locks", ["title_changed"])
    ]


def test_an_old_copy_completes_the_text_under_the_newer_title(forum: ForumApp) -> None:
    thread = forum.board.thread(7, title="Locks")
    forum.board.copy("thread 7 1")
    forum.clock.advance(3600)
    thread.title = "Locks, opened"
    forum.board.reply(thread)
    forum.run()
    head = forum.item("t7")
    assert (head["title"], head["text"], forum.revisions("t7")) == ("Locks, opened", "floor 0 of 7", [])
    # Its own page says the same: the fingerprint is that of the newer title with the text.
    forum.run()
    assert (forum.floors(7), forum.revisions("t7")) == (list(range(21)), [])


def test_the_records_of_a_run_count_all_requests_and_the_visits_that_fail(forum: ForumApp) -> None:
    for tid in (7, 8, 9):
        forum.board.thread(tid, pages=0.5)
    forum.board.says["thread 9 1"] = deque([ServerTrouble("500", status=500)])
    assert forum.run().requests == 4
    forum.board.says["list 1"] = deque([ServerTrouble("500", status=500)])
    forum.run(timedelta(minutes=1))
    failed, first = forum.app.store.threads.board_runs(forum.source.id)
    assert (first.request_count, first.scanned_count, first.updated_count) == (4, 3, 2)
    assert (failed.request_count, failed.scanned_count, failed.window_last_day) == (1, 0, first.window_last_day)


def test_a_thread_that_is_read_twice_in_a_run_has_one_record_of_all_its_pages(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=1.5)
    forum.run()
    forum.board.reply(thread)
    owner, store = forum.app.presence.owner_id, forum.app.store
    run_id = store.runs.begin("test", "test", owner, forum.clock.now())
    asked = []

    def meanwhile(about: str) -> None:
        """While the thread is read, the list shows another reply."""
        asked.append(about)
        if asked == ["list 1", "thread 7 2"]:
            forum.board.reply(thread, at=forum.clock.now() + timedelta(seconds=1))
            at = micros(thread.last_reply_at)
            store.database.write(lambda tx: tx.run("UPDATE threads SET last_reply_at = ?", at))

    forum.board.hook = meanwhile
    (claimed,) = store.sources.claim([forum.source.id], owner, forum.clock.now())
    forum.app.visitor().visit(claimed, run_id)
    assert asked == ["list 1", "thread 7 2", "thread 7 2"]
    (run,) = store.threads.thread_runs(run_id)
    assert (run.page_count, run.new_count, run.read_reason) == (2, 2, "last_reply_changed")
    assert (run.error_code, run.finished_at) == (None, forum.clock.now())


def test_a_kill_in_the_middle_of_a_thread_costs_one_page(forum: ForumApp) -> None:
    forum.board.thread(7, pages=4)

    def kill(about: str) -> None:
        if about == "thread 7 3":
            raise SystemExit("killed")

    forum.board.hook = kill
    store, owner = forum.app.store, forum.app.presence.owner_id
    run_id = store.runs.begin("test", "test", owner, forum.clock.now())
    (claimed,) = store.sources.claim([forum.source.id], owner, forum.clock.now())
    with pytest.raises(SystemExit):
        forum.app.visitor().visit(claimed, run_id)
    assert (forum.floors(7), forum.state(7).next_page, forum.state(7).max_floor) == (list(range(40)), 3, 39)
    # The record says what was done until then.
    (run,) = store.threads.thread_runs(run_id)
    assert (run.page_count, run.new_count) == (2, 39)
    forum.board.hook = None
    forum.app.presence.leave(forum.clock.now())
    forum.restart()
    forum.board.asked.clear()
    forum.app.visitor().read_threads("schedule", forum.app.presence.owner_id)
    assert (forum.asked, forum.floors(7)) == (["thread 7 3", "thread 7 4"], list(range(80)))


def test_processes_share_the_threads_of_a_board(forum: ForumApp) -> None:
    for tid in range(1, 7):
        forum.board.thread(tid, pages=0.5)
    other = forum.another("other", forum.board, forum.app.platforms)
    begun = []

    def both(about: str) -> None:
        """While one process reads a thread, another reads all the others."""
        if about.startswith("thread") and not begun:
            begun.append(about)
            reader = other.visitor().read_threads("schedule", other.presence.owner_id)
            begun.append(str(reader[0].counts.new))

    forum.board.hook = both
    try:
        forum.run()
    finally:
        other.close()
    assert begun == ["thread 6 1", "45"]
    assert sorted(forum.asked) == ["list 1", *(f"thread {tid} 1" for tid in range(1, 7))]
    assert [forum.floors(tid) for tid in range(1, 7)] == [list(range(10))] * 6


def test_nobody_is_held_for_longer_than_four_minutes(forum: ForumApp) -> None:
    now = forum.clock.now()
    for tid in range(100):
        forum.board.thread(tid, pages=0.05, at=now - tid * timedelta(minutes=1))
    forum.board.seconds_a_page = 100
    # The list: the source is released, and continues where it was with the next tick.
    rounds = []
    for _ in range(4):
        forum.board.asked.clear()
        forum.clock.advance(60)
        began = forum.clock.now()
        forum.app.scheduler().due("test", "test")
        rounds.append((forum.asked.copy(), (forum.clock.now() - began).total_seconds()))
    assert rounds == [
        (["list 1", "list 2", "list 3"], 300),
        (["list 4", "list 5", "list 6"], 300),
        (["list 7", "list 8", "list 9"], 300),
        (["list 10", "thread 0 1", "thread 1 1"], 300),
    ]
    assert forum.app.scheduler().due("test", "test") == []
    assert (forum.state(0).first_list_page, forum.state(99).first_list_page) == (1, 10)
    # Threads: whatever is left goes on with the next tick.
    forum.board.asked.clear()
    began = forum.clock.now()
    forum.app.visitor().read_threads("schedule", forum.app.presence.owner_id)
    assert (forum.asked, (forum.clock.now() - began).total_seconds()) == ([f"thread {tid} 1" for tid in (2, 3, 4)], 300)


def test_a_list_that_was_left_long_ago_is_read_from_its_top(forum: ForumApp) -> None:
    for tid in range(100):
        forum.board.thread(tid, pages=0.05, at=forum.clock.now() - tid * timedelta(minutes=1))
    forum.board.seconds_a_page = 100
    forum.run()
    assert forum.asked == ["list 1", "list 2", "list 3"]
    forum.run(timedelta(hours=2))
    assert forum.asked == ["list 1", "list 2", "list 3"]


def test_the_list_page_where_a_thread_was_first_and_last_seen_is_known(forum: ForumApp) -> None:
    forum.board.thread(7, pages=0.05)
    forum.run(timedelta(minutes=1))
    for tid in range(10, 25):
        forum.board.thread(tid, pages=0.05)
    forum.run(timedelta(minutes=1))
    state = forum.state(7)
    assert (state.first_list_page, state.last_list_page) == (1, 2)


def test_a_post_that_is_moved_to_a_taken_number_is_stored_without_one(forum: ForumApp) -> None:
    one, two = forum.board.thread(1, pages=0.5), forum.board.thread(2, pages=0.5)
    forum.run()
    # A recheck by id shows it on a floor that another post has.
    moved = one.floors.pop(9)
    two.floors[5].is_shown = False
    two.floors[5] = moved
    forum.clock.advance(9 * 24 * 3600)
    forum.app.rechecks().run("test")
    forum.clock.advance(60)
    forum.app.rechecks().run("test")
    item = forum.item(f"p{moved.pid}")
    assert (item["thread_id"], item["floor_number"]) == ("2", None)
    assert (forum.floors(1), forum.floors(2)) == (list(range(9)), list(range(10)))
    sql = "SELECT count(*) FROM items WHERE thread_id = '2' AND floor_number = 5"
    assert forum.app.store.database.read(lambda tx: tx.one(sql)) == (1,)


def test_absent_floors_are_looked_for_by_id_and_gone_only_after_two_looks_an_hour_apart(forum: ForumApp) -> None:
    thread = forum.board.thread(7)
    forum.run()
    gone = [f"p{thread.floors[number].pid}" for number in (3, 4, 5)]
    for number in (3, 4, 5):
        thread.floors[number].is_shown = False
    forum.board.reply(thread)
    thread.floors[20].at = forum.clock.now() + DAY
    forum.run()
    looks = []
    for after in (60, 60, 3700):
        forum.clock.advance(after)
        forum.board.asked.clear()
        forum.app.rechecks().run("test")
        looks.append((sorted(forum.asked), [forum.item(pid)["is_deleted"] for pid in gone]))
    by_id = sorted(f"post {pid[1:]}" for pid in gone)
    assert looks == [(by_id, [False] * 3), ([], [False] * 3), (by_id, [True] * 3)]


def test_the_records_of_a_run_say_what_was_scanned_and_changed(forum: ForumApp) -> None:
    for tid in range(12):
        forum.board.thread(tid, pages=0.5)
    forum.run(timedelta(minutes=1))
    forum.board.reply(forum.board.threads[3])
    forum.run()
    latest, before = forum.app.store.threads.board_runs(forum.source.id)
    days = window(Forum(zone="Asia/Shanghai"), 3, forum.clock.now())
    assert (latest.run_trigger, latest.window_first_day, latest.window_last_day) == (
        *("manual", f"{days.first_day}", f"{days.last_day}"),
    )
    assert (latest.scanned_count, latest.changed_count, latest.updated_count, latest.request_count) == (12, 1, 1, 3)
    assert (before.scanned_count, before.changed_count, before.updated_count, before.request_count) == (12, 12, 12, 14)
    (run,) = forum.app.store.threads.thread_runs(latest.run_id)
    assert (run.thread_id, run.read_reason, run.page_count, run.is_capped, run.new_count, run.updated_count) == (
        *("3", "last_reply_changed", 1, False, 1, 0),
    )
    assert run.last_reply_at == forum.state(3).last_reply_at


def test_floors_of_a_page_are_rechecked_by_one_request(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=0.2)
    for _ in range(5):
        forum.clock.advance(3600)
        forum.board.reply(thread)
        forum.run(timedelta(minutes=30))
    forum.clock.advance(9 * 24 * 3600)
    forum.board.asked.clear()
    thread.floors[8].text = "mended"
    (result,) = forum.app.rechecks().run("test")
    assert (forum.asked, result.counts.updated, forum.item(f"p{thread.floors[8].pid}")["text"]) == (
        *(["thread 7 1"], 1, "mended"),
    )


def test_a_reply_that_comes_while_a_thread_is_read_is_not_lost(forum: ForumApp) -> None:
    thread = forum.board.thread(7, pages=1.5)
    forum.run()
    store, owner = forum.app.store, forum.app.presence.owner_id
    forum.board.reply(thread)
    forum.clock.advance(60)
    store.database.write(lambda tx: tx.run("UPDATE threads SET read_reason = 'pages_pending'"))
    claimed = store.threads.claim(forum.source.id, owner, forum.clock.now())
    assert claimed
    # Claimed by somebody: nobody else reads it.
    assert forum.run(timedelta(minutes=1)).requests == 1
    store.threads.release(claimed.lease)
    assert forum.state(7).read_reason == ReadReason.REPLIED
    forum.app.visitor().read_threads("schedule", owner)
    assert (forum.floors(7), forum.state(7).read_reason) == (list(range(31)), None)


def test_of_a_forum_that_charges_every_answer_is_booked_once(forum: ForumApp, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Board.__call__

    def charged(board: Board, *request: Any, costs: CallCosts, **more: Any) -> Answer:
        costs.unbooked.append(Booking("forum", None, costs.source_id, "2026-03-01", amount=100))
        return answer(board, *request, costs=costs, **more)

    monkeypatch.setattr(Board, "__call__", charged)
    for tid in range(25):
        forum.board.thread(tid)
    forum.run()
    assert len(forum.asked) == 3 + 25
    (spent,) = forum.app.store.spending.by_day("2026-03-01")
    assert spent.amount == 100 * len(forum.asked)
