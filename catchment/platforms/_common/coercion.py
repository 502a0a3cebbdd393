"""Converts values as sites write them: texts, numbers, times, links, titles, people, durations, intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from catchment.lazy import pattern
from catchment.model import Hints, Media
from catchment.text.dates import Dated
from catchment.text.printable import unescape

# The form of most URLs; all others take the slower way through `resolved`.
WHOLE_URL = pattern(r"(?i:https?)://[^\s<>\"]+")

# Schemes a URL may have. Not here: javascript:, data: and whatever else a page must not offer to click.
SCHEMES = {"http", "https", "ftp", "gemini", "gopher", "magnet"}

ENTITY = pattern(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
MARKUP = pattern(r"</?[a-zA-Z][^<>]*>|<!--|" + ENTITY.pattern)

# Only what is really HTML: a title may speak of List<String> and must keep it.
HTML_TAG = pattern(
    r"</?(?:a|abbr|acronym|b|big|blockquote|br|center|cite|code|del|dfn|div|em|font|h[1-6]|hr|i|img|ins|kbd|li|mark|nobr"
    r"|ol|p|pre|q|s|samp|small|span|strike|strong|sub|sup|tt|u|ul|var|wbr)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
# Possessive wherever two parts could share characters: a name may be made to be tried in a million ways.
PERSON = pattern(
    r"\s*+(?:mailto:)?([^\s@]++@[^\s(]++)\s*+\((.*)\)\s*+|\s*+([^<]*)<\s*+(?:mailto:)?([^\s@]++@[^\s>]++)\s*+>\s*+",
    re.DOTALL,
)
LONGEST_PERSON = 300
LONGEST_TITLE = 50_000
"""With all its markup and white space; far less is kept of it."""
LANGUAGE = pattern(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,20}){0,5}")

# What a base may add to a URL. Every link of a feed is based on it: a megabyte of it would be a megabyte for each.
MOST_ADDED = 500

# No feed has more; twenty megabytes of the shortest entries would be half a million, and one endless transaction.
MOST_ENTRIES = 20_000

KINDS_BY_ENDING = {
    ending: kind
    for kind, endings in {
        "image": "jpg jpeg png gif webp avif svg bmp",
        "video": "mp4 m4v mov webm mkv avi ogv",
        "audio": "mp3 m4a ogg oga opus wav flac aac",
    }.items()
    for ending in endings.split()
}

# Beyond it, numbers in JSON and databases are no longer exact.
LARGEST = 2**53

MINUTE, HOUR, DAY = 60, 3600, 86400
PERIODS = {"hourly": HOUR, "daily": DAY, "weekly": 7 * DAY, "monthly": 30 * DAY, "yearly": 365 * DAY}


def text(value: Any) -> str | None:
    """Returns a text without white space around it; None for an empty one, and for anything else."""
    return (value.strip() or None) if isinstance(value, str) else None


def number(value: Any) -> int | None:
    """Returns a whole number; None for anything else, and where JSON numbers are no longer exact."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST else None


def boolean(value: object) -> bool:
    """Parses true and false, as programs and as users write them. For `Field.check`: raises ValueError otherwise."""
    word = str(value).strip().lower()
    if word not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError("true or false")
    return word in ("true", "yes", "1")


