"""The database and the installation: migrate, backup, restore, doctor."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from catchment.store.database import Database
from tests.cli.conftest import Catchment, Process
from tests.feedsite import FeedSite


def test_a_backup_holds_what_was_there_and_restoring_keeps_what_came_since(
    catchment: Catchment, site: FeedSite, tmp_path: Path
) -> None:
    feed = site.feed("news", posts=2)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    file = tmp_path / "copy.db"
    assert catchment("backup", file, "--json").json == {"file": str(file), "bytes": file.stat().st_size}
    feed.post("news-3")
    catchment("collect", "--all")
    assert len(catchment("items", "--json").lines) == 3
    restored = catchment("restore", file, "--json").json
    assert len(catchment("items", "--json").lines) == 2
    assert Path(restored["kept"]).is_file()
    assert catchment("restore", restored["kept"]).code == 0
    assert len(catchment("items", "--json").lines) == 3


def test_a_backup_overwrites_nothing_and_needs_something_to_copy(catchment: Catchment, tmp_path: Path) -> None:
    assert catchment("backup", tmp_path / "copy.db", "--json").failure == (4, "NOT_FOUND")
    catchment("migrate")
    (tmp_path / "taken").write_text("mine")
    assert catchment("backup", tmp_path / "taken", "--json").failure == (2, "INVALID_INPUT")
    assert (tmp_path / "taken").read_text() == "mine"


def test_what_is_no_backup_is_not_restored(catchment: Catchment, tmp_path: Path) -> None:
    catchment("sources", "add", "rss", "https://a.example/")
    (tmp_path / "text").write_text("not a database")
    assert catchment("restore", tmp_path / "text", "--json").failure == (2, "INVALID_INPUT")
    assert len(catchment("sources", "list", "--json").json) == 1


def test_a_database_in_use_is_not_replaced(
    catchment: Catchment, start: Callable[..., Process], site: FeedSite, tmp_path: Path
) -> None:
    feed = site.feed("slow", posts=1)
    catchment("sources", "add", "rss", feed.url)
    catchment("backup", tmp_path / "copy.db")
    feed.hold()
    start("collect")
    assert site.server.arrived.wait(600)
    said = catchment("restore", tmp_path / "copy.db", "--json")
    assert said.failure == (5, "CONFLICT")
    assert "collect (process" in said.err


def test_migrating_sets_up_an_empty_database_and_leaves_a_current_one_alone(catchment: Catchment) -> None:
    first, second = catchment("migrate", "--json").json, catchment("migrate", "--json").json
    assert (first["from"], first["backup"]) == (None, None)
    assert second == {"from": first["to"], "to": first["to"], "backup": None}


def test_a_database_that_is_newer_than_the_program_is_left_alone(catchment: Catchment, home: Path) -> None:
    catchment("migrate")
    with sqlite3.connect(home / "catchment.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for command in (("items",), ("migrate",), ("collect",)):
        assert catchment(*command, "--json").failure == (6, "SCHEMA_MISMATCH")
    doctor = catchment("doctor", "--json")
    assert (
        doctor.code,
        [finding["about"] for finding in doctor.json["findings"] if finding["verdict"] == "wrong"],
    ) == (
        1,
        ["schema"],
    )


# ── the doctor ────────────────────────────────────────────────────────────────────────────────────────────────────


def findings(catchment: Catchment, verdict: str) -> list[str]:
    return [
        finding["about"] for finding in catchment("doctor", "--json").json["findings"] if finding["verdict"] == verdict
    ]


def test_a_healthy_installation_is_told_so_and_nothing_is_made_by_looking(catchment: Catchment, home: Path) -> None:
    said = catchment("doctor", "--json")
    assert (said.code, said.json["is_well"]) == (0, True)
    assert not (home / "catchment.db").exists()
    assert {setting["name"]: setting["origin"] for setting in said.json["settings"]} == {
        "CATCHMENT_HOME": "environment",
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "environment",
        "CATCHMENT_RETRY_WAITS": "environment",
    }
    assert catchment("doctor").out.endswith("No problems found.\n")


def test_files_that_other_users_can_read_are_found(catchment: Catchment, home: Path) -> None:
    catchment("migrate")
    assert findings(catchment, "odd") == []
    home.chmod(0o755)
    (home / "catchment.db").chmod(0o644)
    (finding,) = [finding for finding in catchment("doctor", "--json").json["findings"] if finding["verdict"] == "odd"]
    assert finding["about"] == "permissions"
    assert str(home / "catchment.db") in finding["what"]
    assert finding["helps"] == f"run `chmod -R go-rwx {home}`"


def test_settings_that_are_odd_or_wrong_are_found(catchment: Catchment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCH_INTERVAL_NOSUCHKIND", "5")
    assert findings(catchment, "odd") == ["settings"]
    monkeypatch.setenv("CATCHMENT_CLOCK", "2026-01-01T00:00:00Z,60")
    assert findings(catchment, "odd") == ["settings", "clock"]
    monkeypatch.setenv("CATCHMENT_PORT", "many")
    assert findings(catchment, "wrong") == ["settings"]


def test_a_home_that_is_no_folder_is_found(catchment: Catchment, home: Path) -> None:
    home.write_text("a file")
    assert "home" in findings(catchment, "wrong")


def test_a_database_that_does_not_answer_is_found(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", f"postgresql://me:sesame-open-3@127.0.0.1:{free_port}/catchment")
    assert findings(catchment, "wrong") == ["database"]
    assert "sesame-open-3" not in catchment("doctor").out


def test_a_postgresql_that_answers_is_healthy(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", postgres_url)
    assert findings(catchment, "wrong") == []
    assert "PostgreSQL" in catchment("doctor").out
    assert catchment("backup", "copy.db", "--json").failure == (2, "INVALID_INPUT")


def test_a_clock_that_went_back_is_found(catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=1).url)
    monkeypatch.setenv("CATCHMENT_CLOCK", "2099-01-01T00:00:00Z,1")
    catchment("collect")
    monkeypatch.delenv("CATCHMENT_CLOCK")
    assert findings(catchment, "wrong") == ["clock"]


# ── a database that is damaged, emptied or cannot be written to ───────────────────────────────────────────────────


@pytest.fixture
def filled(catchment: Catchment, site: FeedSite, home: Path) -> Path:
    """A database with items in it."""
    catchment("sources", "add", "rss", site.feed("news", posts=30).url)
    catchment("collect")
    catchment("items")
    return home / "catchment.db"


def overwritten(file: Path) -> None:
    """Most of its pages are zeros: the schema can be read, the rows cannot."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    body = bytearray(file.read_bytes())
    page = int.from_bytes(body[16:18], "big")
    first = len(body) // page // 2 * page
    body[first:] = bytes(len(body) - first)
    file.write_bytes(body)


