"""Threads of forums: which wait to be read, what list pages and thread pages change about them, and what runs did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from catchment.clock import micros
from catchment.decoders import json_decoder
from catchment.model import (
    Counts,
    FinishedVisit,
    FloorRange,
    HeldFloor,
    Item,
    Key,
    Lease,
    ListNote,
    Outcome,
    Page,
    PageWrite,
    Record,
    Source,
    ThreadMarks,
    ThreadResult,
    ThreadSeen,
    ThreadState,
    View,
    VisitResult,
)
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, reads, writes
from catchment.store.item_fields import to_json, to_micros
from catchment.store.row_mappers import columns
from catchment.store.sources.metrics import count_attempts
from catchment.store.sources.runs import note_results

_THREAD = ", ".join(f"t.{name}" for name in columns(ThreadState))
_SOURCE = ", ".join(f"s.{name}" for name in columns(Source))
# Candidates for a claim: others may take the first ones meanwhile.
_CANDIDATES = 8
_MOST_DOUBLED = 100
_FLOORS_KEY = 0x666C6F6F  # "floo": PostgreSQL's advisory locks for threads in which posts are placed


class ClaimedThread(Record, frozen=True):
    """A thread that this process has claimed for reading."""

    thread: ThreadState
    lease: Lease


class ThreadView(View, frozen=True):
    """How far a thread is captured."""

    id: int
    source_id: int
    thread_id: str
    item_id: int | None
    title: str | None
    author: str | None
    created_at: datetime
    last_reply_at: datetime | None
    declared_count: int | None
    """Floors by the platform's own count: the opening post and its replies."""
    stored_count: int
    """Floors that are stored."""
    hole_count: int
    """Floors that the platform does not have (any more)."""
    max_floor: int | None
    page_count: int | None
    next_page: int | None
    truncated_at_page: int | None
    skipped_since: datetime | None
    last_read_at: datetime | None
    is_waiting: bool
    """It waits to be read in the current round."""


class BoardRunView(View, frozen=True):
    """What a run did with a board."""

    run_id: int
    source_id: int
    run_trigger: str
    window_first_day: str | None
    """A day in the forum's zone, as 2026-01-31; None: the run only read threads."""
    window_last_day: str | None
    scanned_count: int
    changed_count: int
    updated_count: int
    request_count: int
    started_at: datetime
    updated_at: datetime


class ThreadRunView(View, frozen=True):
    """What a run did with a thread."""

    run_id: int
    source_id: int
    thread_row_id: int
    thread_id: str
    item_id: int | None
    read_reason: str | None
    last_reply_at: datetime | None
    page_count: int
    is_capped: bool
    new_count: int
    updated_count: int
    doubled_floors: tuple[int, ...]
    """Numbers under which a second post was shown: it is stored without its number."""
    http_status: int | None
    error_code: str | None
    error: str | None
    started_at: datetime
    finished_at: datetime | None
    title: str | None = None


