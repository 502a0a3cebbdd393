"""HTML pages of strangers, parsed only if parsing them comes to an end. No platform of its own.

The standard's way to read HTML takes time that grows with the square of the depth, and of the attributes of a tag: a
megabyte of `<div>` would take minutes. Both are counted first, in one pass.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.errors import Unreadable

MOST_CHARACTERS = 10_000_000

# Real pages stay below a hundred; old ones that never close their fonts come to some hundreds.
DEEPEST = 1_000
MOST_ATTRIBUTES = 1_000

# What is no tag, whatever it looks like, runs to its end, or to that of the page: the search stays linear.
TAG = re.compile(
    r"<!--(?:.*?-->|.*)|<(script|style|textarea|noscript|title)\b(?:.*?</\1\b|.*)"
    r"|<(/?)([a-z][^\s/>]*)((?:[^\"'<>]|\"[^\"]*\"|'[^']*')*+)",
    re.DOTALL | re.IGNORECASE,
)
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")

# They hold nothing, or their end may be left out: a thousand of them lie beside each other, not inside.
FLAT = frozenset(
    (
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
        "p", "li", "dt", "dd", "option", "optgroup", "td", "th", "tr", "tbody", "thead", "tfoot", "colgroup", "rt",
    )
)  # fmt: skip


class Shape(NamedTuple):
    """How much work a page makes."""

    tags: int = 0
    deepest: int = 0
    labour: int = 0
    """The depths of all its tags, together: what a reader spends who goes up from each of them."""


def parsed(text: str) -> LexborHTMLParser:
    """The tree of a page. Refuses one that was made to keep its readers busy."""
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(f"the page has {len(text):,} characters", f"{MOST_CHARACTERS:,} is the most that is read")
    if shape(text).deepest > DEEPEST:
        raise Unreadable(
            f"the page has tags more than {DEEPEST:,} deep, or with so many attributes", "look at it in a browser"
        )
    return LexborHTMLParser(text)


def shape(text: str) -> Shape:
    """Tags count as deeper rather than as less deep where they are not closed in order; one with more attributes than
    any honest one counts as bottomless. What is too deep is not counted to its end."""
    open_tags: Counter[str] = Counter()
    tags = depth = deepest = labour = 0
    for found in TAG.finditer(text):
        name = (found[3] or "").lower()
        if not name:
            continue
        if found[2]:
            # The end of what is not open is ignored, here as by every browser.
            if open_tags[name]:
                open_tags[name] -= 1
                depth -= 1
            continue
        tags += 1
        labour += depth
        if name not in FLAT and not found[4].endswith("/"):
            open_tags[name] += 1
            depth += 1
            deepest = max(deepest, depth)
        if len(found[4]) > MOST_ATTRIBUTES and _attributes(found[4]) > MOST_ATTRIBUTES:
            deepest = DEEPEST + 1
        if deepest > DEEPEST:
            break
    return Shape(tags, deepest, labour)


def _attributes(inside: str) -> int:
    return len(QUOTED.sub("", inside).split())


def text_of(node: LexborNode | None) -> str:
    """The words of an element, on one line."""
    return " ".join(node.text(deep=True, skip_empty=True).split()) if node is not None else ""
