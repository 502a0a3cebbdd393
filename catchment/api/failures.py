"""What went wrong, in the one shape that every answer has for it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from catchment.errors import (
    CatchmentError,
    Conflict,
    CredentialsExhausted,
    InvalidInput,
    LeaseLost,
    NotFound,
    PlatformError,
    Stopped,
    StoreError,
    TimedOut,
    VaultError,
)
from catchment.model import Record

STATUSES: dict[type[CatchmentError], int] = {
    CatchmentError: 500,
    InvalidInput: 400,
    NotFound: 404,
    Conflict: 409,
    LeaseLost: 409,
    VaultError: 503,
    StoreError: 503,
    Stopped: 503,
    PlatformError: 502,
    TimedOut: 504,
    CredentialsExhausted: 503,
}
"""A class that is not here has the status of the nearest one above it."""

HTTP_CODES = {400: "INVALID_INPUT", 401: "UNAUTHORIZED", 413: "TOO_LARGE"}
"""Where the code is not simply the name of the status."""


class Followed(Conflict):
    """It is followed already; says by which source."""

    def __init__(self, what: str, existing_id: int) -> None:
        super().__init__(what)
        self.existing_id = existing_id


class Failure(Record, frozen=True):
    """What an answer says about what went wrong."""

    status: int
    code: str
    message: str
    retryable: bool = False
    field: str | None = None
    existing_id: int | None = None
    headers: dict[str, str] = {}

    def body(self, request_id: str) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        for name in ("field", "existing_id"):
            if getattr(self, name) is not None:
                error[name] = getattr(self, name)
        return {"error": error, "meta": {"request_id": request_id}}


NO_KEY = Failure(
    401,
    HTTP_CODES[401],
    "this needs a key — send `Authorization: Bearer KEY`; the first key was shown when `catchment serve` first started",
    headers={"WWW-Authenticate": "Bearer"},
)
INTERNAL = Failure(500, "INTERNAL", "something went wrong here — the log says what, under this request id")
TOO_LARGE = Failure(413, HTTP_CODES[413], "the body is larger than anything this API takes")


def failure_of(error: Exception) -> Failure:
    """An error as the outside sees it. What nobody foresaw shows no inside."""
    if isinstance(error, CatchmentError):
        return _ours(error)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _of_http(error)
    return INTERNAL


def _ours(error: CatchmentError) -> Failure:
    status = next(STATUSES[one] for one in type(error).__mro__ if one in STATUSES)
    if isinstance(error, StoreError):
        # Its own text names the place of the database.
        message = "the database cannot do this now — the log says why, under this request id"
        return Failure(status, error.code, message, error.retryable)
    if status == 500:
        return INTERNAL
    named = error.field if isinstance(error, InvalidInput) else None
    existing_id = error.existing_id if isinstance(error, Followed) else None
    return Failure(status, error.code, str(error), error.retryable, named, existing_id)


def _invalid(error: RequestValidationError) -> Failure:
    """The first thing that is wrong. What was given is not repeated: it may be long, or a secret."""
    first = error.errors()[0]
    where, *names = first["loc"]
    if first["type"] == "json_invalid":
        return Failure(400, HTTP_CODES[400], f"the body is not JSON: {first['ctx']['error']} at character {names[0]}")
    name = ".".join(str(one) for one in names)
    message = str(first["msg"]).removeprefix("Value error, ")
    if not name:
        return Failure(400, HTTP_CODES[400], f"the {where}: {message} — send JSON as application/json")
    return Failure(400, HTTP_CODES[400], f"{name}: {message}", field=name)


def _of_http(error: HTTPException) -> Failure:
    phrase = HTTPStatus(error.status_code).phrase
    code = HTTP_CODES.get(error.status_code, phrase.upper().replace(" ", "_"))
    return Failure(error.status_code, code, str(error.detail or phrase), headers=dict(error.headers or {}))
