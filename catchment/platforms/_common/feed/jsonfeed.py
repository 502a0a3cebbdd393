"""Parses JSON Feed 1.0 and 1.1, and RSS-in-JSON. Nothing is guessed here: truncated JSON is unreadable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from catchment.errors import Unreadable
from catchment.model import Hints, Item, JsonObject, Media, Reading, Reference, Request
from catchment.platforms._common import coercion
from catchment.platforms._common.http import page_elsewhere
from catchment.platforms._common.json import UnusableEntry, decode_text, read_each
from catchment.text.dates import Dated, read_date

# How many older pages of a feed are requested on a first read.
MOST_PAGES = 50


def read(text: str, url: str, request: Request) -> Reading:
    """Returns all items of the document; a broken one is skipped, the others are processed."""
    document, notes = decode_text(text)
    if isinstance(document, dict):
        if "jsonfeed.org" in (_string(document.get("version")) or ""):
            return _json_feed(document, url, request).replace(notes=notes)
        rss = document.get("rss")
        channel = rss.get("channel") if isinstance(rss, dict) else None
        if isinstance(channel, dict):
            return _rss_in_json(channel, url).replace(notes=notes)
    raise Unreadable(
        "the answer is JSON, but not a feed", "enter the address of a feed; for other JSON, use the kind custom_api"
    )


def _read_item(read_fields: Callable[[JsonObject], Item], entry: Any) -> Item:
    if not isinstance(entry, dict):
        raise UnusableEntry("not an object")
    item = read_fields(entry)
    if not (item.title or item.html or item.text or item.url or item.media):
        raise UnusableEntry("no content")
    return item


def _string(value: Any) -> str | None:
    """Returns a text that is not empty; numbers count, since some ids and titles are numbers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else coercion.text(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _objects(value: Any) -> list[JsonObject]:
    return [inner for inner in _list(value) if isinstance(inner, dict)]


def _date(value: Any) -> Dated | None:
    text = _string(value)
    return read_date(text) if text else None


def _json_feed(feed: JsonObject, url: str, request: Request) -> Reading:
    if not isinstance(feed.get("items"), list):
        raise Unreadable("the JSON Feed has no list of items")
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


def _entry(fields: JsonObject, url: str, language: str | None, people: tuple[str | None, str | None]) -> Item:
    external_id, address = _string(fields.get("id")), coercion.resolved(_string(fields.get("url")), url)
    if external_id is None and address is None:
        # The format asks to discard all without an id; but whole feeds have none, and a URL serves as well.
        raise UnusableEntry("no id")
    created_at, is_zone_guessed, edited_at = coercion.dates(
        _date(fields.get("date_published")), _date(fields.get("date_modified"))
    )
    markup = _string(fields.get("content_html"))
    author, author_id = _people(fields)
    author, author_id = (author, author_id) if author else people
    media = [
        coercion.enclosure(
            _string(attachment.get("url")),
            url,
            _string(attachment.get("mime_type")),
            attachment.get("size_in_bytes"),
            coercion.duration(attachment.get("duration_in_seconds")),
            _string(attachment.get("title")),
        )
        for attachment in _objects(fields.get("attachments"))
    ]
    images = [coercion.resolved(_string(fields.get(name)), url) for name in ("image", "banner_image")]
    tags = fields.get("tags")
    return Item(
        external_id=external_id or "",
        created_at=created_at,
        is_zone_guessed=is_zone_guessed,
        edited_at=edited_at,
        title=coercion.plain_title(_string(fields.get("title"))),
        text=None if markup else _string(fields.get("content_text")) or _string(fields.get("summary")),
        html=markup,
        url=address,
        target_url=coercion.resolved(_string(fields.get("external_url")), url),
        author=author,
        author_id=author_id,
        media=coercion.each_once([*media, *(Media(image) for image in images if image)]),
        tags=coercion.unique(map(_string, tags)) if isinstance(tags, list) else (),
        language=coercion.language(_string(fields.get("language"))) or language,
    )


def _people(fields: JsonObject) -> tuple[str | None, str | None]:
    """Returns the authors: version 1.1 has a list, version 1 had one; the list is preferred. A single author's URL is
    the distinguishing mark."""
    people = _objects(fields.get("authors")) or _objects(fields.get("author"))
    names = coercion.unique([_string(person.get("name")) or _string(person.get("url")) for person in people])
    address = _string(people[0].get("url")) if len(people) == 1 else None
    identity = address.removeprefix("mailto:") if address else None
    return ", ".join(names) or None, identity if (identity,) != names else None


def _older_page(feed: JsonObject, url: str, request: Request) -> tuple[Request, ...]:
    """Returns the request for the next older page, on a source's first read only; never a page that was seen on the
    way."""
    seen = [*request.state.get("pages", ()), url]
    is_first = any(request.state.get(name) for name in ("discover", "discovered", "pages"))
    older = coercion.resolved(_string(feed.get("next_url")), url)
    if not is_first or older is None or len(seen) >= MOST_PAGES:
        return ()
    if older in (*seen, request.url, _string(feed.get("feed_url"))):
        return ()
    return (page_elsewhere(request, older).replace(state={"pages": seen}, fallback=None),)


def _rss_in_json(channel: JsonObject, url: str) -> Reading:
    items, skipped = read_each(
        _list(channel.get("item") or []), partial(_read_item, lambda fields: _rss_item(fields, url, channel))
    )
    return Reading(
        items=items,
        skipped=skipped,
        title=coercion.plain_title(_string(channel.get("title"))),
        hints=coercion.hints(_string(channel.get("ttl")), None, None),
    )


def _rss_item(fields: JsonObject, url: str, channel: JsonObject) -> Item:
    created_at, is_zone_guessed, _ = coercion.dates(_date(fields.get("pubDate")), None)
    text, html = coercion.text_or_html(
        _string(fields.get("content:encoded")) or _string(fields.get("description")) or ""
    )
    guid = _valued(fields.get("guid"))
    is_denied = isinstance(fields.get("guid"), dict) and str(fields["guid"].get("isPermaLink")).lower() == "false"
    permalink = guid if guid and not is_denied and coercion.WHOLE_URL.fullmatch(guid) else None
    author, author_id = coercion.person(_string(fields.get("author")) or _string(fields.get("dc:creator")) or "")
    discussed_at = coercion.resolved(_string(fields.get("comments")), url)
    media = [
        coercion.enclosure(_string(file.get("url")), url, _string(file.get("type")), file.get("length"))
        for file in _objects(fields.get("enclosure"))
    ]
    return Item(
        external_id=guid or "",
        created_at=created_at,
        is_zone_guessed=is_zone_guessed,
        title=coercion.plain_title(_string(fields.get("title"))),
        text=text,
        html=html,
        url=coercion.resolved(_string(fields.get("link")), url) or permalink,
        author=author,
        author_id=author_id,
        media=coercion.each_once(media),
        references=(Reference(relation="discussed_at", url=discussed_at),) if discussed_at else (),
        tags=coercion.unique(map(_valued, _list(fields.get("category")))),
        language=coercion.language(_string(channel.get("language"))),
    )


def _valued(value: Any) -> str | None:
    """Returns the text of an element: with attributes it is an object, its text under #value."""
    return _string(value.get("#value") if isinstance(value, dict) else value)
