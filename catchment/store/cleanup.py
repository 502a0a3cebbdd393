"""Deletes expired operational records: raw answers, runs, attempts, metrics, closed alerts, events."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.store.database import StorePart
from catchment.store.sources.metrics import MetricSpan

# Deleted in batches of this size: clearing must never lock the database for long.
_BATCH = 500


class Cleanup(StorePart):
    """Bounds operational records: raw answers, runs, attempts, metrics, closed alerts, credential changes and events.

    An event is kept for its days, and after that for listeners that have not received it yet; but never longer than
    runs are kept.
    """

    def clear(
        self, now: datetime, *, raw_days: int, run_days: int, attempt_days: int, event_days: int, metrics_days: int
    ) -> dict[str, int]:
        """Delete what is older; returns how many rows of each were deleted."""
        return {
            "raw_answers": self._older("raw_answers", "answered_at", now - timedelta(days=raw_days)),
            "run_sources": self._old_results(now - timedelta(days=run_days)),
            "runs": self._old_runs(now - timedelta(days=run_days)),
            "attempts": self._older("attempts", "minute", now - timedelta(days=attempt_days)),
            "metrics": self._old_metrics(MetricSpan.HOUR, now - timedelta(days=run_days))
            + self._old_metrics(MetricSpan.DAY, now - timedelta(days=metrics_days)),
            "alerts": self._older("alerts", "closed_at", now - timedelta(days=run_days)),
            "credential_changes": self._older("credential_changes", "changed_at", now - timedelta(days=run_days)),
            "outbox": self._told(now - timedelta(days=event_days))
            + self._older("outbox", "created_at", now - timedelta(days=run_days)),
        }

    def _older(self, table: str, column: str, before: datetime) -> int:
        key = "minute" if table == "attempts" else "id"
        return self._in_batches(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {column} < ? LIMIT {_BATCH})",
            micros(before),
        )

    def _told(self, before: datetime) -> int:
        row = self._db.read(lambda tx: tx.one("SELECT min(position) FROM deliveries WHERE is_active"))
        behind = row[0] if row and row[0] is not None else 2**62
        return self._in_batches(
            f"""
            DELETE FROM outbox WHERE id IN
                   (SELECT id FROM outbox WHERE created_at < ? AND id <= ? LIMIT {_BATCH})
            """,
            micros(before),
            behind,
        )

    def _old_results(self, before: datetime) -> int:
        return self._in_batches(
            f"""
            DELETE FROM run_sources WHERE (run_id, source_id) IN
                   (SELECT run_id, source_id FROM run_sources WHERE started_at < ? LIMIT {_BATCH})
            """,
            micros(before),
        )

    def _old_runs(self, before: datetime) -> int:
        return self._in_batches(
            f"""
            DELETE FROM runs WHERE id IN
                   (SELECT r.id FROM runs r WHERE r.started_at < ? AND r.finished_at IS NOT NULL
                       AND NOT EXISTS (SELECT 1 FROM run_sources s WHERE s.run_id = r.id) LIMIT {_BATCH})
            """,
            micros(before),
        )

    def _old_metrics(self, span: MetricSpan, before: datetime) -> int:
        return sum(
            self._in_batches(
                f"""
                DELETE FROM {table} WHERE span = ? AND starts_at IN
                       (SELECT starts_at FROM {table} WHERE span = ? AND starts_at < ? LIMIT {_BATCH})
                """,
                str(span),
                str(span),
                micros(before),
            )
            for table in ("crawl_metrics", "standings")
        )

    def _in_batches(self, sql: str, *values: Any) -> int:
        total = 0
        while gone := self._db.write(lambda tx: tx.run(sql, *values)):
            total += gone
        return total
