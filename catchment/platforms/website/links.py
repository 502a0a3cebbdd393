"""The links of a page that match a selector, each once, in the page's order."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from catchment.errors import InvalidInput
from catchment.model import Item, Skipped
from catchment.platforms.feeds import pieces
from catchment.platforms.htmlpage import text_of

MOST_LINKS = 5_000
LONGEST_SELECTOR = 1_000
HELPS = "give one as in: main h2 a"
PORTS = {"http": 80, "https": 443}


def read(page: LexborHTMLParser, url: str, selector: str) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    base = base_of(page, url)
    found: dict[str, str] = {}
    skipped: list[Skipped] = []
    for node in _matching(page, selector):
        place = _address(node, base)
        if place is None:
            skipped.append(Skipped("leads nowhere", excerpt=text_of(node)[:100]))
        elif place not in found and len(found) == MOST_LINKS:
            skipped.append(Skipped("too many links", excerpt=place[:100]))
        else:
            # A picture and a headline often lead to the same place: the first words for it are kept.
            found[place] = found.get(place) or _words(node)
    return tuple(Item(place, kind="link", text=words or None, url=place) for place, words in found.items()), tuple(
        skipped
    )


def checked(selector: object) -> str:
    """The selector, if it is one; otherwise a ValueError that says what would be."""
    if not isinstance(selector, str) or len(selector) > LONGEST_SELECTOR:
        raise ValueError(f"not a CSS selector of at most {LONGEST_SELECTOR} characters; {HELPS}")
    try:
        LexborHTMLParser("").css(selector)
    except (SelectolaxError, ValueError):
        raise ValueError(f"not a CSS selector; {HELPS}") from None
    return selector


def base_of(page: LexborHTMLParser, url: str) -> str:
    """What the page's relative addresses stand on."""
    base = page.css_first("base[href]")
    return pieces.joined(url, base.attributes.get("href")) if base is not None else url


def normalised(url: str) -> str:
    """An address without what does not change where it leads: fragment, utm_* parameters, default port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    scheme, host = parts.scheme.lower(), parts.netloc.lower() if "@" not in parts.netloc else parts.netloc
    if port is not None and port == PORTS.get(scheme):
        host = host.rpartition(":")[0]
    query = "&".join(one for one in parts.query.split("&") if not one.lower().startswith("utm_"))
    return urlunsplit((scheme, host, parts.path or "/", query, ""))


def _matching(page: LexborHTMLParser, selector: str) -> list[LexborNode]:
    try:
        return page.css(selector)
    except (SelectolaxError, ValueError) as error:
        raise InvalidInput(f"{selector[:100]!r} is no CSS selector", HELPS, field="links") from error


def _link(node: LexborNode) -> LexborNode | None:
    """The link itself, or the first one in what was matched."""
    return node if node.attributes.get("href") is not None else node.css_first("a[href]")


def _address(node: LexborNode, base: str) -> str | None:
    link = _link(node)
    place = pieces.resolved(link.attributes.get("href"), base) if link is not None else None
    return normalised(place) if place and place.lower().startswith(("http://", "https://")) else None


def _words(node: LexborNode) -> str:
    """The text of a link; of a picture, what is told of it."""
    link = _link(node) or node
    if words := text_of(link):
        return words
    picture = link.css_first("img[alt]")
    return " ".join(((picture.attributes.get("alt") if picture is not None else None) or "").split())
