"""One thing is one item, whoever shows it, however often, and under whatever id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catchment.model import (
    Counts,
    Item,
    Media,
    Reference,
    SourceState,
    Target,
)
from catchment.store.sources.sources import move_target
from tests.store.desk import Desk, post

DAY = datetime(2025, 12, 1, tzinfo=UTC)
UNMOVED = ("items", "revisions", "aliases", "tags", "item_tags", "item_references", "gaps", "ledger", "outbox")


def dated(key: str, day: int, text: str | None = None, **more: Any) -> Item:
    return post(key, text or f"what happened on day {day}", created_at=DAY + timedelta(days=day), **more)


def test_the_same_page_again_changes_nothing_but_when_it_was_last_seen(desk: Desk) -> None:
    source = desk.follow()
    page = (
        post("a", tags=("x", "y"), score=3, media=(Media("https://m.example/1.png"),)),
        post("b", created_at=DAY, references=(Reference("replied_to", external_id="a"),)),
    )
    desk.show(source, *page)
    before = {table: desk.rows(table) for table in UNMOVED}
    conclusion = desk.show(source, *page)
    assert conclusion.counts == Counts(duplicate=2)
    assert {table: desk.rows(table) for table in UNMOVED} == before
    assert all(last - first == 60_000_000 for *_, first, last in desk.rows("sightings"))


def test_an_item_that_two_sources_show_is_one_item_with_two_sightings_and_belongs_to_the_first(desk: Desk) -> None:
    first, second = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(first, post("t3_a"))
    conclusion = desk.show(second, post("t3_a"))
    assert conclusion.counts == Counts(duplicate=1)
    assert desk.item("t3_a")["source_id"] == first.id
    assert [row[0] for row in desk.rows("sightings")] == [first.id, second.id]
    assert [item.external_id for item in desk.store.items.newest(source_id=second.id)] == ["t3_a"]


def test_one_id_in_two_feeds_is_two_items(desk: Desk) -> None:
    desk.show(desk.follow("one"), post("1", "here"))
    desk.show(desk.follow("two"), post("1", "there"))
    assert [item.text for item in desk.store.items.newest()] == ["there", "here"]


def test_one_id_on_two_platforms_is_two_items(desk: Desk) -> None:
    desk.show(desk.follow("one", "reddit"), post("1", "here"))
    desk.show(desk.follow("one", "hackernews"), post("1", "there"))
    assert desk.count("items") == 2


def test_an_address_that_a_source_has_left_is_not_its_scope_any_more(desk: Desk) -> None:
    moved = desk.follow("one")
    desk.show(moved, post("1", "of the one who moved"))
    desk.store.database.write(lambda tx: move_target(tx, moved, "https://elsewhere.example/"))
    newcomer = desk.follow("one")
    assert newcomer.id != moved.id
    assert desk.show(newcomer, post("1", "of the newcomer")).counts == Counts(new=1)
    assert desk.count("revisions") == 0


def test_two_kinds_of_one_address_share_their_items(desk: Desk) -> None:
    desk.show(desk.follow("one"), post("1"))
    other = desk.store.sources.follow(_target("digest_feed", "one"), "feeds", desk.now)[0]
    assert desk.show(other, post("1")).counts == Counts(duplicate=1)


# ── feeds that change their ids ───────────────────────────────────────────────────────────────────────────────────


def test_a_feed_that_changes_all_its_ids_brings_nothing_new(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, *(dated(f"old-{day}", day) for day in range(4)))
    conclusion = desk.show(source, *(dated(f"new-{day}", day, title=f"About old-{day}") for day in range(4)))
    assert conclusion.counts == Counts(duplicate=4)
    assert conclusion.gap is None
    assert [row[2] for row in desk.rows("aliases")] == [f"new-{day}" for day in range(4)]
    # From now on the new id is as good as the old one, and an edit under it is an edit of the old item.
    assert desk.show(source, dated("new-1", 1, "corrected")).counts == Counts(updated=1)
    assert desk.item("old-1")["text"] == "corrected"
    assert desk.count("items") == 4


def test_links_and_dates_are_enough_where_contents_changed_with_the_ids(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, *(dated(f"old-{day}", day, url=f"https://one.example/{day}") for day in range(4)))
    page = [dated(f"new-{day}", day, "written anew", url=f"https://one.example/{day}") for day in range(4)]
    assert desk.show(source, *page).counts == Counts(updated=4)
    assert (desk.count("items"), desk.count("revisions")) == (4, 4)


def test_fewer_than_half_alike_are_reposts_and_new(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, *(dated(f"old-{day}", day) for day in range(4)))
    page = [dated("new-0", 0, title="About old-0"), dated("new-7", 7), dated("new-8", 8)]
    assert desk.show(source, *page).counts == Counts(new=3)
    assert desk.count("aliases") == 0


def test_the_same_words_on_another_day_are_another_item(desk: Desk) -> None:
    source = desk.follow()
    for day in range(3):
        said = dated(f"{day}", day, "all systems operational", title="Status", url="https://one.example/status")
        assert desk.show(source, said).counts == Counts(new=1)
    assert desk.count("items") == 3


def test_two_ids_in_one_answer_are_two_items_even_if_one_was_thought_to_be_the_other(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, dated("old", 1, title="Same"))
    desk.show(source, dated("new", 1, title="Same"))
    assert desk.count("aliases") == 1
    conclusion = desk.show(source, dated("old", 1, "an edit", title="Same"), dated("new", 1, "another", title="Same"))
    assert conclusion.counts == Counts(new=1, updated=1)
    assert (desk.item("old")["text"], desk.item("new")["text"]) == ("an edit", "another")
    assert desk.show(source, dated("new", 1, "another", title="Same")).counts == Counts(duplicate=1)


def test_an_item_is_not_taken_for_a_lookalike_that_the_same_answer_shows(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, dated("a", 1, title="Same"))
    page = [dated("a", 1, "edited", title="Same"), dated("b", 1, title="Same")]
    assert desk.show(source, *page).counts == Counts(new=1, updated=1)


def test_platforms_with_ids_of_their_own_have_no_lookalikes(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, dated("a", 1, title="Same"))
    assert desk.show(source, dated("b", 1, title="Same")).counts == Counts(new=1)


# ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_following_twice_gives_the_same_source(desk: Desk) -> None:
    source, is_new = desk.store.sources.follow(_target("rss", "one"), "feeds", desk.now)
    again, is_new_again = desk.store.sources.follow(_target("rss", "one"), "feeds", desk.now, name="Another name")
    assert (is_new, is_new_again, again) == (True, False, source)


def test_a_source_that_was_removed_comes_back_with_its_items_and_its_progress(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a"))
    desk.store.sources.set_state(source.id, SourceState.REMOVED, None, desk.now)
    assert desk.store.sources.claim([source.id], desk.presence.owner_id, desk.now) == []
    back = desk.follow()
    assert (back.id, back.key, back.state) == (source.id, source.key, SourceState.ACTIVE)
    assert desk.show(back, post("a")).counts == Counts(duplicate=1)


# Of characters in no order: PostgreSQL packs what repeats itself, and would find room for it.
CHINESE = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(850))


@pytest.mark.parametrize("strange", [CHINESE, "' OR 1=1 --", "%s ? {values}"])
def test_any_id_that_refining_lets_through_can_be_stored(desk: Desk, strange: str) -> None:
    source = desk.follow()
    for _ in range(2):
        conclusion = desk.show(source, post(strange, references=(Reference("via", external_id=strange),)))
    assert conclusion.counts == Counts(duplicate=1)


def _target(kind: str, name: str) -> Target:
    return Target(kind, f"https://{name}.example/")
