"""`alive`: whether a part of the deployment is working on this machine."""

from __future__ import annotations

import os
import socket
from enum import StrEnum
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson
from catchment.store.leases import living

_PATIENCE_SECONDS = 10.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 — it is not bound to
"""Addresses that a server can listen on, but nobody can connect to."""


class Part(StrEnum):
    """A long-running command."""

    SERVE = "serve"
    BEAT = "beat"
    WORKER = "worker"


def alive(
    part: Annotated[Part, typer.Argument(metavar="PART", help="serve, beat or worker.")], as_json: AsJson = False
) -> int:
    """For the health checks of containers and services: exits with 0 if that part is working on this machine, else with
    1. `serve` has to answer a request, whatever it says about the deployment; beat and workers have to be registered in
    the database, and hold their lock.
    """
    settings = context.settings()
    if part is Part.SERVE:
        is_alive = _answers(settings.host, settings.port)
    else:
        with context.bare_database(settings) as database:
            processes = living(database, settings.home, context.clock_of(settings).now())
        is_alive = any(
            (process.machine, process.work.split()[0]) == (os.uname().nodename, part) for process in processes
        )
    verdict = f"{part} is working." if is_alive else f"{part} is not working on this machine."
    output.result(as_json, {"part": part.value, "is_alive": is_alive}, verdict)
    return 0 if is_alive else 1


def _answers(host: str, port: int) -> bool:
    """Whether a web server answers there."""
    try:
        with socket.create_connection((_EVERYWHERE.get(host, host), port), timeout=_PATIENCE_SECONDS) as connection:
            connection.sendall(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False
