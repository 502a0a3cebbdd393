"""How long something takes on a machine that has other things to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Times:
    """Of many, in milliseconds."""

    fastest: float
    """What the fastest tenth stayed below. Short questions are compared by this: what disturbs only ever adds."""
    median: float
    worst: float


def by_turns(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[Times, Times]:
    """What each of two took; by turns, so that what disturbs one disturbs the other."""
    took = [(milliseconds(first), milliseconds(second)) for _ in range(repeats)]
    return times_of([first for first, _ in took]), times_of([other for _, other in took])


def times_of(took: Sequence[float]) -> Times:
    return Times(quantiles(took, n=10)[0], median(took), max(took))


def milliseconds(action: Callable[[], object]) -> float:
    # On the clock: a PostgreSQL works in processes of its own.
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1e3
