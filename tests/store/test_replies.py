"""When items were last answered: by the platform's word, or by the replies that are held; and where they are listed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from catchment.model import Change, Item, Ordering
from catchment.store.items.change_feed import ChangeCursor
from catchment.store.items.deletion import Forget
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, days, post

HOUR = timedelta(hours=1)


def topic(key: str, **more: Any) -> Item:
    return post(key, thread_id=f"topic of {key}", is_head=True, **more)


def reply(key: str, to: str, at: datetime, **more: Any) -> Item:
    return post(key, title=None, thread_id=f"topic of {to}", created_at=at, **more)


def last_reply(desk: Desk, key: str) -> datetime | None:
    told = desk.item(key)["last_reply_at"]
    return None if told is None else datetime.fromisoformat(told)


def listed(desk: Desk, **wanted: Any) -> list[str]:
    """By last reply; every list of the item's tells the same."""
    page = desk.store.items.listed(Filter(**wanted), 50, order=Ordering.REPLIED)
    return [item.external_id for item in page.items]


def test_what_the_platform_tells_is_kept_and_moves_in_either_direction(desk: Desk) -> None:
    source, then = desk.follow(), desk.now - days(1)
    for at in (then, then + HOUR, then - HOUR):
        told = desk.show(source, post("a", last_reply_at=at))
        assert last_reply(desk, "a") == at
    assert [change.change for change in told.changes] == [Change.COUNTED]
    assert (told.counts.updated, desk.item("a")["version"]) == (1, 1)


def test_what_is_not_told_stays_as_it_was_told(desk: Desk) -> None:
    source, then = desk.follow(), desk.now - days(1)
    desk.show(source, post("a", last_reply_at=then))
    desk.show(source, post("a", "edited"))
    assert (last_reply(desk, "a"), listed(desk)) == (then, ["a"])


def test_an_older_answer_does_not_overwrite_a_newer_one(desk: Desk) -> None:
    source, then = desk.follow(), desk.now - days(1)
    desk.show(source, post("a", last_reply_at=then))
    desk.clock.advance(60)
    desk.write(desk.claim(source), [post("a", last_reply_at=then - HOUR)], at=desk.now - timedelta(seconds=90))
    assert last_reply(desk, "a") == then


def test_a_reply_that_is_yet_to_come_is_not_believed(desk: Desk) -> None:
    source = desk.follow()
    for _ in range(2):
        told = desk.show(source, post("a", last_reply_at=desk.now + days(9)))
        assert (last_reply(desk, "a"), listed(desk)) == (None, [])
    assert told.counts.duplicate == 1


def test_replies_that_are_held_tell_it_where_the_platform_does_not(desk: Desk) -> None:
    source, then = desk.follow("r/one", "reddit"), desk.now - days(1)
    desk.show(source, topic("a"), reply("1", "a", then), reply("2", "a", then - HOUR))
    assert last_reply(desk, "a") == then
    told = desk.show(source, reply("3", "a", then + HOUR), reply("4", "of nobody", then))
    # The head is not on that page: it is not counted there, and its counters changed all the same.
    assert (last_reply(desk, "a"), told.counts.new, told.counts.updated) == (then + HOUR, 2, 0)
    assert [last_reply(desk, key) for key in "134"] == [None, None, None]
    desk.show(source, reply("5", "a", then))
    assert last_reply(desk, "a") == then + HOUR


def test_a_head_that_comes_after_its_replies_knows_of_them(desk: Desk) -> None:
    source, then = desk.follow("r/one", "reddit"), desk.now - days(1)
    desk.show(source, reply("1", "a", then), reply("gone", "a", then + HOUR, is_deleted=True))
    desk.show(source, topic("a"))
    assert (last_reply(desk, "a"), listed(desk)) == (then, ["a"])


def test_a_reply_dated_in_the_future_counts_from_when_it_was_seen(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, topic("a"), reply("1", "a", desk.now + days(99)))
    assert last_reply(desk, "a") == desk.now


def test_threads_of_two_forums_with_the_same_number_are_two(desk: Desk) -> None:
    one, two, then = desk.follow("one"), desk.follow("two"), desk.now - days(1)
    desk.show(one, topic("a"))
    desk.show(two, reply("1", "a", then))
    assert last_reply(desk, "a") is None


