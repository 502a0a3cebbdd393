"""Items past their time leave with all that hangs on them; what is shown still, or wanted elsewhere, stays."""

from __future__ import annotations

from sqlalchemy import Table

from catchment.model import Item, Reference, SourceState
from catchment.store.items.deletion import ELSEWHERE, hanging, remove_items
from catchment.store.items.reparse import copies_of_the_order
from catchment.store.schema import metadata
from tests.store.desk import Desk, days, post
from tests.store.sample import fill


def stored(desk: Desk) -> set[str]:
    return {item.external_id for item in desk.store.items.newest(1000)}


def aged(desk: Desk, key: str, age: float) -> Item:
    return post(key, created_at=desk.now - days(age))


def test_what_is_old_and_no_longer_shown_leaves(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, aged(desk, "old", 40), aged(desk, "older", 50), aged(desk, "new", 1))
    desk.show(source, aged(desk, "old", 40), aged(desk, "newest", 0), after=7200)
    assert desk.store.retention.clear({"rss": 30}, desk.now) == 1
    assert stored(desk) == {"old", "new", "newest"}, "what is shown still stays"
    assert desk.store.retention.clear({"rss": 30}, desk.now + days(40)) == 1
    assert stored(desk) == {"old", "newest"}
    assert desk.store.retention.clear({"reddit": 1}, desk.now + days(40)) == 0
    assert desk.store.retention.clear({}, desk.now + days(4000)) == 0


def test_what_left_does_not_come_back_while_the_source_stays_as_it_is(desk: Desk) -> None:
    source = desk.follow()
    shown = [aged(desk, f"{number}", 100 - number) for number in range(5)]
    desk.show(source, *shown)
    desk.show(source, *shown[2:], after=7200)
    desk.store.retention.clear({"rss": 30}, desk.now)
    assert desk.show(source, *shown[2:]).counts.new == 0


def test_nothing_is_shown_any_more_by_a_source_that_is_not_followed(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, aged(desk, "old", 40))
    desk.store.sources.set_state(source.id, SourceState.REMOVED, None, desk.now)
    assert desk.store.retention.clear({"rss": 30}, desk.now) == 1


def test_what_two_sources_showed_stays_as_long_as_one_wants_it(desk: Desk) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "hackernews")
    shared = aged(desk, "shared", 40)
    desk.show(one, shared, aged(desk, "alone", 40))
    desk.store.database.write(
        lambda tx: tx.run(
            "INSERT INTO sightings SELECT ?, ordered_at, item_id, first_seen_at, last_seen_at FROM sightings "
            "WHERE item_id = (SELECT id FROM items WHERE external_id = 'shared')",
            two.id,
        )
    )
    desk.show(one, aged(desk, "new", 0), after=7200)
    assert desk.store.retention.clear({"reddit": 30}, desk.now) == 1
    assert stored(desk) == {"shared", "new"}
    assert desk.store.retention.clear({"reddit": 30, "hackernews": 60}, desk.now + days(10)) == 0


def test_it_goes_in_batches_oldest_first_and_no_further_than_it_may(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, *(aged(desk, f"{number}", 500 - number) for number in range(450)))
    desk.show(source, aged(desk, "new", 0), after=7200)
    assert desk.store.retention.clear({"rss": 10}, desk.now, most=100) == 200
    assert "200" in stored(desk)
    assert not stored(desk) & {"0", "199"}
    assert desk.store.retention.clear({"rss": 10}, desk.now, is_over=lambda: True) == 200
    assert desk.store.retention.clear({"rss": 10}, desk.now) == 50
    assert stored(desk) == {"new"}


# ── what hangs on an item ─────────────────────────────────────────────────────────────────────────────────────────


def test_everything_that_hangs_on_an_item_leaves_with_it(desk: Desk) -> None:
    fill(desk)
    source = desk.store.sources.get(1)
    desk.show(source, post("x", references=(Reference("via", external_id="y"),), tags=("t",)))
    desk.show(source, post("x", "edited"))
    ids = [row[0] for row in desk.rows("items")]
    desk.store.database.write(lambda tx: remove_items(tx, ids))
    assert {table: desk.count(table) for table in ["items", *hanging()]} == dict.fromkeys(["items", *hanging()], 0)
    assert {row[1] for row in desk.rows("source_counts", "1, item_count, 3")} == {0}


def begins_an_index(table: Table) -> bool:
    keys = [list(table.primary_key.columns.keys())]
    keys += [[column.name for column in index.columns] for index in table.indexes]
    keys += [[column.name for column in rule.columns] for rule in table.constraints if rule is not table.primary_key]  # type: ignore[attr-defined]
    return any(key[:1] == ["item_id"] for key in keys)


def test_no_table_that_hangs_on_items_is_forgotten_or_searched_through() -> None:
    pointing = {
        (table.name, column.name)
        for table in metadata.tables.values()
        for column in table.c
        if any(key.target_fullname == "items.id" for key in column.foreign_keys)
    }
    assert pointing <= {(name, "item_id") for name in hanging()}, "call the column item_id, or removing will not see it"
    slow = {name for name in hanging() if not begins_an_index(metadata.tables[name])}
    assert slow == set(), "give it an index that begins with item_id, or say in ELSEWHERE who clears it"
    assert ELSEWHERE.keys().isdisjoint(hanging())
    assert "sightings" in copies_of_the_order()
