"""For which time a source is proven complete: every moment has one standing, and a reason."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.cli.commands.reports import weeks
from catchment.model import (
    CoverageState,
    Order,
    Progress,
    Source,
    SourceState,
)
from catchment.policy.coverage import (
    Day,
    Hole,
    Stretch,
    calendar,
    known_until,
    stretches,
)

DAY = timedelta(days=1)
NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
SINCE = NOW - 10 * DAY
SOURCE = Source(1, "k", "reddit", "reddit", "r/a", "A", SINCE)
READ = Progress(first_polled_at=NOW - 6 * DAY, last_success_at=NOW - DAY / 4)


def told(
    *holes: Hole, source: Source = SOURCE, progress: Progress = READ, order: Order = Order.NEWEST_FIRST
) -> list[tuple[float, str]]:
    """How many days ago each stretch begins, and how it stands."""
    found = stretches(source, progress, order, holes, SINCE, NOW)
    assert all(before.to_at == after.from_at for before, after in pairwise(found))
    assert (found[0].from_at, found[-1].to_at) == (SINCE, NOW)
    assert all(stretch.why for stretch in found)
    return [((NOW - stretch.from_at) / DAY, str(stretch.standing)) for stretch in found]


def hole(start: float, end: float, *, is_certain: bool = False, closed: str | None = None) -> Hole:
    return Hole(1, is_certain, NOW - start * DAY, NOW - end * DAY, "window", closed)


def test_what_was_walked_is_verified_and_nothing_before_or_after() -> None:
    assert told() == [(10, "unproven"), (6, "verified"), (0.25, "unproven")]


@pytest.mark.parametrize(
    ("gap", "standing"),
    [
        (hole(4, 3), "suspect"),
        (hole(4, 3, is_certain=True), "unreachable"),
        (hole(4, 3, is_certain=True, closed="shown again"), "repaired"),
    ],
)
def test_a_gap_stands_as_it_is_known_and_closed(gap: Hole, standing: str) -> None:
    expected = [(10, "unproven"), (6, "verified"), (4, standing), (3, "verified"), (0.25, "unproven")]
    assert told(gap) == expected


def test_of_two_gaps_the_worse_one_counts_where_they_meet() -> None:
    found = told(hole(5, 3), hole(4, 2, is_certain=True), hole(4.5, 2.5, closed="shown again"))
    assert found[2:5] == [(5, "suspect"), (4, "unreachable"), (2, "verified")]


@pytest.mark.parametrize("order", [Order.RANKED, Order.SNAPSHOT])
def test_a_listing_that_is_not_newest_first_proves_nothing(order: Order) -> None:
    assert {standing for _, standing in told(order=order)} == {"unproven"}


@pytest.mark.parametrize(
    ("source", "progress", "last"),
    [
        (SOURCE, READ.replace(last_error="403"), (0.25, "unreachable")),
        (SOURCE.replace(state=SourceState.PAUSED), READ, (0.25, "unreachable")),
        (SOURCE, Progress(), (10, "unproven")),
        (SOURCE, Progress(first_polled_at=NOW - DAY, last_error="private"), (10, "unreachable")),
    ],
)
def test_what_comes_after_the_last_good_visit_stands_as_the_source_does(
    source: Source, progress: Progress, last: tuple[float, str]
) -> None:
    assert told(source=source, progress=progress)[-1] == last


@pytest.mark.parametrize(
    ("source", "progress", "standing"),
    [
        (SOURCE, Progress(first_polled_at=NOW - DAY, last_error="it is away"), "unreachable"),
        (SOURCE.replace(state=SourceState.PAUSED), Progress(), "unreachable"),
        (SOURCE, Progress(), "unproven"),
    ],
)
def test_a_source_that_was_never_read_is_not_unreachable_before_it_was_there(
    source: Source, progress: Progress, standing: str
) -> None:
    added = source.replace(created_at=NOW - 2 * DAY)
    assert told(source=added, progress=progress) == [(10, "unproven"), (2, standing)]


def test_a_day_is_as_bad_as_its_worst_hour_and_today_is_judged_up_to_the_last_visit() -> None:
    found = stretches(SOURCE, READ, Order.NEWEST_FIRST, [hole(4, 3.75)], SINCE, NOW)
    days = calendar(found, known_until(found, READ, NOW))
    assert days[-1] == Day(date(2026, 3, 11), CoverageState.VERIFIED, 1.0)
    assert [day for day in days if day.standing == CoverageState.SUSPECT] == [
        Day(date(2026, 3, 7), CoverageState.SUSPECT, 0.75)
    ]
    assert len(days) == 11
    lines = list(weeks(days))
    assert lines == ["2026-02-23              ·", "2026-03-02  · · · · ■ ? ■", "2026-03-09  ■ ■ ■"]


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.floats(0, 20), st.booleans(), st.sampled_from([None, "shown again"])), max_size=8
    )
)
def test_every_moment_has_exactly_one_standing(gaps: list[tuple[float, float, bool, str | None]]) -> None:
    told(*(hole(max(a, b), min(a, b), is_certain=sure, closed=closed) for a, b, sure, closed in gaps))


def test_nothing_is_said_twice_in_a_row() -> None:
    found = stretches(SOURCE, READ, Order.NEWEST_FIRST, [hole(4, 3), hole(3, 2)], SINCE, NOW)
    assert [stretch.standing for stretch in found].count(CoverageState.SUSPECT) == 1
    assert all(isinstance(stretch, Stretch) for stretch in found)
