"""The page of commands, from the commands' own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catchment.cli.errors import EXIT_CODES
from catchment.cli.main import commands

HEAD = """\
# Commands

<!-- Built by `make docs` from catchment/cli/; change it there. -->

Results go to stdout, logs and notes to stderr. With `--json`, every command prints one JSON document, or, for lists of
items, one document per line; an error is `{"error": {"code", "message", "retryable"}}`. Colours and progress bars
appear only on terminals; `NO_COLOR` switches colours off.
"""


def commands_page() -> str:
    return "\n".join([HEAD, *_exit_codes(), *_sections(commands(is_loaded=True), "catchment")])


def _exit_codes() -> Iterator[str]:
    yield "| exit code | meaning |"
    yield "|---|---|"
    yield from (f"| {code} | {words} |" for code, words in EXIT_CODES.items())
    yield ""


def _sections(command: Any, path: str) -> Iterator[str]:
    for name, subcommand in getattr(command, "commands", {}).items():
        if hasattr(subcommand, "commands"):
            yield from _sections(subcommand, f"{path} {name}")
        else:
            yield from _section(subcommand, f"{path} {name}")


def _section(command: Any, path: str) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter for parameter in command.params if parameter.param_type_name == "option" and parameter.name != "help"
    ]
    shown = (argument.metavar if argument.required else f"[{argument.metavar}]" for argument in arguments)
    yield f"## {' '.join((path, *shown))}"
    yield ""
    yield command.help.strip()
    yield ""
    yield "| | |"
    yield "|---|---|"
    for parameter in arguments:
        yield f"| `{_cell(parameter.metavar)}` | {parameter.help} |"
    for parameter in options:
        yield f"| `{_cell(_spelling(parameter))}` | {parameter.help}{_default(parameter)} |"
    yield ""


def _cell(text: str) -> str:
    """Returns the text for a cell of a table, where a bar would end it."""
    return text.replace("|", "\\|")


def _spelling(option: Any) -> str:
    if option.is_flag:
        return str(option.opts[0])
    value = option.metavar or "|".join(option.type.choices)
    return f"{option.opts[0]} {value}"


def _default(option: Any) -> str:
    return f" Default: {option.default}." if option.default not in (None, False, True) and not option.required else ""
