"""Pages that come where a feed was asked for: the site whose feed is to be found, or a wall in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.model import Identity, Request
from catchment.platforms.feeds import pieces

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

# What walls against programs have in them, and pages that merely speak of them have not.
WALLS = re.compile(
    rb"<title>\s*(?:just a moment|attention required! \| cloudflare|ddos-guard|verifying your browser"
    rb"|making sure you(?:'|&#39;|\xe2\x80\x99)re not a bot|checking your browser|access denied \| )"
    rb"|_cf_chl_opt|/cdn-cgi/challenge-platform/h/|/\.within\.website/x/cmd/anubis|id=\"anubis_challenge\""
    rb"|_Incapsula_Resource|captcha-delivery\.com|sucuri_cloudproxy_js|id=\"px-captcha\"|awsWafCookieDomainList",
    re.IGNORECASE,
)
PAGE = re.compile(rb"(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|meta|title)", re.IGNORECASE | re.DOTALL)
HEAD_BYTES, WALL_BYTES = 4096, 60_000


def is_wall(body: bytes) -> bool:
    """Whether a page is a check for browsers or a captcha instead of what was asked for."""
    head = body[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    return PAGE.match(head) is not None and WALLS.search(body[:WALL_BYTES]) is not None


def requests(page: str, url: str, request: Request) -> Request | None:
    """What to ask for the feed of a page: the announced ones, then the usual places, each if the one before fails."""
    chain: Request | None = None
    addresses = dict.fromkeys([*_announced(page, url), *(urljoin(url, path) for path in USUAL_PATHS)])
    for address in reversed([address for address in addresses if address != url]):
        chain = _ask(address, url, request, chain)
    return chain


def _ask(address: str, page_url: str, request: Request, otherwise: Request | None) -> Request:
    is_same_host = urlsplit(address).netloc == urlsplit(page_url).netloc
    return Request(
        url=address,
        headers={"Accept": request.headers["Accept"]} if "Accept" in request.headers else {},
        listing=request.listing,
        carried={"discovered": True},
        # A page may announce any address; the source's credential was given for its own host.
        identity=request.identity if is_same_host else Identity.NONE,
        credential=request.credential if is_same_host else None,
        otherwise=otherwise,
    )


def _announced(page: str, url: str) -> list[str]:
    """The feeds that the page links to, those of comments last."""
    tree = LexborHTMLParser(page)
    base = tree.css_first("base[href]")
    base_url = pieces.joined(url, base.attributes.get("href")) if base else url
    links = list(_feed_links(tree, base_url))
    ordered = sorted(links, key=lambda link: link[1])
    return [address for address, _ in ordered][:MOST_ANNOUNCED]


def _feed_links(tree: LexborHTMLParser, base_url: str) -> Iterator[tuple[str, bool]]:
    for link in tree.css("link[rel][href]"):
        href = (link.attributes.get("href") or "").strip()
        if _is_feed(link, href) and (address := pieces.resolved(href, base_url)):
            yield address, "comment" in f"{href} {link.attributes.get('title') or ''}".lower()


def _is_feed(link: LexborNode, href: str) -> bool:
    relations = (link.attributes.get("rel") or "").lower().split()
    kind = (link.attributes.get("type") or "").partition(";")[0].strip().lower()
    # "/wp-json/" describes the site's programming interface, not its posts.
    return "alternate" in relations and kind in TYPES and "/wp-json/" not in href
