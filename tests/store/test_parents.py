"""What a reply answers, where the platform names posts by their number in the thread."""

from __future__ import annotations

from typing import Any

from catchment.model import Item, Reference
from tests.store.desk import Desk, post


def head(thread: str = "40") -> Item:
    return post(f"t{thread}", thread_id=thread, floor_number=1, is_head=True)


def reply(key: str, number: int, to: int, thread: str = "40", **more: Any) -> Item:
    """A reply to the post with that number; only the opening post's id is known."""
    named = Reference("replied_to", external_id=f"t{thread}" if to == 1 else None, url=f"https://f.example/{to}")
    return post(key, title=None, thread_id=thread, floor_number=number, parent_floor=to, references=(named,), **more)


def parents(desk: Desk) -> dict[str, str | None]:
    return {item.external_id: item.parent_id for item in desk.store.items.newest(100) if not item.is_head}


def test_a_parent_that_is_named_by_number_is_found_on_the_same_page_and_among_what_is_stored(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, head(), reply("102", 2, 1), reply("103", 3, 2))
    desk.show(source, reply("104", 4, 3), reply("105", 5, 2))
    assert parents(desk) == {"102": "t40", "103": "102", "104": "103", "105": "102"}


def test_a_parent_that_comes_later_is_linked_then_and_clients_that_read_changes_see_it(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, head(), reply("105", 5, 3), reply("207", 7, 3, thread="41"))
    assert parents(desk) == {"105": "40#3", "207": "41#3"}
    before = desk.store.items.get(desk.item("105")["id"]).change_number
    desk.show(source, reply("103", 3, 1))
    assert parents(desk) == {"103": "t40", "105": "103", "207": "41#3"}
    assert desk.store.items.get(desk.item("105")["id"]).change_number > before
    # Another forum has other posts with the same numbers.
    desk.show(desk.follow("two"), reply("203", 3, 1, thread="41"))
    assert parents(desk)["207"] == "41#3"


def test_a_reply_that_is_moved_answers_a_post_of_its_new_thread(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, head(), head("41"), reply("102", 2, 1), reply("103", 3, 2), reply("202", 2, 1, thread="41"))
    desk.show(source, reply("103", 3, 2, thread="41"))
    assert parents(desk) == {"102": "t40", "103": "202", "202": "t41"}
