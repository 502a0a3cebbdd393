"""Pages that come where a feed was asked for: the site whose feed is to be found, or a wall in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.model import Identity, Request
from catchment.platforms.feeds import address, markup, pieces

TYPES = {
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
}

# Where sites that announce no feed have it nevertheless.
USUAL_PATHS = ("/atom.xml", "/feed.xml", "/feed/", "/feed.atom", "/index.rss", "/rss.xml", "/rss/")

# Of the feeds that a page announces; some announce one for every tag.
MOST_ANNOUNCED = 5

# A page is not parsed whole: the standard is quadratic on nested tags and on endless ones, of which a page may be made.
# What is looked for are two tags; each is parsed alone, with what little follows it.
TAG = re.compile(
    rf"{markup.COMMENT}|<script\b(?:.*?</script\b|.*)|<(?:(base)|link)(?=[\s/])", re.DOTALL | re.IGNORECASE
)
LONGEST_TAG, MOST_TAGS = 2000, 1000

# What walls against programs have in them, and pages that merely speak of them have not.
WALLS = re.compile(
    rb"<title>\s*(?:just a moment|attention required! \| cloudflare|ddos-guard|verifying your browser"
    rb"|making sure you(?:'|&#39;|\xe2\x80\x99)re not a bot|checking your browser|access denied \| )"
    rb"|_cf_chl_opt|/cdn-cgi/challenge-platform/h/|/\.within\.website/x/cmd/anubis|id=\"anubis_challenge\""
    rb"|_Incapsula_Resource|captcha-delivery\.com|sucuri_cloudproxy_js|id=\"px-captcha\"|awsWafCookieDomainList",
    re.IGNORECASE,
)
# A comment is taken whole or not at all: tried at every length, forty of them would take for ever.
PAGE = re.compile(rb"(?:(?><!--.*?-->)\s*)*<(?:!doctype\s+html|html|head|meta|title)", re.IGNORECASE | re.DOTALL)
HEAD_BYTES, WALL_BYTES = 4096, 60_000


def is_page(body: bytes) -> bool:
    """Whether it begins as a page for people does."""
    return PAGE.match(body[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")) is not None


def is_wall(body: bytes) -> bool:
    """Whether a page is a check for browsers or a captcha instead of what was asked for."""
    return is_page(body) and WALLS.search(body[:WALL_BYTES]) is not None


def requests(page: str, url: str, request: Request) -> Request | None:
    """What to ask for the feed of a page: the announced ones, then the usual places, each if the one before fails."""
    chain: Request | None = None
    places = dict.fromkeys([*_announced(page, url), *(urljoin(url, path) for path in USUAL_PATHS)])
    for place in reversed([place for place in places if place != url]):
        chain = _ask(place, request, chain)
    return chain


def _ask(place: str, request: Request, otherwise: Request | None) -> Request:
    # A page may announce any address, and lie anywhere itself; the credential was given for what was asked.
    is_same_host = address.is_same_host(request.url, place)
    return Request(
        url=place,
        headers={"Accept": request.headers["Accept"]} if "Accept" in request.headers else {},
        listing=request.listing,
        carried={"discovered": True},
        identity=request.identity if is_same_host else Identity.NONE,
        credential=request.credential if is_same_host else None,
        otherwise=otherwise,
    )


def _announced(page: str, url: str) -> list[str]:
    """The feeds that the page links to, those of comments last."""
    bases, links = _tags(page)
    base_url = pieces.joined(url, bases[0].attributes.get("href")) if bases else url
    ordered = sorted(_feed_links(links, base_url), key=lambda link: link[1])
    return [place for place, _ in ordered][:MOST_ANNOUNCED]


def _tags(page: str) -> tuple[list[LexborNode], list[LexborNode]]:
    """The base and link tags of a page."""
    bases: list[LexborNode] = []
    links: list[LexborNode] = []
    found = (tag for tag in TAG.finditer(page) if tag[0][1:5].lower() in ("base", "link"))
    for tag in islice(found, MOST_TAGS):
        alone = LexborHTMLParser(page[tag.start() : tag.start() + LONGEST_TAG])
        node = alone.css_first("base[href]" if tag[1] else "link[rel][href]")
        if node is not None:
            (bases if tag[1] else links).append(node)
    return bases, links


def _feed_links(links: list[LexborNode], base_url: str) -> Iterator[tuple[str, bool]]:
    for link in links:
        href = (link.attributes.get("href") or "").strip()
        if _is_feed(link, href) and (place := pieces.resolved(href, base_url)):
            yield place, "comment" in f"{href} {link.attributes.get('title') or ''}".lower()


def _is_feed(link: LexborNode, href: str) -> bool:
    relations = (link.attributes.get("rel") or "").lower().split()
    kind = (link.attributes.get("type") or "").partition(";")[0].strip().lower()
    # "/wp-json/" describes the site's programming interface, not its posts.
    return "alternate" in relations and kind in TYPES and "/wp-json/" not in href
