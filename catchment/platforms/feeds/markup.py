"""XML to a tree, safely: no network, no DTD, no entities but XML's own, bounded depth.

Strictly first. What is not well-formed is repaired step by step, and each step that changed something says so; what is
still not well-formed then is read by a parser that forgives.
"""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Callable
from html.entities import html5
from typing import Any, NamedTuple

from lxml import etree

Element = Any
"""lxml ships no types."""

ROOTS = {"rss", "rdf", "feed"}

# An unclosed comment or section runs to the end: the search stays linear whatever is thrown at it.
COMMENT = r"<!--(?:.*?-->|.*)"
CDATA = r"<!\[CDATA\[(?:.*?\]\]>|.*)"
OPAQUE = re.compile(f"({CDATA}|{COMMENT})", re.DOTALL)
ROOT = re.compile(rf"{COMMENT}|<((?:[\w.-]+:)?(?:rss|rdf|feed))(?=[\s>/])", re.DOTALL | re.IGNORECASE)
PAGE = re.compile(
    rf"{COMMENT}|<(!doctype\s+html|html|head|body)(?=[\s>])|<(?:[\w.-]+:)?(?:rss|rdf|feed)(?=[\s>/])",
    re.DOTALL | re.IGNORECASE,
)
TAG = re.compile(r"<[A-Za-z][^<>]*>")
VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|=\s*([^\s\"'<>]+)")
ENTRY = re.compile(rf"{CDATA}|{COMMENT}|<(/?)(?:[\w.-]+:)?(?:item|entry)(?=[\s>/])", re.DOTALL | re.IGNORECASE)
PROLOG = re.compile(
    r"(?:<\?xml\s[^>]*\?>)?(?:\s++|(?><!--.*?-->)|(?><\?.*?\?>)|(?><!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>))*+", re.DOTALL
)
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NAMED = re.compile(r"&((?:amp|lt|gt|quot|apos);)")
AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)(?:#(\d{1,7}|x[0-9a-fA-F]{1,6});|(\w{1,40};))?")

# Bytes between 128 and 159 as characters: Windows quotes called Latin, or UTF-8 taken for Latin and encoded again.
AMPERSAND_BYTE = ord("&")
C1_CHARACTER = re.compile(rb"\xc2[\x80-\x9f]")
C1_REFERENCE = re.compile(rb"#(?:1[2-5]\d|x[89][0-9a-fA-F]);")
C1 = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
REFERENCES = re.compile(r"(?:&#(?:1[2-9]\d|2[0-4]\d|25[0-5]|x[89a-fA-F][0-9a-fA-F]);)+")


class Tree(NamedTuple):
    """A feed's root element, what was repaired to get it, and what could not be saved."""

    root: Element
    notes: tuple[str, ...] = ()
    is_forgiven: bool = False
    """Read by the forgiving parser: its structure may be off."""
    is_torn: bool = False
    """The document breaks off before its end."""
    cut_off: str | None = None
    """How the entry began in which it does."""


def name_of(element: Element) -> str:
    """The local name in lower case, without namespace or prefix."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()


def strict(body: bytes) -> Tree | None:
    """The tree of UTF-8 bytes that are well-formed and need no care; None otherwise."""
    if _has_wrong_characters(body):
        return None
    root = _parsed(body, forgives=False)
    # A DTD is never loaded, and text behind its entities would be lost without a word: repairing replaces them.
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        return None
    return Tree(root)


def _has_wrong_characters(body: bytes) -> bool:
    # By hops from one rare byte to the next: a pattern over the whole body would cost as much as parsing it.
    if b"\xc2" in body and C1_CHARACTER.search(body):
        return True
    at = body.find(b"#")
    while at >= 0:
        if body[at - 1] == AMPERSAND_BYTE and C1_REFERENCE.match(body, at):
            return True
        at = body.find(b"#", at + 1)
    return False


def is_page(text: str) -> bool:
    """Whether HTML begins before any feed does: pages may carry RDF of their own, and speak of feeds."""
    first = next((found for found in PAGE.finditer(text) if not found[0].startswith("<!--")), None)
    return first is not None and first[1] is not None


def entry_count(text: str) -> int:
    """How many entries a text seems to have, whatever state it is in."""
    return sum(found[1] == "" for found in ENTRY.finditer(text))


def is_closed(text: str) -> bool:
    """Whether the feed has an end."""
    return _root_end(text) is not None


def repaired(text: str) -> Tree | None:
    """The tree of a feed that is not well-formed; None if no feed can be made of it."""
    clean = CONTROL.sub("", text)
    notes = ["control characters"] if clean != text else []
    text = clean
    if _root_start(text) is None:
        return None
    whole = _uncut(text)
    if whole != text:
        notes.append("breaks off before its end")
    cut_off, text = text[len(whole) :].strip()[:200] or None, whole
    for note, step in STEPS:
        mended = step(text)
        if mended != text and note:
            notes.append(note)
        text = mended
    tree = _best_tree(text, notes, cut_off)
    return tree and tree._replace(is_torn="breaks off before its end" in notes)


def _best_tree(text: str, notes: list[str], cut_off: str | None) -> Tree | None:
    root = _parsed(text.encode("utf-8", "ignore"), forgives=False)
    if root is not None:
        return Tree(root, tuple(notes), cut_off=cut_off)
    root = _parsed(_with_numbers(text).encode("utf-8", "ignore"), forgives=True)
    if root is None or name_of(root) not in ROOTS:
        return None
    if cut_off is None or not notes:
        notes = [*notes, "not well-formed"]
    return Tree(root, tuple(notes), is_forgiven=True, cut_off=cut_off)


def _parsed(body: bytes, *, forgives: bool) -> Element | None:
    # A parser for each document: a shared one would make threads wait for each other, and costs as much as is saved.
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=forgives,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        collect_ids=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


# ── the steps of repairing: text to text ──────────────────────────────────────────────────────────────────────────


def _uncut(text: str) -> str:
    """Without the entry in which a torn document breaks off: half an entry would be stored as if it said no more."""
    opened = closed = 0
    count = 0
    for found in ENTRY.finditer(text):
        if found[1] == "":
            opened, count = found.start(), count + 1
        elif found[1]:
            closed = found.end()
    is_torn = opened > closed and (closed > 0 or count == 1)
    return text[:opened] if is_torn and _root_end(text) is None else text


def _root_end(text: str) -> int | None:
    root = _root_start(text)
    name = root[1] if root else ""
    last = deque(re.finditer(rf"</{re.escape(name)}\s*>?", text, re.IGNORECASE), maxlen=1) if name else ()
    return last[0].end() if last else None


def _root_start(text: str) -> re.Match[str] | None:
    return next((found for found in ROOT.finditer(text) if found[1]), None)


def _without_entities(text: str) -> str:
    """Declared entities are bombs or doors to files; what they stood for is left as it is written."""
    prolog = PROLOG.match(text)
    return text[prolog.end() :] if prolog and "<!ENTITY" in prolog[0] else text


def _without_prolog(text: str) -> str:
    prolog = PROLOG.match(text)
    return text[prolog.end() :] if prolog else text


def without_beginning(text: str) -> str:
    root = _root_start(text)
    return text[root.start() :] if root else text


def _without_rest(text: str) -> str:
    end = _root_end(text)
    if end is None or not text[end:].strip():
        return text
    return text[:end]


def _with_true_characters(text: str) -> str:
    """Characters that went through the wrong table on their way: 0x92 for a quote, or UTF-8 encoded twice."""
    return REFERENCES.sub(_true_characters, text).translate(C1)


def _true_characters(found: re.Match[str]) -> str:
    characters = "".join(chr(_code(number)) for number in re.findall(r"&#(\w+);", found[0]))
    try:
        return characters.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return characters


def _with_true_ampersands(text: str) -> str:
    """Bare & escaped and the entities of HTML replaced, except where XML does not look for them."""
    pieces = OPAQUE.split(text)
    pieces[::2] = [AMPERSAND.sub(_ampersand, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _ampersand(found: re.Match[str]) -> str:
    number, name = found.groups()
    if number:
        code = _code(number)
        is_character = 0 < code < 0x110000 and not CONTROL.match(chr(code))
        return found[0] if is_character else ""
    if name in html5:
        return html.escape(html5[name])
    return "&amp;" + (name or "")


def _with_quotes(text: str) -> str:
    """Attributes as HTML allows them, without quotes, as XML wants them."""
    pieces = OPAQUE.split(text)
    pieces[::2] = [TAG.sub(lambda tag: VALUE.sub(_quoted, tag[0]), piece) for piece in pieces[::2]]
    return "".join(pieces)


def _with_numbers(text: str) -> str:
    """&#38; for &amp; and so on: behind the first error, the forgiving parser loses entities by name without a word."""
    pieces = OPAQUE.split(text)
    pieces[::2] = [NAMED.sub(lambda named: f"&#{ord(html5[named[1]])};", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _quoted(found: re.Match[str]) -> str:
    return f'="{found[1]}"' if found[1] else found[0]


def _code(number: str) -> int:
    return int(number[1:], 16) if number[0] == "x" else int(number)


STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("declared entities", _without_entities),
    ("", _without_prolog),
    ("junk before the feed", without_beginning),
    ("junk after the feed", _without_rest),
    ("wrongly encoded characters", _with_true_characters),
    ("bare ampersands or HTML entities", _with_true_ampersands),
    ("attributes without quotes", _with_quotes),
)
