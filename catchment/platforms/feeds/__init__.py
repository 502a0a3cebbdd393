"""RSS, Atom, RDF and JSON feeds.

**Access.** No account. Use the address of a feed, or of its site: the feed that the site announces is found and used
from then on. `feed:` addresses and bare host names work, too. RSS 0.9x to 2.0, RDF, Atom 0.3 and 1.0, JSON Feed 1.0 and
1.1 and RSS-in-JSON are recognised by their content, not by their labels; so are encodings (GBK, Big5, Shift_JIS,
EUC-KR, KOI8-R and others, even if they claim to be UTF-8). Feeds that are not well-formed are repaired, and the run
says what was repaired.

**Limits.** One polite request per visit, conditional if the server gave an ETag or a date, so an unchanged feed costs
almost nothing. If a feed asks for longer pauses (`ttl`, `sy:updatePeriod`), visits become rarer, by a day at most.
Older pages of a JSON Feed (`next_url`) are requested on the first visit only. The first 20,000 entries of an answer are
read; the rest is counted as invalid.

**Blind spots.** A feed shows only its newest entries. What appeared and disappeared between two visits was never seen,
and is recorded as a possible gap. An entry that is no longer shown does not count as deleted. Edits are noticed only
while the entry is shown. Dates without a time zone are taken as UTC and marked; entries without a date get the time at
which they were first seen. An entry without id and link is identified by its content: if several in one answer have the
same content, each date is an item of its own, and exact repetitions are counted as invalid. If a feed shortens its
entries, only the short text is stored. Sites behind a bot check cannot be read; the error says so.

`digest_feed` works the same way, under a name of its own, for feeds that are digests of others.
"""

from __future__ import annotations

