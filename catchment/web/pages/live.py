"""Server-sent events about work in progress: the only asynchronous route.

All streams share one database query a second. A stream ends when the server stops, when its session ends, and after a
while in any case (browsers reconnect automatically).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from catchment.errors import StoreError
from catchment.web.dependencies import MOST_LISTENERS, Activity, WebContext, WebContextDep, seen_in
from catchment.web.pages.render import Reader, live_view
from catchment.web.pages.session import TheReader

router = APIRouter()

_LOOK_SECONDS = 1.0
_STEP_SECONDS = 0.1
"""How soon a stream ends after the server received a stop signal."""
_QUIET_SECONDS = 15.0
"""The longest silence: a closed connection is noticed only by sending."""
_LONGEST_SECONDS = 600.0


@router.get("/live")
async def live(request: Request, context: WebContextDep, reader: TheReader) -> Response:
    if context.pulse.listeners >= MOST_LISTENERS:
        raise HTTPException(503, "too many pages are watching already: close one of them")
    cookie = request.cookies.get(context.sessions.cookie_name)
    stream = _events(context, reader, cookie)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _events(context: WebContext, reader: Reader, cookie: str | None) -> AsyncIterator[str]:
    before: Activity | None = None
    started = last_sent = time.monotonic()
    with context.pulse.listening():
        while True:
            activity = await _seen(context)
            if activity is not None and activity != before:
                message = live_view(reader.replace(now=context.app.clock.now()), activity)
                yield f"data: {msgspec.json.encode(message).decode()}\n\n"
                before, last_sent = activity, time.monotonic()
            elif time.monotonic() - last_sent > _QUIET_SECONDS:
                yield ": nothing new\n\n"
                last_sent = time.monotonic()
            if await _is_over(context, _LOOK_SECONDS) or time.monotonic() - started > _LONGEST_SECONDS:
                return
            if not await run_in_threadpool(_is_signed_in, context, cookie):
                return


def _is_signed_in(context: WebContext, cookie: str | None) -> bool:
    """Whether the session that opened the stream is still valid: signing out, here or elsewhere, ends the stream."""
    try:
        return context.sessions.find(cookie) is not None
    except StoreError:
        return True


async def _seen(context: WebContext) -> Activity | None:
    """The current activity; None if it is unknown, for example while the database is unavailable."""
    try:
        return await run_in_threadpool(context.pulse.seen, lambda: seen_in(context.app))
    except StoreError:
        return None


async def _is_over(context: WebContext, seconds: float) -> bool:
    """Wait this long, or until the server receives a stop signal; returns whether it was."""
    until = time.monotonic() + seconds
    while not context.app.stop.is_set() and time.monotonic() < until:
        await asyncio.sleep(_STEP_SECONDS)
    return context.app.stop.is_set()
