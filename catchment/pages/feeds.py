"""A list of items as a feed that others can follow: Atom and JSON Feed. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from catchment.pages.reading import readable, web_address

_ATOM = "http://www.w3.org/2005/Atom"
_EXCERPT = 120


class About(NamedTuple):
    """What a feed says of itself."""

    title: str
    base: str
    """Where we are reached: http://127.0.0.1:8700"""
    path: str
    """Of the page that shows the same."""
    feed_path: str
    updated_at: str


def atom(items: Sequence[Mapping[str, Any]], about: About) -> bytes:
    feed = ElementTree.Element("feed", {"xmlns": _ATOM})
    _add(feed, "id", f"{about.base}{about.path}")
    _add(feed, "title", about.title)
    _add(feed, "updated", max((one["content_last_changed_at"] for one in items), default=about.updated_at))
    ElementTree.SubElement(feed, "link", {"rel": "self", "href": f"{about.base}{about.feed_path}"})
    ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": f"{about.base}{about.path}"})
    _add(feed, "generator", "catchment")
    for item in items:
        _atom_entry(feed, item, about)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True))


def _atom_entry(feed: ElementTree.Element, item: Mapping[str, Any], about: About) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    _add(entry, "id", name_of(item))
    _add(entry, "title", title_of(item))
    _add(entry, "updated", item["content_last_changed_at"])
    _add(entry, "published", item["ordered_at"])
    ElementTree.SubElement(entry, "link", {"rel": "alternate", "href": address_of(item, about)})
    author = ElementTree.SubElement(entry, "author")
    _add(author, "name", item["author_display_name"] or item["author"] or item["source_name"] or item["platform"])
    for tag in item["tags"]:
        ElementTree.SubElement(entry, "category", {"term": _clean(tag)})
    if item["html"]:
        _add(entry, "content", str(readable(item["html"])), type="html")
    elif item["text"]:
        _add(entry, "content", item["text"], type="text")


def json_feed(items: Sequence[Mapping[str, Any]], about: About) -> bytes:
    told = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": about.title,
        "home_page_url": f"{about.base}{about.path}",
        "feed_url": f"{about.base}{about.feed_path}",
        "items": [_json_entry(item, about) for item in items],
    }
    return json.dumps(told, ensure_ascii=False).encode()


def _json_entry(item: Mapping[str, Any], about: About) -> dict[str, Any]:
    author = item["author_display_name"] or item["author"]
    content = {"content_html": str(readable(item["html"]))} if item["html"] else {"content_text": item["text"] or ""}
    told = {
        "id": name_of(item),
        "url": address_of(item, about),
        "external_url": web_address(item["target_url"]),
        "title": title_of(item),
        "date_published": item["ordered_at"],
        "date_modified": item["content_last_changed_at"],
        "authors": [{"name": author}] if author else None,
        "tags": item["tags"] or None,
        "language": item["language"],
    }
    return {name: value for name, value in told.items() if value is not None} | content


def name_of(item: Mapping[str, Any]) -> str:
    """The same wherever and whenever it is told."""
    parts = "\0".join((item["platform"], item["scope"], item["external_id"]))
    return f"urn:catchment:item:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def title_of(item: Mapping[str, Any]) -> str:
    text = item["title"] or " ".join((item["text"] or "").split())
    return text if len(text) <= _EXCERPT or item["title"] else f"{text[:_EXCERPT]}…"


def address_of(item: Mapping[str, Any], about: About) -> str:
    """The original; where it has no address, the item here."""
    return web_address(item["url"]) or f"{about.base}/items/{item['id']}"


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = _clean(text)


def _clean(text: str) -> str:
    """Without what XML cannot say: such a character would make the whole feed unreadable."""
    return "".join(one for one in text if one in "\t\n" or (one >= " " and one not in "￾￿"))
