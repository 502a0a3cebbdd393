"""Runs, the results of visits, and the times of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from catchment.clock import micros, moment
from catchment.errors import NotFound
from catchment.messages import Message, encode, message
from catchment.model import (
    AlertRequest,
    Counts,
    FinishedVisit,
    Lease,
    Outcome,
    Page,
    Progress,
    Record,
    Source,
    View,
    VisitEnd,
    VisitResult,
)
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, placeholders, reads, writes
from catchment.store.delivery import events
from catchment.store.item_fields import to_micros, to_moment
from catchment.store.items.change_feed import changed_items
from catchment.store.row_mappers import columns, encode_list
from catchment.store.sources import alerts
from catchment.store.sources.metrics import RECHECK_JOB
from catchment.store.sources.sources import PROGRESS, keep_paces, move_target, progress_values, rename

_COUNTS = (
    "source_count", "succeeded", "failed", "skipped", "new_count", "updated_count", "duplicate_count", "invalid_count",
    "request_count",
)  # fmt: skip
# The outcomes are counted when a run ends: every source in it has one of the four then.
_SHOWN = (
    f"id, job, started_by, request_id, started_at, finished_at, is_cut_off, {', '.join(_COUNTS)}, "
    "source_count - succeeded - failed - skipped AS deferred"
)
_RESULT = (
    "v.run_id, v.source_id, s.name AS source_name, s.kind, v.started_at, v.finished_at, v.outcome, v.new_count, "
    "v.updated_count, v.duplicate_count, v.invalid_count, v.request_count, v.http_status, v.error_code, v.error"
)


class RunView(View, frozen=True):
    """One execution of a job."""

    id: int
    job: str
    started_by: str
    request_id: str | None
    started_at: datetime
    finished_at: datetime | None
    is_cut_off: bool
    source_count: int
    succeeded: int
    failed: int
    deferred: int
    skipped: int
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int


class VisitView(View, frozen=True):
    """The result of one source in a run."""

    run_id: int
    source_id: int
    source_name: str
    kind: str
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    """None: in progress."""
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    request_count: int
    http_status: int | None
    error_code: str | None
    error: Message | None


class SourceVisit(View, frozen=True):
    """One visit to a source, with all that is recorded about it."""

    run_id: int
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    new_count: int
    updated_count: int
    duplicate_count: int
    invalid_count: int
    valid_count: int
    request_count: int
    http_status: int | None
    error_code: str | None
    error: Message | None
    watermark_before: datetime | None
    watermark_after: datetime | None
    notes: tuple[Message, ...]


class ActiveVisit(View, frozen=True):
    """A visit in progress, with its results so far."""

    source_id: int
    source_name: str
    kind: str
    taken_at: datetime
    new_count: int = 0
    updated_count: int = 0
    request_count: int = 0


class RecentVisits(Record, frozen=True):
    """The visits to one source since some time."""

    source_id: int
    visits: int = 0
    """Without deferred ones and rechecks."""
    failed: int = 0
    new: int = 0


class DayView(View, frozen=True):
    """The last 24 hours. A deferral is neither a visit nor a failure, nor is a recheck; its requests count."""

    fetches: int
    errors: int
    deferred: int
    items: int
    requests: int


class JobState(Record, frozen=True):
    """When a job ran and runs next."""

    name: str
    next_run_at: datetime | None = None
    last_started_at: datetime | None = None
    last_finished_at: datetime | None = None
    last_error: str | None = None
    run_count: int = 0


class Runs(StorePart):
    @writes
    def begin(
        self,
        tx: Transaction,
        job: str,
        started_by: str,
        owner_id: int,
        now: datetime,
        request_id: str | None = None,
        task_id: int | None = None,
    ) -> int:
        sql = f"""
            INSERT INTO runs (job, started_by, owner_id, request_id, task_id, started_at, is_cut_off,
                              {", ".join(_COUNTS)})
            VALUES (?, ?, ?, ?, ?, ?, ?, {", ".join("0" * len(_COUNTS))}) RETURNING id
        """
        return tx.number(sql, job, started_by, owner_id, request_id, task_id, micros(now), False)

    def finish(self, run_id: int, now: datetime, *, is_cut_off: bool = False) -> None:
        self._db.write(lambda tx: leases.close_run(tx, run_id, now, is_cut_off=is_cut_off))

    def page(self, limit: int = 30, before: int | None = None) -> list[RunView]:
        """Returns runs, newest first."""
        sql = f"SELECT {_SHOWN} FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?"
        return self._records(RunView, sql, 2**62 if before is None else before, limit)

    def get(self, run_id: int) -> RunView:
        run = self._record(RunView, f"SELECT {_SHOWN} FROM runs WHERE id = ?", run_id)
        if run is None:
            raise NotFound("there is no run {id}", "records of runs are kept for a limited time", id=run_id)
        return run

    def results(
        self, run_id: int, after: int = 0, limit: int = 100, *, outcome: Outcome | None = None
    ) -> list[VisitView]:
        """Returns the results of a run by source, in order of the sources' ids."""
        where, values = ("AND v.outcome = ?", [str(outcome)]) if outcome else ("", [])
        sql = f"""
            SELECT {_RESULT} FROM run_sources v JOIN sources s ON s.id = v.source_id
             WHERE v.run_id = ? AND v.source_id > ? {where} ORDER BY v.source_id LIMIT ?
        """
        return self._records(VisitView, sql, run_id, after, *values, limit)

    def up_to_now(self, runs: Sequence[RunView]) -> list[RunView]:
        """Returns these runs, unfinished ones with their results so far: their records are summed up when they end."""
        sql = """
            SELECT run_id, count(*), sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END),
                   sum(CASE WHEN outcome = 'deferred' THEN 1 ELSE 0 END), sum(new_count), sum(updated_count),
                   sum(request_count)
              FROM run_sources WHERE run_id IN {values} GROUP BY run_id
        """
        rows = self._select_in(sql, [run.id for run in runs if run.finished_at is None])
        names = ("source_count", "failed", "deferred", "new_count", "updated_count", "request_count")
        so_far = {run_id: dict(zip(names, map(int, sums), strict=True)) for run_id, *sums in rows}
        return [run.replace(**so_far.get(run.id, {})) for run in runs]

    @reads
    def visits_since(self, tx: Transaction, source_ids: Sequence[int], since: datetime) -> dict[int, RecentVisits]:
        """Returns the visits since then, by source."""
        sql = """
            SELECT v.source_id, sum(CASE WHEN v.outcome = 'deferred' THEN 0 ELSE 1 END) AS visits,
                   sum(CASE WHEN v.outcome = 'failed' THEN 1 ELSE 0 END) AS failed, sum(v.new_count) AS new
              FROM run_sources v JOIN runs r ON r.id = v.run_id
             WHERE v.source_id IN {values} AND v.started_at >= ? AND r.job <> ? GROUP BY v.source_id
        """
        rows = tx.select_in(sql, source_ids, after=[micros(since), RECHECK_JOB])
        return {recent.source_id: recent for recent in tx.as_records(RecentVisits, rows)}

    @reads
    def under_way(self, tx: Transaction, limit: int = 50) -> list[ActiveVisit]:
        """Returns the sources that are currently being visited, the longest first, with the results so far."""
        sql = """
            SELECT s.id AS source_id, s.name AS source_name, s.kind, l.taken_at
              FROM leases l JOIN sources s ON s.id = l.resource_id
             WHERE l.owner_id IS NOT NULL AND l.resource = 'source' LIMIT ?
        """
        visits = tx.records(ActiveVisit, sql, limit)
        # A visit that has stored nothing yet has no record.
        sql = """
            SELECT v.source_id, v.new_count, v.updated_count, v.request_count
              FROM runs r JOIN run_sources v ON v.run_id = r.id
             WHERE r.finished_at IS NULL AND v.finished_at IS NULL AND v.source_id IN {values}
        """
        rows = tx.select_in(sql, [visit.source_id for visit in visits])
        names = ("new_count", "updated_count", "request_count")
        so_far = {source_id: dict(zip(names, counts, strict=True)) for source_id, *counts in rows}
        return [
            visit.replace(**so_far.get(visit.source_id, {}))
            for visit in sorted(visits, key=lambda visit: (visit.taken_at, visit.source_id))
        ]

    def latest(self, limit: int = 30) -> list[VisitView]:
        """Returns the visits that began last, newest first."""
        sql = f"""
            SELECT {_RESULT} FROM run_sources v JOIN sources s ON s.id = v.source_id
             ORDER BY v.started_at DESC LIMIT ?
        """
        return self._records(VisitView, sql, limit)

    def of_source(self, source_id: int, limit: int = 10) -> list[SourceVisit]:
        """Returns the latest visits to one source, newest first."""
        sql = """
            SELECT run_id, started_at, finished_at, outcome, new_count, updated_count, duplicate_count,
                   invalid_count, valid_count, request_count, http_status, error_code, error, watermark_before,
                   watermark_after, notes
              FROM run_sources WHERE source_id = ? ORDER BY started_at DESC LIMIT ?
        """
        return self._records(SourceVisit, sql, source_id, limit)

    def last_day(self, now: datetime) -> DayView:
        sql = """
            SELECT coalesce(sum(CASE WHEN r.job = ? OR v.outcome = 'deferred' THEN 0 ELSE 1 END), 0) AS fetches,
                   coalesce(sum(CASE WHEN r.job <> ? AND v.outcome = 'failed' THEN 1 ELSE 0 END), 0) AS errors,
                   coalesce(sum(CASE WHEN r.job <> ? AND v.outcome = 'deferred' THEN 1 ELSE 0 END), 0) AS deferred,
                   coalesce(sum(v.new_count), 0) AS items, coalesce(sum(v.request_count), 0) AS requests
              FROM run_sources v JOIN runs r ON r.id = v.run_id
             WHERE v.started_at >= ? AND (v.outcome IS NULL OR v.outcome <> 'skipped')
        """
        day = self._record(DayView, sql, RECHECK_JOB, RECHECK_JOB, RECHECK_JOB, micros(now - timedelta(days=1)))
        assert day is not None
        return day


