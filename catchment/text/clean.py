"""Cleaning of items before storage: validation, sanitising, ids and fingerprints.

Pure: no clock, no settings object, no input or output. A bad item is skipped with its reason, the others are processed:
every item is either written or counted as skipped.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from unicodedata import normalize
from urllib.parse import urljoin

import msgspec
from msgspec.structs import replace

from catchment import work_limits
from catchment.lazy import pattern
from catchment.model import Item, Media, Reading, Reference, Refined, RefinedItem, Skipped
from catchment.text.html import clean_text, flat, html_and_text, html_to_text, sanitise, strip_tags, without_controls
from catchment.text.printable import unescape

__all__ = [
    "FINGERPRINT_RULE",
    "Refined",
    "RefinedItem",
    "clean_text",
    "fingerprint",
    "html_to_text",
    "mark_of",
    "refine",
    "sanitise",
    "stated_at",
    "told_apart_by_date",
]

FINGERPRINT_RULE = 1
"""Raised when the same content would get another fingerprint: stored ones are then recomputed, without revisions."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ENCODED = msgspec.msgpack.Encoder().encode
CLEANING_VERSION = f"1 {FINGERPRINT_RULE}"
"""Raised when cleaning gives another result for the same item: identical items are then cleaned again."""
_CLEANING = CLEANING_VERSION.encode()

MAX_ID = 1_000
MAX_URL = 4_000
MAX_TITLE = 2_000
MAX_NAME = 300
MAX_TAG = 100
MAX_TAGS = 50
MUCH_MORE = 4
"""How many times the kept length of a text is examined: white space and markup may take up some of it, but splitting
all of a text into its words takes ten times its size."""
LONGEST_LINE = 100_000
"""Of ids, names and tags, which are cut much shorter, or replaced by their hash."""
MAX_ATTACHED = 500
"""Media and references of one item, each."""


def refine(reading: Reading, *, scope: str, answer_url: str, text_limit: int = 1_000_000) -> Refined:
    """Returns a reading cleaned for storage. `scope` is for items whose ids are unique in their source only.

    Raises TooComplex if cleaning it would take too much work (`work_limits.WorkLimit`).
    """
    clean: list[RefinedItem] = []
    skipped = list(reading.skipped)
    with work_limits.limited(work_limits.current()) as limit:
        for item in reading.items:
            limit.check()
            refined = _refined(item, scope, answer_url, text_limit)
            if refined is None:
                skipped.append(Skipped("no content", excerpt=_line(item.external_id)[:MAX_TAG]))
            else:
                clean.append(refined)
    items, repeated = _told_apart(clean)
    return Refined(tuple(items), (*skipped, *repeated))


def listed_ids(reading: Reading) -> tuple[str, ...]:
    """Returns the ids that a listing shows without their content, as they are stored, each once and in order."""
    asked = [request.item_id for request in reading.follow if request.item_id is not None]
    if not reading.listed and not asked:
        return ()
    shown = {clean_id(item.external_id) for item in reading.items}
    ids = dict.fromkeys(clean_id(external_id) for external_id in (*reading.listed, *asked))
    return tuple(id_ for id_ in ids if id_ and id_ not in shown)


def listed(reading: Reading, scope: str) -> tuple[RefinedItem, ...]:
    """Returns the same as items of which only the id is known."""
    return tuple(RefinedItem(Item(id_, scope=scope), b"", is_listed=True) for id_ in listed_ids(reading))


def mark_of(item: Item) -> int:
    """Returns a number that shows whether an item is identical to an earlier one. Costs a twentieth of cleaning it."""
    return marks_from([sha256(_CLEANING + _ENCODED(item)).digest()])[0]


def marks_from(digests: Sequence[bytes]) -> Sequence[int]:
    """Returns the first eight bytes of each hash as a number that databases can hold."""
    return array("q", b"".join([digest[:8] for digest in digests]))


def stated_at(item: Item) -> datetime | None:
    """Returns when the item was posted, as cleaning will set it."""
    return _time(item.created_at)[0]


