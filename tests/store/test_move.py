"""A moved archive is the archive: every row, every id, every answer; whatever interrupts the move."""

from __future__ import annotations

import atexit
import hashlib
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from catchment.errors import CatchmentError, Conflict, InvalidInput, NotFound, SchemaMismatch, Stopped, StoreError
from catchment.store import move, table_copy
from catchment.store.database import Database
from catchment.store.delivery.webhooks import SealedWebhook
from catchment.store.migrate import revision
from catchment.store.move import MOVED, OF_PROCESSES, Moved
from catchment.store.schema import metadata
from catchment.store.table_copy import ReadOnlyDatabase
from catchment.store.version import HEAD, MOVING
from tests.clocks import HandClock
from tests.databases import POSTGRESQL, sqlite_ready
from tests.forked import Forked
from tests.store.desk import Desk, opened, post
from tests.store.sample import fill
from tests.store.test_plans import QUESTIONS

pytestmark = pytest.mark.process


class House:
    """Two databases, and moves between them."""

    def __init__(self, folder: Path, source: str, target: str, seconds: float = 0) -> None:
        """`seconds`: how long the archive was filled, by its clock."""
        self.home, self.source, self.target, self.seconds = folder / "home", source, target, seconds

    def move(self, on_step: Callable[[str, int], object] = lambda stage, number: None, **more: Any) -> Moved:
        return moved(self.home, more.get("source", self.source), more.get("target", self.target), on_step, **more)

    @contextmanager
    def desk(self, url: str) -> Iterator[Desk]:
        desk = Desk(opened(url, self.home))
        try:
            yield desk
        finally:
            desk.close()

    def rows(self, url: str) -> dict[str, list[tuple[Any, ...]]]:
        """What is in the tables that are moved, as SQLite stores it."""
        with closing(Database(url)) as database:
            return {table.name: sorted_rows(database, table.name) for table in MOVED}

    def tell(self, url: str, *statements: str) -> None:
        with closing(Database(url)) as database:
            for sql in statements:
                database.write(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]

    def revision(self, url: str) -> str | None:
        with closing(Database(url)) as database:
            return revision(database)


class Steps:
    """A progress bar that counts, and may interrupt."""

    def __init__(self, stage: str, on_step: Callable[[str, int], object]) -> None:
        self._stage, self._on_step = stage, on_step

    def move(self, count: int, words: str = "") -> None:
        self._on_step(self._stage, count)


def moved(
    home: Path,
    source_url: str,
    target_url: str,
    on_step: Callable[[str, int], object] = lambda stage, number: None,
    *,
    stop: Event | None = None,
    **_: Any,
) -> Moved:
    @contextmanager
    def stage(name: str, total: int) -> Iterator[Steps]:
        on_step(name, 0)
        yield Steps(name, on_step)

    with (
        closing(ReadOnlyDatabase(source_url, creates=False)) as source,
        closing(Database(target_url)) as target,
    ):
        return move.move(source, target, home, HandClock().now, stop or Event(), stage)


def sorted_rows(database: Database, table: str) -> list[tuple[Any, ...]]:
    columns = ", ".join(f'"{column.name}"' for column in metadata.tables[table].columns)
    where = "WHERE name <> 'deployment'" if table == "settings" else ""
    rows = database.read(lambda tx: tx.all(f"SELECT {columns} FROM {table} {where}"))
    return sorted((tuple(int(v) if isinstance(v, bool) else v for v in row) for row in rows), key=repr)