class Jobs(StorePart):
    """When each job runs next; claimed like sources, so that only one process runs it."""

    def announce(self, name: str, now: datetime) -> None:
        """Register the job; a new one is due at once."""
        sql = "INSERT INTO jobs (name, next_run_at, run_count) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING"
        self._run(sql, name, micros(now))

    def due(self, now: datetime, periods: Mapping[str, timedelta]) -> tuple[list[str], datetime | None]:
        """Returns which of these jobs are due and free, and when the next of the others is due."""
        sql = """
            SELECT j.name, j.next_run_at FROM jobs j
              LEFT JOIN leases l ON l.resource = 'job' AND l.resource_id = j.id
             WHERE l.owner_id IS NULL
        """
        rows = self._all(sql)
        free = {name: next_run_at for name, next_run_at in rows if name in periods}
        due = [name for name, next_run_at in free.items() if _is_due(next_run_at, now, periods[name])]
        later = [next_run_at for name, next_run_at in free.items() if name not in due]
        return due, moment(min(later)) if later else None

    @writes
    def claim(self, tx: Transaction, name: str, owner_id: int, now: datetime, period: timedelta) -> Lease | None:
        """Claim the job; returns None if it is not due or is taken."""
        row = tx.one("SELECT id FROM jobs WHERE name = ?", name)
        lease = leases.claim_one(tx, "job", row[0], owner_id, now) if row else None
        if lease is None:
            return None
        # Read after the lease was taken: another process may just have run it.
        ((next_run_at,),) = tx.all("SELECT next_run_at FROM jobs WHERE id = ?", lease.resource_id)
        if not _is_due(next_run_at, now, period):
            leases.release(tx, lease)
            return None
        return lease

    def wake(self, name: str, now: datetime) -> None:
        """Make the job due at once, and once more if it is running right now."""
        self._run("UPDATE jobs SET next_run_at = ? WHERE name = ?", micros(now), name)

    @writes
    def done(
        self,
        tx: Transaction,
        lease: Lease,
        started_at: datetime,
        next_run_at: datetime,
        now: datetime,
        error: str | None,
    ) -> None:
        leases.check(tx, lease)
        tx.run(
            """
            UPDATE jobs
               SET next_run_at = CASE WHEN next_run_at > ? AND next_run_at < ? THEN next_run_at ELSE ? END,
                   last_started_at = ?, last_finished_at = ?, last_error = ?, run_count = run_count + 1
             WHERE id = ?
            """,
            # Woken meanwhile: it runs again at once.
            micros(started_at),
            micros(next_run_at),
            micros(next_run_at),
            micros(started_at),
            micros(now),
            error,
            lease.resource_id,
        )
        leases.release(tx, lease)

    def last_started_at(self, name: str) -> datetime | None:
        """Returns when its last finished run began."""
        row = self._one("SELECT last_started_at FROM jobs WHERE name = ?", name)
        return to_moment(row[0]) if row else None

    def all(self) -> list[JobState]:
        return self._records(JobState, f"SELECT {', '.join(columns(JobState))} FROM jobs ORDER BY name")


