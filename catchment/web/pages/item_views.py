"""Views of items: the list, the search results, and one item with its history. Turns store rows into HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import Enum
from itertools import groupby
from typing import NamedTuple

import nh3
from markupsafe import Markup, escape

from catchment.model import Media, Point, Record, Reference
from catchment.store.item_fields import ItemView
from catchment.store.items.views import RevisionView
from catchment.store.search.search import SearchHit
from catchment.text.printable import unescape
from catchment.web.pages import charts
from catchment.web.pages.render import Reader

_EXCERPT = 280
_TITLE = 180
_COUNTERS = ("score", "reply_count", "view_count")


Pieces = list[tuple[str, bool]]
"""A text in pieces, each with whether it is a match."""


class Headline(Record, frozen=True):
    """An item in a list."""

    item: ItemView
    source: str
    text: str
    """Its title; of an item without one, the beginning of its text."""
    excerpt: str
    url: str | None
    """Only if it is safe to link to."""
    title_pieces: Pieces = []
    pieces: Pieces = []

    @property
    def author(self) -> str | None:
        return self.item.author_display_name or self.item.author


def hit_headline(hit: SearchHit, source_names: Mapping[int, str]) -> Headline:
    """A search result, with the matches marked."""
    return headline(hit, source_names).replace(
        title_pieces=marked(hit.title or "", hit.title_marks), pieces=marked(hit.snippet.text, hit.snippet.marks)
    )


def headline(item: ItemView, source_names: Mapping[int, str]) -> Headline:
    text = " ".join((item.text or "")[: _EXCERPT * 4].split())
    title = item.title or ""
    return Headline(
        item,
        source_names.get(item.source_id) or item.platform,
        # An item without a title starts with its text, which is then not repeated below.
        text=_cut(title or text, _TITLE),
        excerpt=_cut(text, _EXCERPT) if title else _cut(text[_TITLE:], _EXCERPT),
        url=web_address(item.url) or web_address(item.target_url),
    )


def web_address(url: str | None) -> str | None:
    return url if url and url.startswith(("http://", "https://")) else None


def marked(text: str, marks: Sequence[Sequence[int]]) -> Pieces:
    pieces, end = [], 0
    for start, stop in marks:
        pieces += [(text[end:start], False), (text[start:stop], True)]
        end = stop
    return [piece for piece in (*pieces, (text[end:], False)) if piece[0]]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


class Images(Enum):
    """How the images within an item's text are shown."""

    AS_LINKS = "as links"
    """As links with their alternative text: nothing is loaded from other sites."""
    LOADED = "loaded"
    """Loaded; the site that serves them sees the user's IP address, and nothing else."""
    KEPT = "kept"
    """Unchanged, for programs that have their own rules: feed readers."""


_TAGS = nh3.ALLOWED_TAGS - {"map", "area"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt", "width", "height"},
    **{cell: {"colspan", "rowspan"} for cell in ("td", "th")},
}
# Matches the sanitizer's output: it quotes every value, and escapes quotes and brackets within.
_LINK_OR_IMAGE = re.compile(r'<(?P<tag>/?a|img)\b(?P<attributes>(?:\s+[\w-]+="[^"]*")*)\s*/?>')
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_REL = "noopener noreferrer nofollow"


def readable(html: str, images: Images = Images.KEPT, image_word: str = "image") -> Markup:
    """Third-party HTML, sanitized again for output: it runs nothing, loads only what the user allows, and its links
    send no referrer."""
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}, link_rel=_REL)
    if images != Images.KEPT and "<img" in clean:
        clean = _with_images(clean, images, image_word)
    return Markup(clean)  # noqa: S704 — sanitized above


def _with_images(clean: str, images: Images, image_word: str) -> str:
    """Sanitized HTML whose images are loaded lazily and without a referrer, or replaced by links."""
    is_in_link = False

    def replacement(tag: re.Match[str]) -> str:
        nonlocal is_in_link
        if tag["tag"] != "img":
            is_in_link = tag["tag"] == "a"
            return tag[0]
        attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag["attributes"])}
        src, alt = web_address(attributes.get("src")), " ".join(attributes.get("alt", "").split())
        if images == Images.LOADED and src:
            size = "".join(
                f' {name}="{escape(attributes[name])}"' for name in ("width", "height") if name in attributes
            )
            return (
                f'<img src="{escape(src)}" alt="{escape(alt)}"{size} loading="lazy" decoding="async" '
                'referrerpolicy="no-referrer">'
            )
        text = escape(f"[{image_word}: {alt}]" if alt else f"[{image_word}]")
        # Links cannot be nested.
        return f'<a class="image" href="{escape(src)}" rel="{_REL}">{text}</a>' if src and not is_in_link else str(text)

    return _LINK_OR_IMAGE.sub(replacement, clean)


def history(item: ItemView, revisions: Sequence[RevisionView]) -> Sequence[Mapping[str, object]]:
    """Each change, newest first: when, why, and the differences."""
    states: list[RevisionView | ItemView] = [*revisions, item]
    return [
        {
            "version": before.version,
            "at": before.valid_to,
            "from_at": before.valid_from.isoformat(),
            "edited_at": after.source_edited_at if isinstance(after, RevisionView) else after.edited_at,
            "reasons": before.reasons,
            "title": _changed(before.title, after.title),
            "text": shortened(_changed(before.text, after.text)),
            "media": _media_changed(before.media, after.media),
        }
        for before, after in zip(revisions, states[1:], strict=True)
    ][::-1]


