"""The database and the installation: migrate, backup, restore, doctor."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

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
    catchment("sources", "list")
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
    assert site.server.arrived.wait(30)
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
    assert (doctor.code, [one["about"] for one in doctor.json["findings"] if one["verdict"] == "wrong"]) == (
        1,
        ["schema"],
    )


# ── the doctor ────────────────────────────────────────────────────────────────────────────────────────────────────


def findings(catchment: Catchment, verdict: str) -> list[str]:
    return [one["about"] for one in catchment("doctor", "--json").json["findings"] if one["verdict"] == verdict]


def test_a_healthy_installation_is_told_so_and_nothing_is_made_by_looking(catchment: Catchment, home: Path) -> None:
    said = catchment("doctor", "--json")
    assert (said.code, said.json["is_well"]) == (0, True)
    assert not (home / "catchment.db").exists()
    assert {one["name"]: one["origin"] for one in said.json["settings"]} == {
        "CATCHMENT_HOME": "environment",
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "environment",
        "CATCHMENT_RETRY_WAITS": "environment",
    }
    assert catchment("doctor").out.endswith("nothing is wrong\n")


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