class Threads(StorePart):
    @writes
    def claim(
        self, tx: Transaction, source_id: int, owner_id: int, now: datetime, run_id: int | None = None
    ) -> ClaimedThread | None:
        """Claim the thread of a source that has waited longest to be read; None: none waits, or others have them. The
        record of the run is begun with it, so that a kill leaves one that is not finished."""
        sql = f"""
            SELECT t.id FROM threads t
              LEFT JOIN leases l ON l.resource = 'thread' AND l.resource_id = t.id
             WHERE t.source_id = ? AND t.read_reason IS NOT NULL AND l.owner_id IS NULL
             ORDER BY t.waiting_since, t.id LIMIT {_CANDIDATES}
        """
        candidates = [row[0] for row in tx.all(sql, source_id)]
        for lease in leases.claim(tx, "thread", candidates, owner_id, now, limit=1).values():
            # Read again under the lease: another process may just have read it.
            thread = tx.record(ThreadState, f"SELECT {_THREAD} FROM threads t WHERE t.id = ?", lease.resource_id)
            if thread is not None and thread.read_reason is not None:
                if run_id is not None:
                    _begin_thread_run(tx, run_id, thread, micros(now))
                return ClaimedThread(thread, lease)
            leases.release(tx, lease)
        return None

    @writes
    def claim_by_id(self, tx: Transaction, row_id: int, owner_id: int, now: datetime) -> ClaimedThread | None:
        """Claim this thread, whether it waits or not; None: another process has it, or it is gone."""
        lease = leases.claim_one(tx, "thread", row_id, owner_id, now)
        thread = tx.record(ThreadState, f"SELECT {_THREAD} FROM threads t WHERE t.id = ?", row_id) if lease else None
        if lease and thread is None:
            leases.release(tx, lease)
        return ClaimedThread(thread, lease) if lease and thread else None

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    @reads
    def waiting_sources(self, tx: Transaction, kinds: Sequence[str]) -> list[Source]:
        """Returns the active sources of these kinds with threads that wait to be read."""
        sql = f"""
            SELECT {_SOURCE} FROM sources s WHERE s.kind IN {{values}} AND s.state = 'active'
               AND EXISTS (SELECT 1 FROM threads t WHERE t.source_id = s.id AND t.read_reason IS NOT NULL)
             ORDER BY s.id
        """
        return tx.as_records(Source, tx.select_in(sql, kinds))

    @reads
    def sources(self, tx: Transaction, kinds: Sequence[str]) -> list[Source]:
        """Returns the sources of these kinds that are not removed."""
        sql = f"SELECT {_SOURCE} FROM sources s WHERE s.kind IN {{values}} AND s.state <> 'removed' ORDER BY s.id"
        return tx.as_records(Source, tx.select_in(sql, kinds))

    def count_waiting(self, source_id: int) -> int:
        return self._number("SELECT count(*) FROM threads WHERE source_id = ? AND read_reason IS NOT NULL", source_id)

    @writes
    def end(
        self,
        tx: Transaction,
        lease: Lease,
        run_id: int,
        result: ThreadResult,
        marks: ThreadMarks | None,
        now: datetime,
    ) -> None:
        """Record how the reading of a thread ended, and release it. `marks`: how far it is captured after a failure."""
        leases.check(tx, lease)
        if marks is not None:
            set_marks(tx, marks, micros(now), is_read=False)
        _end_thread_run(tx, run_id, result, micros(now))
        leases.release(tx, lease)

    @writes
    def note(
        self,
        tx: Transaction,
        run_id: int,
        source: Source,
        result: VisitResult,
        outcomes: Mapping[tuple[str, datetime], int],
        now: datetime,
        *,
        is_board: bool = True,
    ) -> None:
        """Record the result of a source whose threads were read, and the requests that led to no page."""
        count_attempts(tx, source.platform, outcomes)
        note_results(tx, [(run_id, result)])
        if is_board and outcomes:
            note_board(tx, run_id, source.id, None, micros(now), requests=sum(outcomes.values()))

    def state(self, source_id: int, thread_id: str) -> ThreadState | None:
        sql = f"SELECT {_THREAD} FROM threads t WHERE t.source_id = ? AND t.thread_id = ?"
        return self._record(ThreadState, sql, source_id, thread_id)

    def of_source(self, source_id: int, limit: int = 30, after: int = 0) -> list[ThreadView]:
        """Returns the threads of a source in the order in which they were first seen."""
        sql = f"{_VIEW} WHERE t.source_id = ? AND t.id > ? ORDER BY t.source_id, t.id LIMIT ?"
        return self._records(ThreadView, sql, source_id, after, limit)

    def of_item(self, item_id: int) -> ThreadView | None:
        """Returns the thread that an item opens."""
        threads = self._records(ThreadView, f"{_VIEW} WHERE t.item_id = ?", item_id)
        return threads[0] if threads else None

    def holes(self, row_id: int, first: int = 0, last: int = 2**31 - 1) -> list[int]:
        """Returns the floors of a thread that the platform does not have, in a stretch of numbers."""
        sql = """
            SELECT floor_number FROM thread_holes
             WHERE thread_row_id = ? AND floor_number BETWEEN ? AND ? ORDER BY floor_number
        """
        return [int(number) for number in self._column(sql, row_id, first, last)]

    @reads
    def titles(self, tx: Transaction, row_ids: Sequence[int]) -> dict[int, tuple[int | None, str | None]]:
        """Returns the opening items of threads: their ids and titles, by the thread's row."""
        sql = """
            SELECT t.id, t.item_id, i.title FROM threads t LEFT JOIN items i ON i.id = t.item_id WHERE t.id IN {values}
        """
        return {row_id: (item_id, title) for row_id, item_id, title in tx.select_in(sql, row_ids)}

    def holes_of_item(self, item_id: int, first: int, last: int) -> set[int]:
        """Returns the floors that the platform does not have, in a stretch of the thread that an item opens."""
        sql = """
            SELECT h.floor_number FROM threads t JOIN thread_holes h ON h.thread_row_id = t.id
             WHERE t.item_id = ? AND h.floor_number BETWEEN ? AND ?
        """
        return {int(number) for number in self._column(sql, item_id, first, last)}

    def board_runs(self, source_id: int, limit: int = 30, before: int | None = None) -> list[BoardRunView]:
        """Returns what runs did with a board, newest first."""
        sql = f"""
            SELECT {", ".join(BoardRunView.__struct_fields__)} FROM board_runs
             WHERE source_id = ? AND run_id < ? ORDER BY source_id, run_id DESC LIMIT ?
        """
        return self._records(BoardRunView, sql, source_id, 2**62 if before is None else before, limit)

    def thread_runs(self, run_id: int, limit: int = 100, after: int = 0) -> list[ThreadRunView]:
        """Returns what a run did with threads."""
        sql = """
            SELECT r.run_id, r.source_id, r.thread_row_id, t.thread_id, t.item_id, r.read_reason, r.last_reply_at,
                   r.page_count, r.is_capped, r.new_count, r.updated_count, r.doubled_floors, r.http_status,
                   r.error_code, r.error, r.started_at, r.finished_at, i.title
              FROM thread_runs r JOIN threads t ON t.id = r.thread_row_id LEFT JOIN items i ON i.id = t.item_id
             WHERE r.run_id = ? AND r.thread_row_id > ? ORDER BY r.thread_row_id LIMIT ?
        """
        return self._records(ThreadRunView, sql, run_id, after, limit)


