"""Monitors: pure rules over operating figures. Each opens one alert, which closes when the problem ends."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from catchment import logs
from catchment.messages import MessageParam, message
from catchment.model import AlertRequest, Budget, Record, Severity
from catchment.policy import spending
from catchment.policy.spending import Caps
from catchment.settings import Settings
from catchment.store import Store
from catchment.store.sources.alerts import PostingRhythm, StaleSource
from catchment.store.sources.stats import DueSources, WarmUp

_MINUTE = timedelta(minutes=1)
CALLS_LOOKED_AT = 5 * _MINUTE
"""Calls are counted when their results are written: the minute that has just ended may be incomplete."""
HITS_LOOKED_AT = 5 * _MINUTE
VISITS_LOOKED_AT = 10 * _MINUTE
LEAST_SUCCESS = 0.9
LEAST_VISITED = 10
"""With fewer sources, a share of them says nothing."""
WARM_UP_PATIENCE = 30 * _MINUTE
GUESSES_LOOKED_AT = 60 * _MINUTE
_USUAL_PER_MINUTE = 60

CALLS, HITS, SUCCESS, STALLED, WARM_UP = " calls", "hot store hits", " visits", "collecting stalled", " warm-up"
BUDGET, REDIS, GUESSING = " budget", "redis away", "wrong keys"
BROKER, QUEUE, BEAT = "broker away", " unconsumed", "beat missing"
"""The subject suffixes of each monitor's alerts."""


# API calls


def calls_looked_at(budgets: Iterable[Budget]) -> timedelta:
    """Returns how far back calls are counted, to tell how much of these budgets is used."""
    return timedelta(seconds=max((budget.window_seconds for budget in budgets), default=0)) + CALLS_LOOKED_AT


def too_many_calls(
    calls: Mapping[str, Mapping[datetime, int]], budgets: Mapping[str, Budget], threshold: int, now: datetime
) -> list[AlertRequest]:
    """Returns alerts for platforms with too many calls for their budget; `calls` are counts by platform and minute.

    The threshold is meant for 60 a minute, and scales up where more are allowed. An hourly budget is checked by the
    hour: such a platform does not mind a busy minute.
    """
    alarms = []
    for platform, budget in budgets.items():
        most, allowed, minutes = busiest(budget, calls.get(platform, {}), now)
        if most > threshold * max(1.0, allowed / minutes / _USUAL_PER_MINUTE) * minutes:
            what = message("alert.calls", platform=platform, most=most, minutes=minutes, allowed=allowed)
            alarms.append(AlertRequest(f"platform {platform}{CALLS}", what, Severity.P2))
    return alarms


def busiest(budget: Budget, by_minute: Mapping[datetime, int], now: datetime) -> tuple[int, float, int]:
    """Returns the most calls in any recent window of a budget, how many it allows there, and the window in whole
    minutes: calls are counted by the minute."""
    minutes = max(1, math.ceil(budget.window_seconds / 60))
    ends = [at for at in by_minute if at > now - CALLS_LOOKED_AT]
    sums = [sum(count for at, count in by_minute.items() if end - minutes * _MINUTE < at <= end) for end in ends]
    return max(sums, default=0), budget.limit * minutes * 60 / budget.window_seconds, minutes


# Cache


def too_few_hits(hits: int, misses: int, threshold: float) -> list[AlertRequest]:
    """Returns an alert if the hit rate is below the threshold; none without reads: then nothing is known."""
    reads = hits + misses
    if not reads or hits / reads >= threshold:
        return []
    minutes = HITS_LOOKED_AT // _MINUTE
    what = message("alert.cache_hits", hits=hits, reads=reads, minutes=minutes, share=threshold)
    return [AlertRequest(HITS, what, Severity.P2)]


# Visits


