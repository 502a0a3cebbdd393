"""Budget plan: what the sources of a platform need, what it allows, and which sources will be late. Pure.

A source needs the requests of one visit in each of its intervals. If all of them together need more than the budget,
higher priorities are served first; sources of the priority at which it runs out are all late in proportion to their
interval. Claiming uses the same order, so that the plan matches what happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import fsum

from catchment.model import Budget, Record, precedence


class Need(Record, frozen=True):
    """The requests that one source needs."""

    source_id: int
    name: str
    priority: str
    interval_minutes: int
    requests: float
    """Per visit, on average."""

    @property
    def per_minute(self) -> float:
        return self.requests / self.interval_minutes


class PlannedDelay(Record, frozen=True):
    """A source for which the budget does not suffice."""

    need: Need
    minutes: int | None
    """Delay in minutes; None: never visited while higher priorities use the whole budget."""


class PlatformPlan(Record, frozen=True):
    """The needs of one platform's sources against its budget."""

    platform: str
    source_count: int
    needed: float
    """Requests per minute, for visits at their intervals."""
    besides: float = 0.0
    """Requests per minute for everything else: rechecks, extra runs."""
    allowed: float | None = None
    """Requests per minute; None: no budget is declared."""
    late: tuple[PlannedDelay, ...] = ()
    """Sorted by delay, the longest first."""

    @property
    def share(self) -> float | None:
        """Returns the share of the budget that is needed."""
        return None if self.allowed is None else (self.needed + self.besides) / self.allowed


def planned(
    platform: str, needs: Sequence[Need], budget: Budget | None, besides: float = 0.0, aim: float = 1.0
) -> PlatformPlan:
    """Returns the plan of one platform for the deployment's budget; `aim` is the share of it that may be used."""
    plan = PlatformPlan(platform, len(needs), fsum(need.per_minute for need in needs), besides)
    if budget is None:
        return plan
    allowed = budget.limit * 60 / budget.window_seconds
    return plan.replace(allowed=allowed, late=tuple(_late(needs, allowed * aim - besides)))


def _late(needs: Iterable[Need], left: float) -> list[PlannedDelay]:
    late: list[PlannedDelay] = []
    for _, group in groupby(sorted(needs, key=_precedence), key=_precedence):
        same_priority = list(group)
        demand = fsum(need.per_minute for need in same_priority)
        if demand > left:
            late += [PlannedDelay(need, _minutes_late(need, demand, left)) for need in same_priority]
        left = max(0.0, left - demand)
    return sorted(
        late,
        key=lambda late_source: (
            late_source.minutes is not None,
            -(late_source.minutes or 0),
            late_source.need.source_id,
        ),
    )


def _precedence(need: Need) -> int:
    return precedence(need.priority)


def _minutes_late(need: Need, demand: float, left: float) -> int | None:
    if left <= 0:
        return None
    return max(1, round(need.interval_minutes * (demand / left - 1)))
