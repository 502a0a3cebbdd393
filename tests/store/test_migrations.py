"""A database that was migrated is the same as a new one, with the same rows in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from catchment.errors import SchemaMismatch
from catchment.store import Store, migrate
from catchment.store.database import Database, Row
from catchment.store.migrate import CURRENT
from catchment.store.schema import metadata
from catchment.text.clean import fingerprint
from tests.clocks import HandClock
from tests.databases import dicts
from tests.store.desk import Desk, opened, post
from tests.store.next_schema import next_schema
from tests.store.sample import DUMPS, fill, write_dump
from tests.store.structure import content, structure

NOW = HandClock().now()


@pytest.fixture
def database_url(blank_database_url: str) -> str:
    """Nothing is set up before the test: that is what is tested here."""
    return blank_database_url


def test_a_migration_gives_the_schema_of_a_new_database_and_keeps_every_row(database_url: str, tmp_path: Path) -> None:
    desk = Desk(opened(database_url, tmp_path))
    fill(desk)
    desk.close()
    before = values(database_url)
    schema = next_schema(tmp_path)
    database = Database(database_url)
    migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=schema)
    migrated, after = structure(database), values(database_url)
    assert {place: after.get(place) for place in before} == before
    assert after.keys() - before.keys() == {("items", "mood")}
    # And it still works, search included.
    desk = Desk(Store(Database(database_url), tmp_path, fingerprint))
    desk.clock.advance(3600)
    found = desk.store.search.find("天").count
    assert found
    assert desk.show(desk.store.sources.get(1), post("brand new", text="又一天")).counts.new == 1
    desk.store.index.advance()
    assert desk.store.search.find("天").count == found + 1
    desk.close()
    wipe(database_url, tmp_path)
    migrate.ready(database, tmp_path / "new", NOW, may_migrate=False, schema=schema)
    assert structure(database) == migrated
    database.close()


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


def released(folder: Path) -> list[Path]:
    """The dumps of all released schemas; the one to be released next comes last."""
    return [*sorted(DUMPS.glob("*.sqlite.sql")), write_dump(folder)]


def test_the_dump_of_a_release_can_be_opened_with_all_its_rows(tmp_path: Path) -> None:
    fresh = opened(f"sqlite:///{tmp_path / 'fresh.db'}", tmp_path)
    for number, dump in enumerate(released(tmp_path)):
        url = f"sqlite:///{loaded(dump, tmp_path / f'{number}.db')}"
        before = values(url)
        old = opened(url, tmp_path, may_migrate=True)
        assert structure(old.database) == structure(fresh.database)
        after = values(url)
        assert {place: after[place] for place in before if place in after} == before
        desk = Desk(old)
        desk.clock.advance(3600)
        assert desk.show(old.sources.get(1), post("brand new")).counts.new == 1
        desk.close()
    fresh.close()


def test_the_dump_of_every_schema_that_a_migration_leads_from_is_kept() -> None:
    versions = sorted((CURRENT.migrations / "versions").glob("[0-9]*.py"))
    assert [path.name[:4] for path in versions][-1] == CURRENT.head
    assert [dump.name[:4] for dump in sorted(DUMPS.glob("*.sqlite.sql"))] == [path.name[:4] for path in versions[:-1]]


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
    return database.read(lambda tx: dicts(tx, f"SELECT * FROM {name} ORDER BY {by}"))


def test_the_sample_has_something_in_every_table(tmp_path: Path) -> None:
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    fill(desk)
    assert [name for name in metadata.tables if not desk.count(name)] == []
    desk.close()


def test_a_migration_that_would_break_references_leaves_everything_as_it_was(tmp_path: Path) -> None:
    file = loaded(write_dump(tmp_path), tmp_path / "catchment.db")
    database = Database(f"sqlite:///{file}")
    before = content(database)
    with pytest.raises(SchemaMismatch, match="refer"), migrate.changing(database) as connection:
        connection.exec_driver_sql("DELETE FROM sources")
    assert content(database) == before
    database.close()
