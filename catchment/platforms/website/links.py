"""Finds the links of a page that match a selector, each once, in the page's order."""

from __future__ import annotations

import math
import re
from urllib.parse import urlsplit, urlunsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from catchment import child_processes
from catchment.errors import InvalidInput, TooComplex
from catchment.model import Item, Record, Skipped
from catchment.platforms._common import coercion, html
from catchment.platforms._common.html import text_of

MOST_LINKS = 5_000
LONGEST_SELECTOR = 1_000
MOST_PARTS = 40
DEEPEST_NESTING = 3

TINY_TAGS = 200
QUICK_TAGS = 10_000
QUICK_CHARACTERS = 1_000_000
QUICK_COMBINATIONS = 10_000_000
"""Each takes some 20 nanoseconds."""
QUICK_TEXT = 50_000_000
"""Characters: the text of a match is read once for every tag around it."""
_RISKY = re.compile(r"[:~+]")
_PART_END = re.compile(r"(?<=[^\s>~+,(])\s*[\s>~+,]\s*(?=[^\s>~+,)])")
HELPS = "give one as in: main h2 a"
PORTS = {"http": 80, "https": 443}


class FoundLinks(Record, frozen=True):
    """What a selector finds on a page."""

    links: tuple[tuple[str, str], ...] = ()
    """URL and text of each."""
    skipped: tuple[Skipped, ...] = ()


class LinkSearch(Record, frozen=True):
    """A selector, and the page to search."""

    page: str
    url: str
    selector: str


def read(text: str, url: str, selector: str) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    """Returns the items. Slow selectors and large pages are given to a child process, which can be killed."""
    _matching(LexborHTMLParser(""), selector)
    shape = html.shape(text)
    search = LinkSearch(text, url, selector)
    result = find(search) if is_quick(selector, shape, len(text)) else _find_in_child(search, shape)
    items = tuple(Item(link_url, kind="link", text=words or None, url=link_url) for link_url, words in result.links)
    return items, result.skipped


def is_quick(selector: str, shape: html.Shape, characters: int) -> bool:
    """Whether a selector surely takes no longer than a fraction of a second.

    Of tags, classes, ids and attributes alone: for each tag, the selector's parts are tried on all combinations of
    the tags around it. With siblings, or with pseudo-classes that count them, there is no useful bound.
    """
    if shape.deepest * characters > QUICK_TEXT:
        return False
    if shape.tags <= TINY_TAGS:
        return len(_RISKY.findall(selector)) <= 2
    if shape.tags > QUICK_TAGS or characters > QUICK_CHARACTERS or _RISKY.search(selector):
        return False
    parts = max(len(_PART_END.split(part.strip())) for part in selector.split(","))
    return shape.tags * math.comb(shape.deepest + 1, parts - 1) <= QUICK_COMBINATIONS


def _find_in_child(search: LinkSearch, shape: html.Shape) -> FoundLinks:
    try:
        answer = child_processes.run(__name__, find_encoded.__name__, msgspec.msgpack.encode(search))
    except child_processes.JobKilled:
        raise TooComplex(
            f"the selector {search.selector[:100]!r} takes too long on this page of {shape.tags:,} tags",
            "write a simpler one into the setting `links`: without ~, nth-child and the like, and of fewer parts",
        ) from None
    return msgspec.msgpack.decode(answer, type=FoundLinks)


def find_encoded(search: bytes) -> bytes:
    """`find`, in a child process."""
    return msgspec.msgpack.encode(find(msgspec.msgpack.decode(search, type=LinkSearch)))


def find(search: LinkSearch) -> FoundLinks:
    page = LexborHTMLParser(search.page)
    base = base_of(page, search.url)
    by_url: dict[str, str] = {}
    skipped: list[Skipped] = []
    for node in _matching(page, search.selector):
        link_url = _address(node, base)
        if link_url is None:
            skipped.append(Skipped("leads nowhere", excerpt=text_of(node)[:100]))
        elif link_url not in by_url and len(by_url) == MOST_LINKS:
            skipped.append(Skipped("too many links", excerpt=link_url[:100]))
        else:
            # A picture and a headline often lead to the same URL: its first text is kept.
            by_url[link_url] = by_url.get(link_url) or _words(node)
    return FoundLinks(tuple(by_url.items()), tuple(skipped))


def checked(selector: object) -> str:
    """Returns the selector if it is valid; otherwise raises a ValueError that says what would be."""
    if not isinstance(selector, str) or len(selector) > LONGEST_SELECTOR:
        raise ValueError(f"not a CSS selector of at most {LONGEST_SELECTOR} characters; {HELPS}")
    if len(_PART_END.findall(selector)) >= MOST_PARTS or _nesting(selector) > DEEPEST_NESTING:
        raise ValueError(
            f"a CSS selector of too many parts ({MOST_PARTS} is the most) or brackets in brackets "
            f"({DEEPEST_NESTING} deep is the most); {HELPS}"
        )
    try:
        LexborHTMLParser("").css(selector)
    except (SelectolaxError, ValueError):
        raise ValueError(f"not a CSS selector; {HELPS}") from None
    return selector


def _nesting(selector: str) -> int:
    depth = deepest = 0
    for sign in selector:
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    return deepest


def base_of(page: LexborHTMLParser, url: str) -> str:
    """Returns the base of the page's relative URLs."""
    base = page.css_first("base[href]")
    return coercion.joined(url, base.attributes.get("href")) if base is not None else url


def normalised(url: str) -> str:
    """Returns a URL without what does not change where it leads: fragment, utm_* parameters, default port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    scheme, host = parts.scheme.lower(), parts.netloc.lower() if "@" not in parts.netloc else parts.netloc
    if port is not None and port == PORTS.get(scheme):
        host = host.rpartition(":")[0]
    query = "&".join(part for part in parts.query.split("&") if not part.lower().startswith("utm_"))
    return urlunsplit((scheme, host, parts.path or "/", query, ""))


def _matching(page: LexborHTMLParser, selector: str) -> list[LexborNode]:
    try:
        return page.css(selector)
    except (SelectolaxError, ValueError) as error:
        raise InvalidInput(f"{selector[:100]!r} is no CSS selector", HELPS, field="links") from error


def _link(node: LexborNode) -> LexborNode | None:
    """Returns the link itself, or the first one inside the match."""
    return node if node.attributes.get("href") is not None else node.css_first("a[href]")


def _address(node: LexborNode, base: str) -> str | None:
    link = _link(node)
    link_url = coercion.resolved(link.attributes.get("href"), base) if link is not None else None
    return normalised(link_url) if link_url and link_url.lower().startswith(("http://", "https://")) else None


def _words(node: LexborNode) -> str:
    """Returns the text of a link; of a picture, its description."""
    link = _link(node) or node
    if words := text_of(link):
        return words
    picture = link.css_first("img[alt]")
    return " ".join(((picture.attributes.get("alt") if picture is not None else None) or "").split())
