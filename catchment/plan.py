"""Whether budgets suffice: what the sources of a platform need, what it allows, and who will be late. Pure.

A source needs the requests of one visit in each of its intervals. Where all of them together need more than there is,
the higher priority has what it needs first; those among whom it runs out are all late in proportion to their interval.
Claiming follows the same order, so that what is planned here is what happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import fsum

from catchment.model import Budget, Record, precedence


class Need(Record, frozen=True):
    """What one source needs of its platform."""

    source_id: int
    name: str
    priority: str
    interval_minutes: int
    requests: float
    """For one visit, on average."""

    @property
    def per_minute(self) -> float:
        return self.requests / self.interval_minutes


class Late(Record, frozen=True):
    """A source for which the budget does not suffice."""

    need: Need
    minutes: int | None
    """So much later than it should be visited; None: never, while those of higher priority use all there is."""


class Plan(Record, frozen=True):
    """What the sources of one platform need of its budget."""

    platform: str
    source_count: int
    needed: float
    """Requests a minute, for visits at their intervals."""
    besides: float = 0.0
    """Requests a minute for everything else: second looks, extra rounds."""
    allowed: float | None = None
    """Requests a minute; None: no budget is declared."""
    late: tuple[Late, ...] = ()
    """The worst first."""

    @property
    def share(self) -> float | None:
        """Of what is allowed, how much is needed."""
        return None if self.allowed is None else (self.needed + self.besides) / self.allowed


def planned(
    platform: str, needs: Sequence[Need], budget: Budget | None, besides: float = 0.0, aim: float = 1.0
) -> Plan:
    """The plan of one platform, with the budget that holds for the whole deployment; `aim`: how much of it is used."""
    plan = Plan(platform, len(needs), fsum(one.per_minute for one in needs), besides)
    if budget is None:
        return plan
    allowed = budget.limit * 60 / budget.window_seconds
    return plan.plus(allowed=allowed, late=tuple(_late(needs, allowed * aim - besides)))


def _late(needs: Iterable[Need], left: float) -> list[Late]:
    late: list[Late] = []
    for _, group in groupby(sorted(needs, key=_precedence), key=_precedence):
        ones = list(group)
        wanted = fsum(one.per_minute for one in ones)
        if wanted > left:
            late += [Late(one, _minutes_late(one, wanted, left)) for one in ones]
        left = max(0.0, left - wanted)
    return sorted(late, key=lambda one: (one.minutes is not None, -(one.minutes or 0), one.need.source_id))


def _precedence(one: Need) -> int:
    return precedence(one.priority)


def _minutes_late(one: Need, wanted: float, left: float) -> int | None:
    if left <= 0:
        return None
    return max(1, round(one.interval_minutes * (wanted / left - 1)))
