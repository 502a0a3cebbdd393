"""Event delivery to webhooks, notifications and hooks: at least once, in order for each listener, each independent of
the others.

Each listener with pending events gets a thread of its own and a lease. One that fails is retried after a growing wait;
one that hangs keeps its lease and its thread, and delays no other. The position moves only after the event was taken: a
process that is killed in between sends that one event again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from itertools import takewhile
from threading import Event as Flag
from threading import Lock, Thread
from typing import Protocol

from catchment import logs
from catchment.clock import Clock
from catchment.errors import CatchmentError, HookFailed, PlatformError, Stopped, StoreError
from catchment.events.webhooks import as_document, is_gone
from catchment.messages import MessageParam, message
from catchment.model import Event, Lease
from catchment.store import Presence, Store
from catchment.store.delivery.webhooks import Delivery

FIRST_WAIT = timedelta(seconds=15)
LONGEST_WAIT = timedelta(hours=1)
ALARMING_FAILURES = 5
"""In a row: after about four minutes."""


def next_attempt(failures: int, now: datetime, asked_for: datetime | None) -> datetime:
    """Returns when to retry after this many failures in a row; never earlier than the receiver asked for."""
    # Capped before it is computed: a shift by ten thousand would overflow.
    wait = min(FIRST_WAIT * (1 << min(failures - 1, 20)), LONGEST_WAIT)
    return max(now + wait, asked_for or now)


log = logs.logger(__name__)

BATCH = 100
MOST_EVENTS = 1_000
"""Per listener and turn: then others may use its thread."""
MOST_LISTENERS = 16
"""At once; listeners furthest behind come first."""
ROUND_SECONDS = 30.0
"""How long a run waits for its listeners; slower ones continue beside the next run."""
LEAVING_SECONDS = 2.0


class Listener(Protocol):
    @property
    def pause(self) -> timedelta:
        """The least time between two deliveries; events that happen meanwhile are delivered together."""

    def wants(self, event: Event) -> bool: ...

    def take(self, events: Sequence[Event], attempt: int) -> int:
        """Take the first of these events, or the first few; returns how many. Raises CatchmentError if it took none."""


class Deliverer:
    """Delivers events to all listeners of a deployment. One per process."""

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
        """`webhook` opens the webhook or notification with that id; `hooks` are the installed ones, by name; `patience`
        is the age at which an undelivered event is dropped."""
        self._store, self._presence, self._clock, self._stop = store, presence, clock, stop
        self._webhook, self._hooks, self._patience = webhook, hooks, patience
        self._threads: dict[int, Thread] = {}
        self._lock = Lock()

    def deliver_pending(self, seconds: float = ROUND_SECONDS) -> None:
        """Serve all listeners with pending events, and wait for them up to `seconds`."""
        self._store.deliveries.know_hooks(sorted(self._hooks))
        free = max(0, MOST_LISTENERS - len(self._busy()))
        due = self._store.deliveries.due(self._clock.now(), MOST_LISTENERS + len(self._threads))
        threads = {
            # Daemon threads: one that hangs must not keep the process from exiting.
            delivery.id: Thread(target=self._serve, args=(delivery,), name=delivery.listener, daemon=True)
            for delivery in [delivery for delivery in due if delivery.id not in self._threads][:free]
        }
        with self._lock:
            self._threads |= threads
        for thread in threads.values():
            thread.start()
        _join(threads.values(), seconds)
        if busy := self._busy():
            log.warning("listeners still busy", count=len(busy))

    def close(self) -> None:
        """Stop waiting for busy listeners after a moment; their leases end with this process."""
        _join(self._busy(), LEAVING_SECONDS)

    def _busy(self) -> list[Thread]:
        with self._lock:
            self._threads = {delivery_id: thread for delivery_id, thread in self._threads.items() if thread.is_alive()}
            return list(self._threads.values())

    def _serve(self, delivery: Delivery) -> None:
        try:
            claimed = self._store.deliveries.claim(delivery, self._presence.owner_id, self._clock.now())
            if claimed is None:
                return
            lease, delivery = claimed
            try:
                self._tell(lease, delivery)
            finally:
                try:
                    self._store.deliveries.release(lease)
                except StoreError:
                    # Released once the database is back.
                    self._presence.release_later(lease)
                    raise
        except CatchmentError as error:
            # The database is unavailable, or another process holds the lease now: the next run retries.
            log.error("events could not be delivered", listener=delivery.listener, error=str(error))

    def _tell(self, lease: Lease, delivery: Delivery) -> None:
        try:
            listener = (
                self._hooks[delivery.listener.removeprefix("hook ")]
                if delivery.webhook_id is None
                else self._webhook(delivery.webhook_id)
            )
        except CatchmentError as error:
            # For example, its secret cannot be decrypted.
            self._note_failure(lease, delivery, error)
            return
        count = 0
        while count < MOST_EVENTS and not self._stop.is_set():
            events, missing = self._store.outbox.after(delivery.position, BATCH)
            if missing:
                delivery = self._pass_over(lease, delivery, delivery.position + missing, missing)
            if not events:
                return
            if listener.pause:
                events = self._with_following(events)
            reached = self._tell_each(lease, delivery, listener, events)
            if reached is None:
                return
            delivery, count = reached, count + len(events)

    def _with_following(self, events: list[Event]) -> list[Event]:
        """For a listener that takes many at once: most events may be none of its business."""
        while len(events) < MOST_EVENTS:
            following, missing = self._store.outbox.after(events[-1].id, BATCH)
            if missing or not following:
                break
            events = [*events, *following]
        return events

    def _tell_each(
        self, lease: Lease, delivery: Delivery, listener: Listener, events: Sequence[Event]
    ) -> Delivery | None:
        """Returns the delivery after these events; None: it stops here for now."""
        deliveries = self._store.deliveries
        pending, later = [event for event in events if _is_for(listener, event)], None
        while pending:
            if self._stop.is_set():
                return None
            try:
                count = listener.take(pending, delivery.failures_in_a_row + 1)
            except Stopped:
                return None
            except CatchmentError as error:
                self._not_taken(lease, delivery, listener, pending[0], error)
                return None
            last, pending, now = pending[count - 1], pending[count:], self._clock.now()
            later = now + listener.pause if listener.pause else None
            delivery = deliveries.delivered(lease, delivery, last.id, now, count=count, next_attempt_at=later)
            if later is not None and pending:
                return None
        if delivery.position < events[-1].id:
            delivery = deliveries.skip_to(lease, delivery, events[-1].id)
        return delivery if later is None else None

    def _not_taken(
        self, lease: Lease, delivery: Delivery, listener: Listener, event: Event, error: CatchmentError
    ) -> None:
        now = self._clock.now()
        if is_gone(error):
            because = message("delivery.gone")
            alert = message("delivery.off", name=delivery.listener, why=because)
            self._store.deliveries.switch_off(delivery.id, because, now, alert=alert)
            log.warning("a webhook was switched off", listener=delivery.listener, because=because)
            return
        given_up = 0
        # Everything that has waited too long is dropped at once, so that newer events need not wait for it.
        while event.created_at < now - self._patience:
            events, _ = self._store.outbox.after(delivery.position, BATCH)
            # A page that was answered earlier may be written later: a newer event among the old ones must not be given
            # up.
            old = list(takewhile(lambda event: event.created_at < now - self._patience, events))
            if not old:
                break
            count = sum(1 for event in old if _is_for(listener, event))
            delivery = self._pass_over(lease, delivery, old[-1].id, count)
            given_up += count
        self._note_failure(lease, delivery, error, given_up)

    def _pass_over(self, lease: Lease, delivery: Delivery, to: int, count: int) -> Delivery:
        if count:
            log.warning("events dropped", listener=delivery.listener, count=count)
        return self._store.deliveries.skip_to(lease, delivery, to, given_up=count)

    def _note_failure(self, lease: Lease, delivery: Delivery, error: CatchmentError, given_up: int = 0) -> None:
        now, why = self._clock.now(), logs.redact(error.message)
        failures = delivery.failures_in_a_row + 1
        asked_for = error.retry_at if isinstance(error, PlatformError) else None
        alert, facts = None, dict[str, MessageParam](name=delivery.listener, failures=failures, why=why)
        if given_up:
            alert = message("delivery.given_up", **facts, lost=given_up)
        elif failures >= ALARMING_FAILURES:
            alert = message("delivery.failing", **facts)
        self._store.deliveries.failed(lease, delivery, why, now, next_attempt(failures, now, asked_for), alert=alert)
        log.warning("event not accepted", listener=delivery.listener, failures=failures, error=why)


def _join(threads: Iterable[Thread], seconds: float) -> None:
    give_up_at = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, give_up_at - time.monotonic()))


def _is_for(listener: Listener, event: Event) -> bool:
    return not event.is_forgotten and listener.wants(event)


HOOK_GROUP = "catchment.events"


class Hook:
    """A callable of an installed package that receives events, found by the entry point `catchment.events`.

        [project.entry-points."catchment.events"]
        digest = "my_package:on_event"

        def on_event(event: dict) -> None: ...

    It gets the same event as a webhook, as a dict. Its return value is ignored; an exception is recorded, and the hook
    gets the same event again later. It is loaded when there is an event to deliver: one that cannot be imported fails
    and is retried.
    """

    pause = timedelta(0)

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    def wants(self, event: Event) -> bool:
        return True

    def take(self, events: Sequence[Event], attempt: int) -> int:
        try:
            self._entry.load()(as_document(events[0]))
        except (Exception, SystemExit) as error:
            # Third-party code: nothing it raises may stop the delivery.
            raise HookFailed(
                "hook {hook} raised {error_type}: {why}",
                hook=self._entry.name,
                error_type=type(error).__name__,
                why=str(error),
            ) from error
        return 1


def installed_hooks() -> dict[str, Hook]:
    return {entry.name: Hook(entry) for entry in entry_points(group=HOOK_GROUP)}
