"""Other processes of the same deployment, real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.forked import Forked
from tests.store.hands import main


class Hand:
    """A process at work, see `tests.store.hands`."""

    def __init__(self, action: str, url: str, home: Path, *more: object) -> None:
        self._process = Forked(main, action, url, str(home), *map(str, more))

    def hear(self) -> Any:
        """What it says next; if it said nothing, why."""
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the process ended without a word: {self._process.stderr.read()}")
        return json.loads(line)

    def go(self) -> None:
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """With no chance to say farewell."""
        self._process.kill()

    def end(self) -> None:
        self._process.stdin.close()
        assert self._process.code() == 0

    def close(self) -> None:
        self._process.close()


@contextmanager
def hands(number: int, action: str, url: str, home: Path, *more: object) -> Iterator[list[Hand]]:
    several = [Hand(action, url, home, *more) for _ in range(number)]
    try:
        yield several
    finally:
        for process in several:
            process.close()
