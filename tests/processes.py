"""Leaves out tests that start a process, where these are not wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_is_unwanted = False


@contextmanager
def processes_unwanted() -> Iterator[None]:
    """A test that starts a process within this block is skipped there, whether it does so itself or our code does."""
    global _is_unwanted
    _listen()
    _is_unwanted = True
    try:
        yield
    finally:
        _is_unwanted = False


@cache
def _listen() -> None:
    # An audit hook cannot be removed again, so there is one, and it asks whether it is needed.
    sys.addaudithook(_hear)


def _hear(event: str, _: Any) -> None:
    if _is_unwanted and event in STARTS:
        pytest.skip("starts a process: `make test` runs it, `make check` does not")
