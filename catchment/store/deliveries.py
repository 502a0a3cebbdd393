"""Listeners and how far each one is: webhooks with their sealed secrets, and one row of deliveries for each listener.

A listener has one position in the outbox, moved only by whoever holds its lease, in one transaction with what came of
the delivery: a kill in between repeats one event, and loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Alarm, Event, Lease, Record, Severity
from catchment.store import alerts, leases
from catchment.store.database import Database, Transaction
from catchment.store.outbox import head
from catchment.store.rows import decode, to_json, with_iso

RESOURCE = "listener"
_STATE = (
    "d.id AS listener_id, d.listener, d.webhook_id, d.is_active, d.off_because, d.position, d.next_attempt_at, "
    "d.failures_in_a_row, d.failing_since, d.last_error, d.last_delivered_at, d.delivered_count, d.given_up_count"
)
_TIMES = ("next_attempt_at", "failing_since", "last_delivered_at")


class Delivery(Record, frozen=True):
    """How far one listener is."""

    id: int
    listener: str
    webhook_id: int | None
    position: int
    failures_in_a_row: int

    @property
    def alert_subject(self) -> str:
        return f"listener {self.id} failing"


class SealedWebhook(Record, frozen=True):
    """Where to send what, with the secrets still locked."""

    id: int
    name: str
    url: str
    events: tuple[str, ...]
    """Which events it wants; none: all of them."""
    key_id: str
    sealed: bytes


class Webhooks:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, name: str, url: str, events: Sequence[str], key_id: str, sealed: bytes, now: datetime) -> int:
        """It begins with the events that come after it."""

        def deed(tx: Transaction) -> int:
            if tx.one("SELECT 1 FROM webhooks WHERE name = ?", name):
                raise Conflict(f"there is a webhook named {name!r} already", "remove it first")
            row = tx.one(
                """
                INSERT INTO webhooks (name, url, events, key_id, sealed, created_at) VALUES (?, ?, ?, ?, ?, ?)
                RETURNING id
                """,
                name,
                url,
                to_json(list(events)),
                key_id,
                sealed,
                micros(now),
            )
            assert row is not None
            _begin(tx, f"webhook {name}", row[0])
            return int(row[0])

        return self._db.write(deed)

    def sealed(self, webhook_id: int) -> SealedWebhook:
        row = self._db.read(
            lambda tx: tx.one("SELECT id, name, url, events, key_id, sealed FROM webhooks WHERE id = ?", webhook_id)
        )
        if row is None:
            raise _missing(f"{webhook_id}")
        return SealedWebhook(row[0], row[1], row[2], tuple(decode(row[3])), row[4], bytes(row[5]))

    def id_of(self, name: str) -> int:
        row = self._db.read(lambda tx: tx.one("SELECT id FROM webhooks WHERE name = ?", name))
        if row is None:
            raise _missing(repr(name))
        return int(row[0])

    def remove(self, webhook_id: int, now: datetime) -> None:
        def deed(tx: Transaction) -> None:
            row = tx.one("SELECT id FROM deliveries WHERE webhook_id = ?", webhook_id)
            if row is None:
                raise _missing(f"{webhook_id}")
            alerts.close(tx, f"listener {row[0]} failing", micros(now))
            tx.run("DELETE FROM deliveries WHERE id = ?", row[0])
            tx.run("DELETE FROM webhooks WHERE id = ?", webhook_id)
            # Whoever is telling it at this moment finds the lease gone, and stops.
            tx.run("DELETE FROM leases WHERE resource = ? AND resource_id = ?", RESOURCE, row[0])

        self._db.write(deed)


class Deliveries:
    def __init__(self, database: Database) -> None:
        self._db = database

    def page(self) -> list[dict[str, Any]]:
        """All listeners, as the outside sees them: where to, how far, what is wrong. No secret is among it."""

        def question(tx: Transaction) -> list[dict[str, Any]]:
            newest = head(tx)
            rows = tx.dicts(
                f"""
                SELECT {_STATE}, w.name, w.url, w.events, w.created_at
                  FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook_id ORDER BY d.id
                """
            )
            return [_shown(row) | {"waiting_count": _waiting(tx, row, newest)} for row in rows]

        return self._db.read(question)

    def of_webhook(self, webhook_id: int) -> dict[str, Any]:
        found = next((one for one in self.page() if one["webhook_id"] == webhook_id), None)
        if found is None:
            raise _missing(f"{webhook_id}")
        return found

    def know_hooks(self, names: Sequence[str]) -> None:
        """Keep a row for each Python hook that is installed. One that is gone stays where it was, switched off."""
        listeners = {f"hook {name}" for name in names}

        def question(tx: Transaction) -> dict[str, bool]:
            return dict(tx.all("SELECT listener, is_active FROM deliveries WHERE webhook_id IS NULL"))

        def deed(tx: Transaction) -> None:
            known = question(tx)
            for one in sorted(listeners - known.keys()):
                _begin(tx, one, None)
            for one in sorted(known.keys() & listeners):
                _switch(tx, "listener = ? AND off_because IS NOT NULL", one, None)
            for one in sorted(known.keys() - listeners):
                _switch(tx, "listener = ?", one, "it is not installed any more")

        known = self._db.read(question)
        if {one for one, is_active in known.items() if is_active} != listeners:
            self._db.write(deed)

    def due(self, now: datetime, limit: int) -> list[Delivery]:
        """Those that have events waiting and may be tried now; who is furthest behind comes first."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT id, listener, webhook_id, position, failures_in_a_row FROM deliveries
                 WHERE is_active AND position < ? AND (next_attempt_at IS NULL OR next_attempt_at <= ?)
                """,
                head(tx),
                micros(now),
            )
        )
        waiting = [Delivery(*row) for row in rows]
        return sorted(waiting, key=lambda one: (one.position, one.id))[:limit]

    def claim(self, delivery: Delivery, owner_id: int, now: datetime) -> tuple[Lease, Delivery] | None:
        """The listener for ourselves, as it stands now; None: somebody has it, or it is gone."""

        def deed(tx: Transaction) -> tuple[Lease, Delivery] | None:
            lease = leases.take(tx, RESOURCE, delivery.id, owner_id, now)
            if lease is None:
                return None
            row = tx.one(
                """
                SELECT id, listener, webhook_id, position, failures_in_a_row FROM deliveries
                 WHERE id = ? AND is_active
                """,
                delivery.id,
            )
            if row is None:
                leases.release(tx, lease)
                return None
            return lease, Delivery(*row)

        return self._db.write(deed)

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    def delivered(self, lease: Lease, delivery: Delivery, event_id: int, now: datetime) -> Delivery:
        """That event arrived: whatever was wrong is over."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            tx.run(
                """
                UPDATE deliveries SET position = ?, delivered_count = delivered_count + 1, last_delivered_at = ?,
                       failures_in_a_row = 0, failing_since = NULL, last_error = NULL, next_attempt_at = NULL
                 WHERE id = ?
                """,
                event_id,
                micros(now),
                delivery.id,
            )
            if delivery.failures_in_a_row:
                alerts.close(tx, delivery.alert_subject, micros(now))

        self._db.write(deed)
        return delivery.plus(position=event_id, failures_in_a_row=0)

    def passed(self, lease: Lease, delivery: Delivery, event_id: int, given_up: int = 0) -> Delivery:
        """Go on behind that event without a delivery: nothing up to it is wanted, or so many are given up."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            tx.run(
                "UPDATE deliveries SET position = ?, given_up_count = given_up_count + ? WHERE id = ?",
                event_id,
                given_up,
                delivery.id,
            )

        self._db.write(deed)
        return delivery.plus(position=event_id)

    def failed(
        self,
        lease: Lease,
        delivery: Delivery,
        error: str,
        now: datetime,
        next_attempt_at: datetime,
        *,
        alert: str | None = None,
    ) -> Delivery:
        """The next event did not arrive. `alert` opens the listener's alert with these words."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            tx.run(
                """
                UPDATE deliveries SET failures_in_a_row = failures_in_a_row + 1, last_error = ?, next_attempt_at = ?,
                       failing_since = coalesce(failing_since, ?)
                 WHERE id = ?
                """,
                error,
                micros(next_attempt_at),
                micros(now),
                delivery.id,
            )
            if alert is not None:
                alerts.raise_alert(tx, Alarm(delivery.alert_subject, alert, Severity.P2), micros(now))

        self._db.write(deed)
        return delivery.plus(failures_in_a_row=delivery.failures_in_a_row + 1)

    def switch_off(self, delivery_id: int, because: str, now: datetime, *, alert: str | None = None) -> None:
        def deed(tx: Transaction) -> None:
            _switch(tx, "id = ?", delivery_id, because)
            if alert is not None:
                alerts.raise_alert(tx, Alarm(f"listener {delivery_id} failing", alert, Severity.P2), micros(now))
            else:
                alerts.close(tx, f"listener {delivery_id} failing", micros(now))

        self._db.write(deed)

    def switch_on(self, delivery_id: int, now: datetime) -> None:
        """Go on where it was, at once."""

        def deed(tx: Transaction) -> None:
            _switch(tx, "id = ?", delivery_id, None)
            alerts.close(tx, f"listener {delivery_id} failing", micros(now))

        self._db.write(deed)


