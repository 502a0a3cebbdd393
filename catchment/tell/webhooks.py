"""Webhooks: an address that gets events by POST, signed. Its secrets are sealed, and opened only to be used."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from catchment.errors import Gone, InvalidInput, PlatformError, Refused
from catchment.fetch import Fetch
from catchment.fetch.identity import dressed
from catchment.logs import know_secret
from catchment.model import Answer, Budget, Event, Record, Refusal, Request
from catchment.store.deliveries import SealedWebhook, Webhooks
from catchment.tell import signing
from catchment.vault import Box, Sealed, Secret, strip_url

EVENTS = (
    "items.collected",
    "items.ready",
    "source.failing",
    "source.recovered",
    "alert.opened",
    "alert.closed",
    "watch.matched",
)
"""All that there are."""
TEST_EVENT = "webhook.test"
_LONGEST_NAME = 100
_SHORTEST_SECRET = 16
_MOST_CHARACTERS = 1_000


class Locked(Record, frozen=True, omit_defaults=True):
    """What is sealed of a webhook."""

    signing: str
    of_address: Secret | None = None
    """User, password or token that stood in the address."""
    address: str | None = None
    """The rest of it, where its path leads somewhere: who knows that of a chat service may speak there."""

    def __repr__(self) -> str:
        return "Locked(…)"


class Receiver:
    """What fetching needs to know of whoever receives: nothing but that its answer is not a platform's."""

    NAME = "webhooks"
    HOSTS: tuple[str, ...] = ()
    BUDGET: Budget | None = None

    def refusal(self, answer: Answer, request: Request) -> Refusal | None:
        return None


RECEIVER = Receiver()


class Webhook:
    """One webhook, ready to be told."""

    def __init__(self, sealed: SealedWebhook, box: Box, fetch: Fetch, now: Callable[[], datetime]) -> None:
        self._sealed, self._fetch, self._now = sealed, fetch, now
        self._locked = msgspec.json.decode(box.open(Sealed(sealed.key_id, sealed.sealed.decode())), type=Locked)
        _know(self._locked)

    def wants(self, event: Event) -> bool:
        return not self._sealed.events or event.name in self._sealed.events

    def take(self, event: Event, attempt: int) -> None:
        """Send it. Raises what happened, if it was not taken; Gone, if it never will be."""
        body = signing.body_of(event)
        headers = signing.headers(event, body, self._locked.signing, attempt, self._now())
        address = self._locked.address or self._sealed.url
        request = Request(address, "POST", headers=headers, body=body, is_keepable=False)
        if self._locked.of_address is not None:
            request = dressed(request, self._locked.of_address)
        try:
            status = self._fetch(request, RECEIVER, subject=f"webhook {self._sealed.name}", attempts=[]).status
        except PlatformError as error:
            # An answer in part is odd, but it was taken.
            if error.status != 206:
                raise
        else:
            if not 200 <= status < 300:
                raise Refused(
                    f"webhook {self._sealed.name}: the answer is {status}", "only 2xx is a yes", status=status
                )


def add(
    webhooks: Webhooks,
    box: Box,
    name: str,
    url: str,
    now: datetime,
    *,
    events: Sequence[str] = (),
    secret: str | None = None,
) -> tuple[int, str]:
    """Tell this address from now on; gives the webhook's number, and the secret, which nobody can see again."""
    _check(name, url, events)
    secret = new_secret() if secret is None else secret
    if not _SHORTEST_SECRET <= len(secret) <= _MOST_CHARACTERS or not secret.isprintable():
        raise InvalidInput(
            f"a secret has {_SHORTEST_SECRET} to {_MOST_CHARACTERS} characters, all on one line",
            "give none, and one is made",
            "secret",
        )
    address, of_address = strip_url(url)
    shown = _shown(address)
    locked = Locked(secret, of_address, None if shown == address else address)
    _know(locked)
    sealed = box.seal(msgspec.json.encode(locked).decode())
    chosen = tuple(dict.fromkeys(events))
    return webhooks.add(name, shown, chosen, sealed.key_id, sealed.token.encode(), now), secret


def send_test(webhook: Webhook, now: datetime) -> None:
    """Send something harmless at once, past the outbox. Raises what went wrong."""
    webhook.take(Event(0, TEST_EVENT, now, {"message": "this is a test"}), 1)


def is_gone(error: Exception) -> bool:
    """Whether the receiver says that it will never take anything again."""
    return isinstance(error, Gone) and error.status == 410


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def _check(name: str, url: str, events: Sequence[str]) -> None:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInput(f"a webhook needs a name of at most {_LONGEST_NAME} characters", field="name")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not url.isprintable() or " " in url:
        raise InvalidInput("this is no address", "it begins with https:// or http://", "url")
    unknown = next((one for one in events if one not in EVENTS), None)
    if unknown is not None:
        raise InvalidInput(f"there is no event {unknown!r}", f"one of {', '.join(EVENTS)}", "events")


def _shown(address: str) -> str:
    """What may be seen of it: whom it belongs to."""
    parts = urlsplit(address)
    return address if parts.path in ("", "/") and not parts.query else f"{parts.scheme}://{parts.netloc}/…"


def _know(locked: Locked) -> None:
    """From here on, no line shows them."""
    path = urlsplit(locked.address).path if locked.address else ""
    for value in (locked.signing, *(locked.of_address.values() if locked.of_address else ())):
        know_secret(value)
    if len(path) >= _SHORTEST_SECRET:
        know_secret(path)