def _is_due(next_run_at: int, now: datetime, period: timedelta) -> bool:
    # Further in the future than any run could have set it: the clock was wrong then, or the period is shorter now.
    return next_run_at <= micros(now) or next_run_at > micros(now + 2 * period)


_RESULT_COLUMNS = (
    "run_id", "source_id", "started_at", "finished_at", "outcome", "new_count", "updated_count", "duplicate_count",
    "invalid_count", "request_count", "http_status", "error_code", "error", "is_retryable", "watermark_before",
    "watermark_after", "notes", "valid_count",
)  # fmt: skip
_RESULT_UPSERT = (
    f"INSERT INTO run_sources ({', '.join(_RESULT_COLUMNS)}) VALUES ({', '.join('?' * len(_RESULT_COLUMNS))}) "
    f"ON CONFLICT (run_id, source_id) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _RESULT_COLUMNS[2:])}"
)


def note_page(tx: Transaction, page: Page, counts: Counts, valid: int, now: int) -> None:
    """Add a page to the run's record: a kill in the middle leaves the results so far."""
    sql = """
        INSERT INTO run_sources (run_id, source_id, started_at, new_count, updated_count, duplicate_count,
                                 invalid_count, request_count, notes, valid_count)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]', ?)
        ON CONFLICT (run_id, source_id) DO UPDATE SET
               new_count = run_sources.new_count + excluded.new_count,
               updated_count = run_sources.updated_count + excluded.updated_count,
               duplicate_count = run_sources.duplicate_count + excluded.duplicate_count,
               invalid_count = run_sources.invalid_count + excluded.invalid_count,
               request_count = run_sources.request_count + excluded.request_count,
               valid_count = run_sources.valid_count + excluded.valid_count
    """
    tx.run(
        sql,
        page.run_id,
        page.source.id,
        now,
        counts.new,
        counts.updated,
        counts.duplicate,
        counts.invalid,
        sum(page.outcomes.values()),
        valid,
    )


