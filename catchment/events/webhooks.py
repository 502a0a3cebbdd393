"""Webhooks: URLs that receive signed events by POST. Their secrets are stored encrypted, and decrypted only for use."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from catchment.credentials.cipher import Cipher, Sealed
from catchment.credentials.secret import Secret, strip_url
from catchment.decoders import json_decoder
from catchment.errors import Gone, InvalidInput, PlatformError, Refused
from catchment.fetch.auth import dressed
from catchment.fetch.client import Fetch
from catchment.logs import know_secret
from catchment.model import Answer, Budget, Event, Record, Refusal, Request
from catchment.store.delivery.webhooks import SealedWebhook, Webhooks


def as_document(event: Event) -> dict[str, Any]:
    """Returns an event as listeners receive it."""
    return {"id": event.id, "event": event.name, "created_at": event.created_at.isoformat(), "data": event.data}


def signed_headers(event: Event, body: bytes, secret: str, attempt: int, now: datetime) -> dict[str, str]:
    """Returns the headers of a delivery.

    The signature is HMAC-SHA256, with the webhook's secret as the key, over the timestamp as in its header, a full
    stop, and the body byte by byte; in hexadecimal digits, after "v1=". The timestamp is included, so that an old
    message cannot be replayed with a new time.
    """
    timestamp = str(int(now.timestamp()))
    signature = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-Catchment-Event": event.name,
        "X-Catchment-Delivery": f"{event.id}-{attempt}",
        "X-Catchment-Timestamp": timestamp,
        "X-Catchment-Signature": f"v1={signature}",
    }


EVENTS = (
    "items.collected",
    "items.ready",
    "source.failing",
    "source.recovered",
    "alert.opened",
    "alert.closed",
    "watch.matched",
    "task.finished",
)
"""All event names."""
TEST_EVENT = "webhook.test"
_LONGEST_NAME = 100
_SHORTEST_SECRET = 16
_MOST_CHARACTERS = 1_000


class SecretPart(Record, frozen=True, omit_defaults=True):
    """The encrypted part of a webhook."""

    signing: str
    of_address: Secret | None = None
    """User, password or token that was in the URL."""
    address: str | None = None
    """The rest of the URL, if it has a path or query: with a chat service, anyone who knows the path may post there."""

    def __repr__(self) -> str:
        return "Locked(…)"


class Receiver:
    """Stands in for a platform in `Fetch`: no hosts, no budget, and no rules for refusals."""

    NAME = "webhooks"
    HOSTS: tuple[str, ...] = ()
    BUDGET: Budget | None = None

    def refusal(self, answer: Answer, request: Request) -> Refusal | None:
        return None


RECEIVER = Receiver()


class Webhook:
    """One webhook, ready to send events."""

    pause = timedelta(0)

    def __init__(self, sealed: SealedWebhook, box: Cipher, fetch: Fetch, now: Callable[[], datetime]) -> None:
        self._sealed, self._fetch, self._now = sealed, fetch, now
        self._locked = json_decoder(SecretPart).decode(box.open(Sealed(sealed.key_id, sealed.sealed.decode())))
        _know(self._locked)

    def wants(self, event: Event) -> bool:
        return not self._sealed.events or event.name in self._sealed.events

    def take(self, events: Sequence[Event], attempt: int) -> int:
        """Send the first event; returns 1. Raises the error if it was not taken; Gone, if it never will be."""
        event = events[0]
        body = msgspec.json.encode(as_document(event))
        headers = signed_headers(event, body, self._locked.signing, attempt, self._now())
        address = self._locked.address or self._sealed.url
        request = Request(address, "POST", headers=headers, body=body, is_keepable=False)
        if self._locked.of_address is not None:
            request = dressed(request, self._locked.of_address)
        try:
            status = self._fetch(request, RECEIVER, subject=f"webhook {self._sealed.name}", attempts=[]).status
        except PlatformError as error:
            # A partial answer (206) is odd, but the event was taken.
            if error.status != 206:
                raise
        else:
            if not 200 <= status < 300:
                raise Refused(
                    "webhook {name}: the receiver answered {answer_status}",
                    "only 2xx counts as accepted",
                    status=status,
                    name=self._sealed.name,
                    answer_status=status,
                )
        return 1


def add(
    webhooks: Webhooks,
    box: Cipher,
    name: str,
    url: str,
    now: datetime,
    *,
    events: Sequence[str] = (),
    secret: str | None = None,
) -> tuple[int, str]:
    """Add a webhook; returns its id and the secret, which cannot be shown again. Raises InvalidInput."""
    checked_name(name)
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not url.isprintable() or " " in url:
        raise InvalidInput("this is not an address", "an address begins with https:// or http://", "url")
    chosen = checked_events(events)
    secret = secrets.token_urlsafe(32) if secret is None else secret
    if not _SHORTEST_SECRET <= len(secret) <= _MOST_CHARACTERS or not secret.isprintable():
        raise InvalidInput(
            "a secret has {shortest} to {longest} characters, on one line",
            "leave it out to have one generated",
            "secret",
            shortest=_SHORTEST_SECRET,
            longest=_MOST_CHARACTERS,
        )
    address, of_address = strip_url(url)
    parts = urlsplit(address)
    # Only scheme and host may be shown.
    shown = address if parts.path in ("", "/") and not parts.query else f"{parts.scheme}://{parts.netloc}/…"
    locked = SecretPart(secret, of_address, None if shown == address else address)
    _know(locked)
    sealed = box.seal(msgspec.json.encode(locked).decode())
    return webhooks.add(SealedWebhook(0, name, shown, chosen, sealed.key_id, sealed.token.encode()), now), secret


def checked_name(name: str) -> None:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        what = "a webhook or notification needs a name of at most {longest} characters"
        raise InvalidInput(what, field="name", longest=_LONGEST_NAME)


def checked_events(events: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of events, each once. Raises InvalidInput if there is no such event."""
    for event in events:
        if event not in EVENTS:
            raise InvalidInput(
                "there is no event {event!r}", "one of {events}", "events", event=event, events=", ".join(EVENTS)
            )
    return tuple(dict.fromkeys(events))


def send_test(webhook: Webhook, now: datetime) -> None:
    """Send a harmless test event at once, bypassing the outbox. Raises the error that occurred."""
    webhook.take([Event(0, TEST_EVENT, now, {"message": "this is a test"})], 1)


def is_gone(error: Exception) -> bool:
    """Whether the receiver says that it will never take anything again."""
    return isinstance(error, Gone) and error.status == 410


def _know(locked: SecretPart) -> None:
    """Register the secrets with the logs, so that they are redacted."""
    for value in (locked.signing, *(locked.of_address.values() if locked.of_address else ())):
        know_secret(value)
    if locked.address and len(path := urlsplit(locked.address).path) >= _SHORTEST_SECRET:
        know_secret(path)
