"""Metadata of a page: JSON-LD first, then OpenGraph, meta names, times, the title."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from catchment.model import JsonObject, Record
from catchment.platforms._common import coercion
from catchment.platforms._common.html import text_of
from catchment.platforms.website.links import base_of, normalised
from catchment.text.dates import Dated, read_date

ARTICLES = ("Article", "NewsArticle", "BlogPosting", "Report", "TechArticle", "ScholarlyArticle", "WebPage", "Posting")
LONGEST_JSON, MOST_NODES = 500_000, 1_000
MOST_NAMES = 20
"""Of types and of authors: no page has more that mean anything."""
_END = object()

TITLES = ("og:title", "twitter:title", "dc.title", "title")
AUTHORS = ("article:author", "author", "byl", "dc.creator", "parsely-author", "sailthru.author")
CREATED = (
    "article:published_time", "og:article:published_time", "date", "pubdate", "publishdate", "publish_date", "dc.date",
    "dc.date.issued", "dcterms.created", "dcterms.date", "parsely-pub-date", "sailthru.date",
)  # fmt: skip
EDITED = ("article:modified_time", "og:updated_time", "last-modified", "dcterms.modified")


class PageMetadata(Record, frozen=True):
    """What is known of a page besides its text."""

    url: str
    """The canonical URL, where it is one of the same site; else the one that it came from."""
    title: str | None = None
    author: str | None = None
    created_at: datetime | None = None
    is_zone_guessed: bool = False
    edited_at: datetime | None = None
    tags: tuple[str, ...] = ()
    language: str | None = None


def read(page: LexborHTMLParser, url: str) -> PageMetadata:
    article, metas = _article(page), _metas(page)
    people = article.get("author")
    authors = people[:MOST_NAMES] if isinstance(people, list) else [people]
    names = [person.get("name") if isinstance(person, dict) else person for person in authors]
    headings = [text_of(node) for selector in ("head title", "title", "h1") for node in page.css(selector)[:1]]
    created = _date([article.get("datePublished"), *_named(metas, CREATED), *_times(page)])
    edited = _date([article.get("dateModified"), *_named(metas, EDITED)])
    html = page.css_first("html[lang]")
    return PageMetadata(
        url=_canonical(page, url),
        title=_first([article.get("headline"), *_named(metas, TITLES), *headings]),
        author=_first([*names, *_named(metas, AUTHORS)], is_address=False),
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=edited.at if edited and created and edited.at > created.at else None,
        tags=coercion.unique(metas.get("article:tag", ())),
        language=coercion.language(html.attributes.get("lang")) if html is not None else None,
    )


def _article(page: LexborHTMLParser) -> JsonObject:
    """Returns the JSON-LD object of an article; of several the first, in the order of the list of types."""
    ranked = []
    for script in page.css('script[type="application/ld+json"]')[:20]:
        text = script.text()
        try:
            document = json.loads(text) if len(text) <= LONGEST_JSON else None
        except (ValueError, RecursionError):
            continue
        for node in objects(document):
            types = node.get("@type")
            names = [str(name) for name in (types[:MOST_NAMES] if isinstance(types, list) else [types])]
            ranked += [(ARTICLES.index(name), node) for name in names if name in ARTICLES]
    return min(ranked, key=lambda row: row[0])[1] if ranked else {}


def objects(document: Any) -> Iterator[JsonObject]:
    """Yields the objects in a document, wherever they are: alone, in a list, in a graph. The number of nodes visited is
    limited."""
    waiting: list[Iterator[Any]] = [iter((document,))]
    for _ in range(MOST_NODES):
        while waiting and (node := next(waiting[-1], _END)) is _END:
            waiting.pop()
        if not waiting:
            return
        if isinstance(node, list):
            waiting.append(iter(node))
        elif isinstance(node, dict):
            yield node
            waiting.append(iter([node[name] for name in ("@graph", "mainEntity") if name in node]))


def _metas(page: LexborHTMLParser) -> dict[str, list[str]]:
    metas: dict[str, list[str]] = {}
    for node in islice(page.css("meta[content]"), MOST_NODES):
        name = node.attributes.get("property") or node.attributes.get("name") or node.attributes.get("itemprop") or ""
        metas.setdefault(name.strip().lower(), []).append(node.attributes.get("content") or "")
    return metas


def _named(metas: dict[str, list[str]], names: Iterable[str]) -> Iterator[str]:
    yield from (content for name in names for content in metas.get(name, ()))


def _times(page: LexborHTMLParser) -> Iterator[str | None]:
    """Yields times; those marked as the date of publication first."""
    for selector in ('[itemprop="datePublished"]', "time[pubdate]", "article time[datetime]", "time[datetime]"):
        for node in page.css(selector)[:5]:
            yield node.attributes.get("datetime") or node.attributes.get("content")


def _canonical(page: LexborHTMLParser, url: str) -> str:
    link = page.css_first('link[rel~="canonical" i][href]')
    canonical = coercion.resolved(link.attributes.get("href"), base_of(page, url)) if link is not None else None
    return normalised(canonical if canonical and _site(canonical) == _site(url) else url)


def _site(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").lower().removeprefix("www.")
    except ValueError:
        return None


def _first(values: Iterable[Any], *, is_address: bool = True) -> str | None:
    plain = (coercion.plain_title(value) for value in values if isinstance(value, str))
    # OpenGraph's author is a URL as often as a name.
    return next((text for text in plain if text and (is_address or not text.startswith(("http", "//", "@")))), None)


def _date(values: Iterable[Any]) -> Dated | None:
    texts = (value.strip() for value in values if isinstance(value, str) and value)
    return next((date for text in texts if (date := read_date(text))), None)
