"""Moves an archive to another database: from SQLite to PostgreSQL, and back.

All tables are copied in batches. Each batch is committed together with the progress of its table, so that a killed move
continues where it was. Then the rows in the target are read again and compared with those of the source, and the search
index is built. Until all of that is done, the target has a version that no program opens. The source is only read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Protocol

import msgspec

from catchment.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, Stopped, StoreError
from catchment.messages import about
from catchment.store.database import Database, Row, Transaction
from catchment.store.leases import Presence, living
from catchment.store.migrate import ready, revision
from catchment.store.schema import metadata
from catchment.store.search.index import SearchIndex
from catchment.store.settings import DEPLOYMENT
from catchment.store.table_copy import (
    NO_ROWS,
    ChangeMark,
    CopiedTable,
    ReadOnlyDatabase,
    RowBatch,
    RowsHash,
    TableRows,
    continue_numbers,
    last_ids,
    snapshot,
    writer_to,
)
from catchment.store.version import HEAD, MOVING, is_blank, mismatch, remember

OF_PROCESSES = {"owners", "leases", "budgets", "hot_sources", "hot_sets"}
"""Tables about running processes, and about what is cached: they stay where they are."""
REBUILT = {"index_mark", "indexed", "facets", "postings"}
"""The search index."""
_CONDITIONS = {"settings": f"name <> '{DEPLOYMENT}'"}
"""A moved archive gets a new name: what the former deployment left in Redis is not its own."""
MOVED = [
    CopiedTable(table, _CONDITIONS.get(table.name, "true"))
    for table in metadata.sorted_tables
    if table.name not in OF_PROCESSES | REBUILT
]
"""The tables that are copied, referenced ones first: whatever the schema has, unless it is named above."""
_HEARTBEAT_SECONDS = 20.0
_SAME_KEY = 0x6D6F7665  # "move": PostgreSQL's advisory lock that tells whether two URLs lead to one database


class ProgressBar(Protocol):
    def move(self, count: int, words: str = "") -> None: ...


Stage = Callable[[str, int], AbstractContextManager[ProgressBar]]
"""Begins a stage of the work with this name and this many rows."""


@dataclass(frozen=True)
class Moved:
    """What a move did."""

    rows: dict[str, int]
    """By table, whether copied now or by an earlier attempt."""
    seconds: dict[str, float]
    """By stage."""
    is_resumed: bool


def move(
    source: ReadOnlyDatabase, target: Database, home: Path, now: Callable[[], datetime], stop: Event, stage: Stage
) -> Moved:
    """Copy the archive; continues a move that was interrupted.

    Raises Conflict if one of the databases is in use, or the target has rows already; SchemaMismatch; InvalidInput if
    both are the same; Stopped. The target is then as before, or the same call continues.
    """
    _refuse_other_schema(source)
    _refuse_same(source, target)
    _refuse_while_in_use(source, home, now())
    _set_up(target, home, now())
    with ExitStack() as stack:
        presence = Presence(target, home, "move", now())
        stack.callback(lambda: presence.leave(now()))
        _refuse_while_in_use(target, home, now(), but=presence)
        presence.bury(now())
        with target.said_plainly():
            return _Move(source, target, home, presence, now, stop, stage).run()


def _refuse_other_schema(source: Database) -> None:
    if is_blank(source):
        raise NotFound("there is no database {url}", "check CATCHMENT_DATABASE_URL", url=source.shown_url)
    number = revision(source)
    if number is None:
        raise NotFound("{url} is empty", "check CATCHMENT_DATABASE_URL", url=source.shown_url)
    if (error := mismatch(number)) is not None:
        raise error


def _refuse_same(source: Database, target: Database) -> None:
    if source.file and target.file:
        is_same = target.file.exists() and os.path.samefile(source.file, target.file)
    elif source.is_postgres and target.is_postgres:
        # The same database may have many URLs: a lock that is held through one cannot be taken through the other.
        with closing(source.own_session()) as here, closing(target.own_session()) as there:
            here.execute("SELECT pg_advisory_lock(%s)", [_SAME_KEY])
            is_same = not there.execute("SELECT pg_try_advisory_lock(%s)", [_SAME_KEY]).fetchone()[0]
    else:
        is_same = False
    if is_same:
        raise InvalidInput("the archive is already in {url}", "use another database", field="to", url=target.shown_url)


def _refuse_while_in_use(database: Database, home: Path, now: datetime, but: Presence | None = None) -> None:
    ours = None if but is None else (os.uname().nodename, os.getpid(), "move")
    for process in living(database, home, now):
        if (process.machine, process.pid, process.work) != ours:
            raise Conflict(
                "{url} is in use by {work} (process {pid} on {machine})",
                "stop it first, and start it again after the move",
                url=database.shown_url,
                work=process.work,
                pid=process.pid,
                machine=process.machine,
            )


def _set_up(target: Database, home: Path, now: datetime) -> None:
    """Gives an empty target its tables. Raises Conflict or SchemaMismatch if it cannot become the target."""
    number = revision(target)
    if number == MOVING:
        return
    if number is not None and (error := mismatch(number)) is not None:
        raise SchemaMismatch(about(target.shown_url, error.what), error.helps)
    ready(target, home, now, may_migrate=False)
    for table in MOVED:
        count = target.read(lambda tx, table=table: _count(tx, table))  # type: ignore[misc]
        if count > _rows_of_an_empty(table, target):
            raise Conflict(
                "{url} already contains an archive ({count} rows in {table})",
                "use an empty database; nothing was changed",
                url=target.shown_url,
                count=count,
                table=table.name,
            )


def _rows_of_an_empty(table: CopiedTable, target: Database) -> int:
    if table.name != "ledger":
        return 0
    return target.read(
        lambda tx: tx.number("SELECT count(*) FROM ledger WHERE change_number = 0 AND last_event_id = 0")
    )


def _count(tx: Transaction, table: CopiedTable) -> int:
    return tx.number(f"SELECT count(*) FROM {table.name} WHERE {table.condition}")


class Copied(NamedTuple):
    """How far the copy of a table has come."""

    last_key: Row
    hash: RowsHash


def _total(copied: dict[str, Copied]) -> int:
    return sum(done.hash.row_count for done in copied.values())


class _Move:
    """A move whose databases are checked and ready."""

    def __init__(
        self,
        source: ReadOnlyDatabase,
        target: Database,
        home: Path,
        presence: Presence,
        now: Callable[[], datetime],
        stop: Event,
        stage: Stage,
    ) -> None:
        self._source, self._target, self._home = source, target, home
        self._presence, self._now, self._stop, self._bar = presence, now, stop, stage
        self._heartbeat_at = time.monotonic()
        self._seconds: dict[str, float] = {}

    def run(self) -> Moved:
        with self._source.said_plainly(), closing(ChangeMark(self._source)) as mark:
            return self._run(mark)

    def _run(self, mark: ChangeMark) -> Moved:
        with snapshot(self._source) as connection, closing(writer_to(self._target)) as writer:
            source, target = TableRows(self._source, connection), TableRows(self._target, writer)
            with self._source.said_plainly():
                # The snapshot begins with the first query.
                tx = Transaction(connection, self._source.is_postgres)
                numbers = last_ids(tx)
                count = sum(_count(tx, table) for table in MOVED)
            copied = self._copied_before(source)
            is_resumed = bool(copied)
            if not copied:
                self._commit(writer, self._begin)
            self._copy(writer, source, target, copied, count)
            self._verify(writer, target, copied)
        self._refuse_changes(mark, copied)
        self._analyze()
        self._index()
        self._analyze()
        # The index takes longest: someone may have added an API key, or changed a source.
        self._refuse_changes(mark, copied)
        self._target.write(lambda tx: _finish(tx, numbers))
        remember(self._target, self._home)
        return Moved({name: done.hash.row_count for name, done in copied.items()}, self._seconds, is_resumed)

    def _refuse_changes(self, mark: ChangeMark, copied: dict[str, Copied]) -> None:
        """Raises Conflict if the source was changed since it was copied. If anything was committed there, all of it is
        read again: it may have been another database of the server, or an update of any row."""
        _refuse_while_in_use(self._source, self._home, self._now())
        with self._source.said_plainly():
            if not mark.has_moved():
                return
            with snapshot(self._source) as connection, self._stage("Checking", _total(copied)) as bar:
                rows, changed, checked = TableRows(self._source, connection), [], 0
                for table in MOVED:
                    expected = copied[table.name].hash if table.name in copied else NO_ROWS
                    if rows.hashed(table, self._shown(bar, table, checked)) != expected:
                        changed.append(table.name)
                    checked += expected.row_count
        if changed:
            raise Conflict(
                "the archive has changed meanwhile ({tables})",
                "stop the program that uses it, and run the same command again",
                tables=", ".join(changed),
            )

    def _analyze(self) -> None:
        """PostgreSQL's planner depends on statistics, which it would collect only after some time."""
        if self._target.is_postgres:
            self._target.write(lambda tx: tx.run("ANALYZE"))

    @contextmanager
    def _stage(self, name: str, total: int) -> Iterator[ProgressBar]:
        began = time.monotonic()
        with self._bar(name, total) as bar:
            yield bar
        self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - began

    def _commit(self, writer: Any, change: Callable[[Transaction], object]) -> None:
        """One transaction in the target."""
        if not self._target.is_postgres:
            writer.execute("BEGIN IMMEDIATE")
        change(Transaction(writer, self._target.is_postgres))
        writer.commit()
        self._pause()

    def _pause(self) -> None:
        """Between two steps: a chance to stop, and to show that this process is alive."""
        if self._stop.is_set():
            raise Stopped("the move was stopped", "run the same command again; it continues")
        if time.monotonic() > self._heartbeat_at + _HEARTBEAT_SECONDS:
            self._presence.heartbeat(self._now())
            self._heartbeat_at = time.monotonic()

    # What an earlier attempt has copied

    def _begin(self, tx: Transaction) -> None:
        """Marks the target as unfinished, and empties it."""
        tables = [table.name for table in reversed(metadata.sorted_tables) if table.name not in ("owners", "leases")]
        if tx.is_postgres:
            tx.run(f"TRUNCATE {', '.join(tables)}")
        else:
            tx.run("INSERT INTO item_words (item_words) VALUES ('delete-all')")
            for table in tables:
                tx.run(f"DELETE FROM {table}")
        tx.run("UPDATE alembic_version SET version_num = ?", MOVING)
        tx.run("DROP TABLE IF EXISTS move_progress")
        tx.run(
            """
            CREATE TABLE move_progress (
                source TEXT NOT NULL, table_name TEXT PRIMARY KEY, last_key TEXT NOT NULL,
                row_count BIGINT NOT NULL, row_hash TEXT NOT NULL
            )
            """
        )

    def _copied_before(self, source: TableRows) -> dict[str, Copied]:
        """Returns how far each table was copied; nothing if the copy has to start from the beginning."""
        if revision(self._target) != MOVING:
            return {}
        rows = self._target.read(
            lambda tx: tx.all("SELECT source, table_name, last_key, row_count, row_hash FROM move_progress")
        )
        copied = {
            name: Copied(tuple(msgspec.msgpack.decode(bytes.fromhex(key))), RowsHash(count, int(hash, 16)))
            for _, name, key, count, hash in rows
        }
        if self._are_still_so(source, copied):
            return copied
        if any(row[0] != self._source.shown_url for row in rows):
            raise Conflict(
                "{url} contains an unfinished copy of another archive ({other})",
                "use an empty database; nothing was changed",
                url=self._target.shown_url,
                other=rows[0][0],
            )
        return {}

    def _are_still_so(self, source: TableRows, copied: dict[str, Copied]) -> bool:
        """Whether the source still has the rows that were copied, unchanged."""
        with self._stage("Checking", _total(copied)) as bar:
            checked = 0
            for table in MOVED:
                if (done := copied.get(table.name)) is not None:
                    current = source.hashed(table, self._shown(bar, table, checked), up_to=done.last_key)
                    if current != done.hash:
                        return False
                    checked += current.row_count
        return True

    def _shown(self, bar: ProgressBar, table: CopiedTable, before: int) -> Callable[[int], None]:
        """Returns a function that shows how many rows of the table are done, besides those before."""

        def show(count: int) -> None:
            bar.move(before + count, table.name)
            self._pause()

        return show

    # The work

    def _copy(self, writer: Any, source: TableRows, target: TableRows, copied: dict[str, Copied], count: int) -> None:
        with self._stage("Copying", count) as bar:
            for table in MOVED:
                done = copied.get(table.name)
                with source.after(table, done and done.last_key) as rows:
                    while True:
                        batch = RowBatch(table, rows, done.hash if done else NO_ROWS)
                        self._commit(writer, partial(self._put, target, table, batch))
                        if batch.is_empty:
                            break
                        done = copied[table.name] = Copied(batch.last_key, batch.hash)
                        bar.move(_total(copied), table.name)

    def _put(self, target: TableRows, table: CopiedTable, batch: RowBatch, tx: Transaction) -> None:
        target.insert(table, batch)
        if batch.is_empty:
            return
        tx.run(
            """
            INSERT INTO move_progress (source, table_name, last_key, row_count, row_hash) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (table_name) DO UPDATE
               SET last_key = excluded.last_key, row_count = excluded.row_count, row_hash = excluded.row_hash
            """,
            self._source.shown_url,
            table.name,
            msgspec.msgpack.encode(batch.last_key).hex(),
            batch.hash.row_count,
            f"{batch.hash.total:x}",
        )

    def _verify(self, writer: Any, target: TableRows, copied: dict[str, Copied]) -> None:
        """Compares counts and hashes of what is in the target with what was read from the source."""
        with self._stage("Verifying", _total(copied)) as bar:
            verified = 0
            for table in MOVED:
                expected = copied[table.name].hash if table.name in copied else NO_ROWS
                current = target.hashed(table, self._shown(bar, table, verified))
                if current != expected:
                    self._commit(writer, lambda tx: tx.run("DELETE FROM move_progress"))
                    raise StoreError(
                        "the copy of {table} differs from the original ({count} rows, {found} are there)",
                        "run the same command again; it starts over",
                        table=table.name,
                        count=expected.row_count,
                        found=current.row_count,
                    )
                verified += current.row_count

    def _index(self) -> None:
        """Builds the search index; an interrupted one is continued."""
        index = SearchIndex(self._target)
        waiting, done = index.behind(), 0
        with self._stage("Indexing", waiting) as bar:
            while indexed := index.advance():
                done += indexed
                bar.move(done)
                self._pause()


# The end


def _finish(tx: Transaction, numbers: dict[str, int]) -> None:
    for table in metadata.sorted_tables:
        if table.autoincrement_column is not None:
            continue_numbers(tx, table.name, numbers.get(table.name, 0))
    tx.run("DROP TABLE move_progress")
    tx.run("UPDATE alembic_version SET version_num = ?", HEAD)
