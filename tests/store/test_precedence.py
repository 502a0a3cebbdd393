"""Who goes first where not all can: by priority, then by how late each is by its own measure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catchment.model import Budget
from catchment.policy.budget_plan import Need, planned
from catchment.store.sources.sources import ListedChanges
from tests.store.desk import Desk
from tests.store.test_due import names, visited

MINUTE, HOUR = 60, 3600


def test_the_higher_priority_goes_first_however_late_the_others_are(desk: Desk) -> None:
    visited(desk, "low", priority="low")
    visited(desk, "medium")
    visited_at_own_interval(desk, "own interval", 60)
    desk.clock.advance(5 * HOUR)
    visited(desk, "high", priority="high")
    visited(desk, "board", kind="reddit", priority="high")
    desk.clock.advance(2 * HOUR)
    claimed = names(desk.due())
    assert (set(claimed[:2]), set(claimed[2:4]), claimed[4:]) == (
        {"high", "board"},
        {"medium", "own interval"},
        ["low"],
    )


def test_what_was_never_visited_goes_before_all_and_among_those_the_higher_priority(desk: Desk) -> None:
    visited(desk, "known", priority="high")
    desk.clock.advance(9 * HOUR)
    for priority in ("low", "high", "medium"):
        desk.follow(priority, priority=priority)
    assert [names(desk.due(1)) for _ in range(4)] == [["high"], ["medium"], ["low"], ["known"]]


def visited_at_own_interval(desk: Desk, name: str, minutes: int, **more: Any) -> None:
    claimed = desk.claim(desk.follow(name, interval_minutes=minutes, **more))
    desk.give_back(claimed, next_due_at=desk.now + timedelta(minutes=minutes))


def test_of_one_priority_the_latest_by_its_own_measure_goes_first(desk: Desk) -> None:
    visited_at_own_interval(desk, "daily", 1440)
    desk.clock.advance(24 * HOUR)
    visited(desk, "hourly")
    visited_at_own_interval(desk, "quarterly", 15)
    # By now the daily one is late by 2 h 45, that is a ninth of its interval; the others by more of theirs.
    desk.clock.advance(2 * HOUR + 45 * MINUTE)
    assert names(desk.due()) == ["quarterly", "hourly", "daily"]


def test_equally_late_the_shorter_interval_goes_first(desk: Desk) -> None:
    for name, minutes in (("long", 120), ("short", 60)):
        visited_at_own_interval(desk, name, minutes)
        desk.clock.advance(HOUR)
    assert names(desk.due()) == ["short", "long"]


def test_a_tier_is_a_measure_of_its_own(desk: Desk) -> None:
    for name, minutes in (("quiet", 1440), ("lively", 120)):
        source = desk.follow(name, "reddit")
        desk.give_back(desk.claim(source), next_due_at=desk.now, tier="tier", tier_minutes=minutes)
        desk.clock.advance(HOUR)
    desk.clock.advance(2 * HOUR)
    assert names(desk.due()) == ["lively", "quiet"]


def by_a_person(desk: Desk, source_id: int) -> None:
    desk.store.sources.change(source_id, priority="high")


def by_a_list(desk: Desk, source_id: int) -> None:
    desk.store.sources.merge({source_id: ListedChanges(priority="high")})


def by_following_it_anew(desk: Desk, source_id: int) -> None:
    desk.store.sources.set_state(source_id, "removed", None, desk.now)
    desk.follow("changed", priority="high")


@pytest.mark.parametrize("change", [by_a_person, by_a_list, by_following_it_anew])
def test_another_priority_counts_at_once(desk: Desk, change: object) -> None:
    visited(desk, "first", "second", "changed")
    desk.clock.advance(2 * HOUR)
    change(desk, 3)  # type: ignore[operator]
    assert names(desk.due()) == ["changed", "first", "second"]


def test_what_is_planned_is_what_happens(desk: Desk) -> None:
    """A visit a minute, and sources that would need one and a half: who is late, and by how much, is as planned."""
    needs = [("high", 20)] * 6 + [("medium", 12)] * 6 + [("medium", 24)] * 12 + [("low", 30)] * 3
    sources = [desk.follow(f"{n}", interval_minutes=minutes, priority=word) for n, (word, minutes) in enumerate(needs)]
    for source in sources:
        claimed = desk.claim(source)
        desk.give_back(claimed, next_due_at=desk.now)
    waited: dict[int, list[float]] = {source.id: [] for source in sources}
    for _ in range(400):
        for result in desk.due(1):
            assert result.progress.next_due_at
            assert result.source.interval_minutes
            waited[result.source.id].append((desk.now - result.progress.next_due_at).total_seconds() / 60)
            desk.give_back(result, next_due_at=desk.now + timedelta(minutes=result.source.interval_minutes))
        desk.clock.advance(MINUTE)
    plan = planned(
        "it",
        [Need(source.id, source.name, source.priority, source.interval_minutes or 0, 1) for source in sources],
        Budget("it", limit=1, window_seconds=60),
    )
    late = {source.need.source_id: source.minutes for source in plan.late}
    for source in sources:
        # The first turns are spent on getting into step.
        seen = waited[source.id][2:]
        if late.get(source.id, 0) is None:
            assert len(seen) == 0
        else:
            assert sum(seen) / len(seen) == pytest.approx(late.get(source.id, 0), abs=3)
