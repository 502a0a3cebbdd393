"""Builds the FastAPI application: routes, error handlers and the OpenAPI description."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Match

from catchment import __version__
from catchment.errors import CatchmentError
from catchment.logs import logger
from catchment.web.api import credentials, events, health, items, runs, settings, sources, spending, tasks
from catchment.web.api.errors import failure_of
from catchment.web.api.schemas.common import failure
from catchment.web.dependencies import WebContext
from catchment.web.middleware import OuterMiddleware, failed
from catchment.web.pages import audits as audits_page
from catchment.web.pages import items as items_page
from catchment.web.pages import live, login, notifications, sources_new, watches
from catchment.web.pages import runs as runs_page
from catchment.web.pages import settings as settings_page
from catchment.web.pages import sources as sources_page
from catchment.web.pages import spending as spending_page
from catchment.web.pages import tasks as tasks_page
from catchment.web.pages.session import failure_page, is_for_a_person

log = logger(__name__)

WHAT = """\
The JSON API of catchment. Times are ISO 8601 with offset, in UTC; unknown values are null, never 0.

Lists are `{"items": […], "next": …}`; pass `next` as `after` to get the next page. All errors have the same form,
`{"error": {"code", "message", "retryable"}, "meta": {"request_id"}}`. To find your request in the log, send your own
`X-Request-ID`; the answer repeats it.
"""

# Only documents the key: the check is in the middleware around the whole application, before anything is read.
_KEY = [
    Security(HTTPBearer(auto_error=False, scheme_name="Bearer", description="A key of this catchment.")),
    Security(APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="X-API-Key", description="The same key.")),
]
_FAILURES = {
    **failure(400, "Invalid input; `field` names the invalid part."),
    **failure(401, "API key missing or unknown."),
    **failure(429, "Too many wrong API keys from this address; `Retry-After` says how long to wait."),
    **failure(500, "Internal error; see the log."),
    **failure(503, "The database is unavailable."),
}
GUARDED = [part.router for part in (sources, items, runs, spending, credentials, events, settings, tasks)] + [
    health.metrics_router
]
_PAGE_PARTS = (
    login,
    items_page,
    sources_new,
    sources_page,
    audits_page,
    runs_page,
    live,
    watches,
    notifications,
    tasks_page,
    spending_page,
    settings_page,
)
PAGES = [part.router for part in _PAGE_PARTS]


def application(context: WebContext, hosts: frozenset[str] | None) -> OuterMiddleware:
    """The API and the pages of one deployment."""
    guarded = ("/api",) if context.app.settings.is_metrics_open else ("/api", "/metrics")
    return OuterMiddleware(described(), context, hosts, guarded)


@cache
def described() -> FastAPI:
    """The routes with parameters and responses. Building them is slow, and they are stateless: one per process."""
    app = FastAPI(
        title="catchment",
        version=__version__,
        summary="A complete, deduplicated, versioned copy of the public conversations you follow",
        description=WHAT,
        # FastAPI's own documentation pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in GUARDED:
        app.include_router(router, dependencies=_KEY, responses=_FAILURES)
    # Without a key: the health check, and the pages, which have their own sign-in.
    app.include_router(health.router)
    for router in PAGES:
        app.include_router(router, include_in_schema=False)
    for error in (CatchmentError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(error, _answer_failure)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


async def _answer_failure(request: Request, error: Exception) -> Response:
    failure = failure_of(error)
    if failure.status == 405:
        # FastAPI only knows the methods of the first matching function.
        routes = [route for router in (*GUARDED, health.router, *PAGES) for route in router.routes]
        matching = [route for route in routes if route.matches(request.scope)[0] != Match.NONE]
        methods = {method for route in matching for method in getattr(route, "methods", ())}
        failure = failure.replace(headers={"Allow": ", ".join(sorted(methods))})
    request_id = request.state.request_id
    if failure.status >= 500 and isinstance(error, CatchmentError) and not error.is_logged:
        # Unexpected errors are logged in the middleware, with their traceback.
        log.error("a request failed", path=request.url.path, code=error.code, error=str(error))
    if is_for_a_person(request, error):
        return await run_in_threadpool(failure_page, request, failure, request_id)
    return failed(failure, request_id)


def _description(app: FastAPI) -> dict[str, Any]:
    """FastAPI's OpenAPI description without its schema for invalid requests: ours are 400, like all errors."""
    if app.openapi_schema is None:
        description = FastAPI.openapi(app)
        for path in description["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            description["components"]["schemas"].pop(name, None)
        app.openapi_schema = description
    return app.openapi_schema
