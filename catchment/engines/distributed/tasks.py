"""The Celery application: its tasks, by the names that the specification and the table of jobs give them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from celery import Celery, Task
from kombu import Exchange, Queue

from catchment import logs
from catchment.app import App, settings_from
from catchment.collect.scheduler import summed
from catchment.engines.distributed.broker import NOT_SENT
from catchment.engines.distributed.child import Child, connect_signals
from catchment.engines.distributed.limits import TASK_SECONDS, VISIBILITY_SECONDS
from catchment.errors import BadSetting, CatchmentError, InvalidInput
from catchment.jobs import COLLECT_DUE, CRAWL_SEEDS, INCREMENTAL, JOBS, NAMES, SEEDS, Job, communities, run_if_due, warm
from catchment.model import Outcome, VisitResult
from catchment.settings import Settings

log = logs.logger(__name__)

CRAWL_COMMUNITY = "tasks.crawler.crawl_community"
JOB_HEADER = "catchment_job"
"""The header of a hint: which job may be due. Without it, the task was called by hand, and runs at once."""
_CONNECT_SECONDS, _ANSWER_SECONDS = 5, 10
_RESULTS_SECONDS = 3600
_LONGEST_NAME = 500
_CLOCKS_DIFFER_SECONDS = 120
"""Hints live longer than their period by this much: clocks of two machines differ, and Celery compares them."""
Answer = dict[str, Any]


class TaskFailed(Exception):
    """Why a task that was called by hand did not succeed: code and message."""


class MissingBroker(BadSetting):
    """The distributed engine needs a broker."""


@cache
def celery_from_environment() -> Celery:
    """The application for `celery -A`: with the settings of this process."""
    return make_celery(settings_from(os.environ, Path.cwd(), NAMES))


def make_celery(settings: Settings) -> Celery:
    """The application with these settings. Connects to nothing yet."""
    if settings.broker_url is None:
        raise MissingBroker(
            "CELERY_BROKER_URL is not set", "set it to a database of a Redis server, such as redis://localhost:6379/1"
        )
    celery = Celery("catchment", set_as_current=False)
    celery.conf.update(
        broker_url=settings.broker_url,
        broker_transport="catchment.engines.distributed.broker:Transport",
        worker_consumer="catchment.engines.distributed.broker:Consumer",
        result_backend=settings.results_url,
        result_expires=_RESULTS_SECONDS,
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        timezone="UTC",
        task_queues=[Queue(name, Exchange(name), routing_key=name) for name in settings.queue_names],
        task_routes={name: {"queue": queue} for name, queue in routes().items()},
        task_default_queue=default_queue(settings.queue_names),
        worker_concurrency=settings.worker_count,
        # A message is taken when there is a child for it, and answered when its work is done.
        worker_prefetch_multiplier=1,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # The last resort, for one that does not listen: its child is killed and replaced.
        task_time_limit=TASK_SECONDS,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_SECONDS,
            "socket_connect_timeout": _CONNECT_SECONDS,
            "socket_timeout": _ANSWER_SECONDS,
            "socket_keepalive": True,
        },
        redis_socket_connect_timeout=_CONNECT_SECONDS,
        redis_socket_timeout=_ANSWER_SECONDS,
        broker_connection_timeout=_CONNECT_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Redis that refuses a command, because it is full or read-only, is waited for like one that is unavailable.
        broker_channel_error_retry=True,
        # The next tick repeats what could not be sent.
        task_publish_retry=False,
        # A child on a busy machine may need more than Celery's 4 seconds to start.
        worker_proc_alive_timeout=120.0,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        beat_scheduler="catchment.engines.distributed.beat:CeleryScheduler",
    )
    child = Child(settings)
    connect_signals(child, settings)
    _add_tasks(celery, child)
    celery.catchment_settings, celery.catchment_child = settings, child
    return celery


def routes() -> dict[str, str]:
    """The queue of each task."""
    return {CRAWL_COMMUNITY: "crawler_queue"} | {job.task_name: job.queue_name for job in JOBS}


def default_queue(consumed: Sequence[str]) -> str:
    """The queue of messages that name none: one that these workers consume."""
    return "monitoring_queue" if "monitoring_queue" in consumed else consumed[0]


def send_hint(celery: Celery, app: App, job: Job) -> None:
    """Tell the workers that the job may be due. Raises one of NOT_SENT if the broker does not take it."""
    period = job.period(app.settings) or job.every
    seconds = app.clock.wall_seconds(period.total_seconds()) + _CLOCKS_DIFFER_SECONDS if period else None
    if job.expires is not None:
        seconds = app.clock.wall_seconds(job.expires.total_seconds())
    celery.send_task(
        job.task_name, queue=job.queue_name, expires=seconds, ignore_result=True, headers={JOB_HEADER: job.name}
    )


def hint_mark(job: Job) -> str:
    """The text that a hint about the job contains, and no other message, as Kombu writes headers."""
    return f'"{JOB_HEADER}": "{job.name}"'


def _add_tasks(celery: Celery, child: Child) -> None:
    by_name = {job.name: job for job in JOBS}
    works: dict[str, Callable[..., Any]] = {job.task_name: _requested_job(job) for job in JOBS}
    works |= {
        _COLLECT.task_name: lambda app: collect_due(app, celery),
        CRAWL_COMMUNITY: crawl_community,
        CRAWL_SEEDS: crawl_seeds,
        by_name[INCREMENTAL].task_name: crawl_incremental,
    }

    def add(name: str, work: Callable[..., Any]) -> None:
        """`work` gets the app, and the arguments of the call."""
        signature = inspect.signature(work)

        def run(task: Task, *args: Any, **kwargs: Any) -> Any:
            hinted = task.request.get(JOB_HEADER)
            job = by_name.get(hinted) if isinstance(hinted, str) else None
            request_id = str(task.request.get("request_id") or task.request.id)
            with logs.bound(task=name, request_id=request_id):
                if hinted is not None and (job is None or job.task_name != name):
                    log.warning("dropped a hint that names another task's job", job=str(hinted)[:100])
                    return {"job": None, "ran": False}
                with child.working() as app:
                    if job is not None and name != _COLLECT.task_name:
                        return {"job": job.name, "ran": run_if_due(app, job)}
                    return call(app, *args, **kwargs)

        def call(app: App, *args: Any, **kwargs: Any) -> Any:
            try:
                signature.bind(app, *args, **kwargs)
            except TypeError as error:
                raise TaskFailed(f"{InvalidInput.code}: {error}") from None
            try:
                return work(app, *args, **kwargs)
            except CatchmentError as error:
                raise TaskFailed(logs.redact(f"{error.code}: {error}")) from error

        celery.task(run, name=name, bind=True, shared=False, throws=(TaskFailed,))

    for name, work in works.items():
        add(name, work)


_COLLECT = next(job for job in JOBS if job.name == COLLECT_DUE)


def _requested_job(job: Job) -> Callable[[App], Answer]:
    return lambda app: {"job": job.name, "ran": run_if_due(app, job, is_requested=True)}


def collect_due(app: App, celery: Celery) -> Answer:
    """Visit some of the sources that are due. If there may be more, another worker gets a message."""
    at_most = app.settings.crawler_batch_size
    results = app.scheduler().due(COLLECT_DUE, "schedule", at_most=at_most)
    if len(results) >= at_most and not app.stop.is_set():
        try:
            send_hint(celery, app, _COLLECT)
        except NOT_SENT as error:
            log.warning("no follow-up was sent; the next tick continues", error=logs.redact(str(error)))
    return _summary(results)


def crawl_community(app: App, name: str) -> Answer:
    """Visit one community now, whatever its schedule says."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise InvalidInput("the name of a community must be a short text", 'write it as "r/webdev"', "name")
    source = app.store.sources.get(app.names.exact_source(name))
    began = app.clock.now()
    view = summed(app.scheduler().these([source.id], CRAWL_COMMUNITY, "request"), began, app.clock.now()).results[0]
    if view.error is not None:
        raise TaskFailed(logs.redact(f"{view.error.code}: {view.error.message}"))
    return {
        "community": source.name,
        "new_posts": view.new,
        "updated_posts": view.updated,
        "duplicates": view.duplicate,
        "watermark_updated": view.watermark_updated,
        "duration_seconds": view.duration_seconds,
    }


def crawl_seeds(app: App, *, force_refresh: bool = False) -> Answer:
    """Refresh the cache of communities that were not read lately, or of all."""
    return _summary(warm(app, "crawl-seed-communities", SEEDS, is_forced=bool(force_refresh)))


def crawl_incremental(app: App) -> Answer:
    return _summary(app.scheduler().due(INCREMENTAL, "request", kinds=communities(app)))


def _summary(results: Sequence[VisitResult]) -> Answer:
    return {
        "communities": len(results),
        "new_posts": sum(result.counts.new for result in results),
        "updated_posts": sum(result.counts.updated for result in results),
        "duplicates": sum(result.counts.duplicate for result in results),
        "failed": sum(result.outcome == Outcome.FAILED for result in results),
    }
