"""New, edited, counted or the same: decided from what is known and what came, and from nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.judge import is_withheld, judge
from catchment.model import Deed, Item, Known, RefinedItem, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HELD = b"what we hold"


def known(**more: Any) -> Known:
    usual: dict[str, Any] = {
        "id": 1,
        "external_id": "a",
        "fingerprint": HELD,
        "version": 1,
        "ordered_at": 0,
        "applied_at": NOW - timedelta(hours=1),
        "title": "Title",
        "url": "https://one.example/a",
        "author": "ann",
        "author_display_name": "Ann",
        "edited_at": None,
        "score": 10,
        "reply_count": None,
        "view_count": 1200,
        "rounded": ("view_count",),
        "is_deleted": False,
        "is_folded": False,
        "is_pinned": False,
        "is_digest": False,
        "tags": ("x", "y"),
        "volatile_until": None,
        "is_shown_by_source": True,
    }
    return Known(**usual | more)


def shown(fingerprint: bytes = HELD, **more: Any) -> RefinedItem:
    return RefinedItem(Item("a", title=more.pop("title", "Title"), text=more.pop("text", "text"), **more), fingerprint)


def test_what_was_never_seen_is_new() -> None:
    assert judge(None, shown(), NOW) == Verdict(Deed.NEW)


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
    assert judge(known(), shown(**told), NOW) == Verdict(Deed.SAME)


@pytest.mark.parametrize(
    "told",
    [
        {"score": 11},
        {"score": 0},
        {"reply_count": 0},
        {"reply_count": 100, "rounded": ("reply_count",)},
        {"view_count": 1300, "rounded": ("view_count",)},
        {"view_count": 1200},
        {"author": "bob"},
        {"author_display_name": "Bob"},
        {"url": "https://one.example/b"},
        {"edited_at": NOW},
        {"is_pinned": True},
        {"is_digest": True},
        {"is_adult": True},
        {"tags": ("x", "y", "z")},
        {"tags": ("x",)},
    ],
)
def test_what_is_not_content_is_counted(told: dict[str, Any]) -> None:
    assert judge(known(), shown(**told), NOW) == Verdict(Deed.COUNTED)


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
    assert judge(known(**held), shown(**came), NOW) == Verdict(Deed.EDITED, tuple(reasons.split(";")))


def test_withheld_text_is_no_edit_and_what_we_hold_is_kept() -> None:
    gone = shown(b"of nothing", title="[deleted]", text=None, is_deleted=True)
    assert is_withheld(gone.item)
    assert judge(known(), gone, NOW) == Verdict(Deed.EDITED, ("marked_deleted_by_source",), is_content_kept=True)
    assert judge(known(is_deleted=True), gone, NOW) == Verdict(Deed.SAME)


@pytest.mark.parametrize("item", [{"text": "still here", "is_deleted": True}, {"html": "<p>", "text": None}])
def test_text_that_is_shown_is_not_withheld(item: dict[str, Any]) -> None:
    assert not is_withheld(shown(**item).item)


def test_who_took_it_away_is_told_later_without_a_revision() -> None:
    gone = shown(b"of nothing", text=None, is_deleted=True, deleted_by="moderator")
    assert judge(known(is_deleted=True), gone, NOW) == Verdict(Deed.COUNTED)
    assert judge(known(is_deleted=True, deleted_by="moderator"), gone, NOW) == Verdict(Deed.SAME)
    assert judge(known(), gone, NOW) == Verdict(Deed.EDITED, ("marked_deleted_by_source",), is_content_kept=True)


@pytest.mark.parametrize("held", [{}, {"is_brief": True}, {"is_pinned": True, "is_adult": True}, {"is_deleted": True}])
def test_a_short_form_says_nothing_about_what_is_held(held: dict[str, Any]) -> None:
    brief = shown(b"other", title="Other", author="bob", tags=("z",), is_brief=True)
    assert judge(known(**held), brief, NOW) == Verdict(Deed.SAME)
    assert judge(None, brief, NOW) == Verdict(Deed.NEW)


@pytest.mark.parametrize("came", [{"fingerprint": b"other", "title": "Other"}, {}, {"is_deleted": True}])
def test_the_first_whole_form_completes_a_short_one_and_is_no_edit(came: dict[str, Any]) -> None:
    reasons = ("marked_deleted_by_source",) if "is_deleted" in came else ()
    deed = Deed.EDITED if reasons else Deed.COUNTED
    assert judge(known(is_brief=True), shown(**came), NOW) == Verdict(deed, reasons, is_completed=True)


def test_what_is_withheld_completes_nothing() -> None:
    gone = shown(b"of nothing", text=None, is_deleted=True)
    assert judge(known(is_brief=True), gone, NOW) == Verdict(
        Deed.EDITED, ("marked_deleted_by_source",), is_content_kept=True
    )
    assert judge(known(is_brief=True, is_deleted=True), gone, NOW) == Verdict(Deed.SAME)
    assert judge(known(is_brief=True, is_deleted=True), shown(b"other"), NOW) == Verdict(
        Deed.EDITED, ("restored_by_source",), is_completed=True
    )


@pytest.mark.parametrize(
    ("held", "came", "is_taken"),
    [
        ({"is_withheld": True}, {}, True),
        ({"is_withheld": True}, {"text": None, "html": "<p>"}, True),
        ({"is_withheld": True}, {"text": None}, False),
        ({"is_withheld": True}, {"is_brief": True}, False),
        ({"is_withheld": False}, {}, False),
    ],
)
def test_an_answer_that_was_overtaken_tells_at_most_a_text_of_which_nothing_is_held(
    held: dict[str, Any], came: dict[str, Any], is_taken: bool
) -> None:
    newer = known(is_deleted=True, applied_at=NOW + timedelta(minutes=1), **held)
    wanted = Verdict(Deed.COUNTED, is_completed=True, is_overtaken=True) if is_taken else Verdict(Deed.SAME)
    assert judge(newer, shown(b"other", score=99, **came), NOW) == wanted


def test_what_flips_is_counted_until_its_day_is_over() -> None:
    flipping = known(volatile_until=NOW + timedelta(seconds=1))
    assert judge(flipping, shown(b"other"), NOW) == Verdict(Deed.COUNTED, is_volatile=True)
    assert judge(flipping, shown(), NOW) == Verdict(Deed.SAME)
    assert judge(flipping, shown(b"other"), NOW + timedelta(seconds=1)).deed == Deed.EDITED


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


@given(one=anything)
def test_an_answer_that_was_overtaken_says_nothing(one: RefinedItem) -> None:
    assert judge(known(), one, NOW - timedelta(hours=1, microseconds=1)) == Verdict(Deed.SAME)


@given(one=anything)
def test_a_revision_has_reasons_and_nothing_else_has(one: RefinedItem) -> None:
    verdict = judge(known(), one, NOW)
    assert (verdict.deed == Deed.EDITED) == bool(verdict.reasons)
    assert not verdict.is_content_kept or is_withheld(one.item)
