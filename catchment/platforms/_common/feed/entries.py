"""Converts a feed's tree to items: RSS 0.9x to 2.0, RDF, Atom 0.3 and 1.0, with their usual extensions.

One table serves all dialects: it maps each element to its meaning, whatever its namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from msgspec import Struct

from catchment import work_limits
from catchment.lazy import lazy_imports, pattern
from catchment.model import Item, Media, Reading, Reference, Skipped
from catchment.platforms._common import coercion
from catchment.platforms._common.feed.markup import Element, Tree, name_of
from catchment.text.dates import Dated, read_date

with lazy_imports():
    from lxml import etree

ATOM = "http://www.w3.org/2005/Atom"
XHTML = "http://www.w3.org/1999/xhtml"
RDF_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
NAME = pattern(r"[A-Za-z_][\w.-]*", re.ASCII)
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
    name: name
    for name in (
        *("channel", "entry", "title", "link", "id", "guid", "published", "created", "updated", "author", "category"),
        *("content", "summary", "description", "enclosure", "comments", "source", "language", "ttl", "name", "email"),
        "uri",
    )
} | {
    "item": "entry",
    "pubDate": "published",
    "pubdate": "published",
    "issued": "published",
    "date": "published",
    "modified": "updated",
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
# From the fullest content to the shortest.
CONTENTS = ("encoded", "content", "description", "summary")
# Elements of which an entry uses the first text alone.
SIMPLE = frozenset(
    (
        *("id", "guid", "published", "created", "updated", "comments", "duration", "itunes_author", "itunes_text"),
        *("media_text", "media_title"),
    )
)
ATTACHED = frozenset(("enclosure", "media", "media_group", "thumbnail"))
ENTRY_TAGS = [tag for tag, meaning in MEANINGS.items() if meaning == "entry"]

Parts = dict[str, list[Element]]
"""An element's children by their meaning."""
Texts = dict[str, str]
"""The first text of each simple element."""


class FeedContext(Struct, frozen=True):
    """What a feed says once for all of its entries."""

    answer_url: str
    url: str
    """The base URL of links."""
    author: str | None
    author_id: str | None
    language: str | None


def read(tree: Tree, url: str) -> Reading:
    """Returns all items of the tree. An empty entry is skipped; the others are processed."""
    root = tree.root
    _unwrap(root)
    feed, base = _parts(root), root.get(XML_BASE)
    for channel in feed.get("channel", ()):
        base = channel.get(XML_BASE) or base
        for meaning, elements in _parts(channel).items():
            feed.setdefault(meaning, []).extend(elements)
    author, author_id = _people(feed.get("author", ())) if root.tag.endswith("feed") else (None, None)
    context = FeedContext(
        answer_url=url,
        url=coercion.joined(url, base),
        author=author and author[: coercion.LONGEST_PERSON],
        author_id=author_id and author_id[: coercion.LONGEST_PERSON],
        language=coercion.language(_text(feed, "language") or root.get(XML_LANG)),
    )
    entries = list(root.iter(*ENTRY_TAGS)) if tree.is_forgiven else feed.get("entry", [])
    items: list[Item] = []
    skipped = [Skipped("cut off", tree.cut_off)] if tree.cut_off else []
    check = work_limits.current().check
    for entry in entries[: coercion.MOST_ENTRIES]:
        check()
        item = _item(entry, context)
        if item.title or item.html or item.text or item.url or item.media:
            items.append(item)
        else:
            # Not serialized: that would repeat all namespaces of the feed, each time.
            inside = islice(entry.iter("{*}*"), 6)
            shown = " ".join(f"<{name_of(element)}> {(element.text or '')[:40].strip()}" for element in inside)
            skipped.append(Skipped("no content", shown[:200]))
    skipped += [Skipped("too many entries")] * (len(entries) - coercion.MOST_ENTRIES)
    return Reading(
        items=tuple(items),
        skipped=tuple(skipped),
        is_torn=tree.is_torn,
        title=next(filter(None, map(_title, feed.get("title", ()))), None)
        or coercion.plain_title(_text(feed, "media_title")),
        hints=coercion.hints(_text(feed, "ttl"), _text(feed, "period"), _text(feed, "frequency")),
        notes=tree.notes,
    )


