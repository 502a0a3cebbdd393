"""`export`: what is stored, for other programs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, OfSource, Since


def export(
    output: Annotated[str, typer.Option(metavar="FILE", help="The file to write, or - for stdout.")],
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="By default what the file's name ends with, else jsonl. jsonl: one JSON object a line. csv: for "
            "spreadsheets; text that begins like a formula gets a ' in front, lists are JSON. parquet: for analysis; "
            "needs the extra `parquet`.",
        ),
    ] = None,
    source: OfSource = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only those that a source of this kind showed first.")
    ] = None,
    since: Since = None,
    with_revisions: Annotated[
        bool, typer.Option("--with-revisions", help="Each item with what it said before.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write every item to a file.

    It appears under its name only when it is whole, in a folder that is made if there is none. How many items it
    holds, and its SHA-256, are told.
    """
    from catchment.collect import exporting
    from catchment.store.exports import Chosen

    format = format or _ending(output) or "jsonl"
    exporting.needed(format)
    chosen = Chosen(source, kind, since)
    with doors.opened_store(doors.settings()) as (store, _):
        if source is not None:
            store.sources.get(source, even_removed=True)
        if kind is not None:
            doors.names(store).source_kind(kind)
        if output == "-":
            exporting.export(store, showing.stdout(), format, chosen, with_revisions=with_revisions)
            return
        total = store.items.count() if chosen.is_all else None
        is_shown = showing.is_watched() and not as_json
        with showing.bar("exporting", total, is_shown=is_shown) as bar, showing.whole_file(Path(output)) as file:
            count = exporting.export(
                store, file, format, chosen, with_revisions=with_revisions, seen=lambda done: bar.move(done)
            )
    _tell(format, output, count, as_json)


def _ending(output: str) -> str | None:
    """The format that the file's name ends with, if it does."""
    from catchment.collect.exporting import FORMATS

    ending = Path(output).suffix.lstrip(".").lower()
    return ending if ending in FORMATS else None


def _tell(format: str, output: str, count: int, as_json: bool) -> None:
    with Path(output).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = Path(output).stat().st_size
    if as_json:
        showing.document({"format": format, "file": output, "items": count, "bytes": size, "sha256": digest})
    else:
        showing.say(f"{showing.counted(count, 'item')} written to {output} ({size:,} bytes)")
        showing.say(f"sha256 {digest}")
