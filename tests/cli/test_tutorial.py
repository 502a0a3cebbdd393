"""docs/tutorial.md works as it is written: every file, every command, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.conftest import Catchment, Said
from tools.docs import REPOSITORY

PAGE = (REPOSITORY / "docs/tutorial.md").read_text()
SECTIONS = dict(
    zip(re.findall(r"^## (\d)", PAGE, re.MULTILINE), re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:], strict=True)
)


def block(language: str, section: str) -> str:
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL))


FIRST_PUBLISHED = 1_767_340_800


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The folder over HTTP, as `python3 -m http.server` has it; yields the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def receiver(code: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The page's receiver in a process of its own, on a free port."""
    last_line = 'HTTPServer(("127.0.0.1", 8002), Receiver).serve_forever()'
    announcing = (
        'server = HTTPServer(("127.0.0.1", 0), Receiver)',
        "print(server.server_port, flush=True)",
        "server.serve_forever()",
    )
    announced = code.replace(last_line, "\n".join(announcing))
    assert announced != code
    with subprocess.Popen(
        [sys.executable, "-c", announced], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


class Reader:
    """Somebody who types what the page says."""

    def __init__(self, catchment: Catchment) -> None:
        self._catchment = catchment
        self.ports: dict[str, int] = {}
        self.minutes = 0

    def follow(self, section: str) -> list[Said]:
        """Run the commands of a section in order; return what ours said."""
        said = []
        for line in block("sh", section).splitlines():
            for port, free in self.ports.items():
                line = line.replace(f":{port}/", f":{free}/")
            program, *words = shlex.split(line)
            if program == "catchment":
                said.append(self._catchment(*words))
            elif program == "sed":
                subprocess.run([program, *words], check=True)
                # Last-Modified has whole seconds: a reader is slower than that, a test is not.
                self.minutes += 1
                edited_at = FIRST_PUBLISHED + 60 * self.minutes
                os.utime(words[-1], (edited_at, edited_at))
        return said


@pytest.mark.process
def test_every_step_of_the_tutorial_shows_what_the_page_says(catchment: Catchment) -> None:
    reader = Reader(catchment)
    Path("feed.xml").write_text(block("xml", "2"), encoding="utf-8")
    os.utime("feed.xml", (FIRST_PUBLISHED, FIRST_PUBLISHED))
    with served(Path.cwd()) as port, receiver(block("python", "6")) as (webhook, process):
        reader.ports = {"8001": port, "8002": webhook}
        added, collected, items, shown = reader.follow("3")
        assert [step.code for step in (added, collected, items, shown)] == [0, 0, 0, 0]
        assert "Harbour news" in added.out + added.err
        assert "2 new" in collected.out + collected.err
        assert "The bridge opens" in items.out
        assert "at noon" in shown.out
        edited, revisions, repeated = reader.follow("4")
        assert "1 updated" in edited.out + edited.err
        assert "at noon" in revisions.out
        assert "0 new, 0 updated" in repeated.out + repeated.err
        bridge, tides = reader.follow("5")
        assert ("The bridge opens" in bridge.out, "潮汐表" in tides.out) == (True, True)
        *_, hits = reader.follow("6")
        assert "The bridge opens after the storm" in hits.out
        assert process.stdout is not None
        assert process.stdout.readline() == "watch.matched The bridge opens after the storm\n"
    failed, status = reader.follow("7")
    assert failed.code == 3
    assert (status.code, "Failing source" in status.out) == (0, True)
    (removed,) = reader.follow("8")
    assert removed.code == 0
    assert catchment("items").out.count("bridge") == 2
