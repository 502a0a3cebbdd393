"""How a visit ends: progress, the run's record, the source's state and alert; and the lease is free."""

from __future__ import annotations

from catchment.clock import micros
from catchment.model import Alarm, Counts, Lease, Progress, Result, Source
from catchment.store import alerts, leases, outbox
from catchment.store.database import Transaction, placeholders
from catchment.store.rows import PROGRESS, progress_values, to_micros
from catchment.store.sources import call_it, keep_pace, move_target
from catchment.store.visits import Ending, Page
from catchment.store.writing import short_json

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
    """The run's record grows with every page: a kill in the middle leaves what was done so far."""
    tx.run(
        """
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
        """,
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


def set_progress(tx: Transaction, source: Source, progress: Progress) -> None:
    tx.run(f"UPDATE progress SET {placeholders(PROGRESS)} WHERE source_id = ?", *progress_values(progress), source.id)


def note_result(tx: Transaction, run_id: int, result: Result) -> None:
    """What became of one source in a run."""
    tx.run(
        _RESULT_UPSERT,
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
        result.error,
        result.is_retryable,
        to_micros(result.watermark_before),
        to_micros(result.watermark_after),
        short_json(result.notes),
        result.valid,
    )


def ended(tx: Transaction, source: Source, lease: Lease, run_id: int, ending: Ending, *, tells_ready: bool) -> None:
    """`tells_ready`: whether a visit that brought something says so with an event of its own."""
    result = ending.result
    set_progress(tx, source, ending.progress)
    note_result(tx, run_id, result)
    keep_pace(tx, source)
    if ending.new_target is not None and not move_target(tx, source, ending.new_target):
        # Somebody follows that address already: two would store everything twice.
        ending = ending.plus(retire=f"it has moved to {ending.new_target}, which is followed already")
    if ending.new_name is not None:
        call_it(tx, source.id, ending.new_name)
    _change_state(tx, source, ending)
    if tells_ready and result.finished_at is not None and (result.counts.new or result.counts.updated):
        _tell_ready(tx, source, run_id, result.counts, micros(result.finished_at))
    leases.release(tx, lease)


def _change_state(tx: Transaction, source: Source, ending: Ending) -> None:
    assert ending.result.finished_at is not None
    now = micros(ending.result.finished_at)
    if ending.retire is not None:
        # Only from active: a person's pause stays a person's pause.
        tx.run(
            """
            UPDATE sources SET state = 'retired', state_reason = ?, state_changed_at = ?
             WHERE id = ? AND state = 'active'
            """,
            ending.retire,
            now,
            source.id,
        )
        tx.run("UPDATE progress SET is_active = ? WHERE source_id = ?", False, source.id)
    subject = f"source {source.id} failing"
    if ending.alert is not None:
        if alerts.raise_alert(tx, Alarm(subject, ending.alert, source_id=source.id), now):
            _tell_source(tx, "source.failing", source, now, error=ending.alert, error_code=ending.result.error_code)
    elif ending.is_recovered and alerts.close(tx, subject, now):
        _tell_source(tx, "source.recovered", source, now)


def _tell_source(tx: Transaction, event: str, source: Source, now: int, **more: str | None) -> None:
    outbox.tell(tx, event, {"source_id": source.id, "name": source.name, "kind": source.kind, **more}, now)


def _tell_ready(tx: Transaction, source: Source, run_id: int, counts: Counts, now: int) -> None:
    """The visit is over, and what it brought can be worked on."""
    outbox.tell(
        tx,
        "items.ready",
        {"source_id": source.id, "run_id": run_id, "new": counts.new, "updated": counts.updated},
        now,
    )
