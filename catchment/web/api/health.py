"""/health for everyone, and /metrics for Prometheus: labelled by platform and kind, never by source."""

from __future__ import annotations

import platform as machine
from collections import Counter
from collections.abc import Iterator, Mapping
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
from catchment.policy.spending import DOLLAR
from catchment.web.api.schemas.runs import Health
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.middleware import address_of, key_in

_NOT_WELL = (
    "Not ok: the database is unavailable, the scheduler is stuck, the distributed engine lacks its broker, beat or "
    "workers, or nothing has been collected for longer than `MONITOR_CRAWL_STALE_MINUTES` although it was due."
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
    responses={200: {"description": "The Prometheus text format.", "content": {"text/plain": {"example": EXAMPLE}}}},
)
def show_metrics(context: WebContextDep) -> Response:
    """Metrics of the deployment in the Prometheus text format. Counters start with this process.

    Needs an API key (`authorization` in a scrape configuration), unless CATCHMENT_OPEN_METRICS is set.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Deployment(context))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


class _Deployment:
    """Collects the metrics when Prometheus scrapes them. A metric without a value is omitted: unknown is not zero."""

    def __init__(self, context: WebContext) -> None:
        self._context = context

    def collect(self) -> list[Metric]:
        context, app, now = self._context, self._context.app, self._context.app.clock.now()
        counters = _counters(context.totals.counted(now))
        metrics = (
            *_source_gauges(app, now),
            *counters,
            *_budget_gauges(app),
            *_spending_gauges(app),
            *_job_gauges(context, now),
            *_engine_gauges(context),
        )
        return [metric for metric in metrics if metric.samples]


def _gauge(name: str, what: str, value: float | None = None, **by_label: Mapping[str, float]) -> Metric:
    """A metric with one value, or with a value for each value of a label."""
    metric = Metric(f"catchment_{name}", what, "gauge")
    if value is not None:
        metric.add_sample(metric.name, {}, value)
    for label, values in by_label.items():
        for text, number in sorted(values.items()):
            metric.add_sample(metric.name, {label: text}, number)
    return metric


def _source_gauges(app: App, now: datetime) -> Iterator[Metric]:
    store = app.store
    database = "postgresql" if store.database.is_postgres else "sqlite"
    info = Metric("catchment_info", "Version of catchment, Python and the database.", "gauge")
    about = {"version": __version__, "python": machine.python_version(), "database": database}
    info.add_sample(info.name, about, 1)
    yield info
    yield _gauge("sources", "Sources by state.", state=store.sources.counts())
    waiting = store.lateness_stats.waiting(app.intervals(), UNKNOWN_KIND_MINUTES, now)
    yield _gauge("sources_due", "Sources that are due.", kind={row.kind: row.due for row in waiting})
    yield _gauge(
        "sources_late",
        "Sources that have been due for more than 15 minutes.",
        kind={row.kind: row.late for row in waiting},
    )
    yield _gauge(
        "sources_due_seconds",
        "How long the most overdue source has been due.",
        kind={row.kind: (now - row.since).total_seconds() for row in waiting},
    )
    failing = store.failure_stats.counts(app.settings.failures_before_probation).failing
    yield _gauge("sources_failing", "Active sources whose last collection failed.", failing)
    yield _gauge("tasks", "Tasks of the last 24 hours by state.", state=store.tasks.counts())
    yield _gauge("items", "Stored items.", store.items.count())
    yield _gauge("gaps_open", "Open gaps.", store.gaps.count_open())
    yield _gauge(
        "alerts_open",
        "Open alerts by severity.",
        severity={str(severity): count for severity, count in store.alerts.open_by_severity().items()},
    )
    yield _gauge(
        "hot_hit_ratio",
        "Share of reads in the last five minutes that the cache answered.",
        app.cache.hit_rate(now - HITS_LOOKED_AT),
    )


_COUNTERS = (
    ("attempts", "Requests to platforms, by HTTP status or error code.", ("platform", "outcome")),
    (
        "visits",
        "Collections of sources. Deferred: postponed by our own limits.",
        ("platform", "kind", "outcome"),
    ),
    ("items", "Items shown by collections: new, updated, duplicate or invalid.", ("platform", "kind", "deed")),
    ("hot_reads", "Reads that the cache could have answered: hit or miss.", ("result",)),
)


def _counters(counts: Counter[Key]) -> Iterator[Metric]:
    for name, what, labels in _COUNTERS:
        counter = Metric(f"catchment_{name}", what, "counter")
        for key in sorted(key for key in counts if key[0] == name.removesuffix("_reads")):
            counter.add_sample(f"{counter.name}_total", dict(zip(labels, key[1:], strict=True)), counts[key])
        yield counter
    seconds = Metric("catchment_visit_seconds", "How long collections took.", "summary")
    for key in sorted(key for key in counts if key[0] == "microseconds"):
        by_kind = {"platform": key[1], "kind": key[2]}
        visits = sum(counts["visits", *key[1:], outcome] for outcome in ("succeeded", "failed"))
        seconds.add_sample("catchment_visit_seconds_sum", by_kind, counts[key] / 1_000_000)
        seconds.add_sample("catchment_visit_seconds_count", by_kind, visits)
    yield seconds


def _budget_gauges(app: App) -> Iterator[Metric]:
    budgets = app.budgets()
    yield _gauge(
        "budget_requests",
        "Requests that a platform allows per window with the usable credentials.",
        platform={name: budget.limit for name, budget in budgets.items()},
    )
    yield _gauge(
        "budget_window_seconds",
        "Length of that window.",
        platform={name: float(budget.window_seconds) for name, budget in budgets.items()},
    )
    yield _gauge(
        "budget_used_ratio",
        "Share of the budget used in the busiest recent window.",
        platform=app.monitors().budgets_used(budgets),
    )


def _spending_gauges(app: App) -> Iterator[Metric]:
    services = app.spending(1).services
    today = {row.service: row.today for row in services}
    month = {row.service: row.this_month for row in services}
    for name, what, rows in (
        ("spent_today", "today (UTC)", today),
        ("spent_month", "this month (UTC)", month),
    ):
        yield _gauge(
            f"{name}_dollars",
            f"What a paid service charged {what}.",
            service={service: row.amount / DOLLAR for service, row in rows.items()},
        )
        yield _gauge(
            f"{name}_uncertain_dollars",
            f"What calls to a paid service may have cost besides, {what}.",
            service={service: row.uncertain_amount / DOLLAR for service, row in rows.items()},
        )
        yield _gauge(
            f"{name}_cap_dollars",
            f"The cap on spending {what}.",
            service={service: row.cap / DOLLAR for service, row in rows.items() if row.cap is not None},
        )
    yield _gauge(
        "spending_forecast_dollars",
        "The forecast for what a paid service costs this month, based on the last seven days.",
        service={row.service: row.forecast / DOLLAR for row in services},
    )


def _engine_gauges(context: WebContext) -> Iterator[Metric]:
    """The distributed engine, where there is one."""
    engine = context.status().engine
    if engine is None:
        return
    yield _gauge("broker_available", "Whether the message broker answers.", engine.is_broker_available)
    yield _gauge("beat_alive", "Whether a beat leads.", engine.beat is not None)
    queues = engine.queues
    yield _gauge(
        "queue_workers", "Child processes of workers, by queue.", queue={row.name: row.workers for row in queues}
    )
    waiting = {row.name: float(row.waiting) for row in queues if row.waiting is not None}
    yield _gauge("queue_messages", "Waiting messages, by queue.", queue=waiting)


def _job_gauges(context: WebContext, now: datetime) -> Iterator[Metric]:
    jobs = [job for job in context.status().jobs if job.period_seconds is not None]
    ended = {job.name: (now - job.last_finished_at).total_seconds() for job in jobs if job.last_finished_at}
    yield _gauge("job_age_seconds", "Time since a job last ended.", job=ended)
    yield _gauge("job_late", "Whether a job is overdue.", job={job.name: job.is_late for job in jobs})
    failed = {job.name: job.last_error is not None for job in jobs}
    yield _gauge("job_failed", "Whether the last run of a job failed.", job=failed)
