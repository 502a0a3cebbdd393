"""Settings kept in the database, budgets shared by all processes, and what is cleared away after its time."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from catchment.clock import micros
from catchment.store.database import Database, Transaction
from catchment.store.metrics import Span
from catchment.store.rows import decode, to_json

T = TypeVar("T")

# So many rows at a time: clearing must never hold the database for long.
_BATCH = 500
_INTERVAL = "fetch_interval."
_DEPLOYMENT = "deployment"


class KeptSettings:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, name: str, value: Any, now: datetime) -> None:
        self._db.write(
            lambda tx: tx.run(
                """
                INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
                """,
                name,
                to_json(value),
                micros(now),
            )
        )

    def deployment(self, now: datetime) -> str:
        """A name that all processes on this database share, and no others: for what they keep elsewhere together."""
        name = self.get(_DEPLOYMENT)
        if name is None:
            row = (_DEPLOYMENT, to_json(secrets.token_hex(8)), micros(now))
            # Of two that begin together, the first one names it.
            self._db.write(
                lambda tx: tx.insert(
                    "settings", ("name", "value", "updated_at"), [row], "ON CONFLICT (name) DO NOTHING"
                )
            )
            name = self.get(_DEPLOYMENT)
        return str(name)

    def get(self, name: str) -> Any | None:
        row = self._db.read(lambda tx: tx.one("SELECT value FROM settings WHERE name = ?", name))
        return decode(row[0]) if row else None

    def intervals(self) -> dict[str, int]:
        """Minutes by kind, as set in the database."""
        rows = self._db.read(lambda tx: tx.all("SELECT name, value FROM settings WHERE name LIKE ?", f"{_INTERVAL}%"))
        return {name.removeprefix(_INTERVAL): int(decode(value)) for name, value in rows}

    def put_interval(self, kind: str, minutes: int, now: datetime) -> None:
        self.put(f"{_INTERVAL}{kind}", minutes, now)


class BudgetRows:
    """One row a budget, taken under its lock: the window that all processes of a deployment share."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """The windows of these names as they are at this moment; those that nobody has used yet are left out."""
        rows = self._db.read(lambda tx: tx.among("SELECT name, blocks FROM budgets WHERE name IN {few}", names))
        return {name: decode(blocks) for name, blocks in rows}

    def change(self, name: str, now: datetime, deed: Callable[[Any | None], tuple[Any, T]]) -> T:
        """`deed` gets the stored window (None at first) and gives the next one with its own result."""

        def work(tx: Transaction) -> T:
            row = tx.one(f"SELECT blocks FROM budgets WHERE name = ? {tx.lock_rows()}", name)
            window, result = deed(decode(row[0]) if row else None)
            if row:
                tx.run(
                    "UPDATE budgets SET blocks = ?, updated_at = ? WHERE name = ?", to_json(window), micros(now), name
                )
            else:
                # There is no row to lock yet. Of two that begin together one fails here, and does it over.
                tx.insert("budgets", ("name", "blocks", "updated_at"), [(name, to_json(window), micros(now))])
            return result

        return self._db.write(work)


class Clearing:
    """What we keep about running is bounded: raw answers, run records, attempts, metrics, alerts that are over, what
    became of credentials, and events.

    An event stays for its days, and then for listeners that have not got it yet; but for no one longer than runs are
    kept."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def clear(
        self, now: datetime, *, raw_days: int, run_days: int, attempt_days: int, event_days: int, metrics_days: int
    ) -> dict[str, int]:
        """Delete what is older; gives how many rows of each went."""
        return {
            "raw_answers": self._older("raw_answers", "answered_at", now - timedelta(days=raw_days)),
            "run_sources": self._old_results(now - timedelta(days=run_days)),
            "runs": self._old_runs(now - timedelta(days=run_days)),
            "attempts": self._older("attempts", "minute", now - timedelta(days=attempt_days)),
            "metrics": self._old_metrics(Span.HOUR, now - timedelta(days=run_days))
            + self._old_metrics(Span.DAY, now - timedelta(days=metrics_days)),
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

    def _old_metrics(self, span: Span, before: datetime) -> int:
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
