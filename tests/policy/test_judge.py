"""New, edited, counted or the same: decided from what is known and what came, and from nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model import (
    Change,
    ItemChange,
    Point,
    Reference,
    RefinedItem,
)
from catchment.policy.judge import completion, is_withheld, judge
from catchment.text.clean import fingerprint
from tests.policy.items import HELD, NOW, known, shown

CONTENT = ("fingerprint", "title", "text", "html", "target_url", "media", "is_text_cut", "is_partial")


def content_of(item: RefinedItem) -> dict[str, Any]:
    """The columns that hold what an item says."""
    return {name: getattr(item if name in ("fingerprint", "is_text_cut") else item.item, name) for name in CONTENT}


def same(change: ItemChange) -> bool:
    """Nothing at all is written about the item."""
    return change == ItemChange(change.item, change.stored, Change.SAME)


def values_of(change: ItemChange, *without: str) -> dict[str, Any]:
    return {name: value for name, value in change.values.items() if name not in without}


def test_what_was_never_seen_is_new() -> None:
    dated = shown(created_at=NOW - timedelta(days=2), score=3)
    assert judge(None, dated, NOW, recheck_ages=(timedelta(days=1), timedelta(days=7))) == ItemChange(
        dated,
        None,
        Change.NEW,
        values={
            "created_at": NOW - timedelta(days=2),
            "is_created_at_guessed": False,
            "ordered_at": NOW - timedelta(days=2),
            "last_reply_at": None,
        },
        point=Point(NOW, 3),
        recheck_at=NOW + timedelta(days=5),
    )


@pytest.mark.parametrize("created_at", [None, NOW + timedelta(days=3)])
def test_what_is_undated_or_dated_ahead_is_listed_at_the_time_it_was_seen(created_at: datetime | None) -> None:
    change = judge(None, shown(created_at=created_at), NOW)
    assert (change.values["ordered_at"], change.values["is_created_at_guessed"]) == (NOW, created_at is None)
    assert (change.values["created_at"], change.point, change.recheck_at) == (created_at or NOW, None, None)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"score": 10},
        {"score": 1000, "rounded": ("score",)},
        {"view_count": 1200, "rounded": ("view_count",)},
        {"author": "ann", "url": "https://one.example/a"},
        {"tags": ("y", "x")},
        {"tags": ()},
    ],
)
def test_what_tells_nothing_new_is_the_same(told: dict[str, Any]) -> None:
    assert same(judge(known(), shown(**told), NOW))


COUNTERS: dict[str, Any] = {"reply_count": None, "score": 10, "view_count": 1200, "rounded": ("view_count",)}


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ({"score": 11}, COUNTERS | {"score": 11}),
        ({"score": 0}, COUNTERS | {"score": 0}),
        ({"reply_count": 0}, COUNTERS | {"reply_count": 0}),
        (
            {"reply_count": 100, "rounded": ("reply_count",)},
            COUNTERS | {"reply_count": 100, "rounded": ("reply_count", "view_count")},
        ),
        ({"view_count": 1300, "rounded": ("view_count",)}, COUNTERS | {"view_count": 1300}),
        ({"view_count": 1200}, COUNTERS | {"rounded": ()}),
        ({"score": 11, "view_count": 1, "rounded": ("score",)}, COUNTERS | {"view_count": 1, "rounded": ()}),
        ({"author": "bob"}, {"author": "bob"}),
        ({"author_display_name": "Bob"}, {"author_display_name": "Bob"}),
        ({"url": "https://one.example/b"}, {"url": "https://one.example/b"}),
        ({"edited_at": NOW}, {"edited_at": NOW}),
        ({"last_reply_at": NOW}, {"last_reply_at": NOW}),
        ({"is_pinned": True}, {"is_pinned": True}),
        ({"is_digest": True}, {"is_digest": True}),
        ({"is_adult": True}, {"is_adult": True}),
        ({"tags": ("x", "y", "z")}, {"tags": ("x", "y", "z")}),
        ({"tags": ("x",)}, {"tags": ("x",)}),
    ],
)
def test_what_is_not_content_is_updated_in_place_and_nothing_else_is(
    told: dict[str, Any], written: dict[str, Any]
) -> None:
    change = judge(known(), shown(**told), NOW)
    assert (change.change, change.reasons, change.values) == (Change.COUNTED, (), written | {"applied_at": NOW})
    assert change.is_reindexed == ("author" in written or "tags" in written)


@pytest.mark.parametrize(
    ("last", "told", "is_due"),
    [
        (None, {"score": 11}, True),
        (Point(NOW - timedelta(hours=1), 10, None, 1200), {"score": 11}, False),
        (Point(NOW - timedelta(hours=1), 10, None, 1200), {"score": 12}, True),
        (Point(NOW - timedelta(hours=1), 100, None, 1200), {"score": 109}, False),
        (Point(NOW - timedelta(hours=1), 100, None, 1200), {"score": 110}, True),
        (Point(NOW - timedelta(hours=6), 10, None, 1200), {"score": 11}, True),
        (Point(NOW - timedelta(hours=6), 11, None, 1200), {"score": 11}, False),
        (
            Point(NOW - timedelta(hours=1), 10, None, 1200),
            {"score": 500, "author": "bob", "rounded": ("score",)},
            False,
        ),
        (Point(NOW - timedelta(hours=9), 1, None, 1200), {"author": "bob"}, False),
    ],
)
def test_a_point_is_due_on_a_change_by_a_tenth_or_on_any_change_after_six_hours(
    last: Point | None, told: dict[str, Any], is_due: bool
) -> None:
    point = judge(known(), shown(**told), NOW, last_point=last).point
    assert point == (Point(NOW, told["score"], None, 1200) if is_due else None)


@pytest.mark.parametrize(
    ("held", "came", "reasons"),
    [
        ({}, {"fingerprint": b"other"}, "content_fingerprint_changed"),
        ({}, {"fingerprint": b"other", "title": "Other"}, "content_fingerprint_changed;title_changed"),
        ({}, {"is_deleted": True}, "marked_deleted_by_source"),
        ({}, {"is_folded": True}, "marked_folded_by_source"),
        ({"is_deleted": True}, {}, "restored_by_source"),
        ({"is_folded": True}, {}, "unfolded_by_source"),
        ({"is_deleted": True}, {"is_folded": True}, "marked_folded_by_source;restored_by_source"),
        (
            {"is_folded": True},
            {"fingerprint": b"other", "is_deleted": True, "score": 99},
            "content_fingerprint_changed;marked_deleted_by_source;unfolded_by_source",
        ),
    ],
)
def test_an_edit_says_why_in_the_order_that_readers_rely_on(
    held: dict[str, Any], came: dict[str, Any], reasons: str
) -> None:
    item = shown(**came)
    change = judge(known(**held), item, NOW)
    assert (change.change, change.reasons, change.is_reindexed) == (Change.EDITED, tuple(reasons.split(";")), True)
    assert values_of(change, *COUNTERS) == content_of(item) | {
        "version": 2,
        "content_last_changed_at": NOW,
        "is_deleted": item.item.is_deleted,
        "deleted_by": None,
        "is_folded": item.item.is_folded,
        "applied_at": NOW,
    }


DELETED: dict[str, Any] = {
    "version": 2,
    "content_last_changed_at": NOW,
    "is_deleted": True,
    "deleted_by": None,
    "is_folded": False,
    "applied_at": NOW,
}
"""What is written about an item that the platform shows as deleted, without its text."""


def test_withheld_text_is_no_edit_and_what_we_hold_is_kept() -> None:
    gone = shown(b"of nothing", title="[deleted]", text=None, is_deleted=True)
    assert is_withheld(gone.item)
    change = judge(known(), gone, NOW)
    assert (change.change, change.reasons) == (Change.EDITED, ("marked_deleted_by_source",))
    assert change.values == DELETED
    assert same(judge(known(is_deleted=True), gone, NOW))


@pytest.mark.parametrize("item", [{"text": "still here", "is_deleted": True}, {"html": "<p>", "text": None}])
def test_text_that_is_shown_is_not_withheld(item: dict[str, Any]) -> None:
    assert not is_withheld(shown(**item).item)


def test_who_took_it_away_is_told_later_without_a_revision() -> None:
    gone = shown(b"of nothing", text=None, is_deleted=True, deleted_by="moderator")
    told_later = judge(known(is_deleted=True), gone, NOW)
    assert (told_later.change, told_later.values) == (Change.COUNTED, {"deleted_by": "moderator", "applied_at": NOW})
    assert same(judge(known(is_deleted=True, deleted_by="moderator"), gone, NOW))
    assert judge(known(), gone, NOW).values == DELETED | {"deleted_by": "moderator"}


@pytest.mark.parametrize(
    "held", [{}, {"is_partial": True}, {"is_pinned": True, "is_adult": True}, {"is_deleted": True}]
)
def test_a_short_form_says_nothing_about_what_is_held(held: dict[str, Any]) -> None:
    brief = shown(b"other", title="Other", author="bob", tags=("z",), is_partial=True)
    assert same(judge(known(**held), brief, NOW))
    assert judge(None, brief, NOW).change == Change.NEW


@pytest.mark.parametrize("came", [{"fingerprint": b"other", "title": "Other"}, {}, {"is_deleted": True}])
def test_the_first_whole_form_completes_a_short_one_and_is_no_edit(came: dict[str, Any]) -> None:
    reasons = ("marked_deleted_by_source",) if "is_deleted" in came else ()
    expected = Change.EDITED if reasons else Change.COUNTED
    item = shown(floor_number=4, **came)
    change = judge(known(is_partial=True), item, NOW)
    assert (change.change, change.reasons, change.is_completed) == (expected, reasons, True)
    assert change.is_reindexed
    assert change.values.items() >= content_of(item).items()
    assert {"author_id", "thread_id", "floor_number", "is_head", "language"} <= change.values.keys()


def test_a_form_that_does_not_show_on_which_floor_a_post_is_leaves_it_there() -> None:
    assert "floor_number" not in judge(known(is_partial=True, floor_number=4), shown(b"other"), NOW).values


def test_what_is_withheld_completes_nothing() -> None:
    gone = shown(b"of nothing", text=None, is_deleted=True)
    change = judge(known(is_partial=True), gone, NOW)
    assert (change.reasons, change.is_completed, change.values) == (("marked_deleted_by_source",), False, DELETED)
    assert same(judge(known(is_partial=True, is_deleted=True), gone, NOW))
    restored = judge(known(is_partial=True, is_deleted=True), shown(b"other"), NOW)
    assert (restored.change, restored.reasons, restored.is_completed) == (
        Change.EDITED,
        ("restored_by_source",),
        True,
    )


@pytest.mark.parametrize(
    ("held", "came", "is_taken"),
    [
        ({"is_withheld": True}, {}, True),
        ({"is_withheld": True}, {"text": None, "html": "<p>"}, True),
        ({"is_withheld": True}, {"text": None}, False),
        ({"is_withheld": True}, {"is_partial": True}, False),
        ({"is_withheld": False}, {}, False),
    ],
)
def test_an_answer_that_was_overtaken_tells_at_most_a_text_of_which_nothing_is_held(
    held: dict[str, Any], came: dict[str, Any], is_taken: bool
) -> None:
    newer = known(is_deleted=True, shown_at=NOW + timedelta(minutes=1), **held)
    item = shown(b"other", score=99, **came)
    change = judge(newer, item, NOW)
    assert same(change) == (not is_taken)
    if is_taken:
        assert (change.change, change.is_completed, change.point) == (Change.COUNTED, True, None)
        assert change.values.items() >= content_of(item).items()
        assert change.values.keys().isdisjoint((*COUNTERS, "applied_at", "version"))


def test_what_flips_is_counted_until_its_day_is_over() -> None:
    flipping = known(volatile_until=NOW + timedelta(seconds=1))
    change = judge(flipping, shown(b"other"), NOW)
    assert (change.change, change.is_volatile) == (Change.COUNTED, True)
    assert change.values == {
        "volatile_count": 1,
        "volatile_until": NOW + timedelta(seconds=1),
        "applied_at": NOW,
    }
    assert same(judge(flipping, shown(), NOW))
    assert judge(flipping, shown(b"other"), NOW + timedelta(seconds=1)).change == Change.EDITED


anything = st.builds(
    shown,
    st.sampled_from([HELD, b"other"]),
    text=st.none() | st.just("text"),
    score=st.none() | st.integers(0, 20),
    is_deleted=st.booleans(),
    is_folded=st.booleans(),
    is_pinned=st.booleans(),
    tags=st.sampled_from([(), ("x",), ("x", "y")]),
)


@given(item=anything)
def test_an_answer_that_was_overtaken_says_nothing(item: RefinedItem) -> None:
    assert same(judge(known(), item, NOW - timedelta(hours=1, microseconds=1)))


@given(item=anything)
def test_a_revision_has_reasons_and_nothing_else_has(item: RefinedItem) -> None:
    change = judge(known(), item, NOW)
    assert (change.change == Change.EDITED) == bool(change.reasons)
    assert ("version" in change.values) == bool(change.reasons)
    assert not is_withheld(item.item) or change.values.keys().isdisjoint(CONTENT)


def test_an_old_copy_completes_a_text_under_its_own_title_if_only_a_mirrors_is_stored() -> None:
    stored = known(title="[docks] Locks", fingerprint=fingerprint(None, None, None, ()), is_partial=True)
    change = judge(stored, shown(b"whole", title="Locks", is_head=True), NOW)
    assert (change.change, change.reasons) == (Change.COUNTED, ())
    values = completion(change, keeps_title=True).values
    assert (values["title"], values["fingerprint"]) == ("Locks", b"whole")


@pytest.mark.parametrize(
    ("more", "is_due"),
    [({}, True), ({"is_folded": True}, False), ({"references": ()}, False), ({"lacks_text": False}, False)],
)
def test_a_reply_whose_text_is_elsewhere_is_due_for_a_recheck_at_once(more: dict[str, Any], is_due: bool) -> None:
    row: dict[str, Any] = {"text": None, "lacks_text": True, "references": (Reference("replied_to", "b"),)}
    change = judge(None, shown(**row | more), NOW, recheck_ages=(timedelta(days=1),))
    assert (change.recheck_at == NOW) == is_due
