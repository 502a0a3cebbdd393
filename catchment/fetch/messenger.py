"""Messages for people through Apprise: chat services, mail and the like. Apprise is an extra, imported when used.

Apprise opens its own connections, so the address guard judges the host before them instead of the socket itself, and
redirects are not followed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from catchment import installation, messages
from catchment.errors import AddressRefused, InvalidInput, NetworkError, Refused
from catchment.fetch.address_guard import objection
from catchment.logs import know_secret
from catchment.text.printable import one_line

if TYPE_CHECKING:
    from apprise import Apprise

_LONGEST_ERROR = 200
_SHORTEST_TOKEN = 16
"""Shorter parts of an address are ordinary words: they would be hidden wherever they occur."""
_LONGEST_BODY = 20_000


class ChatMessage(NamedTuple):
    title: str
    body: str


Send = Callable[[ChatMessage], None]


class Messenger:
    """Sends messages to one Apprise address. Raises InvalidInput if the address is not valid."""

    def __init__(self, address: str, *, allows_private: bool = False) -> None:
        self._address, self._allows_private = address, allows_private
        self._apprise = _opened(address)
        for secret in self._secrets():
            know_secret(secret)

    @property
    def shown(self) -> str:
        """The address as it may be shown: any other part may be a token."""
        return f"{urlsplit(self._address).scheme}://…"

    @property
    def longest_body(self) -> int:
        """How many characters the service takes in one message."""
        return min(int(self._service.body_maxlen), _LONGEST_BODY)

    def send(self, message: ChatMessage) -> None:
        """Send the message as plain text. Raises PlatformError if the service did not take it."""
        from apprise import NotifyFormat

        self._check_host()
        with self._apprise.notify(message.body, title=message.title, body_format=NotifyFormat.TEXT) as result:
            if not result:
                reasons = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR", "CRITICAL")]
                why = one_line(" ".join(reasons))[:_LONGEST_ERROR]
                raise Refused(
                    "{service} did not accept the message: {why}",
                    "check the address, and whether the service works",
                    service=str(self._service.service_name),
                    why=why or messages.message("no reason given"),
                )

    @property
    def _service(self) -> Any:
        return self._apprise[0]

    @cached_property
    def _has_own_host(self) -> bool:
        """Whether the address names a host; with many services the same place holds a token."""
        return any("{host}" in template for template in self._service.templates)

    def _check_host(self) -> None:
        host = getattr(self._service, "smtp_host", None) or self._service.host
        if not host or not self._has_own_host:
            return
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NetworkError("{host} could not be found", "check its name, and the network", host=host) from error
        for *_, place in addresses:
            if why := objection(str(place[0]), self._allows_private):
                raise AddressRefused(
                    "{host} has a {range} address, which is not allowed",
                    "set CATCHMENT_ALLOW_PRIVATE_NETWORKS if it is in your own network",
                    host=host,
                    range=why,
                )

    def _secrets(self) -> list[str]:
        parts = urlsplit(self._address)
        values = [value for _, value in parse_qsl(parts.query, keep_blank_values=True)]
        if not self._has_own_host:
            values.append(parts.netloc.rpartition("@")[2])
        long = [value for value in (*parts.path.split("/"), parts.path, *values) if len(value) >= _SHORTEST_TOKEN]
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        return [unquote(value) for value in (self._address, password or user, *long) if value]


def _opened(address: str) -> Apprise:
    try:
        import apprise
    except ImportError as error:
        raise InvalidInput(
            "notifications need the package Apprise", "run `{command}`", command=installation.install_command("notify")
        ) from error
    # Own connections are checked before they are opened; a redirect would lead past that.
    asset = apprise.AppriseAsset(app_id="catchment", http_redirects=False, storage_mode="memory", secure_logging=True)
    opened = apprise.Apprise(asset=asset)
    # Its log lines may contain addresses: what matters comes with the result.
    apprise.logger.propagate = False
    try:
        is_known = opened.add(address)
    except (TypeError, ValueError, UnicodeError) as error:
        raise _no_address() from error
    if not is_known or len(opened) != 1:
        raise _no_address()
    return opened


def _no_address() -> InvalidInput:
    return InvalidInput(
        "this is not a single Apprise address", "for example discord://…, tgram://…, mailtos://… or json://…", "url"
    )
