"""Parses JSON Feed 1.0 and 1.1, and RSS-in-JSON. Nothing is guessed here: truncated JSON is unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from catchment.errors import Unreadable
from catchment.model import Hints, Identity, Item, Media, Reading, Reference, Request
from catchment.platforms._common import coercion
from catchment.platforms._common.json import UnusableEntry, decode_text, read_each
from catchment.platforms._common.urls import is_same_host
from catchment.text.dates import Dated, read_date

# How many older pages of a feed are requested on a first read.
MOST_PAGES = 50

Fields = dict[str, Any]


def read(text: str, url: str, request: Request) -> Reading:
    """Returns all items of the document; a broken one is skipped, the rest goes on."""
    document, notes = decode_text(text)
    if isinstance(document, dict):
        if "jsonfeed.org" in (_string(document.get("version")) or ""):
            return _json_feed(document, url, request).replace(notes=notes)
        channel = _channel(document)
        if channel is not None:
            return _rss_in_json(channel, url).replace(notes=notes)
    raise Unreadable("JSON came that is no feed", "give the address of a feed; other JSON is read by kind custom_api")


def _read_item(read_fields: Callable[[Fields], Item], entry: Any) -> Item:
    if not isinstance(entry, dict):
        raise UnusableEntry("not an object")
    item = read_fields(entry)
    if not (item.title or item.html or item.text or item.url or item.media):
        raise UnusableEntry("no content")
    return item


def _string(value: Any) -> str | None:
    """Returns a text that is not empty; numbers count, since some ids and titles are numbers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (value.strip() or None) if isinstance(value, str) else None


def _objects(value: Any) -> list[Fields]:
    values = value if isinstance(value, list) else [value]
    return [inner for inner in values if isinstance(inner, dict)]


def _date(value: Any) -> Dated | None:
    text = _string(value)
    return read_date(text) if text else None


def _json_feed(feed: Fields, url: str, request: Request) -> Reading:
    if not isinstance(feed.get("items"), list):
        raise Unreadable("a JSON Feed came without its list of items")
    language = coercion.language(_string(feed.get("language")))
    name, identity = _people(feed)
    people = name and name[: coercion.LONGEST_PERSON], identity and identity[: coercion.LONGEST_PERSON]
    items, skipped = read_each(feed["items"], partial(_read_item, lambda fields: _entry(fields, url, language, people)))
    follow = _older_page(feed, url, request)
    return Reading(
        items=items,
        skipped=skipped,
        follow=follow,
        is_end=not follow,
        title=coercion.plain_title(_string(feed.get("title"))),
        hints=Hints(is_final=feed.get("expired") is True),
    )


def _entry(fields: Fields, url: str, language: str | None, people: tuple[str | None, str | None]) -> Item:
    external_id, address = _string(fields.get("id")), coercion.resolved(_string(fields.get("url")), url)
    if external_id is None and address is None:
        # The format asks to discard all without an id; but whole feeds have none, and a URL serves as well.
        raise UnusableEntry("no id")
    published, modified = _date(fields.get("date_published")), _date(fields.get("date_modified"))
    created = published or modified
    markup = _string(fields.get("content_html"))
    text = None if markup else _string(fields.get("content_text")) or _string(fields.get("summary"))
    author, author_id = _people(fields)
    author, author_id = (author, author_id) if author else people
    return Item(
        external_id=external_id or "",
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=modified.at if published and modified and modified.at > published.at else None,
        title=coercion.plain_title(_string(fields.get("title"))),
        text=text,
        html=markup,
        url=address,
        target_url=coercion.resolved(_string(fields.get("external_url")), url),
        author=author,
        author_id=author_id,
        media=_media(fields, url),
        tags=_tags(fields.get("tags")),
        language=coercion.language(_string(fields.get("language"))) or language,
    )


def _people(fields: Fields) -> tuple[str | None, str | None]:
    """Returns the authors: version 1.1 has a list, version 1 had one; the list is preferred. A single author's URL is
    the distinguishing mark."""
    people = _objects(fields.get("authors")) or _objects(fields.get("author"))
    names = coercion.unique([_string(person.get("name")) or _string(person.get("url")) for person in people])
    address = _string(people[0].get("url")) if len(people) == 1 else None
    identity = address.removeprefix("mailto:") if address else None
    return ", ".join(names) or None, identity if (identity,) != names else None


def _tags(value: Any) -> tuple[str, ...]:
    return coercion.unique(map(_string, value)) if isinstance(value, list) else ()


