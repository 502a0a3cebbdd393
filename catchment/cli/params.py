"""Parameters that several commands share, with their validation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeVar

import typer

from catchment.cli import context
from catchment.cli.errors import WrongValue
from catchment.clock import EPOCH
from catchment.text.dates import asked_moment, asked_time

Number = TypeVar("Number", int, "int | None", "list[int] | None")

# The largest integer of the databases.
_LARGEST = 2**63 - 1


def countable(number: Number) -> Number:
    """Ids and limits: from 1 to the largest integer of a database."""
    for value in number if isinstance(number, list) else [number]:
        if value is not None and not 1 <= value <= _LARGEST:
            raise WrongValue(f"{value} is out of range")
    return number


def change_number(number: int | None) -> int | None:
    """The last change that was read; 0 if none was."""
    return number if number == 0 else countable(number)


def moment(text: str) -> datetime:
    """A time in the past as a person types it: a day, a time, `yesterday`, `2d`."""
    try:
        asked = asked_time(text)
        # Only a relative time needs the clock.
        return asked.at(EPOCH if asked.is_fixed else context.clock_of(context.settings()).now())
    except ValueError as error:
        raise WrongValue(f"{text!r} is {error}") from None


def fixed_moment(text: str) -> datetime:
    """A day or a time, also in the future: `2d` would be ambiguous."""
    try:
        return asked_moment(text)
    except ValueError as error:
        raise WrongValue(f"{text!r} is {error}") from None


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

SourceId = Annotated[int, typer.Argument(metavar="ID", callback=countable, help="The id of the source.")]
ItemId = Annotated[int, typer.Argument(metavar="ITEM_ID", callback=countable, help="The id of the item.")]
OfSource = Annotated[
    str | None, typer.Option("--source", metavar="SOURCE", help="Only this source: its id, name or address.")
]
OfSourceKind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Only sources of this kind.")]
OfKind = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="Only this kind of source (rss) or of item (entry).")
]
OfPlatform = Annotated[str | None, typer.Option("--platform", metavar="PLATFORM", help="Only this platform.")]
OfCategory = Annotated[
    str | None,
    typer.Option("--category", metavar="CATEGORY", help="Only sources in this category (in OPML, a folder)."),
]
ByAuthor = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="Only this author, spelled as on the platform.")
]
WithTag = Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only items with exactly this tag.")]
IsDeleted = Annotated[
    bool | None,
    typer.Option("--deleted/--not-deleted", help="Only items deleted at the source, or only items that are not."),
]
OnlyThreads = Annotated[bool, typer.Option("--threads", help="Only the opening posts of forum threads.")]
Limit = Annotated[int, typer.Option(metavar="N", callback=countable, help="Maximum number to show.")]
Since = Annotated[
    datetime | None,
    typer.Option(
        metavar="TIME", parser=moment, help="Only items since this time: a date, a time (UTC), yesterday, 2d or 12h."
    ),
]
Until = Annotated[
    datetime | None, typer.Option(metavar="TIME", parser=moment, help="Only before this time; written as for --since.")
]
