"""/metrics: the figures of the deployment, for Prometheus. By platform and kind, never by source: they stay few."""

from __future__ import annotations

import platform as machine
import resource
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from catchment import __version__
from catchment.api.door import Door, TheDoor
from catchment.api.standing import job_rows
from catchment.health.exposition import CONTENT_TYPE, Family, Sample, Sort, exposed
from catchment.health.monitors import HITS_LOOKED_AT
from catchment.health.totals import Key
from catchment.pace import UNKNOWN_KIND_MINUTES
from catchment.shop import Shop

router = APIRouter(tags=["health"])

EXAMPLE = "# HELP catchment_gaps_open Gaps that are open.\n# TYPE catchment_gaps_open gauge\ncatchment_gaps_open 0\n"


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "The text form of Prometheus.", "content": {"text/plain": {"example": EXAMPLE}}}},
)
def show_metrics(door: TheDoor) -> Response:
    """The figures of the deployment, in the text form of Prometheus; counters grow from the start of this process.

    Needs a key like everything else (`authorization` in a scrape configuration), unless CATCHMENT_OPEN_METRICS is set.
    """
    return Response(exposed(families(door)), media_type=CONTENT_TYPE)


def families(door: Door) -> Iterator[Family]:
    shop, now = door.shop, door.shop.clock.now()
    yield from _about_process(shop)
    yield from _about_sources(shop, now)
    yield from _counted(door.totals.counted(now))
    yield from _about_budgets(shop)
    yield from _about_hot(shop, now)
    yield from _about_jobs(door, now)


def _about_process(shop: Shop) -> Iterator[Family]:
    database = "postgresql" if shop.store.database.is_postgres else "sqlite"
    labels = {"version": __version__, "python": machine.python_version(), "database": database}
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield _gauge("catchment_info", "Which catchment this is.", Sample(1, labels))
    yield Family(
        "process_cpu_seconds_total",
        Sort.COUNTER,
        "CPU time of the serving process.",
        [Sample(used.ru_utime + used.ru_stime)],
    )
    yield _gauge("process_resident_memory_bytes", "Memory of the serving process.", *_resident())


def _resident() -> Iterator[Sample]:
    """Only Linux tells what it is now; elsewhere it is not told."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        yield Sample(int(statm.read_text().split()[1]) * resource.getpagesize())


def _about_sources(shop: Shop, now: datetime) -> Iterator[Family]:
    store = shop.store
    waiting = store.lateness.waiting(shop.intervals(), UNKNOWN_KIND_MINUTES, now)
    yield _gauge(
        "catchment_sources",
        "Sources by state.",
        *(Sample(count, {"state": state}) for state, count in sorted(store.sources.counts().items())),
    )
    yield _gauge(
        "catchment_sources_due",
        "Sources that are due; a kind without any is not told.",
        *(Sample(one.due, {"kind": one.kind}) for one in waiting),
    )
    yield _gauge(
        "catchment_sources_late",
        "Sources that have been due for more than 15 minutes.",
        *(Sample(one.late, {"kind": one.kind}) for one in waiting),
    )
    yield _gauge(
        "catchment_sources_due_seconds",
        "For how long the source is due that has been due for longest.",
        *(Sample((now - one.since).total_seconds(), {"kind": one.kind}) for one in waiting),
    )
    troubles = store.troubles.counts(shop.settings.failures_before_probation)
    yield _gauge("catchment_sources_failing", "Active sources whose last visit failed.", Sample(troubles["failing"]))
    yield _gauge("catchment_items", "Items that are kept.", Sample(store.items.count()))
    yield _gauge("catchment_gaps_open", "Gaps that are open.", Sample(store.gaps.count_open()))
    yield _gauge(
        "catchment_alerts_open",
        "Alerts that are open, by severity.",
        *(Sample(count, {"severity": str(one)}) for one, count in store.alerts.open_by_severity().items()),
    )


def _counted(counts: Counter[Key]) -> Iterator[Family]:
    def samples(what: str, *names: str) -> Iterator[Sample]:
        for key in sorted(counts):
            if key[0] == what:
                yield Sample(counts[key], dict(zip(names, key[1:], strict=True)))

    yield Family(
        "catchment_attempts_total",
        Sort.COUNTER,
        "Requests to platforms, by what came of them: a status, or an error's code.",
        samples("attempts", "platform", "outcome"),
    )
    yield Family(
        "catchment_visits_total",
        Sort.COUNTER,
        "Visits to sources. Put off: our own budget was used up.",
        samples("visits", "platform", "kind", "outcome"),
    )
    yield Family(
        "catchment_items_total",
        Sort.COUNTER,
        "Items that visits showed, by what became of them.",
        samples("items", "platform", "kind", "deed"),
    )
    yield Family("catchment_visit_seconds", Sort.SUMMARY, "How long visits took.", _durations(counts))
    yield Family(
        "catchment_hot_reads_total",
        Sort.COUNTER,
        "Reads that the hot store could have answered, and whether it did.",
        samples("hot", "result"),
    )


def _durations(counts: Counter[Key]) -> Iterator[Sample]:
    for key in sorted(counts):
        if key[0] == "microseconds":
            labels = {"platform": key[1], "kind": key[2]}
            visits = sum(counts["visits", *key[1:], fate] for fate in ("succeeded", "failed"))
            yield Sample(counts[key] / 1_000_000, labels, "_sum")
            yield Sample(visits, labels, "_count")


def _about_budgets(shop: Shop) -> Iterator[Family]:
    budgets = sorted(shop.budgets().items())
    used = shop.monitors().budgets_used(dict(budgets))
    yield _gauge(
        "catchment_budget_requests",
        "How many requests a platform allows in each window, with the credentials that are usable now.",
        *(Sample(one.limit, {"platform": name}) for name, one in budgets),
    )
    yield _gauge(
        "catchment_budget_window_seconds",
        "How long such a window is.",
        *(Sample(float(one.window_seconds), {"platform": name}) for name, one in budgets),
    )
    yield _gauge(
        "catchment_budget_used_ratio",
        "How much of it was used in the busiest window that has ended lately.",
        *(Sample(share, {"platform": name}) for name, share in sorted(used.items())),
    )


def _about_hot(shop: Shop, now: datetime) -> Iterator[Family]:
    rate = shop.hot.hit_rate(now - HITS_LOOKED_AT)
    yield _gauge(
        "catchment_hot_hit_ratio",
        "The share of reads of the last five minutes that the hot store answered; without reads it is not told.",
        *([] if rate is None else [Sample(rate)]),
    )


def _about_jobs(door: Door, now: datetime) -> Iterator[Family]:
    rows = [row for row in job_rows(door) if row["period_seconds"] is not None]
    yield _gauge(
        "catchment_job_age_seconds",
        "How long ago a job last ended.",
        *(Sample(_age(row, now), {"job": row["name"]}) for row in rows if row["last_finished_at"]),
    )
    yield _gauge(
        "catchment_job_late",
        "Whether a job should have run long ago.",
        *(Sample(row["is_late"], {"job": row["name"]}) for row in rows),
    )
    yield _gauge(
        "catchment_job_failed",
        "Whether the last run of a job failed.",
        *(Sample(row["last_error"] is not None, {"job": row["name"]}) for row in rows),
    )


def _age(row: dict[str, Any], now: datetime) -> float:
    return (now - datetime.fromisoformat(row["last_finished_at"])).total_seconds()


def _gauge(name: str, what: str, *samples: Sample) -> Family:
    return Family(name, Sort.GAUGE, what, samples)
