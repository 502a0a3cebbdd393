"""What a platform said, made fit to be kept: validated, cleaned, sanitised, identified, fingerprinted.

Pure: no clock, no settings object, no input or output. A bad item is left out with its reason, the rest goes on: every
item that comes in leaves as one that is written or as one that was skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import unescape
from unicodedata import normalize
from urllib.parse import urljoin

import msgspec
from msgspec.structs import replace

from catchment.model import Item, Media, Reading, Reference, Refined, RefinedItem, Skipped
from catchment.refining.markup import clean_text, html_to_text, sanitise, strip_tags, without_controls

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
    "sorted_out",
    "told_at",
]

FINGERPRINT_RULE = 1
"""Raised when the same content would get another fingerprint: stored ones are then recomputed, without revisions."""

MARK_BYTES = 8
_ENCODED = msgspec.msgpack.Encoder().encode
# Raised when refining makes something else of the same item: what came like this before is then refined again.
_REFINING = b"1 %d" % FINGERPRINT_RULE

MAX_ID = 1_000
MAX_URL = 4_000
MAX_TITLE = 2_000
MAX_NAME = 300
MAX_TAG = 100
MAX_TAGS = 50
MAX_ATTACHED = 500
"""Media and references of one item, each."""


def refine(reading: Reading, *, scope: str, answer_url: str, text_limit: int = 1_000_000) -> Refined:
    """Make a reading fit to be written. `scope` is for items whose ids are unique in their source only."""
    clean: list[RefinedItem] = []
    skipped = list(reading.skipped)
    for item in reading.items:
        refined = _refined(item, scope, answer_url, text_limit)
        if refined is None:
            skipped.append(Skipped("no content", excerpt=_line(item.external_id)[:MAX_TAG]))
        else:
            clean.append(refined)
    items, repeated = _told_apart(clean)
    return Refined(tuple(items), (*skipped, *repeated))


def listed_ids(reading: Reading) -> tuple[str, ...]:
    """The ids that a listing shows without their content, as they are kept, each once and in its order."""
    told = {clean_id(item.external_id) for item in reading.items}
    asked = (request.asks_for for request in reading.follow if request.asks_for is not None)
    ids = dict.fromkeys(clean_id(one) for one in (*reading.listed, *asked))
    return tuple(one for one in ids if one and one not in told)


def listed(reading: Reading, scope: str) -> tuple[RefinedItem, ...]:
    """The same as items of which nothing but the id is known."""
    return tuple(RefinedItem(Item(one, scope=scope), b"", is_listed=True) for one in listed_ids(reading))


def mark_of(item: Item) -> bytes:
    """Eight bytes that tell whether an item comes to the letter as it came before. Costs a twentieth of refining it."""
    return sha256(_REFINING + _ENCODED(item)).digest()[:MARK_BYTES]


def told_at(item: Item) -> datetime | None:
    """When it was posted, as refining will have it."""
    return _time(item.created_at)[0]


def sorted_out(reading: Reading, marks: Sequence[bytes], last_time: bytes | None, scope: str) -> list[RefinedItem]:
    """The items that came like this last time: nothing about them needs to be thought again.

    None of them, if ids are missing or repeated: then refining has to tell the items apart.
    """
    if not last_time:
        return []
    ids = {item.external_id for item in reading.items}
    if len(ids) < len(reading.items) or "" in ids:
        return []
    known = {last_time[at : at + MARK_BYTES] for at in range(0, len(last_time), MARK_BYTES)}
    return [
        RefinedItem(
            replace(item, scope=item.scope or scope, created_at=_time(item.created_at)[0]), b"", is_unchanged=True
        )
        for item, mark in zip(reading.items, marks, strict=True)
        if mark in known
    ]


def _refined(item: Item, scope: str, answer_url: str, text_limit: int) -> RefinedItem | None:
    """One item, cleaned; None if there is nothing in it."""
    base = (item.base_url and _url(item.base_url, answer_url)) or answer_url
    html, html_text = _html_and_text(item.html, base, 4 * text_limit)
    text = (item.text and clean_text(item.text)) or html_text
    title = (item.title and _line(item.title)) or ""
    url, target_url = _url(item.url, base), _url(item.target_url, base)
    media = _media(item.media, base) or (_images(html) if html and not text else ())
    if not (title or text or url or target_url or media):
        return None

    content = _digest(title, text.replace("\n\n", " ").replace("\n", " "), target_url or "", media)
    is_text_whole = len(text) <= text_limit
    kept_html = html if is_text_whole else None  # half of an HTML is not HTML
    refined = replace(
        _tidied(item, base, text_limit),
        external_id=clean_id(item.external_id) or clean_id(url or "") or f"sha256:{content.hex()}",
        scope=item.scope or scope,
        title=title[:MAX_TITLE].rstrip() or None,
        text=text[:text_limit].rstrip() or None,
        html=kept_html,
        base_url=None,  # every address is absolute now
        url=url,
        target_url=target_url,
        media=media,
    )
    return RefinedItem(
        refined,
        content,
        is_text_cut=not is_text_whole or len(title) > MAX_TITLE,
        is_html_dropped=bool(html_text and not kept_html),
    )


def _tidied(item: Item, base: str, text_limit: int) -> Item:
    """The item with all that is not content in order."""
    created_at, is_zone_guessed = _time(item.created_at)
    return replace(
        item,
        created_at=created_at,
        is_zone_guessed=item.is_zone_guessed or is_zone_guessed,
        edited_at=_time(item.edited_at)[0],
        last_reply_at=_time(item.last_reply_at)[0],
        author=_name(item.author),
        author_id=_name(item.author_id),
        author_display_name=_name(item.author_display_name),
        score=_count(item.score),
        reply_count=_count(item.reply_count),
        view_count=_count(item.view_count),
        thread_id=(item.thread_id and clean_id(item.thread_id)) or None,
        floor_number=_count(item.floor_number),
        rank=_count(item.rank),
        gained=_count(item.gained),
        references=_references(item.references, base, text_limit),
        tags=_tags(item.tags),
        language=_name(item.language),
    )


def _html_and_text(html: str | None, base: str, limit: int) -> tuple[str | None, str]:
    """Safe HTML (None: none, or none that could be kept) and the words in it."""
    if not html:
        return None, ""
    safe = sanitise(html, base) if len(html) <= limit else None
    if safe is None:
        return None, strip_tags(html)
    text = html_to_text(safe)
    if len(safe) > limit or not (text or "<img" in safe):
        return None, text
    return safe.strip(), text


# ── identity ──────────────────────────────────────────────────────────────────────────────────────────────────────


def clean_id(given: str) -> str:
    """An id as it is kept: on one line, and a hash in place of a very long one."""
    line = _line(given)
    # Counted in bytes, as the index of the database does; a quarter of the limit is safe without counting.
    if len(line) <= MAX_ID // 4 or len(line.encode()) <= MAX_ID:
        return line
    return f"sha256:{sha256(line.encode()).hexdigest()}"


def _told_apart(items: list[RefinedItem]) -> tuple[list[RefinedItem], list[Skipped]]:
    """Each entry once, under an id of its own.

    All entries that share an id get the ending, not only the later ones: which of them comes first changes from answer
    to answer, and its id must not.
    """
    if len({(each.item.scope, each.item.external_id) for each in items}) == len(items):
        return items, []
    kept: dict[tuple[str, str, str | None, bytes], RefinedItem] = {}
    repeated = []
    for each in items:
        key = (each.item.scope, each.item.external_id, each.item.url, each.fingerprint)
        if kept.setdefault(key, each) is not each:
            repeated.append(Skipped("repeated in the answer", excerpt=each.item.external_id[:MAX_TAG]))
    by_id = Counter(key[:2] for key in kept)
    by_link = Counter(key[:3] for key in kept)

    def alone(each: RefinedItem) -> RefinedItem:
        scope, id, url = each.item.scope, each.item.external_id, each.item.url
        if by_id[scope, id] == 1:
            return each
        ending = url if url and by_link[scope, id, url] == 1 else f"sha256:{each.fingerprint.hex()}"
        return each.plus(item=each.item.plus(external_id=clean_id(f"{id} {ending}")))

    return [alone(each) for each in kept.values()], repeated


# ── the fingerprint ───────────────────────────────────────────────────────────────────────────────────────────────


def fingerprint(title: str | None, text: str | None, target_url: str | None, media: Sequence[Media]) -> bytes:
    """SHA-256 of what an item says. Blind to white space, to the way an accent is encoded, and to the query strings
    of media, which carry sizes, signatures and expiry times."""
    return _digest(_flat(title or ""), _flat(text or ""), _flat(target_url or ""), media)


def _digest(title: str, text: str, target_url: str, media: Sequence[Media]) -> bytes:
    """The fingerprint of parts whose only white space are single spaces."""
    shown = dict.fromkeys(_flat(_media_identity(each.url)) for each in media)
    # The separators count as white space, so no part can contain one.
    content = "\x1e".join((title, text, target_url, "\x1f".join(shown)))
    return sha256(normalize("NFC", content).encode(errors="surrogatepass")).digest()


def _flat(text: str) -> str:
    return " ".join(text.split())


def _media_identity(url: str) -> str:
    address = url.partition("#")[0].partition("?")[0]
    return address.partition("://")[2] or address


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(text: str) -> str:
    """On one line, without control characters."""
    return _flat(without_controls(text))


def _name(text: str | None, limit: int = MAX_NAME) -> str | None:
    return _line(text)[:limit].rstrip() or None if text else None


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    lines = dict.fromkeys(_line(tag)[:MAX_TAG].rstrip() for tag in tags)
    lines.pop("", None)
    return tuple(lines)[:MAX_TAGS]


def _time(moment: datetime | None) -> tuple[datetime | None, bool]:
    """In UTC, and whether its zone had to be guessed. None outside of the years in which anything can have been posted
    here: a wrong time is worse than none, which is at least known to be guessed later."""
    if moment is None or not 1970 <= moment.year <= 2200:
        return None, False
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC), True
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC), False


def _count(number: int | None) -> int | None:
    """A counter that a database can hold; what cannot be true is unknown."""
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _url(given: str | None, base: str) -> str | None:
    """An absolute http(s) address; None for anything else (javascript:, data:, mailto:), and for overlong ones: half an
    address leads nowhere."""
    if not given:
        return None
    if _PLAIN_ADDRESS.fullmatch(given):
        return given
    url = without_controls(given).strip()
    if not url.startswith(("https://", "http://")):
        try:
            url = urljoin(base, url)
        except ValueError:
            return None
    if not _WEB_ADDRESS.match(url):
        return None
    url = "%20".join(url.split())
    return url if len(url) <= MAX_URL else None


_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]")
_PLAIN_ADDRESS = re.compile(rf"https?://[0-9a-zA-Z][!-~]{{0,{MAX_URL - 10}}}")


def _media(media: tuple[Media, ...], base: str) -> tuple[Media, ...]:
    return tuple(
        each.plus(url=url, mime=_name(each.mime), alt=_name(each.alt, MAX_TITLE))
        for each in media[:MAX_ATTACHED]
        if (url := _url(each.url, base))
    )


def _images(html: str) -> tuple[Media, ...]:
    """The images of a post without a word (a comic): they are all that it says."""
    return tuple(Media(unescape(src)) for src in dict.fromkeys(_IMAGE.findall(html)[:MAX_ATTACHED]))


_IMAGE = re.compile(r'<img [^>]*?\bsrc="([^"]*)"')


def _references(references: tuple[Reference, ...], base: str, text_limit: int) -> tuple[Reference, ...]:
    return tuple(
        each.plus(
            external_id=(each.external_id and clean_id(each.external_id)) or None,
            url=_url(each.url, base),
            author=_name(each.author),
            text=(each.text and clean_text(each.text)[:text_limit].rstrip()) or None,
        )
        for each in references[:MAX_ATTACHED]
    )
