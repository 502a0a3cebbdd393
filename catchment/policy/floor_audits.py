"""Decisions of floor audits: which floors of a thread are missing, which may be requested, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from catchment.errors import CatchmentError, PlatformError, StoreError, Unreadable

MOST_ATTEMPTS = 3
"""Per floor, ever."""


def missing_floors(first: int, last: int, stored: Collection[int], holes: Collection[int]) -> tuple[int, ...]:
    """Returns the floors that are neither stored nor known as holes. A thread is expected to have all floors up to the
    highest that was shown."""
    return tuple(number for number in range(first, last + 1) if number not in stored and number not in holes)


def next_attempts(floors: Iterable[int], before: Mapping[int, int]) -> dict[int, int]:
    """Returns the floors that have an attempt left, each with its attempts once this one is counted."""
    return {number: before.get(number, 0) + 1 for number in floors if before.get(number, 0) < MOST_ATTEMPTS}


def thread_result(floors: Sequence[tuple[str, bool]]) -> str:
    """Returns the result of a thread's repair, by the result of each missing floor and whether it was tried."""
    results = {result for result, _ in floors}
    if results <= {"repaired"}:
        return "repaired"
    if "repaired" in results:
        return "partial"
    if "failed" in results:
        return "failed"
    return "partial" if any(is_tried for _, is_tried in floors) else "missing"


def audit_counts(threads: Iterable[tuple[str, str | None, int]], floors: Mapping[str, int]) -> Counter[str]:
    """Returns what incomplete threads add to the counts of their audit: how many there are of each result and category
    of error, and how many of their missing floors have which result."""
    counts = Counter(
        missing_thread_count=0,
        missing_floor_count=sum(floors.values()),
        repaired_floor_count=floors.get("repaired", 0),
        ignored_floor_count=floors.get("ignored", 0),
    )
    for result, category, count in threads:
        counts["missing_thread_count"] += count
        if result in ("repaired", "partial", "failed"):
            counts[f"{result}_thread_count"] += count
        if result == "failed":
            counts[f"failed_{category or 'unknown'}_count"] += count
    return counts


def category_of(error: CatchmentError) -> str:
    """Returns the kind of cause: http, parse, db or unknown."""
    if isinstance(error, Unreadable):
        return "parse"
    if isinstance(error, StoreError):
        return "db"
    return "http" if isinstance(error, PlatformError) else "unknown"
