"""What several commands are given: the parameters that look and are checked alike everywhere."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeVar

import typer

from catchment.dates import asked_moment

Number = TypeVar("Number", int, "int | None", "list[int] | None")

# What the databases can count to.
_LARGEST = 2**63 - 1


def countable(given: Number) -> Number:
    """Ids and limits: 1 and more, and no more than a database takes."""
    for one in given if isinstance(given, list) else [given]:
        if one is not None and not 1 <= one <= _LARGEST:
            raise typer.BadParameter(f"{one} is not a number that this could have")
    return given


def reached(given: int | None) -> int | None:
    """A change number that was read up to: 0 where nothing was."""
    return given if given == 0 else countable(given)


def moment(given: str) -> datetime:
    """A time as a person types it."""
    try:
        return asked_moment(given)
    except ValueError as error:
        raise typer.BadParameter(f"{given!r} is {error}") from None


AsJson = Annotated[bool, typer.Option("--json", help="Answer with JSON, for programs.")]

SourceId = Annotated[int, typer.Argument(metavar="ID", callback=countable, help="The source's number.")]
ItemId = Annotated[int, typer.Argument(metavar="ITEM_ID", callback=countable, help="The item's number.")]
OfSource = Annotated[
    int | None, typer.Option("--source", metavar="ID", callback=countable, help="Only those of this source.")
]
TheseSources = Annotated[
    list[int] | None,
    typer.Option(
        "--source", metavar="ID", callback=countable, help="This source, whatever its schedule says. May be repeated."
    ),
]
Limit = Annotated[int, typer.Option(metavar="N", callback=countable, help="How many at most.")]
Since = Annotated[
    datetime | None,
    typer.Option(metavar="TIME", parser=moment, help="Only from then on: a day, or a time; in UTC unless it says."),
]
