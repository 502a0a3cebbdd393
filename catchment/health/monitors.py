"""Monitors: what is alarming about the figures of running. Pure; each opens one alert, which closes when it is over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from catchment.model import Alarm, Budget, Record, Severity
from catchment.store.lateness import Waiting, WarmUp
from catchment.store.metrics import Measure

_MINUTE = timedelta(minutes=1)
CALLS_LOOKED_AT = 5 * _MINUTE
"""Calls are counted when what they brought is written: the minute that has just ended may not be complete yet."""
HITS_LOOKED_AT = 5 * _MINUTE
VISITS_LOOKED_AT = 10 * _MINUTE
LEAST_SUCCESS = 0.9
LEAST_VISITS = 10
"""With fewer visits, a share of them says nothing."""
WARM_UP_PATIENCE = 30 * _MINUTE
_USUAL_PER_MINUTE = 60

CALLS, HITS, SUCCESS, STALLED, WARM_UP = " calls", "hot store hits", " visits", "collecting stalled", " warm-up"
BUDGET, REDIS = " budget", "redis away"
"""What the subjects of each monitor's alerts end with."""


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def calls_looked_at(budgets: Iterable[Budget]) -> timedelta:
    """How far back calls are counted, to tell how much of these budgets is used."""
    return timedelta(seconds=max((one.window_seconds for one in budgets), default=0)) + CALLS_LOOKED_AT


def too_many_calls(
    calls: Mapping[str, Mapping[datetime, int]], budgets: Mapping[str, Budget], threshold: int, now: datetime
) -> list[Alarm]:
    """Of calls by platform and minute: where more are made than is good for the platform's budget.

    The threshold is meant for 60 a minute, and grows where more are allowed. A budget for an hour is looked at hour by
    hour: a platform that counts so does not mind a busy minute.
    """
    alarms = []
    for platform, budget in budgets.items():
        minutes, allowed = _minutes(budget), _allowed(budget)
        most = busiest(calls.get(platform, {}), minutes, now)
        if most > threshold * max(1.0, allowed / minutes / _USUAL_PER_MINUTE) * minutes:
            span = "one minute" if minutes == 1 else f"{minutes} minutes"
            words = (
                f"{platform}: {most:,} calls in {span}, of {allowed:,.0f} that it allows — follow less of it, less "
                f"often, or add a credential"
            )
            alarms.append(Alarm(f"platform {platform}{CALLS}", words, Severity.P2))
    return alarms


def used(budget: Budget, by_minute: Mapping[datetime, int], now: datetime) -> float:
    """How much of a budget was used lately, from 0 to 1."""
    return busiest(by_minute, _minutes(budget), now) / _allowed(budget)


def _minutes(budget: Budget) -> int:
    """Calls are counted by the minute: its window in whole ones."""
    return max(1, math.ceil(budget.window_seconds / 60))


def _allowed(budget: Budget) -> float:
    """How many calls it allows in so many minutes."""
    return budget.limit * _minutes(budget) * 60 / budget.window_seconds


def busiest(by_minute: Mapping[datetime, int], minutes: int, now: datetime) -> int:
    """The most calls in a stretch of so many minutes that has ended lately."""
    ends = [at for at in by_minute if at > now - CALLS_LOOKED_AT]
    sums = [sum(count for at, count in by_minute.items() if end - minutes * _MINUTE < at <= end) for end in ends]
    return max(sums, default=0)


# ── the hot store ─────────────────────────────────────────────────────────────────────────────────────────────────


def too_few_hits(hits: int, misses: int, threshold: float) -> list[Alarm]:
    """Where nobody read anything, nothing is known, and nothing is wrong."""
    reads = hits + misses
    if not reads or hits / reads >= threshold:
        return []
    words = (
        f"the hot store answered {hits:,} of {reads:,} reads in {HITS_LOOKED_AT // _MINUTE} minutes, less than "
        f"{threshold:.0%} — is Redis away, is HOT_CACHE_TTL_HOURS too short, or is collecting late?"
    )
    return [Alarm(HITS, words, Severity.P2)]


def redis_away(trouble: str | None) -> list[Alarm]:
    if trouble is None:
        return []
    words = f"Redis is away, the database is used: {trouble} — see that it runs, or unset CATCHMENT_REDIS_URL"
    return [Alarm(REDIS, words, Severity.P2)]


# ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Success(Record, frozen=True):
    """What the visits to one platform's sources came to."""

    platform: str
    succeeded: int
    failed: int

    @property
    def visits(self) -> int:
        return self.succeeded + self.failed

    @property
    def is_telling(self) -> bool:
        return self.visits >= LEAST_VISITS

    @property
    def is_too_little(self) -> bool:
        return self.is_telling and self.succeeded < LEAST_SUCCESS * self.visits

    @property
    def subject(self) -> str:
        return f"platform {self.platform}{SUCCESS}"


def success_of(platforms: Collection[str], measures: Iterable[Measure]) -> list[Success]:
    """Platform by platform; of those among them that were not visited, too."""
    well, failed = Counter(dict.fromkeys(platforms, 0)), Counter[str]()
    for one in measures:
        well[one.platform] += one.succeeded
        failed[one.platform] += one.failed
    return [Success(platform, well[platform], failed[platform]) for platform in sorted(well)]


def too_little_success(found: Iterable[Success], errors: Mapping[str, Mapping[str, int]]) -> list[Alarm]:
    """`errors` are counts by platform and code, to tell what came most often."""
    return [_failing(one, errors.get(one.platform, {})) for one in found if one.is_too_little]


def _failing(one: Success, errors: Mapping[str, int]) -> Alarm:
    worst = max(errors, key=lambda code: errors[code], default="")
    words = (
        f"{one.platform}: {one.failed:,} of {one.visits:,} visits in {VISITS_LOOKED_AT // _MINUTE} minutes failed"
        f"{f', most often with {worst}' if worst else ''} — `catchment status` shows which"
    )
    return Alarm(one.subject, words)


def standing_still(waiting: Sequence[Waiting], stale: timedelta, now: datetime, *, has_visited: bool) -> list[Alarm]:
    """Whether something has been due for so long, and in all that time no visit went well."""
    since = min((one.since for one in waiting), default=now)
    if has_visited or now - since < stale:
        return []
    words = (
        f"no visit went well for {stale // _MINUTE} minutes, and {sum(one.due for one in waiting):,} sources are due, "
        f"the first of them since {since:%Y-%m-%d %H:%M} UTC — is the network there, is somebody refusing us?"
    )
    return [Alarm(STALLED, words, Severity.P0)]


# ── first visits ──────────────────────────────────────────────────────────────────────────────────────────────────


def not_warming_up(warm_ups: Iterable[WarmUp], now: datetime) -> list[Alarm]:
    """Where first visits were begun, and do not go on. Where none was made, collecting itself stands still."""
    return [_stuck(one, one.last_first_at) for one in warm_ups if one.last_first_at and _is_stuck(one, now)]


def _is_stuck(one: WarmUp, now: datetime) -> bool:
    return now - max(one.last_first_at or now, one.waiting_since) > WARM_UP_PATIENCE


def _stuck(one: WarmUp, last_first_at: datetime) -> Alarm:
    words = (
        f"{one.kind}: {one.visited:,} of {one.followed:,} sources have been visited, and none for the first time since "
        f"{last_first_at:%Y-%m-%d %H:%M} UTC — is the budget used up?"
    )
    return Alarm(f"{one.kind}{WARM_UP}", words)
