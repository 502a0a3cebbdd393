"""Rows of a forum's list that are parsed again: titles and tags are corrected, texts stay; clients are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catchment.collect.reparse import Reparsed, Reparsing
from catchment.model import Answer, Item, Platform, Reading, Request
from catchment.platforms import Platforms
from catchment.store.items.change_feed import ChangeCursor
from tests import forum as forums
from tests.forum import ForumApp


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[ForumApp]:
    app = ForumApp(tmp_path, database_url)
    yield app
    app.close()


def use(forum: ForumApp, version: int, flaw: Callable[[Item], Item]) -> None:
    """Parse from now on with this version, whose reading of rows has a flaw."""

    def read(answer: Answer, request: Request) -> Reading:
        reading = forums.read(answer, request)
        return reading.replace(items=tuple(flaw(item) if item.lacks_text else item for item in reading.items))

    parts = vars(forums.PLATFORM) | {"read": read, "PARSER_VERSION": version}
    forum.app.presence.leave(forum.clock.now())
    forum.restart(Platforms((cast(Platform, SimpleNamespace(**parts)),)))


def shouted(item: Item) -> Item:
    return item.replace(title=(item.title or "").upper())


def tagged(item: Item) -> Item:
    return item.replace(tags=("boats",))


def reparse(forum: ForumApp) -> Reparsed:
    app = forum.app
    reparsing = Reparsing(app.store, app.platforms, 1_000_000, app.stop, forum.clock.now(), is_dry=False)
    return reparsing.run(reparsing.filter())


def head(forum: ForumApp) -> tuple[Any, ...]:
    item = forum.item("t7")
    return item["title"], item["text"], item["tags"], item["is_partial"]


def test_a_row_that_is_all_that_is_known_is_corrected(forum: ForumApp) -> None:
    use(forum, 1, shouted)
    forum.board.thread(7, title="Locks").last_number = 30_000  # too long to be read
    forum.run()
    assert head(forum) == ("LOCKS", None, [], True)
    use(forum, 2, tagged)
    reparse(forum)
    assert head(forum) == ("Locks", None, ["boats"], True)
    assert forum.run().counts.updated == 0


def test_the_title_that_a_row_gave_to_a_text_is_corrected_and_the_text_stays(forum: ForumApp) -> None:
    use(forum, 1, lambda item: item)
    thread = forum.board.thread(7, title="Locks")
    forum.run()
    use(forum, 1, shouted)
    thread.title = "Locks, opened"
    forum.run()
    assert head(forum) == ("LOCKS, OPENED", "floor 0 of 7", [], False)
    use(forum, 2, tagged)
    reparse(forum)
    assert head(forum) == ("Locks, opened", "floor 0 of 7", ["boats"], False)
    assert (forum.revisions("t7")[0]["title"], forum.revisions("t7")[0]["text"]) == ("Locks", "floor 0 of 7")
    # The next visit agrees.
    assert forum.run().counts.updated == 0


def test_a_row_that_is_parsed_again_takes_nothing_from_a_text_that_came_since(forum: ForumApp) -> None:
    use(forum, 1, lambda item: item)
    forum.board.thread(7, title="Locks")
    forum.run()
    before = forum.item("t7")
    use(forum, 2, shouted)
    reparse(forum)
    after = forum.item("t7")
    assert (after["text"], after["title"], forum.revisions("t7")) == (before["text"], "Locks", [])


def test_clients_that_page_through_changes_see_a_row_its_text_and_its_new_title(forum: ForumApp) -> None:
    place = ChangeCursor(0, 0)

    def changed() -> list[tuple[str, str | None, str | None]]:
        nonlocal place
        page = forum.app.store.changes.after(place, 100)
        place = page.next or place
        return [(item.external_id, item.title, item.text) for item in page.items if item.is_head]

    thread = forum.board.thread(7, pages=0.05, title="Locks")
    thread.last_number = 30_000
    forum.run()
    assert changed() == [("t7", "Locks", None)]
    thread.last_number = 0
    forum.run()
    assert changed() == [("t7", "Locks", "floor 0 of 7")]
    forum.run()
    assert changed() == []
    thread.title = "Locks, opened"
    forum.run()
    assert changed() == [("t7", "Locks, opened", "floor 0 of 7")]
