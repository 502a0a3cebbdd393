"""A process stays registered through outages of its database."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from catchment.errors import StoreError
from tests.store.desk import Desk, opened


def test_a_process_that_could_not_register_again_during_an_outage_does_so_after_it(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(opened(postgres_url, tmp_path))
    source, before = desk.follow(f"outage {tmp_path}"), desk.presence.owner_id
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def refuse() -> None:
        raise psycopg.OperationalError("the database system is starting up")

    with monkeypatch.context() as patch:
        patch.setattr(desk.store.database, "own_session", refuse)
        for _ in range(2):
            with pytest.raises(StoreError):
                desk.presence.heartbeat(desk.now)
    desk.presence.heartbeat(desk.now)
    assert desk.presence.owner_id != before
    assert desk.claim(source).source == source
    desk.close()


def test_a_process_that_ends_during_an_outage_ends_without_an_error(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(opened(postgres_url, tmp_path))
    desk.store.database.write(lambda tx: tx.run("DELETE FROM owners WHERE id = ?", desk.presence.owner_id))

    def refuse() -> None:
        raise psycopg.OperationalError("the database system is starting up")

    with monkeypatch.context() as patch:
        patch.setattr(desk.store.database, "own_session", refuse)
        with pytest.raises(StoreError):
            desk.presence.heartbeat(desk.now)
        desk.presence.leave(desk.now)
    desk.store.close()
