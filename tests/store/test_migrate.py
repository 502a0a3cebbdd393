"""Whose database it is, in which state, is known before anything is done to it; what is there is never lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from catchment.errors import Conflict, InvalidInput, LeaseLost, SchemaMismatch, StoreError
from catchment.store import database, migrate
from catchment.store.database import Database
from catchment.store.version import HEAD
from tests.clocks import HandClock
from tests.store.desk import Desk, opened, post
from tests.store.next_schema import failing_schema, next_schema
from tests.store.processes import hands
from tests.store.structure import content, structure

NOW = HandClock().now()


@pytest.fixture
def database_url(blank_database_url: str) -> str:
    """Nothing is set up before the test: that is what is tested here."""
    return blank_database_url


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
    assert migrate.revision(again.database) == HEAD
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
    database = Database(database_url)
    with pytest.raises(SchemaMismatch, match="catchment migrate"):
        migrate.ready(database, tmp_path, NOW, may_migrate=False, schema=next_schema(tmp_path))
    database.close()


@pytest.mark.parametrize("may_migrate", [False, True])
def test_a_schema_from_before_the_baseline_is_refused_to_all_and_left_alone(
    database_url: str, tmp_path: Path, may_migrate: bool
) -> None:
    filled(database_url, tmp_path)
    told(database_url, "UPDATE alembic_version SET version_num = '0005'")
    database = Database(database_url)
    before = content(database)
    with pytest.raises(SchemaMismatch, match="schema 0005, from before") as refused:
        opened(database_url, tmp_path, may_migrate=may_migrate)
    assert "new database" in str(refused.value.helps)
    assert content(database) == before
    assert not (tmp_path / "backups").exists()
    database.close()


def test_a_newer_schema_is_refused_to_all(database_url: str, tmp_path: Path) -> None:
    opened(database_url, tmp_path).close()
    told(database_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="newer"):
        opened(database_url, tmp_path, may_migrate=True)


def test_nothing_is_migrated_while_a_process_works_with_the_database(database_url: str, tmp_path: Path) -> None:
    desk = Desk(opened(database_url, tmp_path))
    claimed = desk.claim(desk.follow())
    database = Database(database_url)
    before = content(database)
    with pytest.raises(Conflict, match=f"in use by test .process {os.getpid()} on") as refused:
        migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=next_schema(tmp_path))
    assert (str(refused.value.helps), migrate.revision(database)) == ("stop it first", HEAD)
    assert content(database) == before
    assert not (tmp_path / "backups").exists()
    assert desk.write(claimed, [post("a")]).counts.new == 1
    desk.close()
    migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=next_schema(tmp_path / "again"))
    database.close()


def test_a_process_of_the_old_version_that_starts_while_a_migration_begins_stops_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(f"sqlite:///{file}", tmp_path)
    started: list[Desk] = []

    class Watched(Database):
        def connect(self) -> sqlite3.Connection:
            # The backup has been made, and the transaction of the migration is about to begin.
            if (tmp_path / "backups").exists() and not started:
                started.append(Desk(opened(f"sqlite:///{file}", tmp_path)))
                assert started[0].presence.owner_id
            return super().connect()  # type: ignore[no-any-return]

    database = Watched(f"sqlite:///{file}")
    with pytest.raises(Conflict, match="in use by test"):
        migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=next_schema(tmp_path))
    assert migrate.revision(database) == HEAD
    started[0].close()
    database.close()


def test_a_machine_that_hung_while_the_schema_was_migrated_does_nothing_when_it_wakes(
    blank_postgres_url: str, tmp_path: Path
) -> None:
    sleeper = Desk(opened(blank_postgres_url, tmp_path))
    visited, other = sleeper.follow("visited"), sleeper.follow("other")
    claimed, run_id = sleeper.claim(visited), sleeper.run_id
    told(blank_postgres_url, "UPDATE owners SET machine = 'elsewhere'")
    database = Database(blank_postgres_url)
    sleeper.clock.advance(2 * 3600)
    migrate.ready(database, tmp_path, sleeper.now, may_migrate=True, schema=next_schema(tmp_path))
    after = content(database)
    assert [(run.id, run.is_cut_off) for run in sleeper.store.runs.page()] == [(run_id, True)]
    with pytest.raises(LeaseLost):
        sleeper.write(claimed, [post("a")])
    assert sleeper.store.sources.claim([visited.id, other.id], sleeper.presence.owner_id, sleeper.now) == []
    for _ in range(2):
        with pytest.raises(SchemaMismatch, match="newer than this program's"):
            sleeper.presence.heartbeat(sleeper.now)
    assert sleeper.store.sources.claim([visited.id, other.id], sleeper.presence.owner_id, sleeper.now) == []
    assert content(database) == after
    sleeper.close()
    database.close()


def test_a_sqlite_file_is_backed_up_before_it_is_migrated_and_unharmed_if_that_fails(
    file: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    database = Database(url)
    before = content(database)
    with pytest.raises(SchemaMismatch, match="this was wrong"):
        migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=failing_schema(tmp_path))
    (backup,) = (tmp_path / "backups").iterdir()
    copy = Database(f"sqlite:///{backup}")
    assert content(copy) == content(database) == before
    copy.close()
    database.close()


def test_a_migration_that_failed_can_be_tried_again_at_the_same_second(file: Path, tmp_path: Path) -> None:
    filled(f"sqlite:///{file}", tmp_path)
    database, schema = Database(f"sqlite:///{file}"), failing_schema(tmp_path)
    for attempt in (1, 2, 3):
        with pytest.raises(SchemaMismatch, match="this was wrong"):
            migrate.ready(database, tmp_path, NOW, may_migrate=True, schema=schema)
        assert len([*(tmp_path / "backups").iterdir()]) == attempt
    database.close()


def test_a_database_that_was_full_and_is_empty_is_refused(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(database_url, home)
    vanish(database_url, tmp_path)
    with pytest.raises(SchemaMismatch, match="it held items"):
        opened(database_url, home)
    (home / "databases.json").unlink()
    opened(database_url, home).close()


def test_a_home_without_room_for_a_note_does_not_keep_anybody_from_reading(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(database_url, home)
    (home / "databases.json").unlink()
    # Written to, it is a full disk.
    (home / f"databases.{os.getpid()}.part").symlink_to("/dev/full")
    store = opened(database_url, home)
    assert store.items.count() == 1
    assert [path.name for path in home.iterdir() if path.name.startswith("databases")] == []
    store.close()
    assert [path.name for path in home.iterdir() if path.name.startswith("databases")] == ["databases.json"]


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


@pytest.mark.process
def test_processes_that_open_an_empty_database_together_all_find_it_ready(database_url: str, tmp_path: Path) -> None:
    with hands(3, "open", database_url, tmp_path) as several:
        assert [process.hear() for process in several] == [{}, {}, {}]
        for process in several:
            process.end()


def test_threads_that_open_an_empty_database_together_set_it_up_once(database_url: str, tmp_path: Path) -> None:
    begin = Barrier(4)

    def open_it(number: int) -> str | None:
        begin.wait()
        store = opened(database_url, tmp_path / f"home {number}")
        found = migrate.revision(store.database)
        store.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(open_it, range(4))) == {HEAD}


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
    is_under_way.wait(600)
    backup = migrate.back_up(desk.store.database, tmp_path / "kept" / "backup.db")
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
    kept = migrate.restore(database, tmp_path, backup, NOW)
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
        migrate.back_up(store.database, tmp_path / "there.db")
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


def from_before_the_baseline(backup: Path) -> None:
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0005'")


def not_there(backup: Path) -> None:
    backup.unlink()


@pytest.mark.parametrize(
    "harm", [torn, of_another_program, no_database, from_a_newer_program, from_before_the_baseline, not_there]
)
def test_what_is_no_good_backup_is_refused_and_changes_nothing(
    file: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    filled(f"sqlite:///{file}", tmp_path)
    database = Database(f"sqlite:///{file}")
    backup = migrate.back_up(database, tmp_path / "backup.db")
    harm(backup)
    before = content(database)
    with pytest.raises(InvalidInput):
        migrate.restore(database, tmp_path, backup, NOW)
    assert content(database) == before
    database.close()


def test_a_damaged_database_can_be_replaced_and_is_kept_as_it_is(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    database = Database(url)
    backup = migrate.back_up(database, tmp_path / "backup #1 100%.db")
    saved = content(database)
    database.close()
    damage = b"\x00" * 5000
    file.write_bytes(damage)
    kept = migrate.restore(database, tmp_path, backup, NOW)
    assert content(database) == saved
    assert kept is not None
    assert kept.read_bytes() == damage
    database.close()


def test_a_database_that_is_gone_comes_back_from_its_backup(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    filled(url, tmp_path)
    database = Database(url)
    backup = migrate.back_up(database, tmp_path / "backup.db")
    database.close()
    vanish(url, tmp_path)
    assert migrate.restore(database, tmp_path, backup, NOW) is None
    database.close()
    store = opened(url, tmp_path)
    assert store.items.count() == 1
    store.close()


def test_postgresql_has_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    database = Database(postgres_url)
    with pytest.raises(InvalidInput, match="pg_dump"):
        migrate.back_up(database, tmp_path / "backup.db")
    with pytest.raises(InvalidInput, match="pg_restore"):
        migrate.restore(database, tmp_path, tmp_path / "backup.db", NOW)
    database.close()


def modes(*paths: Path) -> list[str]:
    return [oct(path.stat().st_mode & 0o777) for path in paths]


@pytest.fixture
def _generous_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_generous_umask")
def test_a_new_archive_and_its_backups_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "archive"
    file, backup = home / "catchment.db", home / "backups" / "today.db"
    url = f"sqlite:///{file}"
    filled(url, home)
    database = Database(url)
    database.read(lambda tx: tx.one("SELECT 1 FROM ledger"))
    assert modes(file, file.with_name("catchment.db-wal")) == ["0o600", "0o600"]
    migrate.back_up(database, backup)
    database.close()
    assert modes(home, backup.parent, backup) == ["0o700", "0o700", "0o600"]


def test_an_archive_keeps_the_mode_that_its_owner_gave_it(file: Path, tmp_path: Path) -> None:
    filled(f"sqlite:///{file}", tmp_path)
    file.chmod(0o640)
    opened(f"sqlite:///{file}", tmp_path).close()
    assert modes(file) == ["0o640"]
