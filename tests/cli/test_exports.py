"""What is stored, as files that other programs open."""

from __future__ import annotations

import csv
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Catchment
from tests.feedsite import BEGINNING, FeedSite


@pytest.fixture
def archive(catchment: Catchment, site: FeedSite) -> Catchment:
    """Two feeds, six items, one of them edited, one of them hostile to spreadsheets."""
    news, talk = site.feed("news", posts=3), site.feed("talk")
    talk.post("wide", title="＝SUM(A1:A9)", text="full-width")
    talk.post("sum", title='=HYPERLINK("https://evil.example","click")', text="-1, or 不")
    talk.post("old", title="Old", at=BEGINNING - timedelta(days=300))
    for feed in (news, talk):
        catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    news.post("news-2", text='changed, "quoted"\nand broken')
    catchment("collect", "--all")
    return catchment


def exported(archive: Catchment, file: Path, *more: object) -> Any:
    told = archive("export", "--format", file.suffix[1:], "--output", file, "--json", *more).json
    assert told["file"] == str(file)
    return told


def in_csv(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_csv_holds_what_json_lines_hold_with_lists_as_json(archive: Catchment, tmp_path: Path) -> None:
    told = exported(archive, tmp_path / "new" / "folder" / "items.csv", "--with-revisions")
    rows = in_csv(Path(told["file"]))
    lines = archive("export", "--output", "-", "--with-revisions").lines
    assert told["items"] == len(rows) == len(lines) == 6
    for row, line in zip(rows, lines, strict=True):
        assert set(row) == set(line)
        assert json.loads(row["revisions"]) == line["revisions"]
        assert row["id"] == str(line["id"])
        assert row["is_deleted"] == "false"
        assert row["score"] == ""
        assert row["text"].lstrip("'") == line["text"]


@pytest.mark.parametrize(
    ("name", "format"), [("a.csv", "csv"), ("a.JSONL", "jsonl"), ("a.txt", "jsonl"), ("a", "jsonl")]
)
def test_without_a_format_the_end_of_the_name_decides(
    archive: Catchment, tmp_path: Path, name: str, format: str
) -> None:
    assert archive("export", "--output", tmp_path / name, "--json").json["format"] == format


def test_no_cell_of_a_csv_begins_like_a_formula(archive: Catchment, tmp_path: Path) -> None:
    exported(archive, tmp_path / "items.csv")
    rows = in_csv(tmp_path / "items.csv")
    assert [(row["title"], row["text"]) for row in rows if row["external_id"] == "sum"] == [
        ('\'=HYPERLINK("https://evil.example","click")', "'-1, or 不")
    ]
    assert [row["title"] for row in rows if row["external_id"] == "wide"] == ["'＝SUM(A1:A9)"]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(tuple("=+-@＝＋－＠"))]


def test_an_export_is_readable_by_its_owner_alone(archive: Catchment, tmp_path: Path) -> None:
    exported(archive, tmp_path / "items.csv")
    assert (tmp_path / "items.csv").stat().st_mode & 0o777 == 0o600


def test_parquet_holds_what_json_lines_hold_with_types(archive: Catchment, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    told = exported(archive, tmp_path / "items.parquet")
    rows = parquet.read_table(tmp_path / "items.parquet").to_pylist()
    lines = archive("export", "--output", "-").lines
    assert told["items"] == len(rows) == 6
    for row, line in zip(rows, lines, strict=True):
        assert set(row) == set(line)
        assert row["created_at"] == datetime.fromisoformat(line["created_at"])
        assert row["created_at"].tzinfo is not None
        assert json.loads(row["tags"]) == line["tags"]
        assert {name: row[name] for name in ("id", "text", "is_deleted", "version", "score")} == {
            name: line[name] for name in ("id", "text", "is_deleted", "version", "score")
        }


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_an_empty_archive_makes_a_whole_file(catchment: Catchment, tmp_path: Path, format: str) -> None:
    catchment("migrate")
    told = exported(catchment, tmp_path / f"none.{format}")
    assert told["items"] == 0
    assert len(told["sha256"]) == 64
    if format == "csv":
        assert (tmp_path / "none.csv").read_text().startswith("id,platform,external_id,")


def test_an_export_may_be_of_a_source_of_a_kind_or_from_a_day_on(archive: Catchment) -> None:
    def ids(*chosen: object) -> set[str]:
        return {item["external_id"] for item in archive("export", "--output", "-", *chosen).lines}

    assert ids("--source", 2) == {"sum", "wide", "old"}
    assert ids("--kind", "rss") == {"news-1", "news-2", "news-3", "sum", "wide", "old"}
    assert ids("--kind", "website") == set()
    assert ids("--since", BEGINNING.date().isoformat()) == {"news-1", "news-2", "news-3", "sum", "wide"}
    assert ids("--source", 2, "--since", BEGINNING.astimezone(UTC).isoformat()) == {"sum", "wide"}
    assert archive("export", "--output", "-", "--source", 9).code == 4


def test_without_its_library_parquet_names_the_command_that_installs_it(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = catchment("export", "--format", "parquet", "--output", tmp_path / "x", "--json")
    assert said.failure == (2, "INVALID_INPUT")
    assert f"run `{sys.executable} -m pip install 'pyarrow" in said.json["error"]["message"]
    assert not (tmp_path / "x").exists()


def test_a_file_that_was_there_stays_until_the_new_one_is_whole(
    archive: Catchment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> object:
        raise OSError(28, "No space left on device", "x")

    (tmp_path / "items.csv").write_text("before")
    monkeypatch.setattr("catchment.sources.export._cell", broken)
    assert archive("export", "--format", "csv", "--output", tmp_path / "items.csv").code == 6
    assert [file.name for file in tmp_path.glob("items*")] == ["items.csv"]
    assert (tmp_path / "items.csv").read_text() == "before"


@pytest.mark.parametrize("name", ["items.jsonl", "copy.db"])
def test_a_file_of_the_user_s_own_beside_the_new_one_stays(archive: Catchment, tmp_path: Path, name: str) -> None:
    own = tmp_path / f"{name}.part"
    own.write_text("mine")
    command = ("export", "--output") if name.endswith("jsonl") else ("backup",)
    assert archive(*command, tmp_path / name).code == 0
    assert sorted(file.name for file in tmp_path.glob(f"{name}*")) == [name, f"{name}.part"]
    assert own.read_text() == "mine"