def _refined(item: Item, scope: str, answer_url: str, text_limit: int) -> RefinedItem | None:
    """Returns one item, cleaned; None if it is empty."""
    base = (item.base_url and _url(item.base_url, answer_url)) or answer_url
    html, html_text = _html_and_text(item.html, base, MUCH_MORE * text_limit)
    text = (item.text and clean_text(item.text[: MUCH_MORE * text_limit])) or html_text
    title = (item.title and _line(item.title[: MUCH_MORE * MAX_TITLE])) or ""
    url, target_url = _url(item.url, base), _url(item.target_url, base)
    media = (item.media and _media(item.media, base)) or (_images(html) if html and not text else ())
    if not (title or text or url or target_url or media):
        return None

    # Cleaned text has single spaces, and at most two newlines in a row.
    own_title = "" if item.is_title_foreign else title
    content = _digest(own_title, " ".join(filter(None, text.split("\n"))), target_url or "", media)
    is_text_whole = len(text) <= text_limit
    kept_html = html if is_text_whole else None  # half of an HTML is not HTML
    told_id = clean_id(item.external_id) or clean_id(url or "")
    content_id = "" if told_id else f"sha256:{content.hex()}"
    refined = replace(
        item,
        external_id=told_id or content_id,
        scope=item.scope or scope,
        title=title[:MAX_TITLE].rstrip() or None,
        text=text[:text_limit].rstrip() or None,
        html=kept_html,
        base_url=None,  # every URL is absolute now
        url=url,
        target_url=target_url,
        media=media,
        tags=_tags(item.tags),
        **_tidied(item, base, text_limit),
    )
    return RefinedItem(
        refined,
        content,
        is_text_cut=not is_text_whole or len(title) > MAX_TITLE,
        is_html_dropped=bool(html_text and not kept_html),
        content_id=content_id,
    )


_NAMES = ("author", "author_id", "author_display_name", "language")
_COUNTS = ("score", "reply_count", "view_count", "floor_number", "parent_floor", "rank", "gained")
_TIMES = ("created_at", "edited_at", "last_reply_at")


def _tidied(item: Item, base: str, text_limit: int) -> dict[str, Any]:
    """Returns the fields, other than the content, that cleaning changes. Most items have none."""
    changes: dict[str, Any] = {}
    for name in _NAMES:
        if (text := getattr(item, name)) is not None and (tidy := _name(text)) != text:
            changes[name] = tidy
    for name in _COUNTS:
        # What no database can hold is unknown.
        if (number := getattr(item, name)) is not None and not -(2**63) <= number < 2**63:
            changes[name] = None
    for name in _TIMES:
        if (moment := getattr(item, name)) is not None and (time := _time(moment))[0] is not moment:
            changes[name] = time[0]
            if name == "created_at" and time[1]:
                changes["is_zone_guessed"] = True
    if item.thread_id is not None:
        changes["thread_id"] = clean_id(item.thread_id) or None
    if item.title_prefixes:
        changes["title_prefixes"] = _tags(item.title_prefixes)
    if item.references:
        changes["references"] = _references(item.references, base, text_limit)
    return changes


def _html_and_text(html: str | None, base: str, limit: int) -> tuple[str | None, str]:
    """Returns safe HTML (None: none, or none that could be kept) and its text."""
    if not html:
        return None, ""
    clean = html_and_text(html, base) if len(html) <= limit else None
    if clean is None:
        return None, strip_tags(html[: 2 * limit])
    safe, text = clean
    if len(safe) > limit or not (text or "<img" in safe):
        return None, text
    return safe.strip(), text


def clean_id(external_id: str) -> str:
    """Returns an id as it is stored: on one line, and a hash instead of a very long one."""
    if len(external_id) > LONGEST_LINE:
        return f"sha256:{sha256(external_id.encode(errors='surrogatepass')).hexdigest()}"
    line = _line(external_id)
    # Counted in bytes, as the index of the database does; a quarter of the limit is safe without counting.
    if len(line) <= MAX_ID // 4 or len(line.encode()) <= MAX_ID:
        return line
    return f"sha256:{sha256(line.encode()).hexdigest()}"


