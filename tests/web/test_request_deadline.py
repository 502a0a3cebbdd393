"""Connections that never finish their request are closed; answers may take as long as they need."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from catchment.web.server import RequestDeadline

PATIENCE = 600.0
"""A bound on hanging, never what decides."""


class HandClock:
    """An event loop whose timers go off when the test says that their time has come, and not before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: list[tuple[asyncio.TimerHandle, Callable[[], Any]]]):
        self._loop, self._timers = loop, timers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay: float, callback: Callable[..., Any], *arguments: Any) -> asyncio.TimerHandle:
        handle = self._loop.call_later(100 * PATIENCE, callback, *arguments)
        self._timers.append((handle, lambda: callback(*arguments)))
        return handle


class SlowSite:
    """Answers when it is told to; until then its requests are under way."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self._timers: list[tuple[asyncio.TimerHandle, Callable[[], Any]]] = []
        self._loop: Any = None
        self._received, self._news = 0, threading.Condition()
        site = self

        class Deadline(RequestDeadline):
            def __init__(self, *arguments: Any, **more: Any) -> None:
                super().__init__(*arguments, **more)
                site._loop = self.loop
                self.loop = HandClock(self.loop, site._timers)  # type: ignore[assignment]

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                site._hear(1)

            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                site._hear(len(data))

        config = uvicorn.Config(
            self._app, port=0, http=Deadline, log_config=None, lifespan="off", ws="none", interface="asgi3"
        )
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]})
        self._thread.start()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return
        await asyncio.to_thread(self.may_answer.wait, PATIENCE)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    def _hear(self, count: int) -> None:
        with self._news:
            self._received += count
            self._news.notify_all()

    def connect(self) -> socket.socket:
        return self._heard(1, lambda: socket.create_connection(self.address, PATIENCE))

    def send(self, client: socket.socket, sent: bytes) -> None:
        """The server has read all of it when this returns."""
        self._heard(len(sent), lambda: client.sendall(sent))

    def _heard(self, count: int, act: Callable[[], Any]) -> Any:
        with self._news:
            expected = self._received + count
        result = act()
        with self._news:
            assert self._news.wait_for(lambda: self._received >= expected, PATIENCE)
        return result

    def let_the_time_pass(self) -> None:
        """However long a timer of the server has still to go, it goes off now."""
        done = threading.Event()

        def pass_time() -> None:
            for handle, ring in [*self._timers]:
                if not handle.cancelled():
                    handle.cancel()
                    ring()
            self._timers.clear()
            done.set()

        self._loop.call_soon_threadsafe(pass_time)
        assert done.wait(PATIENCE)

    def close(self) -> None:
        self.may_answer.set()
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._listener.close()


@pytest.fixture
def site() -> Iterator[SlowSite]:
    site = SlowSite()
    yield site
    site.close()


def until_closed(client: socket.socket) -> bytes:
    """Everything the server says until it closes the connection, which the client never does first."""
    received = b""
    try:
        while chunk := client.recv(1000):
            received += chunk
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
    ],
)
def test_a_connection_whose_request_never_ends_is_closed(site: SlowSite, sent: bytes) -> None:
    with site.connect() as client:
        site.send(client, sent)
        site.let_the_time_pass()
        assert until_closed(client) == b""


def test_a_whole_request_may_wait_longer_for_its_answer(site: SlowSite) -> None:
    with site.connect() as client:
        site.send(client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        site.let_the_time_pass()
        site.may_answer.set()
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        site.send(client, b"GET / HTTP/1.1\r\nHo")
        site.let_the_time_pass()
        assert until_closed(client) in (b"", b"ok")
