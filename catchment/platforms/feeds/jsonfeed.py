"""JSON Feed 1.0 and 1.1, and RSS in the clothes of JSON. Nothing is guessed here: torn JSON is unreadable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from catchment.dates import Dated, read_date
from catchment.errors import Unreadable
from catchment.model import Hints, Identity, Item, Media, Reading, Reference, Request, Skipped
from catchment.platforms.feeds import pieces
from catchment.platforms.feeds.address import is_same_host

# A feed's older pages are walked no further than this on a first read.
MOST_PAGES = 50

Fields = dict[str, Any]


class Unusable(Exception):
    """An entry that the format itself says to leave out, and why."""


def read(text: str, url: str, request: Request) -> Reading:
    """All that the document says; an item that is broken is skipped, the rest goes on."""
    found, notes = document(text)
    if isinstance(found, dict):
        if "jsonfeed.org" in (_string(found.get("version")) or ""):
            return _json_feed(found, url, request).plus(notes=notes)
        channel = _channel(found)
        if channel is not None:
            return _rss_in_json(channel, url).plus(notes=notes)
    raise Unreadable("JSON came that is no feed", "give the address of a feed; other JSON is read by kind custom_api")


def document(text: str) -> tuple[Any, tuple[str, ...]]:
    """The JSON in a text, and what had to be forgiven in it."""
    try:
        return msgspec.json.decode(text), ()
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        # Forgives raw control characters and half surrogate pairs; the text around them is sound.
        return _with_whole_characters(json.loads(text, strict=False)), ("control characters or broken escapes",)
    except (ValueError, RecursionError):
        raise Unreadable(
            "the JSON is torn or broken", "nothing is stored of it; the next poll may find it whole"
        ) from None


def _with_whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_with_whole_characters(inner) for inner in value]
    if isinstance(value, dict):
        return {_with_whole_characters(name): _with_whole_characters(inner) for name, inner in value.items()}
    return value


def _read_each(entries: list[Any], read_one: Callable[[Fields], Item]) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    items: list[Item] = []
    skipped: list[Skipped] = []
    for entry in entries[: pieces.MOST_ENTRIES]:
        try:
            if not isinstance(entry, dict):
                raise Unusable("not an object")
            item = read_one(entry)
            if not (item.title or item.html or item.text or item.url or item.media):
                raise Unusable("no content")
            items.append(item)
        except Unusable as reason:
            skipped.append(Skipped(str(reason), _excerpt(entry)))
    skipped += [Skipped("too many entries")] * (len(entries) - pieces.MOST_ENTRIES)
    return tuple(items), tuple(skipped)


def _excerpt(entry: Any) -> str:
    try:
        return str(entry)[:200]
    except RecursionError:
        return "nested too deep to be shown"


def _string(value: Any) -> str | None:
    """A text that says something; numbers count, since ids and titles come as such."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (value.strip() or None) if isinstance(value, str) else None


def _objects(value: Any) -> list[Fields]:
    values = value if isinstance(value, list) else [value]
    return [inner for inner in values if isinstance(inner, dict)]


def _date(value: Any) -> Dated | None:
    text = _string(value)
    return read_date(text) if text else None


# ── JSON Feed ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _json_feed(feed: Fields, url: str, request: Request) -> Reading:
    if not isinstance(feed.get("items"), list):
        raise Unreadable("a JSON Feed came without its list of items")
    language = pieces.language(_string(feed.get("language")))
    name, identity = _people(feed)
    people = name and name[: pieces.LONGEST_PERSON], identity and identity[: pieces.LONGEST_PERSON]
    items, skipped = _read_each(feed["items"], lambda fields: _entry(fields, url, language, people))
    follow = _older_page(feed, url, request)
    return Reading(
        items=items,
        skipped=skipped,
        follow=follow,
        is_end=not follow,
        title=pieces.plain_title(_string(feed.get("title"))),
        hints=Hints(is_final=feed.get("expired") is True),
    )


def _entry(fields: Fields, url: str, language: str | None, people: tuple[str | None, str | None]) -> Item:
    external_id, address = _string(fields.get("id")), pieces.resolved(_string(fields.get("url")), url)
    if external_id is None and address is None:
        # The format asks to discard all without an id; but whole feeds have none, and an address serves as well.
        raise Unusable("no id")
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
        title=pieces.plain_title(_string(fields.get("title"))),
        text=text,
        html=markup,
        url=address,
        target_url=pieces.resolved(_string(fields.get("external_url")), url),
        author=author,
        author_id=author_id,
        media=_media(fields, url),
        tags=_tags(fields.get("tags")),
        language=pieces.language(_string(fields.get("language"))) or language,
    )


def _people(fields: Fields) -> tuple[str | None, str | None]:
    """Version 1.1 has a list, version 1 had one; the list is preferred. A single author's address tells him apart."""
    people = _objects(fields.get("authors")) or _objects(fields.get("author"))
    names = pieces.unique([_string(person.get("name")) or _string(person.get("url")) for person in people])
    address = _string(people[0].get("url")) if len(people) == 1 else None
    identity = address.removeprefix("mailto:") if address else None
    return ", ".join(names) or None, identity if (identity,) != names else None