def truncated(file: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    file.write_bytes(b"")


def without_a_table(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE revisions")
    connection.close()


def without_its_ledger(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM ledger")
    connection.close()


def without_its_items(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM items")
    connection.close()


def no_database(file: Path) -> None:
    truncated(file)
    file.write_bytes(b"<html>404</html>" * 1000)


HARMS = [overwritten, truncated, without_a_table, without_its_ledger, without_its_items, no_database]


def test_the_note_beside_the_database_is_the_owners_alone(filled: Path) -> None:
    assert (filled.parent / "databases.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("harm", HARMS)
def test_of_a_database_that_lost_something_there_is_no_backup(
    catchment: Catchment, filled: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    harm(filled)
    folder = tmp_path / "copies"
    said = catchment("backup", folder / "copy.db", "--json")
    assert said.failure == (6, "STORE_ERROR")
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize("harm", HARMS)
def test_the_doctor_sees_a_database_that_lost_something(
    catchment: Catchment, filled: Path, harm: Callable[[Path], None]
) -> None:
    assert findings(catchment, "wrong") == []
    harm(filled)
    said = catchment("doctor", "--json")
    assert said.code == 1
    wrong = [finding for finding in said.json["findings"] if finding["verdict"] == "wrong"]
    assert {finding["about"] for finding in wrong} <= {"database", "integrity"}
    assert wrong
    assert all("restore" in finding["helps"] for finding in wrong)


def test_the_doctor_sees_a_database_that_is_gone(catchment: Catchment, filled: Path) -> None:
    for file in filled.parent.glob("catchment.db*"):
        file.unlink()
    assert findings(catchment, "wrong") == ["database"]
    assert not filled.exists()


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """As on a full disk, for this process: the kernel refuses to write beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_doctor_sees_a_database_that_cannot_be_written_to(catchment: Catchment, filled: Path) -> None:
    # Somebody reads it: what SQLite keeps in memory for all readers is there already, and need not be made.
    with closing(sqlite3.connect(filled)) as reader:
        reader.execute("SELECT count(*) FROM items").fetchone()
        with no_file_grows_beyond(0):
            said = catchment("doctor", "--json")
    (finding,) = [finding for finding in said.json["findings"] if finding["verdict"] == "wrong"]
    assert "not writable" in finding["what"]
    assert finding["helps"]
    assert findings(catchment, "wrong") == []


def test_a_backup_without_room_leaves_nothing_behind(catchment: Catchment, filled: Path, tmp_path: Path) -> None:
    with no_file_grows_beyond(50_000):
        said = catchment("backup", tmp_path / "copies" / "copy.db", "--json")
    assert said.failure == (6, "STORE_ERROR")
    assert [*(tmp_path / "copies").iterdir()] == []


def test_a_sound_backup_is_the_only_file_that_backup_leaves(catchment: Catchment, filled: Path, tmp_path: Path) -> None:
    assert catchment("backup", tmp_path / "copies" / "copy.db").code == 0
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["copy.db"]
    assert catchment("restore", tmp_path / "copies" / "copy.db").code == 0
    assert len(catchment("items", "--limit", 50, "--json").lines) == 30


def test_the_doctor_finds_an_emptied_database_odd_where_nothing_says_what_it_held(
    catchment: Catchment, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home folder was moved: its record is of a database at another place."""
    truncated(filled)
    moved = filled.parent.rename(tmp_path / "moved")
    monkeypatch.setenv("CATCHMENT_HOME", str(moved))
    (finding,) = [finding for finding in catchment("doctor", "--json").json["findings"] if finding["about"] == "schema"]
    assert finding["verdict"] == "odd"
    assert finding["what"] == f"the file {moved / filled.name} is there, but empty"
    assert "restore a backup" in finding["helps"]


def test_the_doctor_sees_a_postgresql_that_was_emptied_or_cannot_be_written_to(
    catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", postgres_url)
    catchment("sources", "add", "rss", site.feed("news", posts=3).url)
    catchment("collect")
    catchment("items")
    database = Database(postgres_url)
    name = make_url(postgres_url).database
    told(database, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    (finding,) = [
        finding for finding in catchment("doctor", "--json").json["findings"] if finding["verdict"] == "wrong"
    ]
    assert "not writable" in finding["what"]
    told(database, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert findings(catchment, "wrong") == []
    told(database, "DROP TABLE revisions CASCADE")
    assert findings(catchment, "wrong") == ["integrity"]
    told(database, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    assert findings(catchment, "wrong") == ["database"]
    database.close()


def told(database: Database, *statements: str) -> None:
    for sql in statements:
        database.write(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]
