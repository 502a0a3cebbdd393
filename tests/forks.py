"""`pytest --forks N`: the tests are loaded once, and run by N forks of the process that has loaded them.

With `-n N`, each of N processes loads all tests again: that is half a minute of CPU time for each in a fresh clone. A
fork takes the next piece of work when it is done with the last. Half of the forks begin with the tests that wait for
other processes, the other half with those that compute: so no core idles while tests wait. Those that are done first
help the others.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from multiprocessing import Pipe, util
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

WAITING = (
    "tests/endure/test_endurance.py",
    "tests/kill/",
    "tests/browser/",
    "tests/engines/test_distributed",
    "tests/web/test_server.py",
    "tests/cli/test_demo.py",
    "tests/test_third_party.py",
    "tests/cli/test_signals.py",
)
"""Tests that mostly wait for other processes, the longest first."""
COMPUTING = (
    "tests/web/test_api_promises.py",
    "tests/playground/test_reddit_met.py",
    "tests/playground/test_json_collected.py",
    "tests/test_hostile_world.py",
    "tests/collect/test_attacks.py",
    "tests/cli/test_collect_memory.py",
    "tests/health/test_outages.py",
    "tests/store/test_plans.py",
    "tests/cli/test_planted_secrets.py",
    "tests/playground/",
)
"""Files that need the most CPU time, the most first. Their tests share what is costly to make: a simulated world, the
description of the API. So a fork takes a whole file. What stands here and above changes the order of tests, and nothing
else."""
AT_MOST = 20
"""Tests of any other file in a piece of work."""
NUMBER = struct.Struct("i")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, metavar="N", help="load the tests once, run them in N processes")


def pieces(items: Sequence[pytest.Item]) -> tuple[list[list[pytest.Item]], list[list[pytest.Item]]]:
    """What a fork takes at a time: one of the tests that wait; and a file that computes, or some neighbours in another.

    A fixture of a module is made again for each piece: one that is costly and shared by many tests has to be one of the
    session, of which every fork has one.
    """
    waiting = [[item] for start in WAITING for item in items if item.nodeid.startswith(start)]
    others = [item for item in items if not item.nodeid.startswith(WAITING)]
    files = [list(group) for _, group in groupby(others, key=lambda item: item.path)]
    files.sort(key=_rank)
    computing = []
    for file in files:
        size = len(file) if _rank(file) < len(COMPUTING) else AT_MOST
        computing += [file[at : at + size] for at in range(0, len(file), size)]
    return waiting, computing


def _rank(file: Sequence[pytest.Item]) -> int:
    """Its place among those that compute, or the place behind them."""
    starts = (rank for rank, start in enumerate(COMPUTING) if file[0].nodeid.startswith(start))
    return next(starts, len(COMPUTING))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in forks, if that was asked for."""
    if not session.config.option.forks or session.config.option.collectonly or session.testsfailed:
        return None
    Forks(session).run()
    return True


class Work:
    """Numbers of the pieces that nobody has taken. A pipe: whoever reads a number has it alone."""

    def __init__(self, numbers: range) -> None:
        self._source, self._sink = os.pipe()
        for number in numbers:
            # It holds 64 KB on Linux; where it holds less, this would wait for ever.
            os.set_blocking(self._sink, False)
            os.write(self._sink, NUMBER.pack(number))
        os.close(self._sink)

    def __iter__(self) -> Iterator[int]:
        while read := os.read(self._source, NUMBER.size):
            yield NUMBER.unpack(read)[0]

    def drop(self) -> None:
        """Nobody finds anything any more."""
        for _ in self:
            pass


@dataclass
class Fork:
    pid: int
    test: pytest.Item | None = None
    """What it is doing."""


class Forks:
    """The process that has loaded the tests: starts the forks, and reports what they tell."""

    def __init__(self, session: pytest.Session) -> None:
        self.session, self.config, self.hook = session, session.config, session.config.hook
        waiting, computing = pieces(session.items)
        self.pieces = waiting + computing
        self.work = (Work(range(len(waiting))), Work(range(len(waiting), len(self.pieces))))
        self.by_id = {item.nodeid: item for item in session.items}
        self.folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self.forks: dict[Connection, Fork] = {}
        self.started = 0

    def run(self) -> None:
        assert threading.active_count() == 1, "a fork has none of the other threads, but all of their locks"
        for _ in range(self.config.option.forks):
            self._start()
        try:
            while self.forks:
                for pipe in wait(list(self.forks)):
                    self._hear(pipe)  # type: ignore[arg-type]
                if self.session.shouldfail or self.session.shouldstop:
                    for work in self.work:
                        work.drop()
        except BaseException:
            for fork in self.forks.values():
                os.kill(fork.pid, signal.SIGTERM)
            raise
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _start(self) -> None:
        ours, theirs = Pipe(duplex=False)
        self.started += 1
        pid = os.fork()
        if pid == 0:
            ours.close()
            _live(self, theirs)
        theirs.close()
        self.forks[ours] = Fork(pid)

    def _hear(self, pipe: Connection) -> None:
        fork = self.forks[pipe]
        try:
            what, said = pipe.recv()
        except EOFError:
            self._ended(pipe, fork)
            return
        if what == "begins":
            fork.test = self.by_id[said]
            self.hook.pytest_runtest_logstart(nodeid=said, location=fork.test.location)
        elif what == "ends":
            self.hook.pytest_runtest_logfinish(nodeid=said, location=self.by_id[said].location)
            fork.test = None
        elif what == "warning":
            self.hook.pytest_warning_recorded.call_historic(kwargs=said)
        else:
            report = self.hook.pytest_report_from_serializable(config=self.config, data=said)
            self.hook.pytest_runtest_logreport(report=report)

    def _ended(self, pipe: Connection, fork: Fork) -> None:
        pipe.close()
        del self.forks[pipe]
        _, status = os.waitpid(fork.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if fork.test is not None:
            words = f"the process that ran it ended with {code}"
            self.hook.pytest_runtest_logreport(
                report=pytest.TestReport(fork.test.nodeid, fork.test.location, {}, "failed", words, "call")
            )
            # The rest of its piece is lost, and the run has failed.
            self._start()
        elif code:
            raise RuntimeError(f"a process that runs tests ended with {code}")


# ── in a fork ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Teller:
    """Instead of the terminal: what happens is told to the process that has loaded the tests."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config, self.pipe = config, pipe

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.pipe.send(("begins", nodeid))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.pipe.send(("ends", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.pipe.send(("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report)))

    def pytest_warning_recorded(self, warning_message: Any, when: Any, nodeid: Any, location: Any) -> None:
        message = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self.pipe.send(("warning", message))


def _live(forks: Forks, pipe: Connection) -> None:
    """Run pieces of work as long as there are any; does not come back."""
    code = 1
    try:
        # What the other process has to do at its end is not ours to do.
        atexit._clear()
        atexit.register(util._exit_function)
        config, session = forks.config, forks.session
        plugins = config.pluginmanager
        _own_capture(plugins.getplugin("capturemanager"))
        plugins.unregister(name="terminalreporter")
        plugins.register(Teller(config, pipe))
        folder = forks.folder / f"fork-{forks.started}"
        folder.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
        for number in chain(*(forks.work if forks.started % 2 else reversed(forks.work))):
            piece = forks.pieces[number]
            # After its last test, what belongs to the whole session stays; nothing else does.
            for item, following in zip(piece, [*piece[1:], session], strict=True):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
        pipe.close()
        code = 0
    finally:
        os._exit(code)


def _own_capture(capture: Any) -> None:
    """Output is caught in files, which the other forks must not share."""
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
