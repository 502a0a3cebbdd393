"""Whose database it is, in which state, is known before anything is done to it; what is there is never lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from catchment.errors import InvalidInput, SchemaMismatch, StoreError
from catchment.store import database, opening
from catchment.store.database import Database
from tests.clocks import HandClock
from tests.store.desk import Desk, opened, post
from tests.store.processes import hands
from tests.store.structure import content, structure

NOW = HandClock().now()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catchment.db"


def told(url: str, *statements: str) -> None:
    database = Database(url)
    for sql in statements:
        database.write(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]
    database.close()


def filled(url: str, home: Path) -> None:
    desk = Desk(opened(url, home))
    desk.show(desk.follow(), post("a"))
    desk.close()


def test_an_empty_database_is_set_up_by_anyone(database_url: str, tmp_path: Path) -> None:
    opened(database_url, tmp_path).close()
    again = opened(database_url, tmp_path)
    assert opening.revision(again.database) == opening.HEAD
    assert again.items.count() == 0
    again.close()


def test_tables_of_others_beside_ours_are_no_matter(database_url: str, tmp_path: Path) -> None:
    told(database_url, "CREATE TABLE recipes (id INTEGER)")
    opened(database_url, tmp_path).close()


@pytest.mark.parametrize(
    "theirs",
    [
        ["CREATE TABLE items (id INTEGER)"],
        [
            "CREATE TABLE alembic_version (version_num VARCHAR(32))",
            "INSERT INTO alembic_version VALUES ('ae1027a6acf')",
        ],
        ["CREATE TABLE alembic_version (version_num VARCHAR(32))"],
        ["CREATE TABLE alembic_version (version_num VARCHAR(32))", "CREATE TABLE ledger (id INTEGER)"],
    ],
)
def test_a_database_of_another_program_is_refused_and_left_alone(
    database_url: str, tmp_path: Path, theirs: list[str]
) -> None:
    told(database_url, *theirs)
    database = Database(database_url)
    before = structure(database)
    with pytest.raises(SchemaMismatch, match="database of its own"):
        opened(database_url, tmp_path, may_migrate=True)
    assert structure(database) == before
    database.close()


def test_an_older_schema_is_refused_with_the_command_that_helps(database_url: str, tmp_path: Path) -> None:
    opened(database_url, tmp_path).close()
    told(database_url, "UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(SchemaMismatch, match="catchment migrate"):
        opened(database_url, tmp_path)


def test_a_newer_schema_is_refused_to_all(database_url: str, tmp_path: Path) -> None:
    opened(database_url, tmp_path).close()
    told(database_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="newer"):
        opened(database_url, tmp_path, may_migrate=True)


def test_a_sqlite_file_is_backed_up_before_it_is_migrated_and_unharmed_if_that_fails(
    file: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    # No migration leads on from here: the attempt fails after the backup.
    told(url, "UPDATE alembic_version SET version_num = '0000'")
    database = Database(url)
    before = content(database)
    with pytest.raises(SchemaMismatch, match="0000"):
        opened(url, tmp_path, may_migrate=True)
    (backup,) = (tmp_path / "backups").iterdir()
    copy = Database(f"sqlite:///{backup}")
    assert content(copy) == content(database) == before
    copy.close()
    database.close()


def test_a_database_that_was_full_and_is_empty_is_refused(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(database_url, home)
    vanish(database_url, tmp_path)
    with pytest.raises(SchemaMismatch, match="knows it with items"):
        opened(database_url, home)
    (home / "databases.json").unlink()
    opened(database_url, home).close()


def vanish(url: str, folder: Path) -> None:
    if url.startswith("sqlite"):
        for file in folder.glob("catchment.db*"):
            file.unlink()
    else:
        told(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def test_one_that_never_had_items_may_vanish(database_url: str, tmp_path: Path) -> None:
    opened(database_url, tmp_path).close()
    vanish(database_url, tmp_path)
    opened(database_url, tmp_path).close()


def test_processes_that_open_an_empty_database_together_all_find_it_ready(database_url: str, tmp_path: Path) -> None:
    with hands(3, "open", database_url, tmp_path) as several:
        assert [one.hear() for one in several] == [{}, {}, {}]
        for one in several:
            one.end()


def test_threads_that_open_an_empty_database_together_set_it_up_once(database_url: str, tmp_path: Path) -> None:
    begin = Barrier(4)

    def open_it(number: int) -> str | None:
        begin.wait()
        store = opened(database_url, tmp_path / f"home {number}")
        found = opening.revision(store.database)
        store.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(open_it, range(4))) == {opening.HEAD}


def test_an_empty_file_that_somebody_is_setting_up_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "catchment.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as somebody:
        somebody.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(database.time, "sleep", lambda _: somebody.execute("ROLLBACK"))
        opened(f"sqlite:///{file}", tmp_path).close()
        assert not somebody.in_transaction


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://nobody@127.0.0.1:1/none", "sqlite:////proc/no/such/folder/catchment.db"]
)
def test_a_database_that_cannot_be_reached_is_an_error_of_ours(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        opened(url, tmp_path)


def test_a_file_that_is_no_database_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"not a database at all, but long enough to be taken for one" * 100)
    with pytest.raises(StoreError, match="not a database"):
        opened(f"sqlite:///{file}", tmp_path)


# ── backup and restore ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_backup_made_while_others_write_is_whole_and_comes_back_whole(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    desk = Desk(opened(url, tmp_path))
    source, stop, is_under_way = desk.follow(), Event(), Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            desk.show(source, post(f"{number}"), post(f"{number} too"))
            number += 1
            if number == 5:
                is_under_way.set()

    writer = Thread(target=write)
    writer.start()
    is_under_way.wait(30)
    backup = opening.back_up(desk.store.database, tmp_path / "kept" / "backup.db")
    stop.set()
    writer.join()
    copy = Database(f"sqlite:///{backup}")
    saved = content(copy)
    copy.close()
    # Whole pages only: every number has its two items.
    ((_, number, last_id, _),) = saved["ledger"]
    assert (number >= 5, last_id, len(saved["items"])) == (True, 2 * number, 2 * number)
    desk.close()
    database = Database(url)
    kept = opening.restore(database, tmp_path, backup, NOW)
    assert content(database) == saved
    database.close()
    assert kept is not None
    before = Database(f"sqlite:///{kept}")
    assert len(content(before)["items"]) > len(saved["items"]) or content(before)["runs"] != saved["runs"]
    before.close()
    opened(url, tmp_path).close()


def test_a_backup_never_overwrites_another_file(file: Path, tmp_path: Path) -> None:
    store = opened(f"sqlite:///{file}", tmp_path)
    (tmp_path / "there.db").write_text("precious")
    with pytest.raises(InvalidInput, match="exists"):
        opening.back_up(store.database, tmp_path / "there.db")
    assert (tmp_path / "there.db").read_text() == "precious"
    store.close()


def torn(backup: Path) -> None:
    body = backup.read_bytes()
    backup.write_bytes(body[: len(body) // 2])


def of_another_program(backup: Path) -> None:
    backup.unlink()
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("CREATE TABLE recipes (id INTEGER)")


def no_database(backup: Path) -> None:
    backup.write_bytes(b"<html>404</html>" * 1000)


def from_a_newer_program(backup: Path) -> None:
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def not_there(backup: Path) -> None:
    backup.unlink()


@pytest.mark.parametrize("harm", [torn, of_another_program, no_database, from_a_newer_program, not_there])
def test_what_is_no_good_backup_is_refused_and_changes_nothing(
    file: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    filled(f"sqlite:///{file}", tmp_path)
    database = Database(f"sqlite:///{file}")
    backup = opening.back_up(database, tmp_path / "backup.db")
    harm(backup)
    before = content(database)
    with pytest.raises(InvalidInput):
        opening.restore(database, tmp_path, backup, NOW)
    assert content(database) == before
    database.close()


def test_a_damaged_database_can_be_replaced_and_is_kept_as_it_is(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    database = Database(url)
    backup = opening.back_up(database, tmp_path / "backup #1 100%.db")
    saved = content(database)
    database.close()
    damage = b"\x00" * 5000
    file.write_bytes(damage)
    kept = opening.restore(database, tmp_path, backup, NOW)
    assert content(database) == saved
    assert kept is not None
    assert kept.read_bytes() == damage
    database.close()


def test_a_database_that_is_gone_comes_back_from_its_backup(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    database = Database(url)
    backup = opening.back_up(database, tmp_path / "backup.db")
    database.close()
    vanish(url, tmp_path)
    assert opening.restore(database, tmp_path, backup, NOW) is None
    database.close()
    store = opened(url, tmp_path)
    assert store.items.count() == 1
    store.close()


def test_postgresql_has_its_own_tools(standing_postgres: str, tmp_path: Path) -> None:
    database = Database(standing_postgres)
    with pytest.raises(InvalidInput, match="pg_dump"):
        opening.back_up(database, tmp_path / "backup.db")
    with pytest.raises(InvalidInput, match="pg_restore"):
        opening.restore(database, tmp_path, tmp_path / "backup.db", NOW)
    database.close()


def test_the_folder_of_a_new_archive_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "archive"
    opened(f"sqlite:///{home / 'catchment.db'}", home).close()
    assert home.stat().st_mode & 0o777 == 0o700
