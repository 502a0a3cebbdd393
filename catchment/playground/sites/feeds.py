"""Simulates feeds: RSS 2.0, RDF (RSS 1.0), Atom 1.0 and JSON Feed 1.1, with validators, redirects and 410s.

Every element and attribute written here occurs in real feeds of the same format; a test compares.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from hashlib import sha256
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import (
    STRAIGHT,
    Ask,
    Distortion,
    Entry,
    Page,
)
from catchment.playground.world import (
    Place,
    Post,
    Shown,
    Version,
    World,
)

NAME = "feeds"
PATH = re.compile(r"/(?:feeds|new-home)/(\d+)\.[a-z]+")
TYPES = {
    "rss": "application/rss+xml",
    "rdf": "application/rdf+xml",
    "atom": "application/atom+xml",
    "jsonfeed": "application/feed+json",
}
CODECS = {"utf-8": "utf-8", "gb2312": "gb18030"}
PICTURE_BYTES = 48_213
WORTH_PACKING = 1_000


class Written(Record, frozen=True):
    """An entry in a feed."""

    id: str | None
    """None: the feed has no ids."""
    link: str
    title: str
    text: str
    html: str
    created_at: datetime | None
    edited_at: datetime | None
    author: str
    tags: tuple[str, ...]
    picture: str | None


Telling = tuple[Written, Post, Version]


class Feed(Record, frozen=True):
    """A whole listing, before it is written in one of the formats."""

    place: Place
    url: str
    changed_at: datetime
    entries: tuple[Written, ...]
    next_url: str | None = None


class FeedSimulator:
    """Shows the listings of a world as feeds. Caches the last unmodified page of each place."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._told: dict[int, tuple[tuple[datetime, str], Page]] = {}

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        if found is None or int(found[1]) >= len(self.world.places):
            return None
        place = self.world.places[int(found[1])]
        return place if path in (place.path, place.new_path) else None

    def answer(self, place: Place, ask: Ask) -> Page:
        if place.gone_at is not None and ask.at >= place.gone_at:
            return Page(410, {"Content-Type": "text/html; charset=utf-8"}, b"<h1>Gone</h1>")
        true_path = place.path_at(ask.at)
        if ask.path != true_path:
            return _moved(ask.base + true_path) if ask.path == place.path else _missing()
        page = self.page(place, ask)
        if ask.distortion == STRAIGHT and _is_known(page.headers, ask.headers):
            return Page(304, {name: value for name, value in page.headers.items() if name != "Content-Type"})
        return page

    def page(self, place: Place, ask: Ask) -> Page:
        """The listing with its validators, whatever the client has already."""
        at = ask.at - ask.distortion.ago
        changed_at = self.world.changed_at(place, at)
        if ask.distortion != STRAIGHT or ask.query:
            return _page(place, self.world.shown(place, at), changed_at, ask)
        key, page = self._told.get(place.number, (None, None))
        # The URL is in the page: one that has two names, or has moved, is written again.
        if page is None or key != (changed_at, ask.base + ask.path):
            page = _page(place, self.world.shown(place, at), changed_at, ask)
            self._told[place.number] = (changed_at, ask.base + ask.path), page
        return page


SIMULATOR = FeedSimulator


def wire_id(place: Place, post: Post, at: datetime) -> str:
    """The id by which a parser knows a post: the feed's own, or its link if the feed has no ids."""
    link = _link(place, post)
    if not place.has_ids:
        return link
    is_new = place.new_ids_at is not None and at >= place.new_ids_at
    if place.form == "rdf":
        return f"{link}#entry" if is_new else link
    if place.form == "jsonfeed":
        return link if is_new else str(post.number + 1)
    return f"https://{place.host}.example/?p={place.number}.{post.number}" if is_new else _tag(place, post)


def _tag(place: Place, post: Post) -> str:
    return f"tag:{place.host}.example,2020:{place.number}/{post.number}"


def _link(place: Place, post: Post) -> str:
    return f"https://{place.host}.example/{place.number}/{post.number}"


def _moved(location: str) -> Page:
    headers = {"Content-Type": "text/html; charset=utf-8", "Location": location}
    return Page(301, headers, b"<h1>Moved Permanently</h1>")


def _missing() -> Page:
    return Page(404, {"Content-Type": "text/html; charset=utf-8"}, b"<h1>Not Found</h1>")


def _is_known(given: dict[str, str], told: Mapping[str, str]) -> bool:
    """Whether the client has this page already. An ETag takes precedence over a date; a date is compared as text."""
    if "if-none-match" in told and "ETag" in given:
        return any(tag.strip() in (given["ETag"], "*") for tag in told["if-none-match"].split(","))
    return "Last-Modified" in given and told.get("if-modified-since") == given["Last-Modified"]


# ── from the world to a page ──────────────────────────────────────────────────────────────────────────────────────


