"""Converts a feed's tree to items: RSS 0.9x to 2.0, RDF, Atom 0.3 and 1.0, with their usual extensions.

One table serves all dialects: it maps each element to its meaning, whatever its namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from lxml import etree
from msgspec import Struct

from catchment import cost_limits
from catchment.model import (
    Item,
    Media,
    Reading,
    Reference,
    Skipped,
)
from catchment.platforms._common import coercion
from catchment.platforms._common.feed.markup import Element, Tree, name_of
from catchment.text.dates import Dated, read_date

ATOM = "http://www.w3.org/2005/Atom"
XHTML = "http://www.w3.org/1999/xhtml"
RDF_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
# When an entry was last answered (RFC 4685).
REPLIED = ("{http://purl.org/syndication/thread/1.0}updated", "thr:updated")
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

# Namespaces of the formats themselves. "" is RSS, which has none; a prefix is used as it is where it is not declared.
CORE = {
    "rss": (
        "http://purl.org/rss/1.0/",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss2",
        "http://backend.userland.com/RSS2",
        "http://blogs.law.harvard.edu/tech/rss",
    ),
    "atom": (ATOM, "http://purl.org/atom/ns#"),
    "atom10": (),
}
EXTENSIONS = {
    "content": ("http://purl.org/rss/1.0/modules/content/",),
    "dc": ("http://purl.org/dc/elements/1.1/", "http://purl.org/dc/elements/1.0/"),
    "dcterms": ("http://purl.org/dc/terms/",),
    "media": ("http://search.yahoo.com/mrss/", "http://search.yahoo.com/mrss"),
    "itunes": ("http://www.itunes.com/dtds/podcast-1.0.dtd", "http://www.itunes.com/DTDs/PodCast-1.0.dtd"),
    "sy": ("http://purl.org/rss/1.0/modules/syndication/",),
    "xhtml": (XHTML,),
}

# element: its meaning
CORE_MEANINGS = {
    "channel": "channel",
    "item": "entry",
    "entry": "entry",
    "title": "title",
    "link": "link",
    "id": "id",
    "guid": "guid",
    "published": "published",
    "pubDate": "published",
    "pubdate": "published",
    "issued": "published",
    "date": "published",
    "created": "created",
    "updated": "updated",
    "modified": "updated",
    "author": "author",
    "category": "category",
    "content": "content",
    "summary": "summary",
    "description": "description",
    "enclosure": "enclosure",
    "comments": "comments",
    "source": "source",
    "language": "language",
    "ttl": "ttl",
    "name": "name",
    "email": "email",
    "uri": "uri",
    "url": "uri",  # Atom 0.3
}
EXTENSION_MEANINGS = {
    "content": {"encoded": "encoded"},
    "xhtml": {"body": "encoded", "div": "encoded"},
    "dc": {"creator": "creator", "subject": "category", "date": "published", "language": "language"},
    "dcterms": {"created": "created", "issued": "published", "modified": "updated"},
    "media": {
        "content": "media",
        "group": "media_group",
        "thumbnail": "thumbnail",
        "description": "media_text",
        "title": "media_title",
    },
    "itunes": {"author": "itunes_author", "duration": "duration", "summary": "itunes_text"},
    "sy": {"updatePeriod": "period", "updateFrequency": "frequency"},
}


def _tags(prefix: str, namespaces: tuple[str, ...], name: str) -> Iterator[str]:
    yield f"{prefix}:{name}"
    yield from (f"{{{namespace}}}{name}" for namespace in namespaces)


MEANINGS = {
    **CORE_MEANINGS,
    **{
        tag: meaning
        for prefix, namespaces in CORE.items()
        for name, meaning in CORE_MEANINGS.items()
        for tag in _tags(prefix, namespaces, name)
    },
    **{
        tag: meaning
        for prefix, meanings in EXTENSION_MEANINGS.items()
        for name, meaning in meanings.items()
        for tag in _tags(prefix, EXTENSIONS[prefix], name)
    },
}
# Dates of one sort in one entry that are tried before it counts as having none.
MOST_DATES = 3

ENTRY_TAGS = [tag for tag, meaning in MEANINGS.items() if meaning == "entry"]

Parts = dict[str, list[Element]]
"""An element's children by their meaning."""


class FeedContext(Struct, frozen=True):
    """What a feed says once for all of its entries."""

    answer_url: str
    url: str
    """The base URL of links."""
    author: str | None
    author_id: str | None
    language: str | None