def _unwrap(root: Element) -> None:
    """Removes an invented namespace that some generators put around plain RSS."""
    namespace, _, name = root.tag.rpartition("}")
    if namespace and name != "RDF" and f"{namespace}}}title" not in MEANINGS:
        _strip_namespaces(root.iter(f"{namespace}}}*"))


def _strip_namespaces(elements: Iterable[Element]) -> None:
    for element in elements:
        name = element.tag.rpartition("}")[2]
        # The recovering parser accepts names that it would not serialize.
        element.tag = name if NAME.fullmatch(name) else "span"


def _parts(element: Element) -> Parts:
    parts: Parts = {}
    for child in element:
        meaning = MEANINGS.get(child.tag)
        if meaning is None:
            continue
        if meaning in parts:
            parts[meaning].append(child)
        else:
            parts[meaning] = [child]
    return parts


def _item(entry: Element, feed: FeedContext) -> Item:
    """Returns an entry, read in one walk. What most entries do not have is tested for here: a call costs more."""
    parts: Parts = {}
    texts: Texts = {}
    tags: dict[str, None] = {}
    title: str | None = None
    for child in entry:
        meaning = MEANINGS.get(child.tag)
        if meaning is None:
            continue
        if meaning in SIMPLE:
            if meaning not in texts and (text := child.text) and (text := text.strip()):
                texts[meaning] = text
        elif meaning == "category":
            if tag := (child.get("term") or child.text or child.get("label") or "").strip():
                tags[tag] = None
        elif meaning == "title":
            title = title or _title(child)
        elif meaning in parts:
            parts[meaning].append(child)
        else:
            parts[meaning] = [child]
    attributes = dict(entry.items())
    base = coercion.joined(feed.url, attributes[XML_BASE]) if XML_BASE in attributes else feed.url
    url, attached, references, last_reply_at = _links(parts, texts, base)
    text, html, content_base = _content(parts, texts, base)
    created_at, is_zone_guessed, edited_at = _dates(texts, entry)
    author, author_id = _author(parts, texts, feed)
    language = _text(parts, "language") if "language" in parts else attributes.get(XML_LANG)
    has_media = attached or not ATTACHED.isdisjoint(parts)
    return Item(
        external_id=texts.get("id") or texts.get("guid") or attributes.get(RDF_ABOUT, "").strip(),
        created_at=created_at,
        is_zone_guessed=is_zone_guessed,
        edited_at=edited_at,
        title=title or (coercion.plain_title(texts["media_title"]) if "media_title" in texts else None),
        text=text,
        html=html,
        base_url=None if content_base == feed.answer_url else content_base,
        url=url or (_permalink(entry) if "guid" in texts else None),
        author=author,
        author_id=author_id,
        last_reply_at=last_reply_at,
        media=coercion.each_once(_media(parts, texts, attached, base)) if has_media else (),
        references=references,
        tags=tuple(tags),
        language=(coercion.language(language) if language else None) or feed.language,
    )


def _text(parts: Parts, meaning: str) -> str | None:
    """Returns the text of the first such element that has any."""
    for element in parts.get(meaning, ()):
        text = element.text
        if text and (trimmed := text.strip()):
            return str(trimmed)
    return None


def _title(element: Element) -> str | None:
    text = "".join(element.itertext()) if len(element) else element.text
    # Atom says whether a title is markup; elsewhere it has to be assumed.
    is_plain = element.get("type") == "text" if text and "<" in text else False
    return coercion.plain_title(text, has_tags=not is_plain)


