"""Items as files that other programs read: JSON lines, CSV, Parquet. Bounded memory, however many there are."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from itertools import islice
from typing import IO, Any

import msgspec

from catchment.errors import InvalidInput
from catchment.store import Store
from catchment.store.exports import Chosen
from catchment.store.shown import FLAGS, LISTS, NUMBERS, SHOWN, TIMES

_encode = msgspec.json.Encoder().encode

COLUMNS = (*SHOWN, "last_seen_at", "references")
"""Of every table, in this order; `revisions` stand behind them, where they are asked for."""
_TIMES = {*TIMES, "last_seen_at"}
_LISTS = {*LISTS, "references", "revisions"}
# A spreadsheet takes a cell that begins so for a formula, and would run what a stranger wrote.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ROWS = 1000

Item = dict[str, Any]
Writer = Callable[[IO[bytes], Iterator[Item], tuple[str, ...]], None]


def needed(format: str) -> Writer:
    """What writes this format; an error that says what would help, if nothing does."""
    if format not in FORMATS:
        raise InvalidInput(f"unknown format {format!r}", f"known formats: {', '.join(FORMATS)}", field="format")
    if format == "parquet" and find_spec("pyarrow") is None:
        raise InvalidInput(
            "Parquet needs pyarrow, which is not installed",
            "install catchment with the extra `parquet`, or take jsonl",
            field="format",
        )
    return FORMATS[format]


def export(
    store: Store,
    file: IO[bytes],
    format: str,
    chosen: Chosen,
    *,
    with_revisions: bool = False,
    seen: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the chosen items; gives how many there were."""
    count = 0

    def counted() -> Iterator[Item]:
        nonlocal count
        for item in _told(store, chosen, with_revisions):
            count += 1
            if count % _ROWS == 0:
                seen(count)
            yield item

    needed(format)(file, counted(), (*COLUMNS, "revisions") if with_revisions else COLUMNS)
    return count


def written(format: str, items: Sequence[Mapping[str, Any]]) -> bytes:
    """A few items, all at once."""
    file = io.BytesIO()
    needed(format)(file, (dict(item) for item in items), COLUMNS)
    return file.getvalue()


def _told(store: Store, chosen: Chosen, with_revisions: bool) -> Iterator[Item]:
    for item in store.exports.of(chosen):
        if with_revisions:
            # Most items were never changed, and need no question.
            item["revisions"] = store.items.revisions(item["id"]) if item["version"] > 1 else []
        yield item


def _json_lines(file: IO[bytes], items: Iterator[Item], _columns: tuple[str, ...]) -> None:
    for item in items:
        file.write(_encode(item) + b"\n")


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _csv(file: IO[bytes], items: Iterator[Item], columns: tuple[str, ...]) -> None:
    line = io.StringIO()
    writer = csv.writer(line)
    writer.writerow(columns)
    for item in items:
        writer.writerow([_cell(item[name]) for name in columns])
        file.write(line.getvalue().encode("utf-8", "replace"))
        line.seek(0)
        line.truncate()
    file.write(line.getvalue().encode())


def _cell(value: Any) -> Any:
    """Unknown is empty, yes and no are true and false, lists are JSON; text never begins like a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _encode(value).decode()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


# ── Parquet ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _parquet(file: IO[bytes], items: Iterator[Item], columns: tuple[str, ...]) -> None:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema = pyarrow.schema([(name, _type_of(name, pyarrow)) for name in columns])
    with ParquetWriter(file, schema, compression="zstd") as writer:
        while rows := list(islice(items, _ROWS)):
            typed = [{name: _value(name, item[name]) for name in columns} for item in rows]
            writer.write_table(pyarrow.Table.from_pylist(typed, schema=schema))


def _type_of(name: str, pyarrow: Any) -> Any:
    if name in _TIMES:
        return pyarrow.timestamp("us", tz="UTC")
    return pyarrow.bool_() if name in FLAGS else pyarrow.int64() if name in NUMBERS else pyarrow.string()


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _TIMES:
        return datetime.fromisoformat(value)
    return _encode(value).decode() if name in _LISTS else value


FORMATS: dict[str, Writer] = {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet}