def _told_apart(items: list[RefinedItem]) -> tuple[list[RefinedItem], list[Skipped]]:
    """Returns each entry once, under an id of its own.

    All entries that share an id get the suffix, not only the later ones: which of them comes first changes from
    answer to answer, and its id must not.
    """
    if len({(refined.item.scope, refined.item.external_id) for refined in items}) == len(items):
        return items, []
    kept: dict[tuple[str, str, str | None, bytes, datetime | None], RefinedItem] = {}
    repeated = []
    for refined in items:
        date = refined.item.created_at if refined.content_id else None
        key = (refined.item.scope, refined.item.external_id, refined.item.url, refined.fingerprint, date)
        if kept.setdefault(key, refined) is not refined:
            repeated.append(Skipped("repeated in the answer", excerpt=refined.item.external_id[:MAX_TAG]))
    by_id = Counter(key[:2] for key in kept)
    by_link = Counter(key[:3] for key in kept)

    def alone(refined: RefinedItem) -> RefinedItem:
        scope, id, url = refined.item.scope, refined.item.external_id, refined.item.url
        if by_id[scope, id] == 1 or refined.content_id:
            return refined
        ending = url if url and by_link[scope, id, url] == 1 else f"sha256:{refined.fingerprint.hex()}"
        return refined.replace(item=refined.item.replace(external_id=clean_id(f"{id} {ending}")))

    return list(told_apart_by_date([alone(refined) for refined in kept.values()], {})), repeated


def told_apart_by_date(
    items: Sequence[RefinedItem], stored_dates: Mapping[tuple[str, str], datetime | None]
) -> tuple[RefinedItem, ...]:
    """Returns the items, those with the same content under an id each. `stored_dates` are those of stored items, by
    scope and id.

    1. An item whose id with a date is stored keeps that id.
    2. An item with the date of the stored item whose id has no date keeps that id.
    3. An item that is alone in the answer takes the stored id without a date, even if its date differs: a feed may
       change the dates of its entries.
    4. If nothing is stored, the oldest item gets the id without a date; newer items are added above it.
    """
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, refined in enumerate(items):
        if refined.content_id:
            alike[refined.item.scope, refined.content_id].append(index)
    ids = dict[int, str]()
    for (scope, plain), indexes in alike.items():
        ids |= {index: items[index].dated_id for index in indexes}
        unknown = [index for index in indexes if (scope, ids[index]) not in stored_dates]
        undated = _undated(
            [items[index].item.created_at for index in unknown], len(indexes), (scope, plain), stored_dates
        )
        if undated is not None:
            ids[unknown[undated]] = plain
    return tuple(
        refined.replace(item=refined.item.replace(external_id=ids[index])) if index in ids else refined
        for index, refined in enumerate(items)
    )


def _undated(
    dates: Sequence[datetime | None],
    alike: int,
    key: tuple[str, str],
    stored_dates: Mapping[tuple[str, str], datetime | None],
) -> int | None:
    """Returns which of these, by their dates, has the id without a date; None: none of them. `alike` counts all in the
    answer with the same content."""
    if key not in stored_dates:
        # Not the oldest that is left, if others with this content are stored with their dates.
        return min(range(len(dates)), key=lambda place: dates[place] or _LONG_AGO) if len(dates) == alike else None
    if stored_dates[key] in dates:
        return dates.index(stored_dates[key])
    return 0 if alike == len(dates) == 1 else None


def fingerprint(title: str | None, text: str | None, target_url: str | None, media: Sequence[Media]) -> bytes:
    """Returns the SHA-256 of an item's content. Ignores white space, the way an accent is encoded, and the query
    strings of media, which carry sizes, signatures and expiry times."""
    return _digest(flat(title or ""), flat(text or ""), flat(target_url or ""), media)


