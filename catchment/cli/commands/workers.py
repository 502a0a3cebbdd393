"""`worker` and `beat`: the processes of the distributed engine. `alive`: whether a part of a deployment is working
on this machine."""

from __future__ import annotations

import os
import socket
from enum import StrEnum
from typing import Annotated

import typer

from catchment import installation, logs
from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson
from catchment.errors import BadSetting
from catchment.settings import Settings, read_settings
from catchment.store.leases import is_silent, living

_PATIENCE_SECONDS = 10.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 — it is not bound to
"""Addresses that a server can listen on, but nobody can connect to."""


class Part(StrEnum):
    """A long-running command."""

    SERVE = "serve"
    BEAT = "beat"
    WORKER = "worker"


def worker(
    queues: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Take tasks from these queues (comma-separated), instead of CELERY_QUEUE_NAMES."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Number of child processes, instead of CELERY_WORKER_COUNT."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Runs tasks until it is stopped. Start as many as you need, on as many machines as you like; they share the
    database and the broker (CELERY_BROKER_URL). Needs the extra `distributed` and a `catchment beat`.

    On SIGTERM or Ctrl-C, no further task is started, and running ones may finish within CATCHMENT_STOP_SECONDS; a
    second signal aborts them. Exits with 0 if nothing had to be aborted, else with 1.
    """
    settings = _distributed_settings()
    names = None
    if queues is not None:
        names = read_settings({"CELERY_QUEUE_NAMES": queues, "CATCHMENT_HOME": str(settings.home)}, settings.home)
    # Celery takes most of a second to import, which no other command needs.
    from catchment.engines.distributed.worker import run_worker

    is_clean = run_worker(settings, names.queue_names if names else None, concurrency)
    if as_json:
        output.document({"is_clean": is_clean})
    return 0 if is_clean else 1


def beat(as_json: AsJson = False) -> None:
    """Runs until it is stopped. One beat is active; a second one stands by and takes over within a minute if the first
    one dies. Needs the extra `distributed` and CELERY_BROKER_URL.
    """
    settings = _distributed_settings()
    from catchment.engines.distributed.beat import open_beat_app, run_beat
    from catchment.engines.distributed.tasks import make_celery
    from catchment.engines.distributed.worker import check_broker

    with StopSignals() as stopping, open_beat_app(settings) as app:
        celery = make_celery(settings)
        check_broker(settings)
        stopping.watch(app.stop, app.cut, settings.stop_seconds, logs.logger(__name__).info)
        run_beat(app, celery, app.stop.wait)
    if as_json:
        output.document({"is_clean": True})


def alive(
    part: Annotated[Part, typer.Argument(metavar="PART", help="serve, beat or worker.")], as_json: AsJson = False
) -> int:
    """For the health checks of containers and services: exits with 0 if that part is working on this machine, else with
    1. `serve` must answer a request; beat and workers must be registered in the database, hold their lock, and have
    sent a heartbeat within the last 90 seconds.
    """
    settings = context.settings()
    if part is Part.SERVE:
        is_alive = _answers(settings.host, settings.port)
    else:
        with context.bare_database(settings) as database:
            clock = context.clock_of(settings)
            processes = living(database, settings.home, clock.now())
        is_alive = any(
            (process.machine, process.work.split()[0]) == (os.uname().nodename, part) and not is_silent(process, clock)
            for process in processes
        )
    verdict = f"{part} is working." if is_alive else f"{part} is not working on this machine."
    output.result(as_json, {"part": part.value, "is_alive": is_alive}, verdict)
    return 0 if is_alive else 1


def _distributed_settings() -> Settings:
    if not installation.is_installed("distributed"):
        raise BadSetting(
            "the distributed engine is not installed", f"run `{installation.install_command('distributed')}`"
        )
    settings = context.full_settings()
    for warning in settings.warnings:
        logs.logger(__name__).warning(warning)
    return settings


def _answers(host: str, port: int) -> bool:
    """Whether a web server answers there."""
    try:
        with socket.create_connection((_EVERYWHERE.get(host, host), port), timeout=_PATIENCE_SECONDS) as connection:
            connection.sendall(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False
