"""Exports items to JSON lines, CSV and Parquet, in bounded memory for any number of items."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import IO, Any

import msgspec

from catchment import installation
from catchment.errors import InvalidInput
from catchment.model import as_json
from catchment.store import Store
from catchment.store.item_fields import ItemView, extended
from catchment.store.items.items import ExportFilter
from catchment.store.items.views import RevisionView
from catchment.store.row_mappers import field_types

_encode = msgspec.json.Encoder().encode

COLUMNS = ItemView.__struct_fields__
"""The columns of every table, in this order; `revisions` follow where they are requested."""
# A spreadsheet takes a cell that begins like this for a formula, and would run what a stranger wrote.
# Some fold the full-width signs of East Asian keyboards into the ordinary ones first.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_ROWS = 1000


class ItemWithRevisions(ItemView, frozen=True):
    """An item with its earlier versions."""

    revisions: tuple[RevisionView, ...]


Writer = Callable[[IO[bytes], Iterable[ItemView], type[ItemView]], None]
"""Writes items of a type to a file, with a column for each of its fields."""


def needed(format: str) -> Writer:
    """Returns the writer of this format; raises an error that says what would help if there is none."""
    if format not in FORMATS:
        raise InvalidInput(
            "unknown format {format!r}",
            "known formats: {formats}",
            field="format",
            format=format,
            formats=", ".join(FORMATS),
        )
    if format == "parquet" and not installation.is_installed("parquet"):
        raise InvalidInput(
            "Parquet needs pyarrow, which is not installed",
            "run `{command}`, or export as jsonl or csv",
            field="format",
            command=installation.install_command("parquet"),
        )
    return FORMATS[format]


def export(
    store: Store,
    file: IO[bytes],
    format: str,
    chosen: ExportFilter,
    *,
    with_revisions: bool = False,
    seen: Callable[[int], None] = lambda _: None,
) -> int:
    """Writes the chosen items; returns their number."""
    count, items = 0, store.exports.of(chosen)

    def with_history(item: ItemView) -> ItemWithRevisions:
        # Most items were never changed and need no query.
        revisions = store.items.revisions(item.id) if item.version > 1 else ()
        return extended(ItemWithRevisions, item, tuple(revisions))

    def counted() -> Iterator[ItemView]:
        nonlocal count
        for item in map(with_history, items) if with_revisions else items:
            count += 1
            if count % _ROWS == 0:
                seen(count)
            yield item

    needed(format)(file, counted(), ItemWithRevisions if with_revisions else ItemView)
    return count


def written(format: str, items: Iterable[ItemView]) -> bytes:
    """Returns a few items, encoded all at once."""
    file = io.BytesIO()
    needed(format)(file, items, ItemView)
    return file.getvalue()


def _json_lines(file: IO[bytes], items: Iterable[ItemView], _: type[ItemView]) -> None:
    for item in items:
        file.write(_encode(as_json(item)) + b"\n")


def _csv(file: IO[bytes], items: Iterable[ItemView], type_: type[ItemView]) -> None:
    line = io.StringIO()
    writer = csv.writer(line)
    columns = type_.__struct_fields__
    writer.writerow(columns)
    for item in items:
        writer.writerow([_cell(as_json(getattr(item, name))) for name in columns])
        file.write(line.getvalue().encode("utf-8", "replace"))
        line.seek(0)
        line.truncate()
    file.write(line.getvalue().encode())


def _cell(value: Any) -> Any:
    """Returns a cell: unknown is empty, booleans are true and false, lists are JSON; text never begins like a
    formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _encode(value).decode()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(file: IO[bytes], items: Iterable[ItemView], type_: type[ItemView]) -> None:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    kinds = {datetime: pyarrow.timestamp("us", tz="UTC"), bool: pyarrow.bool_(), int: pyarrow.int64()}
    schema = pyarrow.schema(
        [(name, kinds.get(field.type, pyarrow.string())) for name, field in field_types(type_).items()]
    )
    rows = iter(items)
    with ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS)):
            typed = [{name: _value(getattr(item, name)) for name in schema.names} for item in batch]
            writer.write_table(pyarrow.Table.from_pylist(typed, schema=schema))


def _value(value: Any) -> Any:
    """Returns a value for Parquet: times have a type of their own there, lists are JSON."""
    if isinstance(value, datetime):
        return value
    return _encode(as_json(value)).decode() if isinstance(value, tuple) else as_json(value)


FORMATS: dict[str, Writer] = {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet}
