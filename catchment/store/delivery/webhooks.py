"""Webhooks with their encrypted secrets, and the delivery state of every listener.

A listener has one position in the outbox, moved only by the holder of its lease, in one transaction with the result of
the delivery: a kill in between repeats one event, and loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.messages import Message, encode
from catchment.model import Alarm, Event, Lease, Record, Severity, View
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, reads, writes
from catchment.store.delivery.events import head
from catchment.store.item_fields import to_json
from catchment.store.sources import alerts

RESOURCE = "listener"


class Delivery(Record, frozen=True):
    """The position of one listener."""

    id: int
    listener: str
    webhook_id: int | None
    position: int
    failures_in_a_row: int

    @property
    def alert_subject(self) -> str:
        return f"listener {self.id} failing"


class SealedWebhook(Record, frozen=True):
    """A webhook with its secrets still encrypted."""

    id: int
    name: str
    url: str
    events: tuple[str, ...]
    """Which events it wants; empty: all of them."""
    key_id: str
    sealed: bytes


class WebhookView(View, frozen=True):
    """A webhook or a Python hook, and its position. No secret is included."""

    listener_id: int
    listener: str
    webhook_id: int | None
    """None: a Python hook."""
    is_active: bool
    off_because: str | None
    position: int
    next_attempt_at: datetime | None
    failures_in_a_row: int
    failing_since: datetime | None
    last_error: Message | None
    last_delivered_at: datetime | None
    delivered_count: int
    given_up_count: int
    name: str | None
    url: str | None
    created_at: datetime | None
    events: tuple[str, ...]
    """Which events it wants; empty: all of them."""
    waiting_count: int = 0
    """How many pending events it wants."""


class Webhooks(StorePart):
    @writes
    def add(
        self, tx: Transaction, name: str, url: str, events: Sequence[str], key_id: str, sealed: bytes, now: datetime
    ) -> int:
        """Add a webhook; it begins with events after it. Raises Conflict."""
        if tx.one("SELECT 1 FROM webhooks WHERE name = ?", name):
            raise Conflict("there is already a webhook named {name!r}", "remove it first", name=name)
        sql = """
            INSERT INTO webhooks (name, url, events, key_id, sealed, created_at) VALUES (?, ?, ?, ?, ?, ?)
            RETURNING id
        """
        webhook_id = tx.number(sql, name, url, to_json(list(events)), key_id, sealed, micros(now))
        _begin(tx, f"webhook {name}", webhook_id)
        return webhook_id

    def sealed(self, webhook_id: int) -> SealedWebhook:
        webhook = self._record(
            SealedWebhook, "SELECT id, name, url, events, key_id, sealed FROM webhooks WHERE id = ?", webhook_id
        )
        if webhook is None:
            raise _missing(f"{webhook_id}")
        return webhook

    def id_of(self, name: str) -> int:
        row = self._one("SELECT id FROM webhooks WHERE name = ?", name)
        if row is None:
            raise _missing(repr(name))
        return int(row[0])

    @writes
    def remove(self, tx: Transaction, webhook_id: int, now: datetime) -> None:
        row = tx.one("SELECT id FROM deliveries WHERE webhook_id = ?", webhook_id)
        if row is None:
            raise _missing(f"{webhook_id}")
        alerts.close(tx, f"listener {row[0]} failing", micros(now))
        tx.run("DELETE FROM deliveries WHERE id = ?", row[0])
        tx.run("DELETE FROM webhooks WHERE id = ?", webhook_id)
        # A process that is delivering to it at this moment finds the lease gone, and stops.
        tx.run("DELETE FROM leases WHERE resource = ? AND resource_id = ?", RESOURCE, row[0])


class Deliveries(StorePart):
    @reads
    def page(self, tx: Transaction) -> list[WebhookView]:
        """Returns all listeners."""
        newest = head(tx)
        listeners = tx.records(
            WebhookView,
            """
            SELECT d.id AS listener_id, d.listener, d.webhook_id, d.is_active, d.off_because, d.position,
                   d.next_attempt_at, d.failures_in_a_row, d.failing_since, d.last_error, d.last_delivered_at,
                   d.delivered_count, d.given_up_count, w.name, w.url, w.created_at,
                   coalesce(w.events, '[]') AS events
              FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook_id ORDER BY d.id
            """,
        )
        return [listener.replace(waiting_count=_waiting(tx, listener, newest)) for listener in listeners]

    def of_webhook(self, webhook_id: int) -> WebhookView:
        webhook = next((listener for listener in self.page() if listener.webhook_id == webhook_id), None)
        if webhook is None:
            raise _missing(f"{webhook_id}")
        return webhook

    def know_hooks(self, names: Sequence[str]) -> None:
        """Keep a row for each installed Python hook. One that was uninstalled keeps its position, switched off."""
        listeners = {f"hook {name}" for name in names}

        def query(tx: Transaction) -> dict[str, bool]:
            return dict(tx.all("SELECT listener, is_active FROM deliveries WHERE webhook_id IS NULL"))

        def change(tx: Transaction) -> None:
            known = query(tx)
            for name in sorted(listeners - known.keys()):
                _begin(tx, name, None)
            for name in sorted(known.keys() & listeners):
                _switch(tx, "listener = ? AND off_because IS NOT NULL", name, None)
            for name in sorted(known.keys() - listeners):
                _switch(tx, "listener = ?", name, "it is not installed any more")

        known = self._db.read(query)
        if {listener for listener, is_active in known.items() if is_active} != listeners:
            self._db.write(change)

    def due(self, now: datetime, limit: int) -> list[Delivery]:
        """Returns the listeners with pending events that may be tried now, the furthest behind first."""
        sql = """
            SELECT id, listener, webhook_id, position, failures_in_a_row FROM deliveries
             WHERE is_active AND position < ? AND (next_attempt_at IS NULL OR next_attempt_at <= ?)
        """
        waiting = self._db.read(lambda tx: tx.records(Delivery, sql, head(tx), micros(now)))
        return sorted(waiting, key=lambda delivery: (delivery.position, delivery.id))[:limit]

    @writes
    def claim(self, tx: Transaction, delivery: Delivery, owner_id: int, now: datetime) -> tuple[Lease, Delivery] | None:
        """Claim the listener; returns its current state, or None if it is taken or gone."""
        lease = leases.claim_one(tx, RESOURCE, delivery.id, owner_id, now)
        if lease is None:
            return None
        sql = """
            SELECT id, listener, webhook_id, position, failures_in_a_row FROM deliveries
             WHERE id = ? AND is_active
        """
        current = tx.record(Delivery, sql, delivery.id)
        if current is None:
            leases.release(tx, lease)
            return None
        return lease, current

    def release(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))

    @writes
    def delivered(self, tx: Transaction, lease: Lease, delivery: Delivery, event_id: int, now: datetime) -> Delivery:
        """Record that the event arrived: earlier errors are cleared."""
        leases.check(tx, lease)
        sql = """
            UPDATE deliveries SET position = ?, delivered_count = delivered_count + 1, last_delivered_at = ?,
                   failures_in_a_row = 0, failing_since = NULL, last_error = NULL, next_attempt_at = NULL
             WHERE id = ?
        """
        tx.run(sql, event_id, micros(now), delivery.id)
        if delivery.failures_in_a_row:
            alerts.close(tx, delivery.alert_subject, micros(now))
        return delivery.replace(position=event_id, failures_in_a_row=0)

    @writes
    def skip_to(self, tx: Transaction, lease: Lease, delivery: Delivery, event_id: int, given_up: int = 0) -> Delivery:
        """Move past that event without a delivery: nothing up to it is wanted, or `given_up` events are given up."""
        leases.check(tx, lease)
        sql = "UPDATE deliveries SET position = ?, given_up_count = given_up_count + ? WHERE id = ?"
        tx.run(sql, event_id, given_up, delivery.id)
        return delivery.replace(position=event_id)

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
        """Record that the next event did not arrive. `alert` opens the listener's alert with this message."""

        def change(tx: Transaction) -> None:
            leases.check(tx, lease)
            sql = """
                UPDATE deliveries SET failures_in_a_row = failures_in_a_row + 1, last_error = ?, next_attempt_at = ?,
                       failing_since = coalesce(failing_since, ?)
                 WHERE id = ?
            """
            tx.run(sql, encode(error), micros(next_attempt_at), micros(now), delivery.id)
            if alert is not None:
                alerts.raise_alert(tx, Alarm(delivery.alert_subject, alert, Severity.P2), micros(now))

        self._db.write(change)
        return delivery.replace(failures_in_a_row=delivery.failures_in_a_row + 1)

    @writes
    def switch_off(
        self, tx: Transaction, delivery_id: int, because: str, now: datetime, *, alert: str | None = None
    ) -> None:
        _switch(tx, "id = ?", delivery_id, because)
        if alert is not None:
            alerts.raise_alert(tx, Alarm(f"listener {delivery_id} failing", alert, Severity.P2), micros(now))
        else:
            alerts.close(tx, f"listener {delivery_id} failing", micros(now))

    @writes
    def switch_on(self, tx: Transaction, delivery_id: int, now: datetime) -> None:
        """Continue at its position, at once."""
        _switch(tx, "id = ?", delivery_id, None)
        alerts.close(tx, f"listener {delivery_id} failing", micros(now))


