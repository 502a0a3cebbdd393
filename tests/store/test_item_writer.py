"""A page is written whole or not at all, by many at once, in a handful of statements."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Event

import psycopg
import pytest

from catchment.errors import StoreError
from catchment.model import (
    Counts,
    Item,
    Media,
    Reference,
)
from catchment.store import Store
from catchment.store.database import RETRIES, Database, Transaction
from catchment.store.item_fields import COLUMNS, PAGE_COLUMNS
from catchment.store.items.deletion import Forget
from catchment.store.items.items import ExportFilter
from catchment.text.clean import FINGERPRINT_RULE, fingerprint
from tests.store.desk import Desk, later, opened, post
from tests.store.processes import Hand
from tests.store.structure import content
from tests.store.watching import WatchingDatabase

# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_that_fails_in_the_middle_leaves_no_trace(desk: Desk) -> None:
    claimed = desk.claim(desk.follow())
    desk.run_id
    before = content(desk.store.database)

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.write(claimed, [post("a", tags=("x",), references=(Reference("via", url="https://a.example/"),))],
                   body=b"raw", meanwhile=fail)  # fmt: skip
    assert content(desk.store.database) == before
    assert desk.write(claimed, [post("a")]).counts == Counts(new=1)


def test_what_a_driver_says_becomes_an_error_of_ours(desk: Desk) -> None:
    with pytest.raises(StoreError, match="no_such_table"):
        desk.store.database.read(lambda tx: tx.all("SELECT * FROM no_such_table"))
    assert desk.store.items.count() == 0


def test_a_key_that_is_taken_for_good_fails_in_the_end(desk: Desk) -> None:
    tries = []

    def action(tx: Transaction) -> None:
        tries.append(1)
        tx.insert("tags", ("name", "first_seen_at"), [("x", 1), ("x", 1)])

    with pytest.raises(StoreError):
        desk.store.database.write(action)
    assert len(tries) == (RETRIES if desk.store.database.is_postgres else 1)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_item_that_states_little_is_stored_the_same_beside_one_that_states_much(desk: Desk) -> None:
    much = post("much", score=3, is_pinned=True, media=(Media("https://a.example/a.png"),), title_prefixes=("x",))
    alone, beside = (desk.claim(desk.follow(name)) for name in ("https://a.example/", "https://b.example/"))
    stated = {"title": "A title", "tags": ("t",), "language": "en", "author": "Ann", "author_id": "a1"}
    desk.write(alone, [post("a", **stated)])
    desk.write(beside, [post("b", **stated), much])
    columns = [name for name in COLUMNS if name not in PAGE_COLUMNS | {"id", "external_id", "scope", "fingerprint"}]
    rows = desk.rows("items", f"external_id, {', '.join(columns)}")
    by_id = {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows}
    assert by_id["a"] == by_id["b"]
    assert [by_id["a"][name] for name in ("version", "media", "score")] == [1, "[]", None]
    assert [by_id["much"][name] for name in ("version", "score")] == [1, 3]
    assert not by_id["a"]["is_pinned"]
    assert by_id["much"]["is_pinned"]


# ── others who write at the same moment ───────────────────────────────────────────────────────────────────────────


def test_two_that_insert_the_same_item_make_one(desk: Desk) -> None:
    """Both have looked, and found nothing, before either writes; PostgreSQL lets both go on."""
    claims = [desk.claim(desk.follow(name, "reddit")) for name in ("r/one", "r/two")]
    desk.run_id
    begin = Barrier(2)

    def write(number: int) -> Counts:
        begin.wait()
        return desk.write(claims[number], [post(f"{each}") for each in range(50)]).counts

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(write, range(2)))
    assert sorted(counts, key=lambda count: count.new) == [Counts(duplicate=50), Counts(new=50)]
    assert (desk.count("items"), desk.count("sightings"), desk.rows("ledger", "id, change_number, last_item_id")) == (
        50,
        100,
        [(1, 1, 50)],
    )


def test_a_unique_key_that_another_took_between_look_and_write_is_looked_up_again(postgres_url: str) -> None:
    database, begin = Database(postgres_url), Barrier(2)
    tries = []

    def action(tx: Transaction) -> str:
        tries.append(1)
        if tx.one("SELECT 1 FROM budgets WHERE name = 'contended'"):
            return "found"
        if len(tries) <= 2:
            begin.wait()
        tx.run("INSERT INTO budgets (name, blocks, updated_at) VALUES ('contended', '', 0)")
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(database.write, [action, action])) == ["found", "made"]
    assert len(tries) == 3
    database.write(lambda tx: tx.run("DELETE FROM budgets"))
    database.close()


def test_of_two_that_wait_for_each_other_one_begins_again(postgres_url: str) -> None:
    database, begin = Database(postgres_url), Barrier(2)
    rows = [("deadlock 1", "", 0), ("deadlock 2", "", 0)]
    database.write(lambda tx: tx.insert("budgets", ("name", "blocks", "updated_at"), rows))
    tries = []

    def action(names: list[str]) -> str:
        def work(tx: Transaction) -> str:
            tries.append(1)
            tx.run("SET LOCAL deadlock_timeout = '10ms'")
            tx.run("UPDATE budgets SET updated_at = updated_at + 1 WHERE name = ?", names[0])
            if len(tries) <= 2:
                begin.wait()
            tx.run("UPDATE budgets SET updated_at = updated_at + 1 WHERE name = ?", names[1])
            return "done"

        return database.write(work)

    names = ["deadlock 1", "deadlock 2"]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(action, [names, names[::-1]])) == ["done", "done"]
    assert len(tries) > 2
    assert database.read(lambda tx: tx.all("SELECT updated_at FROM budgets")) == [(2,), (2,)]
    database.write(lambda tx: tx.run("DELETE FROM budgets"))
    database.close()


@pytest.mark.parametrize("verb", ["read", "write"])
def test_a_connection_that_the_server_closed_is_replaced(postgres_url: str, verb: str) -> None:
    database = Database(postgres_url, pool_size=1)
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as other:

        def action(tx: Transaction) -> None:
            row = tx.one("SELECT pg_backend_pid()")
            assert row is not None
            other.execute("SELECT pg_terminate_backend(%s)", [row[0]])
            tx.one("SELECT 1")

        with pytest.raises(StoreError, match="failed"):
            getattr(database, verb)(action)
    assert database.read(lambda tx: tx.one("SELECT 1")) == (1,)
    database.close()


def test_postgres_plans_each_question_anew_also_after_a_failed_one(postgres_url: str) -> None:
    database = Database(postgres_url, pool_size=1)
    with suppress(StoreError):
        database.write(lambda tx: tx.run("SELECT * FROM no_such_table"))
    assert database.read(lambda tx: tx.one("SHOW plan_cache_mode")) == ("force_custom_plan",)
    database.close()


@pytest.mark.parametrize("asked", ["SELECT 1", "SELECT * FROM no_such_table"])
def test_a_connection_that_was_asked_writes_all_or_nothing_afterwards(postgres_url: str, asked: str) -> None:
    database = Database(postgres_url, pool_size=1)
    with suppress(StoreError):
        database.read(lambda tx: tx.one(asked))

    def half(tx: Transaction) -> None:
        tx.insert("budgets", ("name", "blocks", "updated_at"), [("half", "", 0)])
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        database.write(half)
    assert database.read(lambda tx: tx.all("SELECT name FROM budgets WHERE name = 'half'")) == []
    database.close()


@pytest.mark.process
def test_threads_and_processes_that_write_together_lose_nothing_and_are_not_refused(
    desk: Desk, database_url: str, tmp_path: Path
) -> None:
    threads, pages = 8, 10
    sources = [desk.follow(f"r/{number}", "reddit") for number in range(threads)]
    others = [Hand("write", database_url, tmp_path, name, pages) for name in ("other", "another")]
    desk.run_id

    def write(number: int) -> None:
        for page in range(pages):
            desk.write(desk.claim(sources[number]), [post(f"{number} {page}"), post("shared", f"{number} {page}")])

    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(write, range(threads)))
        for process in others:
            assert process.hear() == pages
            process.end()
    finally:
        for process in others:
            process.close()
    writers = threads + len(others)
    assert desk.count("items") == writers * pages + 1
    assert desk.count("sightings") == writers * (pages + 1)
    assert desk.rows("ledger", "id, change_number, last_item_id") == [(1, writers * pages, writers * pages + 1)]
    assert desk.item("shared")["version"] == len(desk.revisions("shared")) + 1


# ── few statements ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def counting(database_url: str, tmp_path: Path) -> Iterator[Desk]:
    opened(database_url, tmp_path).close()
    desk = Desk(Store(WatchingDatabase(database_url), tmp_path, lambda *told: later(fingerprint(*told), desk.rule)))
    yield desk
    desk.close()


def full(key: str, round: int) -> Item:
    return post(
        key,
        f"said in round {round}",
        score=round,
        tags=("all", key, f"{key} in round {round}"),
        media=(Media("https://m.example/1.png"),),
        references=(Reference("via", url="https://a.example/"),),
    )


def statements(desk: Desk, number: int) -> list[int]:
    """How many it takes to write so many new items, the same again, counted, edited, withheld, by another rule."""
    database = desk.store.database
    assert isinstance(database, WatchingDatabase)
    source = desk.follow(f"r/{number}", "reddit")
    keys = [f"{number} {each}" for each in range(number)]
    pages = [
        [full(key, 1) for key in keys],
        [full(key, 1) for key in keys],
        [full(key, 1).replace(score=7) for key in keys],
        [full(key, 2) for key in keys],
        [Item(key, title="[deleted]", is_deleted=True) for key in keys],
    ]
    taken: list[int] = []
    for page in [*pages, pages[3]]:
        claimed = desk.claim(source)
        desk.clock.advance(60)
        database.told.clear()
        desk.write(claimed, page, body=b"%d" % len(taken))
        taken.append(len(database.told))
        if len(taken) == len(pages):
            desk.rule = FINGERPRINT_RULE + 1
    desk.rule = FINGERPRINT_RULE
    return taken


def test_a_page_takes_a_handful_of_statements_however_many_items_it_has(counting: Desk) -> None:
    counting.run_id
    few, many = statements(counting, 2), statements(counting, 100)
    assert few == many
    assert max(many) <= 25


def test_lists_of_any_length_can_be_asked_for(desk: Desk) -> None:
    """SQLite takes no more than 32,766 values a statement."""
    many = list(range(70_000))
    assert desk.store.database.read(lambda tx: tx.select_in("SELECT id FROM ledger WHERE id IN {values}", many)) == [
        (1,)
    ]


# ── SQLite's own ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deed_that_reads_before_it_writes_is_not_overtaken(tmp_path: Path) -> None:
    """A transaction that turned from reading to writing would fail at once, if another one wrote in between."""
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    other = opened(desk.store.database.url, tmp_path)
    put = "INSERT INTO settings (name, value, updated_at) VALUES (?, '1', 0)"
    with ThreadPoolExecutor(1) as pool:

        def action(tx: Transaction) -> None:
            assert tx.all("SELECT name FROM settings") == []
            # Time for the other to overtake, if it could.
            wait([pool.submit(other.database.write, lambda tx: tx.run(put, "other"))], timeout=0.3)
            tx.run(put, "ours")

        desk.store.database.write(action)
    assert [row[0] for row in desk.rows("settings", "name, 1, 2")] == ["other", "ours"]
    other.close()
    desk.close()


def test_a_reader_never_keeps_the_log_of_a_sqlite_file_from_shrinking(tmp_path: Path) -> None:
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    source = desk.follow()
    desk.show(source, *(post(f"{number}") for number in range(20)))
    export = desk.store.exports.of(ExportFilter(), batch=2)
    next(export)
    with closing(Database(desk.store.database.url)) as other:
        (is_busy, *_) = other.read(lambda tx: tx.one("PRAGMA wal_checkpoint(TRUNCATE)")) or (1,)
    assert is_busy == 0
    assert len(list(export)) == 19
    desk.close()


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────────


def told(desk: Desk, *references: Reference, body: bytes) -> tuple[Reference, ...]:
    """What is stored of the references of a post that is shown with these."""
    source = desk.follow("r/quoting", "reddit")
    desk.clock.advance(60)
    desk.write(desk.claim(source), [post("quoting", "said", references=references)], body=body)
    [item] = desk.store.items.newest(10, source_id=source.id)
    return item.references


def test_what_a_later_answer_shows_of_a_referenced_item_completes_the_reference(desk: Desk) -> None:
    bare, url_only = Reference("quoted", "7"), Reference("via", url="https://a.example/")
    assert told(desk, bare, url_only, body=b"1") == (bare, url_only)
    whole = Reference(
        "quoted",
        "7",
        author="ada",
        text="the whole of it",
        author_display_name="Ada L.",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        media=(Media("https://m.example/7.png", width=3, alt="a boat"),),
    )
    assert told(desk, whole, url_only, body=b"2") == (whole, url_only)
    # What is known stays, also when the platform shows less of it later, or something else in its place.
    assert told(desk, bare, body=b"3") == (whole, url_only)
    assert told(desk, Reference("quoted", "8", text="another"), body=b"4") == (whole, url_only)


def test_a_reference_to_somebody_forgotten_keeps_nothing_but_the_id(desk: Desk) -> None:
    now = desk.clock.now()
    desk.store.deletion.forget(Forget("author", "reddit", "test", author="ada"), now)
    told_of_ada = Reference("quoted", "7", author="ada", text="mine", author_display_name="Ada")
    assert told(desk, told_of_ada, body=b"1") == (Reference("quoted", "7"),)
    assert told(desk, told_of_ada, body=b"2") == (Reference("quoted", "7"),)


def test_two_transactions_at_once_do_not_place_two_posts_on_one_floor(desk: Desk) -> None:
    def floor(key: str) -> Item:
        return post(key, thread_id="t", floor_number=5)

    first, second = desk.claim(desk.follow("r/one", "reddit")), desk.claim(desk.follow("r/two", "reddit"))
    is_written, may_commit = Event(), Event()
    desk.run_id

    def hang() -> None:
        is_written.set()
        may_commit.wait(600)

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(desk.write, first, [floor("p1")], meanwhile=hang)
        assert is_written.wait(600)
        quick = pool.submit(desk.write, second, [floor("p2")])
        # Time for the second to overtake, if it could.
        wait([quick], timeout=0.3)
        may_commit.set()
        wait([slow, quick])
    assert [(desk.item(key)["floor_number"], desk.item(key)["thread_id"]) for key in ("p1", "p2")] == [
        (5, "t"),
        (None, "t"),
    ]
