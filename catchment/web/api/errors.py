"""Error responses: maps exceptions to HTTP statuses, codes and the JSON format of all errors."""

from __future__ import annotations

from collections.abc import Mapping
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
from catchment.installation import as_typed
from catchment.messages import Message
from catchment.model import Record
from catchment.store.sources.tasks import TaskRunning

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
"""A class that is not listed has the status of its nearest base class."""

HTTP_CODES = {400: "INVALID_INPUT", 401: "UNAUTHORIZED", 413: "TOO_LARGE"}
"""Where the code is not simply the name of the status."""


class AlreadyFollowed(Conflict):
    """The target already has a source; the message names it."""

    def __init__(self, what: str, existing_id: int) -> None:
        super().__init__(what)
        self.existing_id = existing_id


class InvalidRequest(RequestValidationError):
    """A request that does not have its form, and what else is wrong with it."""

    def __init__(self, invalid: RequestValidationError, *others: InvalidInput) -> None:
        super().__init__(invalid.errors(), body=invalid.body)
        self.others = others


class FieldProblem(Record, frozen=True):
    """What is wrong with a part of a request."""

    field: str
    message: str


class Failure(Record, frozen=True):
    """The content of an error response."""

    status: int
    code: str
    message: str
    retryable: bool = False
    field: str | None = None
    existing_id: int | None = None
    task_id: str | None = None
    fields: tuple[FieldProblem, ...] = ()
    """Of a request with several wrong parts: each of them."""
    headers: dict[str, str] = {}
    translatable: Message | None = None
    """The message with its parameters apart, for pages in another language."""

    def body(self, request_id: str) -> dict[str, dict[str, Any]]:
        error = {"code": self.code, "message": as_typed(self.message), "retryable": self.retryable}
        error |= {"field": self.field} if self.field is not None else {}
        error |= (
            {"fields": [{"field": wrong.field, "message": wrong.message} for wrong in self.fields]}
            if self.fields
            else {}
        )
        error |= {"existing_id": self.existing_id} if self.existing_id is not None else {}
        error |= {"task_id": self.task_id} if self.task_id is not None else {}
        return {"error": error, "meta": {"request_id": request_id}}


def too_many_tries(seconds: int) -> Failure:
    """The response to repeated wrong keys or links."""
    message = f"too many wrong API keys or sign-in links from this address — try again in {seconds} seconds"
    return Failure(429, "TOO_MANY_TRIES", message, retryable=True, headers={"Retry-After": str(seconds)})


NO_KEY = Failure(
    401,
    HTTP_CODES[401],
    "this needs a key — send `Authorization: Bearer KEY`; the first key was shown when `catchment serve` first started",
    headers={"WWW-Authenticate": "Bearer"},
)
INTERNAL = Failure(500, "INTERNAL", "something went wrong here — the log says what, under this request id")
TOO_LARGE = Failure(413, HTTP_CODES[413], "the body is larger than anything this API takes")


def failure_of(error: Exception) -> Failure:
    """An exception as an error response. An unexpected one reveals no internals."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        code = HTTP_CODES.get(error.status_code, phrase.upper().replace(" ", "_"))
        detail = str(error.detail or phrase)
        return Failure(error.status_code, code, _FRAMEWORK.get(detail, detail), headers=dict(error.headers or {}))
    if not isinstance(error, CatchmentError):
        return INTERNAL
    status = next(STATUSES[cls] for cls in type(error).__mro__ if cls in STATUSES)
    if isinstance(error, StoreError):
        # The exception's own text contains the database's location.
        message = "the database cannot do this now — the log says why, under this request id"
        return Failure(status, error.code, message, error.retryable)
    if status == 500:
        return INTERNAL
    field = error.field if isinstance(error, InvalidInput) else None
    existing_id = error.existing_id if isinstance(error, AlreadyFollowed) else None
    task_id = error.task_id if isinstance(error, TaskRunning) else None
    return Failure(
        status, error.code, str(error), error.retryable, field, existing_id, task_id, translatable=error.message
    )


# Our texts for pydantic's error types; braces hold the values that it reports about the rule.
_WRONG: dict[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is unknown here; see /openapi.json for what is taken",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters at most",
    "string_pattern_mismatch": "does not have the form that it must have: {pattern}",
    "too_short": "must have {min_length} values or more",
    "too_long": "must have {max_length} values at most",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "greater_than": "must be more than {gt}",
    "less_than": "must be less than {lt}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
}
# By the start of the type, where several mean the same.
_WRONG_TYPE = {
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "string": "must be a text",
    "list": "must be a list",
    "dict": "must be an object",
    "model": "must be an object",
    "finite": "must be a number",
}


def _invalid(error: RequestValidationError) -> Failure:
    """Every validation error. The given values are not repeated: they may be long, or a secret."""
    first = error.errors()[0]
    where, *names = first["loc"]
    if first["type"] == "json_invalid":
        return Failure(400, HTTP_CODES[400], f"the body is not JSON, from character {names[0]} on")
    if not names:
        message = _wrong(first["type"], first.get("ctx", {}))
        return Failure(400, HTTP_CODES[400], f"the {where} {message} — send JSON as application/json")
    # A field that may have one of several forms has an error for each; the first is that of its usual form.
    problems: dict[str, str] = {}
    for wrong in error.errors():
        field = ".".join(str(part) for part in wrong["loc"][1:])
        problems.setdefault(field, f"{field} {_wrong(wrong['type'], wrong.get('ctx', {}))}")
    for other in error.others if isinstance(error, InvalidRequest) else ():
        problems.setdefault(other.field or "", str(other))
    fields = tuple(FieldProblem(field, as_typed(message)) for field, message in problems.items())
    message = "; ".join(problems.values())
    return Failure(400, HTTP_CODES[400], message, field=fields[0].field, fields=fields if len(fields) > 1 else ())


def _wrong(sort: str, rule: Mapping[str, Any]) -> str:
    if sort == "value_error":
        # The text of our own validators.
        return f"is {rule['error']}"
    if sort == "string_too_short" and rule["min_length"] == 1:
        return "must not be empty"
    if sort in _WRONG:
        values = {name: str(value).replace("'", "") for name, value in rule.items()}
        if "expected" in values:
            values["expected"] = values["expected"].replace(" or ", ", ")
        return _WRONG[sort].format(**values)
    return next((words for begin, words in _WRONG_TYPE.items() if sort.startswith(begin)), "cannot be used as it is")


NO_SUCH_ADDRESS = "no such endpoint — see /openapi.json"
# Our texts for the web framework's own errors.
_FRAMEWORK = {
    "Not Found": NO_SUCH_ADDRESS,
    "Method Not Allowed": "this method is not allowed here — the Allow header names those that are",
    "There was an error parsing the body": "the body cannot be read — send JSON as application/json, in UTF-8",
}