def _tags(value: Any) -> tuple[str, ...]:
    return pieces.unique(map(_string, value)) if isinstance(value, list) else ()


def _media(fields: Fields, url: str) -> tuple[Media, ...]:
    found = [_attachment(attachment, url) for attachment in _objects(fields.get("attachments"))]
    found += [_image(fields.get(name), url) for name in ("image", "banner_image")]
    return _each_once(found)


def _attachment(fields: Fields, url: str) -> Media | None:
    address = pieces.resolved(_string(fields.get("url")), url)
    if address is None:
        return None
    mime = _string(fields.get("mime_type"))
    return Media(
        address,
        pieces.media_kind(mime, address),
        mime=mime,
        size_bytes=pieces.amount(fields.get("size_in_bytes")),
        duration_seconds=pieces.duration(fields.get("duration_in_seconds")),
        alt=_string(fields.get("title")),
    )


def _image(value: Any, url: str) -> Media | None:
    address = pieces.resolved(_string(value), url)
    return Media(address) if address else None


def _each_once(media: Iterable[Media | None]) -> tuple[Media, ...]:
    by_url: dict[str, Media] = {}
    for medium in media:
        if medium is not None:
            by_url.setdefault(medium.url, medium)
    return tuple(by_url.values())


def _older_page(feed: Fields, url: str, request: Request) -> tuple[Request, ...]:
    """The next older page, on a source's first read only; never a page that was seen on the way here."""
    seen = [*request.carried.get("pages", ()), url]
    is_first = any(request.carried.get(name) for name in ("discover", "discovered", "pages"))
    older = pieces.resolved(_string(feed.get("next_url")), url)
    if not is_first or older is None or len(seen) >= MOST_PAGES:
        return ()
    if older in (*seen, request.url, _string(feed.get("feed_url"))):
        return ()
    asked = request.plus(url=older, params={}, carried={"pages": seen}, otherwise=None)
    # Older pages may be said to lie anywhere; the credential was given for what was asked.
    return (asked if is_same_host(request.url, older) else asked.plus(identity=Identity.NONE, credential=None),)


# ── RSS in JSON ───────────────────────────────────────────────────────────────────────────────────────────────────


def _channel(document: Fields) -> Fields | None:
    rss = document.get("rss")
    channel = rss.get("channel") if isinstance(rss, dict) else None
    return channel if isinstance(channel, dict) else None


def _rss_in_json(channel: Fields, url: str) -> Reading:
    entries = channel.get("item") or []
    items, skipped = _read_each(
        entries if isinstance(entries, list) else [entries], lambda fields: _rss_item(fields, url, channel)
    )
    return Reading(
        items=items,
        skipped=skipped,
        title=pieces.plain_title(_string(channel.get("title"))),
        hints=pieces.hints(_string(channel.get("ttl")), None, None),
    )


def _rss_item(fields: Fields, url: str, channel: Fields) -> Item:
    created = _date(fields.get("pubDate"))
    content = _string(fields.get("content:encoded")) or _string(fields.get("description")) or ""
    guid, is_permalink = _guid(fields.get("guid"))
    author, author_id = pieces.person(_string(fields.get("author")) or _string(fields.get("dc:creator")) or "")
    link = pieces.resolved(_string(fields.get("link")), url)
    discussed_at = pieces.resolved(_string(fields.get("comments")), url)
    return Item(
        external_id=guid or "",
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        title=pieces.plain_title(_string(fields.get("title"))),
        text=content if content and not pieces.is_markup(content) else None,
        html=content if pieces.is_markup(content) else None,
        url=link or (guid if is_permalink else None),
        author=author,
        author_id=author_id,
        media=_each_once([_enclosure(enclosure, url) for enclosure in _objects(fields.get("enclosure"))]),
        references=(Reference(relation="discussed_at", url=discussed_at),) if discussed_at else (),
        tags=_categories(fields.get("category")),
        language=pieces.language(_string(channel.get("language"))),
    )


def _guid(value: Any) -> tuple[str | None, bool]:
    """The guid, and whether it can serve as the link. With attributes it is an object, its text under #value."""
    fields = value if isinstance(value, dict) else {"#value": value}
    guid = _string(fields.get("#value"))
    is_denied = str(fields.get("isPermaLink", True)).lower() == "false"
    return guid, not is_denied and guid is not None and pieces.WHOLE_URL.fullmatch(guid) is not None


def _enclosure(fields: Fields, url: str) -> Media | None:
    address, mime = pieces.resolved(_string(fields.get("url")), url), _string(fields.get("type"))
    if address is None:
        return None
    return Media(address, pieces.media_kind(mime, address), mime=mime, size_bytes=pieces.amount(fields.get("length")))


def _categories(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return pieces.unique(_string(inner.get("#value") if isinstance(inner, dict) else inner) for inner in values)
