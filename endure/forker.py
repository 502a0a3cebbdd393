"""Starts `catchment` commands by forking a process that has loaded the program already.

Reads `loaded` and answers as soon as it is; reads `start WORDS…` and answers with the process id; reads `wait PID` and
answers with the exit code; reads `look PID` and answers with the exit code, or with nothing if it still runs.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    import psycopg  # noqa: F401 — loaded by the first connection otherwise, in every fork again

    import catchment.app
    import catchment.engines.distributed.beat
    import catchment.engines.distributed.worker
    import catchment.engines.embedded
    import catchment.platforms
    from catchment.cli.main import commands

    catchment.platforms.installed()
    commands(is_loaded=True)
    # What is loaded stays as it is: forks share it with us as long as their garbage collectors leave it alone.
    gc.freeze()
    answer: int | str
    while line := sys.stdin.readline():
        verb, *words = line.split()
        if verb == "loaded":
            answer = "yes"
        elif verb in ("wait", "look"):
            pid, status = os.waitpid(int(words[0]), 0 if verb == "wait" else os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else ""
        else:
            answer = os.fork()
            if answer == 0:
                _become(words)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _become(words: list[str]) -> None:
    from catchment.cli.main import run

    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    code = 1
    try:
        code = run(words)
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
