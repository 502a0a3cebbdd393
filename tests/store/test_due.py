"""What is due is found at once, in the right order, and goes to one claimant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from catchment.model import ON_PROBATION, SourceState
from catchment.store.database import Database, T, Transaction
from catchment.store.sources.sources import Claimed, Sources
from tests.store.desk import Desk


def names(claimed: list[Claimed]) -> list[str]:
    return [claim.source.target.removeprefix("https://").removesuffix(".example/") for claim in claimed]


def visited(desk: Desk, *wanted: str, **more: Any) -> None:
    """Visited now, one after the other."""
    for name in wanted:
        desk.give_back(desk.claim(desk.follow(name, **more)))
        desk.clock.advance(1)


def test_what_was_never_visited_comes_first_then_what_is_most_overdue(desk: Desk) -> None:
    visited(desk, "second", "third")
    visited(desk, "board", kind="reddit")
    desk.clock.advance(3600)
    desk.follow("fresh board", "reddit")
    desk.follow("fresh")
    # Kinds with intervals of their own: the board was visited last, and is due longest.
    claimed = names(desk.due(reddit=1))
    assert (set(claimed[:2]), claimed[2:]) == ({"fresh", "fresh board"}, ["board", "second", "third"])


def test_no_more_than_wanted_are_claimed_and_the_rest_stays_free(desk: Desk) -> None:
    for number in range(5):
        desk.follow(f"{number}")
    assert [len(desk.due(limit)) for limit in (0, 2, 2, 2, 2)] == [0, 2, 2, 1, 0]


def test_of_some_kinds_no_more_are_claimed_than_said_beside_the_others(desk: Desk) -> None:
    for number in range(4):
        desk.follow(f"{number}")
        desk.follow(f"board {number}", "reddit")
    claimed = names(desk.due(2, most={"reddit": 3}))
    assert (len(claimed), sum(1 for claim in claimed if claim.startswith("board"))) == (5, 3)
    assert len(desk.due(0, most={"reddit": 3})) == 1


@pytest.mark.parametrize("interval_minutes", [None, 5])
def test_a_kind_that_must_wait_hides_nobody_however_long_it_is_overdue(
    desk: Desk, interval_minutes: int | None
) -> None:
    visited(desk, *(f"board {number}" for number in range(5)), kind="reddit", interval_minutes=interval_minutes)
    desk.clock.advance(24 * 3600)
    visited(desk, "late", interval_minutes=interval_minutes)
    desk.clock.advance(3600)
    assert names(desk.due(2, most={"reddit": 0})) == ["late"]
    assert len(desk.due(9)) == 5


def test_what_is_given_back_is_as_due_as_before(desk: Desk) -> None:
    desk.follow("one")
    (claimed,) = desk.due()
    desk.store.sources.give_back([claimed.lease])
    assert names(desk.due()) == ["one"]


def test_nothing_is_due_before_its_interval_has_passed(desk: Desk) -> None:
    visited(desk, "one")
    desk.clock.advance(3598)
    assert desk.due() == []
    desk.clock.advance(1)
    assert names(desk.due()) == ["one"]


def test_a_looking_tick_writes_nothing(desk: Desk) -> None:
    visited(desk, "one")
    before = desk.rows("leases")
    assert desk.due() == []
    assert desk.rows("leases") == before


def test_a_changed_interval_of_a_kind_works_at_once(desk: Desk) -> None:
    visited(desk, "one")
    desk.clock.advance(600)
    assert desk.due(rss=60) == []
    assert desk.due(rss=11) == []
    assert names(desk.due(rss=10)) == ["one"]


def test_an_own_interval_goes_before_that_of_the_kind_and_counts_from_the_last_visit(desk: Desk) -> None:
    visited(desk, "one")
    source = desk.follow("one")
    desk.clock.advance(600)
    desk.store.sources.change(source.id, interval_minutes=5)
    assert names(desk.due()) == ["one"]


def test_an_interval_that_is_taken_back_leaves_that_of_the_kind(desk: Desk) -> None:
    visited(desk, "one")
    source = desk.follow("one")
    desk.store.sources.change(source.id, interval_minutes=5)
    desk.store.sources.change(source.id, interval_minutes=None)
    desk.clock.advance(600)
    assert desk.due() == []
    desk.clock.advance(3000)
    assert names(desk.due()) == ["one"]


def test_an_interval_that_a_person_changes_during_a_visit_holds_after_it(desk: Desk) -> None:
    source = desk.follow("one")
    claimed = desk.claim(source)
    desk.store.sources.change(source.id, interval_minutes=5)
    desk.give_back(claimed)
    _, progress = desk.store.sources.with_progress(source.id)
    assert (progress.next_due_at, progress.due_reason) == (desk.now + timedelta(minutes=5), "own interval")


def test_what_waits_for_another_reason_goes_on_waiting(desk: Desk) -> None:
    source = desk.follow("one")
    desk.give_back(desk.claim(source), next_due_at=desk.now + timedelta(hours=9), due_reason="asked to wait")
    desk.store.sources.change(source.id, interval_minutes=5)
    desk.clock.advance(3600)
    assert desk.due() == []
    desk.clock.advance(8 * 3600)
    assert names(desk.due()) == ["one"]


def test_a_source_that_is_asked_for_is_due_now(desk: Desk) -> None:
    visited(desk, "one")
    source = desk.follow("one")
    desk.store.sources.mark_due(source.id, desk.now)
    assert names(desk.due()) == ["one"]


@pytest.mark.parametrize("state", [SourceState.PAUSED, SourceState.RETIRED, SourceState.REMOVED])
def test_only_active_sources_are_due(desk: Desk, state: SourceState) -> None:
    source = desk.follow("one")
    desk.store.sources.set_state(source.id, state, "because", desk.now)
    assert desk.due() == []


def test_a_source_that_is_resumed_starts_with_a_clean_slate(desk: Desk) -> None:
    source = desk.follow("one")
    later = desk.now + timedelta(days=1)
    desk.give_back(desk.claim(source), failures_in_a_row=7, next_due_at=later, due_reason=ON_PROBATION)
    desk.store.sources.set_state(source.id, SourceState.PAUSED, None, desk.now)
    desk.store.sources.set_state(source.id, SourceState.ACTIVE, None, desk.now)
    desk.clock.advance(3600)
    assert names(desk.due()) == ["one"]


def test_what_is_held_is_left_out_and_does_not_hide_what_is_free(desk: Desk) -> None:
    held = [desk.claim(desk.follow(f"{number}")) for number in range(3)]
    desk.follow("free")
    assert names(desk.due(limit=1)) == ["free"]
    desk.give_back(held[0])
    desk.clock.advance(3600)
    assert names(desk.due(limit=1)) == ["0"]


def test_a_source_that_is_visited_between_look_and_claim_is_not_claimed(desk: Desk) -> None:
    source = desk.follow("one")
    database = SlowToAnswer(desk.store.database.url, lambda: desk.give_back(desk.claim(source)))
    assert Sources(database).claim_due(desk.presence.owner_id, {"rss": 60}, 60, desk.now, 5) == []
    assert desk.claim(source).lease.number == 3
    database.close()


class SlowToAnswer(Database):
    """Something happens between its first answer to a question and the action that follows."""

    def __init__(self, url: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(url)
        self._meanwhile: Callable[[], object] | None = meanwhile

    def read(self, question: Callable[[Transaction], T]) -> T:
        answer = super().read(question)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            meanwhile()
        return answer


def test_kinds_that_nobody_knows_wait_for_the_general_interval(desk: Desk) -> None:
    visited(desk, "one", kind="gopher")
    desk.clock.advance(59 * 60)
    assert desk.due() == []
    desk.clock.advance(60)
    assert names(desk.due()) == ["one"]


def test_when_all_that_is_due_is_left_out_the_search_soon_ends(desk: Desk, database_url: str) -> None:
    followed = {desk.follow(name).id for name in ("first", "second")}
    database = CountedReads(database_url)
    due = Sources(database).claim_due(desk.presence.owner_id, {"rss": 60}, 60, desk.now, 5, without=followed)
    assert (due, database.reads) == ([], 2)
    database.close()


class CountedReads(Database):
    reads = 0

    def read(self, question: Callable[[Transaction], T]) -> T:
        self.reads += 1
        return super().read(question)
