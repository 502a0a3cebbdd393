"""The schema of a next version that there will never be: a new column, a changed one, an index and a table."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, Table, Text, text

from catchment.store.migrate import CURRENT, Schema
from catchment.store.schema import metadata
from tests.store.sample import write_dump
from tools.schema import write_migration

NUMBER = "0999"


def next_schema(folder: Path) -> Schema:
    """Made as docs/contributing.md says: a dump of the release, changed tables, a draft of the migration."""
    schema = Schema(NUMBER, _changed_tables(), folder / "migrations")
    shutil.copytree(CURRENT.migrations, schema.migrations, ignore=shutil.ignore_patterns("__pycache__"))
    write_migration(NUMBER, "throw away", write_dump(folder), schema)
    return schema


def failing_schema(folder: Path) -> Schema:
    """Its migration changes a table, and then fails."""
    schema = next_schema(folder)
    (file,) = (schema.migrations / "versions").glob(f"{NUMBER}*")
    file.write_text(
        file.read_text() + "    from alembic.util import CommandError\n\n    raise CommandError('this was wrong')\n"
    )
    return schema


def _changed_tables() -> MetaData:
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        copy = table.to_metadata(tables)
        for index in table.indexes:
            (copied,) = (other for other in copy.indexes if other.name == index.name)
            copied._ddl_if = index._ddl_if  # which SQLAlchemy forgets
    items, gaps = tables.tables["items"], tables.tables["gaps"]
    items.append_column(Column("mood", Text, nullable=False, server_default="calm"))
    Index(
        "ix_items_mood",
        items.c.mood,
        items.c.id,
        sqlite_where=text("mood <> 'calm'"),
        postgresql_where=text("mood <> 'calm'"),
    )
    # SQLite can only do this by recreating the table, with its indexes and references.
    gaps.c.cause.nullable = True
    Table(
        "throw_away",
        tables,
        Column("item_id", ForeignKey("items.id"), primary_key=True, autoincrement=False),
        Column("count", Integer, nullable=False),
    )
    return tables
