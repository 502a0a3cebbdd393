"""The settings of a source: how its API is asked, where things stand in its answers, how its pages turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from catchment.logs import is_secret_name
from catchment.model import Field
from catchment.platforms.custom_api.expressions import checked

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
PARAMETER = re.compile(r"[A-Za-z0-9_.~\[\]$:-]{1,100}")
_MOST_HEADERS, _LONGEST_HEADER, _LONGEST_WORD = 20, 1_000, 100
_KEEP_SECRETS = "a secret belongs into the vault: `catchment credentials add custom_api NAME`, then --credential NAME"
_BEARS_IDENTITY = frozenset(("authorization", "proxy-authorization", "cookie", "x-auth", "api-key", "apikey"))

SNAPSHOT, NEWEST_FIRST = "snapshot", "newest_first"
NONE, CURSOR, PAGE, OFFSET, LINK = "none", "cursor", "page", "offset", "link"
EPOCH, EPOCH_MS, ISO = "epoch", "epoch_ms", "iso"


def _header_name(value: object) -> str:
    if not isinstance(value, str) or not HEADER_NAME.fullmatch(value):
        raise ValueError("not the name of a header; for example: X-Api-Key")
    return value


def _parameter(value: object) -> str:
    if not isinstance(value, str) or not PARAMETER.fullmatch(value):
        raise ValueError("not the name of a parameter; for example: since")
    return value


def _secret_header(value: object) -> str:
    name, sign, before = value.partition(":") if isinstance(value, str) else ("", "", "")
    is_word = before.isascii() and before.isprintable() and len(before) <= _LONGEST_WORD
    if not HEADER_NAME.fullmatch(name.strip()) or not is_word or (sign and not before.strip()):
        raise ValueError("a header's name, and perhaps a word before the secret: X-Api-Key, or Authorization: Token")
    return f"{name.strip()}: {before.strip()}" if sign else name.strip()


def _headers(value: object) -> dict[str, str]:
    if isinstance(value, str):
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(value)
    if not isinstance(value, Mapping) or len(value) > _MOST_HEADERS:
        raise ValueError('an object of at most 20 headers; for example: {"Accept": "application/json"}')
    return {_plain_name(name): _plain_value(text) for name, text in value.items()}


def _plain_name(name: object) -> str:
    if (given := _header_name(name)).lower() in _BEARS_IDENTITY or is_secret_name(given):
        raise ValueError(f"{given}: {_KEEP_SECRETS}")
    return given


def _plain_value(text: object) -> str:
    if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST_HEADER:
        raise ValueError(f"the value of a header is a text on one line, of at most {_LONGEST_HEADER} characters")
    return text


def _path(name: str, what: str) -> Field:
    return Field(name, f"{what} (JMESPath over one item; by default the usual names are tried)", check=checked)


OF_ITEMS = (
    _path("id", "Its id"),
    _path("title", "Its title"),
    _path("text", "Its text, plain"),
    _path("html", "Its text as HTML"),
    _path("url", "Where it can be read"),
    _path("target_url", "What it points to"),
    _path("author", "Who wrote it"),
    _path("author_id", "The author's id"),
    _path("created_at", "When it was posted: ISO 8601, RFC 822, seconds or milliseconds since 1970 …"),
    _path("edited_at", "When it was last edited"),
    _path("score", "Its score, likes or points"),
    _path("reply_count", "How many replies it has"),
    _path("view_count", "How often it was seen"),
    _path("last_reply_at", "When it was last answered"),
    _path("tags", "Its tags: a list, or a text with commas"),
    _path("media", "Its images, films, sounds and files: addresses, or objects with one"),
    _path("language", "Its language"),
    _path("is_pinned", "Whether it stands at the top out of order"),
    _path("is_deleted", "Whether it is marked as deleted"),
)
"""One for each part of an item: `Item` has the same names."""

FIELDS = (
    Field("items", "Where the list of items is (JMESPath over the answer); by default it is looked for", check=checked),
    *OF_ITEMS,
    Field("error", "What says that the answer is an error although its status is 200 (JMESPath)", check=checked),
    Field("listing", "How the API orders its list", default=SNAPSHOT, choices=(SNAPSHOT, NEWEST_FIRST)),
    Field("limit", "How many items are read at first, and of a snapshot at all", default=100, minimum=1, maximum=10000),
    Field("reach", "How many items the API shows at all, where that is known", minimum=1, maximum=10_000_000),
    Field("paging", "How its pages turn", default=NONE, choices=(NONE, CURSOR, PAGE, OFFSET, LINK)),
    Field("cursor", "Where the next cursor is (JMESPath over the answer); by default looked for", check=checked),
    Field("cursor_param", "The parameter that takes the cursor", default="cursor", check=_parameter),
    Field("page_param", "The parameter that takes the page's number", default="page", check=_parameter),
    Field("first_page", "The number of the first page", default=1, minimum=0, maximum=1),
    Field("offset_param", "The parameter that takes the offset", default="offset", check=_parameter),
    Field("size_param", "The parameter that takes the page's size", check=_parameter),
    Field("page_size", "How many items a page should have", default=50, minimum=1, maximum=1000),
    Field("max_pages", "How many pages are asked for at most in one visit", default=50, minimum=1, maximum=200),
    Field("since_param", "The parameter that takes the time of the newest item that is stored", check=_parameter),
    Field("since_format", "How that time is written", default=ISO, choices=(ISO, EPOCH, EPOCH_MS)),
    Field(
        "header", "The header that takes the credential's secret: X-Api-Key, Authorization: Token", check=_secret_header
    ),
    Field("headers", "More headers, as an object; none that is secret", check=_headers),
)
DEFAULTS: dict[str, Any] = {field.name: field.default for field in FIELDS}


def settled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a source, with the defaults of those that were not given."""
    return DEFAULTS | {name: value for name, value in settings.items() if value is not None}
