"""All that is stored of one place, read from the database as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import moment
from catchment.model import Record
from catchment.store import Store
from endure.following import Followed


class Visit(Record, frozen=True):
    """One visit of the collector's, or one round of second looks, by its own records."""

    source_id: int
    is_look: bool
    started_at: datetime
    finished_at: datetime
    outcome: str
    error_code: str | None
    requests: int
    is_of_list: bool = True
    """False: it only went on with threads."""

    def overlaps(self, other: Visit) -> bool:
        return self.started_at <= other.finished_at and other.started_at <= self.finished_at


class Held(Record, frozen=True):
    """One stored item: its texts in order, the last one is the present one."""

    id: int
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    is_volatile: bool
    is_deleted: bool
    score: int | None
    first_seen_at: datetime


class Gap(Record, frozen=True):
    source_id: int
    from_at: datetime
    to_at: datetime
    opened_at: datetime


class Stored(Record, frozen=True):
    """All that is stored of one place, by all sources that follow it."""

    visits: tuple[Visit, ...]
    items: tuple[Held, ...]
    gaps: tuple[Gap, ...]
    cut_off: tuple[tuple[datetime, datetime], ...]
    """When runs were under way whose process was ended: what they asked for belongs to no visit."""
    appearances: frozenset[tuple[int, str]] = frozenset()
    """Item and day."""
    unknown_floors: tuple[str, ...] = ()
    """Numbers below a thread's highest that are neither stored nor known as holes of the forum."""
    waiting_heads: frozenset[int] = frozenset()
    """Items that open a thread which waits to be read: the archive says itself that something is missing there."""
    passed_over: tuple[str, ...] = ()
    """Threads that wait while others, which began to wait later, are read."""


def stored_of(store: Store, followed: Sequence[Followed]) -> Stored:
    """What these sources, which follow one place, have brought."""
    ids = [source.source_id for source in followed]

    def question(tx: Any) -> Stored:
        visits = tx.select_in(
            """
            SELECT s.source_id, r.job = 'recheck', s.started_at, s.finished_at, s.outcome, s.error_code,
                   s.request_count, r.job <> 'read-threads'
              FROM run_sources s JOIN runs r ON r.id = s.run_id
             WHERE s.finished_at IS NOT NULL AND s.source_id IN {values} ORDER BY s.started_at
            """,
            ids,
        )
        items = tx.select_in(
            """
            SELECT id, external_id, text, volatile_count, is_deleted, score, first_seen_at
              FROM items WHERE id IN (SELECT item_id FROM sightings WHERE source_id IN {values}) ORDER BY id
            """,
            ids,
        )
        aliases, earlier = defaultdict(list), defaultdict(list)
        for item_id, external_id in tx.select_in(
            "SELECT item_id, external_id FROM aliases WHERE item_id IN {values}", [row[0] for row in items]
        ):
            aliases[item_id].append(external_id)
        for item_id, text in tx.select_in(
            "SELECT item_id, text FROM revisions WHERE item_id IN {values} ORDER BY item_id, version",
            [row[0] for row in items],
        ):
            earlier[item_id].append(plain(text))
        gaps = tx.select_in("SELECT source_id, from_at, to_at, opened_at FROM gaps WHERE source_id IN {values}", ids)
        cut_off = tx.all("SELECT started_at, finished_at FROM runs WHERE is_cut_off AND finished_at IS NOT NULL")
        appearances = tx.select_in("SELECT item_id, day FROM appearances WHERE source_id IN {values}", ids)
        return Stored(
            tuple(
                Visit(row[0], bool(row[1]), moment(row[2]), moment(row[3]), row[4], row[5], row[6], bool(row[7]))
                for row in visits
            ),
            tuple(
                Held(
                    id=row[0],
                    ids=(row[1], *aliases[row[0]]),
                    texts=(*earlier[row[0]], plain(row[2])),
                    is_volatile=bool(row[3]),
                    is_deleted=bool(row[4]),
                    score=row[5],
                    first_seen_at=moment(row[6]),
                )
                for row in items
            ),
            tuple(Gap(row[0], moment(row[1]), moment(row[2]), moment(row[3])) for row in gaps),
            tuple((moment(row[0]), moment(row[1])) for row in cut_off),
            frozenset((row[0], row[1]) for row in appearances),
            _unknown_floors(tx, ids),
            *_waiting_threads(tx, ids),
        )

    return store.database.read(question)