def read(tree: Tree, url: str) -> Reading:
    """Returns all items of the tree. An empty entry is skipped; the rest goes on."""
    root = tree.root
    _unwrap(root)
    feed = _parts(root)
    for channel in feed.get("channel", ()):
        for meaning, elements in _parts(channel).items():
            feed.setdefault(meaning, []).extend(elements)
    entries = list(root.iter(*ENTRY_TAGS)) if tree.is_forgiven else feed.get("entry", [])
    around = _around(tree, feed, url)
    items: list[Item] = []
    skipped = [Skipped("cut off", tree.cut_off)] if tree.cut_off else []
    limit = cost_limits.current()
    for entry in entries[: coercion.MOST_ENTRIES]:
        limit.check()
        item = _item(entry, around)
        if item.title or item.html or item.text or item.url or item.media:
            items.append(item)
        else:
            skipped.append(Skipped("no content", _excerpt(entry)))
    skipped += [Skipped("too many entries")] * (len(entries) - coercion.MOST_ENTRIES)
    return Reading(
        items=tuple(items),
        skipped=tuple(skipped),
        is_torn=tree.is_torn,
        title=_title(feed),
        hints=coercion.hints(_text(feed, "ttl"), _text(feed, "period"), _text(feed, "frequency")),
        notes=tree.notes,
    )


def _excerpt(entry: Element) -> str:
    """Returns how an empty entry looks. Not serialized: that would repeat all namespaces of the feed, each time."""
    return " ".join(
        f"<{name_of(element)}> {(element.text or '')[:40].strip()}" for element in islice(entry.iter("{*}*"), 6)
    )[:200]


def _unwrap(root: Element) -> None:
    """Removes an invented namespace that some generators put around plain RSS."""
    namespace, _, name = root.tag.rpartition("}")
    if not namespace or name == "RDF" or f"{namespace}}}title" in MEANINGS:
        return
    for element in root.iter(f"{namespace}}}*"):
        inner = element.tag.rpartition("}")[2]
        element.tag = inner if NAME.fullmatch(inner) else "span"


def _parts(element: Element) -> Parts:
    parts: Parts = {}
    for child in element:
        meaning = MEANINGS.get(child.tag)
        if meaning is not None:
            if meaning in parts:
                parts[meaning].append(child)
            else:
                parts[meaning] = [child]
    return parts


def _around(tree: Tree, feed: Parts, url: str) -> FeedContext:
    root = tree.root
    author, author_id = _people(feed.get("author", ())) if root.tag.endswith("feed") else (None, None)
    base = root.get(XML_BASE)
    for channel in feed.get("channel", ()):
        base = channel.get(XML_BASE) or base
    return FeedContext(
        answer_url=url,
        url=coercion.joined(url, base),
        author=author and author[: coercion.LONGEST_PERSON],
        author_id=author_id and author_id[: coercion.LONGEST_PERSON],
        language=coercion.language(_text(feed, "language") or root.get(XML_LANG)),
    )


def _item(entry: Element, around: FeedContext) -> Item:
    parts = _parts(entry)
    base = _base(around.url, entry)
    url, attached, references = _links(parts, base)
    markup, text, content = _content(parts)
    created, edited = _dates(parts)
    author, author_id = _author(parts, around)
    # No keyword for defaults: every one costs, fifty times a feed.
    item = Item(
        external_id=_text(parts, "id") or _text(parts, "guid") or entry.get(RDF_ABOUT, "").strip(),
        created_at=created.at if created else None,
        is_zone_guessed=created.is_zone_guessed if created else False,
        edited_at=edited.at if edited else None,
        title=_title(parts),
        text=text,
        html=markup,
        base_url=_content_base(content, base, around),
        url=url or _permalink(parts),
        author=author,
        author_id=author_id,
        media=_media(parts, attached, base),
        references=references,
        tags=_tags_of(parts) if "category" in parts else (),
        language=_language(entry, parts) or around.language,
    )
    replied = _last_reply(parts)
    return item.replace(last_reply_at=replied) if replied else item


def _last_reply(parts: Parts) -> datetime | None:
    """Returns the newest time on a link to its replies: there may be one link for each format."""
    links = [link for link in parts.get("link", ()) if link.get("rel", "") == "replies"]
    dates = [read_date(at) for link in links[:MOST_DATES] for name in REPLIED if (at := link.get(name))]
    return max((date.at for date in dates if date), default=None)


def _text(parts: Parts, meaning: str) -> str | None:
    """Returns the text of the first such element that has any."""
    for element in parts.get(meaning, ()):
        text = element.text
        if text and (trimmed := text.strip()):
            return str(trimmed)
    return None


