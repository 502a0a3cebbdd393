"""RSS, Atom, RDF and JSON feeds.

**Access.** No account. Give a feed's address, or its site's: the feed that the site announces is found and followed
from then on. `feed:` addresses and bare hosts are understood. RSS 0.9x to 2.0, RDF, Atom 0.3 and 1.0, JSON Feed 1.0 and
1.1 and RSS-in-JSON are told apart by what they are, never by their labels; so are encodings (GBK, Big5, Shift_JIS,
EUC-KR, KOI8-R … even where they call themselves UTF-8). Feeds that are not well-formed are repaired, and the run says
what was repaired.

**Limits.** One polite request a poll, conditional where the server gave an ETag or a date, so that an unchanged feed
costs nearly nothing. A feed's own wish for pauses (`ttl`, `sy:updatePeriod`) only makes polls rarer, by a day at most.
Older pages of a JSON Feed (`next_url`) are asked for on the first read only. Of one answer, the first 20,000 entries
are read; the rest is counted as invalid.

**Blind spots.** A feed shows its newest few entries: what came and went between two polls was never seen, and is
recorded as a possible gap. An entry that is no longer shown is not taken for deleted. Edits are seen only while the
entry is shown. Dates without a zone are taken for UTC, and marked; entries without a date get the time at which they
were first seen. Where a feed shortens its entries, so does the archive. Sites behind a check for browsers cannot be
followed; the error says so.

`digest_feed` is the same reader under a name of its own, for feeds that are digests of others.
"""

from __future__ import annotations

from catchment import charset
from catchment.errors import Refused, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Blame,
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
)
from catchment.platforms.conditions import conditions
from catchment.platforms.feeds import address, discovery, entries, jsonfeed, lenient, markup

NAME = "feeds"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
READER_VERSION = 1

LISTINGS = (Listing(name="entries", order=Order.NEWEST_FIRST, is_window=True),)
KINDS = (
    Kind(
        name="rss",
        what="A feed (RSS, Atom, RDF, JSON Feed), by its own address or its site's",
        interval_minutes=240,
        example="https://example.com/feed.xml",
        listings=LISTINGS,
    ),
    Kind(
        name="digest_feed",
        what="A feed that is a digest of other sources",
        interval_minutes=240,
        example="https://example.com/digest.xml",
        listings=LISTINGS,
    ),
)

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, text/html;q=0.5, */*;q=0.1"
)
HTML_SIGNS = ("<title", "<meta", "<div", "<p>")


def understand(text: str) -> Target:
    return Target(kind="rss", address=address.canonical(text))


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    """One request, conditional if this very reader has read the last answer: else there may be more to see in it."""
    return [
        Request(
            url=source.target,
            headers={"Accept": ACCEPT, **conditions(progress, READER_VERSION)},
            listing=ask.listing,
            carried={"discover": True} if ask.is_first else {},
            identity=Identity.OPTIONAL if source.credential else Identity.NONE,
            credential=source.credential,
        )
    ]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """A wall in front of the feed, whatever its status says; 429 speaks for itself."""
    if answer.status == 429 or not discovery.is_wall(answer.body):
        return None
    error = Refused(
        "the site asks to prove that a browser is reading",
        "look for another address of this feed, or ask the site to let feed readers in",
        status=answer.status,
    )
    return Refusal(error, blames=Blame.HOST)


def read(answer: Answer, request: Request) -> Reading:
    reading = _well_formed(answer) or _anything_else(answer, request)
    # The address that was found is the source's own from now on: discovering costs a page at every poll.
    return reading.plus(target=answer.url) if request.carried.get("discovered") else reading


def _well_formed(answer: Answer) -> Reading | None:
    """The short way, which most answers take: UTF-8 bytes straight to the parser."""
    if charset.claimed(answer.body, answer.headers.get("content-type")) not in (None, "utf-8"):
        return None
    tree = markup.strict(answer.body)
    if tree is None or markup.name_of(tree.root) not in markup.ROOTS:
        return None
    return entries.read(tree, answer.url)


def _anything_else(answer: Answer, request: Request) -> Reading:
    """Told apart by what the body is: content types are wrong too often to be asked."""
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    beginning = text.lstrip("\ufeff \t\r\n")
    if not beginning:
        raise Unreadable("the answer is empty", "the server sends no feed at present; it is asked again")
    if beginning[0] in "{[":
        return jsonfeed.read(beginning, answer.url, request)
    if markup.is_page(text):
        return _page(text, answer.url, request)
    reading = _feed(text, answer.url)
    if reading is not None:
        return reading
    if any(sign in text[:100_000].lower() for sign in HTML_SIGNS):
        return _page(text, answer.url, request)
    raise Unreadable(
        "what came is no feed", "check the address in a browser: a feed's begins with rss, feed or rdf:RDF"
    )


def _feed(text: str, url: str) -> Reading | None:
    """A feed in another encoding, or one that has to be repaired."""
    tree = markup.strict(text.encode("utf-8", "ignore"))
    if tree is None:
        tree = markup.repaired(text)
    if tree is None:
        return lenient.read(text, url) if markup.entry_count(text) else None
    name = markup.name_of(tree.root)
    if name not in markup.ROOTS:
        raise Unreadable(
            f"XML came that is no feed: <{name[:40]}>", "give the address of a feed; a list of feeds is imported"
        )
    reading = entries.read(tree, url)
    return _fullest(reading, text, url) if tree.is_forgiven else reading


def _fullest(reading: Reading, text: str, url: str) -> Reading:
    """The forgiving parser's reading, unless a more patient one finds more entries."""
    found = len(reading.items) + len(reading.skipped)
    if found and found >= markup.entry_count(text):
        return reading
    patient = lenient.read(text, url)
    if not found and (patient is None or not markup.is_closed(text)):
        # An empty feed has no entry either: taken for one, a broken feed would look well for ever.
        raise Unreadable("the feed is broken beyond repair", "nothing is stored of it; the next poll may find it whole")
    return patient if patient and len(patient.items) > len(reading.items) else reading


def _page(text: str, url: str, request: Request) -> Reading:
    if not request.carried.get("discover"):
        raise Unreadable(
            "an HTML page came where a feed was expected",
            "the feed may have moved: look for its new address on the site",
        )
    found = discovery.requests(text, url, request)
    return Reading(follow=(found,) if found else ())
