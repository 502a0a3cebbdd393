"""The application, put together: paths, failures, its own description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Match

from catchment import __version__
from catchment.api import (
    browsing,
    collector,
    credentials,
    forgetting,
    health,
    hot,
    items,
    prometheus,
    raw,
    records,
    searching,
    sources,
    tiers,
    watches,
    webhooks,
)
from catchment.api.around import Around, failed
from catchment.api.door import Door
from catchment.api.failures import failure_of
from catchment.api.shapes import Failed
from catchment.errors import CatchmentError
from catchment.logs import logger

log = logger(__name__)

WHAT = """\
Everything that catchment knows, for programs. Times are ISO 8601 with offset, in UTC; unknown is null, never 0.

Lists answer `{"items": […], "next": …}`; give `next` as `after` to get what follows. Every failure has one shape,
`{"error": {"code", "message", "retryable"}, "meta": {"request_id"}}`. Send `X-Request-ID` to find your request in the
log; it comes back in the answer.
"""

# Only described here: the check itself lies around the whole application, before anything is read or looked up.
_KEY = [
    Security(HTTPBearer(auto_error=False, scheme_name="Bearer", description="A key of this catchment.")),
    Security(APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="X-API-Key", description="The same key.")),
]
_FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": Failed, "description": "Something given is wrong; `field` says which part."},
    401: {"model": Failed, "description": "No key, or none that is known."},
    500: {"model": Failed, "description": "Something went wrong here; the log says what."},
    503: {"model": Failed, "description": "The database cannot do this now."},
}
_PARTS = (
    collector,
    sources,
    tiers,
    items,
    hot,
    searching,
    raw,
    records,
    credentials,
    watches,
    webhooks,
    forgetting,
    prometheus,
)
# Without a key: whether all is well, and the pages, which have a way in of their own.
_OPEN_PARTS = (health, browsing)


def application(door: Door, hosts: frozenset[str] | None, threads: int) -> Around:
    """All of it, ready to be served: `threads` requests at once may ask the database."""
    app = described(threads)
    app.state.door = door
    guarded = ("/api",) if door.shop.settings.is_metrics_open else ("/api", "/metrics")
    return Around(app, door.keys, hosts, guarded)


def described(threads: int = 1) -> FastAPI:
    """The paths and what they take and answer."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = threads
        yield

    app = FastAPI(
        title="catchment",
        version=__version__,
        summary="A complete, deduplicated, versioned copy of the public conversations you follow",
        description=WHAT,
        # FastAPI's own pages of documentation load scripts from another host.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    for part in _PARTS:
        app.include_router(part.router, dependencies=_KEY, responses=_FAILURES)
    for part in _OPEN_PARTS:
        app.include_router(part.router)
    for error in (CatchmentError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(error, _answer_failure)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


async def _answer_failure(request: Request, error: Exception) -> Response:
    failure = failure_of(error)
    if failure.status == 405:
        failure = failure.plus(headers={"Allow": _methods_of(request)})
    request_id = request.state.request_id
    if failure.status >= 500 and isinstance(error, CatchmentError):
        # What nobody foresaw is logged further out, with its traceback.
        log.error("a request failed", path=request.url.path, code=error.code, error=str(error))
    if browsing.is_for_a_person(request, error):
        return browsing.failure_page(request, failure, request_id)
    return failed(failure, request_id)


def _methods_of(request: Request) -> str:
    """What may be done with this path. FastAPI knows only what the first function there does."""
    routes = [route for part in (*_PARTS, health, *browsing.PARTS) for route in part.router.routes]
    matching = [route for route in routes if route.matches(request.scope)[0] != Match.NONE]
    return ", ".join(sorted({method for route in matching for method in getattr(route, "methods", ())}))


def _description(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, less its own shape for invalid requests: ours are 400, and look like all failures."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        for path in found["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
