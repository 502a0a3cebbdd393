"""When a place posts: heavy-tailed rates, day and week, threads, bursts, silences. Pure; whole seconds since 1970.

The distributions come from traces of real accounts, communities and search streams; tests/playground compares.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime
from math import exp
from random import Random

from catchment.model import Record

HOUR, DAY = 3600, 86_400

# Share of each local hour. An office sleeps at night, more than fifty times quieter; a worldwide crowd does not.
OFFICE_HOURS = (
    *(0.12, 0.06, 0.04, 0.03, 0.02, 0.02, 0.05, 0.2, 0.6, 1.5, 2.0, 2.1),
    *(2.2, 2.15, 2.25, 2.2, 2.1, 1.85, 1.4, 1.05, 0.85, 0.65, 0.45, 0.27),
)
CROWD_HOURS = (
    *(0.46, 0.43, 0.43, 0.46, 0.5, 0.6, 0.95, 1.3, 1.48, 1.45, 1.45, 1.4),
    *(1.32, 1.36, 1.25, 1.22, 1.3, 1.33, 1.15, 1.0, 0.9, 0.8, 0.7, 0.6),
)
OFFICE_DAYS = [1.0, 1.28, 1.3, 1.28, 1.17, 0.56, 0.41]
CROWD_DAYS = [1.02, 1.06, 1.15, 1.12, 1.06, 0.83, 0.76]

# A post is followed by the next one of its thread within about a minute; one in four of these in the same second.
FOLLOWED, FOLLOW_SECONDS, SAME_SECOND = 0.14, 25, 0.25

# A source's rate changes from month to month by a factor of 1.28 in the median, 2.0 at the 90th percentile.
DRIFT, DRIFT_DAYS = 0.36, 30

BURST_SECONDS = 90 * 60
LONGEST_HISTORY_DAYS = 500


class Pace(Record, frozen=True):
    """How often a place posts, and when in its day and week."""

    posts_a_day: float
    is_office: bool
    zone_hours: int
    window: int
    bursts_a_day: float
    silences_a_day: float


def moments(chance: Random, pace: Pace, start: int, end: int) -> list[int]:
    """The seconds at which a place posts, ascending: from early enough that its window is full at `start`, up to `end`.
    What comes before a moment does not depend on `end`."""
    days = int(min(LONGEST_HISTORY_DAYS, 7 + 3 * pace.window / pace.posts_a_day))
    first_day = (start + pace.zone_hours * HOUR) // DAY - days
    last_day = (end + pace.zone_hours * HOUR) // DAY
    found: list[int] = []
    silent_until, drift = first_day, 1.0
    for day in range(first_day, last_day + 1):
        if (day - first_day) % DRIFT_DAYS == 0:
            drift = exp(chance.gauss(0, DRIFT))
        if day < silent_until:
            continue
        if chance.random() < pace.silences_a_day:
            silent_until = day + chance.randint(2, 6)
            continue
        found += _day(chance, pace, day * DAY - pace.zone_hours * HOUR, drift)
    found.sort()
    # Older ones could only be seen if half of the window were removed at once.
    oldest = max(0, bisect_left(found, start) - int(1.5 * pace.window))
    return found[oldest : bisect_left(found, end)]


def _day(chance: Random, pace: Pace, midnight: int, drift: float) -> list[int]:
    weekday = datetime.fromtimestamp(midnight + pace.zone_hours * HOUR, UTC).weekday()
    of_day = (OFFICE_DAYS if pace.is_office else CROWD_DAYS)[weekday]
    hours = OFFICE_HOURS if pace.is_office else CROWD_HOURS
    count = _poisson(chance, pace.posts_a_day * of_day * drift * (1 - FOLLOWED))
    found: list[int] = []
    for hour in chance.choices(range(24), hours, k=count):
        found += _thread(chance, midnight + hour * HOUR + int(chance.random() * HOUR))
    if chance.random() < pace.bursts_a_day:
        found += _burst(chance, pace, midnight)
    return found


def _thread(chance: Random, at: int) -> list[int]:
    found = [at]
    while chance.random() < FOLLOWED:
        at += 0 if chance.random() < SAME_SECOND else 1 + int(chance.expovariate(1 / FOLLOW_SECONDS))
        found.append(at)
    return found


def _burst(chance: Random, pace: Pace, midnight: int) -> list[int]:
    """More within an hour and a half than the window holds: infrequent visits miss some of it."""
    begin = midnight + chance.randint(8, 20) * HOUR
    count = int(pace.window * chance.uniform(1.1, 2.5))
    return [begin + int(chance.random() * BURST_SECONDS) for _ in range(count)]


def _poisson(chance: Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(chance.gauss(mean, mean**0.5)))
    limit, product, count = exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count
