"""The command line: parses arguments, calls one function, shows the result. It contains no rules.

Results go to stdout, everything else to stderr.
"""

from catchment.cli.main import main

__all__ = ["main"]
