"""Metadata of a page: JSON-LD first, then OpenGraph, meta names, times, the title."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from catchment.model import Record
from catchment.platforms._common import coercion
from catchment.platforms._common.html import text_of
from catchment.platforms.website.links import base_of, normalised
from catchment.text.dates import read_date

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
    created = _date([_text(article.get("datePublished")), *_named(metas, CREATED), *_times(page)])
    edited = _date([_text(article.get("dateModified")), *_named(metas, EDITED)])
    return PageMetadata(
        url=_canonical(page, url),
        title=_first([_text(article.get("headline")), *_named(metas, TITLES), *_headings(page)]),
        author=_first([*_people(article.get("author")), *_named(metas, AUTHORS)], is_address=False),
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=edited.at if edited and created and edited.at > created.at else None,
        tags=coercion.unique(metas.get("article:tag", ())),
        language=_language(page),
    )


def _article(page: LexborHTMLParser) -> dict[str, Any]:
    """Returns the JSON-LD object of an article; of several the first, in the order of the list of types."""
    nodes = [node for script in page.css('script[type="application/ld+json"]')[:20] for node in _nodes(script.text())]
    ranked = [(ARTICLES.index(sort), node) for node in nodes if (sort := _sort(node))]
    return min(ranked, key=lambda row: row[0])[1] if ranked else {}


def _nodes(text: str) -> Iterator[dict[str, Any]]:
    try:
        document = json.loads(text) if len(text) <= LONGEST_JSON else None
    except (ValueError, RecursionError):
        return
    yield from objects(document)


def objects(document: Any) -> Iterator[dict[str, Any]]:
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


def _sort(node: dict[str, Any]) -> str | None:
    sorts = node.get("@type")
    named = [str(sort) for sort in (sorts[:MOST_NAMES] if isinstance(sorts, list) else [sorts])]
    return next((sort for sort in ARTICLES for name in named if name == sort), None)


def _people(value: Any) -> Iterator[str | None]:
    for person in value[:MOST_NAMES] if isinstance(value, list) else [value]:
        yield _text(person.get("name")) if isinstance(person, dict) else _text(person)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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


def _headings(page: LexborHTMLParser) -> Iterator[str]:
    yield from (text_of(node) for selector in ("head title", "title", "h1") for node in page.css(selector)[:1])


def _language(page: LexborHTMLParser) -> str | None:
    html = page.css_first("html[lang]")
    return coercion.language(html.attributes.get("lang")) if html is not None else None


def _canonical(page: LexborHTMLParser, url: str) -> str:
    link = page.css_first('link[rel~="canonical" i][href]')
    canonical = coercion.resolved(link.attributes.get("href"), base_of(page, url)) if link is not None else None
    return normalised(canonical if canonical and _site(canonical) == _site(url) else url)


def _site(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").lower().removeprefix("www.")
    except ValueError:
        return None


def _first(words: Iterable[str | None], *, is_address: bool = True) -> str | None:
    plain = (coercion.plain_title(word) for word in words)
    # OpenGraph's author is a URL as often as a name.
    return next((text for text in plain if text and (is_address or not text.startswith(("http", "//", "@")))), None)


def _date(words: Iterable[str | None]) -> Any:
    return next((date for word in words if word and (date := read_date(word.strip()))), None)