def _media(fields: Fields, url: str) -> tuple[Media, ...]:
    media = [_attachment(attachment, url) for attachment in _objects(fields.get("attachments"))]
    media += [_image(fields.get(name), url) for name in ("image", "banner_image")]
    return _each_once(media)


def _attachment(fields: Fields, url: str) -> Media | None:
    address = coercion.resolved(_string(fields.get("url")), url)
    if address is None:
        return None
    mime = _string(fields.get("mime_type"))
    return Media(
        address,
        coercion.media_kind(mime, address),
        mime=mime,
        size_bytes=coercion.amount(fields.get("size_in_bytes")),
        duration_seconds=coercion.duration(fields.get("duration_in_seconds")),
        alt=_string(fields.get("title")),
    )


def _image(value: Any, url: str) -> Media | None:
    address = coercion.resolved(_string(value), url)
    return Media(address) if address else None


def _each_once(media: Iterable[Media | None]) -> tuple[Media, ...]:
    by_url: dict[str, Media] = {}
    for medium in media:
        if medium is not None:
            by_url.setdefault(medium.url, medium)
    return tuple(by_url.values())


def _older_page(feed: Fields, url: str, request: Request) -> tuple[Request, ...]:
    """Returns the request for the next older page, on a source's first read only; never a page that was seen on the
    way."""
    seen = [*request.state.get("pages", ()), url]
    is_first = any(request.state.get(name) for name in ("discover", "discovered", "pages"))
    older = coercion.resolved(_string(feed.get("next_url")), url)
    if not is_first or older is None or len(seen) >= MOST_PAGES:
        return ()
    if older in (*seen, request.url, _string(feed.get("feed_url"))):
        return ()
    asked = request.replace(url=older, params={}, state={"pages": seen}, fallback=None)
    # Older pages may be on any host; the credential was given for the requested one.
    return (asked if is_same_host(request.url, older) else asked.replace(identity=Identity.NONE, credential=None),)


def _channel(document: Fields) -> Fields | None:
    rss = document.get("rss")
    channel = rss.get("channel") if isinstance(rss, dict) else None
    return channel if isinstance(channel, dict) else None


def _rss_in_json(channel: Fields, url: str) -> Reading:
    entries = channel.get("item") or []
    items, skipped = read_each(
        entries if isinstance(entries, list) else [entries],
        partial(_read_item, lambda fields: _rss_item(fields, url, channel)),
    )
    return Reading(
        items=items,
        skipped=skipped,
        title=coercion.plain_title(_string(channel.get("title"))),
        hints=coercion.hints(_string(channel.get("ttl")), None, None),
    )


def _rss_item(fields: Fields, url: str, channel: Fields) -> Item:
    created = _date(fields.get("pubDate"))
    content = _string(fields.get("content:encoded")) or _string(fields.get("description")) or ""
    guid, is_permalink = _guid(fields.get("guid"))
    author, author_id = coercion.person(_string(fields.get("author")) or _string(fields.get("dc:creator")) or "")
    link = coercion.resolved(_string(fields.get("link")), url)
    discussed_at = coercion.resolved(_string(fields.get("comments")), url)
    return Item(
        external_id=guid or "",
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        title=coercion.plain_title(_string(fields.get("title"))),
        text=content if content and not coercion.is_markup(content) else None,
        html=content if coercion.is_markup(content) else None,
        url=link or (guid if is_permalink else None),
        author=author,
        author_id=author_id,
        media=_each_once([_enclosure(enclosure, url) for enclosure in _objects(fields.get("enclosure"))]),
        references=(Reference(relation="discussed_at", url=discussed_at),) if discussed_at else (),
        tags=_categories(fields.get("category")),
        language=coercion.language(_string(channel.get("language"))),
    )


def _guid(value: Any) -> tuple[str | None, bool]:
    """Returns the guid, and whether it can serve as the link. With attributes it is an object, its text under
    #value."""
    fields = value if isinstance(value, dict) else {"#value": value}
    guid = _string(fields.get("#value"))
    is_denied = str(fields.get("isPermaLink", True)).lower() == "false"
    return guid, not is_denied and guid is not None and coercion.WHOLE_URL.fullmatch(guid) is not None


def _enclosure(fields: Fields, url: str) -> Media | None:
    address, mime = coercion.resolved(_string(fields.get("url")), url), _string(fields.get("type"))
    if address is None:
        return None
    return Media(
        address, coercion.media_kind(mime, address), mime=mime, size_bytes=coercion.amount(fields.get("length"))
    )


def _categories(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return coercion.unique(_string(inner.get("#value") if isinstance(inner, dict) else inner) for inner in values)
