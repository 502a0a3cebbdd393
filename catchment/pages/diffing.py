"""What changed between two texts, for people: words that went, words that came, and enough around them. Pure.

Paragraphs are compared first, and words only within those that changed: a long text costs as much as what is different
about it. Chinese, Japanese and Korean have no spaces: each character is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

_WORDS = re.compile(r"\s+|[⺀-鿿가-힯豈-﫿＀-￯]|[^\W⺀-鿿가-힯豈-﫿＀-￯]+|[^\w\s]")
_MOST_WORDS = 3_000
"""Of one changed stretch: beyond that, all of it counts as changed. Comparing costs the square of it."""
_MOST_LINES = 2_000
_AROUND = 160
"""So many characters of what stayed are shown before and behind a change; the rest is left out."""


class Piece(NamedTuple):
    """A part of a text that stayed, went or came; `skipped`: stayed, and is left out here."""

    sort: str
    text: str


def changed(before: str, after: str) -> list[Piece]:
    """The pieces, in order: the kept and the gone ones make `before`, the kept and the new ones `after`."""
    return list(_joined(_by_lines(before, after)))


def shortened(pieces: Sequence[Piece]) -> list[Piece]:
    """The same, with little of what stayed."""
    found: list[Piece] = []
    for place, piece in enumerate(pieces):
        is_first, is_last = place == 0, place == len(pieces) - 1
        if piece.sort != "kept" or len(piece.text) <= 2 * _AROUND + 40:
            found.append(piece)
            continue
        # Not in the middle of a word; where there are no spaces, anywhere.
        head = "" if is_first else re.sub(r"\S{1,30}\Z", "", piece.text[:_AROUND])
        tail = "" if is_last else re.sub(r"\A\S{1,30}(?=\s)", "", piece.text[-_AROUND:])
        found += [Piece("kept", head)] if head else []
        found.append(Piece("skipped", str(len(piece.text) - len(head) - len(tail))))
        found += [Piece("kept", tail)] if tail else []
    return found


def _by_lines(before: str, after: str) -> Iterator[Piece]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for sort, (a, b), (c, d) in _blocks(old, new, _MOST_LINES):
        if sort == "equal":
            yield Piece("kept", "".join(old[a:b]))
        else:
            yield from _by_words("".join(old[a:b]), "".join(new[c:d]))


def _by_words(before: str, after: str) -> Iterator[Piece]:
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    for sort, (a, b), (c, d) in _blocks(old, new, _MOST_WORDS):
        if sort == "equal":
            yield Piece("kept", "".join(old[a:b]))
        else:
            yield Piece("gone", "".join(old[a:b]))
            yield Piece("new", "".join(new[c:d]))


def _blocks(
    old: Sequence[str], new: Sequence[str], most: int
) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """What is equal and what is not, by places. What begins and ends alike is found at once, however long it is."""
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield "equal", (0, head), (0, head)
    if max(old_end, new_end) - head > most:
        yield "replace", (head, old_end), (head, new_end)
    else:
        matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
        for sort, a, b, c, d in matcher.get_opcodes():
            yield sort, (head + a, head + b), (head + c, head + d)
    if tail:
        yield "equal", (old_end, len(old)), (new_end, len(new))


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _joined(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbours of one sort as one piece; of a stretch that changed, what went stands before what came."""
    for is_kept, group in groupby((one for one in pieces if one.text), lambda one: one.sort == "kept"):
        parts = list(group)
        if is_kept:
            yield Piece("kept", "".join(one.text for one in parts))
            continue
        for sort in ("gone", "new"):
            text = "".join(one.text for one in parts if one.sort == sort)
            if text:
                yield Piece(sort, text)
