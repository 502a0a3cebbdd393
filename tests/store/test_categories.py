"""Items and sources of a category: whoever is in it, few or many, in any order of the list."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.model import Ordering, SourceState
from catchment.store.search import lists
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, post


def a_desk_with_folders(desk: Desk) -> None:
    """Two sources in News, one in Science; one in none."""
    begin = desk.now
    for number, (name, categories) in enumerate(
        (("gazette", ["News"]), ("herald", ["news", "Local"]), ("atoms", ["Science"]), ("diary", []))
    ):
        source = desk.follow(name, categories=categories)
        posts = [
            post(
                f"{name}-{day}",
                f"the {name} of day {day}",
                created_at=begin - timedelta(days=day, minutes=number),
                last_reply_at=begin - timedelta(days=day, minutes=number),
            )
            for day in range(3)
        ]
        desk.show(source, *posts)


def ids(items: list[dict[str, object]]) -> list[object]:
    return [item.external_id for item in items]


NEWS = ["gazette-0", "herald-0", "gazette-1", "herald-1", "gazette-2", "herald-2"]


@pytest.fixture(params=[50, 0], ids=["few sources are merged", "of many, all is walked along"])
def folders(desk: Desk, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(lists, "MOST_MERGED", request.param)
    monkeypatch.setattr("catchment.store.search.lists.MOST_MERGED", request.param)
    a_desk_with_folders(desk)
    return desk


@pytest.mark.parametrize("order", list(Ordering))
def test_a_category_lists_what_its_sources_showed_page_by_page(folders: Desk, order: Ordering) -> None:
    wanted, found, before = Filter(category="NEWS"), [], None
    while True:
        page = folders.store.items.listed(wanted, 2, before, order)
        found += ids(page.items)
        before = page.next
        if before is None:
            break
    assert found == NEWS


def test_a_category_and_a_source_outside_of_it_have_nothing_in_common(folders: Desk) -> None:
    outside = folders.store.sources.matching("atoms", 1)[0][0]
    assert folders.store.items.listed(Filter(source_id=outside, category="news"), 5).items == []


def test_a_search_in_a_category_finds_only_what_its_sources_showed(folders: Desk) -> None:
    find = folders.store.search.find
    assert ids(find("day", Filter(category="news")).items) == NEWS
    while folders.store.index.advance():
        pass
    assert ids(find("day", Filter(category="news")).items) == NEWS
    assert ids(find("day", Filter(category="nowhere")).items) == []


def test_categories_are_counted_whatever_their_case_and_without_removed_sources(desk: Desk) -> None:
    a_desk_with_folders(desk)
    assert desk.store.sources.categories() == {"News": 2, "Local": 1, "Science": 1}
    (found,) = desk.store.sources.page(category="science")
    desk.store.sources.set_state(found[0].id, SourceState.REMOVED, None, desk.now)
    assert desk.store.sources.categories() == {"News": 2, "Local": 1}
    assert desk.store.sources.page(category="science") == []
    # What it has shown stays, and is still found by its folder.
    assert len(desk.store.items.listed(Filter(category="science"), 5).items) == 3


def test_a_source_is_meant_by_its_whole_name_before_it_is_by_a_word_of_it(desk: Desk) -> None:
    names = ("times", "times of the north", "the south")
    sources = [desk.follow(f"host-{number}") for number in range(len(names))]
    for source, name in zip(sources, names, strict=True):
        desk.store.sources.change(source.id, name=name)
    assert desk.store.sources.matching("Times", 5) == [(sources[0].id, "times")]
    assert [name for _, name in desk.store.sources.matching("the", 5)] == ["times of the north", "the south"]
