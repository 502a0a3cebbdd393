"""A home of its own for each test, and the command line in it: in this process, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from catchment.cli.main import run
from tests.databases import sqlite_ready
from tests.feedsite import FeedSite


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def failure(self) -> tuple[int, str]:
        """Exit code, and the code of the error, which is told as JSON."""
        return self.code, self.json["error"]["code"]


Catchment = Callable[..., Said]

SETTING_UP = {("sources", "add"), ("sources", "import"), ("credentials", "add"), ("migrate",)}
"""Commands with which most tests begin, and which set up a database where there is none: that takes most of their time.
Here they find one; tests that start processes have them make one."""


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        yield site


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The surroundings of a command: a home, a working folder without files of settings, nothing else set."""
    for name in os.environ:
        if name.startswith(("CATCHMENT_", "COLLECTOR_", "COOKIE_", "FETCH_INTERVAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CATCHMENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CATCHMENT_ALLOW_PRIVATE_NETWORKS", "true")
    monkeypatch.setenv("CATCHMENT_RETRY_WAITS", "none")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


@pytest.fixture
def catchment(home: Path, monkeypatch: pytest.MonkeyPatch) -> Catchment:
    """Run a command in this process."""

    def command(*arguments: object, stdin: bytes = b"") -> Said:
        if arguments[:2] in SETTING_UP and "CATCHMENT_DATABASE_URL" not in os.environ:
            sqlite_ready(f"sqlite:///{home / 'catchment.db'}")
        streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (stdin, b"", b"")]
        with monkeypatch.context() as patch:
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            code = run([str(argument) for argument in arguments])
        for stream in streams[1:]:
            stream.flush()
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
        return Said(code, out, err)

    return command


class Process:
    """A command in a process of its own."""

    def __init__(self, *arguments: object, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "catchment", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait_for_words(self, words: str) -> None:
        """Until they stand on stderr."""
        assert self.process.stderr is not None
        while words not in (line := self.process.stderr.readline().decode()):
            assert line, f"it ended without saying {words!r}"

    def said(self) -> Said:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=600)
        return Said(self.process.returncode, out.decode(), err.decode())


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Process]]:
    """Start a command in a process of its own; it is gone after the test."""
    started: list[Process] = []

    def command(*arguments: object, **environ: str) -> Process:
        started.append(Process(*arguments, **environ))
        return started[-1]

    yield command
    for server in started:
        server.process.kill()
        server.process.communicate()