_VIEW = """
    SELECT t.id, t.source_id, t.thread_id, t.item_id, i.title, i.author, coalesce(i.created_at, t.created_at) AS
           created_at, t.last_reply_at, i.reply_count + 1 AS declared_count,
           (SELECT count(*) FROM items f WHERE f.platform = i.platform AND f.scope = i.scope
               AND f.thread_id = i.thread_id AND f.floor_number IS NOT NULL) AS stored_count,
           (SELECT count(*) FROM thread_holes h WHERE h.thread_row_id = t.id) AS hole_count,
           t.max_floor, t.page_count, t.next_page, t.truncated_at_page, t.skipped_since, t.last_read_at,
           t.read_reason IS NOT NULL AS is_waiting
      FROM threads t LEFT JOIN items i ON i.id = t.item_id
"""


# Facts of a page


def stored_threads(tx: Transaction, source_id: int, thread_ids: Sequence[str]) -> dict[str, ThreadState]:
    sql = f"SELECT {_THREAD} FROM threads t WHERE t.source_id = ? AND t.thread_id IN {{values}}"
    rows = tx.select_in(sql, thread_ids, before=[source_id])
    return {thread.thread_id: thread for thread in tx.as_records(ThreadState, rows)}


def lock_floors(tx: Transaction, pages: Iterable[Page]) -> None:
    """Make other transactions that place posts in the same threads wait: two that found a floor free would both use it.

    A unique index could not do this: posts that change places would be refused, as they are written one by one. SQLite
    writes one transaction at a time; and an opening post has its place for itself.
    """
    if not tx.is_postgres:
        return
    placed = ((page.source.platform, item.item) for page in pages for item in page.items)
    threads = {
        f"{platform} {item.scope} {item.thread_id}"
        for platform, item in placed
        if item.thread_id is not None and item.floor_number is not None and not item.is_head
    }
    if threads:
        sql = """
            SELECT pg_advisory_xact_lock(?, locks.key)
              FROM (SELECT DISTINCT hashtext(name) AS key FROM unnest(?::text[]) AS t (name) ORDER BY key) locks
        """
        tx.all(sql, _FLOORS_KEY, list(threads))


