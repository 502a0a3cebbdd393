"""Why a floor could not be repaired: an error inside the parser, or in our own database."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catchment.store.items.floor_audits import AuditView
from tests.collect.test_audit import audit
from tests.forum import ForumApp


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url, pages_per_run=100)
    yield app
    app.close()


def test_an_error_inside_the_parser_costs_its_page_alone_and_its_cause_is_unknown(forum: ForumApp) -> None:
    forum.board.thread(7, pages=2)
    forum.board.thread(8, pages=2)
    forum.run()
    forum.take_out(7, 5, 25)
    forum.take_out(8, 25)
    forum.board.copies["thread 7 2"] = deque([{"tid": 7}])
    view = audit(forum)
    assert (view.repaired_floor_count, view.partial_thread_count, view.finished_at) == (2, 1, forum.clock.now())
    assert causes(forum, view) == {("7", 25): ("unknown", "internal error (KeyError)", None)}
    # A thread of which nothing can be repaired counts as failed, by its cause.
    forum.board.copies["thread 7 2"] = deque([{"tid": 7}])
    assert (view := audit(forum)).failed_thread_count == view.failed_unknown_count == 1
    assert audit(forum).repaired_floor_count == 1


def test_what_our_own_database_could_not_store_is_no_error_of_the_forum(forum: ForumApp) -> None:
    forum.board.thread(7)
    forum.run()
    forum.take_out(7, 5)
    with unwritable(forum, "items"):
        view = audit(forum)
    assert (view.failed_thread_count, view.failed_db_count) == (1, 1)
    ((category, words, status),) = causes(forum, view).values()
    assert (category, status) == ("db", None)
    assert words
    assert audit(forum).repaired_floor_count == 1


def causes(forum: ForumApp, view: AuditView) -> dict[tuple[str, int], tuple[str | None, str | None, int | None]]:
    """Of the floors that failed: category, words and status."""
    audits = forum.app.store.floor_audits
    return {
        (thread.thread_id, floor.floor_number): (floor.error_category, floor.error, floor.http_status)
        for thread in audits.threads(view.id)
        for floor in audits.floors(thread.id)
        if floor.result == "failed"
    }


@contextmanager
def unwritable(forum: ForumApp, table: str) -> Iterator[None]:
    """The database refuses new rows of a table."""
    database = forum.app.store.database
    if not database.read(lambda tx: tx.is_postgres):
        made = [f"CREATE TRIGGER refuse BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"]
        removed = ["DROP TRIGGER refuse"]
    else:
        made = [
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$",
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()",
        ]
        removed = [f"DROP TRIGGER refuse ON {table}", "DROP FUNCTION refuse"]
    database.write(lambda tx: [tx.run(sql) for sql in made])
    yield
    database.write(lambda tx: [tx.run(sql) for sql in removed])
