"""Leaves out tests that start a process, where these are not wanted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
REASON = "starts a process: `make test` runs it, `make check` does not"
_is_unwanted = False
_was_refused = False


@contextmanager
def processes_unwanted() -> Iterator[None]:
    """A test that starts a process within this block is skipped there, whether it does so itself or our code does."""
    global _is_unwanted, _was_refused
    _listen()
    _is_unwanted, _was_refused = True, False
    try:
        yield
    finally:
        _is_unwanted = False


def was_refused() -> bool:
    """Whether the last test wanted to start a process and was not allowed to."""
    return _was_refused


@cache
def _listen() -> None:
    # An audit hook cannot be removed again, so there is one, and it asks whether it is needed.
    sys.addaudithook(_hear)


def _hear(event: str, _: Any) -> None:
    global _was_refused
    if not _is_unwanted or event not in STARTS:
        return
    _was_refused = True
    if threading.current_thread() is threading.main_thread():
        pytest.skip(REASON)
    # Nobody in another thread knows what to do with a skipped test: this one goes on, and is skipped at its end.
    raise PermissionError("no process may be started here")
