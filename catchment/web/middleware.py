"""ASGI middleware for every request: request id, Host check, API key, body size limit, security headers."""

from __future__ import annotations

import asyncio
import re
import time
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catchment import logs
from catchment.errors import CatchmentError
from catchment.web.api.errors import INTERNAL, NO_KEY, TOO_LARGE, Failure, failure_of, too_many_tries
from catchment.web.auth import is_loopback
from catchment.web.dependencies import WebContext

log = logs.logger(__name__)

MOST_BYTES = 1_000_000
CSP = "Content-Security-Policy"
SAFE_HEADERS = {
    CSP: (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

WITH_IMAGES = SAFE_HEADERS[CSP].replace("img-src data:", "img-src data: https: http:")
"""The policy of a page that shows images of other sites, at the user's wish."""


class OuterMiddleware:
    """The outermost layer. It wraps all of FastAPI, so that even a 500 has these headers."""

    def __init__(
        self, app: ASGIApp, context: WebContext, hosts: frozenset[str] | None, guarded: tuple[str, ...] = ("/api",)
    ) -> None:
        """`guarded`: path prefixes that need a key."""
        self._app, self._context, self._hosts, self._guarded = app, context, hosts, guarded
        self.cut_count = 0
        """How many requests were aborted by a stop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, request_id_from(headers.get("x-request-id")))
        scope.setdefault("state", {}).update(request_id=answer.request_id, context=self._context)
        with logs.bound(request_id=answer.request_id):
            started = time.monotonic()
            await self._answer(scope, headers, receive, answer)
            log.debug(
                "answered",
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                milliseconds=round((time.monotonic() - started) * 1000, 1),
            )

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, answer: _Answer) -> None:
        try:
            failure = await self._refusal(scope, headers)
            app = failed(failure, answer.request_id) if failure else self._app
            await app(scope, _Bounded(receive), answer)
        except asyncio.CancelledError:
            self.cut_count += 1
            raise
        except ClientDisconnect:
            log.debug("client disconnected before the request was complete", path=scope["path"])
        except Exception:
            # Any exception of a handler ends here: in the log, and as a plain 500.
            log.exception("a request failed", path=scope["path"])
            if not answer.status:
                await failed(INTERNAL, answer.request_id)(scope, receive, answer)

    async def _refusal(self, scope: Scope, headers: Headers) -> Failure | None:
        """Why the request is refused unread; None if it is accepted."""
        path = scope["path"]
        if self._hosts is not None and (name := host_name(headers.get("host", ""))) not in self._hosts:
            # DNS rebinding: a site on the internet may let its own name point to this machine; the Host header shows
            # that name.
            return Failure(400, "WRONG_HOST", f"this server does not answer to {name[:100]!r} — use http://127.0.0.1")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > MOST_BYTES:
            return TOO_LARGE
        if any(path == text or path.startswith(f"{text}/") for text in self._guarded):
            return await self._keyless(headers, address_of(scope))
        return None

    async def _keyless(self, headers: Headers, address: str) -> Failure | None:
        key = key_in(headers)
        if not key:
            return NO_KEY
        try:
            checked = await run_in_threadpool(self._context.guard.check_key, key, address)
            if checked.is_valid:
                return None
            return too_many_tries(checked.wait_seconds) if checked.wait_seconds else NO_KEY
        except CatchmentError as error:
            if not error.is_logged:
                log.error("a key cannot be checked", code=error.code, error=str(error))
            return failure_of(error)


class _Answer:
    """Forwards a response, with the headers that every response has."""

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
                # Only a page that shows images of other sites has its own policy.
                if name != CSP or headers.get(CSP) != WITH_IMAGES:
                    headers[name] = value
        await self._send(message)


class _Bounded:
    """Forwards a body up to the size limit: not every request declares its length."""

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


def request_id_from(header: str | None) -> str:
    """The client's request id if it is safe for a log line, else a new one."""
    return re.sub(r"[^A-Za-z0-9._:-]", "", header or "")[:64] or uuid4().hex


def address_of(scope: Scope) -> str:
    """The client's address."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def key_in(headers: Headers) -> bytes:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    # Headers arrive decoded as Latin-1; this restores the bytes that were sent.
    return key.encode("latin-1")


def hosts_for(host: str) -> frozenset[str] | None:
    """The host names that a server bound to this address accepts; None accepts any, where others reach it by their own
    names."""
    return frozenset(("localhost", "127.0.0.1", "::1", host.lower())) if is_loopback(host) else None


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty if it is invalid."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""
