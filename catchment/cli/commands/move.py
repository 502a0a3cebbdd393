"""`move`: copy the archive to another database."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from threading import Event
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson
from catchment.errors import InvalidInput
from catchment.settings.formats import database as database_url
from catchment.store import move as archive
from catchment.store.database import Database
from catchment.store.table_copy import ReadOnlyDatabase


def move(
    to: Annotated[
        str, typer.Option(metavar="URL", help="The database to move to: sqlite:///FILE or postgresql://USER@HOST/NAME.")
    ],
    as_json: AsJson = False,
) -> None:
    """Copies everything from the database of CATCHMENT_DATABASE_URL, which is only read, to an empty one; compares both
    and builds the search index. Stop everything that collects first. If the command is interrupted, run it again: it
    continues. Afterwards, set CATCHMENT_DATABASE_URL to the new database; the old one is yours to keep or delete.

    A password in a command can be seen by other users of the machine: give it as PGPASSWORD, or in ~/.pgpass.
    """
    settings = context.settings()
    try:
        url = database_url.read(to)
    except ValueError:
        raise InvalidInput(f"--to must be {database_url.allowed}", field="to") from None
    clock, stop = context.clock_of(settings), Event()

    def bar(what: str, total: int) -> AbstractContextManager[output.Bar]:
        return output.bar(what, total, as_json=as_json)

    with (
        StopSignals() as stopping,
        closing(ReadOnlyDatabase(settings.database_url, pool_size=2, creates=False)) as source,
        closing(Database(url, pool_size=2)) as target,
    ):
        stopping.watch(stop, Event(), settings.stop_seconds, output.note)
        moved = archive.move(source, target, settings.home, clock.now, stop, bar)
        shown_from, shown_to = source.shown_url, target.shown_url
    rows, items = sum(moved.rows.values()), moved.rows.get("items", 0)
    output.result(
        as_json,
        {
            "from": shown_from,
            "to": shown_to,
            "rows": moved.rows,
            "is_resumed": moved.is_resumed,
            "seconds": {stage.lower(): round(seconds, 1) for stage, seconds in moved.seconds.items()},
        },
        f"Moved and verified {output.counted(items, 'item')}, {output.counted(rows, 'row')} in all, to {shown_to}.",
        f"Now set CATCHMENT_DATABASE_URL to the new database. {shown_from} is unchanged.",
    )
