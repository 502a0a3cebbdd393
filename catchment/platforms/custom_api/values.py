"""Values as APIs write them: numbers as texts, texts as numbers, dates of every form, names inside objects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from catchment.dates import Dated, from_epoch, read_date

WORDS_INSIDE = ("rendered", "text", "plain", "value", "name", "title", "label", "raw", "html", "content")
"""Under these names an object says what it stands for: `{"rendered": "A title"}`."""
PEOPLE_INSIDE = ("username", "name", "login", "screen_name", "screenName", "userName", "display_name", "nickname")
ADDRESSES_INSIDE = (
    *("url", "src", "href", "link", "media_url_https", "media_url", "source_url", "content_url", "image"),
    *("original", "large", "preview_url"),
)
NUMBER = re.compile(r"[+-]?\d{1,3}(?:,\d{3}){1,5}|[+-]?\d{1,18}(?:\.0{1,6})?")
ROUNDED = re.compile(r"([+-]?\d{1,9}(?:\.\d{1,6})?)\s?([kKmM万亿])\+?")
ROUND = {"k": 1_000, "m": 1_000_000, "万": 10_000, "亿": 100_000_000}
EPOCH = re.compile(r"-?\d{9,19}(?:\.\d{1,9})?")
_MICROSECONDS, _NANOSECONDS, _ABSURD = 1e14, 1e17, 1e20
"""Beyond these, milliseconds since 1970 would be absurd; and so, beyond all, nanoseconds."""
_DEEPEST = 3
MOST_LISTED = 500


def words(value: Any, inside: Iterable[str] = WORDS_INSIDE) -> str | None:
    """A text that says something; None for nothing. Of an object, what it says under one of the usual names."""
    for _ in range(_DEEPEST):
        if not isinstance(value, dict):
            break
        value = next((value[name] for name in inside if value.get(name)), None)
    if isinstance(value, str):
        return value.strip() or None
    return _digits(value)


def _digits(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        # 1234.0 is how some programs write 1234; an id must not come and go with it.
        return str(int(value) if value == int(value) else value)
    except (ValueError, OverflowError):
        return None


def person(value: Any) -> str | None:
    """One name, or several with commas between them."""
    people = value if isinstance(value, list) else [value]
    names = [name for one in people[:MOST_LISTED] if (name := words(one, PEOPLE_INSIDE))]
    return ", ".join(dict.fromkeys(names)) or None


def count(value: Any) -> tuple[int | None, bool]:
    """A whole number, and whether it is rounded ("1.2k")."""
    if isinstance(value, bool):
        return None, False
    if isinstance(value, int | float):
        return (int(value), False) if abs(value) < 2**63 else (None, False)
    if not isinstance(value, str):
        return None, False
    text = value.strip()
    if NUMBER.fullmatch(text):
        return int(text.replace(",", "").partition(".")[0]), False
    if found := ROUNDED.fullmatch(text):
        return round(float(found[1]) * ROUND[found[2].lower()]), True
    return None, False


def truth(value: Any) -> bool:
    """Whether it is so. "false", "0" and "no" are not, though they are texts."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "null", "none")
    return bool(value)


def moment(value: Any) -> Dated | None:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, whole or not, as a number or as text; or a date
    in any of the forms in which people write one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not EPOCH.fullmatch(text):
            return read_date(text) if text else None
        value = float(text)
    # Zero is how programs write "none"; what is no number at all (NaN) is less than nothing.
    if not isinstance(value, int | float) or not 0 < abs(value) < _ABSURD:
        return None
    return _since_1970(float(value))


def _since_1970(number: float) -> Dated | None:
    size = abs(number)
    seconds = number / 1e9 if size >= _NANOSECONDS else number / 1e6 if size >= _MICROSECONDS else number
    at = from_epoch(seconds)
    return Dated(at.astimezone(UTC)) if at else None


def several(value: Any) -> tuple[str, ...]:
    """The texts of a list, of texts or of objects; of a text with commas, its parts."""
    if isinstance(value, str):
        value = value.split(",")
    listed = value if isinstance(value, list) else [value]
    texts = (words(one, ("name", "title", "text", "label", "slug", "tag", "id")) for one in listed[:MOST_LISTED])
    return tuple(dict.fromkeys(text for text in texts if text))


def addresses(value: Any) -> list[tuple[str, str | None, str | None]]:
    """Address, sort and description of each medium in what stands there: texts, objects, lists of both."""
    listed = value if isinstance(value, list) else [value]
    found = []
    for one in listed[:MOST_LISTED]:
        address = words(one, ADDRESSES_INSIDE)
        if address is None or not isinstance(one, str | dict):
            continue
        told = one if isinstance(one, dict) else {}
        sort = next((said for name in ("mime_type", "mime", "type", "medium") if (said := words(told.get(name)))), None)
        alt = next((said for name in ("alt", "description", "caption") if (said := words(told.get(name)))), None)
        found.append((address, sort, alt))
    return found