def _page(place: Place, shown: Shown, changed_at: datetime, ask: Ask) -> Page:
    tellings = [(_written(place, post, version, changed_at, ask.distortion), post, version) for post, version in shown]
    tellings = _distorted(tellings, ask)
    feed = Feed(
        place=place,
        url=ask.base + ask.path,
        changed_at=changed_at + ask.distortion.skew,
        entries=tuple(written for written, _, _ in tellings),
        # Only such a link leads to a second page: there, it leads to itself.
        next_url=f"{ask.base}{ask.path}?page=2" if ask.distortion.is_looping or ask.query else None,
    )
    body = WRITERS[place.form](feed).encode(CODECS[place.charset])
    return Page(
        status=200,
        headers={
            "Content-Type": f"{TYPES[place.form]}; charset={place.charset}",
            **_validators(place, body, feed.changed_at),
        },
        body=body,
        packed=gzip.compress(body, 1, mtime=0) if place.number % 2 and len(body) > WORTH_PACKING else None,
        entries=tuple(
            Entry(post.id, version.number, wire_id(place, post, changed_at)) for _, post, version in tellings
        ),
    )


def _written(place: Place, post: Post, version: Version, at: datetime, distortion: Distortion) -> Written:
    return Written(
        id=wire_id(place, post, at) if place.has_ids else None,
        link=_link(place, post),
        title=version.title,
        text=version.text,
        html=version.html,
        created_at=post.created_at + distortion.skew if place.is_dated else None,
        edited_at=version.from_at + distortion.skew if version.number > 1 else None,
        author=post.author,
        tags=post.tags,
        picture=post.picture,
    )


def _distorted(tellings: list[Telling], ask: Ask) -> list[Telling]:
    if ask.distortion.is_reordered:
        chance_of(ask.path, ask.at).shuffle(tellings)
    return [telling for telling in tellings for _ in range(2)] if ask.distortion.is_repeated else tellings


def _validators(place: Place, body: bytes, changed_at: datetime) -> dict[str, str]:
    tag = f'"{sha256(body).hexdigest()[:20]}"'
    headers = {
        "etag": ("ETag", f"W/{tag}" if place.is_weak else tag),
        "last-modified": ("Last-Modified", format_datetime(changed_at, usegmt=True)),
    }
    return dict(headers[name] for name in place.validators)


# ── the forms ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _zoned(place: Place, at: datetime) -> datetime:
    return at.astimezone(timezone(timedelta(hours=place.pace.zone_hours))) if place.pace.zone_hours else at


def _rfc_822(place: Place, at: datetime) -> str:
    return format_datetime(_zoned(place, at), usegmt=not place.pace.zone_hours)


def _rfc_3339(place: Place, at: datetime) -> str:
    return _zoned(place, at).isoformat().replace("+00:00", "Z")


def _cdata(text: str) -> str:
    return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"


def _home(place: Place) -> str:
    return f"https://{place.host}.example/{place.number}/"


def _about(place: Place) -> str:
    return f"What {place.name} has to say"


def _rss(feed: Feed) -> str:
    place = feed.place
    return (
        f'<?xml version="1.0" encoding="{place.charset.upper()}"?>\n<rss version="2.0"'
        ' xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:atom="http://www.w3.org/2005/Atom">\n<channel>\n'
        f"<title>{escape(place.name)}</title>\n<link>{_home(place)}</link>\n"
        f"<description>{escape(_about(place))}</description>\n<language>{_language(place)}</language>\n"
        f'<atom:link href={quoteattr(feed.url)} rel="self" type="application/rss+xml"/>\n'
        f"<lastBuildDate>{_rfc_822(place, feed.changed_at)}</lastBuildDate>\n"
        f"{''.join(_rss_item(place, entry) for entry in feed.entries)}</channel>\n</rss>\n"
    )


def _rss_item(place: Place, entry: Written) -> str:
    parts = [f"<title>{escape(entry.title)}</title>", f"<link>{escape(entry.link)}</link>"]
    if entry.id is not None:
        parts.append(f'<guid isPermaLink="false">{escape(entry.id)}</guid>')
    if entry.created_at is not None:
        parts.append(f"<pubDate>{_rfc_822(place, entry.created_at)}</pubDate>")
    parts.append(f"<dc:creator>{escape(entry.author)}</dc:creator>")
    parts += [f"<category>{escape(tag)}</category>" for tag in entry.tags]
    if place.is_plain:
        parts.append(f"<description>{escape(entry.text)}</description>")
    elif place.number % 2:
        parts.append(f"<description>{escape(entry.html)}</description>")
    else:
        parts.append(f"<description>{escape(_summary(entry))}</description>")
        parts.append(f"<content:encoded>{_cdata(entry.html)}</content:encoded>")
    if entry.picture is not None:
        parts.append(f'<enclosure url={quoteattr(entry.picture)} length="{PICTURE_BYTES}" type="image/jpeg"/>')
    return f"<item>{''.join(parts)}</item>\n"