def _unknown_floors(tx: Any, source_ids: Sequence[int]) -> tuple[str, ...]:
    """Of threads that were read to their end."""
    sql = """
        SELECT t.id, t.thread_id, t.max_floor FROM threads t
         WHERE t.next_page IS NULL AND t.skipped_since IS NULL AND t.max_floor IS NOT NULL AND t.source_id IN {values}
    """
    threads = tx.select_in(sql, source_ids)
    known: dict[str, set[int]] = defaultdict(set)
    for thread_id, number in tx.select_in(
        """
        SELECT thread_id, floor_number FROM items
         WHERE floor_number IS NOT NULL AND id IN (SELECT item_id FROM sightings WHERE source_id IN {values})
        """,
        source_ids,
    ):
        known[thread_id].add(number)
    holes: dict[int, set[int]] = defaultdict(set)
    sql = "SELECT thread_row_id, floor_number FROM thread_holes WHERE thread_row_id IN {values}"
    for row_id, number in tx.select_in(sql, [row[0] for row in threads]):
        holes[row_id].add(number)
    return tuple(
        f"floor {number} of {thread_id} is neither stored nor known as a hole"
        for row_id, thread_id, max_floor in threads
        # The first floor is 0 or 1.
        for number in range(1, max_floor + 1)
        if number not in known[thread_id] and number not in holes[row_id]
    )


PASSED_FOR = timedelta(hours=6)
"""A thread may be passed over for a while: by the time its holder is known to be dead, later ones have been read."""


class ThreadRun(Record, frozen=True):
    """One reading of a thread."""

    source_id: int
    thread: int
    listed_at: datetime
    """When the thread was first listed."""
    started_at: datetime
    is_complete: bool


def _waiting_threads(tx: Any, source_ids: Sequence[int]) -> tuple[frozenset[int], tuple[str, ...]]:
    waiting = tx.select_in(
        """
        SELECT source_id, id, item_id, thread_id, waiting_since FROM threads
         WHERE read_reason IS NOT NULL AND source_id IN {values}
        """,
        source_ids,
    )
    runs = [
        ThreadRun(row[0], row[1], moment(row[2]), moment(row[3]), bool(row[4]))
        for row in tx.select_in(
            """
            SELECT r.source_id, t.id, t.created_at, r.started_at, r.error_code IS NULL AND r.page_count > 0
              FROM thread_runs r JOIN threads t ON t.id = r.thread_row_id
             WHERE r.source_id IN {values} ORDER BY r.started_at
            """,
            source_ids,
        )
    ]
    passed = tuple(
        f"{thread_id} waits since {moment(since):%d %H:%M} while later threads are read for {length}"
        for source_id, row_id, _, thread_id, since in waiting
        if (length := passed_for(runs, source_id, row_id, moment(since))) > PASSED_FOR
    )
    return frozenset(row[2] for row in waiting), passed


def passed_for(runs: Sequence[ThreadRun], source_id: int, thread: int, since: datetime) -> timedelta:
    """Returns for how long threads that began to wait later were read instead of this one, which waits `since` then.
    They were listed for the first time later, or had been read to the end meanwhile and came up again."""
    times, complete = [], set()
    for run in runs:
        if run.source_id == source_id and run.thread != thread and run.started_at > since:
            if run.listed_at > since or run.thread in complete:
                times.append(run.started_at)
            if run.is_complete:
                complete.add(run.thread)
    return times[-1] - times[0] if times else timedelta()


def plain(text: str | None) -> str:
    return " ".join((text or "").split())