import re
import shlex
from itertools import islice
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.errors import NoFeed, Unreadable
from catchment.lazy import pattern
from catchment.messages import message
from catchment.model import (
    Answer,
    Budget,
    Identity,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common import coercion, urls
from catchment.platforms._common.feed import markup, read_feed
from catchment.platforms._common.feed.pieces import pieces as pieces
from catchment.platforms._common.http import page_request, wall_refusal
from catchment.text import charset

NAME = "feeds"
TITLE = "Feeds"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
PARSER_VERSION = 1

LISTINGS = (Listing(name="entries", order=Order.NEWEST_FIRST, is_window=True),)
KINDS = (
    Kind(
        name="rss",
        title="Feed",
        what="A feed (RSS, Atom, RDF or JSON Feed): its address, or that of its site",
        interval_minutes=240,
        example="https://example.com/feed.xml",
        listings=LISTINGS,
    ),
    Kind(
        name="digest_feed",
        title="Digest feed",
        what="A feed that summarises other sources",
        interval_minutes=240,
        example="https://example.com/digest.xml",
        listings=LISTINGS,
    ),
)

CHINESE = {
    "Feeds": "订阅源",
    "Feed": "订阅源",
    "A feed (RSS, Atom, RDF or JSON Feed): its address, or that of its site": (
        "订阅源（RSS、Atom、RDF、JSON Feed）：可给出订阅地址或网站地址"
    ),
    "Digest feed": "汇总订阅源",
    "A feed that summarises other sources": "汇总其他来源的订阅源",
    "not well-formed: read by the most patient reader": "格式有误，已用最宽容的方式读取",
    "not well-formed": "格式有误",
    "breaks off before its end": "内容未完即中断",
    "control characters": "含控制字符",
    "control characters or broken escapes": "含控制字符或错误的转义",
    "declared entities": "含自定义实体",
    "junk before the feed": "订阅源之前有多余内容",
    "junk after the feed": "订阅源之后有多余内容",
    "wrongly encoded characters": "字符编码有误",
    "bare ampersands or HTML entities": "含未转义的 & 或 HTML 实体",
    "attributes without quotes": "属性缺少引号",
}

_OTHER_ADDRESS = message("look for another address of this feed, or ask the site to allow feed readers")
ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, text/html;q=0.5, */*;q=0.1"
)


def understand(text: str, kind: str | None = None) -> Target:
    return Target(kind="rss", address=urls.canonical(text))


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    state = {"discover": True} if plan.is_first else {}
    return [page_request(source, progress, plan, ACCEPT, PARSER_VERSION, state)]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    return wall_refusal(answer, _OTHER_ADDRESS)


def read(answer: Answer, request: Request) -> Reading:
    reading = read_feed(answer, request)
    if reading is None:
        if not request.state.get("discover"):
            raise Unreadable(
                "an HTML page was returned instead of a feed",
                "the feed may have moved: look for its new address on the site",
            )
        text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
        return Reading(follow=(_discovery(text, answer.url, request),))
    # The URL that was found becomes the source's own: discovery costs a page at every poll.
    return reading.replace(target=answer.url) if request.state.get("discovered") else reading


def nothing_found(request: Request) -> NoFeed | None:
    """Returns the error for a site that answered, but neither its announced feeds nor the usual URLs led to a feed."""
    site = request.state.get("site")
    if site is None:
        return None
    announced = request.state.get("announced")
    return NoFeed(
        "no feed was found at {site}: {announced}, which it announces, cannot be read"
        if announced
        else "no feed was found at {site}",
        "to add the page itself: `catchment sources add website {quoted}`",
        site=site,
        announced=announced,
        quoted=shlex.quote(site),
    )


TYPES = {
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
}

# Where sites often have a feed although they announce none.
USUAL_PATHS = ("/atom.xml", "/feed.xml", "/feed/", "/feed.atom", "/index.rss", "/rss.xml", "/rss/")

# Of the feeds that a page announces; some announce one for every tag.
MOST_ANNOUNCED = 5

# A page is not parsed whole: the standard is quadratic on nested tags and on endless ones, of which a page may be made.
# Only two tags are needed; each is parsed alone, with what little follows it.
TAG = pattern(rf"{markup.COMMENT}|<script\b(?:.*?</script\b|.*)|<(?:(base)|link)(?=[\s/])", re.DOTALL | re.IGNORECASE)
LONGEST_TAG, MOST_TAGS = 2000, 1000


def _discovery(page: str, url: str, request: Request) -> Request:
    """Returns the request for the feed of a page: the announced ones, then the usual paths, each as the fallback of
    the one before."""
    chain: Request | None = None
    announced = [feed_url for feed_url in _announced(page, url) if feed_url != url]
    feed_urls = dict.fromkeys([*announced, *(urljoin(url, path) for path in USUAL_PATHS)])
    for feed_url in reversed([feed_url for feed_url in feed_urls if feed_url != url]):
        # A page may announce any URL, and be anywhere itself; the credential was given for the requested host.
        is_same_host = urls.is_same_host(request.url, feed_url)
        chain = Request(
            url=feed_url,
            headers={"Accept": request.headers["Accept"]} if "Accept" in request.headers else {},
            listing=request.listing,
            state={"discovered": True, "site": request.url} | ({"announced": announced[0]} if announced else {}),
            identity=request.identity if is_same_host else Identity.NONE,
            credential=request.credential if is_same_host else None,
            fallback=chain,
        )
    assert chain is not None
    return chain


def _announced(page: str, url: str) -> list[str]:
    """Returns the feeds that the page links to, those of comments last."""
    bases: list[LexborNode] = []
    links: list[LexborNode] = []
    matches = (tag for tag in TAG.finditer(page) if tag[0][1:5].lower() in ("base", "link"))
    for tag in islice(matches, MOST_TAGS):
        alone = LexborHTMLParser(page[tag.start() : tag.start() + LONGEST_TAG])
        node = alone.css_first("base[href]" if tag[1] else "link[rel][href]")
        if node is not None:
            (bases if tag[1] else links).append(node)
    base_url = coercion.joined(url, bases[0].attributes.get("href")) if bases else url
    feeds: list[tuple[str, bool]] = []
    for link in links:
        href = (link.attributes.get("href") or "").strip()
        relations = (link.attributes.get("rel") or "").lower().split()
        kind = (link.attributes.get("type") or "").partition(";")[0].strip().lower()
        # "/wp-json/" describes the site's API, not its posts.
        is_feed = "alternate" in relations and kind in TYPES and "/wp-json/" not in href
        if is_feed and (feed_url := coercion.resolved(href, base_url)):
            feeds.append((feed_url, "comment" in f"{href} {link.attributes.get('title') or ''}".lower()))
    return [feed_url for feed_url, _ in sorted(feeds, key=lambda feed: feed[1])][:MOST_ANNOUNCED]