def note_change(tx: Transaction, page: Page, number: int) -> None:
    """Remember the first change that a visit made, for the event at its end."""
    sql = """
        UPDATE run_sources SET first_change_number = ?
         WHERE run_id = ? AND source_id = ? AND first_change_number IS NULL
    """
    tx.run(sql, number, page.run_id, page.source.id)


def set_progress(tx: Transaction, progresses: Sequence[tuple[Source, Progress]]) -> None:
    tx.many(
        f"UPDATE progress SET {placeholders(PROGRESS)} WHERE source_id = ?",
        [(*progress_values(progress), source.id) for source, progress in progresses],
    )


def note_results(tx: Transaction, results: Sequence[tuple[int, VisitResult]]) -> None:
    """Record the results of sources, each with the id of its run."""
    tx.many(
        _RESULT_UPSERT,
        [
            (
                run_id,
                result.source_id,
                to_micros(result.started_at),
                to_micros(result.finished_at),
                str(result.outcome),
                result.counts.new,
                result.counts.updated,
                result.counts.duplicate,
                result.counts.invalid,
                result.requests,
                result.http_status,
                result.error_code,
                encode(result.error) if result.error is not None else None,
                result.is_retryable,
                to_micros(result.watermark_before),
                to_micros(result.watermark_after),
                encode_list(result.notes),
                result.valid,
            )
            for run_id, result in results
        ],
    )


