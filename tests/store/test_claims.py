"""Work that waits longest is claimed first, whether it was claimed before or not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catchment.store import leases
from tests.store.desk import Desk


def claimed(desk: Desk, ids: Sequence[int], limit: int | None) -> list[int]:
    owner_id, now = desk.presence.owner_id, desk.now
    taken = desk.store.database.write(lambda tx: leases.claim(tx, "thread", ids, owner_id, now, limit))
    return sorted(taken)


def give_back(desk: Desk) -> None:
    desk.store.database.write(lambda tx: tx.run("UPDATE leases SET owner_id = NULL"))


@pytest.mark.parametrize(
    ("waiting", "limit", "first"),
    [
        ([3, 5, 9], 1, [3]),
        ([5, 3, 9], 1, [5]),
        ([5, 3, 9], 2, [3, 5]),
        ([3, 4, 5, 9], 2, [3, 4]),
        ([3, 5, 9], 3, [3, 5, 9]),
        ([3, 5, 9], None, [3, 5, 9]),
        ([9, 5], 1, [9]),
    ],
)
def test_what_was_never_claimed_does_not_wait_behind_what_was(
    desk: Desk, waiting: list[int], limit: int | None, first: list[int]
) -> None:
    assert claimed(desk, [5, 9], None) == [5, 9]
    give_back(desk)
    assert claimed(desk, waiting, limit) == first


def test_what_others_hold_is_passed_over(desk: Desk) -> None:
    claimed(desk, [5, 9], None)
    assert claimed(desk, [5, 3, 9, 4], 2) == [3, 4]
    assert claimed(desk, [5, 3, 9, 4], 2) == []
