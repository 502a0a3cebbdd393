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
        run_before, attempt_before = micros(now - timedelta(days=run_days)), micros(now - timedelta(days=attempt_days))
        event_before = micros(now - timedelta(days=event_days))
        position = self._one("SELECT min(position) FROM deliveries WHERE is_active")
        delivered = position[0] if position and position[0] is not None else 2**62
        unused_runs = """
            started_at < ? AND finished_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM run_sources s WHERE s.run_id = runs.id)
        """
        return {
            "raw_answers": self._delete("raw_answers", "answered_at < ?", micros(now - timedelta(days=raw_days))),
            "run_sources": self._delete("run_sources", "started_at < ?", run_before, key="run_id, source_id"),
            "runs": self._delete("runs", unused_runs, run_before),
            "attempts": self._delete("attempts", "minute < ?", attempt_before, key="minute"),
            "metrics": self._delete_metrics(MetricSpan.HOUR, run_before)
            + self._delete_metrics(MetricSpan.DAY, micros(now - timedelta(days=metrics_days))),
            "alerts": self._delete("alerts", "closed_at < ?", run_before),
            "credential_changes": self._delete("credential_changes", "changed_at < ?", run_before),
            "outbox": self._delete("outbox", "created_at < ? AND id <= ?", event_before, delivered)
            + self._delete("outbox", "created_at < ?", run_before),
        }

    def _delete_metrics(self, span: MetricSpan, before: int) -> int:
        where, key = "span = ? AND starts_at < ?", "span, starts_at"
        return sum(self._delete(table, where, str(span), before, key=key) for table in ("crawl_metrics", "standings"))

    def _delete(self, table: str, where: str, *values: Any, key: str = "id") -> int:
        """Deletes in batches; returns how many rows."""
        sql = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {where} LIMIT {_BATCH})"
        total = 0
        while deleted := self._run(sql, *values):
            total += deleted
        return total
