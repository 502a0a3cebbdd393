"""From a failure to one line on stderr and an exit code; with --json, to the one shape that errors have."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from catchment.cli import showing
from catchment.errors import CatchmentError, InvalidInput

EXIT_CODES = {
    0: "done",
    1: "something failed inside, was found wrong, or was cut off by a stop",
    2: "what was given is wrong",
    3: "a source or its platform failed",
    4: "there is no such thing",
    5: "it is there already, or somebody else has it",
    6: "the database cannot do it now",
    7: "the vault: no key, or a secret that it does not open",
    8: "some of what was given was refused; the rest was done",
    130: "interrupted",
    141: "whoever read our output has gone",
}
SOME_REFUSED = 8
EPILOG = "Exit codes: " + " · ".join(f"{code} {words}" for code, words in EXIT_CODES.items()) + "."

# The class is not exported by every version of the library; its subclass is.
_Usage: type[Exception] = typer.BadParameter.__bases__[0]


def told(error: BaseException, *, as_json: bool) -> int:
    """Say it; gives the exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return 130
    if isinstance(error, BrokenPipeError):
        return showing.PIPE_CLOSED
    failure = _as_ours(error)
    # Not at the top: most commands end well, and never need it.
    from catchment.logs import redact

    message = redact(str(failure))
    showing.note(f"error: {message}")
    if as_json:
        showing.document({"error": {"code": failure.code, "message": message, "retryable": failure.retryable}})
    return failure.exit_code


def _as_ours(error: BaseException) -> CatchmentError:
    if isinstance(error, CatchmentError):
        return error
    if isinstance(error, _Usage):
        return _wrong_usage(error)
    if isinstance(error, OSError) and error.filename:
        # A file that a person named: no such folder, no permission, no space.
        return InvalidInput(f"{error.filename}: {error.strerror}")
    _log_a_bug(error)
    return CatchmentError(
        f"an error inside catchment ({type(error).__name__})",
        "this is our mistake; CATCHMENT_LOG_LEVEL=debug shows where it happened",
    )


def _wrong_usage(error: BaseException) -> InvalidInput:
    words = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "catchment"
    return InvalidInput(words.rstrip("."), f"`{command} --help` shows how it is used")


def _log_a_bug(error: BaseException) -> None:
    from catchment import logs
    from catchment.settings import read_settings

    try:
        settings = read_settings(os.environ, Path.cwd())
    except CatchmentError:
        return
    if settings.log_level == "debug":
        logs.configure(settings.log_format, settings.log_level)
        logs.logger(__name__).debug("an error inside", exc_info=error)
