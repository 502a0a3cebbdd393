"""Errors that come in the place of data: as JSON that says so, or as a page for people."""

from __future__ import annotations

from typing import Any

import msgspec

from catchment.errors import PlatformError, Refused, ServerTrouble, SlowDown
from catchment.model import Answer, Blame, Refusal

LONGEST = 200
LIMITED = ("rate limit", "too many", "quota")
ON_THE_WAY = (
    "something on the way answers in the place of Hacker News: look at the network, a proxy, or "
    "CATCHMENT_HACKERNEWS_BASE_URL"
)


class Complaint(msgspec.Struct):
    """`message` is Algolia's word for an error, `error` the other service's; a page of hits has neither."""

    message: Any = None
    error: Any = None
    hits: msgspec.Raw | None = None


def refusal(answer: Answer) -> Refusal | None:
    """None where the answer is one, and where its status says everything."""
    if answer.status == 429 or answer.status >= 500 or answer.status == 404:
        return None
    beginning = answer.body[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if answer.status < 300 and beginning == b"<":
        return Refusal(Refused("a page for people came where data was expected", ON_THE_WAY), Blame.HOST)
    words = _complaint(answer.body) if beginning == b"{" else None
    if words is None and answer.status == 401:
        return Refusal(Refused("a login is asked for, where none is needed", ON_THE_WAY), Blame.HOST)
    return None if words is None else _refused(answer.status, words)


def _complaint(body: bytes) -> str | None:
    try:
        told = msgspec.json.decode(body, type=Complaint)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    words = next((one for one in (told.message, told.error) if isinstance(one, str) and one.strip()), None)
    return " ".join(words.split())[:LONGEST] if words and told.hits is None else None


def _refused(status: int, words: str) -> Refusal:
    what = f"the service answers: {words}"
    if any(sign in words.lower() for sign in LIMITED):
        return Refusal(SlowDown(what, "it is asked again later"), Blame.HOST)
    error: PlatformError
    if status < 300:
        error = ServerTrouble(what, "it is asked again")
    else:
        error = Refused(what, "check the target: a search may have words that the service does not take")
    return Refusal(error, Blame.REQUEST)