class Success(Record, frozen=True):
    """How the last visits to one platform's sources ended. Sources are counted, not visits: a failing one is retried
    more often."""

    platform: str
    succeeded: int
    failed: int

    @property
    def sources(self) -> int:
        return self.succeeded + self.failed

    @property
    def is_telling(self) -> bool:
        return self.sources >= LEAST_VISITED

    @property
    def is_too_little(self) -> bool:
        return self.is_telling and self.succeeded < LEAST_SUCCESS * self.sources

    @property
    def subject(self) -> str:
        return f"platform {self.platform}{SUCCESS}"


def success_of(platforms: Collection[str], outcomes: Iterable[tuple[str, int, bool]]) -> list[Success]:
    """Returns successes and failures per platform, including platforms without visits. `outcomes`: platform, source,
    failed."""
    succeeded, failed = Counter(dict.fromkeys(platforms, 0)), Counter[str]()
    for platform, _, is_failed in outcomes:
        succeeded[platform] += not is_failed
        failed[platform] += is_failed
    return [Success(platform, succeeded[platform], failed[platform]) for platform in sorted(succeeded)]


def too_little_success(successes: Iterable[Success], errors: Mapping[str, Mapping[str, int]]) -> list[AlertRequest]:
    """Returns alerts for platforms that fail too often; `errors` are counts by platform and code, to name the most
    frequent."""
    alarms = []
    for success in successes:
        if success.is_too_little:
            codes = errors.get(success.platform, {})
            facts: dict[str, MessageParam] = {
                "platform": success.platform,
                "failed": success.failed,
                "sources": success.sources,
                "minutes": VISITS_LOOKED_AT // _MINUTE,
            }
            worst = max(codes, key=lambda code: codes[code], default="")
            what = message("alert.success_most", **facts, code=worst) if worst else message("alert.success", **facts)
            alarms.append(AlertRequest(success.subject, what))
    return alarms


def standing_still(
    waiting: Sequence[DueSources], stale: timedelta, now: datetime, awake_since: datetime, *, has_visited: bool
) -> list[AlertRequest]:
    """Returns an alert if something has been due for `stale` and no visit succeeded in all that time.

    Time in which no process was collecting (before `awake_since`) does not count.
    """
    since = min((due.since for due in waiting), default=now)
    if has_visited or now - max(since, awake_since) < stale:
        return []
    what = message(
        "alert.standing_still",
        minutes=stale // _MINUTE,
        due=sum(due.due for due in waiting),
        since=f"{since:%Y-%m-%d %H:%M} UTC",
    )
    return [AlertRequest(STALLED, what, Severity.P0)]


# First visits


def not_warming_up(warm_ups: Iterable[WarmUp], now: datetime) -> list[AlertRequest]:
    """Returns alerts for kinds whose first collections have stalled. Without any first collection, collecting itself is
    stalled."""
    alarms = []
    for warm_up in warm_ups:
        last = warm_up.last_first_at
        if last is not None and now - max(last, warm_up.waiting_since) > WARM_UP_PATIENCE:
            since, kind = f"{last:%Y-%m-%d %H:%M} UTC", warm_up.kind
            what = message(
                "alert.first_visits", kind=kind, visited=warm_up.visited, followed=warm_up.followed, since=since
            )
            alarms.append(AlertRequest(f"{kind}{WARM_UP}", what))
    return alarms


# Guessed keys


class WrongKeys(TypedDict):
    """The record of the last wrong API keys and sign-in links."""

    at: str
    count: int
    address: str


log = logs.logger(__name__)

_GUESSING = "guessing"
"""The setting under which the last wrong keys are recorded."""


