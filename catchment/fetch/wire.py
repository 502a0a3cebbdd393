"""One exchange with one server, by libcurl: no redirect is followed, nothing is tried again, no status is judged.

Options that never change are set once for each handle, the others only when they differ: setting them all would cost
a third of a request.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import certifi
import pycurl

from catchment.errors import (
    AddressRefused,
    NetworkError,
    PlatformError,
    Refused,
    Stopped,
    TimedOut,
    Unreadable,
)
from catchment.fetch.encodings import ACCEPTED, decoded, too_large
from catchment.fetch.guard import objection
from catchment.fetch.headers import read_headers
from catchment.fetch.settings import FetchSettings

_BUFFER_BYTES = 128 * 1024
_RESTING_SECONDS = 100
"""A connection unused for longer is not used again: most servers have closed it by then."""


class Sending(NamedTuple):
    """What goes out, in full: every secret is in it, so it is never kept or shown."""

    url: str
    host: str
    """For the words of an error: the URL may hold a secret."""
    method: str
    headers: list[bytes]
    body: bytes | None
    timeout_seconds: float
    max_bytes: int
    max_wire_bytes: int


class Came(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Transfer:
    """What libcurl tells while it works. It does not know the handle: a handle that is dropped is closed at once,
    without waiting for a collector of circles."""

    def __init__(self, allows_private: bool, is_cut: Callable[[], bool]) -> None:
        self._allows_private, self._is_cut = allows_private, is_cut
        self.chunks: list[bytes] = []
        self.lines: list[bytes] = []
        self.objections: list[str] = []
        self.max_wire_bytes = 0
        self.is_too_large = False
        self.is_sent_again = False
        self._is_sent = False
        self._sockets: list[socket.socket] = []

    def begin(self, max_wire_bytes: int) -> None:
        self.max_wire_bytes, self.is_too_large = max_wire_bytes, False
        self._is_sent = self.is_sent_again = False

    def end(self) -> None:
        # Now rather than at the next beginning: an idle thread must not hold on to a large body.
        self.chunks.clear()
        self.lines.clear()
        self.objections.clear()
        # libcurl works with a duplicate of what was handed to it.
        while self._sockets:
            self._sockets.pop().close()

    def open_socket(self, purpose: int, address: Any) -> Any:
        """The guard's place: this is the very address that is about to be connected to."""
        no = objection(address.addr[0], self._allows_private)
        if no:
            self.objections.append(no)
            return pycurl.SOCKET_BAD
        self._sockets.append(socket.socket(address.family, address.socktype, address.protocol))
        return self._sockets[-1]

    def send(self, *_addresses: Any) -> int:
        """The connection stands, the request is about to go out. If a connection that was used before dies with it,
        libcurl would send it once more, by itself: what nobody granted, and nobody would count, stays here."""
        self.is_sent_again, self._is_sent = self._is_sent, True
        return int(pycurl.PREREQFUNC_ABORT if self.is_sent_again else pycurl.PREREQFUNC_OK)

    def watch(self, announced: int, came: int, *_upload: int) -> bool:
        """Called all the time during a transfer; true ends it."""
        if came > self.max_wire_bytes or announced > self.max_wire_bytes:
            self.is_too_large = True
            return True
        return self._is_cut()