def _summary(entry: Written) -> str:
    return entry.text.partition("\n")[0][:120]


def _language(place: Place) -> str:
    return "zh-CN" if place.language == "zh" else "en"


def _rdf(feed: Feed) -> str:
    place = feed.place
    listed = "".join(f"<rdf:li rdf:resource={quoteattr(entry.id or '')}/>" for entry in feed.entries)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:content="http://purl.org/rss/1.0/modules/content/">\n'
        f"<channel rdf:about={quoteattr(feed.url)}>\n<title>{escape(place.name)}</title>\n<link>{_home(place)}</link>\n"
        f"<description>{escape(_about(place))}</description>\n<dc:language>{_language(place)}</dc:language>\n"
        f"<dc:date>{_rfc_3339(place, feed.changed_at)}</dc:date>\n<items><rdf:Seq>{listed}</rdf:Seq></items>\n"
        f"</channel>\n{''.join(_rdf_item(place, entry) for entry in feed.entries)}</rdf:RDF>\n"
    )


def _rdf_item(place: Place, entry: Written) -> str:
    parts = [f"<title>{escape(entry.title)}</title>", f"<link>{escape(entry.link)}</link>"]
    if place.is_plain:
        parts.append(f"<description>{escape(entry.text)}</description>")
    else:
        parts.append(f"<description>{escape(_summary(entry))}</description>")
        parts.append(f"<content:encoded>{_cdata(entry.html)}</content:encoded>")
    parts.append(f"<dc:creator>{escape(entry.author)}</dc:creator>")
    parts += [f"<dc:subject>{escape(tag)}</dc:subject>" for tag in entry.tags]
    if entry.created_at is not None:
        parts.append(f"<dc:date>{_rfc_3339(place, entry.created_at)}</dc:date>")
    return f"<item rdf:about={quoteattr(entry.id or entry.link)}>{''.join(parts)}</item>\n"


def _atom(feed: Feed) -> str:
    place = feed.place
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{_language(place)}">\n'
        f"<title>{escape(place.name)}</title>\n<subtitle>{escape(_about(place))}</subtitle>\n"
        f'<link rel="alternate" type="text/html" href="{_home(place)}"/>\n'
        f'<link rel="self" href={quoteattr(feed.url)}/>\n'
        f"<id>{_home(place)}</id>\n<updated>{_rfc_3339(place, feed.changed_at)}</updated>\n"
        f"{''.join(_atom_entry(place, entry) for entry in feed.entries)}</feed>\n"
    )


def _atom_entry(place: Place, entry: Written) -> str:
    created_at = entry.created_at or datetime.min.replace(tzinfo=UTC)
    parts = [
        f"<title>{escape(entry.title)}</title>",
        f'<link rel="alternate" type="text/html" href={quoteattr(entry.link)}/>',
        f"<id>{escape(entry.id or '')}</id>",
        f"<published>{_rfc_3339(place, created_at)}</published>",
        f"<updated>{_rfc_3339(place, max(created_at, entry.edited_at or created_at))}</updated>",
        f"<author><name>{escape(entry.author)}</name></author>",
        *(f"<category term={quoteattr(tag)}/>" for tag in entry.tags),
    ]
    if entry.picture is not None:
        parts.append(
            f'<link rel="enclosure" type="image/jpeg" length="{PICTURE_BYTES}" href={quoteattr(entry.picture)}/>'
        )
    if place.is_plain:
        parts.append(f'<summary type="text">{escape(entry.text)}</summary>')
    else:
        parts.append(f'<content type="html">{escape(entry.html)}</content>')
    return f"<entry>{''.join(parts)}</entry>\n"


def _jsonfeed(feed: Feed) -> str:
    place = feed.place
    document: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": place.name,
        "home_page_url": _home(place),
        "feed_url": feed.url,
        "description": _about(place),
        "language": _language(place),
    }
    if feed.next_url is not None:
        document["next_url"] = feed.next_url
    document["items"] = [_json_item(place, entry) for entry in feed.entries]
    return json.dumps(document, ensure_ascii=False, indent=1)


def _json_item(place: Place, entry: Written) -> dict[str, Any]:
    item: dict[str, Any] = {"id": entry.id, "url": entry.link, "title": entry.title}
    item |= {"content_text": entry.text} if place.is_plain else {"content_html": entry.html}
    if entry.created_at is not None:
        item["date_published"] = _rfc_3339(place, entry.created_at)
        if entry.edited_at is not None:
            item["date_modified"] = _rfc_3339(place, entry.edited_at)
    item["authors"] = [{"name": entry.author}]
    if entry.tags:
        item["tags"] = list(entry.tags)
    if entry.picture is not None:
        item["image"] = entry.picture
    return item


WRITERS: dict[str, Callable[[Feed], str]] = {"rss": _rss, "rdf": _rdf, "atom": _atom, "jsonfeed": _jsonfeed}