def _dates(texts: Texts, entry: Element) -> tuple[datetime | None, bool, datetime | None]:
    published = _date(texts, "published", entry) or _date(texts, "created", entry)
    # In most entries, the date of the last change is that of publication: it is not parsed again.
    is_same = published is not None and texts.get("updated") == texts.get("published")
    return coercion.dates(published, None if is_same else _date(texts, "updated", entry))


def _date(texts: Texts, meaning: str, entry: Element) -> Dated | None:
    if meaning not in texts:
        return None
    if date := read_date(texts[meaning]):
        return date
    elements = _parts(entry)[meaning][:MOST_DATES]
    return next((date for element in elements if element.text and (date := read_date(element.text))), None)


def _links(
    parts: Parts, texts: Texts, base: str
) -> tuple[str | None, list[Element], tuple[Reference, ...], datetime | None]:
    """Returns the entry's URL, its enclosures, references to its origin and discussion, and the newest time on a link
    to its replies, of which there may be one for each format."""
    page = other = last_reply_at = None
    attached: list[Element] = []
    references: list[Reference] = []
    replies: list[Element] = []
    for link in parts.get("link", ()):
        href = link.get("href")
        relation = link.get("rel", "alternate") if href is not None or link.keys() else ""
        if relation == "replies":
            replies.append(link)
        if href is None:
            page = page or coercion.resolved((link.text or "").strip(), base)
            continue
        if relation != "alternate":
            relation = relation.rpartition("/")[2].lower()
        if relation == "alternate":
            link_url = coercion.resolved(href, base)
            if "html" in link.get("type", "html"):
                page = page or link_url
            else:
                other = other or link_url
        elif relation == "enclosure":
            attached.append(link)
        elif relation == "via" and (link_url := coercion.resolved(href, base)):
            references.append(Reference(relation="via", url=link_url))
    if "comments" in texts and (link_url := coercion.resolved(texts["comments"], base)):
        references.append(Reference(relation="discussed_at", url=link_url))
    if replies:
        dates = [read_date(at) for link in replies[:MOST_DATES] for name in REPLIED if (at := link.get(name))]
        last_reply_at = max((date.at for date in dates if date), default=None)
    return page or other, attached, tuple(references), last_reply_at


def _permalink(entry: Element) -> str | None:
    """Returns the guid, where it is a URL, does not deny being one, and there is no other link."""
    for guid in _parts(entry).get("guid", ()):
        if (guid.get("isPermaLink") or guid.get("rss:isPermaLink") or "true").strip().lower() == "true":
            text = (guid.text or "").strip()
            return text if coercion.WHOLE_URL.fullmatch(text) else None
    return None


def _author(parts: Parts, texts: Texts, feed: FeedContext) -> tuple[str | None, str | None]:
    """Returns the entry's own author, or else its original source's, or else the feed's."""
    name, identity = _people(parts["author"]) if "author" in parts else (None, None)
    if "creator" in parts:
        creators = parts["creator"]
        is_one = len(creators) == 1
        own = _text(parts, "creator") if is_one else ", ".join(coercion.unique([creator.text for creator in creators]))
        name = own or name
    if name:
        return name, identity
    for source in parts.get("source", ()):
        name, identity = _people(_parts(source).get("author", ()))
        if name:
            return name, identity
    return texts.get("itunes_author") or feed.author, feed.author_id


def _people(elements: Sequence[Element]) -> tuple[str | None, str | None]:
    """Returns their names; and what distinguishes the author from others of the same name, if there is only one."""
    if len(elements) == 1:
        return _person(elements[0])
    people = [person for element in elements if (person := _person(element))[0]]
    names = ", ".join(coercion.unique(name for name, _ in people))
    return names or None, None


