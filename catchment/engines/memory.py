"""How the memory of a process with many threads is shared out."""

from __future__ import annotations

import ctypes
import os

_M_ARENA_MAX = -8
"""The name that glibc gives it, for `mallopt`."""
_ARENAS = 2


def share_memory() -> None:
    """Let all threads take memory from few heaps. glibc gives nearly each its own, and what one thread frees no other
    may use: with thirty threads that read bodies by turns, a quarter of the process would lie idle.

    Before the threads begin. Where the C library is another one, or the operator has set it, nothing is changed.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)
