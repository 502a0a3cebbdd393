"""HTTP server: one process with the API, the pages and, unless switched off, the embedded engine."""

from __future__ import annotations

import asyncio
import errno
import math
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from types import FrameType

import anyio.to_thread
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from catchment import logs
from catchment.app import App
from catchment.engines.distributed.beat_watch import watched_beat
from catchment.engines.embedded import Embedded
from catchment.errors import CatchmentError, Conflict, InvalidInput
from catchment.installation import as_typed
from catchment.web.app import application
from catchment.web.auth import reachable
from catchment.web.dependencies import WebContext, open_web_context
from catchment.web.middleware import OuterMiddleware, hosts_for

log = logs.logger(__name__)

Announce = Callable[[str], None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_SECONDS = 0.05


def serve(app: App, host: str, port: int, *, collects: bool, announce: Announce, demo_rate: float | None = None) -> int:
    """Serve until a signal arrives or the app is stopped. Returns 0 if all work in progress could finish, 1 if some was
    aborted.

    `announce` gets the lines that the user should see once: the address, the link, the first key.
    """
    with listening(host, port) as listener:
        context = open_web_context(app, collects=collects, demo_rate=demo_rate)
        asgi = application(context, hosts_for(host))
        # Each request needs a connection, and the engine's workers have theirs.
        threads = max(1, app.store.database.pool_size - (app.settings.concurrency if collects else 0))
        server = Server(asgi, app, threads)
        with server.on_signals(), nullcontext() if collects or app.broker is None else watched_beat(app):
            engine = Embedded(app) if collects else None
            if engine:
                engine.start()
            try:
                _announce(announce, context, host, listener.getsockname()[1])
                server.run(sockets=[listener])
            finally:
                is_clean = server.wait_for(engine) if engine else True
                app.cut.set()
    log.info("stopped", is_clean=is_clean, requests_cut_off=asgi.cut_count)
    return 0 if is_clean and not asgi.cut_count else 1


class RequestDeadline(H11Protocol):
    """HTTP connections whose requests must arrive in full within a time limit: a silent or trickling connection would
    otherwise hold its socket forever. Response times are not limited here."""

    request_seconds = 60.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect_request()
        else:
            self._expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.request_seconds, self._give_up)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        log.info("a request did not arrive completely in time", seconds=self.request_seconds)
        self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn with the product's stop behaviour: the first signal requests a stop, the second aborts."""

    def __init__(self, asgi: OuterMiddleware, app: App, threads: int) -> None:
        """`threads`: how many requests may use the database at once."""
        super().__init__(
            uvicorn.Config(
                asgi,
                http=RequestDeadline,
                # Named explicitly, so that nothing depends on which packages are installed.
                loop="asyncio",
                ws="none",
                log_config=None,
                # Start and stop are logged by us; requests are logged in the middleware, without query strings.
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=math.ceil(app.settings.stop_seconds),
            )
        )
        self._app, self._threads = app, threads
        self._asked_at: float | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replaces uvicorn's version, which raises the signals again afterwards and so ends the process too early."""
        yield

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            # Only the main thread receives signals; elsewhere, the caller sets `should_exit` or the app's `stop`.
            yield
            return
        before = {signals: signal.signal(signals, self._heard) for signals in _SIGNALS}
        try:
            yield
        finally:
            for signal_, handler in before.items():
                signal.signal(signal_, handler)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        # May interrupt the main thread while it holds a lock, so it takes none: the events are set elsewhere.
        if self.force_exit:
            # A third signal: aborting takes too long as well, for example because a database server does not answer.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = self._threads
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._app.stop.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._asked_at = time.monotonic()
        self._app.stop.set()
        await super().shutdown(sockets)

    def wait_for(self, engine: Embedded) -> bool:
        """Let the engine finish in the rest of the time that requests and visits share; false if it was aborted."""
        elapsed = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        with ThreadPoolExecutor(1) as aside:
            stopped = aside.submit(engine.stop, max(0.0, self._app.settings.stop_seconds - elapsed))
            while not stopped.done():
                if self.force_exit:
                    self._app.cut.set()
                wait([stopped], timeout=_LOOK_SECONDS)
        return stopped.result()


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there. Port 0: any free port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(
            "{host!r} is not an address to listen on: {why}", "127.0.0.1 is the usual one", host=host, why=str(error)
        ) from error
    with listener:
        # A port that the last process has just released may be reused; one with a listener may not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        yield listener


def _cannot_listen(host: str, port: int, error: OSError) -> CatchmentError:
    where = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        helps = "perhaps another catchment; choose another port with --port or CATCHMENT_PORT (0: any free one)"
        return Conflict("another program already listens on {where}", helps, where=where)
    if error.errno == errno.EACCES:
        return InvalidInput(
            "this user has no permission to listen on {where}", "any user can listen on ports from 1024 up", where=where
        )
    return InvalidInput(
        "cannot listen on {where}: {why}", "127.0.0.1 is the usual address", where=where, why=error.strerror
    )


def _announce(announce: Announce, context: WebContext, host: str, port: int) -> None:
    address = f"http://{reachable(host)}:{port}"
    announce(f"catchment listens on {address}")
    announce(f"open in a browser: {address}/login?token={context.sessions.token}")
    key = context.keys.first(context.app.clock.now())
    if key is not None:
        announce(f"key for the API, shown only this once: {key}")
    if not any(context.app.store.sources.counts().values()):
        announce(
            as_typed(
                "there are no sources yet: `catchment sources import --starter` adds a dozen to begin with, "
                "`catchment sources add ADDRESS` one of your own"
            )
        )