class Monitors:
    """Runs the monitors of a deployment, with the thresholds of its settings."""

    def __init__(self, store: Store, settings: Settings, now: datetime) -> None:
        self._store, self._settings, self._now = store, settings, now

    def api_calls(self, budgets: Mapping[str, Budget]) -> None:
        """`budgets` are those of the platforms that declare one, for the whole deployment."""
        threshold = self._settings.monitor_api_threshold
        self._keep(CALLS, too_many_calls(self._calls(budgets), budgets, threshold, self._now))

    def budgets_used(self, budgets: Mapping[str, Budget]) -> dict[str, float]:
        """Returns how much of each was used lately, from 0 to 1."""
        calls, used = self._calls(budgets), {}
        for name, budget in budgets.items():
            most, allowed, _ = busiest(budget, calls.get(name, {}), self._now)
            used[name] = most / allowed
        return used

    def _calls(self, budgets: Mapping[str, Budget]) -> dict[str, Counter[datetime]]:
        """Returns calls by platform and minute, as far back as these budgets count."""
        since = self._now - calls_looked_at(budgets.values())
        calls: dict[str, Counter[datetime]] = defaultdict(Counter)
        for platform, _, minute, count in self._store.metrics.calls(since, self._now):
            calls[platform][minute] += count
        return calls

    def cache_health(self, hits: int, misses: int) -> None:
        """Check the hit rate of cacheable reads."""
        self._keep(HITS, too_few_hits(hits, misses, self._settings.monitor_hit_threshold))

    def redis(self, trouble: str | None) -> None:
        """`trouble`: why Redis is unavailable, or None."""
        alarms = [] if trouble is None else [AlertRequest(REDIS, message("alert.redis", why=trouble), Severity.P2)]
        self._keep(REDIS, alarms)

    def broker(self, trouble: str | None) -> None:
        """`trouble`: why the message broker is unavailable, or None."""
        alarms = [] if trouble is None else [AlertRequest(BROKER, message("alert.broker", why=trouble), Severity.P1)]
        self._keep(BROKER, alarms)

    def queues(self, unconsumed: Mapping[str, Sequence[str]]) -> None:
        """`unconsumed`: queues of the distributed engine without a worker, with the jobs that wait there."""
        alarms = [
            AlertRequest(
                f"queue {queue}{QUEUE}", message("alert.queue", queue=queue, jobs=", ".join(jobs)), Severity.P1
            )
            for queue, jobs in unconsumed.items()
        ]
        self._keep(QUEUE, alarms)

    def beat(self, *, is_missing: bool) -> None:
        """`is_missing`: no beat has led for a while."""
        self._keep(BEAT, [AlertRequest(BEAT, message("alert.beat"), Severity.P0)] if is_missing else [])

    def success(self, explained: Callable[[], Collection[int]]) -> None:
        """`explained` are sources whose failures the outage monitor already reports."""
        since = self._now - VISITS_LOOKED_AT
        metrics = self._store.metrics
        followed, outcomes = self._store.sources.platforms(), metrics.last_outcomes(since, self._now)
        successes = success_of(followed, outcomes)
        # A platform whose sources are all visited at once has no visits for the rest of the hour: its alert stays open.
        undecided = [
            success.subject for success in successes if success.platform in followed and not success.is_telling
        ]
        if any(success.is_too_little for success in successes):
            ids = explained()
            successes = success_of(
                followed, [outcome for outcome in outcomes if not (outcome[2] and outcome[1] in ids)]
            )
        errors: dict[str, Counter[str]] = defaultdict(Counter)
        for platform, code, count in metrics.errors(since, self._now):
            errors[platform][code] += count
        self._keep(SUCCESS, too_little_success(successes, errors), undecided)

    def warm_up(self) -> None:
        warm_ups = self._store.lateness_stats.warm_ups()
        for warm_up in warm_ups:
            log.info("first collections", kind=warm_up.kind, visited=warm_up.visited, followed=warm_up.followed)
        self._keep(WARM_UP, not_warming_up(warm_ups, self._now))

    def budgets(self, alarms: Sequence[AlertRequest]) -> None:
        """Keep exactly these alerts about budget plans open."""
        self._keep(BUDGET, alarms)

    def spending(self, caps: Mapping[str, Caps]) -> None:
        """Alert while a spending cap is nearly used up, or allows no further call."""
        day = spending.day_of(self._now)
        totals = self._store.spending.totals(sorted(caps), day) if caps else {}
        self._keep(spending.ENDING, spending.alarms(totals, caps, day))

    def note_guessing(self, address: str, count: int) -> None:
        """Record this many attempts with wrong keys or links from an address."""
        record = {"at": self._now.isoformat(), "address": address, "count": count}
        self._store.settings.put(_GUESSING, record, self._now)
        self.guessing()

    def guessing(self) -> None:
        """Open an alert while wrong API keys or sign-in links have been tried recently."""
        noted: WrongKeys | None = self._store.settings.get(_GUESSING)
        alarms = []
        if noted is not None and self._now - datetime.fromisoformat(noted["at"]) < GUESSES_LOOKED_AT:
            alarms = [AlertRequest(GUESSING, message("alert.guessing", count=noted["count"], address=noted["address"]))]
        self._keep(GUESSING, alarms)

    def _keep(self, ending: str, alarms: Sequence[AlertRequest], undecided: Sequence[str] = ()) -> None:
        opened, closed = self._store.alerts.keep_open(ending, alarms, self._now, undecided=undecided)
        if opened or closed:
            log.warning("alerts", about=ending.strip(), opened=opened, closed=closed)


