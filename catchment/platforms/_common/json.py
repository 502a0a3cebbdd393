"""Parses JSON: lenient decoding, lists in which single entries may be broken, and lone surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from catchment import work_limits
from catchment.decoders import json_decoder
from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.messages import Message
from catchment.model import Item, Skipped
from catchment.platforms._common.coercion import MOST_ENTRIES

EXCERPT = 200
"""Characters of a skipped entry that are kept."""
Entry = TypeVar("Entry")
Shape = TypeVar("Shape")

_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Every escape is matched whole, so that the second half of "\\" is not taken for the beginning of one.
_ESCAPE = pattern(rb"\\(?:" + _PAIR + rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_UNKNOWN = rb"\ufffd"


def without_half_pairs(body: bytes) -> bytes:
    """Returns the same JSON with the replacement character for each lone surrogate: one title must not break a page."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return _ESCAPE.sub(lambda escape: _UNKNOWN if escape[1] else escape[0], body)
    return body


def decoded(raw: bytes | msgspec.Raw, shape: type[Shape]) -> Shape | None:
    """Returns the decoded value; None for one that is broken or has another shape."""
    try:
        return json_decoder(shape).decode(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def decode_answer(body: bytes, shape: type[Shape], what: Message | str, helps: Message | str) -> Shape:
    """Returns the decoded answer. Raises `Unreadable` with these texts for one that is broken or has another shape."""
    try:
        return json_decoder(shape).decode(without_half_pairs(body))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise Unreadable(what, helps) from None


def decode_entry(raw: msgspec.Raw, shape: type[Shape], what: str) -> Shape:
    """Returns one decoded entry of a list. Raises `UnusableEntry`, as in "not a post"."""
    entry = decoded(raw, shape)
    if entry is None:
        raise UnusableEntry(f"not {what}")
    return entry


def decode_text(text: str) -> tuple[Any, tuple[str, ...]]:
    """Decodes a JSON text; also returns which faults were tolerated. Raises `Unreadable`."""
    try:
        return msgspec.json.decode(text), ()
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        # Tolerates raw control characters and lone surrogates; the text around them is sound.
        return _with_whole_characters(json.loads(text, strict=False)), ("control characters or broken escapes",)
    except (ValueError, RecursionError):
        raise Unreadable(
            "the JSON is incomplete or malformed", "nothing of it was stored; it may be complete in the next collection"
        ) from None


def _with_whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_with_whole_characters(inner) for inner in value]
    if isinstance(value, dict):
        return {_with_whole_characters(name): _with_whole_characters(inner) for name, inner in value.items()}
    return value


class UnusableEntry(Exception):
    """An entry of a list that cannot become an item, and why."""


def read_each(
    entries: Sequence[Entry], read_entry: Callable[[Entry], Item], what: str = "entries"
) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    """Parses every entry. One that raises `UnusableEntry` is skipped and counted; the others are kept."""
    items: list[Item] = []
    skipped: list[Skipped] = []
    limit = work_limits.current()
    for entry in entries[:MOST_ENTRIES]:
        limit.check()
        try:
            items.append(read_entry(entry))
        except UnusableEntry as reason:
            skipped.append(Skipped(str(reason), excerpt(entry)))
    skipped += [Skipped(f"too many {what}")] * (len(entries) - MOST_ENTRIES)
    return tuple(items), tuple(skipped)


def excerpt(entry: Any) -> str:
    """Returns the beginning of an entry, for the record of why it was skipped."""
    if isinstance(entry, msgspec.Raw):
        return bytes(entry)[:EXCERPT].decode(errors="replace")
    try:
        return str(entry)[:EXCERPT]
    except (RecursionError, ValueError):
        return "too deep, or too large a number, to be shown"
