"""A command that only reads makes no database, and says who would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Catchment

READING = [
    *(["items"], ["search", "tide"], ["show", "1"], ["revisions", "1"], ["changes"], ["status"], ["plan"], ["gaps"]),
    *(
        ["sources", "list"],
        ["sources", "show", "1"],
        ["sources", "pause", "1"],
        ["sources", "export", "-", "--format=csv"],
    ),
    *(
        ["alerts"],
        ["metrics"],
        ["credentials", "list"],
        ["watches", "list"],
        ["webhooks", "list"],
        ["notifications", "list"],
        ["coverage", "1"],
    ),
    *(["security-audit"], ["reparse", "--all"], ["export", "--output", "-"], ["keys", "list"], ["sessions", "list"]),
    *(["settings", "intervals"], ["tasks", "list"], ["tiers"], ["spending"]),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_reads_makes_no_database_and_says_who_does(
    catchment: Catchment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    file = tmp_path / "no" / "such" / "folder" / "catchment.db"
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", f"sqlite:///{file}")
    monkeypatch.setenv("CATCHMENT_HOME", str(tmp_path / "nowhere"))
    said = catchment(*command, "--json")
    assert said.failure == (4, "NOT_FOUND")
    assert str(file) in said.err
    assert "`catchment serve`" in said.err
    assert "`catchment sources add`" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]


def test_a_file_without_anything_in_it_stays_without_anything(catchment: Catchment, home: Path) -> None:
    home.mkdir()
    (home / "catchment.db").touch()
    assert catchment("items", "--json").failure == (4, "NOT_FOUND")
    assert (home / "catchment.db").stat().st_size == 0
    assert catchment("sources", "add", "rss", "https://a.example/feed").code == 0
    assert catchment("items", "--json").code == 0


def test_the_doctor_makes_nothing_either(catchment: Catchment, home: Path) -> None:
    # Wherever the line is wrapped: that depends on how long the path before it is.
    assert "is created when it is needed" in " ".join(catchment("doctor").out.split())
    assert not home.exists()


def test_what_a_wrong_address_of_a_database_should_look_like_is_told_whole(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", "nonsense")
    assert "'nonsense' is not sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME" in catchment("items").err
