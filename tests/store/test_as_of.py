"""An item at a moment: what it said then, as far as it was known then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from catchment.errors import NotFound
from catchment.model import Item, Media, as_json
from tests.store.desk import Desk, post

MOMENT = timedelta(microseconds=1)


def told(desk: Desk, at: datetime, *names: str) -> tuple[Any, ...]:
    item = as_json(desk.store.items.as_of(1, at))
    return tuple(item[name] for name in names)


def test_every_version_is_shown_from_the_moment_it_was_seen_until_the_next_was(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "first", media=(Media("https://m.example/1.png"),)))
    first = desk.now
    desk.show(source, post("a", "second", title="Again"))
    second = desk.now
    desk.show(source, Item("a", title="Again", text="second", is_deleted=True))
    third = desk.now
    names = ("version", "title", "text", "is_deleted", "valid_to")
    assert told(desk, first, *names) == (1, "About a", "first", False, second.isoformat())
    assert told(desk, second - MOMENT, *names) == (1, "About a", "first", False, second.isoformat())
    assert told(desk, second, *names) == (2, "Again", "second", False, third.isoformat())
    assert told(desk, third, *names) == (3, "Again", "second", True, None)
    assert told(desk, third + timedelta(days=999), *names) == (3, "Again", "second", True, None)
    assert [len(told(desk, at, "media")[0]) for at in (first, second)] == [1, 0]
    assert [told(desk, at, "content_last_changed_at")[0] for at in (first, second, third)] == [
        at.isoformat() for at in (first, second, third)
    ]


def test_its_fingerprint_and_edit_time_are_those_of_its_revisions(desk: Desk) -> None:
    source = desk.follow()
    edited = desk.now
    desk.show(source, post("a", "first", edited_at=edited))
    first = desk.now
    desk.show(source, post("a", "second", edited_at=edited + timedelta(minutes=1)))
    (revision,) = desk.revisions("a")
    assert told(desk, first, "fingerprint", "edited_at") == (revision["fingerprint"], edited.isoformat())


def test_before_it_was_first_seen_there_is_nothing_to_show(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", created_at=desk.now - timedelta(days=9)))
    with pytest.raises(NotFound, match=f"first seen at {desk.now.isoformat()}".replace("+", r"\+")):
        desk.store.items.as_of(1, desk.now - MOMENT)
    with pytest.raises(NotFound, match="there is no item 2"):
        desk.store.items.as_of(2, desk.now)


def test_counters_that_were_told_later_are_not_shown_as_if_they_had_been_known(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", score=1, rounded=("score",)))
    first = desk.now
    desk.show(source, post("a", score=9, reply_count=2))
    names = ("score", "reply_count", "rounded", "version")
    assert told(desk, first, *names) == (None, None, [], 1)
    assert told(desk, desk.now, *names) == (9, 2, [], 1)


def test_it_was_last_seen_no_later_than_the_moment_that_is_asked_for(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a"))
    first = desk.now
    desk.show(source, post("a"))
    assert told(desk, first, "last_seen_at") == (None,)
    assert told(desk, desk.now, "last_seen_at") == (desk.now.isoformat(),)