def held_floors(tx: Transaction, platform: str, floors: FloorRange) -> dict[int, HeldFloor]:
    sql = """
        SELECT floor_number, id AS item_id, external_id, is_deleted FROM items
         WHERE platform = ? AND scope = ? AND thread_id = ? AND floor_number BETWEEN ? AND ?
         ORDER BY floor_number
    """
    rows = tx.records(HeldFloor, sql, platform, floors.scope, floors.thread_id, floors.first, floors.last)
    return {floor.floor_number: floor for floor in rows}


def floor_holders(tx: Transaction, platform: str, items: Sequence[Item]) -> dict[tuple[str, str, int], int]:
    """Returns the stored items on the floors that these items name, by scope, thread and floor number."""
    scopes: dict[str, dict[str, set[int]]] = {}
    for item in items:
        if item.thread_id is not None and item.floor_number is not None:
            scopes.setdefault(item.scope, {}).setdefault(item.thread_id, set()).add(item.floor_number)
    holders = {}
    for scope, threads in scopes.items():
        numbers = sorted(set().union(*threads.values()))
        among = "= ANY(?)" if tx.is_postgres else f"IN ({', '.join('?' * len(numbers))})"
        sql = f"""
            SELECT thread_id, floor_number, id FROM items
             WHERE platform = ? AND scope = ? AND thread_id IN {{values}} AND floor_number {among}
        """
        after = [numbers] if tx.is_postgres else numbers
        for thread_id, number, item_id in tx.select_in(sql, list(threads), before=[platform, scope], after=after):
            if number in threads[thread_id]:
                holders[scope, thread_id, number] = item_id
    return holders


# Steps of a page's transaction


def write_threads(tx: Transaction, page: Page, write: PageWrite, ids: Mapping[Key, int], now: int) -> None:
    """Write what a page of a forum changes about its threads, and the records of the run."""
    if write.list_note is not None:
        _resume(tx, page.source.id, write.list_note, now)
        _insert_threads(tx, page, [seen for seen in write.threads if seen.stored is None], ids, now)
        _update_threads(tx, [seen for seen in write.threads if seen.stored is not None], ids)
    if (marks := write.thread_marks) is not None:
        if not marks.is_repair:
            set_marks(tx, marks, now)
        _set_holes(tx, marks, now)
        _look_at(tx, page, marks.absent, now)
        if not marks.is_repair:
            _note_thread_page(tx, page.run_id, marks, write.counts)
    if write.list_note is not None or write.thread_marks is not None:
        is_updated = marks is not None and marks.is_over and not marks.is_repair
        requests = sum(page.outcomes.values())
        note_board(tx, page.run_id, page.source.id, write.list_note, now, requests=requests, updated=int(is_updated))


def _resume(tx: Transaction, source_id: int, note: ListNote, now: int) -> None:
    """A new round begins: it continues with what earlier ones left. A rule in SQL: it is about all threads of a board,
    which no page reads."""
    if note.is_first:
        sql = """
            UPDATE threads SET read_reason = 'pages_pending', waiting_since = ?
             WHERE source_id = ? AND next_page IS NOT NULL AND read_reason IS NULL
        """
        tx.run(sql, now, source_id)


def _insert_threads(tx: Transaction, page: Page, seen: Sequence[ThreadSeen], ids: Mapping[Key, int], now: int) -> None:
    tx.insert(
        "threads",
        (
            *("source_id", "thread_id", "item_id", "first_list_page", "last_list_page", "last_reply_at", "changed_at"),
            *("page_count", "skipped_since", "read_reason", "waiting_since", "created_at"),
        ),
        [
            (
                page.source.id,
                thread.thread_id,
                ids.get(thread.head),
                thread.list_page,
                thread.list_page,
                to_micros(thread.last_reply_at),
                to_micros(thread.changed_at),
                thread.page_count,
                to_micros(thread.skipped_since),
                thread.read_reason and str(thread.read_reason),
                to_micros(thread.waiting_since),
                now,
            )
            for thread in seen
        ],
        "ON CONFLICT (source_id, thread_id) DO NOTHING",
    )


