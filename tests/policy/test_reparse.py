"""Which corrections the search index and clients that read changes have to see."""

from __future__ import annotations

import pytest

from catchment.policy.reparse import is_reindexed

COUNTERS = ("score", "reply_count")


@pytest.mark.parametrize(
    ("corrected", "is_seen"),
    [
        ([], False),
        (["score"], False),
        (["score", "is_pinned", "is_digest"], False),
        (["score", "author"], True),
        (["is_adult"], True),
    ],
)
def test_all_but_counters_and_labels_of_the_moment_is_indexed_again(corrected: list[str], is_seen: bool) -> None:
    assert is_reindexed(corrected, COUNTERS) == is_seen
