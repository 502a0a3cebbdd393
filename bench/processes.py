"""Running programs and knowing what they cost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What one process used from its start to its end, its own children included."""

    cpu_seconds: float
    wall_seconds: float
    peak_mb: float


class TooLong(Exception):
    """It was given a time, and had not ended by then."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    weighs: bool = True,
    within_seconds: float | None = None,
) -> tuple[str, Cost]:
    """What it printed, and its cost. A program that fails ends the benchmark with its own words.

    `weighs`: whether its memory is asked for; without it the peak is 0, and the program may be smaller than we are.
    """
    # Files, not pipes: nobody reads along, so that waiting costs the machine nothing.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        begun = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=complaints)
        # Not by `wait`: that would not tell what it cost.
        bound = threading.Timer(within_seconds, process.kill) if within_seconds is not None else None
        if bound is not None:
            bound.start()
        with _watched_peak(process.pid) as peak:
            _, ending, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        if bound is not None:
            bound.cancel()
        process.returncode = os.waitstatus_to_exitcode(ending)
        out.seek(0)
        complaints.seek(0)
        if within_seconds is not None and wall >= within_seconds:
            raise TooLong
        if process.returncode:
            words = complaints.read().decode(errors="replace")[-2_000:]
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{words}")
        return out.read().decode(), Cost(used.ru_utime + used.ru_stime, wall, _peak_mb(peak, used) if weighs else 0.0)


@contextmanager
def _watched_peak(pid: int) -> Iterator[list[int]]:
    """The largest size of a process, in kB, as /proc tells it ten times a second; empty where there is no /proc.

    Linux's own account of an ended process counts what it was before it became another program: a child seems to need
    at least what we do.
    """
    peak: list[int] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            try:
                with open(f"/proc/{pid}/status") as status:
                    sizes = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
            except OSError:
                return
            peak[:] = sizes or peak

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        is_over.set()
        watcher.join()


def _peak_mb(watched: Sequence[int], used: resource.struct_rusage) -> float:
    if watched:
        return watched[0] / 2**10
    return used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@contextmanager
def served_world(feeds: int, entries: int = 50, *, hosts: int = 1, seconds: float = 0.0) -> Iterator[str]:
    """The world of feeds in a process of its own; gives its address. It is served at 127.0.0.1 and the `hosts` - 1
    addresses behind it; each answer takes some `seconds`."""
    command = [sys.executable, "-m", "bench.world", "--feeds", str(feeds), "--entries", str(entries)]
    command += ["--hosts", str(hosts), "--seconds", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as world:
        assert world.stdin
        assert world.stdout
        try:
            yield f"http://127.0.0.1:{int(world.stdout.readline())}"
        finally:
            world.stdin.close()  # it ends by itself


def turn(base: str, round_number: int) -> None:
    """Tell the world which round it is in; what was asked of it counts from zero again."""
    with urllib.request.urlopen(f"{base}/round?number={round_number}"):
        pass
