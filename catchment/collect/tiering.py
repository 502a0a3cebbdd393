"""The tiers of all communities: as they are, as they would be by today's settings, and put in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from catchment.model import Progress, Record, Source
from catchment.store import Store
from catchment.tiers import Tiers, tiered

_BATCH = 500


class Change(Record, frozen=True):
    """A community whose visits speak for another tier, or another interval, than it has."""

    source: Source
    was: Progress
    would_be: Progress


class Tally(Record, frozen=True):
    """How many communities are in each tier, how many would be, and which of them would change."""

    are: Counter[str | None]
    would_be: Counter[str | None]
    changes: tuple[Change, ...] = ()


def tally(store: Store, rules: Tiers) -> Tally:
    """Looks at every community that was visited, and changes nothing."""
    are: Counter[str | None] = Counter()
    would_be: Counter[str | None] = Counter()
    changes: list[Change] = []
    for page in _pages(store):
        found = _changes(page, rules)
        are.update(progress.tier for _, progress in page)
        would_be.update(progress.tier for _, progress in page)
        would_be.subtract(one.was.tier for one in found)
        would_be.update(one.would_be.tier for one in found)
        changes += found
    return Tally(are, would_be, tuple(changes))


def assign_tiers(store: Store, rules: Tiers, is_stopped: Callable[[], bool] = lambda: False) -> list[Change]:
    """Put every community where its visits put it; gives what has changed."""
    done: list[Change] = []
    for page in _pages(store):
        if is_stopped():
            break
        changes = _changes(page, rules)
        assigned = store.tiering.assign([(one.source, one.would_be) for one in changes]) if changes else []
        done += [one for one in changes if one.source.id in assigned]
    return done


def _pages(store: Store) -> Iterator[list[tuple[Source, Progress]]]:
    after = None
    while page := store.tiering.by_average(_BATCH, after):
        yield page
        source, progress = page[-1]
        after = (progress.average_valid or 0.0, source.id)


def _changes(page: Sequence[tuple[Source, Progress]], rules: Tiers) -> list[Change]:
    beside = ((source, progress, tiered(progress, rules)) for source, progress in page)
    return [Change(*one) for one in beside if one[1] != one[2]]


def shown_tiers(rules: Tiers, counts: Tally) -> list[dict[str, Any]]:
    """The tiers as the outside sees them, with how many communities are and would be in each."""
    return [
        {
            "name": tier.name,
            "least_valid": tier.least_valid,
            "hours": tier.hours,
            "sort": tier.sort,
            "time_filter": tier.time_filter,
            "limit": tier.limit,
            "sources": counts.are[tier.name],
            "would_be": counts.would_be[tier.name],
        }
        for tier in rules.tiers
    ]


def shown_change(one: Change) -> dict[str, Any]:
    return {
        "id": one.source.id,
        "name": one.source.name,
        "average_valid": round(one.was.average_valid or 0.0, 2),
        "tier": one.was.tier,
        "tier_minutes": one.was.tier_minutes,
        "would_be": one.would_be.tier,
        "would_be_minutes": one.would_be.tier_minutes,
        "why": one.would_be.tier_reason,
    }