def _base(url: str, element: Element) -> str:
    base = element.get(XML_BASE)
    return coercion.joined(url, base) if base else url


def _content_base(content: Element | None, base: str, around: FeedContext) -> str | None:
    base = base if content is None else _base(base, content)
    return None if base == around.answer_url else base


def _title(parts: Parts) -> str | None:
    for element in parts.get("title", ()):
        text = "".join(element.itertext()) if len(element) else element.text
        # Atom says whether a title is markup; elsewhere it has to be assumed.
        is_plain = element.get("type") == "text" if text and "<" in text else False
        title = coercion.plain_title(text, has_tags=not is_plain)
        if title:
            return title
    return coercion.plain_title(_text(parts, "media_title")) if "media_title" in parts else None


def _dates(parts: Parts) -> tuple[Dated | None, Dated | None]:
    """Returns when it was published, and when edited: only a second, later date says that it was."""
    created = _date(parts, "published") or _date(parts, "created")
    updated = _date(parts, "updated")
    if created is None:
        return updated, None
    return created, updated if updated and updated.at > created.at else None


def _date(parts: Parts, meaning: str) -> Dated | None:
    for element in parts.get(meaning, ())[:MOST_DATES]:
        text = element.text
        if text and (date := read_date(text)):
            return date
    return None


def _links(parts: Parts, base: str) -> tuple[str | None, list[Element], tuple[Reference, ...]]:
    """Returns the entry's URL, its enclosures, and references to its origin and discussion."""
    page = other = None
    attached: list[Element] = []
    references: list[Reference] = []
    for link in parts.get("link", ()):
        href = link.get("href")
        if href is None:
            page = page or coercion.resolved((link.text or "").strip(), base)
            continue
        rel = link.get("rel", "alternate").rpartition("/")[2].lower()
        if rel == "alternate":
            link_url = coercion.resolved(href, base)
            is_page = "html" in link.get("type", "html")
            page, other = (page or link_url, other) if is_page else (page, other or link_url)
        elif rel == "enclosure":
            attached.append(link)
        elif rel == "via" and (link_url := coercion.resolved(href, base)):
            references.append(Reference(relation="via", url=link_url))
    if "comments" in parts and (link_url := coercion.resolved(_text(parts, "comments"), base)):
        references.append(Reference(relation="discussed_at", url=link_url))
    return page or other, attached, tuple(references)


def _permalink(parts: Parts) -> str | None:
    """Returns the guid, where it is a URL, does not deny being one, and there is no other link."""
    for guid in parts.get("guid", ()):
        if (guid.get("isPermaLink") or guid.get("rss:isPermaLink") or "true").strip().lower() == "true":
            text = (guid.text or "").strip()
            return text if coercion.WHOLE_URL.fullmatch(text) else None
    return None


def _author(parts: Parts, around: FeedContext) -> tuple[str | None, str | None]:
    """Returns the entry's own author, or else its original source's, or else the feed's."""
    name, identity = _people(parts["author"]) if "author" in parts else (None, None)
    if "creator" in parts:
        name = ", ".join(coercion.unique([element.text for element in parts["creator"]])) or name
    if name:
        return name, identity
    for source in parts.get("source", ()):
        name, identity = _people(_parts(source).get("author", ()))
        if name:
            return name, identity
    return _text(parts, "itunes_author") or around.author, around.author_id


def _people(elements: list[Element] | tuple[()]) -> tuple[str | None, str | None]:
    """Returns their names; and what distinguishes the author from others of the same name, if there is but one."""
    if len(elements) == 1:
        return _person(elements[0])
    people = [person for element in elements if (person := _person(element))[0]]
    names = ", ".join(coercion.unique(name for name, _ in people))
    return names or None, None


def _person(element: Element) -> tuple[str | None, str | None]:
    if not len(element):
        return coercion.person(element.text or "")
    parts = _parts(element)
    name, uri, mail = _text(parts, "name"), _text(parts, "uri"), _text(parts, "email")
    if not name:
        return mail or uri, None
    is_shared = mail is not None and mail.lower().startswith("noreply@")
    return name, uri or (None if is_shared else mail)


def _tags_of(parts: Parts) -> tuple[str, ...]:
    return coercion.unique(
        [element.get("term") or element.text or element.get("label") for element in parts["category"]]
    )


def _language(entry: Element, parts: Parts) -> str | None:
    language = _text(parts, "language") if "language" in parts else entry.get(XML_LANG)
    return coercion.language(language) if language else None


