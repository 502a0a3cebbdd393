"""The command line: reads what a person typed, calls one verb, shows what came of it. No rules live here.

Results go to stdout, everything else to stderr. What is heavy is imported where it is used: `catchment items` starts
without the web server, the parsers and the client.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code. Whatever fails is said in one line."""
    from catchment.cli import failing, showing
    from catchment.cli.app import app

    try:
        code = app(args=list(arguments), prog_name="catchment", standalone_mode=False)
    except SystemExit as left:
        # From the libraries, for a pipe that was closed: they have silenced stdout already.
        code = left.code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 — the outermost place: no stack trace for people
        code = failing.told(error, as_json="--json" in arguments)
    return showing.flushed(code if isinstance(code, int) else 0)
