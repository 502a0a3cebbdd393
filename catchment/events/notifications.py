"""Notifications: events as short messages for people, through Apprise. A burst of events is one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.credentials.cipher import Cipher, Sealed
from catchment.errors import InvalidInput
from catchment.events.webhooks import TEST_EVENT, checked_events, checked_name
from catchment.fetch.messenger import ChatMessage, Messenger
from catchment.logs import redact
from catchment.messages import Message, Translator
from catchment.model import Event, Severity
from catchment.store.delivery.webhooks import SealedWebhook, Webhooks
from catchment.text.markup import bare_link, without_markup

LANGUAGES = ("en", "zh")
DEFAULT_EVENTS = ("alert.opened", "alert.closed", "watch.matched", "task.finished")
"""What people are notified of, unless they choose. The other events are for programs."""
PAUSE = timedelta(seconds=30)
"""Between two messages to the same receiver: the next one contains all events in between."""
_LONGEST_ADDRESS = 2_000
_LONGEST_LINE = 600
_SHORTEST_LINE = 80
"""Lines are cut to fit more events into one message, but not below this."""

AlertMessage = Callable[[int], Message | None]


class Notification:
    """One receiver of messages, ready to send."""

    pause = PAUSE

    def __init__(
        self, sealed: SealedWebhook, cipher: Cipher, alert_message: AlertMessage, *, allows_private: bool
    ) -> None:
        """`alert_message`: the message of an alert, by its id; None if it is gone."""
        self._sealed, self._alert_message = sealed, alert_message
        address = cipher.open(Sealed(sealed.key_id, sealed.sealed.decode()))
        self._messenger = Messenger(address, allows_private=allows_private)
        self._translator = Translator(sealed.language or "en")

    def wants(self, event: Event) -> bool:
        if event.name not in self._sealed.events:
            return False
        severity, least = event.data.get("severity"), self._sealed.least_severity
        # P0 is the most urgent.
        return severity is None or least is None or severity <= least

    def take(self, events: Sequence[Event], attempt: int) -> int:
        """Send a message about the first events, as many as fit; returns how many."""
        message, count = composed([self._line(event) for event in events], self._messenger.longest_body, self._title)
        self._messenger.send(message)
        return count

    def _title(self, count: int) -> str:
        return self._translator.sentence("notification.title", {"count": count})

    def _line(self, event: Event) -> str:
        if self._translator.language != "en" and (alert_id := event.data.get("alert_id")) is not None:
            message = self._alert_message(alert_id)
            event = event.replace(data={**event.data, "message": self._translator.message(message or "")})
        return line_of(event, self._translator)


def line_of(event: Event, translator: Translator) -> str:
    """Returns an event in one line, without secrets and without markup."""
    data = {name: without_markup(redact(str(value))) for name, value in event.data.items() if value is not None}
    item: dict[str, Any] = event.data.get("item") or {}
    if item:
        title = item.get("title") or item.get("author") or ""
        data["title"] = without_markup(redact(str(title)))[:_LONGEST_LINE]
    sentence = translator.sentence(f"notification.{event.name}", data)
    return f"{sentence} {bare_link(item.get('url'))}".strip()


def composed(lines: Sequence[str], limit: int, title: Callable[[int], str]) -> tuple[ChatMessage, int]:
    """Returns a message of at most `limit` characters with the first of these lines, and how many are in it. Lines are
    cut if that makes room for more of them."""
    room = max(limit - len(title(len(lines))) - 1, 1)
    longest = min(max(room // len(lines) - 1, _SHORTEST_LINE), _LONGEST_LINE, room)
    whole = [line if len(line) <= _LONGEST_LINE else _cut(line, _LONGEST_LINE) for line in lines]
    if sum(len(line) + 1 for line in whole) > room:
        whole = [_cut(line, longest) for line in lines]
    count, size = 0, 0
    while count < len(whole) and (count == 0 or size + len(whole[count]) + 1 <= room):
        size += len(whole[count]) + 1
        count += 1
    return ChatMessage(title(count), "\n".join(whole[:count])), count


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else f"{line[: length - 1]}…"


def add(
    webhooks: Webhooks,
    cipher: Cipher,
    name: str,
    address: str,
    now: datetime,
    *,
    events: Sequence[str] = (),
    least_severity: Severity | None = None,
    language: str = "en",
) -> int:
    """Add a notification; returns its id. The whole address is a secret. Raises InvalidInput."""
    checked_name(name)
    if language not in LANGUAGES:
        raise InvalidInput(
            "there is no language {language!r}",
            "one of {languages}",
            "language",
            language=language,
            languages=", ".join(LANGUAGES),
        )
    if len(address) > _LONGEST_ADDRESS or not address.isprintable():
        raise InvalidInput(
            "an address has at most {longest} printable characters", field="url", longest=_LONGEST_ADDRESS
        )
    shown = Messenger(address).shown
    sealed = cipher.seal(address)
    chosen = checked_events(events) or DEFAULT_EVENTS
    return webhooks.add(
        SealedWebhook(0, name, shown, chosen, sealed.key_id, sealed.token.encode(), True, least_severity, language),
        now,
    )


def send_test(notification: Notification, now: datetime) -> None:
    """Send a test message at once, bypassing the outbox. Raises the error that occurred."""
    notification.take([Event(0, TEST_EVENT, now, {})], 1)
