"""Lists by any filter: what a look at every item would find, in the same order, in bounded steps."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from catchment.model import Ordering
from catchment.store.item_fields import ItemView
from catchment.store.search import index as index_module
from catchment.store.search import lists
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, days, post

SITUATIONS = ("nothing is indexed", "half is indexed", "all is indexed", "the index is too far behind")


def filled(desk: Desk, situation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty items of two sources on two platforms, every property spread in its own rhythm."""
    sources = [desk.follow("r/one", "reddit"), desk.follow("two")]
    shown: list[list[Any]] = [[], []]
    for number in range(40):
        shown[number % 2].append(
            post(
                f"{number}",
                author=("ada", "bob", None)[number % 3],
                tags=(("even",) if number % 4 == 0 else ()) + (("five",) if number % 5 == 0 else ()),
                kind=("story", "comment")[number % 7 == 0],
                created_at=desk.now - days(number // 2),
                # In an order of their own, some at the same moment; a quarter has no reply that is known.
                last_reply_at=desk.now - days(number * 7 % 20) if number % 4 else None,
            )
        )
    for source, items in zip(sources, shown, strict=True):
        desk.show(source, *items)
    index(desk, {"nothing is indexed": 0, "half is indexed": 20, "all is indexed": 99}.get(situation, 5))
    if situation == "the index is too far behind":
        monkeypatch.setattr(index_module, "MOST_SCANNED", 3)
    # What was told otherwise since: the index remembers what it was.
    desk.show(sources[0], post("8", "edited", author="bob", tags=("five",), is_deleted=True))


def index(desk: Desk, count: int) -> None:
    while count > 0 and (done := desk.store.index.advance(count)):
        count -= done


def expected(desk: Desk, wanted: Filter, order: Ordering = Ordering.POSTED) -> list[str]:
    """By looking at every item."""
    kinds = {1: "reddit", 2: "rss"}
    time = "ordered_at" if order == Ordering.POSTED else "last_reply_at"

    def is_wanted(item: ItemView) -> bool:
        at = getattr(item, time)
        return (
            wanted.source_id in (None, item.source_id)
            and wanted.kind in (None, item.kind, kinds[item.source_id])
            and wanted.platform in (None, item.platform)
            and wanted.author in (None, item.author)
            and (wanted.tag is None or wanted.tag in item.tags)
            and (wanted.since is None or wanted.since <= at)
            and (wanted.until is None or at < wanted.until)
            and wanted.is_deleted in (None, item.is_deleted)
            and (wanted.changed_since is None or item.content_change_number > wanted.changed_since)
        )

    timed = [item for item in desk.store.items.newest(1000) if getattr(item, time) is not None]
    timed.sort(key=lambda item: (getattr(item, time), item.id), reverse=True)
    return [item.external_id for item in timed if is_wanted(item)]


def walked(desk: Desk, wanted: Filter, limit: int, order: Ordering = Ordering.POSTED) -> list[str]:
    """All pages; each begins where the one before says."""
    found: list[str] = []
    place = None
    while True:
        page = desk.store.items.listed(wanted, limit, place, order)
        assert len(page.items) <= limit
        found += [item.external_id for item in page.items]
        assert page.next is None or place is None or page.next < place
        place = page.next
        if place is None:
            return found


def every_filter(now: datetime) -> list[Filter]:
    """Combinations of all conditions, thinned out; and each alone."""
    choices: dict[str, tuple[Any, ...]] = {
        "source_id": (None, 1),
        "kind": (None, "rss", "comment"),
        "platform": (None, "reddit"),
        "author": (None, "ada", "nobody"),
        "tag": (None, "even", "five"),
        "since": (None, now - days(15)),
        "until": (None, now - days(3)),
        "is_deleted": (None, True, False),
        "changed_since": (None, 1, 2),
    }
    alone = [Filter(**{name: value}) for name, values in choices.items() for value in values[1:]]
    together = [Filter(**dict(zip(choices, values, strict=True))) for values in product(*choices.values())]
    return alone + together[::29]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_combination_gives_what_a_look_at_every_item_would(
    desk: Desk, situation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(desk, situation, monkeypatch)
    monkeypatch.setattr(lists, "_PROBE", 2)
    wrong = {filters for filters in every_filter(desk.now) if walked(desk, filters, 7) != expected(desk, filters)}
    assert wrong == set()
    assert walked(desk, Filter(tag="five"), 1) == expected(desk, Filter(tag="five"))


@pytest.mark.parametrize("most_taken", [5_000, 3])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_by_last_reply_every_combination_gives_what_a_look_at_every_item_would(
    desk: Desk, situation: str, most_taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(desk, situation, monkeypatch)
    monkeypatch.setattr(lists, "_PROBE", 2)
    monkeypatch.setattr(lists, "MOST_TAKEN", most_taken)
    order = Ordering.REPLIED
    wrong = {
        filters
        for filters in every_filter(desk.now)
        if walked(desk, filters, 7, order) != expected(desk, filters, order)
    }
    assert wrong == set()
    assert len(walked(desk, Filter(), 7, order)) == 30
    assert walked(desk, Filter(is_edited=True), 1, order) == []
    for filters in (Filter(), Filter(source_id=2), Filter(tag="five")):
        assert walked(desk, filters, 1, order) == expected(desk, filters, order) != []


def test_what_is_rare_is_looked_for_in_steps_and_a_short_page_says_where_to_go_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(desk, "all is indexed", monkeypatch)
    monkeypatch.setattr(lists, "_BATCH", 3)
    monkeypatch.setattr(lists, "_BATCHES", 1)
    wanted = Filter(author="ada", tag="five", is_deleted=False)
    assert desk.store.items.listed(wanted, 1).next is not None
    assert walked(desk, wanted, 1) == expected(desk, wanted) != []
    nothing = Filter(author="ada", until=desk.now, is_deleted=True)
    assert walked(desk, nothing, 1) == []


def test_until_ends_before_that_moment_and_since_begins_with_it(desk: Desk) -> None:
    source = desk.follow()
    at = desk.now - days(1)
    desk.show(source, post("a", created_at=at), post("b", created_at=at + timedelta(microseconds=1)))
    assert walked(desk, Filter(since=at, until=at + timedelta(microseconds=1)), 9) == ["a"]
    assert walked(desk, Filter(since=at + timedelta(microseconds=1)), 9) == ["b"]
