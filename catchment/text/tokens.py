"""Search tokens of texts and queries: one set of rules for the index, and for items not indexed yet.

Scripts with spaces are split into whole words. Scripts without (Chinese, Japanese, Korean, Thai …, and pictures) are
split into runs, and any part of a run finds it, down to one character. Both are compared folded: case, width and the
ways to write an accent make no difference.

A text is represented by its segments, words and runs, with a space on either side: ` iphone 手机壳 `. A query is a few
patterns over that: ` iphone ` is a whole word, `手机` a part of a run, ` new york ` a phrase. The index knows terms:
each word, each character of a run, and each pair of neighbours in it.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import add
from typing import NamedTuple
from unicodedata import category, normalize

from catchment.errors import InvalidInput
from catchment.lazy import pattern
from catchment.model import Record

RULE = 3
"""Raised when an item gets other terms or facets than before: the index is then rebuilt."""

LONGEST_WORD = 64
"""A longer word (keys, encoded files) is indexed by its beginning: databases limit the length of words."""
MOST_TERMS = 32
"""How many terms of a query are looked up; a longer one is compared with the text itself."""
SNIPPET_LENGTH = 200
_LEAD = 60
# Beyond this, finding out where each folded character came from takes longer than a snippet is worth.
_MOST_TRACED = 50_000

# Ranges, not properties: they must not move with the Unicode version of a Python.
_SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Korean
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\U0001b000-\U0001b16f"  # Japanese
    "\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"  # pictures
)
_RUN = pattern(f"[{_SPACELESS}]")
_RUNS = pattern(f"[{_SPACELESS}]+")
_BY_RUNS = pattern(f"([{_SPACELESS}]+)")
# Nearly all texts: ASCII, runs and the punctuation of both. One simple expression finds their segments.
_USUAL = pattern(rf"[\x00-\x7f\u2010-\u2027\u3001-\u3003\u3008-\u301f{_SPACELESS}]*")
_USUAL_SEGMENT = pattern(f"[a-z0-9]+|[{_SPACELESS}]+")
# Chinese punctuation is replaced before a text is normalized: one that is normal already takes a tenth of the time.
_WIDE = tuple(zip("，！？：；（）", ",!?:;()", strict=True))
# Signs that only say how to draw or break the surrounding text, and those that would expand to letters (™ into tm).
_DROPPED = pattern("[\u00ad\u200c\u200d\u2060\ufe0e\ufe0f\ufeff\u2120\u2122]")
_ASCII_WORDS = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256)
)
"""Translates ASCII bytes: letters to lower case, and what is in no word to a space."""
_CODES = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
_SPACE = array("I", " ".encode(_CODES))
_QUOTED = pattern(r'"([^"]*)"|“([^”]*)”')


class Query(NamedTuple):
    """A parsed query. A text matches if it has every pattern."""

    patterns: tuple[str, ...]
    terms: tuple[str, ...]
    """What is looked up in the index: every matching text has all of them."""
    is_exact: bool
    """Every text that has all the terms matches: there is no need to check the text itself."""


class Snippet(Record, frozen=True):
    """A piece of a text, and where in it the hits are: from and to, in characters."""

    text: str
    marks: tuple[tuple[int, int], ...]


def folded(text: str) -> str:
    """Returns the text as it is compared: compatible forms are one, and so are cases."""
    if text.isascii():
        return text.lower()
    for wide, narrow in _WIDE:
        text = text.replace(wide, narrow)
    # Case folding may decompose characters.
    return normalize("NFKC", normalize("NFKC", _DROPPED.sub(_nothing, text)).casefold())


def _nothing(dropped: re.Match[str]) -> str:
    return " " if dropped.group() in "\u2120\u2122" else ""


def segments(text: str | None) -> list[str]:
    """Returns words and runs, in order."""
    if not text:
        return []
    if text.isascii():
        # An eighth of the cost of an expression that finds the words one by one.
        parts = text.encode().translate(_ASCII_WORDS).decode().split()
        return [part[:LONGEST_WORD] for part in parts] if len(max(parts, key=len, default="")) > LONGEST_WORD else parts
    plain = folded(text)
    if _USUAL.fullmatch(plain):
        parts = _USUAL_SEGMENT.findall(plain)
    else:
        # Runs and the words between them alternate.
        pieces = enumerate(_BY_RUNS.split(plain))
        parts = [part for index, piece in pieces for part in ([piece] if index % 2 else _word().findall(piece))]
    return list(map(_cut, parts)) if max(map(len, parts), default=0) > LONGEST_WORD else parts


def _spans(plain: str) -> Iterator[tuple[int, int]]:
    """Yields where the words and runs of a folded text begin and end."""
    after = 0
    for run in _RUNS.finditer(plain):
        yield from _word_spans(plain, after, run.start())
        yield run.span()
        after = run.end()
    yield from _word_spans(plain, after, len(plain))


def _word_spans(plain: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    return (word.span() for word in _word().finditer(plain, start, end)) if start < end else iter(())


def _cut(segment: str) -> str:
    return segment if len(segment) <= LONGEST_WORD or is_run(segment) else segment[:LONGEST_WORD]


def is_run(segment: str) -> bool:
    return _RUN.match(segment) is not None


def spoken(*texts: str | None) -> str:
    """Returns the text that patterns are matched against. Texts of one item (its title, its text) are separate: no
    phrase spans two."""
    return "\n".join(f" {' '.join(segments(text))} " for text in texts)


def terms(parts: Sequence[str]) -> str:
    """Returns the index terms of these segments, separated by spaces; some may be repeated."""
    joined = " ".join(parts)
    if joined.isascii():
        return joined
    runs = [part for part in parts if not part.isascii() and is_run(part)]
    words = set(parts).difference(runs)
    # As numbers: characters and pairs of them, made one by one as strings, take three times as long.
    characters = array("I", " ".join(runs).encode(_CODES))
    pairs = _SPACE * (3 * max(0, len(characters) - 1))
    pairs[0::3], pairs[1::3] = characters[:-1], characters[1:]
    # A pair with the space between two runs reads as a single character, which is a term anyway.
    return " ".join([*words, *map(chr, set(characters)), pairs.tobytes().decode(_CODES)])


@cache
def _word() -> re.Pattern[str]:
    """Letters and digits, each with its marks. Compiled when it is first needed: marks are many."""
    return re.compile(rf"[^\W_]+(?:[{_marks()}]+[^\W_]*)*")


def _marks() -> str:
    # Of the first plane only, where a look-up is one step: those beyond belong to scripts of the past.
    marks = (chr(code) for code in range(0x300, 0x10000) if category(chr(code)) in ("Mn", "Mc"))
    return "".join(mark for mark in marks if not _RUN.match(mark))


def understand(question: str) -> Query:
    """Parses a query: words and parts of runs that must all be there; quoted ones must be adjacent."""
    together = [segments(quoted or bare) for quoted, bare in _QUOTED.findall(question)]
    apart = [[segment] for segment in segments(_QUOTED.sub(" ", question))]
    phrases = [group for group in (*together, *apart) if group]
    if not phrases:
        raise InvalidInput("the query contains no words", "enter at least one letter, digit or character", "q")
    needed = sorted({term for phrase in phrases for segment in phrase for term in _needed(segment)})
    return Query(
        patterns=tuple(dict.fromkeys(_pattern(phrase) for phrase in phrases)),
        terms=tuple(needed[:MOST_TERMS]),
        is_exact=len(needed) <= MOST_TERMS and all(_is_one_term(phrase) for phrase in phrases),
    )


def _needed(segment: str) -> set[str]:
    """Returns the terms that a text with this segment has for certain: for a part of a run, the pairs suffice."""
    return set(map(add, segment, segment[1:])) if is_run(segment) and len(segment) > 1 else {segment}


def _is_one_term(phrase: Sequence[str]) -> bool:
    return len(phrase) == 1 and len(_needed(phrase[0])) == 1 and (not is_run(phrase[0]) or len(phrase[0]) <= 2)


def _pattern(phrase: Sequence[str]) -> str:
    """Returns the pattern: a word is whole, so its ends belong to it; a run may continue at either end of the
    phrase."""
    head, tail = ("" if is_run(segment) else " " for segment in (phrase[0], phrase[-1]))
    return f"{head}{' '.join(phrase)}{tail}"


def answers(spoken_text: str, query: Query) -> bool:
    """Whether the text, as `spoken` normalises it, matches the query."""
    return all(pattern in spoken_text for pattern in query.patterns)


def is_answered(query: Query, *texts: str | None) -> bool:
    """Whether these texts of an item together match the query."""
    # This decides nearly all cases, and takes a tenth of the time: a term is a part of the text that it comes from.
    plain = "\n".join(folded(text) for text in texts if text)
    if not all(term in plain for term in query.terms):
        return False
    return answers(spoken(*texts), query)


def worth(query: Query, title: str | None, text: str | None) -> float:
    """Returns how well an item matches: often, early on in the title, and in few words.

    The formula is BM25's. Rare and frequent words count alike: every compared item has all of them.
    """
    head, body = spoken(title), spoken(text)
    length = 0.25 + 0.75 * (len(head) + len(body)) / 1000
    often = (3 * len(list(_each(head, pattern))) + len(list(_each(body, pattern))) for pattern in query.patterns)
    return sum(2.2 * count / (count + 1.2 * length) for count in often)


def marks(query: Query, text: str | None) -> tuple[tuple[int, int], ...]:
    """Returns where in the text the hits are, in order, without overlaps."""
    return tuple(_apart(sorted(_hits(query, text[:_MOST_TRACED])))) if text else ()


def snippet(query: Query, text: str | None) -> Snippet:
    """Returns the piece of the text around the first hit; its beginning, if the hits are elsewhere."""
    if not text:
        return Snippet("", ())
    hits = marks(query, text)
    start = _word_start(text, max(0, hits[0][0] - _LEAD)) if hits else 0
    end = min(len(text), start + SNIPPET_LENGTH)
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    kept = ((max(hit_start, start), min(hit_end, end)) for hit_start, hit_end in hits if hit_start < end)
    return Snippet(
        f"{head}{text[start:end]}{tail}", tuple((hit_start + shift, hit_end + shift) for hit_start, hit_end in kept)
    )


def _word_start(text: str, at: int) -> int:
    """Returns a position a little further on where a word begins; where there are no spaces, any position will do."""
    space = text.find(" ", at, at + 20)
    return at if at == 0 or space < 0 else space + 1


def _hits(query: Query, text: str) -> Iterator[tuple[int, int]]:
    plain = folded(text)
    origins = _origins(text, plain)
    if origins is None:
        return
    spans = list(_spans(plain))
    spoken_text = f" {' '.join(_cut(plain[start:end]) for start, end in spans)} "
    # Where in `spoken_text` each segment's space is.
    places = [0, *accumulate(1 + len(_cut(plain[start:end])) for start, end in spans)]
    for part in query.patterns:
        for at in _each(spoken_text, part):
            first, last = at + part.startswith(" "), at + len(part) - 1 - part.endswith(" ")
            yield _origin(first, places, spans, origins), _origin(last, places, spans, origins) + 1


def _origin(at: int, places: Sequence[int], spans: Sequence[tuple[int, int]], origins: Sequence[int]) -> int:
    index = bisect_right(places, at - 1) - 1
    return origins[spans[index][0] + at - places[index] - 1]


def _each(spoken_text: str, pattern: str) -> Iterator[int]:
    at = spoken_text.find(pattern)
    while at >= 0:
        yield at
        # One word's closing space is the next one's opening space.
        at = spoken_text.find(pattern, at + max(1, len(pattern) - 1))


def _origins(text: str, plain: str) -> Sequence[int] | None:
    """Returns for each folded character where in the text it came from; None if that is unknown."""
    if len(text) == len(plain):
        return range(len(text))
    origins: list[int] = []
    for piece in _cluster().finditer(text):
        origins += [piece.start()] * len(folded(piece.group()))
    return origins if len(origins) == len(plain) else None


@cache
def _cluster() -> re.Pattern[str]:
    """A character with what may be composed with it."""
    return re.compile(f"[\u1100-\u11ff]+|.[{_marks()}\u3099\u309a\uff9e\uff9f]*", re.DOTALL)


def _apart(hits: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last = -1
    for start, end in hits:
        if start >= last:
            yield start, end
            last = end
