"""Parameter types of the API: numbers that fit the database, texts that can be stored, cursors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, Field, Strict, WithJsonSchema

from catchment.clock import EPOCH
from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.text.dates import RELATIVE_TIME, asked_time

T = TypeVar("T")
LARGEST = 2**63 - 1
_DEEPEST = 8
_MOST_VALUES = 1_000


def path_id(what: str) -> Any:
    return Path(ge=1, le=LARGEST, description=f"The {what}'s id.", examples=[1])


SourceId = Annotated[int, path_id("source")]
ItemId = Annotated[int, path_id("item")]
RunId = Annotated[int, path_id("run")]
AuditId = Annotated[int, path_id("audit")]
ThreadId = Annotated[int, path_id("thread")]
GapId = Annotated[int, path_id("gap")]
WatchId = Annotated[int, path_id("watch")]
WebhookId = Annotated[int, path_id("webhook")]
NotificationId = Annotated[int, path_id("notification")]
CredentialId = Annotated[int, path_id("credential")]
SessionId = Annotated[int, path_id("session")]
OfSource = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only this source.")]
OfCategory = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=100,
        description="Only sources in this category (a folder in OPML); case does not matter.",
    ),
    AfterValidator(lambda text: keepable(text)),
]
_NEXT = "The cursor: `next` of the previous page."


def after(pattern: str, description: str = _NEXT) -> Any:
    """A cursor. The pattern is only documentation: an invalid cursor is refused later, with a better message."""
    return Query(alias="after", description=description, max_length=64, json_schema_extra={"pattern": pattern})


_NUMBER = "[0-9]{1,18}"
After = Annotated[str | None, after(f"^{_NUMBER}$")]
AfterKey = Annotated[str | None, after(f"^{_NUMBER}-{_NUMBER}$")]
AfterChange = Annotated[
    str,
    after(
        f"^{_NUMBER}(-{_NUMBER})?$", "The last change that you read: a change number, or `next` of the previous page."
    ),
]
AfterHit = Annotated[str | None, after(f"^({_NUMBER}_)?-?{_NUMBER}$")]
Name = Annotated[str | None, Query(pattern=r"^[a-z0-9_]{1,64}$")]


def _checked_time(text: str) -> str:
    asked_time(text).at(EPOCH)
    return text


# Parsed by our own rule: pydantic accepts `0` and `1e9` as times, too. It stays text until the clock is available.
AskedMoment = Annotated[
    str,
    AfterValidator(_checked_time),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "pattern": f"^{RELATIVE_TIME}$"}],
            "examples": ["2026-03-01T00:00:00Z", "yesterday", "2d"],
        }
    ),
]


def moment_of(asked: str | None, now: datetime) -> datetime | None:
    """The time that a parameter of this type means."""
    return None if asked is None else asked_time(asked).at(now)


def limit(most: int) -> Any:
    return Query(alias="limit", ge=1, le=most, description=f"The maximum number of results; up to {most}.")


def place(after: str | None) -> int | None:
    """The id after which a page starts."""
    if after is None:
        return None
    row_id = whole_number(after)
    if row_id is None:
        raise InvalidInput("this is not a valid cursor", "use `next` of the previous page", "after")
    return row_id


def whole_number(text: str) -> int | None:
    """The number in a text; None if it is not a number, or one that no database column holds."""
    # Python itself refuses to parse numbers of more than 4,300 digits.
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST))):
        return None
    number = int(text)
    return number if number <= LARGEST else None


class ResourcePage(Record, Generic[T], frozen=True):
    """A part of a list; `next` is the cursor of the following one."""

    items: Sequence[T]
    next: str | None = None


def paged(rows: Sequence[T], limit: int, cursor: Callable[[T], object]) -> ResourcePage[T]:
    """A page of a list that was queried for one row more: that row shows whether there is a next page."""
    shown = rows[:limit]
    return ResourcePage(shown, str(cursor(shown[-1])) if len(rows) > limit else None)


def keepable(value: Any, depth: int = 0) -> Any:
    """The value, if every database can store it: no NUL, lone surrogates, infinite numbers or excessive nesting."""
    if isinstance(value, str):
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
            raise ValueError("a text with characters that cannot be kept")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("a number that is too large")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a number")
    elif isinstance(value, dict | list):
        if depth >= _DEEPEST or len(value) > _MOST_VALUES:
            raise ValueError("nested too deeply, or too long")
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            keepable(part, depth + 1)
    return value


Keepable = AfterValidator(keepable)
Line = Annotated[str, Field(min_length=1, max_length=500), Keepable]
Word = Annotated[str, Field(min_length=1, max_length=100), Keepable]
Address = Annotated[str, Field(min_length=1, max_length=4_000), Keepable]
RowId = Annotated[int, Field(ge=1, le=LARGEST)]
Minutes = Annotated[int, Strict(), Field(ge=1, le=525_600)]
SourceSettings = Annotated[dict[str, Any], Keepable]
Categories = Annotated[list[Word], Field(max_length=100)]
