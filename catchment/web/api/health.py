"""/health for everybody, and /metrics for Prometheus: by platform and kind, never by source, so that they stay few."""

from __future__ import annotations

import platform as machine
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, ProcessCollector, generate_latest

from catchment import __version__
from catchment.app import App
from catchment.errors import StoreError
from catchment.health.metrics import Key
from catchment.health.monitors import HITS_LOOKED_AT
from catchment.model import as_dict
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES
from catchment.web.api.schemas.runs import Health
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.middleware import address_of, key_in

_NOT_WELL = (
    "Not well: the database is away, the scheduler is stuck, or nothing has been collected for longer than "
    "`MONITOR_CRAWL_STALE_MINUTES` although it was due."
)
router = APIRouter(tags=["health"])


@router.head("/health", include_in_schema=False)
@router.get(
    "/health",
    response_model=Health,
    response_model_exclude_unset=True,
    responses={503: {"model": Health, "description": _NOT_WELL}},
)
def show_health(request: Request, response: Response, context: WebContextDep) -> dict[str, object]:
    """Answers {"ok"} to anyone; with a key also the database, the jobs with their times, whether collecting succeeds,
    and the last runs."""
    health = context.status().health()
    if not health.ok:
        response.status_code = 503
    if not _has_key(request, context):
        return {"ok": health.ok}
    return {name: value for name, value in as_dict(health).items() if value is not None}


def _has_key(request: Request, context: WebContext) -> bool:
    try:
        key = key_in(request.headers)
        return bool(key) and context.guard.check_key(key, address_of(request.scope)).is_valid
    except StoreError:
        # Keys cannot be checked while the database is unavailable; that there is a problem is public.
        return False


metrics_router = APIRouter(tags=["health"])

EXAMPLE = "# HELP catchment_gaps_open Open gaps.\n# TYPE catchment_gaps_open gauge\ncatchment_gaps_open 0.0\n"


