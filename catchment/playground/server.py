"""The server: the world behind a socket on 127.0.0.1. A minimal HTTP/1.1 for well-behaved clients: keep-alive, no TLS.

Every host name leads to the same world; faults, outages and counts depend on the requested name. Names that end in
`.localhost` lead here without a name server, so that `address` can give each site its own host.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import cast

from catchment.clock import Clock
from catchment.model import Record
from catchment.playground.faults import (
    Fault,
    FaultPlan,
    Wire,
    refused,
    spoiled,
)
from catchment.playground.log import Asked, Counts, Log
from catchment.playground.sites import (
    ROBOTS,
    STRAIGHT,
    Ask,
    Page,
    SiteSimulator,
    simulators,
)
from catchment.playground.world import Place, World

PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
PIECES = 12
"""Of an answer sent slowly."""
MOST_WAITING_BYTES = 1_000_000
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: close abruptly, so that the client sees a reset."""
BACKLOG = 1024
"""Connections that may wait to be accepted."""


class Playground:
    """Serves a world until it is closed."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        faults: FaultPlan,
        *,
        log: Path | None = None,
        port: int = 0,
        slow_seconds: float = 0.2,
        listener: socket.socket | None = None,
    ) -> None:
        """`listener` is a socket that listens already, used instead of `port`."""
        self.world, self.clock, self.faults, self.slow_seconds = world, clock, faults, slow_seconds
        self.counts = Counts()
        self._site = Site(world, faults, self.counts, Log(log) if log else None)
        self._socket = listener or socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="playground", daemon=True)
        self._connections: set[Connection] = set()

    def address(self, place: Place) -> str:
        """The place's URL on the host name of its site, which a few places share."""
        return f"http://{place.host}.localhost:{self.port}{place.path}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Abort what is in progress and release the port. Closing again does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._socket.close()
        self._loop.close()
        self._site.close()

    def __enter__(self) -> Playground:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        serving = self._loop.create_task(
            self._loop.create_server(lambda: Connection(self, self._site), sock=self._socket)
        )
        # Nothing else may run the loop before: it would miss the stop of a playground that is closed at once.
        self._loop.run_forever()
        server = self._loop.run_until_complete(serving)
        server.close()
        for connection in list(self._connections):
            connection.transport.abort()
        # One iteration, so that every connection learns that it was lost.
        self._loop.run_until_complete(asyncio.sleep(0))

    def joined(self, connection: Connection) -> None:
        self._connections.add(connection)

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)


