"""What may be given: numbers that fit the database, texts that can be kept, places in a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema

from catchment.dates import asked_moment
from catchment.errors import InvalidInput

LARGEST = 2**63 - 1
_DEEPEST = 8
_MOST_VALUES = 1_000

# ── in paths and queries ──────────────────────────────────────────────────────────────────────────────────────────

SourceId = Annotated[int, Path(ge=1, le=LARGEST, description="The source's id.", examples=[1])]
ItemId = Annotated[int, Path(ge=1, le=LARGEST, description="The item's id.", examples=[1])]
RunId = Annotated[int, Path(ge=1, le=LARGEST, description="The run's id.", examples=[1])]
OfSource = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")]
_NEXT = "Where to go on: the `next` of the page before."


def after(pattern: str, description: str = _NEXT) -> Any:
    """A place in a list. The pattern is only told: what does not fit is refused further in, in better words."""
    return Query(alias="after", description=description, max_length=64, json_schema_extra={"pattern": pattern})


_NUMBER = "[0-9]{1,18}"
After = Annotated[str | None, after(f"^{_NUMBER}$")]
AfterKey = Annotated[str | None, after(f"^{_NUMBER}-{_NUMBER}$")]
AfterChange = Annotated[
    str, after(f"^{_NUMBER}(-{_NUMBER})?$", "What was read already: a change number, or the `next` of before.")
]
AfterHit = Annotated[str | None, after(f"^({_NUMBER}_)?-?{_NUMBER}$")]
Name = Annotated[str | None, Query(pattern=r"^[a-z0-9_]{1,64}$")]
# Read by our own rule: pydantic's takes `0` and `1e9` for times, too.
AskedMoment = Annotated[
    datetime,
    BeforeValidator(asked_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-01T00:00:00Z"]}),
]


def limit(most: int) -> Any:
    return Query(alias="limit", ge=1, le=most, description=f"How many at most; up to {most}.")


def place(after: str | None) -> int | None:
    """The id that a page begins after."""
    if after is None:
        return None
    if not (after.isascii() and after.isdecimal() and int(after) <= LARGEST):
        raise InvalidInput("this is not a place in the list", "use the `next` of the page before", "after")
    return int(after)


def paged(rows: Sequence[Any], limit: int, key: Callable[[Any], object]) -> dict[str, Any]:
    """A page of a list that was asked for one row more than the page holds: that one tells whether there is a next."""
    shown = rows[:limit]
    return {"items": shown, "next": str(key(shown[-1])) if len(rows) > limit else None}


def whole(rows: Sequence[Any]) -> dict[str, Any]:
    """A list that is never paged."""
    return {"items": rows, "next": None}


# ── in bodies ─────────────────────────────────────────────────────────────────────────────────────────────────────


def keepable(value: Any, depth: int = 0) -> Any:
    """The value, if any database can keep it: no NUL, no half characters, no endless numbers, no bottomless nesting."""
    if isinstance(value, str):
        if any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value):
            raise ValueError("a text with characters that cannot be kept")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("a number that is too large")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a number")
    elif isinstance(value, dict | list):
        _check_each(value, depth)
    return value


def _check_each(value: dict[str, Any] | list[Any], depth: int) -> None:
    if depth >= _DEEPEST or len(value) > _MOST_VALUES:
        raise ValueError("nested too deeply, or too long")
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    for part in parts:
        keepable(part, depth + 1)


Keepable = AfterValidator(keepable)
Line = Annotated[str, Field(min_length=1, max_length=500), Keepable]
Word = Annotated[str, Field(min_length=1, max_length=100), Keepable]
Address = Annotated[str, Field(min_length=1, max_length=4_000), Keepable]
Minutes = Annotated[int, Strict(), Field(ge=1, le=525_600)]
SourceSettings = Annotated[dict[str, Any], Keepable]
Categories = Annotated[list[Word], Field(max_length=100)]
AskedText = Annotated[str, Field(min_length=1, max_length=500), Keepable]
