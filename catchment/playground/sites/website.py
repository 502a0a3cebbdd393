"""Simulates web pages: a page whose main text is the newest post, and an index of links to everything shown.

Both are surrounded by the usual: menus, scripts, banners, recommended articles. `/website/N` is the page,
`/website/N/index` the index, `/website/N/private` the page that robots.txt disallows.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from html import escape

from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.world import (
    Place,
    Post,
    Shown,
    Version,
    World,
)

NAME = "website"
PATH = re.compile(r"/website/(\d+)(?:/(?:index|private))?")
SELECTOR = "main h2 a"
"""Finds the links of an index."""
THE_PAGE = "page"
"""The id of the one text of a page."""

# Every page has this below its text: without it, a post of one sentence would be shorter than its surroundings.
STANDING = (
    "This page always shows what was written last, and nothing else; what was written before has to make room for it, "
    "as it does on every pin board that is worth looking at more than once a week.",
    "Whoever wants to know what stood here yesterday has to have looked yesterday. We think that this is as it should "
    "be, and that a copy of what was said is the business of those who listened.",
)


class WebsiteSimulator:
    def __init__(self, world: World) -> None:
        self.world = world

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        if found is None or int(found[1]) >= len(self.world.places):
            return None
        place = self.world.places[int(found[1])]
        return place if place.form == NAME else None

    def answer(self, place: Place, ask: Ask) -> Page:
        shown = self.world.shown(place, ask.at - ask.distortion.ago)
        body, entries = (
            _index(place, _distorted(shown, ask)) if ask.path.endswith("/index") else page(place, shown, ask)
        )
        return Page(200, {"Content-Type": "text/html; charset=utf-8"}, body.encode(), entries=entries)


SIMULATOR = WebsiteSimulator


def link(place: Place, post: Post) -> str:
    """Where an index leads; without the tracking parameters, it is the id."""
    return f"https://{place.host}.example/{place.number}/{post.number}"


def _distorted(shown: Shown, ask: Ask) -> Shown:
    ordered = list(shown)
    if ask.distortion.is_reordered:
        chance_of(ask.path, ask.at).shuffle(ordered)
    return tuple(entry for entry in ordered for _ in range(2 if ask.distortion.is_repeated else 1))


def page(place: Place, shown: Shown, ask: Ask) -> tuple[str, tuple[Entry, ...]]:
    if not shown:
        return _around(place, place.name, "", _standing()), ()
    post, version = shown[0]
    dated = {"datePublished": _date(post.created_at, ask), "dateModified": _date(version.from_at, ask)}
    article = {"@type": "NewsArticle", "headline": version.title, "author": {"name": post.author}, **dated}
    head = f'<script type="application/ld+json">{_json({"@context": "https://schema.org", **article})}</script>\n'
    main = (
        f'<article class="post"><h1>{escape(version.title)}</h1>\n<div class="entry-content">{version.html}\n'
        f"{_standing()}</div></article>\n"
    )
    return _around(place, version.title, head, main), (Entry(post.id, version.number, THE_PAGE),)


def _index(place: Place, shown: Shown) -> tuple[str, tuple[Entry, ...]]:
    rows = "".join(_teaser(place, post, version) for post, version in shown)
    entries = tuple(Entry(post.id, version.number, link(place, post)) for post, version in shown)
    return _around(place, place.name, "", rows or _standing()), entries


def _teaser(place: Place, post: Post, version: Version) -> str:
    """A picture and a headline with the same target, each with its own tracking."""
    target = link(place, post)
    return (
        f'<div class="teaser"><a href="{target}?utm_source=index&amp;utm_medium=picture#top"><img src="/p.jpg"></a>\n'
        f'<h2><a href="{target}?utm_source=index">{escape(version.title)}</a></h2></div>\n'
    )


def _standing() -> str:
    return "".join(f"<p>{words}</p>\n" for words in STANDING)


def _date(at: datetime, ask: Ask) -> str:
    return (at + ask.distortion.skew).isoformat()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _around(place: Place, title: str, head: str, main: str) -> str:
    """A whole page, with everything that a parser should not take for its text."""
    language = "zh-CN" if place.language == "zh" else "en"
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)} – {escape(place.name)}</title>\n"
        f'<meta property="og:title" content="{escape(title)}">\n'
        f'<meta property="og:site_name" content="{escape(place.name)}">\n'
        f'<link rel="canonical" href="{place.path}">\n<style>.banner{{position:fixed}}</style>\n{head}</head>\n<body>\n'
        '<header><nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav></header>\n'
        '<div id="cookie-banner" class="cookie-consent banner">We use cookies. <button>Accept all</button></div>\n'
        f"<main>\n{main}</main>\n"
        '<div class="sidebar"><ul><li><a href="/subscribe">Subscribe to our letter</a></li></ul></div>\n'
        "<script>window.dataLayer = window.dataLayer || [];</script>\n<footer>All rights reserved.</footer>\n"
        "</body>\n</html>\n"
    )
