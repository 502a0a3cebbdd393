"""The page of commands, from the commands' own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catchment.cli.errors import EXIT_CODES
from catchment.cli.main import commands

HEAD = """\
# Commands

<!-- Built by `make docs` from catchment/cli/; change it there. -->

Results go to stdout, logs and remarks to stderr. Every command takes `--json`, for programs: it then answers with one
JSON document, or, for lists of items, with one a line; a failure is `{"error": {"code", "message", "retryable"}}`.
Colours and bars appear on terminals only; `NO_COLOR` is respected.
"""


def commands_page() -> str:
    return "\n".join([HEAD, *_exit_codes(), *_sections(commands(is_loaded=True), "catchment")])


def _exit_codes() -> Iterator[str]:
    yield "| exit code | meaning |"
    yield "|---|---|"
    yield from (f"| {code} | {words} |" for code, words in EXIT_CODES.items())
    yield ""


def _sections(command: Any, path: str) -> Iterator[str]:
    for name, one in getattr(command, "commands", {}).items():
        if hasattr(one, "commands"):
            yield from _sections(one, f"{path} {name}")
        else:
            yield from _section(one, f"{path} {name}")


def _section(command: Any, path: str) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    shown = (one.metavar if one.required else f"[{one.metavar}]" for one in arguments)
    yield f"## {' '.join((path, *shown))}"
    yield ""
    yield command.help.strip()
    yield ""
    yield "| | |"
    yield "|---|---|"
    for one in arguments:
        yield f"| `{one.metavar}` | {one.help} |"
    for one in options:
        yield f"| `{_spelling(one)}` | {one.help}{_default(one)} |"
    yield ""


def _spelling(option: Any) -> str:
    return option.opts[0] if option.is_flag else f"{option.opts[0]} {option.metavar}"


def _default(option: Any) -> str:
    return f" Default: {option.default}." if option.default not in (None, False, True) and not option.required else ""
