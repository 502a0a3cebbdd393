"""Child processes for work that can only be interrupted by killing the process.

Parsers and selectors written in C hold the interpreter lock until they are done, and the time that some need grows with
the square of the page size, or worse. A child process does such work, with limits on CPU time and memory, and is killed
when it takes too long or when a stop is requested. Children are reused: starting one takes as long as its imports.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO

from catchment import work_limits
from catchment.errors import CatchmentError

MOST_AT_ONCE = 2
CPU_SECONDS = 3
"""For one job."""
_WALL_FACTOR = 20
"""Wall time may be this many times the CPU time: the machine may be busy, and a new child has to import first."""
_MEMORY_BYTES = 500_000_000
"""Of address space, in addition to what the child itself needs."""
_NICENESS = 5
_PATIENCE_SECONDS = 0.1
_LENGTH = struct.Struct(">Q")

Job = Callable[[bytes], bytes]


class JobKilled(Exception):
    """The job took too much time or memory, or crashed. Its input is to blame."""


def run(module: str, function: str, payload: bytes) -> bytes:
    """The result of a function (bytes to bytes) in one of our modules for this payload, run in a child process.

    Raises JobKilled at its limits, and whatever `work_limits.current().check()` raises during the wait.
    """
    check = work_limits.current().check
    with work_limits.current().waiting():
        while not _SLOTS.acquire(timeout=_PATIENCE_SECONDS):
            check()
        try:
            child = _taken()
            try:
                answer = child.answer(f"{module}:{function}", payload, CPU_SECONDS, check)
            except BaseException:
                child.kill()
                raise
            with _LOCK:
                _IDLE.append(child)
        finally:
            _SLOTS.release()
    if answer[:1] == _FAILED:
        raise CatchmentError(
            "a child process failed ({error_type})", "the log has the details", error_type=answer[1:].decode()
        )
    return answer[1:]


class _Child:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self._process = subprocess.Popen(
            # -P: do not import from the folder that we were started in, where others may have put a module with one of
            # our names.
            [sys.executable, "-P", "-c", "from catchment.child_processes import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Terminals send signals to the whole process group; a child ends when we end it.
            start_new_session=True,
            # Our secrets must not be in the environment where third-party pages are parsed.
            env={"PYTHONPATH": os.pathsep.join(folder or os.getcwd() for folder in sys.path)},
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answer(self, name: str, payload: bytes, cpu_seconds: int, check: Callable[[], None]) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        give_up_at = time.monotonic() + cpu_seconds * _WALL_FACTOR
        try:
            for part in (name.encode(), str(cpu_seconds).encode(), payload):
                self._process.stdin.write(_LENGTH.pack(len(part)) + part)
            self._process.stdin.flush()
        except OSError:
            raise JobKilled from None
        # Not `select`, which supports no descriptor above 1,023: with many connections ours are higher.
        answers = select.poll()
        answers.register(self._process.stdout, select.POLLIN)
        while not answers.poll(_PATIENCE_SECONDS * 1000):
            check()
            if time.monotonic() > give_up_at:
                raise JobKilled
        answer = _part(self._process.stdout)
        if answer is None:
            raise JobKilled
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


_SLOTS = threading.BoundedSemaphore(MOST_AT_ONCE)
_IDLE: list[_Child] = []
_LOCK = threading.Lock()


def _taken() -> _Child:
    """An idle child, or a new one."""
    while True:
        with _LOCK:
            child = _IDLE.pop() if _IDLE else None
        if child is None:
            return _Child()
        if child.pid != os.getpid():
            continue  # the parent's, from before a fork
        if child.is_alive:
            return child
        child.kill()


@atexit.register
def close() -> None:
    """End the idle children."""
    with _LOCK:
        children, _IDLE[:] = [child for child in _IDLE if child.pid == os.getpid()], []
    for child in children:
        child.kill()


# ── inside the child ──────────────────────────────────────────────────────────────────────────────────────────────

_DONE, _FAILED = b"+", b"-"


def serve() -> None:
    """Process one job after the other, until the parent is gone."""
    import resource

    # A child killed by a limit leaves no core dump; and the processes that collect have priority.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.nice(_NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    sys.stdout = sys.stderr
    is_limited = False
    while (name := _part(sys.stdin.buffer)) is not None:
        cpu_seconds, payload = _part(sys.stdin.buffer), _part(sys.stdin.buffer)
        if cpu_seconds is None or payload is None:
            return
        module, _, function = name.decode().partition(":")
        job: Job = getattr(importlib.import_module(module), function)
        if not is_limited:
            # After the imports, which take gigabytes of address space on some systems.
            _limit_memory()
            is_limited = True
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + 1 + int(cpu_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        try:
            answer = _DONE + job(payload)
        except MemoryError:
            os._exit(1)
        except Exception as error:  # noqa: BLE001 — reported to the parent, which knows the context
            answer = _FAILED + type(error).__name__.encode()
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _limit_memory() -> None:
    import resource

    try:
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + _MEMORY_BYTES, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        return  # this system has no such file or limit: the other limits still apply


def _part(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    length: int = _LENGTH.unpack(head)[0]
    part = pipe.read(length)
    return part if len(part) == length else None
