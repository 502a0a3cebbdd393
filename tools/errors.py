"""The page of error codes, from the family of errors itself: its tree, and each class's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catchment import errors
from catchment.errors import CatchmentError
from catchment.web.api.errors import STATUSES

HEAD = """\
# Error codes

<!-- Built by `make docs` from catchment/errors.py; change it there. -->

Every error has a code for programs and a message for people that names the source and says what would help. The code
appears in `catchment collect --json`, in a source's `last_error_code`, in run records, in log lines and in error
responses of the API.

**Again** says whether the same request may succeed later without any action (`retryable`). A source is visited again at
its next time in any case, unless it is retired (`GONE`) or a person paused it. **Exit** is the exit code of a command
that ends with this; **HTTP** is the status of an API answer about it.

| code | meaning | what to do | again | exit | HTTP |
|---|---|---|---|---|---|
"""

OTHERS = {
    "HELD": "Another process is collecting this source at this moment; the message says which. The visit was skipped.",
    "CUT_OFF": "The process ended before this visit did (a kill, a power cut). What it had stored is kept; the source "
    "is visited again.",
    "NOT_VISITED": "The run ended before this source's turn: a stop, or a database that was unavailable. It is still "
    "due.",
    "UNAUTHORIZED": "The API was called without a key, or with one that is not known (HTTP 401).",
    "TOO_MANY_TRIES": "Too many wrong keys or sign-in links came from this address; wait as `Retry-After` says "
    "(HTTP 429).",
}
"""Codes that no error has: they say how a visit or a request ended."""

OTHERS_HEAD = """
## Other codes

These codes appear in records of visits and in answers of the API.

| code | meaning |
|---|---|
"""

TAIL = """
Requests that are invalid as HTTP get a code with the name of the status, such as `METHOD_NOT_ALLOWED`. With status 413,
`TOO_LARGE` means the body of the request itself.
"""

_BRANCH = re.compile(r"^[│├└─ ]*([A-Z]\w+) {2,}(\S.*)$", re.MULTILINE)


def family(kind: type[CatchmentError] = CatchmentError) -> Iterator[type[CatchmentError]]:
    """The errors of `errors.py`, a parent before its children. Doors may have finer ones, with the same codes."""
    yield kind
    for subclass in kind.__subclasses__():
        if subclass.__module__ == errors.__name__:
            yield from family(subclass)


def meanings() -> dict[str, str]:
    """What each class means, by its name: the words of the tree."""
    return dict(_BRANCH.findall(errors.__doc__ or ""))


def advice(kind: type[CatchmentError]) -> str:
    """What a person does about it: the first paragraph of the class's own words."""
    own = kind.__dict__.get("__doc__") or ""
    return " ".join(own.split("\n\n")[0].split())


def errors_page() -> str:
    said = meanings()
    rows = [
        f"| `{error.code}` | {said[error.__name__]} | {advice(error)} | {'yes' if error.retryable else 'no'} "
        f"| {error.exit_code} | {_status(error)} |"
        for error in family()
    ]
    others = [f"| `{code}` | {words} |" for code, words in OTHERS.items()]
    return HEAD + "\n".join(rows) + "\n" + OTHERS_HEAD + "\n".join(others) + "\n" + TAIL


def _status(kind: type[CatchmentError]) -> int:
    return next(STATUSES[base] for base in kind.__mro__ if base in STATUSES)
