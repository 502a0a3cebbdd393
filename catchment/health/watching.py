"""The monitors at work: each gathers its figures, decides, and has exactly the right alerts open."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from catchment import logs
from catchment.health import monitors
from catchment.model import Alarm, Budget
from catchment.settings import Settings
from catchment.store import Store

log = logs.logger(__name__)


class Monitors:
    """The monitors of a deployment, as the settings want them."""

    def __init__(self, store: Store, settings: Settings, now: datetime) -> None:
        self._store, self._settings, self._now = store, settings, now

    def api_calls(self, budgets: Mapping[str, Budget]) -> None:
        """`budgets` are those of the platforms that declare one, for the whole deployment."""
        threshold = self._settings.monitor_api_threshold
        alarms = monitors.too_many_calls(self._calls(budgets), budgets, threshold, self._now)
        self._keep(monitors.CALLS, alarms)

    def budgets_used(self, budgets: Mapping[str, Budget]) -> dict[str, float]:
        """How much of each was used lately, from 0 to 1."""
        calls = self._calls(budgets)
        return {name: monitors.used(one, calls.get(name, {}), self._now) for name, one in budgets.items()}

    def _calls(self, budgets: Mapping[str, Budget]) -> dict[str, Counter[datetime]]:
        """By platform and minute, as far back as these budgets count."""
        since = self._now - monitors.calls_looked_at(budgets.values())
        calls: dict[str, Counter[datetime]] = defaultdict(Counter)
        for platform, _, minute, count in self._store.metrics.calls(since, self._now):
            calls[platform][minute] += count
        return calls

    def cache_health(self, hits: int, misses: int) -> None:
        """What became of the reads that the hot store could have answered."""
        self._keep(monitors.HITS, monitors.too_few_hits(hits, misses, self._settings.monitor_hit_threshold))

    def redis(self, trouble: str | None) -> None:
        """`trouble`: why it cannot be asked, where there is one."""
        self._keep(monitors.REDIS, monitors.redis_away(trouble))

    def success(self) -> None:
        since = self._now - monitors.VISITS_LOOKED_AT
        metrics = self._store.metrics
        followed = self._store.sources.platforms()
        found = monitors.success_of(followed, metrics.visits(since, self._now))
        errors: dict[str, Counter[str]] = defaultdict(Counter)
        for platform, code, count in metrics.errors(since, self._now):
            errors[platform][code] += count
        # A platform whose sources are all visited at once is silent for the rest of the hour: its alert stays open.
        undecided = [one.subject for one in found if one.platform in followed and not one.is_telling]
        self._keep(monitors.SUCCESS, monitors.too_little_success(found, errors), undecided)

    def crawler_health(self, intervals: Mapping[str, int], otherwise: int) -> None:
        """`intervals` are minutes by kind, `otherwise` those of kinds that it does not name."""
        stale = timedelta(minutes=self._settings.monitor_stale_minutes)
        waiting = self._store.lateness.waiting(intervals, otherwise, self._now)
        has_visited = self._store.metrics.has_visited(self._now - stale)
        alarms = monitors.standing_still(waiting, stale, self._now, has_visited=has_visited)
        self._keep(monitors.STALLED, alarms)

    def warm_up(self) -> None:
        warm_ups = self._store.lateness.warm_ups()
        for one in warm_ups:
            log.info("first visits", kind=one.kind, visited=one.visited, followed=one.followed)
        self._keep(monitors.WARM_UP, monitors.not_warming_up(warm_ups, self._now))

    def budgets(self, alarms: Sequence[Alarm]) -> None:
        """What is alarming about the plans of budgets."""
        self._keep(monitors.BUDGET, alarms)

    def _keep(self, ending: str, alarms: Sequence[Alarm], undecided: Sequence[str] = ()) -> None:
        opened, closed = self._store.alerts.keep_open(ending, alarms, self._now, undecided=undecided)
        if opened or closed:
            log.warning("alerts", about=ending.strip(), opened=opened, closed=closed)
