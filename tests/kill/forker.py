"""Runs `catchment` commands in forked processes, so that fifty of them do not pay for fifty starts of Python.

Reads one line each: the words of a command. Answers with the process id; then, when the process has ended, with its
exit status. The forked process is a real one: it is killed like any other.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    import catchment.cli
    import catchment.collect.rounds
    import catchment.platforms
    import catchment.refine
    import catchment.shop

    catchment.platforms.installed()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.argv = ["catchment", *line.split()]
            try:
                catchment.cli.main()
            except SystemExit as ended:
                os._exit(int(ended.code or 0))
            os._exit(0)
        print(pid, flush=True)  # noqa: T201
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