def _content(parts: Parts) -> tuple[str | None, str | None, Element | None]:
    """Returns the fullest content as HTML or as plain text, and the element that it came from."""
    for meaning in ("encoded", "content", "description", "summary"):
        for element in parts.get(meaning, ()):
            markup, text = _typed(element) if meaning in ("content", "summary") else _untyped(element)
            if markup or text:
                return markup, text, element
    return None, _described(parts), None


def _untyped(element: Element) -> tuple[str | None, str | None]:
    """RSS does not say which it is: a text with a tag or an entity is HTML."""
    if len(element):
        return _inner(element), None
    text = (element.text or "").strip()
    return (text, None) if coercion.is_markup(text) else (None, text or None)


def _typed(element: Element) -> tuple[str | None, str | None]:
    """Atom says text, html or xhtml; 0.3 and others a media type. Binary content is ignored."""
    if len(element):
        return _inner(element), None
    text = (element.text or "").strip()
    kind = element.get("type", "").lower()
    if "html" in kind:
        return text or None, None
    if kind and kind != "text" and not kind.startswith("text/"):
        return None, None
    # Without a type it is plain text, by the standard. In the field it is markup whose type was forgotten.
    is_markup = not kind and coercion.has_html_tag(text)
    return (text, None) if is_markup else (None, text or None)


def _inner(element: Element) -> str:
    """Returns the HTML inside an element, without namespaces, and without the div that Atom prescribes around it."""
    for inside in element.iter("{*}*"):
        name = inside.tag.rpartition("}")[2]
        # The recovering parser accepts names that it would not serialize.
        inside.tag = name if NAME.fullmatch(name) else "span"
    if len(element) == 1 and element[0].tag == "div" and not (element.text or "").strip():
        element = element[0]
    # Moved out of the document: inside, every child would be serialized with all the namespaces of the feed.
    alone = etree.Element("div")
    alone.text = element.text
    alone.extend(list(element))
    written: str = etree.tostring(alone, encoding="unicode", method="html")
    return written.removeprefix("<div>").removesuffix("</div>").strip()


def _described(parts: Parts) -> str | None:
    """Returns the description of a video or a recording, where the entry itself has no text."""
    texts = [_text(parts, "media_text"), _text(parts, "itunes_text")]
    texts += [_text(_parts(group), "media_text") for group in parts.get("media_group", ())]
    return next(filter(None, texts), None)


def _media(parts: Parts, attached: list[Element], base: str) -> tuple[Media, ...]:
    """Returns everything that is attached, each URL once."""
    if not attached and not parts.keys() & {"enclosure", "media", "media_group", "thumbnail"}:
        return ()
    length = coercion.duration(_text(parts, "duration"))
    media = [_enclosure(element, length, base) for element in [*parts.get("enclosure", ()), *attached]]
    for group in [parts, *map(_parts, parts.get("media_group", ()))]:
        for element in group.get("media", ()):
            inside = _parts(element)
            media.append(_medium(element, inside, base))
            media += [_thumbnail(thumbnail, base) for thumbnail in inside.get("thumbnail", ())]
        media += [_thumbnail(thumbnail, base) for thumbnail in group.get("thumbnail", ())]
    by_url: dict[str, Media] = {}
    for medium in media:
        if medium is not None:
            by_url.setdefault(medium.url, medium)
    return tuple(by_url.values())


def _enclosure(element: Element, length: float | None, base: str) -> Media | None:
    url = coercion.resolved(element.get("url") or element.get("href"), base)
    if url is None:
        return None
    mime = element.get("type") or None
    kind = coercion.media_kind(mime, url)
    return Media(
        url,
        kind,
        mime=mime,
        size_bytes=coercion.amount(element.get("length")),
        duration_seconds=length if kind in ("audio", "video") else None,
        alt=element.get("title"),
    )


def _medium(element: Element, inside: Parts, base: str) -> Media | None:
    url = coercion.resolved(element.get("url"), base)
    if url is None:
        return None
    mime = element.get("type") or None
    return Media(
        url,
        coercion.media_kind(mime, url, element.get("medium")),
        mime=mime,
        width=coercion.amount(element.get("width")),
        height=coercion.amount(element.get("height")),
        size_bytes=coercion.amount(element.get("fileSize")),
        duration_seconds=coercion.duration(element.get("duration")),
        alt=_text(inside, "media_text") or _text(inside, "media_title"),
    )


def _thumbnail(element: Element, base: str) -> Media | None:
    url = coercion.resolved(element.get("url"), base)
    width, height = coercion.amount(element.get("width")), coercion.amount(element.get("height"))
    return Media(url, width=width, height=height) if url else None