def _digest(title: str, text: str, target_url: str, media: Sequence[Media]) -> bytes:
    """Returns the fingerprint of parts whose only white space are single spaces."""
    shown = dict.fromkeys(flat(_media_identity(medium.url)) for medium in media)
    # The separators count as white space, so no part can contain one.
    content = "\x1e".join((title, text, target_url, "\x1f".join(shown)))
    if not content.isascii():
        content = normalize("NFC", content)
    return sha256(content.encode(errors="surrogatepass")).digest()


def _media_identity(url: str) -> str:
    address = url.partition("#")[0].partition("?")[0]
    return address.partition("://")[2] or address


NO_CONTENT = fingerprint(None, None, None, ())
"""The fingerprint of an item of which neither title nor text is shown."""


def _line(text: str) -> str:
    """Returns the text on one line, without control characters. Of a very long one, the beginning."""
    text = text[:LONGEST_LINE]
    if text.isprintable():
        return text.strip(" ") if "  " not in text else " ".join(text.split())  # as `flat`, which would ask again
    return flat(without_controls(text))


def _name(text: str | None, limit: int = MAX_NAME) -> str | None:
    return _line(text)[:limit].rstrip() or None if text else None


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    if not tags:
        return ()
    lines = dict.fromkeys([_line(tag)[:MAX_TAG].rstrip() for tag in tags])
    lines.pop("", None)
    return tuple(lines)[:MAX_TAGS]


def _time(moment: datetime | None) -> tuple[datetime | None, bool]:
    """Returns the time in UTC, and whether its zone had to be guessed. None outside of the years in which anything can
    have been posted: a wrong time is worse than none, which is at least known to be guessed later."""
    if moment is None or not 1970 <= moment.year <= 2200:
        return None, False
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC), True
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC), False


def _url(raw_url: str | None, base: str) -> str | None:
    """Returns an absolute http(s) URL; None for anything else (javascript:, data:, mailto:), and for overlong ones:
    half a URL leads nowhere."""
    if not raw_url:
        return None
    if _PLAIN_ADDRESS.fullmatch(raw_url):
        return raw_url
    url = without_controls(raw_url).strip()
    if not url.startswith(("https://", "http://")):
        try:
            url = urljoin(base, url)
        except ValueError:
            return None
    if not _WEB_ADDRESS.match(url):
        return None
    url = "%20".join(url.split())
    return url if len(url) <= MAX_URL else None


_WEB_ADDRESS = pattern(r"https?://[^\s/?#]")
_PLAIN_ADDRESS = pattern(rf"https?://[0-9a-zA-Z][!-~]{{0,{MAX_URL - 10}}}")


def _media(media: tuple[Media, ...], base: str) -> tuple[Media, ...]:
    return tuple(
        medium.replace(url=url, mime=_name(medium.mime), alt=_name(medium.alt, MAX_TITLE))
        for medium in media[:MAX_ATTACHED]
        if (url := _url(medium.url, base))
    )


def _images(html: str) -> tuple[Media, ...]:
    """Returns the images of a post without text (a comic): they are its whole content."""
    return tuple(Media(unescape(src)) for src in dict.fromkeys(_IMAGE.findall(html)[:MAX_ATTACHED]))


_IMAGE = pattern(r'<img [^>]*?\bsrc="([^"]*)"')


def _references(references: tuple[Reference, ...], base: str, text_limit: int) -> tuple[Reference, ...]:
    return tuple(
        reference.replace(
            external_id=(reference.external_id and clean_id(reference.external_id)) or None,
            url=_url(reference.url, base),
            author=_name(reference.author),
            author_display_name=_name(reference.author_display_name),
            created_at=_time(reference.created_at)[0],
            media=_media(reference.media, base),
            text=(reference.text and clean_text(reference.text[: MUCH_MORE * text_limit])[:text_limit].rstrip())
            or None,
        )
        for reference in references[:MAX_ATTACHED]
    )
