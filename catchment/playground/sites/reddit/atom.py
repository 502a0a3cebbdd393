"""A community's Atom feed, for clients without a token. No scores or counts; every element occurs in real ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

from catchment.playground.sites import Ask, Page
from catchment.playground.sites.reddit.payloads import (
    HOME,
    NOBODY,
    Glance,
    Told,
    post_told,
)
from catchment.playground.world import Place, Post

TYPE = {"Content-Type": "application/atom+xml; charset=UTF-8"}
SPACES = 'xmlns="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/"'
TITLES = {"new": "newest submissions", "top": "top scoring links", "hot": "hot links"}


def feed(glance: Glance, place: Place, listing: str, posts: Sequence[Post], ask: Ask) -> Page:
    name = glance.community(place)
    own_path = f"{ask.path}?{ask.query}" if ask.query else ask.path
    page_path = own_path.replace("/.rss", "/").replace(".rss", "")
    entries = "".join(_entry(glance, name, post_told(glance, post), post) for post in posts)
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><feed {SPACES}>'
        f"{_category(name)}<updated>{_time(glance, glance.at)}</updated>"
        f"<icon>https://www.redditstatic.com/icon.png/</icon><id>{escape(own_path)}</id>"
        f'<link rel="self" href={quoteattr(HOME + own_path)} type="application/atom+xml" />'
        f'<link rel="alternate" href={quoteattr(HOME + page_path)} type="text/html" />'
        f"<subtitle>All about {escape(place.name)}.</subtitle>"
        f"<title>{TITLES.get(listing, listing)} : {name}</title>{entries}</feed>"
    )
    return Page(200, TYPE, body.encode())


def _entry(glance: Glance, name: str, told: Told, post: Post) -> str:
    written_at, url = _time(glance, post.began_at), HOME + told["permalink"]
    picture = told["thumbnail"] if told["thumbnail"].startswith("https:") else None
    thumbnail = f"<media:thumbnail url={quoteattr(picture)} />" if picture else ""
    return (
        f"<entry>{_author(told['author'])}{_category(name)}"
        f'<content type="html">{escape(_content(told, url, picture))}</content>'
        f"<id>{told['name']}</id>{thumbnail}<link href={quoteattr(url)} />"
        f"<updated>{written_at}</updated><published>{written_at}</published>"
        f"<title>{escape(told['title'])}</title></entry>"
    )


def _content(told: Told, url: str, picture: str | None) -> str:
    who = told["author"]
    user = NOBODY if who == NOBODY else f'<a href="{HOME}/user/{who}"> /u/{who} </a>'
    words = (told["selftext_html"] or "").replace("\n\n", " ").replace("\n", " ")
    link = told["url"] if told["url"].startswith("https:") else HOME + told["url"]
    below = (
        f"{words} &#32; submitted by &#32; {user} <br/> "
        f'<span><a href="{escape(link)}">[link]</a></span> &#32; <span><a href="{url}">[comments]</a></span>'
    )
    if picture is None:
        return below
    title = quoteattr(told["title"])
    shown = f'<a href="{url}"> <img src="{escape(picture)}" alt={title} title={title} /> </a>'
    return f"<table> <tr><td> {shown} </td><td> {below} </td></tr></table>"


def _author(name: str) -> str:
    if name == NOBODY:
        return f"<author><name>/u/{NOBODY}</name></author>"
    return f"<author><name>/u/{name}</name><uri>{HOME}/user/{name}</uri></author>"


def _category(name: str) -> str:
    return f'<category term="{name}" label="r/{name}"/>'


def _time(glance: Glance, at: datetime) -> str:
    return f"{at + glance.skew:%Y-%m-%dT%H:%M:%S}+00:00"
