"""What a database is made of, as values that can be compared."""

from __future__ import annotations

from typing import Any

from catchment.store.database import Database, Row, Transaction

Structure = dict[str, Any]


def structure(database: Database) -> Structure:
    """Tables with columns, types, nullability, defaults, keys, references; indexes with their conditions."""
    return database.read(_postgres if database.is_postgres else _sqlite)


def content(database: Database) -> dict[str, list[Row]]:
    """Every row of every table of ours; the inside of SQLite's own index is its own affair."""

    def question(tx: Transaction) -> dict[str, list[Row]]:
        names = [name for name in _tables(tx) if not name.startswith(("sqlite_stat", "item_words"))]
        return {name: sorted(tx.all(f'SELECT * FROM "{name}"'), key=repr) for name in names}

    return database.read(question)


def _tables(tx: Transaction) -> list[str]:
    if tx.is_postgres:
        rows = tx.all("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    else:
        rows = tx.all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    return [row[0] for row in rows]


def _sqlite(tx: Transaction) -> Structure:
    return {
        "tables": {name: _sqlite_table(tx, name) for name in _tables(tx)},
        "triggers and views": tx.all("SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"),
    }


def _sqlite_table(tx: Transaction, name: str) -> Structure:
    ((sql,),) = tx.all("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", name)
    indexes = {}
    for _, index, is_unique, origin, _ in tx.all(f"PRAGMA index_list('{name}')"):
        columns = tx.all(f"PRAGMA index_xinfo('{index}')")
        said = tx.one("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?", index)
        where = " ".join(said[0].split()).partition(" WHERE ")[2] if said and said[0] else ""
        # Those that SQLite makes for itself are numbered in the order of the constraints, which means nothing.
        label = index if origin == "c" else f"{origin} {[row[2] for row in columns]}"
        indexes[label] = (is_unique, [row[2:] for row in columns], where)
    return {
        "columns": tx.all(f"PRAGMA table_xinfo('{name}')"),
        "references": sorted(row[2:] for row in tx.all(f"PRAGMA foreign_key_list('{name}')")),
        "indexes": indexes,
        "is without rowid": "WITHOUT ROWID" in sql,
        "is autoincrement": "AUTOINCREMENT" in sql,
    }


def _postgres(tx: Transaction) -> Structure:
    return {
        "columns": tx.all(
            """
            SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity
              FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position
            """
        ),
        "indexes": tx.all("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
        "constraints": tx.all(
            """
            SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
             WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2
            """
        ),
    }
