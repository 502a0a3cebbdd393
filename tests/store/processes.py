"""Other processes of the same deployment, real ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Hand:
    """A process at work, see `tests.store.hands`."""

    def __init__(self, deed: str, url: str, home: Path, *more: object) -> None:
        command = [sys.executable, "-m", "tests.store.hands", deed, url, str(home), *map(str, more)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def hear(self) -> Any:
        """What it says next; if it said nothing, why."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the process ended without a word: {self._process.communicate()[1]}")
        return json.loads(line)

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """With no chance to say farewell."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def hands(number: int, deed: str, url: str, home: Path, *more: object) -> Iterator[list[Hand]]:
    several = [Hand(deed, url, home, *more) for _ in range(number)]
    try:
        yield several
    finally:
        for one in several:
            one.close()
