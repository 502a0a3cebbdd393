"""Others who do the same work, on the same workload: each in its usual way, with a SQLite database at the end.

They live in an environment of their own, `.venv-bench`, and are run as `python -m bench.peers.NAME ACTION BASE FEEDS
HOME`. The actions: `prepare` (once, off the clock), `idle` (start up, open the database, do nothing), `collect`. Each
prints its peak of memory last.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def tell_peak() -> None:
    """In MB. On Linux not by `getrusage`, which counts what a process was before it became this program."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    else:
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10
    print(kilobytes / 2**10)
