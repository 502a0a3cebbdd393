"""Reads all texts of the database for the secret scan.

Table by table, a few rows at a time, so that neither memory nor locks grow with the archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import zstandard
from sqlalchemy import Column, LargeBinary, Table, Text

from catchment.model import Record
from catchment.store.database import StorePart, Transaction, reads
from catchment.store.schema import metadata

BY_OTHERS: dict[str, frozenset[str] | None] = {
    "aliases": None,
    "facets": None,
    "forgotten": None,
    "gaps": frozenset(("from_ids", "to_ids")),
    "hot_sets": None,
    "indexed": None,
    "item_references": None,
    "items": None,
    "outbox": frozenset(("body",)),
    "progress": frozenset(("cursor", "etag", "last_modified", "watermark_ids")),
    "raw_answers": frozenset(("body",)),
    "revisions": None,
    "sources": frozenset(("name", "categories")),
    "tags": None,
    "watch_hits": None,
    "watches": None,
}
"""Where text by others, or a user's search terms, are stored: such text may look like a secret. Whole tables, or
columns of one. Everything else is our own text, which has been redacted."""
COMPRESSED = {("raw_answers", "body")}
_ROWS = 100
# Answers are large: one page of them must fit into memory.
_ANSWERS = 10


class ColumnValue(Record, frozen=True):
    """The value of one column in one row."""

    column: str
    text: bytes
    is_by_others: bool
    """Text by others; not our own."""


class Row(Record, frozen=True):
    table: str
    key: str
    """The primary key, in words."""
    cells: tuple[ColumnValue, ...]


class SecretScanRows(StorePart):
    @reads
    def size(self, tx: Transaction) -> int:
        """Returns roughly how many rows there are: the sum of the highest ids."""
        highest = [tx.one(f"SELECT max(id) FROM {table.name}") for table in _tables() if "id" in table.c]
        return sum(row[0] or 0 for row in highest if row)

    def rows(self) -> Iterator[Row]:
        """Yields all rows with all their texts; compressed values are decompressed."""
        for table in _tables():
            yield from self._rows_of(table)

    def _rows_of(self, table: Table) -> Iterator[Row]:
        keys, columns = [column.name for column in table.primary_key], _text_columns(table)
        selected = ", ".join([*keys, *(_as_text(column, self._db.is_postgres) for column in columns)])
        marks, size = ", ".join("?" * len(keys)), _ANSWERS if table.name == "raw_answers" else _ROWS
        where, after = "", list[Any]()
        while True:
            sql = f"SELECT {selected} FROM {table.name} {where} ORDER BY {', '.join(keys)} LIMIT {size}"
            rows = self._all(sql, *after)
            for row in rows:
                yield Row(table.name, _key_in_words(keys, row), tuple(_cells(table.name, columns, row[len(keys) :])))
            if len(rows) < size:
                return
            where, after = f"WHERE ({', '.join(keys)}) > ({marks})", list(rows[-1][: len(keys)])


def _tables() -> list[Table]:
    """Returns the tables that have text columns."""
    return [table for _, table in sorted(metadata.tables.items()) if _text_columns(table)]


def _text_columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if isinstance(column.type, Text | LargeBinary)]


def _as_text(column: Column[Any], is_postgres: bool) -> str:
    # The search index column has a type of its own there.
    return f"CAST({column.name} AS TEXT)" if is_postgres and isinstance(column.type, Text) else column.name


def _key_in_words(keys: Sequence[str], row: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(keys, row, strict=False))


def _cells(table: str, columns: Sequence[Column[Any]], values: Sequence[Any]) -> Iterator[ColumnValue]:
    foreign = BY_OTHERS.get(table, frozenset())
    for column, value in zip(columns, values, strict=True):
        if value is not None:
            # Bytes are a fingerprint or encrypted: any resemblance to a secret is chance.
            is_by_others = foreign is None or column.name in foreign or isinstance(column.type, LargeBinary)
            yield ColumnValue(column.name, _bytes(table, column.name, value), is_by_others)


def _bytes(table: str, column: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if (table, column) not in COMPRESSED:
        return bytes(value)
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(bytes(value))
    except zstandard.ZstdError:
        # Damaged, or edited by hand: scanned as it is.
        return bytes(value)
