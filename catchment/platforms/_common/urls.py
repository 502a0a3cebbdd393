"""Canonical form of a URL that a person typed."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import idna

from catchment.errors import InvalidInput
from catchment.lazy import pattern
from catchment.messages import Message, message, reason_of

LONGEST = 2000
PORTS = {"http": 80, "https": 443}
SCHEME = pattern(r"([a-z][a-z0-9+.-]*):(?!\d)(//)?", re.IGNORECASE)
FEED_SCHEME = pattern(r"feed:(//)?", re.IGNORECASE)
HOST = pattern(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.IGNORECASE)
HELPS = message("enter the address of a feed or of its site, such as https://example.com/feed.xml")
UNRESERVED = "%/:=&?~+!$,;'@()*[]|"


class _Wrong(ValueError):
    """What is wrong with a URL."""


def canonical(text: str, helps: Message | str = HELPS) -> str:
    """Returns the canonical form of a URL: a scheme, the host in lower-case ASCII, no default port, no fragment."""
    try:
        return _canonical(text.strip())
    except _Wrong as wrong:
        raise InvalidInput(reason_of(wrong), helps, field="target") from None


def _canonical(text: str) -> str:
    if not text:
        raise _Wrong(message("no address was given"))
    if len(text) > LONGEST:
        raise _Wrong(message("the address has {size} characters; the limit is {most}", size=len(text), most=LONGEST))
    if any(char.isspace() or not char.isprintable() for char in text):
        raise _Wrong(message("an address cannot contain spaces or control characters"))
    url = _with_scheme(text)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _Wrong(message("the host in the address is malformed")) from None
    user = parts.netloc.rpartition("@")[0] + "@" if "@" in parts.netloc else ""
    # Percent-encoded as the request will carry it; what is quoted already stays.
    path, query = (quote(part, safe=UNRESERVED) for part in (parts.path, parts.query))
    return urlunsplit((parts.scheme, user + _host(parts) + _port(parts), path or "/", query, ""))


def is_same_host(name: str, other: str) -> bool:
    """Whether what was given for one URL may be sent to the other: the same host and port, and not less safe."""
    try:
        ours, theirs = urlsplit(name), urlsplit(other)
        is_safe = theirs.scheme == "https" or theirs.scheme == ours.scheme == "http"
        return is_safe and ours.hostname == theirs.hostname and _port(ours) == _port(theirs)
    except ValueError:
        return False


def _with_scheme(text: str) -> str:
    """Adds the scheme. `feed:https://…`, `feed://host/…` and bare hosts are what people paste."""
    if prefix := FEED_SCHEME.match(text):
        text = text[prefix.end() :]
    scheme = SCHEME.match(text)
    if scheme is None:
        if "." not in text.split("/")[0] and not text.lower().startswith(("localhost", "[")):
            raise _Wrong(message("{text!r} is not an address", text=text))
        return f"https://{text}"
    if scheme[1].lower() not in PORTS or not scheme[2]:
        raise _Wrong(message("addresses that begin with {scheme}: are not supported", scheme=scheme[1].lower()))
    return text


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise _Wrong(message("the address has no host"))
    try:
        if ":" in host:
            return f"[{IPv6Address(host).compressed}]"
        ascii_host = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except ValueError:
        ascii_host = ""
    if not HOST.fullmatch(ascii_host):
        raise _Wrong(message("{host!r} is not a host", host=host))
    return ascii_host


def _port(parts: SplitResult) -> str:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise _Wrong(message("the port is a number between 1 and 65535"))
    return "" if port in (None, PORTS[parts.scheme]) else f":{port}"
