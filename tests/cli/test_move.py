"""`catchment move`: what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Catchment


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'elsewhere' / 'catchment.db'}"


def test_a_moved_archive_is_used_by_setting_its_url(
    catchment: Catchment, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    before = catchment("sources", "list", "--json").json
    done = catchment("move", "--to", target, "--json")
    assert (done.code, done.json["to"], done.json["rows"]["sources"]) == (0, target, 1)
    assert {"copying", "verifying", "indexing"} <= done.json["seconds"].keys()
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", target)
    assert catchment("sources", "list", "--json").json == before


def test_people_are_told_what_to_do_next(catchment: Catchment, target: str) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    said = catchment("move", "--to", target)
    assert (said.code, said.err) == (0, "")
    assert "set CATCHMENT_DATABASE_URL" in said.out
    again = catchment("move", "--to", target)
    assert again.code == 5
    assert "already contains an archive" in again.err


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgres", (2, "INVALID_INPUT")),
        ("mysql://me:hunter2hunter2@127.0.0.1/x", (2, "INVALID_INPUT")),
        ("postgresql://me:hunter2hunter2@127.0.0.1:1/x", (6, "STORE_ERROR")),
    ],
)
def test_a_wrong_url_is_refused_and_its_password_is_not_shown(catchment: Catchment, url: str, code: object) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    said = catchment("move", "--to", url, "--json")
    assert said.failure == code
    assert "hunter2" not in said.out + said.err


def test_without_an_archive_there_is_nothing_to_move(catchment: Catchment, target: str, tmp_path: Path) -> None:
    said = catchment("move", "--to", target, "--json")
    assert said.failure == (4, "NOT_FOUND")
    assert list(tmp_path.glob("**/*.db")) == []
