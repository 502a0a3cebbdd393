"""Transport: one HTTP exchange with one server, by libcurl. It follows no redirect, does not retry and judges no
status.

Options that never change are set once for each handle, the others only when they differ: setting them all would cost
a third of a request.

libcurl could decompress a body while receiving it, but passes a truncated one on as if it were whole and refuses gzip
in several members, which some servers send. So it hands over the raw bytes, and the end of the stream is checked here.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
import weakref
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import brotli
import certifi
import pycurl

from catchment.errors import (
    AddressRefused,
    InvalidInput,
    NetworkError,
    PlatformError,
    Refused,
    Stopped,
    TimedOut,
    TooLarge,
    Unreadable,
)
from catchment.fetch.address_guard import objection
from catchment.fetch.responses import read_headers
from catchment.fetch.settings import FetchSettings
from catchment.fetch.urls import Step
from catchment.messages import Message, message

ACCEPTED = "gzip, br"

_GZIP_MAGIC = b"\x1f\x8b"
_FIRST_PIECE = 4096
_MOST_MEMBERS = 10_000
"""Per gzip body. Honest servers begin a new one with every few kilobytes at most; each costs as much as a page."""
_MOST_ENCODINGS = 3
"""On top of each other; there are bodies that decompress to themselves, again and again."""
_NOTHING_DONE = ("", "identity", "none", "utf-8")
"""What servers write for a body that is not encoded at all."""


def decoded(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """Returns the decompressed body. Never more than `max_bytes`, and never a part taken for the whole."""
    if content_encoding:
        names = [name.strip() for name in content_encoding.lower().split(",")]
        if len(names) > _MOST_ENCODINGS:
            raise Unreadable("the answer is compressed {count} times", "the problem is on the server", count=len(names))
        # The header names the encodings in the order in which they were applied.
        for name in reversed(names):
            body = _decoded_once(body, name, max_bytes)
    if len(body) > max_bytes:
        raise too_large(max_bytes)
    return body


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(
        "the answer is larger than {max_bytes:,} bytes",
        "raise the size limit if this is expected",
        max_bytes=max_bytes,
    )


def _decoded_once(body: bytes, name: str, max_bytes: int) -> bytes:
    if not body or name in _NOTHING_DONE:
        return body
    decode = _DECODERS.get(name)
    if decode is None:
        raise Unreadable(
            "the answer has the encoding {name!r}, which was not requested",
            "the problem is on the server",
            name=name[:20],
        )
    try:
        return decode(body, max_bytes)
    except (zlib.error, brotli.error):
        raise Unreadable(
            "the answer claims to be {name}, but is not", "the problem is on the server", name=name
        ) from None


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    members: list[bytes] = []
    at, room = 0, max_bytes
    while body.startswith(_GZIP_MAGIC, at) or not members:
        if len(members) == _MOST_MEMBERS:
            raise Unreadable(
                "the compressed answer has more than {most:,} parts",
                "the problem is on the server",
                most=_MOST_MEMBERS,
            )
        member, at = _inflated(body, at, zlib.MAX_WBITS | 16, room)
        members.append(member)
        room -= len(member)
    # Bytes after the last member that are not a member are padding: every gzip tool ignores them.
    return b"".join(members)


def _undeflated(body: bytes, max_bytes: int) -> bytes:
    # "deflate" ought to be a zlib stream; some servers send it without the two bytes at the front.
    has_zlib_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return _inflated(body, 0, zlib.MAX_WBITS if has_zlib_header else -zlib.MAX_WBITS, max_bytes)[0]


def _inflated(body: bytes, at: int, window_bits: int, max_bytes: int) -> tuple[bytes, int]:
    """Returns the stream that begins at an offset, and the offset where it ends."""
    stream = zlib.decompressobj(window_bits)
    pieces, size, room = [], _FIRST_PIECE, max_bytes
    # In growing pieces: at its end the stream copies surplus input, and the rest of a large body, copied for each of
    # many small members, would take minutes.
    while not stream.eof and at < len(body):
        # One byte more than allowed tells "exactly full" from "too much"; 0 would mean no limit at all.
        pieces.append(stream.decompress(body[at : at + size], room + 1))
        at, room, size = at + size, room - len(pieces[-1]), size * 2
        if room < 0:
            raise too_large(max_bytes)
    if not stream.eof:
        raise _cut_off()
    return b"".join(pieces), min(at, len(body)) - len(stream.unused_data)


def _unbrotlied(body: bytes, max_bytes: int) -> bytes:
    stream = brotli.Decompressor()
    whole: bytes = stream.process(body, output_buffer_limit=max_bytes + 1)
    if len(whole) > max_bytes:
        raise too_large(max_bytes)
    if not stream.is_finished():
        raise _cut_off()
    return whole


def _cut_off() -> NetworkError:
    error = NetworkError("the compressed answer was cut off", "it will be requested again")
    error.is_contact = True
    return error


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _undeflated,
    "br": _unbrotlied,
}


_BUFFER_BYTES = 128 * 1024
_LOOK_UP_SECONDS = 1.0
"""How long a transfer that is cut off may continue."""
_PAUSE_SECONDS = 0.01
_RESTING_SECONDS = 100
"""A connection unused for longer is not used again: most servers have closed it by then."""


_UNPACKING = threading.Lock()


class RawResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Transfer:
    """Callbacks of libcurl during a transfer. It does not know the handle: a handle that is dropped is closed at once,
    without waiting for the garbage collector to find a cycle."""

    def __init__(self, settings: FetchSettings, is_cut: Callable[[], bool]) -> None:
        self._allows_private, self._is_cut = settings.allow_private_networks, is_cut
        seconds, bytes_per_second = settings.low_speed_seconds, settings.low_speed_bytes_per_second
        self._window_seconds, self._window_bytes = seconds, seconds * bytes_per_second
        self.least_speed = message(
            "less than {bytes} bytes a second for {seconds:g} s", bytes=bytes_per_second, seconds=seconds
        )
        self.chunks: list[bytes] = []
        self.lines: list[bytes] = []
        self.objections: list[Message] = []
        self.max_wire_bytes = 0
        self._counted_chunks = self._received = 0
        self.is_too_large = self.is_too_slow = self.is_stopped = False
        self.is_sent_again = False
        self._is_sent = False
        self._window_began_at = 0.0
        self._window_began_with = 0
        self._sockets: list[socket.socket] = []

    def begin(self, max_wire_bytes: int) -> None:
        self.max_wire_bytes = max_wire_bytes
        self._counted_chunks = self._received = 0
        self.is_too_large = self.is_too_slow = self.is_stopped = False
        self._is_sent = self.is_sent_again = False
        self._window_began_with = 0

    def end(self) -> None:
        # Now rather than at the next start: an idle thread must not hold on to a large body.
        self.chunks.clear()
        self.lines.clear()
        self.objections.clear()
        # libcurl works with a duplicate of what was handed to it.
        while self._sockets:
            self._sockets.pop().close()

    def open_socket(self, purpose: int, address: Any) -> Any:
        """Applies the address guard: this is the very address that is about to be connected to."""
        no = objection(address.addr[0], self._allows_private)
        if no:
            self.objections.append(no)
            return pycurl.SOCKET_BAD
        self._sockets.append(socket.socket(address.family, address.socktype, address.protocol))
        return self._sockets[-1]

    def send(self, *_addresses: Any) -> int:
        """Called when the connection is open and the request is about to be sent. If a reused connection dies with it,
        libcurl would resend it by itself: a request that was not granted, and would not be counted, is stopped here."""
        self.is_sent_again, self._is_sent = self._is_sent, True
        return int(pycurl.PREREQFUNC_ABORT if self.is_sent_again else pycurl.PREREQFUNC_OK)

    def is_to_end(self, announced: int) -> bool:
        """Whether the transfer has to be ended, after a part of it: it is too large or too slow, or cut off."""
        chunks = self.chunks
        for place in range(self._counted_chunks, len(chunks)):
            self._received += len(chunks[place])
        self._counted_chunks, received = len(chunks), self._received
        if received > self.max_wire_bytes or announced > self.max_wire_bytes:
            self.is_too_large = True
        elif received:
            # A body that has begun must not come too slowly. libcurl's own limit (LOW_SPEED_TIME) also counts the wait
            # for the first byte, which may take the whole time-out.
            now = time.monotonic()
            if not self._window_began_with or received - self._window_began_with >= self._window_bytes:
                self._window_began_at, self._window_began_with = now, received
            else:
                self.is_too_slow = now - self._window_began_at >= self._window_seconds
        self.is_stopped = self._is_cut()
        return self.is_too_large or self.is_too_slow or self.is_stopped


class CurlConnection:
    """One curl handle with its connections. Belongs to one thread of one process."""

    def __init__(self, settings: FetchSettings, is_cut: Callable[[], bool], is_guarded: bool) -> None:
        self.pid = os.getpid()
        proxy = settings.proxy if is_guarded else None
        self._is_proxied = proxy is not None
        self._allows_private = settings.allow_private_networks
        self._transfer = Transfer(settings, is_cut)
        self._headers: list[bytes] = []
        self._timeout_ms = 0
        self._tunnel: str | None = None
        self._is_plain_get = True
        self._has_authorities = False
        """Looking up where they are takes some milliseconds."""
        self._curl = pycurl.Curl()
        for option, value in (
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.PROXY, proxy or ""),
            (pycurl.NOPROXY, ""),
            (pycurl.NOSIGNAL, 1),
            (pycurl.USERAGENT, settings.user_agent),
            (pycurl.CONNECTTIMEOUT_MS, _milliseconds(settings.connect_timeout_seconds)),
            (pycurl.MAXAGE_CONN, _RESTING_SECONDS),
            (pycurl.BUFFERSIZE, _BUFFER_BYTES),
            (pycurl.WRITEFUNCTION, self._transfer.chunks.append),
            (pycurl.HEADERFUNCTION, self._transfer.lines.append),
            (pycurl.PREREQFUNCTION, self._transfer.send),
        ):
            self._curl.setopt(option, value)
        self._multi = pycurl.CurlMulti()
        if is_guarded and proxy is None:
            self._curl.setopt(pycurl.OPENSOCKETFUNCTION, self._transfer.open_socket)
        with _FORKING:
            _ALIVE.add(self)

    def exchange(
        self, step: Step, headers: list[bytes], timeout_seconds: float, max_bytes: int, max_wire_bytes: int
    ) -> RawResponse:
        """Sends, and receives the whole answer. Raises what went wrong, without naming a source.

        `headers` are complete: they may contain secrets, like the URL, and are never shown.
        """
        host, curl, transfer = step.place.host, self._curl, self._transfer
        if self._is_proxied:
            self._tunnel_to(host)
        curl.setopt(pycurl.URL, step.sent_to)
        if not self._has_authorities and step.sent_to.startswith("https:"):
            curl.setopt(pycurl.CAINFO, certifi.where())
            self._has_authorities = True
        if (timeout_ms := _milliseconds(timeout_seconds)) != self._timeout_ms:
            curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self._timeout_ms = timeout_ms
        if headers != self._headers:
            curl.setopt(pycurl.HTTPHEADER, headers)
            self._headers = headers
        is_plain_get = step.method == "GET" and step.body is None
        if not (is_plain_get and self._is_plain_get):
            self._set_method(step.method, step.body)
            self._is_plain_get = is_plain_get
        transfer.begin(max_wire_bytes)
        try:
            self._perform()
            received_headers = read_headers(transfer.lines)
            # One at a time, and nothing is kept twice for longer than needed: a large answer is copied several times.
            with _UNPACKING:
                packed = b"".join(transfer.chunks)
                transfer.chunks.clear()
                body = decoded(packed, received_headers.get("content-encoding", ""), max_bytes)
            return RawResponse(curl.getinfo(pycurl.RESPONSE_CODE), received_headers, body)
        except pycurl.error as error:
            raise self._failure(error.args[0], error.args[1], host) from None
        finally:
            transfer.end()

    def _perform(self) -> None:
        """Sends, and receives until the answer is complete. Raises pycurl.error.

        `Curl.perform` would call back a dozen times for the shortest answer, only to ask whether to continue; and
        whenever several threads are at work, each call takes the interpreter away from another one, which costs as much
        as the transfer.
        """
        multi, curl, transfer = self._multi, self._curl, self._transfer
        multi.add_handle(curl)
        try:
            while True:
                _, is_running = multi.perform()
                if transfer.is_to_end(curl.getinfo(pycurl.CONTENT_LENGTH_DOWNLOAD_T)):
                    raise pycurl.error(pycurl.E_ABORTED_BY_CALLBACK, "")
                if not is_running:
                    break
                self._wait()
            for _, code, words in multi.info_read()[2]:
                raise pycurl.error(code, words)
        finally:
            multi.remove_handle(curl)

    def _wait(self) -> None:
        """Waits until the transfer can continue; not for long, so that it can be cut off."""
        timeout = self._multi.timeout()
        seconds = _LOOK_UP_SECONDS if timeout < 0 else min(_LOOK_UP_SECONDS, timeout / 1000)
        began = time.monotonic()
        if not self._multi.select(seconds) and time.monotonic() - began < min(seconds, _PAUSE_SECONDS):
            # It has no socket yet, or one with a number that `select` cannot wait for.
            time.sleep(min(seconds, _PAUSE_SECONDS))

    def _set_method(self, method: str, body: bytes | None) -> None:
        # Back to GET first: it undoes what an earlier method left behind.
        self._curl.setopt(pycurl.HTTPGET, 1)
        self._curl.unsetopt(pycurl.CUSTOMREQUEST)
        if method == "HEAD":
            self._curl.setopt(pycurl.NOBODY, 1)
        elif method != "GET" or body is not None:
            self._curl.setopt(pycurl.POSTFIELDS, body or b"")
            self._curl.setopt(pycurl.CUSTOMREQUEST, method)

    def _tunnel_to(self, host: str) -> None:
        """Makes the proxy open its tunnel to an address of the host that was judged; Host and SNI stay the URL's.

        Behind a proxy the socket leads to the proxy, so the target is looked up and judged beforehand. The proxy is
        given the address, not the name: a name may lead elsewhere when the proxy looks it up.
        """
        name = host.strip("[]")
        try:
            resolved = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError:
            raise NetworkError(
                "{host} cannot be resolved",
                "the name must be resolvable on this side of the proxy, so that its address can be checked",
                host=host,
            ) from None
        addresses = [str(address[0]) for *_, address in resolved]
        for address in addresses:
            if no := objection(address, self._allows_private):
                raise _refused(host, no)
        # IPv4 first: many a proxy has nothing else.
        address = min(addresses, key=lambda address: ":" in address)
        # Where the URL contains the address itself, the proxy connects to that.
        tunnel = None if address == name else f"::[{address}]:" if ":" in address else f"::{address}:"
        if tunnel != self._tunnel:
            if tunnel is None:
                # An empty list would leave the last address in force.
                self._curl.unsetopt(pycurl.CONNECT_TO)
            else:
                self._curl.setopt(pycurl.CONNECT_TO, [tunnel])
            self._tunnel = tunnel

    def _failure(self, code: int, words: str, host: str) -> PlatformError | Stopped:
        transfer = self._transfer
        if transfer.is_too_large:
            return too_large(transfer.max_wire_bytes)
        if transfer.is_too_slow:
            failure: PlatformError = TimedOut(
                "{host} answers too slowly ({least_speed})", _AGAIN, host=host, least_speed=transfer.least_speed
            )
        elif transfer.is_stopped:
            return Stopped("the transfer was interrupted by a stop", "it will be requested again next time")
        elif transfer.objections and code == pycurl.E_COULDNT_CONNECT:
            refused = _refused(host, transfer.objections[0])
            refused.is_unsent = True
            return refused
        elif self._is_proxied and (status := self._curl.getinfo(pycurl.HTTP_CONNECTCODE)) >= 400:
            return NetworkError(
                "the proxy refused a tunnel to {host} (HTTP {answer_status})", _TUNNELS, host=host, answer_status=status
            )
        else:
            error, what, helps = _BROKEN_OFF if transfer.is_sent_again else _FAILURES.get(code, _ANY_FAILURE)
            failure = error(what, helps, host=host, words=words)
        failure.is_contact = self._is_contact()
        failure.is_unsent = code in _UNSENT
        return failure

    def _is_contact(self) -> bool:
        """Whether the other end was reached, whatever it did then: it refused, or a connection to it was made."""
        if self._is_proxied:
            # All that is known is that the proxy was reached.
            return False
        if self._transfer.lines or self._curl.getinfo(pycurl.OS_ERRNO) == errno.ECONNREFUSED:
            return True
        # A reused connection may have died with our own line; only a new one proves anything.
        is_new, seconds = self._curl.getinfo(pycurl.NUM_CONNECTS) > 0, self._curl.getinfo(pycurl.CONNECT_TIME)
        return bool(is_new and seconds > 0)


def _refused(host: str, no: Message) -> AddressRefused:
    is_own = no in ("loopback", "private")
    helps = "CATCHMENT_ALLOW_PRIVATE_NETWORKS=true allows your own networks" if is_own else "no setting allows it"
    return AddressRefused("{host} has a {range} address, which is not allowed", helps, host=host, range=no)


def _milliseconds(seconds: float) -> int:
    # 0 would mean no limit at all.
    return max(1, round(seconds * 1000))


_AGAIN = "it is retried"
_TUNNELS = "the proxy must allow CONNECT, for http:// addresses (port 80) too: see CATCHMENT_PROXY"
_CERTIFICATE = (Refused, "the certificate of {host} is not accepted ({words})", "the site's operator must renew it")
_NO_HTTP = (Unreadable, "the answer of {host} is not HTTP ({words})", "check the address")
_BROKEN_OFF = (NetworkError, "{host} closed the connection", _AGAIN)
_FAILURES: dict[int, tuple[type[PlatformError], str, str]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: _NO_HTTP,
    pycurl.E_URL_MALFORMAT: (AddressRefused, "the address is invalid", "check its spelling"),
    pycurl.E_COULDNT_RESOLVE_PROXY: (NetworkError, "the proxy could not be found", "check the proxy setting"),
    pycurl.E_COULDNT_RESOLVE_HOST: (
        NetworkError,
        "{host} could not be found",
        "check the name, and this machine's network",
    ),
    pycurl.E_COULDNT_CONNECT: (NetworkError, "{host} refuses connections", _AGAIN),
    8: _NO_HTTP,  # CURLE_WEIRD_SERVER_REPLY
    pycurl.E_PARTIAL_FILE: (NetworkError, "{host} sent only part of the answer", _AGAIN),
    pycurl.E_OPERATION_TIMEDOUT: (TimedOut, "{host} did not answer in time", _AGAIN),
    pycurl.E_SSL_CONNECT_ERROR: (NetworkError, "no secure connection (TLS) to {host}", _AGAIN),
    pycurl.E_PEER_FAILED_VERIFICATION: _CERTIFICATE,
    pycurl.E_GOT_NOTHING: _BROKEN_OFF,
    pycurl.E_SEND_ERROR: _BROKEN_OFF,
    pycurl.E_RECV_ERROR: _BROKEN_OFF,
}
_UNSENT = frozenset(
    (
        *(pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_URL_MALFORMAT, pycurl.E_COULDNT_RESOLVE_PROXY),
        *(pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT),
        *(pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION),
    )
)
"""There was no connection, so nothing was sent."""
_ANY_FAILURE = (NetworkError, "the transfer from {host} failed ({words})", _AGAIN)


class CurlConnections:
    """A `CurlConnection` for each thread, made in the process that uses it."""

    def __init__(self, settings: FetchSettings, is_cut: Callable[[], bool]) -> None:
        self._settings, self._is_cut = settings, is_cut
        self._local = threading.local()

    def mine(self, is_guarded: bool) -> CurlConnection:
        """Returns this thread's `CurlConnection`. Guarded and unguarded ones are separate: a connection that was opened
        to an operator's own address must never serve a request that has no right to go there."""
        attribute = "guarded" if is_guarded else "operators"
        wire: CurlConnection | None = getattr(self._local, attribute, None)
        if wire is None or wire.pid != os.getpid():
            wire = CurlConnection(self._settings, self._is_cut, is_guarded)
            setattr(self._local, attribute, wire)
        return wire

    def close(self) -> None:
        """Closes all threads' connections; a transfer in progress keeps its own until it ends."""
        self._local = threading.local()


_ALIVE: weakref.WeakSet[CurlConnection] = weakref.WeakSet()
_KEPT_FROM_PARENT: list[CurlConnection] = []
_FORKING = threading.Lock()


def _before_fork() -> None:
    with _FORKING:
        _KEPT_FROM_PARENT.extend(_ALIVE)


# A child must not close what it inherits: closing would send a close message in the parent's TLS connections. So it
# keeps all of it, unused, until it ends.
os.register_at_fork(before=_before_fork, after_in_parent=_KEPT_FROM_PARENT.clear)

COMMON_HEADERS = (f"Accept-Encoding: {ACCEPTED}".encode(), b"Expect:")
"""Sent with every request. The empty one keeps libcurl from asking for permission before a large body."""


def header_line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\n" in line or "\r" in line:
        raise InvalidInput("the header {name!r} contains a line break", "check the source's settings", name=name[:40])
    # Headers are decoded as Latin-1: a server's value (an ETag) goes back to it byte by byte.
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode()
