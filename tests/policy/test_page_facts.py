"""What the store has to read for the decision about a page, besides the rows of its items."""

from __future__ import annotations

from typing import Any

import pytest

from catchment.model import Item, RefinedItem
from catchment.policy.page_facts import (
    all_keys,
    believed_aliases,
    lookalikes,
    needs_last_point,
    needs_past_contents,
    needs_title_fingerprint,
    possible_keys,
)
from tests.policy.items import NOW, known, shown


def test_an_item_with_an_id_has_that_one_only() -> None:
    assert possible_keys(RefinedItem(Item("a", scope="s"), b"")) == [("s", "a")]


def test_an_item_without_id_may_be_stored_by_its_content_with_or_without_its_date() -> None:
    item = RefinedItem(Item("hash", created_at=NOW), b"", content_id="hash")
    assert possible_keys(item) == [("", "hash"), ("", f"hash {NOW.isoformat()}")]


def test_the_other_ids_that_the_platform_states_are_keys_too() -> None:
    assert all_keys(RefinedItem(Item("b", scope="s", aliases=("a", "c")), b"")) == [("s", "b"), ("s", "a"), ("s", "c")]


def test_an_alias_is_believed() -> None:
    assert believed_aliases([], [("old", 1)]) == {"old": 1}


def test_an_alias_of_an_item_that_the_answer_shows_by_its_own_id_is_not_believed() -> None:
    assert believed_aliases([1], [("old", 1), ("other", 2)]) == {"other": 2}


def test_of_two_aliases_of_an_item_in_one_answer_the_first_is_believed() -> None:
    assert believed_aliases([], [("first", 1), ("second", 1)]) == {"first": 1}


def test_unknown_items_may_be_stored_ones_with_the_same_content_or_link() -> None:
    stranger = shown(b"same", url="https://one.example/a")
    newest = [(1, b"same", 1, None), (2, b"", 1, "https://one.example/a"), (3, b"", 1, "https://one.example/b")]
    assert lookalikes([stranger], [], newest, 1) == {1, 2}
    assert lookalikes([stranger], [1], newest, 1) == {2}


def test_items_without_a_link_are_not_alike_and_a_fingerprint_by_another_rule_may_be_any() -> None:
    newest = [(1, b"x", 1, None), (2, b"y", 0, None)]
    assert lookalikes([shown(b"z")], [], newest, 1) == {2}


@pytest.mark.parametrize(
    ("item", "is_needed"),
    [
        (shown(), False),
        (shown(score=99), False),
        (shown(b"another"), True),
        (shown(is_deleted=True), True),
        (shown(is_folded=True), True),
    ],
)
def test_earlier_contents_are_needed_of_what_may_write_a_revision(item: RefinedItem, is_needed: bool) -> None:
    assert needs_past_contents(item, known()) == is_needed


@pytest.mark.parametrize(
    ("more", "is_needed"),
    [
        ({"title": "Another", "lacks_text": True}, True),
        ({"title": "Another"}, False),
        ({"lacks_text": True}, False),
        ({"title": None, "lacks_text": True}, False),
    ],
)
def test_a_fingerprint_under_another_title_is_needed_of_rows_without_text(more: Any, is_needed: bool) -> None:
    assert needs_title_fingerprint(shown(**more), known()) == is_needed


@pytest.mark.parametrize(
    ("item", "is_needed"),
    [
        (shown(), False),
        (shown(b"another"), False),
        (shown(score=10, view_count=1200), False),
        (shown(score=11, view_count=1200), True),
        (shown(b"another", score=10, view_count=1200), True),
    ],
)
def test_the_last_point_is_needed_of_what_states_other_counters_or_other_content(
    item: RefinedItem, is_needed: bool
) -> None:
    assert needs_last_point(item, known()) == is_needed
