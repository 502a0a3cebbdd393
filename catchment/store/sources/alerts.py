"""Alerts: one open alert per subject, closed automatically; opening and closing are events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from catchment.clock import micros
from catchment.messages import Message, decode, encode
from catchment.model import AlertRequest, Record, Severity, View
from catchment.store.database import StorePart, Transaction
from catchment.store.delivery import events
from catchment.store.item_fields import iso

_SHOWN = "id, subject, severity, source_id, message, opened_at, closed_at"


class AlertView(View, frozen=True):
    id: int
    subject: str
    severity: Severity
    source_id: int | None
    message: Message
    opened_at: datetime
    closed_at: datetime | None


class StaleSource(Record, frozen=True):
    """A source that was visited in time and showed nothing new in time."""

    source_id: int
    name: str
    platform: str
    expected_by: datetime


class PostingRhythm(Record, frozen=True):
    """An active source with a known posting rhythm."""

    source_id: int
    name: str
    platform: str
    expected_by: datetime
    newest_shown_at: datetime | None
    last_new_at: datetime | None

    @property
    def patience(self) -> timedelta:
        """How long it may be silent: the busier, the shorter."""
        return self.expected_by - self.newest_shown_at if self.newest_shown_at else timedelta.max


def is_any_open(tx: Transaction, subjects: Sequence[str]) -> bool:
    return bool(tx.select_in("SELECT 1 FROM alerts WHERE closed_at IS NULL AND subject IN {values}", subjects))


def raise_alert(tx: Transaction, alarm: AlertRequest, now: int) -> bool:
    """Open the alert of that subject, or update it if it is open already; returns whether it was opened."""
    subject, message, severity, source_id = alarm.subject, alarm.message, str(alarm.severity), alarm.source_id
    sql = "UPDATE alerts SET message = ?, severity = ? WHERE subject = ? AND closed_at IS NULL"
    if tx.run(sql, encode(message), severity, subject):
        return False
    # Of two concurrent inserts one fails here, and its transaction is repeated.
    sql = """
        INSERT INTO alerts (subject, severity, source_id, message, opened_at) VALUES (?, ?, ?, ?, ?) RETURNING id
    """
    row = tx.one(sql, subject, severity, source_id, encode(message), now)
    assert row is not None
    data = {"alert_id": row[0], "subject": subject, "severity": severity, "source_id": source_id, "message": message}
    events.tell(tx, "alert.opened", data, now)
    return True


def close(tx: Transaction, subject: str, now: int) -> bool:
    """Close the alert of that subject; returns whether it was open."""
    sql = """
        UPDATE alerts SET closed_at = ? WHERE subject = ? AND closed_at IS NULL
        RETURNING id, severity, source_id, message, opened_at
    """
    row = tx.one(sql, now, subject)
    if row is None:
        return False
    alert_id, severity, source_id, stored, opened_at = row
    data = {"alert_id": alert_id, "subject": subject, "severity": severity, "source_id": source_id}
    data["message"] = decode(stored)
    events.tell(tx, "alert.closed", data | {"opened_at": iso(opened_at)}, now)
    return True


def tell_source(
    tx: Transaction, event: str, source_id: int, name: str, kind: str, now: int, **more: str | None
) -> None:
    events.tell(tx, event, {"source_id": source_id, "name": name, "kind": kind, **more}, now)


class Alerts(StorePart):
    def open(self, limit: int = 100) -> list[AlertView]:
        """Returns the open ones, newest first."""
        return self.page(limit)

    def page(self, limit: int = 100, *, before: int | None = None, include_closed: bool = False) -> list[AlertView]:
        """Returns alerts, newest first; the next page begins before the last one's id."""
        where = "" if include_closed else "AND closed_at IS NULL"
        sql = f"SELECT {_SHOWN} FROM alerts WHERE id < ? {where} ORDER BY id DESC LIMIT ?"
        return self._records(AlertView, sql, 2**62 if before is None else before, limit)

    def message(self, alert_id: int) -> Message | None:
        row = self._one("SELECT message FROM alerts WHERE id = ?", alert_id)
        return decode(row[0]) if row else None

    def open_by_severity(self) -> dict[Severity, int]:
        """Returns how many are open, by severity."""
        rows = self._all("SELECT severity, count(*) FROM alerts WHERE closed_at IS NULL GROUP BY severity")
        return dict.fromkeys(Severity, 0) | {Severity(name): count for name, count in rows}

    def count_open(self) -> int:
        return self._number("SELECT count(*) FROM alerts WHERE closed_at IS NULL")

    def closed(self, limit: int = 100) -> list[AlertView]:
        """Returns closed alerts, the last opened first."""
        sql = f"SELECT {_SHOWN} FROM alerts WHERE id < ? AND closed_at IS NOT NULL ORDER BY id DESC LIMIT ?"
        return self._records(AlertView, sql, 2**62, limit)

    def late_sources(self, now: datetime, limit: int = 1000) -> list[StaleSource]:
        """Returns sources that should have shown something new and did not, although visited since."""
        sql = """
            SELECT s.id AS source_id, s.name, s.platform, p.expected_by
              FROM progress p JOIN sources s ON s.id = p.source_id
             WHERE p.is_active AND p.expected_by IS NOT NULL AND p.expected_by <= ?
               AND p.last_success_at >= p.expected_by
             ORDER BY p.expected_by LIMIT ?
        """
        return self._records(StaleSource, sql, micros(now), limit)

    def with_rhythm(self) -> list[PostingRhythm]:
        """Returns the active sources with a posting rhythm."""
        sql = """
            SELECT s.id AS source_id, s.name, s.platform, p.expected_by, p.newest_shown_at, p.last_new_at
              FROM progress p JOIN sources s ON s.id = p.source_id
             WHERE p.is_active AND p.expected_by IS NOT NULL
        """
        return self._records(PostingRhythm, sql)

    def tell_failing(
        self, alarms: Sequence[AlertRequest], explained: Collection[str], now: datetime
    ) -> tuple[int, int]:
        """Open these alerts about single sources, and close those of the subjects that another alert explains; returns
        how many were opened and closed. The others are closed by their sources' next success."""
        at = micros(now)

        def explained_now(tx: Transaction) -> list[str]:
            rows = tx.select_in(
                "SELECT subject FROM alerts WHERE closed_at IS NULL AND subject IN {values}", list(explained)
            )
            return [row[0] for row in rows]

        def change(tx: Transaction) -> tuple[int, int]:
            opened = {alarm.source_id: alarm for alarm in alarms if raise_alert(tx, alarm, at)}
            sql = """
                SELECT s.id, s.name, s.kind, p.last_error_code FROM sources s JOIN progress p ON p.source_id = s.id
                 WHERE s.id IN {values}
            """
            rows = tx.select_in(sql, list(opened))
            for source_id, name, kind, code in rows:
                message = opened[source_id].message
                tell_source(tx, "source.failing", source_id, name, kind, at, error=message, error_code=code)
            return len(opened), sum(close(tx, subject, at) for subject in explained_now(tx))

        return self._db.write(change) if alarms or len(self._db.read(explained_now)) else (0, 0)

    def keep_open(
        self, ending: str, alarms: Sequence[AlertRequest], now: datetime, *, undecided: Collection[str] = ()
    ) -> tuple[int, int]:
        """Of the alerts with this subject suffix, keep exactly these open; returns how many were opened and closed.

        Those that cannot be decided yet (`undecided`) stay as they are.
        """
        kept = {alarm.subject for alarm in alarms}

        def over_now(tx: Transaction) -> set[str]:
            rows = tx.all("SELECT subject FROM alerts WHERE closed_at IS NULL AND subject LIKE ?", f"%{ending}")
            return {row[0] for row in rows} - kept - {*undecided}

        def change(tx: Transaction) -> tuple[int, int]:
            over = over_now(tx)
            opened = sum(raise_alert(tx, alarm, micros(now)) for alarm in alarms)
            for subject in over:
                close(tx, subject, micros(now))
            return opened, len(over)

        # Read before locking: while all is well nothing is written.
        return self._db.write(change) if kept or self._db.read(over_now) else (0, 0)
