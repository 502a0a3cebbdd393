"""Parses feeds of every format, well-formed or not: RSS, Atom, RDF, JSON Feed, RSS-in-JSON.

The last resort is feedparser, for documents of which nothing stricter finds all entries. It is slow, and quadratic on
nested tags and on blank lines before the feed: size, depth and number of tags are bounded before it is called, and it
does not get what is before the feed.
"""

from __future__ import annotations

import io
import re
from typing import Any

from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.model import Answer, Item, Reading, Reference, Request, Skipped
from catchment.platforms._common import coercion
from catchment.platforms._common.feed import entries, jsonfeed, markup
from catchment.text import charset
from catchment.text.dates import Dated, read_date

HTML_SIGNS = ("<title", "<meta", "<div", "<p>")


def read_feed(answer: Answer, request: Request) -> Reading | None:
    """Returns the entries of a feed; None if the answer is an HTML page. Raises `Unreadable` for anything else."""
    content_type = answer.headers.get("content-type")
    is_called_utf8 = charset.claimed(answer.body, content_type) in (None, "utf-8")
    tree = markup.strict(answer.body) if is_called_utf8 else None
    if tree is not None and markup.name_of(tree.root) in markup.ROOTS:
        # The fast path of most answers: UTF-8 bytes straight to the parser.
        return entries.read(tree, answer.url)
    # Decided by the body: content types are wrong too often.
    text, _ = charset.decode(answer.body, content_type)
    beginning = text.lstrip("\ufeff \t\r\n")
    if not beginning:
        raise Unreadable("the answer is empty", "the server sends no feed at the moment; the request will be retried")
    if beginning[0] in "{[":
        return jsonfeed.read(beginning, answer.url, request)
    if markup.is_page(text):
        return None
    encoded = text.encode("utf-8", "ignore")
    is_transcoded = encoded != answer.body
    if is_transcoded or not is_called_utf8:
        tree = markup.strict(encoded)
    reading = _feed(text, answer.url, tree)
    if reading is not None:
        return reading.replace(is_transcoded=True) if is_transcoded else reading
    if any(sign in text[:100_000].lower() for sign in HTML_SIGNS):
        return None
    raise Unreadable(
        "the answer is not a feed", "check the address in a browser: a feed begins with rss, feed or rdf:RDF"
    )


def _feed(text: str, url: str, tree: markup.Tree | None) -> Reading | None:
    """Parses a feed in another encoding, or one that has to be repaired."""
    tree = tree or markup.repaired(text)
    if tree is None:
        return _lenient_reading(text, url) if markup.entry_count(text) else None
    root_name = markup.name_of(tree.root)
    if root_name not in markup.ROOTS:
        raise Unreadable(
            "the answer is XML, but not a feed: <{element}>",
            "enter the address of a feed; lists of feeds can be imported",
            element=root_name[:40],
        )
    reading = entries.read(tree, url)
    return _fullest(reading, text, url) if tree.is_forgiven else reading


def _fullest(reading: Reading, text: str, url: str) -> Reading:
    """Returns the recovering parser's reading, unless feedparser, which is slower, finds more entries."""
    count = len(reading.items) + len(reading.skipped)
    if count and count >= markup.entry_count(text):
        return reading
    patient = _lenient_reading(text, url)
    if not count and (patient is None or not markup.is_closed(text)):
        # An empty feed has no entry either: treated as one, a broken feed would look healthy forever.
        raise Unreadable(
            "the feed is broken beyond repair", "nothing of it was stored; it may be complete in the next collection"
        )
    return patient if patient and len(patient.items) > len(reading.items) else reading


MOST_BYTES = 2_000_000
MOST_TAGS = 50_000
MOST_REFERENCES = 200_000
"""Ampersands: each costs it two microseconds, or three."""
DEEPEST = 100
TAG = pattern(r"<!\[CDATA\[(?:.*?\]\]>|.*)|<(/?)[A-Za-z][^<>]*?(/?)>", re.DOTALL)

Parsed = Any
"""A dict of feedparser's; it ships no types."""


def _lenient_reading(text: str, url: str) -> Reading | None:
    """Returns what feedparser finds; None if it finds nothing, or the text is too long or too deep for it."""
    text = markup.without_beginning(text)
    body = text.encode("utf-8", "ignore")
    is_small = len(body) <= MOST_BYTES and text.count("<") <= MOST_TAGS and text.count("&") <= MOST_REFERENCES
    if not is_small or _depth(text) > DEEPEST:
        return None
    import feedparser  # heavy, and hardly ever needed

    try:
        parsed: Parsed = feedparser.parse(
            io.BytesIO(body),  # bytes alone would be tried as the name of a file
            response_headers={"content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception:  # noqa: BLE001 — third-party code on broken input: its bugs may raise anything
        return None
    items = [_item(entry, url) for entry in parsed.entries]
    is_something = [bool(item.title or item.html or item.text or item.url or item.media) for item in items]
    return Reading(
        items=tuple(item for item, is_kept in zip(items, is_something, strict=True) if is_kept),
        skipped=tuple(Skipped("no content") for is_kept in is_something if not is_kept),
        is_torn=not markup.is_closed(text),
        title=coercion.plain_title(parsed.feed.get("title")),
        hints=coercion.hints(
            parsed.feed.get("ttl"), parsed.feed.get("sy_updateperiod"), parsed.feed.get("sy_updatefrequency")
        ),
        notes=("not well-formed: read by the most patient reader",),
    )


def _depth(text: str) -> int:
    """Returns how deep tags are nested. CDATA sections count as text."""
    depth = deepest = 0
    for match in TAG.finditer(text):
        if match[1] is None or match[2]:
            continue
        depth = max(0, depth - 1) if match[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _item(entry: Parsed, url: str) -> Item:
    created_at, is_zone_guessed, edited_at = coercion.dates(
        _date(entry, "published") or _date(entry, "created"), _date(entry, "updated")
    )
    values = [*(content.get("value") for content in entry.get("content", ())), entry.get("summary")]
    content = next((trimmed for value in values if value and (trimmed := str(value).strip())), "")
    text, html = coercion.text_or_html(content)
    author, author_id = coercion.person(str(entry.get("author") or ""))
    if not author_id:  # feedparser's own split knows no endings of more than four letters
        detail = entry.get("author_detail") or {}
        author, author_id = detail.get("name") or author, detail.get("href") or detail.get("email")
    media = [
        coercion.enclosure(file.get("href"), url, file.get("type") or None, file.get("length"))
        for file in entry.get("enclosures", ())
    ]
    discussed_at = coercion.resolved(entry.get("comments"), url)
    return Item(
        external_id=str(entry.get("id") or "").strip(),
        created_at=created_at,
        is_zone_guessed=is_zone_guessed,
        edited_at=edited_at,
        title=coercion.plain_title(entry.get("title")),
        text=text,
        html=html,
        url=coercion.resolved(str(entry.get("link") or "").strip(), url),
        author=author,
        author_id=author_id,
        media=tuple(medium for medium in media if medium),
        references=(Reference(relation="discussed_at", url=discussed_at),) if discussed_at else (),
        tags=coercion.unique(tag.get("term") for tag in entry.get("tags", ())),
    )


def _date(entry: Parsed, name: str) -> Dated | None:
    # Tested by `in` first: feedparser answers "updated" with the date of publication where there is none.
    return read_date(str(entry[name])) if name in entry.keys() and entry[name] else None  # noqa: SIM118
