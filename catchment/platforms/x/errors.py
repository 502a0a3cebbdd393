"""Errors of X and of TwitterAPI.io: by status, and inside answers whose status says that all is well."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from catchment.errors import (
    LoginNeeded,
    Missing,
    NetworkError,
    OutOfCredits,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
)
from catchment.messages import Message, message
from catchment.model import Answer, FailureScope, Refusal, Request, RetryWith
from catchment.platforms._common.coercion import text
from catchment.platforms._common.http import is_page
from catchment.platforms.x import parser, requests
from catchment.platforms.x.shapes import Json, decoded_documents, objects

AGAIN = "it will be requested again"
_LONGEST_WORDS = 200
_FREE_TIER_WAIT = timedelta(seconds=5)
_CAPPED_FOR = timedelta(days=1)
"""A monthly cap is lifted when the month ends, or by the operator: looked at once a day."""
_SOON = RetryWith(wait_seconds=1.0, growth=2.0, most_retries=3)
"""After 1, 2 and 4 seconds: too many requests, and no word on how long to wait. X has a limit per second, too."""
_NO_USER = re.compile(r"user (?:was )?not found|no such user|(?:could not|cannot|can't) find user|user.{0,20}not exist")
_NOT_AUTHORIZED = re.compile(r"not authorized to (?:see|view)|not-authorized-for-resource|protected")
_KEY_WORDS = re.compile(r"api.?key|unauthori[sz]ed|bearer|token|client-(?:forbidden|not-enrolled)|access level")


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the error; None where the answer is valid, and where its status says everything."""
    documents, _ = decoded_documents(answer.body)
    body = _decisive(documents)
    words = _words(body, request)
    if answer.status == 402 or (answer.status >= 300 and "credits is not enough" in words.lower()):
        return _out_of_credits(words, request)
    if answer.status == 429:
        return _too_many(answer, body, words)
    if answer.status in (401, 403):
        return _forbidden(answer, body, words, request)
    if answer.status >= 500:
        return None
    if answer.status >= 300:
        return _refused(answer.status, words, request)
    return _inside(answer, body, words, bool(documents), request)


def _decisive(documents: list[Any]) -> Json:
    """Returns the document that says whether the answer is an error: of several lines, the first one with data."""
    lines = objects(documents)
    return next((line for line in lines if "data" in line), lines[0] if lines else {})


def _inside(answer: Answer, body: Json, words: str, is_whole: bool, request: Request) -> Refusal | None:
    """Returns the error in an answer with status 200."""
    if not answer.body.strip():
        return Refusal(ServerTrouble("the answer is empty", AGAIN))
    if is_page(answer.body):
        return Refusal(Refused("a web page was returned instead of data", "check the base URL of the service"))
    if not is_whole:
        return Refusal(NetworkError("the answer is truncated", AGAIN))
    if text(body.get("status")) == "error":
        if "credit" in words.lower() and "not enough" in words.lower():
            return _out_of_credits(words, request)
        return Refusal(_about_user(words, request) or _said(words or "error", request))
    if "data" in body or not objects(body.get("errors")):
        return _of_profile(body, request)
    # Errors beside data are about single tweets; without any data, they may be about what was asked for. A page whose
    # tweets were all left out is one, too.
    is_about_asked = any(_is_about_asked(error, request) for error in objects(body.get("errors")))
    error = _about_user(words, request) if is_about_asked else None
    if error is None and isinstance(body.get("meta"), dict):
        return None
    return Refusal(error or _said(words, request))


def _is_about_asked(error: Json, request: Request) -> bool:
    """Whether an error of X's own API may be about the user or list that was asked for, and not about something that a
    tweet refers to: a tweet, a medium, somebody who is mentioned."""
    kind, parameter = text(error.get("resource_type")), text(error.get("parameter")) or ""
    if kind not in (None, "user", "list") or "." in parameter or parameter.endswith("_id"):
        return False
    asked = {str(request.state.get(name, "")).lower() for name in ("number", "user_id", "name")}
    resource = text(error.get("resource_id"))
    return resource is None or resource.lower() in asked


def _of_profile(body: Json, request: Request) -> Refusal | None:
    """Returns why the user of a profile cannot be read."""
    data = body.get("data")
    if request.step != requests.PROFILE:
        return None
    name = str(request.state.get("name", ""))
    if isinstance(data, dict) and data:
        error = parser.unreachable(data, name)
        return Refusal(error) if error else None
    return Refusal(parser.no_such_user(name)) if "data" in body else None


