"""Turns an exception into one line on stderr and an exit code; with --json, into the JSON format of errors."""

from __future__ import annotations

import errno
import inspect
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from catchment import logs
from catchment.cli import output
from catchment.errors import CatchmentError, InvalidInput, StoreError
from catchment.installation import as_typed, command
from catchment.settings import read_settings

EXIT_CODES = {
    0: "success",
    1: "internal error, failed check, or stopped before it was done",
    2: "invalid arguments or settings",
    3: "a source or its platform failed",
    4: "not found",
    5: "exists already, or is in use by another process",
    6: "the database is unavailable or cannot be used",
    7: "a secret cannot be decrypted: the master key is missing or wrong",
    8: "some entries were rejected; the others were processed",
    130: "interrupted",
    141: "broken pipe",
}
SOME_REJECTED = 8
EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + "."

# Not every version of the library exports the class; its subclass is exported.
_Usage: type[Exception] = typer.BadParameter.__bases__[0]


class WrongValue(typer.BadParameter):
    """A value that is refused with our own message; the library's messages are never shown."""


def report(error: BaseException, *, as_json: bool) -> int:
    """Report the error; returns the exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return 130
    if isinstance(error, BrokenPipeError):
        return output.PIPE_CLOSED
    if type(error).__name__ == "NoArgsIsHelpError":
        # A command group without a command: its help lists them. As in the library, this is not a success.
        output.note(str(error))
        return InvalidInput.exit_code
    failure = _as_ours(error)
    message = as_typed(logs.redact(str(failure)))
    output.note(f"error: {message}")
    if as_json:
        output.document({"error": {"code": failure.code, "message": message, "retryable": failure.retryable}})
    return failure.exit_code


def _as_ours(error: BaseException) -> CatchmentError:
    if isinstance(error, CatchmentError):
        return error
    if isinstance(error, _Usage):
        return _wrong_usage(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"{error.filename}: " if error.filename else ""
        return StoreError(f"{where}the disk is full", "free some space; nothing stored was lost")
    if isinstance(error, OSError) and error.filename:
        # A file that the user named: no such folder, no permission.
        return InvalidInput(f"{error.filename}: {error.strerror}")
    _log_a_bug(error)
    return CatchmentError(
        f"internal error ({type(error).__name__})",
        "this is a bug in catchment; CATCHMENT_LOG_LEVEL=debug shows where it happened",
    )


# ── usage errors ──────────────────────────────────────────────────────────────────────────────────────────────────


def _wrong_usage(error: BaseException) -> InvalidInput:
    """A usage error found by the library, in our own words. Its classes are distinguished by their names: which of them
    are exported differs between its versions."""
    context = getattr(error, "ctx", None)
    help_command = f"`{context.command_path if context is not None else command()} --help` shows the usage"
    what, suggestion = _mistake(type(error).__name__, error, context)
    return InvalidInput(what, f"{suggestion} {help_command}" if suggestion else help_command)


def _mistake(class_name: str, error: Any, context: Any) -> tuple[str, str]:
    """What is wrong, and what may have been meant."""
    name = _name_of(getattr(error, "param", None))
    if isinstance(error, WrongValue):
        return f"{name}: {error.message.rstrip('.')}", ""
    if class_name == "MissingParameter":
        return f"{name} is missing", ""
    if class_name == "BadParameter":
        return _unfit_value(name, error, context), ""
    if class_name == "NoSuchOption":
        return f"unknown option {error.option_name}", _perhaps(error.option_name, _options(context))
    if class_name == "BadOptionUsage":
        needs = "takes no value" if "not take" in error.message else "needs a value"
        return f"{error.option_name} {needs}", ""
    if hasattr(getattr(context, "command", None), "commands"):
        named = re.search(r"'([^']*)'", error.message)
        word = named[1] if named else ""
        return f"unknown command {word}", _perhaps(word, context.command.commands)
    words = re.search(r" \((.*)\)$", error.message)
    return (f"unexpected argument: {words[1]}" if words else "invalid usage"), ""


def _name_of(param: Any) -> str:
    """The name as in the help: the option, or the metavar of the argument."""
    if param is None:
        return "a value"
    longest: str = max(param.opts, key=len)
    return longest if longest.startswith("-") else param.metavar or longest.upper()


def _unfit_value(name: str, error: Any, context: Any) -> str:
    """What a value must be, by the declaration of the command."""
    callback = inspect.unwrap(context.command.callback) if context is not None else None
    declared = get_type_hints(callback, include_extras=True).get(error.param.name) if callback else None
    types, least, most = _declared(declared)
    if choices := next(
        (list(candidate) for candidate in types if isinstance(candidate, type) and issubclass(candidate, Enum)), None
    ):
        return f"{name} must be one of {', '.join(str(choice.value) for choice in choices)}"
    number = "a whole number" if int in types else "a number" if float in types else None
    if number is None:
        return f"{name} is invalid"
    span = {
        (True, True): f" from {least} to {most}",
        (True, False): f", {least} or more",
        (False, True): f", {most} at most",
        (False, False): "",
    }
    return f"{name} must be {number}{span[least is not None, most is not None]}"


def _declared(annotation: Any) -> tuple[set[Any], Any, Any]:
    """All types within an annotation, and the limits that its option declares."""
    if hasattr(annotation, "__metadata__"):
        types, _, _ = _declared(annotation.__origin__)
        info = annotation.__metadata__[0]
        return types, getattr(info, "min", None), getattr(info, "max", None)
    parts = get_args(annotation)
    return {annotation}.union(*(_declared(part)[0] for part in parts)), None, None


def _options(context: Any) -> list[str]:
    return (
        [name for param in context.command.params for name in (*param.opts, *param.secondary_opts)] if context else []
    )


def _perhaps(word: str, names: Iterable[str]) -> str:
    near = get_close_matches(word, list(names), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _log_a_bug(error: BaseException) -> None:
    try:
        settings = read_settings(os.environ, Path.cwd())
    except CatchmentError:
        return
    if settings.log_level == "debug":
        logs.configure(settings.log_format, settings.log_level)
        logs.logger(__name__).debug("internal error", exc_info=error)