class Wire:
    """One curl handle with its connections. Belongs to one thread of one process."""

    def __init__(self, settings: FetchSettings, is_cut: Callable[[], bool], is_guarded: bool) -> None:
        self.pid = os.getpid()
        self._is_proxied = is_guarded and settings.proxy is not None
        self._allows_private = settings.allow_private_networks
        self._transfer = Transfer(settings.allow_private_networks, is_cut)
        self._curl = self._new_handle(settings, is_guarded)
        self._headers: list[bytes] = []
        self._timeout_ms = 0
        self._is_plain_get = True
        with _FORKING:
            _ALIVE.add(self)

    def _new_handle(self, settings: FetchSettings, is_guarded: bool) -> Any:
        curl = pycurl.Curl()
        proxy = settings.proxy if is_guarded else None
        for option, value in (
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.PROXY, proxy or ""),
            (pycurl.NOPROXY, ""),
            (pycurl.NOSIGNAL, 1),
            (pycurl.CAINFO, certifi.where()),
            (pycurl.USERAGENT, settings.user_agent),
            (pycurl.CONNECTTIMEOUT_MS, _milliseconds(settings.connect_timeout_seconds)),
            (pycurl.LOW_SPEED_LIMIT, settings.low_speed_bytes_per_second),
            (pycurl.LOW_SPEED_TIME, settings.low_speed_seconds),
            (pycurl.MAXAGE_CONN, _RESTING_SECONDS),
            (pycurl.BUFFERSIZE, _BUFFER_BYTES),
            (pycurl.WRITEFUNCTION, self._transfer.chunks.append),
            (pycurl.HEADERFUNCTION, self._transfer.lines.append),
            (pycurl.PREREQFUNCTION, self._transfer.send),
            (pycurl.XFERINFOFUNCTION, self._transfer.watch),
            (pycurl.NOPROGRESS, 0),
        ):
            curl.setopt(option, value)
        if is_guarded and proxy is None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._transfer.open_socket)
        return curl

    def exchange(self, sending: Sending) -> Came:
        """Send, and receive the whole answer. Raises what went wrong, about nobody in particular."""
        if self._is_proxied:
            self._check_target(sending)
        self._transfer.begin(sending.max_wire_bytes)
        self._prepare(sending)
        try:
            self._curl.perform()
            return self._came(sending.max_bytes)
        except pycurl.error as error:
            raise self._failure(error.args[0], error.args[1], sending) from None
        finally:
            self._transfer.end()

    def _came(self, max_bytes: int) -> Came:
        headers = read_headers(self._transfer.lines)
        body = decoded(b"".join(self._transfer.chunks), headers.get("content-encoding", ""), max_bytes)
        return Came(self._curl.getinfo(pycurl.RESPONSE_CODE), headers, body)

    def _prepare(self, sending: Sending) -> None:
        curl = self._curl
        curl.setopt(pycurl.URL, sending.url)
        timeout_ms = _milliseconds(sending.timeout_seconds)
        if timeout_ms != self._timeout_ms:
            curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self._timeout_ms = timeout_ms
        if sending.headers != self._headers:
            curl.setopt(pycurl.HTTPHEADER, sending.headers)
            self._headers = sending.headers
        is_plain_get = sending.method == "GET" and sending.body is None
        if not (is_plain_get and self._is_plain_get):
            self._set_method(sending.method, sending.body)
            self._is_plain_get = is_plain_get

    def _set_method(self, method: str, body: bytes | None) -> None:
        # Back to GET first: it undoes what an earlier method left behind.
        self._curl.setopt(pycurl.HTTPGET, 1)
        self._curl.unsetopt(pycurl.CUSTOMREQUEST)
        if method == "HEAD":
            self._curl.setopt(pycurl.NOBODY, 1)
        elif method != "GET" or body is not None:
            self._curl.setopt(pycurl.POSTFIELDS, body or b"")
            self._curl.setopt(pycurl.CUSTOMREQUEST, method)

    def _check_target(self, sending: Sending) -> None:
        """Behind a proxy the socket leads to the proxy, so the target is looked up and judged beforehand."""
        try:
            found = socket.getaddrinfo(sending.host.strip("[]"), None, type=socket.SOCK_STREAM)
        except OSError:
            raise NetworkError(
                f"{sending.host} is not known here", "the name must be known on this side of the proxy, to be checked"
            ) from None
        for *_, address in found:
            no = objection(str(address[0]), self._allows_private)
            if no:
                raise _refused(sending.host, no)

    def _failure(self, code: int, words: str, sending: Sending) -> PlatformError | Stopped:
        transfer = self._transfer
        if transfer.is_too_large:
            return too_large(transfer.max_wire_bytes)
        if code == pycurl.E_ABORTED_BY_CALLBACK and not transfer.is_sent_again:
            return Stopped("the transfer was cut off by a stop", "it is asked for again next time")
        if transfer.objections and code == pycurl.E_COULDNT_CONNECT:
            return _refused(sending.host, transfer.objections[0])
        error, what, helps = _BROKEN_OFF if transfer.is_sent_again else _FAILURES.get(code, _ANY_FAILURE)
        failure = error(what.format(host=sending.host, words=words), helps)
        failure.is_contact = self._is_contact()
        return failure

    def _is_contact(self) -> bool:
        """Whether the other end was reached, whatever it did then: it said no, or a connection to it came about."""
        if self._is_proxied:
            # All that can be told is that the proxy was reached.
            return False
        if self._transfer.lines or self._curl.getinfo(pycurl.OS_ERRNO) == errno.ECONNREFUSED:
            return True
        # A connection that was used again may have died with our own line; only a new one proves anything.
        is_new, seconds = self._curl.getinfo(pycurl.NUM_CONNECTS) > 0, self._curl.getinfo(pycurl.CONNECT_TIME)
        return bool(is_new and seconds > 0)