@metrics_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "The text form of Prometheus.", "content": {"text/plain": {"example": EXAMPLE}}}},
)
def show_metrics(context: WebContextDep) -> Response:
    """The figures of the deployment, in the text form of Prometheus; counters grow from the start of this process.

    Needs a key like everything else (`authorization` in a scrape configuration), unless CATCHMENT_OPEN_METRICS is set.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Deployment(context))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


class _Deployment:
    """Collects the metrics when Prometheus asks for them. One without a value is left out: unknown is not zero."""

    def __init__(self, context: WebContext) -> None:
        self._context = context

    def collect(self) -> list[Metric]:
        app, now = self._context.app, self._context.app.clock.now()
        metrics = (
            *_about_sources(app, now),
            *_counted(self._context.totals.counted(now)),
            *_about_budgets(app),
            *_about_jobs(self._context, now),
        )
        return [metric for metric in metrics if metric.samples]


Samples = Iterable[tuple[Mapping[str, str], float]]


def _gauge(name: str, what: str, samples: Samples | float) -> Metric:
    return _metric(name, what, "gauge", [({}, samples)] if isinstance(samples, float | int) else samples)


def _metric(name: str, what: str, kind: str, samples: Samples) -> Metric:
    metric = Metric(name, what, kind)
    for labels, value in samples:
        metric.add_sample(f"{name}_total" if kind == "counter" else name, dict(labels), value)
    return metric


def _about_sources(app: App, now: datetime) -> Iterator[Metric]:
    store = app.store
    database = "postgresql" if store.database.is_postgres else "sqlite"
    about = {"version": __version__, "python": machine.python_version(), "database": database}
    yield _gauge("catchment_info", "Version of catchment, Python and the database.", [(about, 1)])
    yield _gauge(
        "catchment_sources",
        "Sources by state.",
        [({"state": state}, count) for state, count in sorted(store.sources.counts().items())],
    )
    waiting = store.lateness_stats.waiting(app.intervals(), UNKNOWN_KIND_MINUTES, now)
    yield _gauge("catchment_sources_due", "Sources that are due.", [({"kind": row.kind}, row.due) for row in waiting])
    yield _gauge(
        "catchment_sources_late",
        "Sources that have been due for more than 15 minutes.",
        [({"kind": row.kind}, row.late) for row in waiting],
    )
    yield _gauge(
        "catchment_sources_due_seconds",
        "How long the source that has waited longest has been due.",
        [({"kind": row.kind}, (now - row.since).total_seconds()) for row in waiting],
    )
    failing = store.failure_stats.counts(app.settings.failures_before_probation).failing
    yield _gauge("catchment_sources_failing", "Active sources whose last collection failed.", failing)
    yield _gauge("catchment_items", "Stored items.", store.items.count())
    yield _gauge("catchment_gaps_open", "Open gaps.", store.gaps.count_open())
    yield _gauge(
        "catchment_alerts_open",
        "Open alerts by severity.",
        [({"severity": str(severity)}, count) for severity, count in store.alerts.open_by_severity().items()],
    )
    rate = app.cache.hit_rate(now - HITS_LOOKED_AT)
    yield _gauge(
        "catchment_hot_hit_ratio",
        "Share of the reads of the last five minutes that the cache answered.",
        [] if rate is None else rate,
    )


def _counted(counts: Counter[Key]) -> Iterator[Metric]:
    def counter(name: str, what: str, first: str, *labels: str) -> Metric:
        keys = sorted(key for key in counts if key[0] == first)
        samples = [(dict(zip(labels, key[1:], strict=True)), counts[key]) for key in keys]
        return _metric(name, what, "counter", samples)

    yield counter(
        "catchment_attempts",
        "Requests to platforms, by HTTP status or error code.",
        *("attempts", "platform", "outcome"),
    )
    yield counter(
        "catchment_visits",
        "Collections of sources. Deferred: our own limits allowed no request yet.",
        *("visits", "platform", "kind", "outcome"),
    )
    yield counter(
        "catchment_items",
        "Items shown by collections: new, updated, duplicate or invalid.",
        *("items", "platform", "kind", "deed"),
    )
    yield counter("catchment_hot_reads", "Reads that the cache could have answered: hit or miss.", *("hot", "result"))
    seconds = Metric("catchment_visit_seconds", "How long collections took.", "summary")
    for key in sorted(key for key in counts if key[0] == "microseconds"):
        labels = {"platform": key[1], "kind": key[2]}
        visits = sum(counts["visits", *key[1:], outcome] for outcome in ("succeeded", "failed"))
        seconds.add_sample("catchment_visit_seconds_sum", labels, counts[key] / 1_000_000)
        seconds.add_sample("catchment_visit_seconds_count", labels, visits)
    yield seconds


def _about_budgets(app: App) -> Iterator[Metric]:
    budgets = sorted(app.budgets().items())
    used = app.monitors().budgets_used(dict(budgets))
    yield _gauge(
        "catchment_budget_requests",
        "Requests that a platform allows in each window, with the credentials that are usable now.",
        [({"platform": name}, budget.limit) for name, budget in budgets],
    )
    yield _gauge(
        "catchment_budget_window_seconds",
        "Length of that window.",
        [({"platform": name}, float(budget.window_seconds)) for name, budget in budgets],
    )
    yield _gauge(
        "catchment_budget_used_ratio",
        "Share of the budget used in the busiest recent window.",
        [({"platform": name}, share) for name, share in sorted(used.items())],
    )


def _about_jobs(context: WebContext, now: datetime) -> Iterator[Metric]:
    jobs = [job for job in context.status().jobs if job.period_seconds is not None]
    yield _gauge(
        "catchment_job_age_seconds",
        "Time since a job last ended.",
        [({"job": job.name}, (now - job.last_finished_at).total_seconds()) for job in jobs if job.last_finished_at],
    )
    yield _gauge(
        "catchment_job_late",
        "Whether a job is overdue.",
        [({"job": job.name}, job.is_late) for job in jobs],
    )
    yield _gauge(
        "catchment_job_failed",
        "Whether the last run of a job failed.",
        [({"job": job.name}, job.last_error is not None) for job in jobs],
    )