_LEAST_OF_A_PLATFORM = 3


def canaries_among(
    followed: Sequence[PostingRhythm], platforms: Collection[str], named: Mapping[str, int]
) -> dict[str, PostingRhythm]:
    """Returns the canary of these platforms and of those with a configured one: that source, else the busiest."""
    canaries: dict[str, PostingRhythm] = {}
    for rhythm in sorted(followed, key=lambda rhythm: (rhythm.patience, rhythm.source_id)):
        if rhythm.platform in platforms:
            canaries.setdefault(rhythm.platform, rhythm)
    return canaries | {rhythm.platform: rhythm for rhythm in followed if named.get(rhythm.platform) == rhythm.source_id}


def silence_alerts(
    late: Sequence[StaleSource], followed: Sequence[PostingRhythm], canaries: Mapping[str, PostingRhythm]
) -> list[AlertRequest]:
    """Returns the alerts about silence.

    A silent platform gets one alert, not a thousand: if all its sources with a rhythm are late, or if its canary is and
    no other source has shown anything new since it should have.
    """
    alarms: list[AlertRequest] = []
    counts = Counter(rhythm.platform for rhythm in followed)
    for platform in sorted({stale.platform for stale in late}):
        of_it = [stale for stale in late if stale.platform == platform]
        canary = canaries.get(platform)
        is_canary_late = canary is not None and any(stale.source_id == canary.source_id for stale in of_it)
        if canary is not None and is_canary_late and _has_silent_neighbours(canary, followed):
            at = f"{canary.expected_by:%Y-%m-%d %H:%M} UTC"
            what = message("alert.canary_silent", platform=platform, name=canary.name, id=canary.source_id, at=at)
            alarms.append(AlertRequest(f"platform {platform} silent", what))
        elif len(of_it) >= _LEAST_OF_A_PLATFORM and len(of_it) >= counts[platform]:
            what = message("alert.platform_silent", count=len(of_it), platform=platform)
            alarms.append(AlertRequest(f"platform {platform} silent", what))
        else:
            for stale in of_it:
                facts: dict[str, MessageParam] = {"name": stale.name, "at": f"{stale.expected_by:%Y-%m-%d %H:%M} UTC"}
                what = message("alert.source_silent", **facts)
                if canary is not None and not is_canary_late:
                    what = message("alert.source_silent_alone", **facts, platform=platform, other=canary.name)
                alarms.append(AlertRequest(f"source {stale.source_id} silent", what, source_id=stale.source_id))
    return alarms


def _has_silent_neighbours(canary: PostingRhythm, followed: Sequence[PostingRhythm]) -> bool:
    """Whether no other source on its platform has shown anything new since half of the canary's time was over."""
    others = [
        rhythm for rhythm in followed if rhythm.platform == canary.platform and rhythm.source_id != canary.source_id
    ]
    if not others or canary.newest_shown_at is None:
        return False
    since = canary.expected_by - canary.patience / 2
    return all(other.last_new_at is None or other.last_new_at < since for other in others)
