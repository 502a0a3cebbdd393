"""Collection interval of each kind: the default, and what overrides it (the database goes before the environment); the
activity tiers of communities, which set how often each is visited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from catchment.errors import InvalidInput
from catchment.model import Progress, Record, Source, View
from catchment.platforms import Platforms
from catchment.policy.schedule import kind_intervals
from catchment.policy.tiers import Tiers, tiered
from catchment.sources.add import check_pace
from catchment.sources.kinds import NameResolver
from catchment.store import Store

FROM_DATABASE, FROM_SETTINGS, FROM_DEFAULT = "database", "settings", "default"
_MOST_DIGITS = 7
"""Longer numbers are beyond every limit, and Python refuses to parse thousands of digits."""


def minutes_from(text: str, unset: str = "") -> int | None:
    """Returns the minutes that a person typed; None for `unset`, the text that means none.

    Raises InvalidInput for anything else that is not a whole number; `check_pace` decides which numbers are allowed.
    """
    if text == unset:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        helps = "enter a whole number, such as 60, or {unset}" if unset else "enter a whole number, such as 60"
        raise InvalidInput("{text!r} is not a number of minutes", helps, field="interval", text=text[:50], unset=unset)
    return int(text)


class KindIntervalView(View, frozen=True):
    """How often sources of a kind are visited."""

    kind: str
    interval_minutes: int
    origin: str
    """Where it comes from: database, settings or default."""
    default_minutes: int | None
    """None: a kind that this installation does not know."""
    settings_minutes: int | None
    """What FETCH_INTERVAL_<KIND> says."""


def interval_views(
    platforms: Platforms, stored: Mapping[str, int], settings: Mapping[str, int]
) -> list[KindIntervalView]:
    """Returns the interval of each kind. `stored` are those in the database, `settings` those of
    FETCH_INTERVAL_<KIND>."""
    declared = kind_intervals(platforms.kinds())
    minutes = kind_intervals(platforms.kinds(), stored, settings)

    def origin(kind: str) -> str:
        return FROM_DATABASE if kind in stored else FROM_SETTINGS if kind in settings else FROM_DEFAULT

    return [
        KindIntervalView(kind, minutes[kind], origin(kind), declared.get(kind), settings.get(kind))
        for kind in sorted(minutes)
    ]


def set_interval(store: Store, names: NameResolver, kind: str, minutes: int | None, now: datetime) -> None:
    """Stores the interval of a kind in the database; None removes it. It applies from the next tick on."""
    names.source_kind(kind)
    check_pace(minutes)
    if minutes is None:
        store.settings.remove_interval(kind)
    else:
        store.settings.put_interval(kind, minutes, now)


_BATCH = 500


class TierMove(Record, frozen=True):
    """A community whose visits suggest another tier, or another interval, than it has."""

    source: Source
    was: Progress
    would_be: Progress


class Tally(Record, frozen=True):
    """How many communities are in each tier, how many would be, and which of them would change."""

    are: Counter[str | None]
    would_be: Counter[str | None]
    changes: tuple[TierMove, ...] = ()


def tier_tally(store: Store, rules: Tiers) -> Tally:
    """Examines every visited community, and changes nothing."""
    are: Counter[str | None] = Counter()
    would_be: Counter[str | None] = Counter()
    changes: list[TierMove] = []
    for page in _pages(store):
        page_changes = _changes(page, rules)
        are.update(progress.tier for _, progress in page)
        would_be.update(progress.tier for _, progress in page)
        would_be.subtract(change.was.tier for change in page_changes)
        would_be.update(change.would_be.tier for change in page_changes)
        changes += page_changes
    return Tally(are, would_be, tuple(changes))


def assign_tiers(store: Store, rules: Tiers, is_stopped: Callable[[], bool] = lambda: False) -> list[TierMove]:
    """Assigns every community the tier its visits suggest; returns the changes."""
    done: list[TierMove] = []
    for page in _pages(store):
        if is_stopped():
            break
        changes = _changes(page, rules)
        assigned = store.tier_stats.assign([(change.source, change.would_be) for change in changes]) if changes else []
        done += [change for change in changes if change.source.id in assigned]
    return done


def _pages(store: Store) -> Iterator[list[tuple[Source, Progress]]]:
    after = None
    while page := store.tier_stats.by_average(_BATCH, after):
        yield page
        source, progress = page[-1]
        after = (progress.average_valid or 0.0, source.id)


def _changes(page: Sequence[tuple[Source, Progress]], rules: Tiers) -> list[TierMove]:
    beside = ((source, progress, tiered(progress, rules)) for source, progress in page)
    return [TierMove(*row) for row in beside if row[1] != row[2]]


class TierView(View, frozen=True):
    """A tier, and how many communities are and would be in it."""

    name: str
    least_valid: float
    hours: float
    sort: str
    time_filter: str
    limit: int
    sources: int
    would_be: int


class TierChangeView(View, frozen=True):
    """A community whose visits suggest another tier, or another interval, than it has."""

    id: int
    name: str
    average_valid: float
    tier: str | None
    tier_minutes: int | None
    would_be: str | None
    would_be_minutes: int | None
    why: str | None


def tier_views(rules: Tiers, counts: Tally) -> list[TierView]:
    return [
        TierView(
            tier.name,
            tier.least_valid,
            tier.hours,
            tier.sort,
            tier.time_filter,
            tier.limit,
            counts.are[tier.name],
            counts.would_be[tier.name],
        )
        for tier in rules.tiers
    ]


def tier_change_view(change: TierMove) -> TierChangeView:
    return TierChangeView(
        change.source.id,
        change.source.name,
        round(change.was.average_valid or 0.0, 2),
        change.was.tier,
        change.was.tier_minutes,
        change.would_be.tier,
        change.would_be.tier_minutes,
        change.would_be.tier_reason,
    )
