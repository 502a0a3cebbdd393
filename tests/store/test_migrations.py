"""However a database came to its schema, it is the same one, with the same rows in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from catchment.errors import SchemaMismatch
from catchment.store import opening
from catchment.store.database import Database, Row, Transaction
from catchment.store.schema import metadata
from tests.store.desk import Desk, opened, post
from tests.store.sample import DUMPS, fill
from tests.store.structure import content, structure

RELEASED = sorted(DUMPS.glob("*.sqlite.sql"))


def migrated(url: str) -> Database:
    database = Database(url)
    opening.upgrade(database)
    return database


def test_a_database_made_by_migrations_equals_one_made_at_once(database_url: str, tmp_path: Path) -> None:
    by_migrations = migrated(database_url)
    found, rows = structure(by_migrations), content(by_migrations)
    by_migrations.close()
    wipe(database_url, tmp_path)
    at_once = opened(database_url, tmp_path)
    assert (found, rows) == (structure(at_once.database), content(at_once.database))
    at_once.close()


def wipe(url: str, home: Path) -> None:
    if url.startswith("sqlite"):
        for file in home.glob("catchment.db*"):
            file.unlink()
    else:
        database = Database(url)
        database.write(lambda tx: tx.run("DROP SCHEMA public CASCADE"))
        database.write(lambda tx: tx.run("CREATE SCHEMA public"))
        database.close()


def loaded(dump: Path, file: Path) -> Path:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(dump.read_text())
    return file


def test_every_released_schema_is_kept() -> None:
    assert [dump.name.partition(".")[0] for dump in RELEASED] == [
        path.name[:4] for path in sorted((opening.MIGRATIONS / "versions").glob("[0-9]*.py"))
    ]
    assert RELEASED[-1].name == f"{opening.HEAD}.sqlite.sql"


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.name)
def test_a_database_of_a_released_schema_becomes_a_present_one_with_all_its_rows(dump: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{loaded(dump, tmp_path / 'old.db')}"
    before = values(url)
    old, fresh = opened(url, tmp_path, may_migrate=True), opened(f"sqlite:///{tmp_path / 'fresh.db'}", tmp_path)
    assert structure(old.database) == structure(fresh.database)
    fresh.close()
    after = values(url)
    kept = {place: told for place, told in before.items() if place in after}
    assert {place: after[place] for place in kept} == kept
    # And it works on.
    desk = Desk(old)
    desk.clock.advance(3600)
    assert desk.show(old.sources.get(1), post("brand new")).counts.new == 1
    desk.close()


def values(url: str) -> dict[tuple[str, str], list[object]]:
    """What stands in each column of each table, in the order of the rows."""
    database = Database(url)
    tables = {
        name: in_order(database, name, rows)
        for name, rows in content(database).items()
        if rows and name not in ("alembic_version", "sqlite_sequence")
    }
    database.close()
    return {(name, column): [row[column] for row in rows] for name, rows in tables.items() for column in rows[0]}


def in_order(database: Database, name: str, rows: list[Row]) -> list[dict[str, object]]:
    """By the first columns: no key has more than three."""
    by = ", ".join(str(number) for number, _ in enumerate(rows[0][:3], 1))
    return database.read(lambda tx: tx.dicts(f"SELECT * FROM {name} ORDER BY {by}"))


def test_an_archive_from_before_there_were_last_replies_knows_those_that_it_holds(
    database_url: str, tmp_path: Path
) -> None:
    desk = Desk(opened(database_url, tmp_path))
    board, forum = desk.follow("r/one", "reddit"), desk.follow("two", "discourse")
    desk.show(
        board, post("t3_a", thread_id="t3_a", is_head=True, kind="post"), post("t3_b", thread_id="t3_b", is_head=True)
    )
    desk.show(board, post("t1_c", thread_id="t3_a"), post("t1_d", thread_id="t3_a", is_deleted=True))
    desk.show(desk.follow("r/three", "reddit"), post("t1_c", thread_id="t3_a"), post("t3_a", thread_id="t3_a"))
    desk.show(forum, post("7", thread_id="1", floor_number=1, is_head=True), post("8", thread_id="1", floor_number=2))
    told = {table: desk.rows(table, columns) for table, columns in (("replied", "*"), ("items", LAST_REPLIES))}
    desk.store.database.write(undo_last_replies)
    desk.close()
    desk = Desk(opened(database_url, tmp_path, may_migrate=True))
    assert {table: desk.rows(table, columns) for table, columns in (("replied", "*"), ("items", LAST_REPLIES))} == told
    assert len(told["replied"]) == 6 + 5
    desk.close()


LAST_REPLIES = "id, last_reply_at, is_head"


def undo_last_replies(tx: Transaction) -> None:
    """The tables as they were before; the way back is walked by nobody but this test."""
    tx.run("DROP TABLE replied")
    tx.run("DROP INDEX ix_items_heads")
    tx.run("DROP INDEX ix_items_thread")
    tx.run("CREATE INDEX ix_items_thread ON items (platform, thread_id, ordered_at, id) WHERE thread_id IS NOT NULL")
    tx.run("ALTER TABLE items DROP COLUMN last_reply_at")
    tx.run("ALTER TABLE items DROP COLUMN is_head")
    tx.run("UPDATE alembic_version SET version_num = '0003'")


def test_the_sample_has_something_in_every_table(tmp_path: Path) -> None:
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    fill(desk)
    assert [name for name in metadata.tables if not desk.count(name)] == []
    desk.close()


def test_a_migration_that_would_break_references_leaves_everything_as_it_was(tmp_path: Path) -> None:
    file = loaded(RELEASED[-1], tmp_path / "catchment.db")
    database = Database(f"sqlite:///{file}")
    before = content(database)
    with pytest.raises(SchemaMismatch, match="refer"), opening.changing(database) as connection:
        connection.exec_driver_sql("DELETE FROM sources")
    assert content(database) == before
    database.close()