def _begin(tx: Transaction, listener: str, webhook_id: int | None) -> None:
    sql = """
        INSERT INTO deliveries (listener, webhook_id, is_active, position, failures_in_a_row, delivered_count,
                                given_up_count)
        VALUES (?, ?, ?, ?, 0, 0, 0)
    """
    tx.run(sql, listener, webhook_id, True, head(tx))


def _switch(tx: Transaction, where: str, which: Any, because: str | None) -> None:
    """Switches off for that reason, or on again with errors reset."""
    sql = f"""
        UPDATE deliveries SET is_active = ?, off_because = ?, failures_in_a_row = 0, failing_since = NULL,
               next_attempt_at = NULL, last_error = CASE WHEN ? THEN NULL ELSE last_error END
         WHERE {where}
    """
    tx.run(sql, because is None, because, because is None, which)


def _waiting(tx: Transaction, listener: WebhookView, newest: int) -> int:
    """Returns how many pending events it wants."""
    named = f"AND event IN ({', '.join('?' * len(listener.events))})" if listener.events else ""
    return tx.number(
        f"SELECT count(*) FROM outbox WHERE id > ? AND id <= ? AND event <> '{Event.FORGOTTEN}' {named}",
        listener.position,
        newest,
        *listener.events,
    )


def _missing(which: str) -> NotFound:
    return NotFound("there is no webhook {which}", "`catchment webhooks list` shows them", which=which)
