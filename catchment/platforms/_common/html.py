"""Parses untrusted HTML pages within limits of time and memory. Shared by platforms.

The standard's way to parse HTML takes time that grows with the square of the depth, and of the attributes of a tag:
a megabyte of `<div>` would take minutes. Both are counted first, in one pass over the text. What the parser makes of
a text can differ from what it looks like (`<div/>` is not closed, `<!-->` is a whole comment, formatting tags that
are left open are copied into every paragraph behind them), so all but tiny pages are then parsed by a child process,
which is killed at its limits and counts what came out.
"""

from __future__ import annotations

import re
from collections import Counter
from threading import local
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from catchment import child_processes
from catchment.errors import TooComplex, Unreadable
from catchment.lazy import pattern

MOST_CHARACTERS = 10_000_000

# Each takes some 200 bytes of memory. A page of three megabytes has some 60,000.
MOST_TAGS = 200_000
# A selector of two parts goes up from each tag.
MOST_LABOUR = 20_000_000

# Real pages stay below a hundred; old pages that never close <font> reach a few hundred.
DEEPEST = 1_000
MOST_ATTRIBUTES = 1_000

# Below both, any page takes some 50 ms at most.
TINY_TAGS = 500
TINY_CHARACTERS = 20_000

# What is not a tag, whatever it looks like, runs to its end, or to that of the page: the search stays linear.
TAG = pattern(
    r"<!--(?:.*?-->|.*)|<(script|style|textarea|noscript|title)\b(?:.*?</\1\b|.*)"
    r"|<(/?)([a-z][^\s/>]*)((?:[^\"'<>]|\"[^\"]*\"|'[^']*')*+)",
    re.DOTALL | re.IGNORECASE,
)
_HELPS = "check it in a browser"
QUOTED = pattern(r"\"[^\"]*\"|'[^']*'")

# They are empty, or their end may be left out: a thousand of them are siblings, not nested.
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
    """The sum of the depths of all its tags: the cost of going up from each of them."""

    @property
    def is_bearable(self) -> bool:
        return self.deepest <= DEEPEST and self.tags <= MOST_TAGS and self.labour <= MOST_LABOUR


def parsed(text: str) -> LexborHTMLParser:
    """Returns the tree of a page. Rejects pages designed to exhaust the parser."""
    check_shape(shape(text))
    return LexborHTMLParser(text)


def check_shape(page: Shape) -> None:
    """Raises Unreadable for a page that was made to keep parsers busy."""
    if page.deepest > DEEPEST:
        raise Unreadable(
            "the page has tags nested more than {deepest:,} deep, or with as many attributes", _HELPS, deepest=DEEPEST
        )
    if page.tags > MOST_TAGS or page.labour > MOST_LABOUR:
        raise TooComplex(
            "the page has more than {most_tags:,} tags, or too many deeply nested ones", _HELPS, most_tags=MOST_TAGS
        )


def shape(text: str) -> Shape:
    """Returns how much work a page makes. Raises Unreadable or TooComplex where that alone is too much to find out."""
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(
            "the page has {size:,} characters",
            "at most {longest:,} are read",
            size=len(text),
            longest=MOST_CHARACTERS,
        )
    apparent = apparent_shape(text)
    is_tiny = text.count("<") <= TINY_TAGS and len(text) <= TINY_CHARACTERS
    return apparent if is_tiny or not apparent.is_bearable else _measured_shape(text)


def _measured_shape(text: str) -> Shape:
    """Returns what a child process measured. One visit needs the same page several times, so the last shape is
    cached."""
    page = len(text), hash(text)
    if getattr(_last, "page", None) != page:
        try:
            answer = child_processes.run(__name__, measure.__name__, text.encode("utf-8", "replace"))
        except child_processes.JobKilled:
            raise TooComplex("parsing the page takes too much time or memory", _HELPS) from None
        _last.page, _last.shape = page, Shape(*msgspec.msgpack.decode(answer, type=tuple[int, int, int]))
    measured: Shape = _last.shape
    return measured


_last = local()


def measure(page: bytes) -> bytes:
    """Measures the tree that the parser makes of a page; runs in a child process."""
    tags = deepest = labour = 0
    try:
        root = LexborHTMLParser(page.decode()).root
    except SelectolaxError as error:
        # It parses anything, HTML or not, as long as there is memory.
        raise MemoryError from error
    waiting = [(root, 0)] if root is not None else []
    while waiting and Shape(tags, deepest, labour).is_bearable:
        node, depth = waiting.pop()
        tags, deepest, labour = tags + 1, max(deepest, depth), labour + depth
        if len(node.attributes) > MOST_ATTRIBUTES:
            deepest = DEEPEST + 1
        child = node.child
        while child is not None:
            if child.is_element_node:
                waiting.append((child, depth + 1))
            child = child.next
    return msgspec.msgpack.encode((tags, deepest, labour))


def apparent_shape(text: str) -> Shape:
    """Returns the shape the text seems to have. Tags count as deeper rather than as less deep where they are not closed
    in order; a tag with an absurd number of attributes counts as infinitely deep. What is too deep is not counted to
    its end."""
    open_tags: Counter[str] = Counter()
    tags = depth = deepest = labour = 0
    for match in TAG.finditer(text):
        name = (match[3] or "").lower()
        if not name:
            continue
        if match[2]:
            # The end of a tag that is not open is ignored, as by every browser.
            if open_tags[name]:
                open_tags[name] -= 1
                depth -= 1
            continue
        tags += 1
        labour += depth
        if name not in FLAT and not match[4].endswith("/"):
            open_tags[name] += 1
            depth += 1
            deepest = max(deepest, depth)
        if len(match[4]) > MOST_ATTRIBUTES and len(QUOTED.sub("", match[4]).split()) > MOST_ATTRIBUTES:
            deepest = DEEPEST + 1
        if not Shape(tags, deepest, labour).is_bearable:
            break
    return Shape(tags, deepest, labour)


def text_of(node: LexborNode | None) -> str:
    """Returns the text of an element, on one line."""
    return " ".join(node.text(deep=True, skip_empty=True).split()) if node is not None else ""
