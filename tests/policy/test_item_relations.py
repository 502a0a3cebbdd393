"""What a change of an item means for its tags, aliases, references and lists."""

from __future__ import annotations

from typing import Any

import pytest

from catchment.model import Change, Item, ItemChange, Reference, RefinedItem
from catchment.policy.item_relations import aliases_of, may_move_in_lists, tags_of, writes_references
from tests.policy.items import NOW, known


def change(item: Item, **more: Any) -> ItemChange:
    stored = more.pop("stored", None)
    return ItemChange(RefinedItem(item, b""), stored, Change.SAME if stored else Change.NEW, **more)


def test_a_tag_that_is_both_a_topic_and_a_prefix_has_two_origins() -> None:
    item = Item("a", tags=("x", "both"), title_prefixes=("both", "p"))
    assert sorted(tags_of(item.all_tags, item)) == [
        ("title_prefix", "both"),
        ("title_prefix", "p"),
        ("topic_tag", "both"),
        ("topic_tag", "x"),
    ]


def test_a_new_id_of_a_stored_item_becomes_its_alias() -> None:
    assert aliases_of(change(Item("b"), stored=known(), is_alias=True)) == [("b", "ids changed")]


def test_ids_that_the_platform_states_become_aliases_except_for_the_stored_one() -> None:
    stated = change(Item("b", aliases=("a", "c")), stored=known(external_id="a"))
    assert aliases_of(stated) == [("b", "stated by the platform"), ("c", "stated by the platform")]


def test_a_new_item_is_no_alias_of_itself() -> None:
    assert aliases_of(change(Item("b", aliases=("a",)))) == [("a", "stated by the platform")]
    assert aliases_of(change(Item("b"))) == []


NAMED, UNNAMED = Reference("quote", "q"), Reference("quote", text="words")


@pytest.mark.parametrize(
    ("reference", "more", "is_written"),
    [
        (UNNAMED, {}, True),
        (UNNAMED, {"stored": known()}, False),
        (UNNAMED, {"stored": known(), "is_completed": True}, True),
        (NAMED, {"stored": known()}, True),
    ],
)
def test_references_are_written_first_and_later_if_they_can_be_found_again(
    reference: Reference, more: Any, is_written: bool
) -> None:
    assert writes_references(change(Item("a", references=(reference,)), **more)) == is_written


@pytest.mark.parametrize(
    ("more", "is_seen", "is_moved"),
    [
        ({"values": {"last_reply_at": NOW}}, True, True),
        ({"values": {"last_reply_at": None}}, True, False),
        ({"stored": known(last_reply_at=NOW)}, True, False),
        ({"stored": known(last_reply_at=NOW, is_shown_by_source=False)}, True, True),
        ({"stored": known(last_reply_at=NOW, is_shown_by_source=False)}, False, False),
        ({"stored": known(is_shown_by_source=False)}, True, False),
    ],
)
def test_an_item_moves_in_lists_by_another_reply_or_as_it_joins_the_list_of_a_source(
    more: Any, is_seen: bool, is_moved: bool
) -> None:
    assert may_move_in_lists(change(Item("a"), **more), is_seen=is_seen) == is_moved
