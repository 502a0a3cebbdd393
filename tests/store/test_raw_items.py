"""Raw items: what each source brought, in the order of fetching, and how much of it there is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catchment.model import SourceState, as_json
from catchment.store.items import raw_items
from catchment.store.items.raw_items import Place, RawPage, RawStatsView
from tests.store.desk import Desk, days, post
from tests.store.sample import fill


def keys(page: RawPage) -> list[tuple[int, str]]:
    return [(item.source_id, item.metadata.external_id) for item in page.items]


def walked(desk: Desk, limit: int, **more: Any) -> list[tuple[int, str]]:
    """All pages of a list, each begun where the one before ended."""
    found: list[tuple[int, str]] = []
    before: Place | None = None
    while True:
        page = desk.store.raw_items.page(limit, before=before, **more)
        found += keys(page)
        before = page.next
        if before is None:
            return found


def test_a_row_tells_what_was_brought_by_whom_and_when(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "said", author="ada", created_at=desk.now - days(3), score=7, tags=("x",)))
    (row,) = as_json(desk.store.raw_items.page(10).items)
    assert row.pop("metadata").items() >= {"platform": "reddit", "external_id": "a", "score": 7, "tags": ["x"]}.items()
    assert row == {
        "id": 1,
        "source_id": source.id,
        "source_name": source.name,
        "source_type": "reddit",
        "title": "About a",
        "url": None,
        "author": "ada",
        "content": "said",
        "published_at": (desk.now - days(3) - timedelta(minutes=1)).isoformat(),
        "fetched_at": desk.now.isoformat(),
        "dedup_key": "reddit::a",
    }


def test_a_date_that_was_guessed_is_not_told_as_the_publication(desk: Desk) -> None:
    desk.show(desk.follow(), post("a"))
    assert desk.store.raw_items.page(10).items[0].published_at is None


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_they_come_in_the_order_of_fetching_whatever_date_they_bear(desk: Desk, limit: int) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(one, post("new"), post("old", created_at=desk.now - days(900)))
    desk.show(two, post("ancient", created_at=desk.now - days(9000)), post("new"))
    assert walked(desk, limit) == [(two.id, "ancient"), (one.id, "old"), (one.id, "new")]
    assert sorted(walked(desk, limit, source_id=two.id)) == [(two.id, "ancient"), (two.id, "new")]
    assert walked(desk, limit, source_id=one.id) == [(one.id, "old"), (one.id, "new")]


def test_since_is_about_fetching_so_that_what_was_found_late_is_in_the_next_digest(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("early"))
    last_digest = desk.now + timedelta(seconds=1)
    desk.show(source, post("late", created_at=desk.now - days(2)))
    wanted = [(source.id, "late")]
    assert keys(desk.store.raw_items.page(10, since=last_digest)) == wanted
    assert keys(desk.store.raw_items.page(10, source_id=source.id, since=last_digest)) == wanted
    assert keys(desk.store.raw_items.for_digest(10, since=last_digest)) == wanted
    assert keys(desk.store.raw_items.page(10, since=desk.now)) == wanted
    assert keys(desk.store.raw_items.page(10, since=desk.now + timedelta(microseconds=1))) == []


def test_a_digest_has_each_item_once_and_only_of_active_sources(desk: Desk) -> None:
    paused, one, two = (desk.follow(f"r/{name}", "reddit") for name in ("paused", "one", "two"))
    desk.show(paused, post("only paused"), post("both"))
    desk.show(one, post("both"), post("twice"))
    desk.show(two, post("twice"))
    desk.store.sources.set_state(paused.id, SourceState.PAUSED, None, desk.now)
    assert keys(desk.store.raw_items.for_digest(10)) == [(one.id, "twice"), (one.id, "both")]


def test_a_digest_that_has_to_look_at_too_much_says_where_to_go_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_items, "_BATCH", 2)
    monkeypatch.setattr(raw_items, "_STEPS", 4)
    active, paused = desk.follow("r/active", "reddit"), desk.follow("r/paused", "reddit")
    desk.show(active, post("a"), post("b"))
    desk.show(paused, *(post(f"{number}") for number in range(9)))
    desk.store.sources.set_state(paused.id, SourceState.PAUSED, None, desk.now)
    pages, before = [], None
    while True:
        page = desk.store.raw_items.for_digest(10, before=before)
        pages.append(keys(page))
        before = page.next
        if before is None:
            break
    assert pages == [[], [], [(active.id, "b"), (active.id, "a")]]


def test_the_stats_tell_how_much_each_source_brought_in_all_and_lately(desk: Desk) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    gone = desk.follow("r/gone", "reddit")
    desk.store.sources.set_state(gone.id, SourceState.REMOVED, None, desk.now)
    desk.show(one, post("a"), post("b", created_at=desk.now - days(99)))
    desk.clock.advance(86_400)
    desk.show(one, post("a", "edited"), post("c"))
    told = [(row.source_id, row.total_items, row.items_24h, row.last_item_at) for row in stats(desk)]
    assert told == [(one.id, 3, 1, desk.now), (two.id, 0, 0, None)]
    assert as_json(stats(desk)[0]).keys() == {"source_id", "name", "type", "total_items", "last_item_at", "items_24h"}
    assert [row.source_id for row in desk.store.raw_items.stats(desk.now, after=one.id, limit=5)] == [two.id]


def stats(desk: Desk) -> list[RawStatsView]:
    return desk.store.raw_items.stats(desk.now)


def test_what_is_kept_as_the_number_of_a_sources_items_is_that_of_its_sightings(desk: Desk) -> None:
    fill(desk)
    board = desk.follow("r/three", "reddit")
    # Known by another source, new, and the same again.
    desk.show(board, post("t3_b"), post("t3_c"))
    desk.show(board, post("t3_b"), post("t3_c", "edited"))
    counted = desk.store.database.read(
        lambda tx: tx.all("SELECT source_id, count(*) FROM sightings GROUP BY source_id ORDER BY source_id")
    )
    kept = desk.rows("source_counts", "source_id, item_count, 1")
    # Of a source whose items were forgotten, the row stays.
    assert [row for row in kept if row[1]] == [(*row, 1) for row in counted]
