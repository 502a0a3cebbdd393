"""What is running at this moment, told to browsers as it changes: the one asynchronous path.

All who listen share one look at the database a second. A stream ends by itself when the server is told to stop, and
after a while in any case: browsers come back by themselves, and show their cookie again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from catchment import pages
from catchment.api.browsing.readers import TheReader
from catchment.api.door import Door, TheDoor
from catchment.api.pulse import MOST_LISTENERS, seen_in
from catchment.errors import StoreError
from catchment.pages import Reader

router = APIRouter()

_LOOK_SECONDS = 1.0
_STEP_SECONDS = 0.1
"""So soon after it was told to stop a stream ends."""
_QUIET_SECONDS = 15.0
"""So long nothing is said at most: whoever is gone is noticed only by talking to them."""
_LONGEST_SECONDS = 600.0


@router.get("/live")
async def live(door: TheDoor, reader: TheReader) -> Response:
    if door.pulse.listeners >= MOST_LISTENERS:
        raise HTTPException(503, "too many pages are watching already: close one of them")
    return StreamingResponse(_told(door, reader), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _told(door: Door, reader: Reader) -> AsyncIterator[str]:
    before: Any = None
    began = spoke = time.monotonic()
    with door.pulse.listening():
        while True:
            seen = await _seen(door)
            if seen is not None and seen != before:
                said = pages.live_told(reader.plus(now=door.shop.clock.now()), seen)
                yield f"data: {json.dumps(said, ensure_ascii=False)}\n\n"
                before, spoke = seen, time.monotonic()
            elif time.monotonic() - spoke > _QUIET_SECONDS:
                yield ": nothing new\n\n"
                spoke = time.monotonic()
            if await _is_over(door, _LOOK_SECONDS) or time.monotonic() - began > _LONGEST_SECONDS:
                return


async def _seen(door: Door) -> dict[str, Any] | None:
    """None: nothing is known, say because the database is away for a moment."""
    try:
        return await run_in_threadpool(door.pulse.seen, lambda: seen_in(door.shop))
    except StoreError:
        return None


async def _is_over(door: Door, seconds: float) -> bool:
    """Wait so long, or until the server is told to stop; whether it was."""
    until = time.monotonic() + seconds
    while not door.shop.stop.is_set() and time.monotonic() < until:
        await asyncio.sleep(_STEP_SECONDS)
    return door.shop.stop.is_set()
