"""A list of items as a feed that others can subscribe to: Atom and JSON Feed. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlencode
from xml.etree import ElementTree

import msgspec
from fastapi import Depends, Request, Response

from catchment.errors import InvalidInput
from catchment.model import as_json
from catchment.sources.export import written
from catchment.store.item_fields import ItemView
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.pages.item_views import readable, web_address
from catchment.web.pages.render import Reader
from catchment.web.pages.session import Outside, inside, reader_of

_ATOM = "http://www.w3.org/2005/Atom"
_EXCERPT = 120


class About(NamedTuple):
    """The metadata of a feed."""

    title: str
    base: str
    """Our base URL: http://127.0.0.1:8700"""
    path: str
    """The path of the page that shows the same list."""
    feed_path: str
    updated_at: str
    source_names: Mapping[int, str]


def atom(items: Sequence[ItemView], about: About) -> bytes:
    feed = ElementTree.Element("feed", {"xmlns": _ATOM})
    _add(feed, "id", f"{about.base}{about.path}")
    _add(feed, "title", about.title)
    _add(feed, "updated", max((item.content_last_changed_at.isoformat() for item in items), default=about.updated_at))
    ElementTree.SubElement(feed, "link", {"rel": "self", "href": f"{about.base}{about.feed_path}"})
    ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": f"{about.base}{about.path}"})
    _add(feed, "generator", "catchment")
    for item in items:
        _atom_entry(feed, item, about)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True))


def _atom_entry(feed: ElementTree.Element, item: ItemView, about: About) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    _add(entry, "id", name_of(item))
    _add(entry, "title", title_of(item))
    _add(entry, "updated", item.content_last_changed_at.isoformat())
    _add(entry, "published", item.ordered_at.isoformat())
    ElementTree.SubElement(entry, "link", {"rel": "alternate", "href": address_of(item, about)})
    author = item.author_display_name or item.author or about.source_names.get(item.source_id) or item.platform
    _add(ElementTree.SubElement(entry, "author"), "name", author)
    for tag in item.tags:
        ElementTree.SubElement(entry, "category", {"term": _clean(tag)})
    if item.html:
        _add(entry, "content", str(readable(item.html)), type="html")
    elif item.text:
        _add(entry, "content", item.text, type="text")


def json_feed(items: Sequence[ItemView], about: About) -> bytes:
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": about.title,
        "home_page_url": f"{about.base}{about.path}",
        "feed_url": f"{about.base}{about.feed_path}",
        "items": [_json_entry(item, about) for item in items],
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _json_entry(item: ItemView, about: About) -> dict[str, object]:
    author = item.author_display_name or item.author
    content: dict[str, object] = (
        {"content_html": str(readable(item.html))} if item.html else {"content_text": item.text or ""}
    )
    entry: dict[str, object] = {
        "id": name_of(item),
        "url": address_of(item, about),
        "external_url": web_address(item.target_url),
        "title": title_of(item),
        "date_published": item.ordered_at.isoformat(),
        "date_modified": item.content_last_changed_at.isoformat(),
        "authors": [{"name": author}] if author else None,
        "tags": item.tags or None,
        "language": item.language,
    }
    return {name: value for name, value in entry.items() if value is not None} | content


def json_lines(items: Sequence[ItemView], about: About) -> bytes:
    lines = [as_json(item) | {"source_name": about.source_names.get(item.source_id)} for item in items]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def name_of(item: ItemView) -> str:
    """The item's id in feeds: the same in every feed, at any time."""
    parts = "\0".join((item.platform, item.scope, item.external_id))
    return f"urn:catchment:item:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def title_of(item: ItemView) -> str:
    text = item.title or " ".join((item.text or "").split())
    return text if len(text) <= _EXCERPT or item.title else f"{text[:_EXCERPT]}…"


def address_of(item: ItemView, about: About) -> str:
    """The original's URL; if it has none, the item's page here."""
    return web_address(item.url) or f"{about.base}/items/{item.id}"


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = _clean(text)


def _clean(text: str) -> str:
    """Without characters that XML cannot contain: one of them would make the whole feed unreadable."""
    return re.sub(r"[^\t\n\x20-\ufffd\U00010000-\U0010ffff]", "", text)


SEAL = "seal"


class Format(NamedTuple):
    name: str
    media_type: str
    most: int
    """Items per response."""
    is_feed: bool
    write: Callable[[Sequence[ItemView], About], bytes]


FORMATS = {
    "atom": Format("Atom", "application/atom+xml", 50, True, atom),
    "json": Format("JSON Feed", "application/feed+json", 50, True, json_feed),
    "csv": Format("CSV", "text/csv", 1_000, False, lambda items, _: written("csv", items)),
    "jsonl": Format("JSONL", "application/jsonl", 1_000, False, json_lines),
}


def format_of(request: Request) -> Format | None:
    """The feed format of a request; None for a page."""
    asked = request.query_params.get("format")
    if not asked:
        return None
    if asked not in FORMATS:
        raise InvalidInput(
            "unknown format {asked!r}",
            "known formats: {formats}",
            field="format",
            asked=asked[:20],
            formats=", ".join(FORMATS),
        )
    return FORMATS[asked]


def _inside_or_sealed(request: Request, context: WebContextDep) -> Reader:
    reader = reader_of(request, context)
    if reader.is_inside:
        return inside(request, context)
    seal = request.query_params.get(SEAL)
    if seal is None or format_of(request) is None or not context.sessions.is_sealed(_named(request), seal):
        raise Outside
    return reader


AnyReader = Annotated[Reader, Depends(_inside_or_sealed)]


def _named(request: Request) -> str:
    """What a signature covers: a list with its filters, and its format; neither the cursor nor the language."""
    params = {name: value for name, value in request.query_params.items() if name not in (SEAL, "after", "lang")}
    return f"{request.url.path}?{urlencode(sorted(params.items()))}"


def addresses(context: WebContext, path: str, asked: Mapping[str, str]) -> list[dict[str, object]]:
    """The feed URLs of a list, in every format."""
    links = []
    for key, format_ in FORMATS.items():
        params = {**asked, "format": key}
        seal = context.sessions.seal(f"{path}?{urlencode(sorted(params.items()))}")
        href = f"{path}?{urlencode({**params, SEAL: seal})}"
        links.append({"name": format_.name, "media_type": format_.media_type, "is_feed": format_.is_feed, "href": href})
    return links


def answer(request: Request, format: Format, items: Sequence[ItemView], about: About, next: str | None) -> Response:
    """`next`: the cursor of the following page."""
    headers = {}
    if next is not None:
        headers["Link"] = f'<{request.url.include_query_params(after=next)}>; rel="next"'
    if not format.is_feed:
        ending = request.query_params["format"]
        headers["Content-Disposition"] = f'attachment; filename="catchment.{ending}"'
    body = format.write(items, about)
    return Response(body, media_type=f"{format.media_type}; charset=utf-8", headers=headers)