@cache
def filled_file() -> tuple[Path, float]:
    """A filled archive in a SQLite file, and how many seconds of its clock that took. Filled once, then copied."""
    folder = Path(tempfile.mkdtemp(prefix="catchment-filled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    desk = Desk(opened(sqlite_ready(f"sqlite:///{folder / 'catchment.db'}"), folder))
    began = desk.now
    fill(desk)
    seconds = (desk.now - began).total_seconds()
    desk.close()
    return folder / "catchment.db", seconds


def filled_house(folder: Path, target: str) -> House:
    file, seconds = filled_file()
    (folder / "data").mkdir()
    shutil.copyfile(file, folder / "data" / "catchment.db")
    return House(folder, f"sqlite:///{folder / 'data' / 'catchment.db'}", target, seconds)


@pytest.fixture(params=["to PostgreSQL", "to SQLite"])
def house(request: pytest.FixtureRequest, tmp_path: Path, blank_postgres_url: str) -> House:
    """A filled archive, and an empty database of the other sort."""
    house = filled_house(tmp_path, blank_postgres_url)
    if request.param == "to PostgreSQL":
        return house
    house.move()
    return House(tmp_path, blank_postgres_url, f"sqlite:///{tmp_path / 'target' / 'catchment.db'}", house.seconds)


@pytest.fixture
def simple(tmp_path: Path) -> House:
    """A filled archive and an empty database, both SQLite: for rules that do not depend on the database."""
    return filled_house(tmp_path, sqlite_ready(f"sqlite:///{tmp_path / 'target' / 'catchment.db'}"))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_copy, "BATCH_ROWS", 2)


# ── what is moved ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_there_and_back_again_every_row_is_the_same(tmp_path: Path, blank_postgres_url: str) -> None:
    house = filled_house(tmp_path, blank_postgres_url)
    before = house.rows(house.source)
    assert house.move().rows == {name: len(rows) for name, rows in before.items() if rows}
    assert house.rows(house.target) == before
    back = f"sqlite:///{tmp_path / 'back.db'}"
    house.move(source=house.target, target=back)
    assert house.rows(back) == before
    assert [house.revision(url) for url in (house.target, back)] == [HEAD, HEAD]


def test_every_table_of_a_real_database_is_moved_but_these(tmp_path: Path, postgres_url: str) -> None:
    left_out = {
        *("owners", "leases", "budgets", "hot_sources", "hot_sets"),
        *("index_mark", "indexed", "facets", "postings"),
        "alembic_version",
    }
    sqlite = sqlite_ready(f"sqlite:///{tmp_path / 'catchment.db'}")
    # The last ones are SQLite's own, and its index of words.
    for url, sql, own in (
        (postgres_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", ()),
        (sqlite, "SELECT name FROM sqlite_master WHERE type = 'table'", ("sqlite_", "item_words")),
    ):
        with closing(Database(url)) as database:
            names = database.read(lambda tx, sql=sql: tx.column(sql))  # type: ignore[misc]
        found = {name for name in names if not name.startswith(own or ("none",))}
        assert found - {table.name for table in MOVED} == left_out, url
        assert {table.name for table in MOVED} <= found


def test_the_source_is_not_changed(house: House) -> None:
    file = Path(house.source.removeprefix("sqlite:///"))
    is_file = house.source.startswith("sqlite")
    before = hashlib.sha256(file.read_bytes()).digest() if is_file else house.rows(house.source)
    house.move()
    assert (hashlib.sha256(file.read_bytes()).digest() if is_file else house.rows(house.source)) == before


def test_every_question_has_the_same_answer(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbits", lambda bits: bits)
    house.move()
    # The target has none of these: a lease's number would tell them apart, and a warm cache.
    house.tell(house.source, *(f"DELETE FROM {table}" for table in sorted(OF_PROCESSES)))
    with house.desk(house.source) as here, house.desk(house.target) as there:
        for desk in (here, there):
            desk.clock.advance(house.seconds)
            desk.run_id
        for what, ask in QUESTIONS.items():
            answers = [ask(desk) for desk in (here, there)]
            assert answers[0] == answers[1], what


def test_what_belongs_to_processes_stays_and_search_is_ready(house: House) -> None:
    with house.desk(house.source) as desk:
        name = desk.store.settings.deployment(desk.now)
        found = [hit.id for hit in desk.store.search.find("天", limit=9).items]
    assert found
    house.move()
    with house.desk(house.target) as desk:
        assert desk.store.index.behind() == 0
        assert [hit.id for hit in desk.store.search.find("天", limit=9).items] == found
        assert [desk.count(table) for table in sorted(OF_PROCESSES)] == [0] * len(OF_PROCESSES)
        assert desk.store.settings.deployment(desk.now) != name


def test_numbers_are_never_given_twice(house: House) -> None:
    """Not even those of owners that stayed behind, or of rows that were deleted: unfinished runs refer to them."""
    with house.desk(house.source) as desk:
        owner, webhook = desk.presence.owner_id, desk.store.webhooks.id_of("mine")
        desk.store.webhooks.remove(webhook, desk.now)
        run = desk.store.runs.begin("test", "test", owner, desk.now)
    house.move()
    with house.desk(house.target) as desk:
        assert desk.presence.owner_id > owner
        another = SealedWebhook(0, "next", "https://hooks.example/", (), "key", b"sealed")
        assert desk.store.webhooks.add(another, desk.now) > webhook
        assert desk.store.runs.begin("test", "test", desk.presence.owner_id, desk.now) > run
        last_item = max(row[0] for row in desk.rows("items", "id, version, kind"))
        desk.show(desk.follow("new"), post("a new item"))
        assert desk.item("a new item")["id"] > last_item


# ── interruptions ─────────────────────────────────────────────────────────────────────────────────────────────────


class Cut(Exception):
    """The power went off."""


def cut_at(step: int) -> Callable[[str, int], None]:
    count = 0

    def on_step(stage: str, number: int) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise Cut(stage)

    return on_step


@pytest.mark.usefixtures("small_batches")
def test_a_move_that_is_killed_at_random_moments_continues_and_is_complete(house: House) -> None:
    chance = random.Random(14)
    for _ in range(5):
        process = Forked(announced_move, str(house.home), house.source, house.target)
        try:
            for _ in range(chance.randint(1, 40)):
                if not process.stdout.readline():
                    break
        finally:
            process.close()
    house.move()
    assert house.rows(house.target) == house.rows(house.source)
    assert house.revision(house.target) == HEAD


def announced_move(home: str, source: str, target: str) -> None:
    """To be run in a process of its own: a line for each step."""
    table_copy.BATCH_ROWS = 2
    moved(Path(home), source, target, lambda stage, number: sys.stdout.write(f"{stage} {number}\n"))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stage", ["Copying", "Verifying", "Indexing"])
def test_a_move_continues_in_every_stage_and_copies_nothing_twice(simple: House, stage: str) -> None:
    def cut(reached: str, number: int) -> None:
        if reached == stage and (number >= 30 or stage == "Indexing"):
            raise Cut

    with pytest.raises(Cut):
        simple.move(cut)
    assert simple.revision(simple.target) == MOVING
    steps: list[tuple[str, int]] = []
    assert simple.move(lambda *step: steps.append(step)).is_resumed
    assert [number for name, number in steps if name == "Copying" and 0 < number <= 30] == []
    assert simple.rows(simple.target) == simple.rows(simple.source)


def test_an_unfinished_copy_is_opened_by_nobody(simple: House) -> None:
    with pytest.raises(Cut):
        simple.move(cut_at(5))
    with pytest.raises(SchemaMismatch, match="being moved"):
        opened(simple.target, simple.home, may_migrate=True)
    with pytest.raises(SchemaMismatch, match="being moved"):
        simple.move(source=simple.target, target=simple.source)


@pytest.mark.usefixtures("small_batches")
def test_a_stop_ends_it_after_a_batch_and_it_continues(simple: House) -> None:
    stop = Event()
    with pytest.raises(Stopped):
        simple.move(lambda stage, number: number > 9 and stop.set(), stop=stop)
    assert simple.move().is_resumed


@pytest.mark.usefixtures("small_batches")
def test_what_changed_in_the_source_between_two_attempts_is_copied(simple: House) -> None:
    with pytest.raises(Cut):
        simple.move(cut_at(70))
    simple.tell(simple.source, "UPDATE sources SET name = 'renamed' WHERE id = 1")
    assert not simple.move().is_resumed
    assert simple.rows(simple.target) == simple.rows(simple.source)


def test_a_copy_that_differs_is_noticed_and_made_again(simple: House) -> None:
    def damage(stage: str, number: int) -> None:
        if (stage, number) == ("Verifying", 0):
            simple.tell(simple.target, "UPDATE items SET title = 'another' WHERE id = 2")

    with pytest.raises(StoreError, match="the copy of items differs"):
        simple.move(damage)
    simple.move()
    assert simple.rows(simple.target) == simple.rows(simple.source)


def test_a_source_that_is_collected_into_meanwhile_is_noticed(simple: House) -> None:
    def collect(stage: str, number: int) -> None:
        if (stage, number) == ("Verifying", 0):
            with simple.desk(simple.source) as desk:
                desk.show(desk.store.sources.get(1), post("meanwhile"))

    with pytest.raises(Conflict, match="changed meanwhile"):
        simple.move(collect)
    simple.move()
    assert simple.rows(simple.target) == simple.rows(simple.source)


@pytest.mark.parametrize("at", [("Verifying", 0), ("Indexing", 0)])
@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("UPDATE sources SET name = 'renamed' WHERE id = 1", "sources"),
        ("INSERT INTO settings (name, value, updated_at) VALUES ('added', '1', 0)", "settings"),
        ("DELETE FROM run_sources", "run_sources"),
        # Neither the number of rows nor the ledger tells of these.
        ("UPDATE progress SET failures_in_a_row = 3 WHERE source_id = 1", "progress"),
        ("UPDATE items SET title = title || title WHERE id = 1", "items"),
    ],
)
def test_whatever_is_changed_meanwhile_is_noticed_and_copied_by_the_next_attempt(
    simple: House, at: tuple[str, int], change: str, table: str
) -> None:
    def interfere(stage: str, number: int) -> None:
        if (stage, number) == at:
            simple.tell(simple.source, change)

    with pytest.raises(Conflict, match=rf"changed meanwhile \({table}\)"):
        simple.move(interfere)
    simple.move()
    assert simple.rows(simple.target) == simple.rows(simple.source)


def test_a_change_of_a_server_is_noticed_too(house: House) -> None:
    def interfere(stage: str, number: int) -> None:
        if (stage, number) == ("Indexing", 0):
            house.tell(house.source, "UPDATE progress SET failures_in_a_row = 3 WHERE source_id = 1")

    with pytest.raises(Conflict, match=r"changed meanwhile \(progress\)"):
        house.move(interfere)
    house.move()
    assert house.rows(house.target) == house.rows(house.source)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(house: House, kind: type[CatchmentError], words: str, **more: Any) -> None:
    before = house.rows(house.source)
    with pytest.raises(kind, match=words):
        house.move(**more)
    assert house.rows(house.source) == before


def test_the_same_database_is_refused_under_any_name(house: House, tmp_path: Path) -> None:
    if house.source.startswith("sqlite"):
        (tmp_path / "link").symlink_to(tmp_path / "data")
        same = f"sqlite:///{tmp_path / 'link' / 'catchment.db'}"
    else:
        same = house.source + "&application_name=another"
    refused(house, InvalidInput, "already", target=same)


def test_a_target_with_rows_is_refused_and_keeps_them(simple: House) -> None:
    with simple.desk(simple.target) as desk:
        desk.follow("another")
    kept = simple.rows(simple.target)
    refused(simple, Conflict, "already contains an archive")
    assert simple.rows(simple.target) == kept


@pytest.mark.usefixtures("small_batches")
def test_an_unfinished_copy_of_another_archive_is_refused(simple: House, tmp_path: Path) -> None:
    with pytest.raises(Cut):
        simple.move(cut_at(40))
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with simple.desk(other) as desk:
        desk.follow("another")
    with pytest.raises(Conflict, match="another archive"):
        simple.move(source=other)
    assert simple.move().is_resumed


@pytest.mark.parametrize(("version", "words"), [("0000", "from before"), ("9999", "newer")])
@pytest.mark.parametrize("which", ["source", "target"])
def test_another_schema_is_refused(simple: House, which: str, version: str, words: str) -> None:
    with simple.desk(simple.target):
        pass
    simple.tell(getattr(simple, which), f"UPDATE alembic_version SET version_num = '{version}'")
    refused(simple, SchemaMismatch, words)


def test_a_source_that_is_in_use_is_refused(house: House) -> None:
    with house.desk(house.source) as desk:
        desk.presence
        refused(house, Conflict, r"in use by test \(process")


def test_two_moves_into_one_target_are_refused(simple: House) -> None:
    def again(stage: str, number: int) -> None:
        if stage == "Copying" and number:
            process = Forked(announced_move, str(simple.home), simple.source, simple.target)
            try:
                assert process.code() == 1
                assert "in use by move" in process.stderr.read()
            finally:
                process.close()
            raise Cut

    with pytest.raises(Cut):
        simple.move(again)


def test_a_source_that_is_missing_is_refused_and_not_created(tmp_path: Path) -> None:
    house = House(tmp_path, f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{tmp_path / 'target.db'}")
    with pytest.raises(NotFound):
        house.move()
    assert list(tmp_path.glob("*.db")) == []


@pytest.mark.parametrize("sort", ["sqlite", POSTGRESQL])
def test_an_empty_archive_can_be_moved(sort: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue("postgres_url") if sort == "postgresql" else f"sqlite:///{tmp_path / 'b.db'}"
    house = House(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", target)
    opened(house.source, house.home).close()
    assert house.move().rows == {"ledger": 1}
