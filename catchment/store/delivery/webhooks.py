"""Webhooks and notifications with their encrypted secrets, and the delivery state of every listener.

A listener has one position in the outbox, moved only by the holder of its lease, in one transaction with the result of
the delivery: a kill in between repeats one event, and loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.messages import Message, encode, message
from catchment.model import AlertRequest, Event, Lease, Record, Severity, View
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, reads, writes
from catchment.store.delivery.events import head
from catchment.store.item_fields import decode, to_json
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
    """A webhook or notification with its secrets still encrypted."""

    id: int
    name: str
    url: str
    events: tuple[str, ...]
    """Which events it wants; empty: all of them."""
    key_id: str
    sealed: bytes
    is_notification: bool = False
    least_severity: Severity | None = None
    language: str | None = None


class ListenerView(View, frozen=True):
    """A webhook, a notification or a Python hook, and its position. No secret is included."""

    listener_id: int
    listener: str
    webhook_id: int | None
    notification_id: int | None
    is_active: bool
    off_because: Message | None
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
    least_severity: Severity | None
    """Of alerts, only these and more urgent ones; None: all."""
    language: str | None
    """Of messages for people."""
    waiting_count: int = 0
    """How many pending events it wants."""


class Webhooks(StorePart):
    """Webhooks and notifications: both receive events, one signed for programs, the other as messages for people.
    `is_notification` says which of the two is meant."""

    @writes
    def add(self, tx: Transaction, webhook: SealedWebhook, now: datetime) -> int:
        """Add a webhook or notification (its id is ignored); it begins with events after it. Raises Conflict."""
        word = _word(webhook.is_notification)
        if row := tx.one("SELECT is_notification FROM webhooks WHERE name = ?", webhook.name):
            taken_by = "there is already a {listener} named {name!r}"
            raise Conflict(taken_by, "remove it first", listener=_word(row[0]), name=webhook.name)
        sql = """
            INSERT INTO webhooks (name, url, events, key_id, sealed, created_at, is_notification, least_severity,
                                  language)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """
        webhook_id = tx.number(
            sql,
            webhook.name,
            webhook.url,
            to_json(list(webhook.events)),
            webhook.key_id,
            webhook.sealed,
            micros(now),
            webhook.is_notification,
            webhook.least_severity,
            webhook.language,
        )
        _begin(tx, f"{word} {webhook.name}", webhook_id)
        return webhook_id

    def sealed(self, webhook_id: int) -> SealedWebhook:
        sql = """
            SELECT id, name, url, events, key_id, sealed, is_notification, least_severity, language
              FROM webhooks WHERE id = ?
        """
        webhook = self._record(SealedWebhook, sql, webhook_id)
        if webhook is None:
            raise _missing(f"{webhook_id}", is_notification=False)
        return webhook

    def id_of(self, name: str, *, is_notification: bool = False) -> int:
        row = self._one("SELECT id FROM webhooks WHERE name = ? AND is_notification = ?", name, is_notification)
        if row is None:
            raise _missing(repr(name), is_notification=is_notification)
        return int(row[0])

    @writes
    def remove(self, tx: Transaction, webhook_id: int, now: datetime, *, is_notification: bool = False) -> None:
        sql = """
            SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
             WHERE w.id = ? AND w.is_notification = ?
        """
        row = tx.one(sql, webhook_id, is_notification)
        if row is None:
            raise _missing(f"{webhook_id}", is_notification=is_notification)
        alerts.close(tx, f"listener {row[0]} failing", micros(now))
        tx.run("DELETE FROM deliveries WHERE id = ?", row[0])
        tx.run("DELETE FROM webhooks WHERE id = ?", webhook_id)
        # A process that is delivering to it at this moment finds the lease gone, and stops.
        tx.run("DELETE FROM leases WHERE resource = ? AND resource_id = ?", RESOURCE, row[0])


class Deliveries(StorePart):
    @reads
    def page(self, tx: Transaction) -> list[ListenerView]:
        """Returns all listeners."""
        newest = head(tx)
        listeners = tx.records(
            ListenerView,
            """
            SELECT d.id AS listener_id, d.listener, d.is_active, d.off_because, d.position,
                   CASE WHEN w.is_notification THEN NULL ELSE w.id END AS webhook_id,
                   CASE WHEN w.is_notification THEN w.id END AS notification_id,
                   d.next_attempt_at, d.failures_in_a_row, d.failing_since, d.last_error, d.last_delivered_at,
                   d.delivered_count, d.given_up_count, w.name, w.url, w.created_at,
                   coalesce(w.events, '[]') AS events, w.least_severity, w.language
              FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook_id ORDER BY d.id
            """,
        )
        return [listener.replace(waiting_count=_waiting(tx, listener, newest)) for listener in listeners]

    def of_webhook(self, webhook_id: int, *, is_notification: bool = False) -> ListenerView:
        for listener in self.page():
            if webhook_id == (listener.notification_id if is_notification else listener.webhook_id):
                return listener
        raise _missing(f"{webhook_id}", is_notification=is_notification)

    def know_hooks(self, names: Sequence[str]) -> None:
        """Keep a row for each installed Python hook. One that was uninstalled keeps its position, switched off."""
        listeners = {f"hook {name}" for name in names}

        def query(tx: Transaction) -> dict[str, bool]:
            return dict(tx.all("SELECT listener, is_active FROM deliveries WHERE webhook_id IS NULL"))

        def change(tx: Transaction) -> None:
            stored = query(tx)
            for name in sorted(listeners - stored.keys()):
                _begin(tx, name, None)
            for name in sorted(stored.keys() & listeners):
                _switch(tx, "listener = ? AND off_because IS NOT NULL", name, None)
            for name in sorted(stored.keys() - listeners):
                _switch(tx, "listener = ?", name, message("delivery.not_installed"))

        stored = self._db.read(query)
        if {listener for listener, is_active in stored.items() if is_active} != listeners:
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
    def delivered(
        self,
        tx: Transaction,
        lease: Lease,
        delivery: Delivery,
        event_id: int,
        now: datetime,
        *,
        count: int = 1,
        next_attempt_at: datetime | None = None,
    ) -> Delivery:
        """Record that events arrived, the last of them this one: earlier errors are cleared. `next_attempt_at`: nothing
        is sent to the listener before."""
        leases.check(tx, lease)
        sql = """
            UPDATE deliveries SET position = ?, delivered_count = delivered_count + ?, last_delivered_at = ?,
                   failures_in_a_row = 0, failing_since = NULL, last_error = NULL, next_attempt_at = ?
             WHERE id = ?
        """
        not_before = None if next_attempt_at is None else micros(next_attempt_at)
        tx.run(sql, event_id, count, micros(now), not_before, delivery.id)
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
                alerts.raise_alert(tx, AlertRequest(delivery.alert_subject, alert, Severity.P2), micros(now))

        self._db.write(change)
        return delivery.replace(failures_in_a_row=delivery.failures_in_a_row + 1)

    @writes
    def switch_off(
        self, tx: Transaction, delivery_id: int, because: Message, now: datetime, *, alert: str | None = None
    ) -> None:
        _switch(tx, "id = ?", delivery_id, because)
        if alert is not None:
            alerts.raise_alert(tx, AlertRequest(f"listener {delivery_id} failing", alert, Severity.P2), micros(now))
        else:
            alerts.close(tx, f"listener {delivery_id} failing", micros(now))

    def switch(self, webhook_id: int, now: datetime, *, is_on: bool, is_notification: bool = False) -> ListenerView:
        """Pause or resume a webhook or notification, as a person asks; returns its new state."""
        listener_id = self.of_webhook(webhook_id, is_notification=is_notification).listener_id
        if is_on:
            self.switch_on(listener_id, now)
        else:
            self.switch_off(listener_id, message("paused_by_user"), now)
        return self.of_webhook(webhook_id, is_notification=is_notification)

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


def _switch(tx: Transaction, where: str, which: Any, because: Message | None) -> None:
    """Switches off for that reason, or on again with errors reset."""
    sql = f"""
        UPDATE deliveries SET is_active = ?, off_because = ?, failures_in_a_row = 0, failing_since = NULL,
               next_attempt_at = NULL, last_error = CASE WHEN ? THEN NULL ELSE last_error END
         WHERE {where}
    """
    tx.run(sql, because is None, None if because is None else encode(because), because is None, which)


def _waiting(tx: Transaction, listener: ListenerView, newest: int) -> int:
    """Returns how many pending events it wants."""
    if listener.least_severity is not None:
        return _waiting_alerts(tx, listener, newest)
    named = f"AND event IN ({', '.join('?' * len(listener.events))})" if listener.events else ""
    return tx.number(
        f"SELECT count(*) FROM outbox WHERE id > ? AND id <= ? AND event <> '{Event.FORGOTTEN}' {named}",
        listener.position,
        newest,
        *listener.events,
    )


def _waiting_alerts(tx: Transaction, listener: ListenerView, newest: int) -> int:
    """The same, if the urgency of alerts matters: it is inside the body, and alerts are few."""
    others = listener.replace(
        least_severity=None, events=tuple(event for event in listener.events if not event.startswith("alert."))
    )
    sql = "SELECT event, body FROM outbox WHERE id > ? AND id <= ? AND event IN ('alert.opened', 'alert.closed')"
    alerts_waiting = [
        body
        for event, body in tx.all(sql, listener.position, newest)
        if event in listener.events and decode(body)["severity"] <= listener.least_severity
    ]
    return len(alerts_waiting) + (_waiting(tx, others, newest) if others.events else 0)


def _word(is_notification: bool) -> str:
    return "notification" if is_notification else "webhook"


def _missing(which: str, *, is_notification: bool) -> NotFound:
    if is_notification:
        return NotFound("there is no notification {which}", "`catchment notifications list` shows them", which=which)
    return NotFound("there is no webhook {which}", "`catchment webhooks list` shows them", which=which)
