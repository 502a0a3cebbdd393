"""Half characters in JSON: an emoji that somebody's program cut in two. JSON's own grammar allows them."""

from __future__ import annotations

import re

import msgspec

_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Every escape is taken whole, so that the second half of "\\" is not taken for the beginning of one.
_ESCAPE = re.compile(rb"\\(?:" + _PAIR + rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_UNKNOWN = rb"\ufffd"


def without_half_pairs(body: bytes) -> bytes:
    """The same JSON, with the sign for "unknown" where half a character stands: one title must not sink a page."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return _ESCAPE.sub(lambda escape: _UNKNOWN if escape[1] else escape[0], body)
    return body