def _person(element: Element) -> tuple[str | None, str | None]:
    if not len(element):
        return coercion.person(element.text or "")
    details: dict[str, str] = {}
    for child in element:
        meaning, text = MEANINGS.get(child.tag), child.text
        if meaning and text and (trimmed := text.strip()):
            details.setdefault(meaning, trimmed)
    name, uri, mail = details.get("name"), details.get("uri"), details.get("email")
    if not name:
        return mail or uri, None
    is_shared = mail is not None and mail.lower().startswith("noreply@")
    return name, uri or (None if is_shared else mail)


def _content(parts: Parts, texts: Texts, base: str) -> tuple[str | None, str | None, str]:
    """Returns the fullest content as plain text or as HTML, and the base URL of its links.

    Atom says text, html or xhtml; 0.3 and others a media type. Binary content is ignored. RSS does not say which it is:
    a text with a tag or an entity is HTML.
    """
    for meaning in CONTENTS:
        for element in parts.get(meaning, ()):
            text: str | None = None
            html: str | None = None
            if len(element):
                html = _inner(element)
            elif meaning in ("encoded", "description"):
                text, html = coercion.text_or_html((element.text or "").strip())
            else:
                content, kind = (element.text or "").strip() or None, element.get("type", "").lower()
                # Without a type it is plain text, by the standard. In the field it is markup whose type was forgotten.
                if "html" in kind or (content and not kind and coercion.has_html_tag(content)):
                    html = content
                elif not kind or kind == "text" or kind.startswith("text/"):
                    text = content
            if html or text:
                own_base = element.get(XML_BASE)
                return text, html, coercion.joined(base, own_base) if own_base else base
    # Of a video or a recording, the description.
    descriptions = [texts.get("media_text"), texts.get("itunes_text")]
    descriptions += [_text(_parts(group), "media_text") for group in parts.get("media_group", ())]
    return next(filter(None, descriptions), None), None, base


def _inner(element: Element) -> str:
    """Returns the HTML inside an element, without namespaces, and without the div that Atom prescribes around it."""
    _strip_namespaces(element.iter("{*}*"))
    if len(element) == 1 and element[0].tag == "div" and not (element.text or "").strip():
        element = element[0]
    # Moved out of the document: inside, every child would be serialized with all the namespaces of the feed.
    alone = etree.Element("div")
    alone.text = element.text
    alone.extend(list(element))
    written: str = etree.tostring(alone, encoding="unicode", method="html")
    return written.removeprefix("<div>").removesuffix("</div>").strip()


def _media(parts: Parts, texts: Texts, attached: list[Element], base: str) -> Iterator[Media]:
    """Yields everything that is attached."""
    length = coercion.duration(texts.get("duration"))
    for element in (*parts.get("enclosure", ()), *attached):
        url, mime = element.get("url") or element.get("href"), element.get("type") or None
        medium = coercion.enclosure(url, base, mime, element.get("length"), alt=element.get("title"))
        if medium is not None:
            yield medium.replace(duration_seconds=length) if medium.kind in ("audio", "video") else medium
    for group in (parts, *map(_parts, parts.get("media_group", ()))):
        for element in group.get("media", ()):
            inside = _parts(element)
            if url := coercion.resolved(element.get("url"), base):
                mime = element.get("type") or None
                yield Media(
                    url,
                    coercion.media_kind(mime, url, element.get("medium")),
                    mime=mime,
                    width=coercion.amount(element.get("width")),
                    height=coercion.amount(element.get("height")),
                    size_bytes=coercion.amount(element.get("fileSize")),
                    duration_seconds=coercion.duration(element.get("duration")),
                    alt=_text(inside, "media_text") or _text(inside, "media_title"),
                )
            yield from _thumbnails(inside, base)
        yield from _thumbnails(group, base)


def _thumbnails(parts: Parts, base: str) -> Iterator[Media]:
    for element in parts.get("thumbnail", ()):
        if url := coercion.resolved(element.get("url"), base):
            width, height = coercion.amount(element.get("width")), coercion.amount(element.get("height"))
            yield Media(url, width=width, height=height)
