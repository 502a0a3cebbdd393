"""Finds the links of a page that match a selector, each once, in the page's order."""

from __future__ import annotations

import math
import re
from itertools import accumulate
from urllib.parse import urlsplit, urlunsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from catchment import child_processes
from catchment.decoders import converted
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
HELPS = "an example: main h2 a"
PORTS = {"http": 80, "https": 443}


class FoundLinks(Record, frozen=True):
    """What a selector finds on a page."""

    links: tuple[tuple[str, str], ...] = ()
    """URL and text of each."""
    skipped: tuple[Skipped, ...] = ()


def read(text: str, url: str, selector: str) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    """Returns the items. Slow selectors and large pages are given to a child process, which can be killed."""
    _matching(LexborHTMLParser(""), selector)
    shape = html.shape(text)
    if is_quick(selector, shape, len(text)):
        links = find(text, url, selector)
    else:
        try:
            answer = child_processes.run(__name__, find_encoded.__name__, msgspec.msgpack.encode((text, url, selector)))
        except child_processes.JobKilled:
            raise TooComplex(
                "the selector {selector!r} takes too long on this page of {tags:,} tags",
                "use a simpler one in the setting `links`: fewer parts, and no ~ or nth-child",
                selector=selector[:100],
                tags=shape.tags,
            ) from None
        links = converted(msgspec.msgpack.decode(answer), FoundLinks)
    items = tuple(Item(link_url, kind="link", text=words or None, url=link_url) for link_url, words in links.links)
    return items, links.skipped


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


def find_encoded(search: bytes) -> bytes:
    """`find`, in a child process."""
    return msgspec.msgpack.encode(find(*msgspec.msgpack.decode(search, type=tuple[str, str, str])))


def find(text: str, url: str, selector: str) -> FoundLinks:
    page = LexborHTMLParser(text)
    base = base_of(page, url)
    by_url: dict[str, str] = {}
    skipped: list[Skipped] = []
    for node in _matching(page, selector):
        # The link itself, or the first one inside the match.
        link = node if node.attributes.get("href") is not None else node.css_first("a[href]")
        link_url = coercion.resolved(link.attributes.get("href"), base) if link is not None else None
        if link is None or link_url is None or not link_url.lower().startswith(("http://", "https://")):
            skipped.append(Skipped("leads nowhere", excerpt=text_of(node)[:100]))
            continue
        link_url = normalised(link_url)
        if link_url not in by_url and len(by_url) == MOST_LINKS:
            skipped.append(Skipped("too many links", excerpt=link_url[:100]))
        else:
            # A picture and a headline often lead to the same URL: its first text is kept.
            by_url[link_url] = by_url.get(link_url) or _words(link)
    return FoundLinks(tuple(by_url.items()), tuple(skipped))


def checked(selector: object) -> str:
    """Returns the selector if it is valid; otherwise raises a ValueError that says what would be."""
    if not isinstance(selector, str) or len(selector) > LONGEST_SELECTOR:
        raise ValueError(f"not a CSS selector of at most {LONGEST_SELECTOR} characters; {HELPS}")
    depths = list(accumulate((sign == "(") - (sign == ")") for sign in selector))
    if len(_PART_END.findall(selector)) >= MOST_PARTS or max(depths, default=0) > DEEPEST_NESTING:
        raise ValueError(
            f"a CSS selector of too many parts ({MOST_PARTS} is the most) or brackets in brackets "
            f"({DEEPEST_NESTING} deep is the most); {HELPS}"
        )
    try:
        LexborHTMLParser("").css(selector)
    except (SelectolaxError, ValueError):
        raise ValueError(f"not a CSS selector; {HELPS}") from None
    return selector


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
        raise InvalidInput(
            "{selector!r} is not a CSS selector", HELPS, field="links", selector=selector[:100]
        ) from error


def _words(link: LexborNode) -> str:
    """Returns the text of a link; of a picture, its description."""
    if words := text_of(link):
        return words
    picture = link.css_first("img[alt]")
    return " ".join(((picture.attributes.get("alt") if picture is not None else None) or "").split())
