"""The tables of the index: which words and which facets every item has. All of it can be made anew from the items."""

from __future__ import annotations

from sqlalchemy import DDL, BigInteger, Boolean, Column, Index, Integer, Table, Text, event, text
from sqlalchemy.dialects.postgresql import TSVECTOR

from catchment.store.schema.base import Moment, RowId, metadata

index_mark = Table(
    "index_mark",
    metadata,
    # One row. Everything up to this change of content, and this item of it, is indexed by this rule. Who writes to the
    # index locks it first.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("rule", Integer, nullable=False),
    Column("change_number", BigInteger, nullable=False),
    Column("item_id", BigInteger, nullable=False),
)

indexed = Table(
    "indexed",
    metadata,
    # When the item is listed and which one it is, in one number: the newest come last in every part of the index.
    Column("place", RowId, primary_key=True, autoincrement=False),
    # Ids, with spaces between.
    Column("facets", Text, nullable=False),
    # It has more words than the index takes, and is read whenever something is looked for.
    Column("is_too_long", Boolean, nullable=False),
    # SQLite: the segments, as they were given to item_words, which can only forget what it is told once more.
    Column("words", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    Index(
        "ix_indexed_too_long",
        "place",
        sqlite_where=text("is_too_long"),
        postgresql_where=text("is_too_long"),
    ),
    Index("ix_indexed_words", "words", postgresql_using="gin").ddl_if(dialect="postgresql"),
)

# Terms without their places: half the size. Whether terms stand together is seen in the text itself. The tokenizer
# parts at spaces and takes all else as it is: the rules are ours, not SQLite's.
event.listen(
    indexed,
    "after_create",
    DDL(  # type: ignore[no-untyped-call]
        "CREATE VIRTUAL TABLE item_words USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii')"
    ).execute_if(dialect="sqlite"),
)

facets = Table(
    "facets",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

postings = Table(
    "postings",
    metadata,
    # As in sightings: the key is at once the list of the newest that have this facet.
    Column("facet_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ordered_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