def _changed(before: str | None, after: str | None) -> list[Piece]:
    """The differences; empty if there are none."""
    return changed(before or "", after or "") if (before or "") != (after or "") else []


def _media_changed(before: Sequence[Media], after: Sequence[Media]) -> tuple[int, int]:
    """How many were removed, how many added."""
    old, new = {medium.url for medium in before}, {medium.url for medium in after}
    return len(old - new), len(new - old)


def reference_link(reference: Reference, stored: Mapping[str, int]) -> dict[str, object]:
    """A reference: to the item itself, if it is stored. `stored`: ids of stored items, by external id."""
    return {
        "relation": reference.relation,
        "item_id": stored.get(reference.external_id or ""),
        "url": web_address(reference.url),
        "name": reference.author or reference.external_id or reference.url,
        "text": _cut(" ".join((reference.text or "").split()), _EXCERPT),
    }


def growth(item: ItemView, points: Sequence[Point], reader: Reader) -> charts.Growth | None:
    """The counters of an item over time."""
    now = Point(item.last_seen_at or item.first_seen_at, *(getattr(item, counter) for counter in _COUNTERS))
    samples = [*points, now] if points and points[-1].at < now.at else points
    series = [
        (counter, [(point.at, value) for point in samples if (value := getattr(point, counter)) is not None])
        for counter in _COUNTERS
    ]
    return charts.growth(series, {counter: reader.locale.name("counter", counter) for counter in _COUNTERS})


_WORDS = re.compile(r"\s+|[⺀-鿿가-힯豈-﫿＀-￯]|[^\W⺀-鿿가-힯豈-﫿＀-￯]+|[^\w\s]")
_MOST_WORDS = 3_000
"""Of one changed stretch: beyond that, all of it counts as changed. The cost of comparing is quadratic."""
_MOST_LINES = 2_000
_AROUND = 160
"""Characters of unchanged text shown before and after a change; the rest is left out."""


class Piece(NamedTuple):
    """A part of a text that was kept, deleted or inserted; `skipped`: kept, and left out here."""

    sort: str
    text: str


def changed(before: str, after: str) -> list[Piece]:
    """The pieces, in order: kept and deleted ones make `before`, kept and inserted ones `after`."""
    pieces: list[Piece] = []
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for is_equal, old, new in _stretches(*lines, _MOST_LINES):
        if is_equal:
            pieces.append(Piece("kept", old))
            continue
        for is_kept, old_words, new_words in _stretches(_WORDS.findall(old), _WORDS.findall(new), _MOST_WORDS):
            pieces += [Piece("kept", old_words)] if is_kept else [Piece("gone", old_words), Piece("new", new_words)]
    return list(_joined(pieces))


def shortened(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces with little of the unchanged text."""
    short: list[Piece] = []
    for index, piece in enumerate(pieces):
        is_first, is_last = index == 0, index == len(pieces) - 1
        if piece.sort != "kept" or len(piece.text) <= 2 * _AROUND + 40:
            short.append(piece)
            continue
        # Not in the middle of a word; in a text without spaces, anywhere.
        head = "" if is_first else re.sub(r"\S{1,30}\Z", "", piece.text[:_AROUND])
        tail = "" if is_last else re.sub(r"\A\S{1,30}(?=\s)", "", piece.text[-_AROUND:])
        short += [Piece("kept", head)] if head else []
        short.append(Piece("skipped", str(len(piece.text) - len(head) - len(tail))))
        short += [Piece("kept", tail)] if tail else []
    return short


def _stretches(old: Sequence[str], new: Sequence[str], most: int) -> Iterator[tuple[bool, str, str]]:
    """Stretches that are equal or not, with both texts. A common start and end is found at once, however long it is."""
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    yield True, "".join(old[:head]), "".join(new[:head])
    if max(len(old_middle), len(new_middle)) > most:
        yield False, "".join(old_middle), "".join(new_middle)
    else:
        matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
        for sort, a, b, c, d in matcher.get_opcodes():
            yield sort == "equal", "".join(old_middle[a:b]), "".join(new_middle[c:d])
    yield True, "".join(old[len(old) - tail :]), "".join(new[len(new) - tail :])


def _alike(sequence: Sequence[str], other: Sequence[str]) -> int:
    """The length of the common start."""
    pairs = enumerate(zip(sequence, other, strict=False))
    return next((count for count, (a, b) in pairs if a != b), min(len(sequence), len(other)))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbours of one sort as one piece; in a changed stretch, deletions stand before insertions."""
    for is_kept, group in groupby((piece for piece in pieces if piece.text), lambda piece: piece.sort == "kept"):
        parts = list(group)
        if is_kept:
            yield Piece("kept", "".join(part.text for part in parts))
            continue
        for sort in ("gone", "new"):
            text = "".join(part.text for part in parts if part.sort == sort)
            if text:
                yield Piece(sort, text)
