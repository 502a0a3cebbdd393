"""Walking a list page by page gives every item once, whatever arrives meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import InvalidInput
from catchment.store.items.items import ExportFilter, key_from, key_of
from tests.store.desk import Desk, opened, post

DAY = datetime(2025, 12, 1, tzinfo=UTC)


def walked(desk: Desk, limit: int, source_id: int | None = None, meanwhile: Callable[[], object] = int) -> list[str]:
    """All pages, each begun where the one before ended."""
    found: list[str] = []
    key: str | None = None
    while page := desk.store.items.newest(limit, source_id=source_id, before=key_from(key)):
        found += [item.external_id for item in page]
        key = key_of(page[-1])
        meanwhile()
    return found


def times(desk: Desk) -> dict[str, datetime | None]:
    """Equal times, none, and one in the future."""
    equal = {f"equal {number}": DAY for number in range(7)}
    return {**equal, "none": None, "future": desk.now + timedelta(days=3650), "older": DAY - timedelta(days=1)}


def test_every_item_is_on_one_page_however_long_the_pages_are(desk: Desk) -> None:
    wanted = times(desk)
    items = [post(key, created_at=at) for key, at in wanted.items()]
    sources = [desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")]
    desk.show(sources[0], *items[:6])
    desk.show(sources[1], *items)
    newest_first = walked(desk, 100)
    assert sorted(newest_first) == sorted(wanted)
    assert newest_first[-1] == "older"
    for limit in (1, 2, 3, 10):
        assert walked(desk, limit) == newest_first
        assert walked(desk, limit, sources[1].id) == newest_first
        assert sorted(walked(desk, limit, sources[0].id)) == sorted(list(wanted)[:6])
    assert [item.external_id for item in desk.store.exports.of(ExportFilter(), batch=3)] == list(wanted)


def test_a_date_in_the_future_does_not_head_the_list_for_ever(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("from the future", created_at=desk.now + timedelta(days=3650)))
    desk.show(source, post("later", created_at=desk.now + timedelta(minutes=1)))
    assert walked(desk, 1) == ["later", "from the future"]


def test_what_arrives_during_a_walk_neither_repeats_nor_hides_what_was_there(desk: Desk) -> None:
    source = desk.follow()
    there = [post(f"{number}", created_at=DAY + timedelta(minutes=number // 3)) for number in range(20)]
    desk.show(source, *there)
    arriving = iter(range(10))

    def arrive() -> None:
        number = next(arriving, None)
        if number is None:
            return
        new, late = DAY + timedelta(days=1), DAY - timedelta(days=1)
        desk.show(source, post(f"new {number}", created_at=new), post(f"late {number}", created_at=late))

    seen = walked(desk, 3, source.id, meanwhile=arrive)
    assert len(seen) == len(set(seen))
    assert [statement for statement in seen if " " not in statement] == [
        item.external_id for item in sorted(there, key=lambda item: (item.created_at, int(item.external_id)))[::-1]
    ]


def test_an_export_during_writing_has_every_item_that_was_there(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, *(post(f"{number}") for number in range(10)))
    seen = []
    for item in desk.store.exports.of(ExportFilter(), batch=2):
        seen.append(item.id)
        if len(seen) < 15:
            desk.show(source, post(f"new {len(seen)}"))
    assert seen == list(range(1, 25))


@pytest.mark.parametrize("text", ["", "1", "a-b", "1-2-3", "-1-2", f"{2**63}-1", "1-", "１-２٣x"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        key_from(text)


moments = st.none() | st.integers(0, 3).map(lambda hours: DAY + timedelta(hours=hours))


@settings(max_examples=20)
@given(shown=st.lists(st.tuples(st.integers(0, 1), moments), max_size=15), limit=st.integers(1, 5))
def test_any_items_on_pages_of_any_length_come_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, shown: list[tuple[int, datetime | None]], limit: int
) -> None:
    home: Path = tmp_path_factory.mktemp("paging")
    desk = Desk(opened(f"sqlite:///{home / 'catchment.db'}", home))
    sources: list[Any] = [desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")]
    for number, (which, at) in enumerate(shown):
        desk.show(sources[which], post(f"{number}", created_at=at))
    everything = desk.store.items.newest(100)
    assert [(item.ordered_at, item.id) for item in everything] == sorted(
        ((item.ordered_at, item.id) for item in everything), reverse=True
    )
    assert walked(desk, limit) == [item.external_id for item in everything]
    for which, source in enumerate(sources):
        own = {f"{number}" for number, (of, _) in enumerate(shown) if of == which}
        assert walked(desk, limit, source.id) == [key for key in walked(desk, 100) if key in own]
    desk.close()
