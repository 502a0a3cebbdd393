"""Every command explains itself, and answers programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catchment import __version__
from catchment.cli.errors import EXIT_CODES
from catchment.cli.main import commands as every_command
from catchment.errors import CatchmentError
from tests.cli.conftest import Catchment


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(every_command(is_loaded=True)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_every_parameter_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    # Longer ones are cut off in the list of commands.
    assert len(command.help.split("\n\n")[0]) <= 60
    silent = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert silent == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_json(path: tuple[str, ...]) -> None:
    assert "--json" in {spelling for parameter in COMMANDS[path].params for spelling in parameter.opts}


def test_every_exit_code_of_our_errors_is_explained_in_the_help(catchment: Catchment) -> None:
    def family(kind: type[CatchmentError]) -> Iterator[type[CatchmentError]]:
        yield kind
        for subclass in kind.__subclasses__():
            yield from family(subclass)

    assert {error.exit_code for error in family(CatchmentError)} <= EXIT_CODES.keys()
    said = catchment("--help")
    assert said.code == 0
    assert all(words.split()[0] in said.out for words in EXIT_CODES.values())


def test_the_version_is_told(catchment: Catchment) -> None:
    assert catchment("--version").out == f"catchment {__version__}\n"