class ReceivedRequest(Record, frozen=True):
    """A parsed request."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""


class PendingAnswer(Record, frozen=True):
    """An answer being sent."""

    head: bytes
    body: bytes
    wire: Wire
    asked: Asked
    is_last: bool
    """The connection is closed after it."""


class Site:
    """The world as requests see it: finds the platform, gets the fault, and logs everything."""

    def __init__(self, world: World, faults: FaultPlan, counts: Counts, log: Log | None) -> None:
        self._simulators, self._faults, self._counts, self._log = simulators(world), faults, counts, log
        self._asked_before: Counter[tuple[str, str | None]] = Counter()
        self._number = log.last_number if log else 0

    def answer(self, asked: ReceivedRequest, at: datetime) -> PendingAnswer:
        path, _, query = asked.target.partition("?")
        headers, (simulator, place) = asked.headers, self._found(path)
        if (board := getattr(simulator, "board", None)) is not None:
            place = board(query) or place
        host, credential = headers.get("host", ""), _credential(simulator, headers)
        name = host.rpartition(":")[0] or host
        self._asked_before[path, credential] += 1
        fault = self._faults.of(path, credential, self._asked_before[path, credential], at, name)
        passed_headers = headers if fault is None or fault.is_whole else _without_conditions(headers)
        distortion = fault.distortion if fault else STRAIGHT
        ask = Ask(path, query, passed_headers, at, f"http://{host}", distortion, asked.method, asked.body)
        page = self._page(simulator, place, ask, fault)
        cost = simulator.charge(ask, page) if simulator is not None and hasattr(simulator, "charge") else 0
        page = spoiled(fault, page) if fault is not None and fault.status is None else page
        self._number += 1
        line = Asked(
            number=self._number,
            at=at,
            host=name,
            path=f"{path}?{query}" if board is not None else path,
            credential=credential,
            place=place.number if place else None,
            status=page.status,
            fault=fault.name if fault else None,
            is_whole=fault is None or fault.is_whole,
            is_unchanged=page.status == 304,
            entries=page.entries,
            cost=cost,
            is_cost_plain=fault is None
            or (fault.spoils is None and fault.wire not in (Wire.CUT, Wire.TORN, Wire.RESET)),
        )
        if fault is not None and fault.wire == Wire.RESET:
            line = line.replace(status=None, entries=(), is_unchanged=False)
        self._counts.add(line)
        return _pending_answer(page, fault, line, headers)

    def _found(self, path: str) -> tuple[SiteSimulator | None, Place | None]:
        found = ((simulator, simulator.find(path)) for simulator in self._simulators.values())
        return next(((simulator, place) for simulator, place in found if place is not None), (None, None))

    def _page(self, simulator: SiteSimulator | None, place: Place | None, ask: Ask, fault: Fault | None) -> Page:
        is_refused = fault is not None and fault.status is not None
        if simulator is None or place is None:
            if ask.path != "/robots.txt":
                return Page(404, PLAIN, b"nothing is here\n")
            return refused(fault, ask) if fault is not None and is_refused else Page(200, PLAIN, ROBOTS)
        if fault is not None and is_refused:
            page: Page = getattr(simulator, "refused", refused)(fault, ask)
            return page
        return simulator.answer(place, ask)

    def note(self, asked: Asked) -> None:
        if self._log is not None:
            self._log.write(asked)

    def close(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()


def _without_conditions(headers: Mapping[str, str]) -> Mapping[str, str]:
    """A fault that breaks an answer needs a full one: a 304 has nothing to cut or spoil."""
    return {name: value for name, value in headers.items() if name not in ("if-none-match", "if-modified-since")}


def _credential(simulator: SiteSimulator | None, headers: Mapping[str, str]) -> str | None:
    """The client: its name if the platform knows its clients by name; else a short hash of the credentials sent."""
    who = getattr(simulator, "who", None)
    name: str | None = who(headers) if who is not None else None
    if name is not None:
        return name
    secret = headers.get("authorization") or headers.get("cookie")
    return sha256(secret.encode()).hexdigest()[:12] if secret else None


def _pending_answer(page: Page, fault: Fault | None, asked: Asked, headers: Mapping[str, str]) -> PendingAnswer:
    wire = fault.wire if fault else Wire.WHOLE
    body, response_headers = page.body, dict(page.headers)
    # Half of a compressed body cannot be taken for a whole one.
    if page.packed is not None and wire != Wire.TORN and "gzip" in headers.get("accept-encoding", ""):
        body, response_headers = page.packed, response_headers | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    skew = fault.distortion.skew if fault else STRAIGHT.skew
    response_headers["Date"] = format_datetime((asked.at + skew).replace(microsecond=0), usegmt=True)
    is_last = wire == Wire.TORN or headers.get("connection", "").lower() == "close"
    if is_last:
        response_headers["Connection"] = "close"
    if wire != Wire.TORN and page.status != 304:
        response_headers["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in response_headers.items())
    head = f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}\r\n{lines}\r\n"
    return PendingAnswer(head.encode("latin-1"), body, wire, asked, is_last)


class Connection(asyncio.Protocol):
    """One client's connection: one answer after the other."""

    def __init__(self, playground: Playground, site: Site) -> None:
        self._playground, self._site = playground, site
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._pending: PendingAnswer | None = None
        """What is being sent; its log line is written before its last byte."""
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Notifies as soon as anything is in our own buffer: an answer is done when the system has taken all of it.
        self.transport.set_write_buffer_limits(high=0)
        self._playground.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._playground.left(self)
        pending, self._pending = self._pending, None
        if pending is not None:
            self._site.note(pending.asked.replace(is_whole=False, is_cost_plain=False))

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._answer_next()

    def _answer_next(self) -> None:
        while not (self._pending or self.transport.is_closing()) and (end := self._received.find(b"\r\n\r\n")) >= 0:
            received = _parsed(self._received[:end])
            length = int(received.headers.get("content-length") or 0)
            if len(self._received) < end + 4 + length:
                return
            body, self._received = self._received[end + 4 : end + 4 + length], self._received[end + 4 + length :]
            self._send(self._site.answer(received.replace(body=body), self._playground.clock.now()))
        if len(self._received) > MOST_WAITING_BYTES:
            self.transport.abort()

    def _send(self, pending: PendingAnswer) -> None:
        self._pending = pending
        if pending.wire == Wire.WHOLE:
            self._finish([pending.head + pending.body])
        elif pending.wire == Wire.LATE:
            self._later(self._playground.slow_seconds, [pending.head + pending.body])
        elif pending.wire == Wire.DRIP:
            self._drip(_pieces(pending))
        elif pending.wire == Wire.RESET:
            self._reset()
        else:
            self._break_off(pending)

    def _finish(self, pieces: list[bytes]) -> None:
        """The end of an answer: its log line, then its bytes."""
        assert self._pending is not None
        self._site.note(self._pending.asked)
        self.transport.writelines(pieces)
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return  # its end is reported later: sent after all, or lost
        self._finished()

    def resume_writing(self) -> None:
        """Everything was sent after all."""
        if self._pending is not None and not self._pieces:
            self._finished()
            self._answer_next()

    def _finished(self) -> None:
        assert self._pending is not None
        if self._pending.is_last:
            self.transport.close()
        self._pending = None

    def _later(self, seconds: float, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._loop.call_later(seconds, self._go_on)

    def _drip(self, pieces: list[bytes]) -> None:
        self.transport.write(pieces[0])
        self._later(self._playground.slow_seconds / len(pieces), pieces[1:])

    def _go_on(self) -> None:
        if self.transport.is_closing():
            return
        pieces, self._pieces = self._pieces, []
        if len(pieces) > 1:
            self._drip(pieces)
            return
        self._finish(pieces)
        self._answer_next()

    def _reset(self) -> None:
        assert self._pending is not None
        self._site.note(self._pending.asked)
        self._pending = None
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self.transport.abort()

    def _break_off(self, pending: PendingAnswer) -> None:
        self._site.note(pending.asked)
        self._pending = None
        self.transport.write(pending.head + pending.body[: len(pending.body) // 2])
        self.transport.close()


def _pieces(pending: PendingAnswer) -> list[bytes]:
    whole = pending.head + pending.body
    size = max(1, len(whole) // PIECES)
    return [whole[begin : begin + size] for begin in range(0, len(whole), size)]


def _parsed(head: bytes) -> ReceivedRequest:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    method, target = first.split(" ")[:2] if first.count(" ") >= 2 else ("GET", "/")
    return ReceivedRequest(method, target, headers)
