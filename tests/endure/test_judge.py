"""The judge of a trial tells floors that wait to be read from floors that are lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache

import pytest

from catchment.playground.world import World
from endure.missing import Floors, Missed, Span
from endure.stored import PASSED_FOR, ThreadRun, passed_for
from endure.trial import START

HOUR = timedelta(hours=1)


@cache
def board() -> World:
    return World(7, START, 0, 2.0, others={"nga": 1})


def judged(stored: set[str], waiting: set[str]) -> Missed:
    """The board was walked four times in its second day; these posts are stored, these heads' threads wait."""
    world = board()
    walks = [Span(at, at) for at in (START + 24 * HOUR + number * 5 * HOUR for number in range(4))]
    return Floors(world, world.places[0], walks, dict.fromkeys(stored, START), (), 2, waiting).missed()


def floors() -> list[str]:
    """What is owed if nothing is stored, as the posts' ids."""
    return [words.split()[0] for words in judged(set(), set()).unexplained]


def head_of(floor: str) -> str:
    return next(words for words in judged(set(), set()).unexplained if words.startswith(f"{floor} ")).split()[-1]


def test_a_single_floor_that_is_not_stored_is_unexplained() -> None:
    lost = floors()[5]
    [words] = judged(set(floors()) - {lost}, set()).unexplained
    assert words.startswith(f"{lost} of ")


def test_a_floor_of_a_thread_that_waits_to_be_read_is_counted_apart() -> None:
    missing = floors()[5]
    missed = judged(set(floors()) - {missing}, {head_of(missing)})
    assert (missed.unexplained, missed.waiting) == ((), 1)


def test_a_thread_that_waits_explains_nothing_about_another() -> None:
    lost, *others = floors()
    elsewhere = next(head_of(floor) for floor in others if head_of(floor) != head_of(lost))
    missed = judged(set(others), {elsewhere})
    assert (len(missed.unexplained), missed.waiting) == (1, 0)


def run(thread: int, at: datetime, *, listed_at: datetime = START, is_complete: bool = True) -> ThreadRun:
    return ThreadRun(1, thread, listed_at, at, is_complete)


SINCE = START + HOUR


@pytest.mark.parametrize(
    ("runs", "passed"),
    [
        pytest.param([], 0, id="nobody is read"),
        pytest.param([run(2, SINCE + 2 * HOUR), run(3, SINCE + 9 * HOUR)], 0, id="those that waited before"),
        pytest.param([run(2, SINCE + n * HOUR, listed_at=SINCE + HOUR) for n in (2, 9)], 7, id="those listed later"),
        pytest.param([run(2, SINCE + n * HOUR) for n in (2, 4, 14)], 10, id="one that comes up again and again"),
        pytest.param(
            [run(2, SINCE + n * HOUR, is_complete=False) for n in (2, 4, 14)],
            0,
            id="one that is tried until it is read",
        ),
        pytest.param([run(1, SINCE + n * HOUR) for n in (2, 4, 14)], 0, id="itself, without success"),
        pytest.param([run(2, START, listed_at=START), run(2, SINCE + HOUR)], 0, id="one that came up before it"),
    ],
)
def test_a_thread_is_passed_over_while_those_that_began_to_wait_later_are_read(
    runs: list[ThreadRun], passed: float
) -> None:
    assert passed_for(runs, 1, 1, SINCE) == passed * HOUR
    assert (passed_for(runs, 1, 1, SINCE) > PASSED_FOR) == (passed > 6)
    assert passed_for(runs, 2, 1, SINCE) == timedelta()
