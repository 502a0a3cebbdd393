"""Alerts: open once, close by themselves; both are events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros, moment
from catchment.model import Alarm, Severity
from catchment.store import outbox
from catchment.store.database import Database, Transaction
from catchment.store.rows import iso, to_moment, with_iso


def raise_alert(tx: Transaction, alarm: Alarm, now: int) -> bool:
    """Open the alert of that subject, or say it anew if it is open already; gives whether it was opened."""
    subject, message, severity, source_id = alarm.subject, alarm.message, str(alarm.severity), alarm.source_id
    if tx.run(
        "UPDATE alerts SET message = ?, severity = ? WHERE subject = ? AND closed_at IS NULL",
        message,
        severity,
        subject,
    ):
        return False
    # Of two that open it together one fails here, and does it over.
    row = tx.one(
        """
        INSERT INTO alerts (subject, severity, source_id, message, opened_at) VALUES (?, ?, ?, ?, ?) RETURNING id
        """,
        subject,
        severity,
        source_id,
        message,
        now,
    )
    assert row is not None
    told = {"alert_id": row[0], "subject": subject, "severity": severity, "source_id": source_id, "message": message}
    outbox.tell(tx, "alert.opened", told, now)
    return True


def close(tx: Transaction, subject: str, now: int) -> bool:
    """Close the alert of that subject; gives whether it was open."""
    row = tx.one(
        """
        UPDATE alerts SET closed_at = ? WHERE subject = ? AND closed_at IS NULL
        RETURNING id, severity, source_id, message, opened_at
        """,
        now,
        subject,
    )
    if row is None:
        return False
    alert_id, severity, source_id, message, opened_at = row
    told = {"alert_id": alert_id, "subject": subject, "severity": severity, "source_id": source_id, "message": message}
    outbox.tell(tx, "alert.closed", told | {"opened_at": iso(opened_at)}, now)
    return True


class Alerts:
    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, limit: int = 100) -> list[dict[str, Any]]:
        """The open ones, newest first."""
        return self.page(limit)

    def page(
        self, limit: int = 100, *, before: int | None = None, include_closed: bool = False
    ) -> list[dict[str, Any]]:
        """Newest first; the next page begins before the last one's id."""
        where = "" if include_closed else "AND closed_at IS NULL"
        rows = self._db.read(
            lambda tx: tx.dicts(
                f"""
                SELECT id, subject, severity, source_id, message, opened_at, closed_at FROM alerts
                 WHERE id < ? {where} ORDER BY id DESC LIMIT ?
                """,
                2**62 if before is None else before,
                limit,
            )
        )
        return [with_iso(row, "opened_at", "closed_at") for row in rows]

    def open_by_severity(self) -> dict[Severity, int]:
        """How many are open, by severity."""
        rows = self._db.read(
            lambda tx: tx.all("SELECT severity, count(*) FROM alerts WHERE closed_at IS NULL GROUP BY severity")
        )
        return dict.fromkeys(Severity, 0) | {Severity(name): count for name, count in rows}

    def count_open(self) -> int:
        row = self._db.read(lambda tx: tx.one("SELECT count(*) FROM alerts WHERE closed_at IS NULL"))
        return int(row[0]) if row else 0

    def closed(self, limit: int = 100) -> list[dict[str, Any]]:
        """Those that are over, the ones opened last first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT id, subject, severity, source_id, message, opened_at, closed_at FROM alerts
                 WHERE id < ? AND closed_at IS NOT NULL ORDER BY id DESC LIMIT ?
                """,
                2**62,
                limit,
            )
        )
        return [with_iso(row, "opened_at", "closed_at") for row in rows]

    def late_sources(self, now: datetime, limit: int = 1000) -> list[tuple[int, str, str, int]]:
        """Sources that should have shown something new and, asked since, did not: (id, name, platform, expected by)."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT s.id, s.name, s.platform, p.expected_by FROM progress p JOIN sources s ON s.id = p.source_id
                 WHERE p.is_active AND p.expected_by IS NOT NULL AND p.expected_by < ?
                   AND p.last_success_at > p.expected_by
                 ORDER BY p.expected_by LIMIT ?
                """,
                micros(now),
                limit,
            )
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def with_rhythm(self) -> list[tuple[int, str, str, datetime, datetime | None, datetime | None]]:
        """The active sources that have a rhythm which silence can be told from: id, name, platform, expected by, newest
        shown, when something new was last seen."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT s.id, s.name, s.platform, p.expected_by, p.newest_shown_at, p.last_new_at
                  FROM progress p JOIN sources s ON s.id = p.source_id
                 WHERE p.is_active AND p.expected_by IS NOT NULL
                """
            )
        )
        return [(row[0], row[1], row[2], moment(row[3]), to_moment(row[4]), to_moment(row[5])) for row in rows]

    def keep_open(
        self, ending: str, alarms: Sequence[Alarm], now: datetime, *, undecided: Collection[str] = ()
    ) -> tuple[int, int]:
        """Of the alerts whose subject ends so, have exactly these open; gives how many were opened and closed.

        Those of which nothing is known at the moment (`undecided`) stay as they are.
        """
        wanted = {one.subject for one in alarms}

        def over_now(tx: Transaction) -> set[str]:
            rows = tx.all("SELECT subject FROM alerts WHERE closed_at IS NULL AND subject LIKE ?", f"%{ending}")
            return {row[0] for row in rows} - wanted - {*undecided}

        def deed(tx: Transaction) -> tuple[int, int]:
            over = over_now(tx)
            opened = sum(raise_alert(tx, one, micros(now)) for one in alarms)
            for subject in over:
                close(tx, subject, micros(now))
            return opened, len(over)

        # Looking before locking: while all is well nothing is written.
        return self._db.write(deed) if wanted or self._db.read(over_now) else (0, 0)