def _begin(tx: Transaction, listener: str, webhook_id: int | None) -> None:
    tx.run(
        """
        INSERT INTO deliveries (listener, webhook_id, is_active, position, failures_in_a_row, delivered_count,
                                given_up_count)
        VALUES (?, ?, ?, ?, 0, 0, 0)
        """,
        listener,
        webhook_id,
        True,
        head(tx),
    )


def _switch(tx: Transaction, where: str, which: Any, because: str | None) -> None:
    """Off for that reason, or on again with a clean slate."""
    tx.run(
        f"""
        UPDATE deliveries SET is_active = ?, off_because = ?, failures_in_a_row = 0, failing_since = NULL,
               next_attempt_at = NULL, last_error = CASE WHEN ? THEN NULL ELSE last_error END
         WHERE {where}
        """,
        because is None,
        because,
        because is None,
        which,
    )


def _waiting(tx: Transaction, row: dict[str, Any], newest: int) -> int:
    """How many events it is still to be told of: of those that it wants."""
    wanted = decode(row["events"]) if row["events"] else []
    named = f"AND event IN ({', '.join('?' * len(wanted))})" if wanted else ""
    found = tx.one(
        f"SELECT count(*) FROM outbox WHERE id > ? AND id <= ? AND event <> '{Event.FORGOTTEN}' {named}",
        row["position"],
        newest,
        *wanted,
    )
    return int(found[0]) if found else 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    shown = with_iso(row, *_TIMES, "created_at")
    return shown | {
        "is_active": bool(row["is_active"]),
        "events": decode(row["events"]) if row["events"] else [],
    }


def _missing(which: str) -> NotFound:
    return NotFound(f"there is no webhook {which}", "`catchment webhooks list` shows them")
