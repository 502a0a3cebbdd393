"""Floor audits: what is missing is found and nothing else, and repaired with three attempts a floor at most."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from catchment.errors import ServerTrouble, SlowDown, Unreadable
from catchment.model import Source, SourceState
from catchment.sources.add import follow
from catchment.store.items.floor_audits import AuditView
from tests.forum import ForumApp

DAY = timedelta(days=1)


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url, pages_per_run=100)
    yield app
    app.close()


def audit(forum: ForumApp, *, repair: bool = True, source_id: int | None = None) -> AuditView:
    forum.board.asked.clear()
    forum.clock.advance(3600)
    return forum.app.floor_audit().run("test", is_repairing=repair, source_id=source_id)


def shared_thread(forum: ForumApp) -> Source:
    """Has two boards show and read thread 7, of two pages; returns the second board."""
    app = forum.app
    other, _ = follow(app.store, app.secrets, app.platforms, "forum_board", "board:2", forum.clock.now())
    forum.board.thread(7, pages=2)
    forum.run()
    forum.collect(other, after=DAY)
    assert app.store.threads.state(other.id, "7").max_floor == 39
    return other


def listed(forum: ForumApp) -> list[Any]:
    """What the list says about its threads, as it is stored."""
    heads = """
        SELECT external_id, title, author, reply_count, last_reply_at, is_pinned, version, tags FROM items
         WHERE is_head ORDER BY external_id
    """
    states = [forum.state(tid) for tid in sorted(forum.board.threads)]
    return [*states, *forum.app.store.database.read(lambda tx: tx.all(heads))]


def floors(forum: ForumApp, view: AuditView) -> dict[tuple[str, int], str]:
    """What the audit says about each floor, by thread and number."""
    audits = forum.app.store.floor_audits
    return {
        (thread.thread_id, floor.floor_number): floor.result
        for thread in audits.threads(view.id)
        for floor in audits.floors(thread.id)
    }


def test_a_floor_of_a_thread_that_two_boards_show_is_missing_once_and_is_requested_three_times(
    forum: ForumApp,
) -> None:
    shared_thread(forum)
    forum.take_out(7, 3, 25)
    found = audit(forum, repair=False)
    assert (found.missing_floor_count, floors(forum, found)) == (2, {("7", 3): "missing", ("7", 25): "missing"})
    forum.board.says["thread 7 2"] = deque([Unreadable("the page is truncated")] * 9)
    requests = []
    for _ in range(4):
        audit(forum)
        requests.append(forum.asked.count("thread 7 2"))
    assert requests == [1, 1, 1, 0]
    assert forum.floors(7) == [*range(25), *range(26, 40)]


def test_a_floor_has_three_attempts_whichever_of_two_boards_is_audited(forum: ForumApp) -> None:
    other = shared_thread(forum)
    forum.take_out(7, 25)
    forum.board.says["thread 7 2"] = deque([Unreadable("the page is truncated")] * 9)
    requests, results = [], []
    for source_id in (other.id, forum.source.id, other.id, forum.source.id, other.id, None):
        found = audit(forum, source_id=source_id)
        requests.append(forum.asked.count("thread 7 2"))
        results += floors(forum, found).values()
    assert requests == [1, 1, 1, 0, 0, 0]
    assert results == ["failed"] * 3 + ["ignored"] * 3


def test_a_hole_that_one_board_shows_is_one_for_the_other(forum: ForumApp) -> None:
    other = shared_thread(forum)
    forum.take_out(7, 25)
    forum.board.threads[7].floors[25].is_shown = False
    assert floors(forum, audit(forum, source_id=other.id)) == {("7", 25): "still_missing"}
    found = audit(forum)
    assert (found.missing_thread_count, found.missing_floor_count, forum.asked) == (0, 0, [])


def test_a_floor_that_was_brought_back_is_rechecked_like_any_other(forum: ForumApp) -> None:
    forum.board.thread(7, pages=2)
    forum.run()
    forum.take_out(7, 25)
    audit(forum)
    forum.clock.advance(10 * DAY.total_seconds())
    forum.board.threads[7].floors[25].text = "changed"
    forum.app.rechecks().run("test")
    text = "SELECT text FROM items WHERE thread_id = '7' AND floor_number = 25"
    assert forum.app.store.database.read(lambda tx: tx.column(text)) == ["changed"]


def test_what_was_taken_out_at_random_is_found_and_brought_back_and_no_hole_of_the_source(forum: ForumApp) -> None:
    random = Random(15)
    for tid in range(1, 9):
        thread = forum.board.thread(tid, pages=8)
        for number in random.sample(range(1, 160), 10):
            del thread.floors[number]
    forum.run()
    assert audit(forum).missing_floor_count == 0
    stored = [(tid, number) for tid in range(1, 9) for number in forum.floors(tid) if number]
    lost = random.sample(stored, 500)
    for tid in range(1, 9):
        forum.take_out(tid, *(number for of, number in lost if of == tid))
    found = audit(forum, repair=False)
    assert floors(forum, found) == {(str(tid), number): "missing" for tid, number in lost}
    assert (found.thread_count, found.missing_thread_count, found.missing_floor_count) == (8, 8, 500)
    assert forum.asked == []
    # What is gone by now stays missing; new replies stay out, and so do the fields of the list.
    gone = set(random.sample(lost, 20))
    for tid, number in gone:
        del forum.board.threads[tid].floors[number]
    for thread in forum.board.threads.values():
        forum.board.reply(thread, 5)
    before = listed(forum)
    repaired = audit(forum)
    assert (repaired.repaired_floor_count, repaired.partial_thread_count + repaired.repaired_thread_count) == (480, 8)
    kept = [(tid, number) for tid in range(1, 9) for number in forum.floors(tid) if number]
    assert sorted(kept) == sorted(set(stored) - gone)
    assert listed(forum) == before
    assert not [asked for asked in forum.asked if asked.startswith("list")]
    # The source has been asked: these are its own holes.
    assert audit(forum).missing_floor_count == 0


def test_a_repair_asks_only_for_pages_with_missing_floors(forum: ForumApp) -> None:
    forum.board.thread(7, pages=9)
    forum.run()
    forum.take_out(7, 3, 5, 170)
    view = audit(forum)
    assert forum.asked == ["thread 7 1", "thread 7 9"]
    (thread,) = forum.app.store.floor_audits.threads(view.id)
    assert (thread.result, thread.floor_count, thread.missing_count, thread.after_floor_count) == (
        *("repaired", 177, 3, 180),
    )
    assert (thread.remaining_count, thread.max_floor, view.repaired_thread_count) == (0, 179, 1)
    assert forum.floors(7) == list(range(180))


@pytest.mark.parametrize(
    ("error", "category", "status"),
    [(ServerTrouble("500", status=500), "http", 500), (Unreadable("what is that"), "parse", None)],
)
def test_a_floor_that_fails_three_times_is_never_asked_for_again(
    forum: ForumApp, error: Exception, category: str, status: int | None
) -> None:
    forum.board.thread(7, pages=2)
    forum.run()
    forum.take_out(7, 25)
    forum.board.says["thread 7 2"] = deque([error] * 9)  # type: ignore[list-item]
    results = []
    for _ in range(5):
        view = audit(forum)
        (thread,) = forum.app.store.floor_audits.threads(view.id)
        (floor,) = forum.app.store.floor_audits.floors(thread.id)
        results.append((thread.result, floor.result, floor.attempts_before, len(forum.asked), floor.error_category))
        forum.app.presence.leave(forum.clock.now())
        forum.restart()
    assert results == [
        *(("failed", "failed", attempts, 1, category) for attempts in range(3)),
        *[("skipped", "ignored", 3, 0, None)] * 2,
    ]


def test_ignored_floors_are_counted_with_their_thread(forum: ForumApp) -> None:
    forum.board.thread(7, pages=2)
    forum.run()
    forum.take_out(7, 5, 25)
    audits, row_id = forum.app.store.floor_audits, forum.state(7).id

    def meanwhile(about: str) -> None:
        """Another process uses up the attempts for the second floor."""
        for _ in range(3):
            audits.reserve(row_id, [25], forum.clock.now())

    forum.board.hook = meanwhile
    view = audit(forum)
    (noted,) = audits.threads(view.id)
    assert (forum.asked, noted.missing_count, noted.ignored_count) == (["thread 7 1"], 2, 1)
    assert (noted.result, noted.remaining_count, view.ignored_floor_count) == ("partial", 1, 1)


def test_an_audit_that_is_stopped_ends_with_what_it_found(forum: ForumApp) -> None:
    for tid in (7, 8):
        forum.board.thread(tid)
    forum.run()
    for tid in (7, 8):
        forum.take_out(tid, 5)
    forum.board.hook = lambda about: forum.app.stop.set()
    view = audit(forum)
    assert (view.finished_at, view.missing_floor_count, view.repaired_floor_count) == (forum.clock.now(), 2, 1)
    forum.board.hook = None
    forum.app.stop.clear()
    assert audit(forum).repaired_floor_count == 1


def test_an_audit_whose_process_was_killed_is_ended_by_the_next_one(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.run()
    forum.take_out(7, 5, 6)
    audits, owner, now = forum.app.store.floor_audits, forum.app.presence.owner_id, forum.clock.now()
    killed = audits.request("manual", now, is_repairing=False)
    assert audits.begin(killed.id, forum.app.store.runs.begin("audit-floors", "test", owner, now), now)
    (thread,) = audits.incomplete(forum.source.id, 0)[2]
    audits.note(killed.id, thread)
    forum.app.presence.leave(now)
    forum.restart()
    assert audit(forum).repaired_floor_count == 2
    ended = audits.get(killed.id)
    assert (ended.finished_at, ended.missing_thread_count, ended.missing_floor_count) == (forum.clock.now(), 1, 2)


def test_floors_of_a_paused_board_are_found_and_requested_only_if_it_is_named(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.run()
    forum.take_out(7, 5)
    forum.app.store.sources.set_state(forum.source.id, SourceState.PAUSED, "a rest", forum.clock.now())
    view = audit(forum)
    assert (view.missing_floor_count, forum.asked) == (1, [])
    named = forum.app.floor_audit().run("test", is_repairing=True, source_id=forum.source.id)
    assert named.repaired_floor_count == 1


def test_a_repair_holds_a_thread_for_four_minutes_at_most(forum: ForumApp) -> None:
    forum.board.thread(7, pages=9)
    forum.run()
    forum.take_out(7, *range(5, 180, 20))
    forum.board.seconds_a_page = 100
    other = forum.another("other", forum.board, forum.app.platforms)
    row_id, waited = forum.state(7).id, []

    def meanwhile(about: str) -> None:
        """Another process wants the thread; it gets it as soon as it is released."""
        claimed = other.store.threads.claim_by_id(row_id, other.presence.owner_id, forum.clock.now())
        waited.append(claimed is None)
        if claimed is not None:
            other.store.threads.release(claimed.lease)

    forum.board.hook = meanwhile
    held: list[float] = []
    threads, begun = forum.app.store.threads, forum.clock.now
    claim, release = threads.claim_by_id, threads.release
    at: list[Any] = []
    threads.claim_by_id = lambda *given: at.append(begun()) or claim(*given)  # type: ignore[method-assign,func-returns-value]
    threads.release = lambda lease: held.append((begun() - at[-1]).total_seconds()) or release(lease)  # type: ignore[method-assign,func-returns-value]
    try:
        view = audit(forum)
    finally:
        other.close()
    assert (view.repaired_floor_count, waited, held) == (9, [True] * 9, [300, 300, 300])


def test_a_wait_costs_no_attempt(forum: ForumApp) -> None:
    forum.board.thread(7, pages=2)
    forum.run()
    forum.take_out(7, 5, 25)
    forum.board.says["thread 7 1"] = deque([SlowDown("429", status=429)])
    view = audit(forum)
    assert set(floors(forum, view).values()) == {"missing"}
    assert len(forum.asked) == 1
    assert audit(forum).repaired_floor_count == 2


def test_a_thread_that_somebody_reads_is_left_to_them(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.run()
    forum.take_out(7, 5)
    claimed = forum.app.store.threads.claim_by_id(forum.state(7).id, forum.app.presence.owner_id, forum.clock.now())
    assert claimed
    view = audit(forum)
    assert [thread.result for thread in forum.app.store.floor_audits.threads(view.id)] == ["skipped"]
    forum.app.store.threads.release(claimed.lease)
    assert audit(forum).repaired_floor_count == 1


def test_an_audit_that_was_requested_is_made_once(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.run()
    requested = forum.app.store.floor_audits.request("manual", forum.clock.now(), is_repairing=False)
    (done,) = forum.app.floor_audit().requested()
    assert (done.id, done.thread_count, done.finished_at) == (requested.id, 1, forum.clock.now())
    assert forum.app.floor_audit().requested() == []
