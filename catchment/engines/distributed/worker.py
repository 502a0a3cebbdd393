"""`catchment worker`: Celery's worker with the product's checks before the start and its way to stop."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from celery import signals
from celery.apps.worker import Worker as CeleryWorker
from celery.platforms import EX_OK
from celery.worker import state

from catchment import logs
from catchment.engines.distributed.tasks import make_celery
from catchment.errors import BadSetting
from catchment.redis import RedisLink
from catchment.settings import Settings

log = logs.logger(__name__)


class Worker(CeleryWorker):  # type: ignore[misc]
    """Stops as all our commands do, and prints nothing of its own."""

    def emit_banner(self) -> None:
        log.info("worker started", queues=sorted(self.app.amqp.queues.consume_from), children=self.concurrency)

    def install_platform_tweaks(self, worker: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self._heard)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, number: int, _frame: Any) -> None:
        signals.worker_shutting_down.send(
            sender=self.hostname, sig=signal.Signals(number).name, how="Warm", exitcode=EX_OK
        )
        state.should_stop = EX_OK


def run_worker(settings: Settings, queues: Sequence[str] | None = None, concurrency: int | None = None) -> bool:
    """Work until a signal arrives. Returns whether nothing had to be aborted. Raises if the database is not as this
    version needs it, or if the broker refuses us."""
    celery = make_celery(settings)
    celery.catchment_child.check_database()
    check_broker(settings)
    worker = Worker(
        app=celery,
        queues=list(queues or settings.queue_names),
        concurrency=concurrency or settings.worker_count,
        # Workers learn nothing from each other: who lives is in the database.
        without_gossip=True,
        without_mingle=True,
        loglevel=settings.log_level.upper(),
        quiet=False,
    )
    worker.start()
    pipes = celery.catchment_child.pipes
    return worker.exitcode in (None, EX_OK) and not (pipes is not None and pipes.is_unclean)


def check_broker(settings: Settings) -> None:
    """Raises BadSetting if the broker refuses us permanently; one that is not there yet, or full, is waited for."""
    assert settings.broker_url is not None
    link = RedisLink(settings.broker_url, "", away="the message broker does not answer yet")
    with closing(link):
        trouble = link.check()
    if trouble is not None and link.is_refused:
        raise BadSetting(
            "the message broker {url} refuses us: {why}", "check CELERY_BROKER_URL", url=link.shown_url, why=trouble
        )
