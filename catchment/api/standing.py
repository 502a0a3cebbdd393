"""How the deployment stands: what /health, the collector's status and the start page tell, gathered once for all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from catchment import __version__
from catchment.api.door import Door
from catchment.api.pulse import seen_in
from catchment.collect.closings import Closings
from catchment.collect.lateness import Around
from catchment.collect.planning import taken_of_late
from catchment.errors import StoreError
from catchment.hot import keeps_hot
from catchment.jobs import JOBS
from catchment.pace import UNKNOWN_KIND_MINUTES
from catchment.shop import Shop
from catchment.store.leases import living
from catchment.store.metrics import Span

# On the wall: a scheduler that does nothing for so long is stuck. Work that takes its time is under way, not late.
_PATIENCE_SECONDS = 120.0
_TICKS_OF_PATIENCE = 10
# On the start page: more than a person will read, enough to tell which alerts are about which failing sources.
_MOST_TROUBLES = 50
_MOST_RECOVERED = 4
_FEW = 6
HOURS = 48
"""So many are drawn."""
_HOUR = timedelta(hours=1)
MOST_WAITING = 200
"""So many sources that wait are counted; more are many."""
# What processes that visit sources say they do.
_COLLECTORS = ("serve", "collect", "worker", "demo")


def health(door: Door) -> dict[str, Any]:
    """Never raises for a database that is away: that is what is asked for."""
    shop = door.shop
    database = {"ok": True, "kind": "postgresql" if shop.store.database.is_postgres else "sqlite"}
    try:
        runs = shop.store.runs.page(5)
        jobs = job_rows(door)
    except StoreError:
        return {"ok": False, "version": __version__, "database": database | {"ok": False}}
    is_punctual = not door.collects or not any(job["is_late"] for job in jobs)
    return {
        "ok": is_punctual,
        "version": __version__,
        "database": database,
        "scheduler": {"ok": is_punctual, "is_collecting": door.collects, "jobs": jobs},
        "last_runs": runs,
    }


def job_rows(door: Door) -> list[dict[str, Any]]:
    """Every job of this program, with what the database knows of it."""
    shop = door.shop
    known = {row["name"]: row for row in shop.store.jobs.all()}
    under_way = {run["job"] for run in shop.store.runs.page(20) if run["finished_at"] is None}
    rows = []
    for job in JOBS:
        period = job.period(shop.settings)
        row = known.get(job.name, _NEVER)
        is_waiting = period is not None and job.name not in under_way
        rows.append(
            {
                **row,
                "name": job.name,
                "why": job.why,
                "period_seconds": period.total_seconds() if period else None,
                "next_run_at": row["next_run_at"] if period else None,
                "is_late": is_waiting and _is_late(shop, row["next_run_at"], period or timedelta(), door.opened_at),
            }
        )
    return rows


_NEVER = {"next_run_at": None, "last_started_at": None, "last_finished_at": None, "last_error": None, "run_count": 0}


def _is_late(shop: Shop, next_run_at: str | None, period: timedelta, opened_at: datetime) -> bool:
    # Before the door was opened nobody may have been there to run it.
    due = max(datetime.fromisoformat(next_run_at), opened_at) if next_run_at else opened_at
    late = shop.clock.now() - due
    return late > period and shop.clock.wall_seconds(late.total_seconds()) > _PATIENCE_SECONDS


def patience(shop: Shop) -> timedelta:
    """So long after its time a source is not called late: its turn comes with one of the next ticks."""
    return timedelta(seconds=_TICKS_OF_PATIENCE * shop.settings.tick_seconds)


def overdue(shop: Shop, limit: int) -> list[int]:
    """The sources that should have been visited a while ago, and were not."""
    at = shop.clock.now() - patience(shop)
    ids = shop.store.sources.overdue(shop.intervals(), UNKNOWN_KIND_MINUTES, at, limit)
    # What is new gets as much time for its first visit.
    followed = shop.store.sources.these(ids)
    return [source.id for source, progress in followed if progress.last_polled_at or source.created_at < at]


def around(door: Door) -> Around:
    """What may keep sources waiting at this moment."""
    shop = door.shop
    return Around(
        now=shop.clock.now(),
        patience=patience(shop),
        is_collecting=door.collects or _is_collected_elsewhere(shop),
        closed=Closings(shop.store.budgets).until((one.NAME for one in shop.platforms), shop.clock.now()),
        waiting_count=len(overdue(shop, MOST_WAITING)),
    )


def _is_collected_elsewhere(shop: Shop) -> bool:
    present = living(shop.store.database, shop.store.home, shop.clock.now())
    return any(one["work"].startswith(_COLLECTORS) for one in present)


def collector_stats(shop: Shop) -> dict[str, int]:
    counts = shop.store.sources.counts()
    day = shop.store.runs.last_day(shop.clock.now())
    troubles = shop.store.troubles.counts(shop.settings.failures_before_probation)
    active, paused, retired = (counts.get(state, 0) for state in ("active", "paused", "retired"))
    return {
        "total_sources": active + paused + retired,
        "active_sources": active,
        "paused_sources": paused,
        "paused_by_error": troubles["probation"] + retired,
        "fetches_24h": day["fetches"],
        "errors_24h": day["errors"],
        "raw_items_24h": day["items"],
        "items_24h": day["items"],
    }


def overview(door: Door) -> dict[str, Any]:
    """What the start page shows. Its cost does not grow with what is kept: every part of it is bounded."""
    shop, now = door.shop, door.shop.clock.now()
    counts = shop.store.sources.counts()
    troubles = shop.store.troubles
    hours = shop.measuring.told(Span.HOUR, HOURS, now)
    late = overdue(shop, MOST_WAITING)
    return {
        "is_collecting": door.collects,
        "is_collected": door.collects or _is_collected_elsewhere(shop),
        "sources": {state: counts.get(state, 0) for state in ("active", "paused", "retired")},
        "failing_count": troubles.counts(shop.settings.failures_before_probation)["failing"],
        "failing": troubles.failing(_MOST_TROUBLES),
        "late_count": len(late),
        "late": shop.store.sources.names(late[:_FEW]),
        "item_count": shop.store.items.count(),
        "day": shop.store.runs.last_day(now),
        "items": with_source_names(shop, shop.store.items.newest(12)),
        "alerts": with_source_names(shop, shop.store.alerts.open(_MOST_TROUBLES)),
        "recovered": with_source_names(shop, _closed_lately(shop)),
        "gap_count": shop.store.gaps.count_open(),
        "gaps": shop.store.gaps.by_source(_MOST_TROUBLES),
        "jobs": job_rows(door),
        "hours": hours,
        "delays": shop.store.rhythm.delays([datetime.fromisoformat(one["starts_at"]) for one in hours], _HOUR),
        "budgets": budget_rows(shop),
        "hot": hot_figures(shop),
        "live": seen_in(shop),
    }


def budget_rows(shop: Shop) -> list[dict[str, Any]]:
    """The platforms that are followed and declare how often they may be asked: how much of that is used at this moment
    and was used in a day, and what will be needed of it."""
    now, followed = shop.clock.now(), shop.store.sources.platforms()
    budgets = {name: one for name, one in shop.budgets().items() if name in followed}
    if not budgets:
        return []
    used, levels = shop.monitors().budgets_used(budgets), shop.levels(budgets)
    plans = {one.platform: one for one in shop.plans(taken_of_late(shop.store, now))}
    day = shop.store.metrics.calls_since(now - timedelta(days=1))
    return [
        {
            "platform": name,
            "limit": one.limit,
            "window_seconds": one.window_seconds,
            "is_per_credential": one.is_per_credential,
            "used": used[name],
            "levels": levels[name],
            "day_used": day.get(name, 0),
            "plan": plans[name],
        }
        for name, one in sorted(budgets.items())
        # The last source of one may have been paused since we looked.
        if name in plans
    ]


def up_to_now(shop: Shop, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs, and of those under way what they have come to so far."""
    so_far = shop.store.runs.so_far([one["id"] for one in runs if one["finished_at"] is None])
    return [one | so_far.get(one["id"], {}) for one in runs]


def hot_figures(shop: Shop) -> dict[str, Any] | None:
    """How often what was asked for lay ready; None: nothing that is followed is kept so."""
    followed = shop.store.sources.platforms()
    if not any(keeps_hot(one) for one in shop.platforms if one.NAME in followed):
        return None
    counts = shop.hot.counts(shop.clock.now() - timedelta(days=1))
    home, entries = shop.hot.standing()
    return {"hits": counts.hits, "misses": counts.misses, "home": home, "entries": entries}


def _closed_lately(shop: Shop) -> list[dict[str, Any]]:
    """Of the alerts that were opened last, those that closed within a day."""
    day_ago = shop.clock.now() - timedelta(days=1)
    lately = shop.store.alerts.closed(_MOST_RECOVERED)
    return [one for one in lately if datetime.fromisoformat(one["closed_at"]) > day_ago]


def with_source_names(shop: Shop, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = shop.store.sources.names(row["source_id"] for row in rows)
    return [row | {"source_name": names.get(row["source_id"])} for row in rows]