def write_ends(
    tx: Transaction,
    finished: Sequence[FinishedVisit],
    *,
    tells_ready: bool,
    change_numbers: Mapping[tuple[int, int], int] = MappingProxyType({}),
) -> None:
    """Write the ends of visits, many with one statement. `tells_ready`: whether a visit with new or edited items emits
    an event of its own; `change_numbers`: the changes of this transaction, by run and source."""
    set_progress(tx, [(visit.source, visit.end.progress) for visit in finished])
    note_results(tx, [(visit.run_id, visit.end.result) for visit in finished])
    keep_paces(tx, [visit.source for visit in finished])
    for visit in finished:
        source, end = visit.source, visit.end
        if end.new_target is not None and not move_target(tx, source, end.new_target):
            # Another source has that address already: two would store everything twice.
            end = end.replace(retire=message("source.moved_to_known", target=end.new_target))
        if end.new_name is not None:
            rename(tx, source.id, end.new_name)
        _change_state(tx, source, end)
        result = end.result
        if tells_ready and result.finished_at is not None and (result.counts.new or result.counts.updated):
            _tell_ready(tx, visit, change_numbers.get((visit.run_id, source.id)), micros(result.finished_at))
    leases.release(tx, *(visit.lease for visit in finished))


def _tell_ready(tx: Transaction, visit: FinishedVisit, change_number: int | None, now: int) -> None:
    """Tell which items a visit changed: those of its earlier pages, and of the page that was written just now."""
    source_id, counts = visit.source.id, visit.end.result.counts
    sql = "SELECT first_change_number FROM run_sources WHERE run_id = ? AND source_id = ?"
    row = tx.one(sql, visit.run_id, source_id)
    first = row[0] if row and row[0] is not None else change_number
    data = {"source_id": source_id, "run_id": visit.run_id, "new": counts.new, "updated": counts.updated}
    which = changed_items(tx, [source_id], first - 1) if first is not None else {}
    events.tell(tx, "items.ready", {**data, **which}, now)


def _change_state(tx: Transaction, source: Source, end: VisitEnd) -> None:
    assert end.result.finished_at is not None
    now = micros(end.result.finished_at)
    if end.retire is not None:
        # Only from active: a user's pause stays.
        sql = """
            UPDATE sources SET state = 'retired', state_reason = ?, state_changed_at = ?
             WHERE id = ? AND state = 'active'
        """
        tx.run(sql, encode(end.retire), now, source.id)
        tx.run("UPDATE progress SET is_active = ? WHERE source_id = ?", False, source.id)
    subject = f"source {source.id} failing"
    if end.alert is not None and not alerts.is_any_open(tx, end.alert_yields_to):
        if alerts.raise_alert(tx, AlertRequest(subject, end.alert, source_id=source.id), now):
            _tell_source(tx, "source.failing", source, now, error=end.alert, error_code=end.result.error_code)
    elif end.is_recovered and alerts.close(tx, subject, now):
        _tell_source(tx, "source.recovered", source, now)


def _tell_source(tx: Transaction, event: str, source: Source, now: int, **more: str | None) -> None:
    alerts.tell_source(tx, event, source.id, source.name, source.kind, now, **more)