def from_seconds(value: Any) -> datetime | None:
    """Returns the time that is this many seconds, whole or not, after 1970; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < LARGEST:
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def resolved(url: str | None, base: str) -> str | None:
    """Returns an absolute URL; None if it has no supported scheme."""
    if not url:
        return None
    if WHOLE_URL.fullmatch(url):
        return url
    url = "".join(url.strip().splitlines()).replace("\t", "").replace(" ", "%20")
    if not url:
        return None
    try:
        whole = urljoin(base, url)
        if len(whole) > len(url) + MOST_ADDED:
            return None
        return whole if urlsplit(whole).scheme.lower() in SCHEMES else None
    except ValueError:
        return None


def joined(base: str, url: str | None) -> str:
    """Returns the base for a nested base; one that is not a URL, or an endless one, changes nothing."""
    try:
        return urljoin(base, url.strip()) if url and len(url) <= MOST_ADDED else base
    except ValueError:
        return base


def plain_title(text: str | None, *, has_tags: bool = True) -> str | None:
    """Returns a title on one line, without markup. Entities are often escaped once too much, and then once more."""
    if not text:
        return None
    if len(text) > LONGEST_TITLE:
        text = text[:LONGEST_TITLE]
    if has_tags and "<" in text:
        text = HTML_TAG.sub("", text)
    if "&" in text:
        for _ in range(2):
            text = unescape(text) if ENTITY.search(text) else text
    return " ".join(text.split()) or None


def is_markup(text: str) -> bool:
    """Whether a text that may be HTML or not is HTML: it contains a tag or an entity."""
    return ("<" in text or "&" in text) and MARKUP.search(text) is not None


def text_or_html(content: str) -> tuple[str | None, str | None]:
    """Returns a text that may be HTML or plain as one or the other."""
    return (None, content) if is_markup(content) else (content or None, None)


def has_html_tag(text: str) -> bool:
    return "<" in text and HTML_TAG.search(text) is not None


def person(text: str) -> tuple[str | None, str | None]:
    """Returns name and mail from `mail (Name)` and `Name <mail>`; a text that is neither is the name."""
    match = PERSON.fullmatch(text) if "@" in text and len(text) <= LONGEST_PERSON else None
    if not match:
        return text.strip() or None, None
    mail, name = (match[1], match[2]) if match[1] else (match[4], match[3])
    # noreply@… is before every author of large blog hosts and does not identify the author.
    return (name.strip(" \"'") or mail), None if mail.lower().startswith("noreply@") else mail


def media_kind(mime: str | None, url: str, medium: str | None = None) -> str:
    """Returns image, video, audio or file; by its declared type, or else by its URL."""
    if medium in ("image", "video", "audio"):
        return medium
    family = (mime or "").partition("/")[0].lower()
    if family in ("image", "video", "audio"):
        return family
    if mime == "application/x-shockwave-flash":
        return "video"
    path = url.partition("?")[0]
    return KINDS_BY_ENDING.get(path.rpartition(".")[2].lower(), "file")


def enclosure(
    url: str | None,
    base: str,
    mime: str | None,
    size: object,
    duration_seconds: float | None = None,
    alt: str | None = None,
) -> Media | None:
    """Returns an attached file; None without a usable URL."""
    url = resolved(url, base)
    if url is None:
        return None
    kind, size_bytes = media_kind(mime, url), amount(size)
    return Media(url, kind, mime=mime, size_bytes=size_bytes, duration_seconds=duration_seconds, alt=alt)


def each_once(media: Iterable[Media | None]) -> tuple[Media, ...]:
    """Returns the media, each URL once."""
    by_url: dict[str, Media] = {}
    for medium in media:
        if medium is not None:
            by_url.setdefault(medium.url, medium)
    return tuple(by_url.values())


def dates(published: Dated | None, updated: Dated | None) -> tuple[datetime | None, bool, datetime | None]:
    """Returns when it was created, whether the zone of that was guessed, and when it was edited: only a second, later
    date says that it was."""
    if published is None:
        return (updated.at, updated.is_zone_guessed, None) if updated else (None, False, None)
    is_edited = updated is not None and updated.at > published.at
    return published.at, published.is_zone_guessed, updated.at if updated and is_edited else None


def amount(text: object) -> int | None:
    """Returns a positive whole number; None for "0", "", "unknown": unknown lengths are written this way."""
    try:
        number = float(str(text))
        return min(int(number), LARGEST) or None if number > 0 else None
    except (ValueError, OverflowError):
        return None


def duration(text: object) -> float | None:
    """Returns seconds from 3723, "3723", "1:02:03"; None for nonsense and nothing."""
    try:
        seconds = 0.0
        for part in str(text).strip().split(":"):
            seconds = seconds * 60 + float(part)
    except ValueError:
        return None
    return seconds if 0 < seconds < 1e7 else None


def language(text: str | None) -> str | None:
    text = (text or "").strip()
    return text if LANGUAGE.fullmatch(text) else None


def unique(words: Iterable[str | None]) -> tuple[str, ...]:
    """Returns the words trimmed, each once, in order."""
    return tuple({trimmed: None for word in words if word and (trimmed := word.strip())})


def hints(ttl: str | None, period: str | None, frequency: str | None) -> Hints:
    """Returns how long the feed asks to wait at least: never less than a minute, never more than a day."""
    waits = [(amount((ttl or "").strip()) or 0) * MINUTE]
    if period or frequency:
        length = PERIODS.get((period or "daily").strip().lower(), 0)
        waits.append(length // (amount((frequency or "").strip()) or 1))
    longest = max(waits)
    return Hints(min_interval_seconds=min(longest, DAY) if longest >= MINUTE else None)
