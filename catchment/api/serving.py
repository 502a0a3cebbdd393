"""Serving: one process with the API, the pages and, unless told otherwise, the embedded engine."""

from __future__ import annotations

import errno
import ipaddress
import math
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType

import uvicorn

from catchment import logs
from catchment.api.app import application
from catchment.api.around import Around, hosts_for
from catchment.api.door import Door, open_door
from catchment.engines.embedded import Embedded
from catchment.errors import CatchmentError, Conflict, InvalidInput
from catchment.shop import Shop

log = logs.logger(__name__)

Announce = Callable[[str], None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_SECONDS = 0.05


def serve(
    shop: Shop, host: str, port: int, *, collects: bool, announce: Announce, demo_rate: float | None = None
) -> int:
    """Serve until a signal comes, or the shop is told to stop. 0: everything that was under way could finish; 1:
    something was cut off.

    `announce` gets the lines that a person should see once: where we listen, the link, the first key.
    """
    with listening(host, port) as listener:
        door = open_door(shop, collects=collects, demo_rate=demo_rate)
        app = application(door, hosts_for(host), _threads(shop, collects))
        server = Server(app, shop)
        with server.on_signals():
            engine = Embedded(shop) if collects else None
            if engine:
                engine.start()
            try:
                _announce(announce, door, host, listener.getsockname()[1])
                server.run(sockets=[listener])
            finally:
                is_clean = server.wait_for(engine) if engine else True
                shop.cut.set()
    log.info("stopped", is_clean=is_clean, requests_cut_off=app.cut_count)
    return 0 if is_clean and not app.cut_count else 1


class Server(uvicorn.Server):
    """uvicorn, stopping as the rest of the product does: the first signal asks for an end, the second cuts."""

    def __init__(self, app: Around, shop: Shop) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                # Named, so that nothing depends on what else happens to be installed.
                http="h11",
                loop="asyncio",
                ws="none",
                log_config=None,
                # That it starts and ends is said by us; requests are logged around the application, without queries.
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=math.ceil(shop.settings.stop_seconds),
            )
        )
        self._shop = shop
        self._asked_at: float | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Not uvicorn's way, which raises them again afterwards and so ends the process before its time."""
        yield

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            # Only the main thread is told; elsewhere, whoever started us sets `should_exit`, or the shop's `stop`.
            yield
            return
        before = {one: signal.signal(one, self._heard) for one in _SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        # It may interrupt the main thread while that holds a lock, so it takes none: the events are set further down.
        if self.force_exit:
            # Even cutting takes too long for them, say because a database server does not answer: they mean it.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.force_exit = self.should_exit
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._shop.stop.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._asked_at = time.monotonic()
        self._shop.stop.set()
        await super().shutdown(sockets)

    def wait_for(self, engine: Embedded) -> bool:
        """Let the engine finish, in what is left of the time that requests and visits share; false: it was cut."""
        gone = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        with ThreadPoolExecutor(1) as aside:
            stopped = aside.submit(engine.stop, max(0.0, self._shop.settings.stop_seconds - gone))
            while not stopped.done():
                if self.force_exit:
                    self._shop.cut.set()
                wait([stopped], timeout=_LOOK_SECONDS)
        return stopped.result()


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there. Port 0: any free one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"{host!r} is no address to listen on: {error}", "127.0.0.1 is the usual one") from error
    with listener:
        # A port that the last process left a moment ago may be taken again; one that somebody listens on may not.
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
        helps = "another catchment? Choose another with --port or CATCHMENT_PORT; 0 takes any free one"
        return Conflict(f"another program listens on {where} already", helps)
    if error.errno == errno.EACCES:
        return InvalidInput(f"this user may not listen on {where}", "ports from 1024 on are open to everyone")
    return InvalidInput(f"cannot listen on {where}: {error.strerror}", "127.0.0.1 is the usual address")


def _threads(shop: Shop, collects: bool) -> int:
    """How many requests may be worked on at once: each needs a connection, and the engine's hands have theirs."""
    return max(1, shop.store.database.pool_size - (shop.settings.concurrency if collects else 0))


def _announce(announce: Announce, door: Door, host: str, port: int) -> None:
    address = f"http://{_reachable(host)}:{port}"
    announce(f"catchment listens on {address}")
    announce(f"open in a browser: {address}/login?token={door.sessions.token}")
    key = door.keys.first(door.shop.clock.now())
    if key is not None:
        announce(f"key for the API, shown only this once: {key}")
    if not any(door.shop.store.sources.counts().values()):
        announce(
            "nothing is followed yet: `catchment sources import --starter` follows a dozen sources to begin with, "
            "`catchment sources add` one of your own"
        )


def _reachable(host: str) -> str:
    """How a browser on this machine reaches it; bound to all addresses, by the nearest."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)
