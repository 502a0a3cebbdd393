"""The last resort: feedparser, for documents of which nothing stricter finds all entries.

It is slow, and quadratic on nested tags and on blank lines before the feed: size, depth and number of tags are bounded
before it is asked, and what stands before the feed is not shown to it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from catchment.dates import read_date
from catchment.model import Item, Media, Reading, Reference, Skipped
from catchment.platforms.feeds import markup, pieces

MOST_BYTES = 2_000_000
MOST_TAGS = 50_000
DEEPEST = 100
TAG = re.compile(r"<!\[CDATA\[(?:.*?\]\]>|.*)|<(/?)[A-Za-z][^<>]*?(/?)>", re.DOTALL)

Parsed = Any
"""A dict of feedparser's; it ships no types."""


def read(text: str, url: str) -> Reading | None:
    """What feedparser sees; None if it sees nothing, or the text is too much or too deep to be given to it."""
    text = markup.without_beginning(text)
    body = text.encode("utf-8", "ignore")
    if len(body) > MOST_BYTES or text.count("<") > MOST_TAGS or _depth(text) > DEEPEST:
        return None
    parsed = _parsed(body)
    if parsed is None:
        return None
    items = [_item(entry, url) for entry in parsed.entries]
    is_something = [bool(item.title or item.html or item.text or item.url or item.media) for item in items]
    return Reading(
        items=tuple(item for item, is_kept in zip(items, is_something, strict=True) if is_kept),
        skipped=tuple(Skipped("no content") for is_kept in is_something if not is_kept),
        is_torn=not markup.is_closed(text),
        title=pieces.plain_title(parsed.feed.get("title")),
        hints=pieces.hints(
            parsed.feed.get("ttl"), parsed.feed.get("sy_updateperiod"), parsed.feed.get("sy_updatefrequency")
        ),
        notes=("not well-formed: read by the most patient reader",),
    )


def _parsed(body: bytes) -> Parsed | None:
    import feedparser  # heavy, and hardly ever needed

    try:
        return feedparser.parse(
            io.BytesIO(body),  # bytes alone would be tried as the name of a file
            response_headers={"content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception:  # noqa: BLE001 — a stranger's code on broken input: it raises whatever its own slips raise
        return None


def _depth(text: str) -> int:
    """How deep tags are nested. Sections of character data count as text."""
    depth = deepest = 0
    for found in TAG.finditer(text):
        if found[1] is None or found[2]:
            continue
        depth = max(0, depth - 1) if found[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _item(entry: Parsed, url: str) -> Item:
    published = _date(entry, "published") or _date(entry, "created")
    updated = _date(entry, "updated")
    created = published or updated
    markup, text = _content(entry)
    author, author_id = _author(entry)
    return Item(
        external_id=str(entry.get("id") or "").strip(),
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=updated.at if published and updated and updated.at > published.at else None,
        title=pieces.plain_title(entry.get("title")),
        text=text,
        html=markup,
        url=pieces.resolved(str(entry.get("link") or "").strip(), url),
        author=author,
        author_id=author_id,
        media=tuple(_media(entry, url)),
        references=_references(entry, url),
        tags=pieces.unique(tag.get("term") for tag in entry.get("tags", ())),
    )


def _date(entry: Parsed, name: str) -> Any:
    # Asked by `in` first: feedparser answers "updated" with the date of publication where there is none.
    return read_date(str(entry[name])) if name in entry.keys() and entry[name] else None  # noqa: SIM118


def _content(entry: Parsed) -> tuple[str | None, str | None]:
    contents = [content.get("value") for content in entry.get("content", ())]
    for value in [*contents, entry.get("summary")]:
        if value and (trimmed := str(value).strip()):
            return (trimmed, None) if pieces.is_markup(trimmed) else (None, trimmed)
    return None, None


def _author(entry: Parsed) -> tuple[str | None, str | None]:
    name, mail = pieces.person(str(entry.get("author") or ""))
    if mail:
        return name, mail  # feedparser's own split knows no endings of more than four letters
    detail = entry.get("author_detail") or {}
    return detail.get("name") or name, detail.get("href") or detail.get("email")


def _media(entry: Parsed, url: str) -> Iterator[Media]:
    for enclosure in entry.get("enclosures", ()):
        if address := pieces.resolved(enclosure.get("href"), url):
            mime = enclosure.get("type") or None
            size = pieces.amount(enclosure.get("length"))
            yield Media(address, pieces.media_kind(mime, address), mime=mime, size_bytes=size)


def _references(entry: Parsed, url: str) -> tuple[Reference, ...]:
    discussed_at = pieces.resolved(entry.get("comments"), url)
    return (Reference(relation="discussed_at", url=discussed_at),) if discussed_at else ()
