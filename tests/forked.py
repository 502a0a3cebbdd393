"""Processes that begin with everything loaded: a fork of one that waits instead of a start, which loads it all."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TextIO

import pytest

ROOT = Path(__file__).parents[1]
LOADED = [
    "catchment.web.server",
    "catchment.engines.embedded",
    "catchment.engines.distributed.worker",
    "catchment.engines.distributed.beat",
    "tests.engines.deployment",
    "tests.forked",
    "tests.store.hands",
    "tests.town",
]


@cache
def _context() -> ForkServerContext:
    """The process that waits, one for each process that runs tests. It ends with that one."""
    from multiprocessing.forkserver import ensure_running

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        ensure_running()
    return context


class Forked:
    """A function at work in a process of its own; its output, what it complains of, and its input are pipes."""

    def __init__(self, run: Callable[..., object], *arguments: str) -> None:
        # As if it was started: `make check` leaves out the tests that do.
        sys.audit("os.fork")
        reads, writes = zip(*(os.pipe() for _ in range(3)), strict=True)
        theirs = [
            Connection(reads[0], writable=False),
            *(Connection(descriptor, readable=False) for descriptor in writes[1:]),
        ]
        self._process = _context().Process(target=_become, args=(theirs, os.getcwd(), dict(os.environ), run, arguments))
        self._process.start()
        for connection in theirs:
            connection.close()
        self.pid = self._process.pid or 0
        self.stdin: TextIO = os.fdopen(writes[0], "w")
        self.stdout: TextIO = os.fdopen(reads[1])
        self.stderr: TextIO = os.fdopen(reads[2])

    def signal(self, number: int) -> None:
        if self._process.exitcode is None:
            # The fork server may have buried it already, and not yet said so.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """With no chance to say farewell."""
        self.signal(signal.SIGKILL)
        self._process.join()

    def code(self, patience: float | None = None) -> int | None:
        """Wait for its end; its exit code, or none if it still runs."""
        self._process.join(patience)
        return self._process.exitcode

    def close(self) -> None:
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self._process.close()


def script(text: str, *arguments: str) -> None:
    """To be run in a process of its own: what `python -c TEXT ARGUMENTS` would do."""
    sys.argv = ["-c", *arguments]
    exec(text, {"__name__": "__main__"})


def _become(
    pipes: list[Connection], folder: str, environ: dict[str, str], run: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    for number, pipe in enumerate(pipes):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.exit(run(*arguments))