def test_a_newer_reply_than_the_platform_told_of_counts(desk: Desk) -> None:
    source, then = desk.follow("r/one", "reddit"), desk.now - days(1)
    desk.show(source, topic("a", last_reply_at=then), reply("1", "a", then + HOUR))
    assert last_reply(desk, "a") == then + HOUR
    desk.show(source, topic("a", last_reply_at=then), reply("2", "a", then - HOUR))
    assert last_reply(desk, "a") == then


def test_a_head_that_is_answered_comes_among_the_changes_of_counters_only(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, topic("a"))
    before = desk.store.changes.after(ChangeCursor(0), 9)
    desk.show(source, reply("1", "a", desk.now))
    for counters, expected in ((False, {"1"}), (True, {"a", "1"})):
        found = desk.store.changes.after(before.next, 9, counters=counters)
        assert {item.external_id for item in found.items} == expected


def test_what_is_answered_moves_to_the_front_of_every_list_it_is_in(desk: Desk) -> None:
    source, then = desk.follow("r/one", "reddit"), desk.now - days(2)
    desk.show(source, topic("a", kind="post"), topic("b", kind="post"), topic("silent"))
    desk.show(source, reply("1", "a", then), reply("2", "b", then + HOUR))
    lists: list[dict[str, Any]] = [{}, {"platform": "reddit"}, {"kind": "post"}, {"kind": "reddit"}, {"source_id": 1}]
    assert [listed(desk, **query) for query in lists] == [["b", "a"]] * 5
    desk.show(source, reply("3", "a", then + 2 * HOUR))
    assert [listed(desk, **query) for query in lists] == [["a", "b"]] * 5
    assert listed(desk, kind="rss") == listed(desk, source_id=2) == listed(desk, author="nobody") == []
    assert desk.count("replied") == 2 * 5


def test_time_means_the_last_reply_where_the_list_is_ordered_by_it(desk: Desk) -> None:
    source, then = desk.follow(), desk.now - days(9)
    desk.show(source, *(post(f"{day}", created_at=then, last_reply_at=then + days(day)) for day in range(5)))
    assert listed(desk, since=then + days(1), until=then + days(3)) == ["2", "1"]


def test_another_source_that_shows_it_has_it_in_its_list(desk: Desk) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(one, topic("a", last_reply_at=desk.now))
    assert listed(desk, source_id=two.id) == []
    desk.show(two, topic("a"))
    assert listed(desk, source_id=two.id) == listed(desk, source_id=one.id) == ["a"]


def test_what_is_forgotten_leaves_these_lists_too(desk: Desk) -> None:
    desk.show(desk.follow(), post("a", last_reply_at=desk.now), post("b", last_reply_at=desk.now))
    desk.store.deletion.forget(Forget("item", "feeds", "me", item_id=desk.item("a")["id"]), desk.now)
    assert listed(desk) == ["b"]


def test_a_hot_list_knows_of_a_reply_that_came_by_another_source(desk: Desk) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(one, topic("a"))
    newest = desk.store.cached_sources.newest(one.id)
    assert newest
    assert desk.store.cached_sources.stamp(one.id) == newest[0]
    desk.invalidates_cache = True
    desk.show(two, reply("1", "a", desk.now))
    assert desk.store.cached_sources.stamp(one.id) != newest[0]


def test_the_last_reply_of_an_earlier_moment_is_not_known(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", last_reply_at=desk.now - HOUR))
    then, key = desk.now, desk.item("a")["id"]
    desk.show(source, post("a", last_reply_at=desk.now))
    assert desk.store.items.as_of(key, then).last_reply_at is None
    assert desk.store.items.as_of(key, desk.now).last_reply_at is not None


def test_only_a_head_has_replies_whatever_its_thread_is_called(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, topic("a"), reply("1", "a", desk.now - HOUR), reply("2", "a", desk.now))
    found = {key: desk.store.items.replies(desk.item(key)["id"], 9).items for key in "a1"}
    assert {key: [item.external_id for item in items] for key, items in found.items()} == {"a": ["1", "2"], "1": []}


def test_a_reply_goes_with_its_page_or_not_at_all(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, topic("a", last_reply_at=desk.now))

    def fail() -> None:
        raise RuntimeError

    before = {name: desk.rows(name) for name in ("items", "replied")}
    with pytest.raises(RuntimeError):
        desk.show(source, reply("1", "a", desk.now + HOUR), after=2 * 3600, meanwhile=fail)
    assert {name: desk.rows(name) for name in before} == before
