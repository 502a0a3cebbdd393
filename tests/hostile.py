"""An HTTP server on 127.0.0.1 that does as it is told, good or bad.

    with Hostile() as server:
        server.on("/feed", status(503), reply(b"<rss/>"))       # one after the other; the last one stays
        … ask for f"{server.url}/feed" …
        assert [seen.path for seen in server.seen] == ["/feed", "/feed"]

A behaviour is a function of (connection, what was asked); it returns whether the connection may be used again.
Behaviours that wait do so on the server's closing, so that leaving the `with` never waits for them.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Seen:
    """One request, as the server saw it."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    connection: int = 0
    """The how manieth connection it came by."""


@dataclass
class Connection:
    socket: socket.socket
    closing: threading.Event
    number: int
    buffer: bytes = field(default=b"")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def pause(self, seconds: float) -> bool:
        """Wait; true if the server is closing."""
        return self.closing.wait(seconds)


Behaviour = Callable[[Connection, Seen], bool]


class Hostile:
    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.connections = 0
        self.arrived = threading.Event()
        """Set by every request; a test that waits for the next one clears it."""
        self._scripts: dict[str, list[Behaviour]] = {}
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def on(self, path: str, *behaviours: Behaviour) -> str:
        """What to do when `path` (without the query) is asked for; the URL of it."""
        self._scripts[path] = list(behaviours)
        return self.url + path

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with self._lock:
            for each in (self._listener, *self._open):
                _shut(each)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.connections += 1
                self._open.add(accepted)
                if self._closing.is_set():
                    _shut(accepted)
            self._start(self._serve, Connection(accepted, self._closing, self.connections))

    def _serve(self, connection: Connection) -> None:
        try:
            while (seen := _read_request(connection)) is not None:
                if not self._behaviour(seen)(connection, seen):
                    break
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection.socket)
            connection.socket.close()

    def _behaviour(self, seen: Seen) -> Behaviour:
        with self._lock:
            self.seen.append(seen)
            script = self._scripts.get(seen.path.partition("?")[0], [status(404)])
            behaviour = script.pop(0) if len(script) > 1 else script[0]
        self.arrived.set()
        return behaviour


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


def _read_request(connection: Connection) -> Seen | None:
    """The next request of a connection; None when the other side is done."""
    while b"\r\n\r\n" not in connection.buffer:
        received = connection.socket.recv(65536)
        if not received:
            return None
        connection.buffer += received
    head, _, rest = connection.buffer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        rest += connection.socket.recv(65536)
    connection.buffer = rest[length:]
    return Seen(method, path, headers, rest[:length], connection.number)


def _head(code: int, headers: dict[str, str]) -> bytes:
    phrase = HTTPStatus(code).phrase if code in HTTPStatus._value2member_map_ else "Odd"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {code} {phrase}\r\n{lines}\r\n".encode("latin-1")


# ── well-behaved ──────────────────────────────────────────────────────────────────────────────────────────────────


def reply(body: bytes = b"hello", code: int = 200, **headers: str) -> Behaviour:
    """An ordinary answer. Header names are given with underscores: `retry_after="3"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def behave(connection: Connection, seen: Seen) -> bool:
        has_body = code not in (204, 304) and seen.method != "HEAD"
        length = {} if code in (204, 304) else {"content-length": str(len(body))}
        connection.send(_head(code, {**length, **named}) + (body if has_body else b""))
        return True

    return behave


def status(code: int, **headers: str) -> Behaviour:
    return reply(b"", code, **headers)


def redirect(to: str, code: int = 302) -> Behaviour:
    return status(code, location=to)


def gzipped(body: bytes) -> Behaviour:
    return reply(gzip.compress(body), content_encoding="gzip")


def chunked(*chunks: bytes) -> Behaviour:
    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"transfer-encoding": "chunked"}))
        connection.send(b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b"")))
        return True

    return behave


# ── hostile ───────────────────────────────────────────────────────────────────────────────────────────────────────


def gzip_bomb(unpacked_bytes: int) -> Behaviour:
    """Zeros, packed a thousand to one."""
    bomb = zeros_in_gzip(unpacked_bytes)
    return reply(bomb, content_encoding="gzip")


def zeros_in_gzip(unpacked_bytes: int) -> bytes:
    """A full flush makes the packed million independent of what came before: packed once, it can be repeated at will.
    The checksum at the end is wrong; who gets that far has unpacked everything."""
    packer, million = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS), bytes(1_000_000)
    packed = packer.compress(million) + packer.flush(zlib.Z_FULL_FLUSH)
    head = gzip.compress(b"")[:10]
    return head + packed * (unpacked_bytes // len(million)) + packer.flush() + bytes(8)


def endless(piece: bytes = bytes(65536)) -> Behaviour:
    """A body without announced length that never ends."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"connection": "close"}))
        while not connection.closing.is_set():
            connection.send(piece)
        return False

    return behave


def announced(length: int) -> Behaviour:
    """Says that so much will come, and sends nothing of it."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"content-length": str(length)}))
        connection.pause(60)
        return False

    return behave


def silent() -> Behaviour:
    """Takes the request and never answers."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.pause(60)
        return False

    return behave


def late(behaviour: Behaviour, seconds: float) -> Behaviour:
    """The same, after a while."""

    def behave(connection: Connection, seen: Seen) -> bool:
        return not connection.pause(seconds) and behaviour(connection, seen)

    return behave


def drip(seconds_apart: float = 0.05, length: int = 10_000) -> Behaviour:
    """One byte at a time."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"content-length": str(length)}))
        for _ in range(length):
            connection.send(b".")
            if connection.pause(seconds_apart):
                break
        return False

    return behave


def reset() -> Behaviour:
    """Breaks the connection off without an answer."""

    def behave(connection: Connection, seen: Seen) -> bool:
        # Linger 0 turns the closing into a reset.
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return behave


def cut(body: bytes = b"hello", missing: int = 10, **headers: str) -> Behaviour:
    """Announces more than it sends, then hangs up."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"content-length": str(len(body) + missing), **named}) + body)
        return False

    return behave


def cut_chunked(body: bytes = b"hello") -> Behaviour:
    """Hangs up before the chunk that says "this was all"."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(_head(200, {"transfer-encoding": "chunked"}) + b"%x\r\n%s\r\n" % (len(body), body))
        return False

    return behave


def raw(data: bytes) -> Behaviour:
    """These very bytes, then hangs up."""

    def behave(connection: Connection, seen: Seen) -> bool:
        connection.send(data)
        return False

    return behave