def _about_user(words: str, request: Request) -> PlatformError | None:
    """Returns the error if the words say what is wrong with the user, or the list."""
    text, name = words.lower(), str(request.state.get("name", ""))
    if request.state.get("kind") == requests.LIST:
        return _no_such_list(request) if "not find" in text or "not found" in text else None
    if not name:
        return None
    if "suspend" in text:
        return parser.suspended(name)
    if _NOT_AUTHORIZED.search(text):
        return parser.protected(name)
    is_missing = _NO_USER.search(text) or (request.step == requests.PROFILE and "not found" in text)
    return parser.no_such_user(name) if is_missing else None


def _no_such_list(request: Request) -> Missing:
    number = str(request.state.get("number", ""))
    return Missing("there is no list {number} on X, or it is private", "check its number", number=number)


def _said(words: str, request: Request) -> Refused:
    return Refused(
        "{service} says: {words}",
        "check the source's target and settings",
        service=_title(request),
        words=words[:_LONGEST_WORDS],
    )


def _title(request: Request) -> str:
    return "TwitterAPI.io" if request.service == requests.TWITTERAPI_IO else "X"


def _out_of_credits(words: str, request: Request) -> Refusal:
    error = OutOfCredits(
        "the account at {service} is out of credits",
        "top up the account; its sources wait until then",
        service=_title(request),
    )
    return Refusal(error, blames=FailureScope.CREDENTIAL)


def _too_many(answer: Answer, body: Json, words: str) -> Refusal:
    kind = f"{body.get('title') or ''} {body.get('type') or ''}".lower()
    if "usagecapexceeded" in kind.replace(" ", "") or "usage-capped" in kind:
        capped = OutOfCredits(
            "the monthly cap of X's API is used up",
            "raise it at X, or wait for the next month",
            retry_at=answer.answered_at + _CAPPED_FOR,
        )
        return Refusal(capped, blames=FailureScope.CREDENTIAL)
    # Its window's end is in the headers; TwitterAPI.io has none, and answers free accounts every five seconds.
    is_free = "every 5 seconds" in words.lower() and "retry-after" not in answer.headers
    retry_at = answer.answered_at + _FREE_TIER_WAIT if is_free else None
    error = SlowDown("too many requests", "it will be requested again later", retry_at=retry_at)
    is_told = is_free or "retry-after" in answer.headers or answer.headers.get("x-rate-limit-remaining") == "0"
    return Refusal(error, blames=FailureScope.CREDENTIAL, cure=None if is_told else _SOON)


def _forbidden(answer: Answer, body: Json, words: str, request: Request) -> Refusal:
    kind = f"{words} {body.get('type') or ''} {body.get('reason') or ''}".lower()
    is_of_key = answer.status == 401 or request.service != requests.X or _KEY_WORDS.search(kind) is not None
    is_of_archive = request.step == requests.SEARCHED and request.state.get("is_recent") is False
    if answer.status == 403 and request.service == requests.X and is_of_archive:
        # The key is good for everything else: most accounts may search the last week only.
        return Refusal(
            Refused(
                "this account is not allowed to search posts of {service} older than a week",
                "a higher access level would allow it",
                service=_title(request),
            )
        )
    if answer.status == 403 and ("unsupported-authentication" in kind or "application-only" in kind):
        # The key of an app: good for everything that does not belong to a user.
        return Refusal(
            Refused(
                "{service} shows bookmarks only with the key of a user, and this one belongs to an app",
                "store the access token of a user (OAuth 2.0), and let the source name that credential",
                service=_title(request),
            )
        )
    if answer.status == 403 and not is_of_key:
        return Refusal(_about_user(words, request) or _said(words or "error 403", request))
    if request.credential is None:
        return Refusal(LoginNeeded("{service} requires a key", _add_key(request), service=_title(request)))
    error = LoginNeeded(
        "{service} does not accept this key", "renew the key, and store the new one", service=_title(request)
    )
    return Refusal(error, blames=FailureScope.CREDENTIAL)


def _add_key(request: Request) -> Message:
    return message("add one: `catchment credentials add {platform} NAME`", platform=request.service or requests.X)


def _refused(status: int, words: str, request: Request) -> Refusal | None:
    error = _about_user(words, request)
    if error is None and status == 404 and request.step == requests.PROFILE:
        error = parser.no_such_user(str(request.state.get("name", "")))
    if error is None and status == 404 and request.state.get("kind") == requests.LIST:
        error = _no_such_list(request)
    if error is None and words and status != 404:
        error = _said(words, request)
    return Refusal(error) if error else None


def _words(body: Json, request: Request) -> str:
    """Returns what the service itself says about the error: of several, about what was asked for."""
    errors: list[Any] = sorted(objects(body.get("errors")), key=lambda error: not _is_about_asked(error, request))
    inner = [error.get(name) for error in errors[:1] for name in ("detail", "message", "title")]
    values = (body.get("detail"), *inner, body.get("msg"), body.get("message"), body.get("title"), body.get("error"))
    return next((" ".join(value.split()) for value in values if text(value)), "")