def _update_threads(tx: Transaction, seen: Sequence[ThreadSeen], ids: Mapping[Key, int]) -> None:
    rows = []
    for thread in seen:
        stored = thread.stored
        assert stored is not None
        rows.append(
            (
                stored.id,
                ids.get(thread.head, stored.item_id),
                thread.list_page,
                to_micros(thread.last_reply_at),
                to_micros(thread.changed_at),
                thread.page_count,
                to_micros(thread.skipped_since),
                thread.read_reason and str(thread.read_reason),
                to_micros(thread.waiting_since),
            )
        )
    columns = (
        *("id", "item_id", "last_list_page", "last_reply_at", "changed_at", "page_count", "skipped_since"),
        *("read_reason", "waiting_since"),
    )
    tx.update("threads", columns, rows)


def set_marks(tx: Transaction, marks: ThreadMarks, now: int, *, is_read: bool = True) -> None:
    """Write how far a thread is captured. A thread that got another reply while it was read keeps waiting: this is
    decided in SQL, because a list page may have written the reply since the thread was claimed."""
    thread = marks.thread
    sql = f"""
        UPDATE threads
           SET page_count = coalesce(?, page_count), next_page = ?, truncated_at_page = ?, max_floor = ?,
               max_floor_id = ?, skipped_since = ?, gone_since = ?, stale_count = ?,
               last_read_at = CASE WHEN ? THEN ? ELSE last_read_at END,
               read_reply_at = CASE WHEN ? THEN ? ELSE read_reply_at END,
               read_reason = CASE WHEN ? AND NOT ({_REPLIED}) THEN NULL ELSE read_reason END,
               waiting_since = CASE WHEN ? AND NOT ({_REPLIED}) THEN NULL ELSE waiting_since END
         WHERE id = ?
    """
    last_reply_at = to_micros(thread.last_reply_at)
    tx.run(
        sql,
        marks.page_count,
        marks.next_page,
        marks.truncated_at_page,
        marks.max_floor,
        marks.max_floor_id,
        to_micros(marks.skipped_since),
        to_micros(marks.gone_since),
        marks.stale_count,
        is_read,
        now,
        marks.is_complete,
        last_reply_at,
        marks.is_over,
        last_reply_at,
        marks.is_over,
        last_reply_at,
        thread.id,
    )


_REPLIED = "coalesce(last_reply_at, -1) <> coalesce(?, -1)"


def _set_holes(tx: Transaction, marks: ThreadMarks, now: int) -> None:
    row_id = marks.thread.id
    if marks.filled:
        low, high = min(marks.filled), max(marks.filled)
        sql = "SELECT floor_number FROM thread_holes WHERE thread_row_id = ? AND floor_number BETWEEN ? AND ?"
        filled = {number for (number,) in tx.all(sql, row_id, low, high)} & set(marks.filled)
        tx.many(
            "DELETE FROM thread_holes WHERE thread_row_id = ? AND floor_number = ?",
            [(row_id, number) for number in sorted(filled)],
        )
    tx.insert(
        "thread_holes",
        ("thread_row_id", "floor_number", "noticed_at"),
        [(row_id, number, now) for number in marks.holes],
        "ON CONFLICT DO NOTHING",
    )


def _look_at(tx: Transaction, page: Page, item_ids: Sequence[int], now: int) -> None:
    """Have these items requested soon, each by its own id, as one whose recheck failed. Those for which this is under
    way stay as they are."""
    tx.insert(
        "rechecks",
        ("item_id", "platform", "source_id", "next_recheck_at", "recheck_count", "failure_count"),
        [(item_id, page.source.platform, page.source.id, now, 0, 1) for item_id in item_ids],
        """
        ON CONFLICT (item_id) DO UPDATE
           SET next_recheck_at = excluded.next_recheck_at, failure_count = excluded.failure_count
         WHERE rechecks.gone_since IS NULL AND rechecks.failure_count = 0
        """,
    )


# Records of runs


