"""Declared against stored: a platform's own count of replies is compared with what is stored, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forum import ForumApp


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url, pages_per_run=1)
    yield app
    app.close()


def worst(forum: ForumApp) -> list[tuple[str | None, int, int, int, int]]:
    """Title, declared, stored, holes and missing."""
    return [
        (row.title, row.declared_count, row.stored_count, row.hole_count, row.missing_count)
        for row in forum.app.store.reply_counts.worst(source_id=forum.source.id)
    ]


def test_threads_that_are_read_in_part_are_listed_until_they_are_read_whole(forum: ForumApp) -> None:
    forum.board.thread(1)
    forum.board.thread(2, pages=2)
    forum.board.thread(3, pages=3)
    forum.run()
    assert worst(forum) == [("Thread 3", 59, 19, 0, 40), ("Thread 2", 39, 19, 0, 20)]
    first, second = (forum.app.store.reply_counts.worst(1, after=after) for after in (None, (40, 2**62)))
    assert [row.title for row in (*first, *second)] == ["Thread 3", "Thread 3"]
    assert forum.app.store.reply_counts.worst(after=(40, first[0].item_id))[0].title == "Thread 2"
    forum.run()
    assert worst(forum) == [("Thread 3", 59, 39, 0, 20)]
    forum.run()
    assert worst(forum) == []


def test_what_the_forum_itself_does_not_have_is_not_missing(forum: ForumApp) -> None:
    thread = forum.board.thread(1)
    del thread.floors[4], thread.floors[5]
    forum.run()
    assert worst(forum) == []


def test_what_is_removed_from_the_archive_is_missing_again(forum: ForumApp) -> None:
    forum.board.thread(1)
    forum.run()
    forum.take_out(1, 3, 4, 5)
    assert worst(forum) == [("Thread 1", 19, 16, 0, 3)]
    assert forum.app.floor_audit().run("test", is_repairing=True).repaired_floor_count == 3
    assert worst(forum) == []
