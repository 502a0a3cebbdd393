"""Bringing events to their listeners: at least once, in order for each, none waiting for another.

Each listener that has something waiting gets a thread of its own and a lease. One that fails is left alone for a
growing while; one that hangs keeps its lease and its thread, and holds up nobody else. A position moves only after the
event was taken: whoever is killed in between sends that one event again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from threading import Event as Flag
from threading import Lock, Thread
from typing import Protocol

from catchment import logs
from catchment.clock import Clock
from catchment.errors import CatchmentError, PlatformError, Stopped, StoreError
from catchment.model import Event, Lease
from catchment.store import Presence, Store
from catchment.store.deliveries import Delivery
from catchment.tell.waits import ALARMING_FAILURES, next_attempt
from catchment.tell.webhooks import is_gone

log = logs.logger(__name__)

BATCH = 100
MOST_EVENTS = 1_000
"""Of one listener at a time: then others may have its thread."""
MOST_LISTENERS = 16
"""At once; who is furthest behind comes first."""
ROUND_SECONDS = 30.0
"""So long a round waits for its listeners; who takes longer goes on beside the next one."""
LEAVING_SECONDS = 2.0


class Listener(Protocol):
    def wants(self, event: Event) -> bool: ...

    def take(self, event: Event, attempt: int) -> None:
        """Raises CatchmentError if it was not taken."""


class Deliverer:
    """One for a process."""

    def __init__(
        self,
        store: Store,
        presence: Presence,
        clock: Clock,
        stop: Flag,
        *,
        webhook: Callable[[int], Listener],
        hooks: Mapping[str, Listener],
        patience: timedelta,
    ) -> None:
        """`webhook` opens the one of that number; `hooks` are those that are installed, by name; `patience` says how
        old an event may become before it is given up."""
        self._store, self._presence, self._clock, self._stop = store, presence, clock, stop
        self._webhook, self._hooks, self._patience = webhook, hooks, patience
        self._threads: dict[int, Thread] = {}
        self._lock = Lock()

    def round(self, seconds: float = ROUND_SECONDS) -> None:
        """Tell everyone who has something waiting, and wait for them a while."""
        self._store.deliveries.know_hooks(sorted(self._hooks))
        give_up_at = time.monotonic() + seconds
        for thread in self._started():
            thread.join(max(0.0, give_up_at - time.monotonic()))
        if busy := self._busy():
            log.warning("listeners have not come back yet", count=len(busy))

    def close(self) -> None:
        """Leave those who are still busy behind, after a moment: their lease ends with this process."""
        give_up_at = time.monotonic() + LEAVING_SECONDS
        for thread in self._busy():
            thread.join(max(0.0, give_up_at - time.monotonic()))

    def _busy(self) -> list[Thread]:
        with self._lock:
            self._threads = {number: one for number, one in self._threads.items() if one.is_alive()}
            return list(self._threads.values())

    def _started(self) -> list[Thread]:
        free = MOST_LISTENERS - len(self._busy())
        due = self._store.deliveries.due(self._clock.now(), MOST_LISTENERS + len(self._threads))
        begun = [one for one in due if one.id not in self._threads][: max(0, free)]
        threads = {
            # Daemons: one that never comes back must not keep the process from ending.
            one.id: Thread(target=self._serve, args=(one,), name=one.listener, daemon=True)
            for one in begun
        }
        with self._lock:
            self._threads |= threads
        for thread in threads.values():
            thread.start()
        return list(threads.values())

    def _serve(self, delivery: Delivery) -> None:
        try:
            claimed = self._store.deliveries.claim(delivery, self._presence.owner_id, self._clock.now())
            if claimed is not None:
                self._serve_claimed(*claimed)
        except CatchmentError as error:
            # The database is away, or somebody else has it now: the next round tries again.
            log.error("events could not be delivered", listener=delivery.listener, error=str(error))

    def _serve_claimed(self, lease: Lease, delivery: Delivery) -> None:
        try:
            self._tell(lease, delivery)
        finally:
            try:
                self._store.deliveries.release(lease)
            except StoreError:
                # Freed once the database is back.
                self._presence.owe(lease)
                raise

    def _tell(self, lease: Lease, delivery: Delivery) -> None:
        try:
            listener = self._listener(delivery)
        except CatchmentError as error:
            # The vault does not open it, say.
            self._note_failure(lease, delivery, error)
            return
        count = 0
        while count < MOST_EVENTS and not self._stop.is_set():
            events, missing = self._store.outbox.after(delivery.position, BATCH)
            if missing:
                delivery = self._pass_over(lease, delivery, delivery.position + missing, missing)
            if not events:
                return
            reached = self._tell_each(lease, delivery, listener, events)
            if reached is None:
                return
            delivery, count = reached, count + len(events)

    def _listener(self, delivery: Delivery) -> Listener:
        if delivery.webhook_id is not None:
            return self._webhook(delivery.webhook_id)
        return self._hooks[delivery.listener.removeprefix("hook ")]

    def _tell_each(
        self, lease: Lease, delivery: Delivery, listener: Listener, events: Sequence[Event]
    ) -> Delivery | None:
        """Where it is after these; None: it goes no further now."""
        deliveries = self._store.deliveries
        for event in events:
            if self._stop.is_set():
                return None
            if not _is_for(listener, event):
                continue
            try:
                listener.take(event, delivery.failures_in_a_row + 1)
            except Stopped:
                return None
            except CatchmentError as error:
                self._not_taken(lease, delivery, listener, event, error)
                return None
            delivery = deliveries.delivered(lease, delivery, event.id, self._clock.now())
        if delivery.position < events[-1].id:
            delivery = deliveries.passed(lease, delivery, events[-1].id)
        return delivery

    # ── when it is not taken ──────────────────────────────────────────────────────────────────────────────────────

    def _not_taken(
        self, lease: Lease, delivery: Delivery, listener: Listener, event: Event, error: CatchmentError
    ) -> None:
        now = self._clock.now()
        if is_gone(error):
            because = "the receiver answered 410: it wants no more"
            alert = f"{delivery.listener} is switched off: {because} — resume it, or remove it"
            self._store.deliveries.switch_off(delivery.id, because, now, alert=alert)
            log.warning("a webhook is switched off", listener=delivery.listener, because=because)
            return
        given_up = 0
        if event.created_at < now - self._patience:
            delivery, given_up = self._give_up(lease, delivery, listener, now - self._patience)
        self._note_failure(lease, delivery, error, given_up)

    def _give_up(self, lease: Lease, delivery: Delivery, listener: Listener, before: datetime) -> tuple[Delivery, int]:
        """Everything that has waited too long, at once: what is younger shall not wait for it any longer."""
        total = 0
        while True:
            events, _ = self._store.outbox.after(delivery.position, BATCH)
            # A page that was answered earlier may be written later: a young one among the old must not go with them.
            old = list(takewhile(lambda event: event.created_at < before, events))
            if not old:
                return delivery, total
            count = sum(1 for event in old if _is_for(listener, event))
            delivery = self._pass_over(lease, delivery, old[-1].id, count)
            total += count

    def _pass_over(self, lease: Lease, delivery: Delivery, to: int, count: int) -> Delivery:
        if count:
            log.warning("events are given up", listener=delivery.listener, count=count)
        return self._store.deliveries.passed(lease, delivery, to, given_up=count)

    def _note_failure(self, lease: Lease, delivery: Delivery, error: CatchmentError, given_up: int = 0) -> None:
        now, words = self._clock.now(), logs.redact(str(error))
        failures = delivery.failures_in_a_row + 1
        asked_for = error.retry_at if isinstance(error, PlatformError) else None
        alert = None
        if failures >= ALARMING_FAILURES or given_up:
            lost = f"; what was too old is given up (events: {given_up})" if given_up else ""
            alert = f"{delivery.listener} has not taken its events {failures} times in a row{lost}: {words}"
        self._store.deliveries.failed(lease, delivery, words, now, next_attempt(failures, now, asked_for), alert=alert)
        log.warning("an event was not taken", listener=delivery.listener, failures=failures, error=words)


def _is_for(listener: Listener, event: Event) -> bool:
    return not event.is_forgotten and listener.wants(event)