def _refused(host: str, no: str) -> AddressRefused:
    is_own = no in ("loopback", "private")
    helps = "CATCHMENT_ALLOW_PRIVATE_NETWORKS=true opens your own networks" if is_own else "no setting opens it"
    return AddressRefused(f"{host} is at a {no} address, which is not asked", helps)


def _milliseconds(seconds: float) -> int:
    # 0 would mean no limit at all.
    return max(1, round(seconds * 1000))


_AGAIN = "it is tried again"
_CERTIFICATE = (Refused, "the certificate of {host} is not accepted ({words})", "the site's operator must renew it")
_NO_HTTP = (Unreadable, "{host} does not answer in HTTP ({words})", "check the address")
_BROKEN_OFF = (NetworkError, "{host} broke the connection off", _AGAIN)
_FAILURES: dict[int, tuple[type[PlatformError], str, str]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: _NO_HTTP,
    pycurl.E_URL_MALFORMAT: (AddressRefused, "the address makes no sense", "check how it is written"),
    pycurl.E_COULDNT_RESOLVE_PROXY: (NetworkError, "the proxy is not known", "check the proxy setting"),
    pycurl.E_COULDNT_RESOLVE_HOST: (NetworkError, "{host} is not known", "check the name, and this machine's network"),
    pycurl.E_COULDNT_CONNECT: (NetworkError, "{host} takes no connection", _AGAIN),
    8: _NO_HTTP,  # CURLE_WEIRD_SERVER_REPLY
    pycurl.E_PARTIAL_FILE: (NetworkError, "{host} sent only a part of the answer", _AGAIN),
    pycurl.E_OPERATION_TIMEDOUT: (TimedOut, "{host} did not answer in time ({words})", _AGAIN),
    pycurl.E_SSL_CONNECT_ERROR: (NetworkError, "no secure connection to {host} ({words})", _AGAIN),
    pycurl.E_PEER_FAILED_VERIFICATION: _CERTIFICATE,
    pycurl.E_GOT_NOTHING: _BROKEN_OFF,
    pycurl.E_SEND_ERROR: _BROKEN_OFF,
    pycurl.E_RECV_ERROR: _BROKEN_OFF,
}
_ANY_FAILURE = (NetworkError, "the transfer from {host} failed ({words})", _AGAIN)


class Wires:
    """A wire for each thread, made in the process that uses it."""

    def __init__(self, settings: FetchSettings, is_cut: Callable[[], bool]) -> None:
        self._settings, self._is_cut = settings, is_cut
        self._local = threading.local()

    def mine(self, is_guarded: bool) -> Wire:
        """This thread's wire. Guarded and unguarded ones are apart: a connection that was opened to an operator's own
        address must never serve a request that has no right to go there."""
        name = "guarded" if is_guarded else "operators"
        wire: Wire | None = getattr(self._local, name, None)
        if wire is None or wire.pid != os.getpid():
            wire = Wire(self._settings, self._is_cut, is_guarded)
            setattr(self._local, name, wire)
        return wire

    def close(self) -> None:
        """Close all threads' connections; a transfer under way keeps its own until it ends."""
        self._local = threading.local()


_ALIVE: weakref.WeakSet[Wire] = weakref.WeakSet()
_KEPT_FROM_PARENT: list[Wire] = []
_FORKING = threading.Lock()


def _before_fork() -> None:
    with _FORKING:
        _KEPT_FROM_PARENT.extend(_ALIVE)


# A child must not close what it inherits: closing says goodbye in the parent's TLS connections. So it keeps all of it,
# unused, until it ends.
os.register_at_fork(before=_before_fork, after_in_parent=_KEPT_FROM_PARENT.clear)

COMMON_HEADERS = (f"Accept-Encoding: {ACCEPTED}".encode(), b"Expect:")
"""Of every request. The empty one keeps libcurl from asking for leave before a large body."""
