"""`status` and `plan`: the state of the deployment, and whether its request budgets suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from catchment.cli import context, output
from catchment.cli.commands.sources import NO_SOURCES_HINT
from catchment.cli.params import AsJson, Limit, OfPlatform
from catchment.collect.budget_plan import PlanView, late_summary, plan_view, summary
from catchment.installation import as_typed
from catchment.messages import without_subject
from catchment.policy.budget_plan import PlatformPlan
from catchment.status import DeploymentStatus, EngineView, PoolStatus, StatusView
from catchment.store.leases import ProcessView
from catchment.store.sources.stats import FailingSource

_SHOWN = 10


def status(as_json: AsJson = False) -> None:
    """Sources, items, gaps, alerts, the last 24 hours, the jobs, and the processes that collect."""
    with context.opened_app("status") as app:
        deployment = DeploymentStatus(app)
        view = deployment.view()
        unexplained = [source for source in deployment.failing if source.id not in deployment.explained_ids]
    if as_json:
        output.document(view)
    else:
        _show(view, unexplained[:_SHOWN], deployment.now)


def _show(view: StatusView, failing: Sequence[FailingSource], now: datetime) -> None:
    """`failing`: the sources that fail for a cause of their own."""
    day, database = view.last_24_hours, view.database
    output.facts(
        (
            ("Sources", ", ".join(f"{count:,} {state}" for state, count in view.sources.items())),
            ("Failing", view.failing_count),
            *(("Outage", outage.message) for outage in view.outages),
            ("Items", view.items),
            ("Open gaps", view.open_gaps),
            ("Open alerts", len(view.alerts)),
            ("Credentials", _credentials(view.credentials)),
            (
                "Last 24 hours",
                f"{output.counted(day.fetches, 'collection')}, {day.errors:,} failed, {day.deferred:,} deferred, "
                f"{output.counted(day.items, 'new item')}, {output.counted(day.requests, 'request')}",
            ),
            *(("Budget", _budget(plan)) for plan in view.tight_budgets),
            ("Collector", _collector(view.collector.processes, view.engine)),
            *(_engine(view.engine, now) if view.engine else ()),
            ("Database", f"{database.url} ({database.engine}, schema {database.schema})"),
        )
    )
    if failing:
        output.say()
        output.table(
            ("#ID", "Failing source", "#Failures", "Reason"),
            [
                (source.id, source.name, source.failures_in_a_row or 1, without_subject(source.last_error))
                for source in failing
            ],
        )
    if view.alerts:
        output.say()
        output.table(
            ("Severity", "Opened", "Alert"),
            [(alert.severity, output.when(alert.opened_at, now), as_typed(alert.message)) for alert in view.alerts],
        )
    # Without any, no collector has run yet.
    if any(job.next_run_at for job in view.jobs):
        output.say()
        output.table(
            ("Job", "Next run", "Last run", "#Runs", "Error"),
            (
                (
                    job.name,
                    output.when(job.next_run_at, now) if job.period_seconds else "off",
                    output.when(job.last_started_at, now),
                    job.run_count,
                    job.last_error,
                )
                for job in view.jobs
            ),
        )


def _credentials(pool: PoolStatus) -> str:
    exhausted = f"; none left for {', '.join(pool.exhausted)}" if pool.exhausted else ""
    return f"{pool.usable} of {pool.shared} shared credentials usable{exhausted}"


def _budget(plan: PlanView) -> str:
    late = "".join(f"; {late_source.summary}" for late_source in plan.late[:1])
    return f"{plan.summary} ({output.share(plan.share)}){late}"


def _collector(processes: Sequence[ProcessView], engine: EngineView | None) -> str:
    if engine is not None:
        return _worker_processes(len(engine.workers))
    if not processes:
        return as_typed("not running; start it with `catchment serve` or `catchment collect --loop`")
    return ", ".join(f"{process.work} (process {process.pid} on {process.machine})" for process in processes)


def _engine(engine: EngineView, now: datetime) -> Iterator[tuple[str, str]]:
    """The distributed engine: who works where and since when, and what waits."""
    for process in engine.workers:
        yield "Worker", _process(process, now)
    missing = as_typed("not running, or not responding; start it with `catchment beat`")
    yield "Beat", _process(engine.beat, now) if engine.beat else missing
    yield "Broker", engine.broker if engine.is_broker_available else f"{engine.broker} is unavailable"
    for queue in engine.queues:
        waiting = "unknown" if queue.waiting is None else f"{queue.waiting:,}"
        yield "Queue", f"{queue.name}: {waiting} waiting, {_worker_processes(queue.workers)}"


def _process(process: ProcessView, now: datetime) -> str:
    return (
        f"process {process.pid} on {process.machine}, started {output.when(process.started_at, now)}, "
        f"last heartbeat {output.when(process.heartbeat_at, now)}"
    )


def _worker_processes(count: int) -> str:
    return f"{count:,} worker process{'' if count == 1 else 'es'}"


def plan(platform: OfPlatform = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """For each platform: the requests per minute that its sources need, by their intervals and latest collections; what
    the platform allows with the credentials that are usable now; and, if that is not enough, which sources will be
    late, and by how much.
    """
    with context.opened_app("plan") as app:
        if platform is not None:
            app.names.platform(platform)
        plans = [platform_plan for platform_plan in app.plans() if platform in (None, platform_plan.platform)]
    if as_json:
        output.document([plan_view(platform_plan, limit) for platform_plan in plans])
    elif not plans:
        output.nothing("no sources on this platform yet" if platform else "no sources yet", NO_SOURCES_HINT)
    else:
        for platform_plan in plans:
            _show_plan(platform_plan, limit)


def _show_plan(plan: PlatformPlan, limit: int) -> None:
    share = "" if plan.share is None else f" ({output.share(plan.share)})"
    output.say(f"{summary(plan)}{share}")
    if plan.besides:
        output.say(f"  {plan.besides:.3g} of them for rechecks and extra runs")
    for late in plan.late[:limit]:
        output.say(f"  {late_summary(late)} ({late.need.priority}, every {late.need.interval_minutes:,} min)")
    if len(plan.late) > limit:
        output.say(f"  and {len(plan.late) - limit:,} more; a larger --limit shows them")
