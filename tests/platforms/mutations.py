"""Bodies that no site should send: bytes cut, flipped and repeated; values of JSON that are of another sort, left out,
there twice, nested too deep, too large, or no text at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

MOST_AT_ONCE = 4
DEEPEST = 100


class Pairs(list[tuple[str, Any]]):
    """An object of JSON, in which a key may come twice."""


class Verbatim(str):
    """JSON that is written as it stands, valid or not."""


Place = tuple[list[Any], int]
"""A value of a document: what it stands in, and where."""


def mutated(bodies: list[bytes], most: int, chance: Random) -> bytes:
    """One of the bodies after a few mutations; half of the time, of such as leave it valid JSON, if it was any: others
    make most answers unreadable."""
    body = chance.choice(bodies)
    for action in chance.choices(chance.choice((MUTATIONS, OF_JSON)), k=chance.randint(1, most)):
        body = action(body, chance)
    return body


# ── of any bytes ──────────────────────────────────────────────────────────────────────────────────────────────────

SNIPPETS = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1b$B", b"]]>", b"<![CDATA[", b"<!--", b"<html>", b"</item>",
    b"&#0;", b"&#xD800;", b"&lol;", b'"', b"\\", b"\\ud800", b"{", b"[", b",", b"null", b"<" * 500, b"&" * 500,
    b"&#" + b"9" * 5_000 + b";", b"&amp;#" + b"9" * 5_000 + b";",
)  # fmt: skip


def cut(body: bytes, chance: Random) -> bytes:
    return body[: chance.randint(0, len(body))]


def flip(body: bytes, chance: Random) -> bytes:
    changed = bytearray(body)
    for _ in range(chance.randint(1, 8) if body else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def leave_out(body: bytes, chance: Random) -> bytes:
    begin, end = sorted(chance.randint(0, len(body)) for _ in range(2))
    return body[:begin] + body[end:]


def repeat(body: bytes, chance: Random) -> bytes:
    begin, end = sorted(chance.randint(0, len(body)) for _ in range(2))
    end = min(end, begin + 2_000)
    return body[:end] + body[begin:end] * chance.randint(1, 20) + body[end:]


def insert(body: bytes, chance: Random) -> bytes:
    at = chance.randint(0, len(body))
    return body[:at] + chance.choice(SNIPPETS) + body[at:]


# ── of JSON ───────────────────────────────────────────────────────────────────────────────────────────────────────

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 2**31, 2**53 + 1, -(2**63), 2**64, 10**30, "", " ", "x", "0", "-1", "null",
    "\ud800", "a\x00b", "\u202e", "<p>x", "https://[", "//", "javascript:1", "9999-99-99", "1e9", "x" * 100_000,
    [], Pairs(), [None], [[]], Pairs([("", None)]), Verbatim("1" + "0" * 400), Verbatim("1e999"), Verbatim("-0"),
    Verbatim("NaN"), Verbatim("[" * 200 + "]" * 200), Verbatim("[" * 5_000 + "]" * 5_000), Verbatim("[" * 50_000),
    Verbatim('{"x":' * 500 + "1" + "}" * 500),
)  # fmt: skip


def of_another_sort(body: bytes, chance: Random) -> bytes:
    return _changed(body, chance, lambda inside, at: _put(inside, at, chance.choice(ODD)))


def left_out(body: bytes, chance: Random) -> bytes:
    return _changed(body, chance, lambda inside, at: inside.pop(at))


def there_twice(body: bytes, chance: Random) -> bytes:
    return _changed(body, chance, lambda inside, at: inside.insert(chance.randint(0, len(inside)), inside[at]))


def called_otherwise(body: bytes, chance: Random) -> bytes:
    def rename(inside: list[Any], at: int) -> None:
        if isinstance(inside, Pairs):
            inside[at] = (chance.choice(("", "\ud800", "id", "x" * 1_000)), inside[at][1])

    return _changed(body, chance, rename)


def in_the_place_of_another(body: bytes, chance: Random) -> bytes:
    document = _document(body)
    places = _places(document)
    if len(places) < 2:
        return cut(body, chance)
    value = _at(*chance.choice(places))
    _put(*chance.choice(places), Verbatim(_written(value)))
    return _encoded(document)


def _changed(body: bytes, chance: Random, action: Callable[[list[Any], int], object]) -> bytes:
    """The body after the action was done to one of its values; cut, if it is no JSON or has no value inside."""
    document = _document(body)
    places = _places(document)
    if not places:
        return cut(body, chance)
    action(*chance.choice(places))
    return _encoded(document)


def _document(body: bytes) -> Any:
    """The document in a body; also in Chinese bytes, with raw tabs, and behind a JavaScript assignment."""
    for codec in ("utf-8", "gb18030"):
        try:
            text = body.decode(codec)
            begin = text.index("{") if text.startswith("window.") else 0
            return json.loads(text[begin:], object_pairs_hook=Pairs, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _places(document: Any) -> list[Place]:
    """All values inside; none, if it is nested too deep to be written again."""
    found: list[Place] = []
    level = [document]
    for _ in range(DEEPEST):
        inner = [(inside, at) for inside in level if isinstance(inside, list) for at in range(len(inside))]
        if not inner:
            return found
        found += inner
        level = [_at(*place) for place in inner]
    return []


def _at(inside: list[Any], at: int) -> Any:
    return inside[at][1] if isinstance(inside, Pairs) else inside[at]


def _put(inside: list[Any], at: int, value: Any) -> None:
    inside[at] = (inside[at][0], value) if isinstance(inside, Pairs) else value


def _written(value: Any) -> str:
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(name)}:{_written(inner)}" for name, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value)


def _encoded(document: Any) -> bytes:
    return _written(document).encode()


Mutation = Callable[[bytes, Random], bytes]
OF_JSON: tuple[Mutation, ...] = (of_another_sort, left_out, there_twice, called_otherwise, in_the_place_of_another)
MUTATIONS: tuple[Mutation, ...] = (cut, flip, leave_out, repeat, insert, *OF_JSON)
