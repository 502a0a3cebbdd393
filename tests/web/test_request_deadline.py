"""Connections that never finish their request are closed; answers may take as long as they need."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from catchment.web.server import RequestDeadline

PATIENCE = 600.0
"""A bound on hanging, never what decides."""


class ShortDeadline(RequestDeadline):
    request_seconds = 0.2


class SlowSite:
    """Answers when it is told to; until then its requests are under way."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        config = uvicorn.Config(
            self._app, port=0, http=ShortDeadline, log_config=None, lifespan="off", ws="none", interface="asgi3"
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


def answer_to(site: SlowSite, sent: bytes) -> bytes:
    """Everything the server says until it closes the connection, which the client never does first."""
    with socket.create_connection(site.address, PATIENCE) as client:
        client.sendall(sent)
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
    assert answer_to(site, sent) == b""


def test_a_whole_request_may_wait_longer_for_its_answer(site: SlowSite) -> None:
    with socket.create_connection(site.address, PATIENCE) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        # A connection that was opened later is given up first: the deadline has passed for both.
        assert answer_to(site, b"GET /") == b""
        site.may_answer.set()
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET / HTTP/1.1\r\nHo")
        client.settimeout(PATIENCE)
        rest = b"started"
        try:
            while rest:
                rest = client.recv(1000)
        except ConnectionResetError:
            rest = b""
        assert rest == b""