def note_board(
    tx: Transaction, run_id: int, source_id: int, note: ListNote | None, now: int, *, requests: int, updated: int = 0
) -> None:
    """Add a page, or requests that led to none, to the record of the board's run."""
    sql = """
        INSERT INTO board_runs (run_id, source_id, run_trigger, window_first_day, window_last_day, scanned_count,
                                changed_count, updated_count, request_count, started_at, updated_at)
        SELECT id, ?, CASE WHEN started_by = 'schedule' THEN 'schedule_12h' ELSE 'manual' END, ?, ?, ?, ?, ?, ?,
               started_at, ?
          FROM runs WHERE id = ?
        ON CONFLICT (run_id, source_id) DO UPDATE SET
               window_first_day = coalesce(excluded.window_first_day, board_runs.window_first_day),
               window_last_day = coalesce(excluded.window_last_day, board_runs.window_last_day),
               scanned_count = board_runs.scanned_count + excluded.scanned_count,
               changed_count = board_runs.changed_count + excluded.changed_count,
               updated_count = board_runs.updated_count + excluded.updated_count,
               request_count = board_runs.request_count + excluded.request_count, updated_at = excluded.updated_at
    """
    tx.run(
        sql,
        source_id,
        note and note.first_day.isoformat(),
        note and note.last_day.isoformat(),
        note.scanned if note else 0,
        note.changed if note else 0,
        updated,
        requests,
        now,
        run_id,
    )


def note_boards(tx: Transaction, finished: Sequence[FinishedVisit]) -> None:
    """Add the requests of ending visits that led to no page to the records of their boards."""
    for visit in finished:
        result, requests = visit.end.result, sum(visit.outcomes.values())
        at = result.finished_at or result.started_at
        if visit.board is not None and at is not None and (requests or result.outcome == Outcome.FAILED):
            note_board(tx, visit.run_id, visit.source.id, visit.board, micros(at), requests=requests)


def _begin_thread_run(tx: Transaction, run_id: int, thread: ThreadState, now: int) -> None:
    """Begin the record of a thread; if the run reads it for the second time, the record continues."""
    sql = """
        INSERT INTO thread_runs (run_id, thread_row_id, source_id, read_reason, last_reply_at, page_count, is_capped,
                                 new_count, updated_count, started_at)
        VALUES (?, ?, ?, ?, ?, 0, ?, 0, 0, ?)
        ON CONFLICT (run_id, thread_row_id) DO UPDATE
           SET last_reply_at = excluded.last_reply_at, finished_at = NULL, http_status = NULL, error_code = NULL,
               error = NULL
    """
    reason = thread.read_reason and str(thread.read_reason)
    tx.run(sql, run_id, thread.id, thread.source_id, reason, to_micros(thread.last_reply_at), False, now)


def _note_thread_page(tx: Transaction, run_id: int, marks: ThreadMarks, counts: Counts) -> None:
    """Add a page to the record of its thread."""
    sql = """
        UPDATE thread_runs
           SET page_count = page_count + 1, is_capped = ?, new_count = new_count + ?, updated_count = updated_count + ?
         WHERE run_id = ? AND thread_row_id = ?
    """
    is_capped = marks.truncated_at_page is not None
    tx.run(sql, is_capped, counts.new, counts.updated, run_id, marks.thread.id)
    if marks.moved_floors:
        where = "WHERE run_id = ? AND thread_row_id = ?"
        noted = tx.one(f"SELECT doubled_floors FROM thread_runs {where}", run_id, marks.thread.id)
        numbers = dict.fromkeys((*(json_decoder(list[int]).decode(noted[0]) if noted else ()), *marks.moved_floors))
        doubled = to_json(list(numbers)[:_MOST_DOUBLED])
        tx.run(f"UPDATE thread_runs SET doubled_floors = ? {where}", doubled, run_id, marks.thread.id)


def _end_thread_run(tx: Transaction, run_id: int, result: ThreadResult, now: int) -> None:
    sql = """
        UPDATE thread_runs SET http_status = ?, error_code = ?, error = ?, finished_at = ?
         WHERE run_id = ? AND thread_row_id = ?
    """
    tx.run(sql, result.http_status, result.error_code, result.error, now, run_id, result.thread.id)
