"""Outage monitor: checks whether collection succeeds, and keeps the alerts about outages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from catchment import logs
from catchment.clock import micros, moment
from catchment.health.monitors import VISITS_LOOKED_AT, standing_still, success_of
from catchment.model import Record
from catchment.platforms import Platforms
from catchment.policy.outages import (
    OFFLINE,
    SITE,
    STALLED,
    UNREACHABLE,
    CommonCause,
    FailedVisit,
    OutageReport,
    OutageRules,
    SourceStanding,
    causes_of,
    is_local,
    judge_outages,
    outages,
    site_of,
    waiting_for_retry,
)
from catchment.store import Store
from catchment.store.sources.stats import DueSources, FailingSource, StandingRow

log = logs.logger(__name__)

_NAME = "monitor.collecting"
JOB, PERIOD = "monitor-crawler-health", timedelta(minutes=5)
_LEAST_BREAK = timedelta(minutes=15)


class MonitorState(Record, frozen=True):
    """What the monitor found at its last run; shared by all processes of a deployment."""

    looked_at: datetime
    awake_since: datetime
    """Since when the monitor runs without a break: before that, the machine may have slept, or no process collected."""
    is_silent: bool = False
    """Nothing had succeeded for longer than the limit."""
    is_offline: bool = False


def watched(store: Store) -> MonitorState | None:
    kept: Any | None = store.settings.get(_NAME)
    looked_at = store.jobs.last_started_at(JOB)
    if kept is None or looked_at is None:
        return None
    return MonitorState(looked_at, moment(kept["awake_since"]), kept["is_silent"], kept["is_offline"])


def longest_break(period: timedelta) -> timedelta:
    """A monitor that runs again after a longer break was not running meanwhile."""
    return max(_LEAST_BREAK, 3 * period)


def is_succeeding(store: Store, period: timedelta, now: datetime) -> bool:
    """False if the monitor found that nothing succeeds and nothing has succeeded since. True where no monitor runs."""
    state = watched(store)
    if state is None or not state.is_silent or now - state.looked_at > longest_break(period):
        return True
    return _is_online_since(store, state.looked_at) if state.is_offline else store.metrics.has_visited(state.looked_at)


def _is_online_since(store: Store, since: datetime) -> bool:
    """Whether a visit of a source outside our own network has succeeded since."""
    return not all(is_local(urlsplit(target).hostname or "") for target in store.metrics.visited_targets(since))


def causes_among(store: Store, platforms: Platforms, failing: Sequence[FailingSource]) -> list[CommonCause]:
    """Returns the common causes of several of these failures at this moment. `failing` is as the store returns it.

    Reads the failing sources only, so its cost does not grow with the number of sources.
    """
    troubles = [
        FailedVisit(
            source.id,
            site_of(source, platforms.of_one_site),
            source.last_error_code,
            source.due_reason,
            source.last_polled_at,
        )
        for source in failing
        if source.last_error_code in UNREACHABLE and source.last_polled_at
    ]
    return causes_of(troubles, lambda since: _is_online_since(store, since))


class CollectingMonitor:
    """Keeps the outage alerts. `minutes` gives the interval of a kind, `period` is how often the monitor runs."""

    def __init__(
        self,
        store: Store,
        platforms: Platforms,
        minutes: Callable[[str], int],
        rules: OutageRules,
        period: timedelta,
        now: datetime,
    ) -> None:
        self._store, self._platforms, self._minutes, self._rules = store, platforms, minutes, rules
        self._period, self._now = period, now

    def watch(self, waiting: Callable[[], list[DueSources]]) -> None:
        """Judges the current state and opens and closes alerts to match. `waiting` returns the due sources by kind."""
        before = watched(self._store)
        awake_since = self._awake_since(before)
        report = self.report(awake_since)
        has_visited = self._store.metrics.has_visited(self._now - self._rules.limit)
        still = standing_still(waiting(), self._rules.limit, self._now, awake_since, has_visited=has_visited)
        is_offline = any(alarm.subject == OFFLINE for alarm in report.alarms)
        # Offline, no due source can be visited: that is one cause, not two.
        stalled = () if is_offline else report.stalled or still
        alerts = self._store.alerts
        changes = [
            alerts.keep_open(OFFLINE, [alarm for alarm in report.alarms if alarm.subject == OFFLINE], self._now),
            alerts.keep_open(
                SITE,
                [alarm for alarm in report.alarms if alarm.subject != OFFLINE],
                self._now,
                undecided=report.undecided,
            ),
            alerts.keep_open(STALLED, stalled, self._now),
            alerts.tell_failing(report.of_sources, report.explained_subjects, self._now),
        ]
        opened, closed = (sum(counts) for counts in zip(*changes, strict=True))
        if opened or closed:
            log.warning("alerts", about="outages", opened=opened, closed=closed)
        self._keep(before, awake_since, is_silent=report.is_silent or bool(stalled), is_offline=is_offline)

    def report(self, awake_since: datetime) -> OutageReport:
        return judge_outages(self._standings(), self._rules, awake_since, self._now, self._failing_platforms())

    def explained(self) -> frozenset[int]:
        """Returns the sources that fail because of the network, their platform or their host, however briefly."""
        standings = self._standings()
        common = (source_id for outage in outages(standings) if outage.is_common for source_id in outage.ids)
        return waiting_for_retry(standings).union(common)

    def _failing_platforms(self) -> list[str]:
        outcomes = self._store.metrics.last_outcomes(self._now - VISITS_LOOKED_AT, self._now)
        return [success.platform for success in success_of((), outcomes) if success.is_too_little]

    def _standings(self) -> list[SourceStanding]:
        rows = self._store.failure_stats.standings()
        # A source whose kind has no platform cannot be visited; this is not a failure.
        return [self._standing(row) for row in rows if self._platforms.of_kind(row.kind) is not None]

    def _standing(self, row: StandingRow) -> SourceStanding:
        return SourceStanding(
            row.source_id,
            row.name,
            site_of(row, self._platforms.of_one_site),
            timedelta(minutes=row.minutes or self._minutes(row.kind)),
            row.active_since,
            row.last_success_at,
            row.last_polled_at,
            row.error_code,
            row.due_reason,
            row.next_due_at,
            row.failures_in_a_row,
        )

    def _awake_since(self, before: MonitorState | None) -> datetime:
        if before is None or not timedelta() <= self._now - before.looked_at <= longest_break(self._period):
            return self._now
        return before.awake_since

    def _keep(self, before: MonitorState | None, awake_since: datetime, *, is_silent: bool, is_offline: bool) -> None:
        # While all is well nothing is written: the job's own record has the time of its last run.
        is_same = before is not None and before.replace(looked_at=self._now) == MonitorState(
            self._now, awake_since, is_silent, is_offline
        )
        if not is_same:
            state = {"awake_since": micros(awake_since), "is_silent": is_silent, "is_offline": is_offline}
            self._store.settings.put(_NAME, state, self._now)
