"""What an audit of floors decides: what is missing, what may be requested, and what a repair came to."""

from __future__ import annotations

import pytest

from catchment.errors import CatchmentError, SlowDown, StoreError, Unreadable
from catchment.policy.floor_audits import (
    MOST_ATTEMPTS,
    audit_counts,
    category_of,
    missing_floors,
    next_attempts,
    thread_result,
)


def test_a_floor_is_missing_that_is_neither_stored_nor_known_as_a_hole() -> None:
    assert missing_floors(1, 6, {1, 2, 5}, {3, 5, 9}) == (4, 6)
    assert missing_floors(0, 0, (), ()) == (0,)


def test_a_floor_has_three_attempts_ever() -> None:
    assert MOST_ATTEMPTS == 3
    assert next_attempts((4, 6, 7, 8), {6: 1, 7: 2, 8: 3}) == {4: 1, 6: 2, 7: 3}


@pytest.mark.parametrize(
    ("floors", "result"),
    [
        ([], "repaired"),
        ([("repaired", True), ("repaired", True)], "repaired"),
        ([("repaired", True), ("failed", True)], "partial"),
        ([("repaired", True), ("ignored", False)], "partial"),
        ([("failed", True), ("still_missing", True)], "failed"),
        ([("still_missing", True), ("ignored", False)], "partial"),
        ([("missing", False), ("ignored", False)], "missing"),
    ],
)
def test_a_thread_is_repaired_in_part_in_whole_or_not(floors: list[tuple[str, bool]], result: str) -> None:
    assert thread_result(floors) == result


def test_an_audit_counts_threads_by_result_and_failed_ones_by_cause() -> None:
    threads = [("repaired", None, 2), ("failed", "http", 1), ("failed", None, 1), ("skipped", None, 3)]
    assert audit_counts(threads, {"repaired": 5, "ignored": 1, "failed": 4}) == {
        "missing_thread_count": 7,
        "repaired_thread_count": 2,
        "failed_thread_count": 2,
        "failed_http_count": 1,
        "failed_unknown_count": 1,
        "missing_floor_count": 10,
        "repaired_floor_count": 5,
        "ignored_floor_count": 1,
    }


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (Unreadable("x"), "parse"),
        (StoreError("x"), "db"),
        (SlowDown("x"), "http"),
        (CatchmentError("x"), "unknown"),
    ],
)
def test_what_ended_a_repair_is_one_of_four(error: CatchmentError, category: str) -> None:
    assert category_of(error) == category
