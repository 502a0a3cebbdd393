"""What holds for every request, whatever it asks: an id, the right host, a key, a bounded body, safe headers."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catchment import logs
from catchment.api.failures import INTERNAL, NO_KEY, TOO_LARGE, Failure, failure_of
from catchment.api.keys import Keys
from catchment.errors import CatchmentError

log = logs.logger(__name__)

MOST_BYTES = 1_000_000
SAFE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Around:
    """The outermost layer. It lies around FastAPI as a whole, so that not even a 500 leaves without these headers."""

    def __init__(
        self, app: ASGIApp, keys: Keys, hosts: frozenset[str] | None, guarded: tuple[str, ...] = ("/api",)
    ) -> None:
        """`guarded` are the paths that need a key, with all below them."""
        self._app, self._keys, self._hosts, self._guarded = app, keys, hosts, guarded
        self.cut_count = 0
        """How many requests were cut off by a stop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, request_id_from(headers.get("x-request-id")))
        scope.setdefault("state", {})["request_id"] = answer.request_id
        with logs.bound(request_id=answer.request_id):
            began = time.monotonic()
            await self._answer(scope, headers, receive, answer)
            log.debug(
                "answered",
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                milliseconds=round((time.monotonic() - began) * 1000, 1),
            )

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, answer: _Answer) -> None:
        try:
            failure = await self._refusal(scope["path"], headers)
            app = failed(failure, answer.request_id) if failure else self._app
            await app(scope, _Bounded(receive), answer)
        except asyncio.CancelledError:
            self.cut_count += 1
            raise
        except Exception:
            # Whatever a handler raises, it ends here: in the log, and as a plain 500.
            log.exception("a request failed", path=scope["path"])
            if not answer.status:
                await failed(INTERNAL, answer.request_id)(scope, receive, answer)

    async def _refusal(self, path: str, headers: Headers) -> Failure | None:
        """Why the request is not even looked at; None: it is."""
        if self._hosts is not None and (name := host_name(headers.get("host", ""))) not in self._hosts:
            # A page on the internet may let its own name point to this machine; the name gives it away.
            return Failure(400, "WRONG_HOST", f"this server does not answer to {name[:100]!r} — use http://127.0.0.1")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > MOST_BYTES:
            return TOO_LARGE
        if any(path == one or path.startswith(f"{one}/") for one in self._guarded):
            return await self._keyless(headers)
        return None

    async def _keyless(self, headers: Headers) -> Failure | None:
        key = key_in(headers)
        if not key:
            return NO_KEY
        try:
            return None if await run_in_threadpool(self._keys.is_valid, key) else NO_KEY
        except CatchmentError as error:
            log.error("a key cannot be checked", code=error.code, error=str(error))
            return failure_of(error)


class _Answer:
    """Sends an answer on, with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self.request_id = send, request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.request_id
            headers.setdefault("Cache-Control", "no-store")
            for name, value in SAFE_HEADERS.items():
                headers[name] = value
        await self._send(message)


class _Bounded:
    """Passes a body on, as long as it is not too large: not every request says its length."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > MOST_BYTES:
            raise HTTPException(TOO_LARGE.status, TOO_LARGE.message)
        return message


def failed(failure: Failure, request_id: str) -> JSONResponse:
    return JSONResponse(failure.body(request_id), failure.status, failure.headers)


def request_id_from(given: str | None) -> str:
    """The caller's own id, as far as it is fit for a log line; else a new one."""
    return re.sub(r"[^A-Za-z0-9._:-]", "", given or "")[:64] or uuid4().hex


def key_in(headers: Headers) -> bytes:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    # Header bytes come decoded as Latin-1; back to what was sent.
    return key.encode("latin-1")


def hosts_for(host: str) -> frozenset[str] | None:
    """The names that a server bound to this address answers to; None: to any, where others must reach it by theirs."""
    return frozenset(("localhost", "127.0.0.1", "::1", host.lower())) if _is_loopback(host) else None


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty for what is none."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
