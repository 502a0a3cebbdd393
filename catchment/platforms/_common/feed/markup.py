"""Parses XML safely to a tree: no network, no DTD, no entities but XML's own, bounded depth.

Strictly first. What is not well-formed is repaired step by step, and each step that changed something is reported;
what is still not well-formed then is parsed by a recovering parser.
"""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Callable
from html.entities import html5
from typing import Any, NamedTuple

from catchment.errors import TooComplex
from catchment.lazy import lazy_imports, pattern

with lazy_imports():
    from lxml import etree

Element = Any
"""lxml ships no types."""

ROOTS = {"rss", "rdf", "feed"}

MOST_REPAIRED = 10_000_000
MOST_MARKS = 1_000_000
"""Of < and &, in a feed that is not well-formed. Ten megabytes of honest markup have half as many."""

# An unclosed comment or section runs to the end: the search stays linear whatever the input.
COMMENT = r"<!--(?:.*?-->|.*)"
CDATA = r"<!\[CDATA\[(?:.*?\]\]>|.*)"
OPAQUE = pattern(f"({CDATA}|{COMMENT})", re.DOTALL)
ROOT = pattern(rf"{COMMENT}|<((?:[\w.-]+:)?(?:rss|rdf|feed))(?=[\s>/])", re.DOTALL | re.IGNORECASE)
PAGE = pattern(
    rf"{COMMENT}|<(!doctype\s+html|html|head|body)(?=[\s>])|<(?:[\w.-]+:)?(?:rss|rdf|feed)(?=[\s>/])",
    re.DOTALL | re.IGNORECASE,
)
TAG = pattern(r"<[A-Za-z][^<>]*>")
VALUE = pattern(r"\"[^\"]*\"|'[^']*'|=\s*([^\s\"'<>]+)")
ENTRY = pattern(rf"{CDATA}|{COMMENT}|<(/?)(?:[\w.-]+:)?(?:item|entry)(?=[\s>/])", re.DOTALL | re.IGNORECASE)
PROLOG = pattern(
    r"(?:<\?xml\s[^>]*\?>)?(?:\s++|(?><!--.*?-->)|(?><\?.*?\?>)|(?><!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>))*+", re.DOTALL
)

CONTROL = pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NAMED = pattern(r"&((?:amp|lt|gt|quot|apos);)")
# A run of them is replaced at once: a megabyte of ampersands would otherwise be a million replacements.
BARE_RUN = pattern(r"&{2,}(?=&)")
AMPERSAND = pattern(r"&(?!(?:amp|lt|gt|quot|apos);)(?:#(\d{1,7}|x[0-9a-fA-F]{1,6});|(\w{1,40};))?")

# Bytes between 128 and 159 as characters: Windows quotes labelled Latin, or UTF-8 taken for Latin and encoded again.
AMPERSAND_BYTE = ord("&")
C1_CHARACTER = pattern(rb"\xc2[\x80-\x9f]")
C1_REFERENCE = pattern(rb"#(?:1[2-5]\d|x[89][0-9a-fA-F]);")
ANY_C1_REFERENCE = pattern(rb"&#(?:1[2-5]\d|x[89][0-9a-fA-F]);")
MOST_HOPS = 20_000
C1 = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
REFERENCES = pattern(r"(?:&#(?:1[2-9]\d|2[0-4]\d|25[0-5]|x[89a-fA-F][0-9a-fA-F]);)+")


class Tree(NamedTuple):
    """A feed's root element, what was repaired to get it, and what could not be saved."""

    root: Element
    notes: tuple[str, ...] = ()
    is_forgiven: bool = False
    """Parsed by the recovering parser: its structure may be off."""
    is_torn: bool = False
    """The document is truncated."""
    cut_off: str | None = None
    """The beginning of the entry in which it ends."""


def name_of(element: Element) -> str:
    """Returns the local name in lower case, without namespace or prefix."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()


def strict(body: bytes) -> Tree | None:
    """Returns the tree of UTF-8 bytes that are well-formed and need no repair; None otherwise."""
    if _has_wrong_characters(body):
        return None
    root = _parsed(body, forgives=False)
    # A DTD is never loaded, and text behind its entities would be lost silently: repairing replaces them.
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        return None
    return Tree(root)


def _has_wrong_characters(body: bytes) -> bool:
    # By hops from one rare byte to the next: a pattern over the whole body would cost as much as parsing it.
    if b"\xc2" in body and C1_CHARACTER.search(body):
        return True
    at = body.find(b"#")
    for _ in range(MOST_HOPS):
        if at < 0:
            return False
        if body[at - 1] == AMPERSAND_BYTE and C1_REFERENCE.match(body, at):
            return True
        at = body.find(b"#", at + 1)
    return ANY_C1_REFERENCE.search(body, max(0, at - 1)) is not None if at >= 0 else False


def is_page(text: str) -> bool:
    """Whether HTML begins before any feed does: pages may carry RDF of their own, and speak of feeds."""
    first = next((match for match in PAGE.finditer(text) if not match[0].startswith("<!--")), None)
    return first is not None and first[1] is not None


def entry_count(text: str) -> int:
    """Returns how many entries a text seems to have, whatever state it is in."""
    return sum(match[1] == "" for match in ENTRY.finditer(text))


def is_closed(text: str) -> bool:
    """Whether the feed has an end."""
    return _root_end(text) is not None


def repaired(text: str) -> Tree | None:
    """Returns the tree of a feed that is not well-formed; None if no feed can be made of it. Raises TooComplex for what
    would take too much memory: every step makes a copy, in many pieces."""
    marks = text.count("&") + text.count("<")
    if len(text) > MOST_REPAIRED or marks > MOST_MARKS:
        raise TooComplex(
            "the feed is malformed and too large to repair ({size:,} characters, {marks:,} of < or &)",
            "the limits are {most_size:,} and {most_marks:,}; only its publisher can fix it",
            size=len(text),
            marks=marks,
            most_size=MOST_REPAIRED,
            most_marks=MOST_MARKS,
        )
    clean = CONTROL.sub("", text)
    notes = ["control characters"] if clean != text else []
    if _root_start(clean) is None:
        return None
    text = _uncut(clean)
    is_torn = text != clean
    cut_off = clean[len(text) :].strip()[:200] or None
    if is_torn:
        notes.append("breaks off before its end")
    for note, step in STEPS:
        mended = step(text)
        if mended != text and note:
            notes.append(note)
        text = mended
    root = _parsed(text.encode("utf-8", "ignore"), forgives=False)
    if root is not None:
        return Tree(root, tuple(notes), is_torn=is_torn, cut_off=cut_off)
    root = _parsed(_with_numbers(text).encode("utf-8", "ignore"), forgives=True)
    if root is None or name_of(root) not in ROOTS:
        return None
    if cut_off is None or not notes:
        notes.append("not well-formed")
    return Tree(root, tuple(notes), is_forgiven=True, is_torn=is_torn, cut_off=cut_off)


def _parsed(body: bytes, *, forgives: bool) -> Element | None:
    # A parser for each document: a shared one would make threads wait for each other, and costs as much as it saves.
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


def _uncut(text: str) -> str:
    """Removes the entry in which a truncated document ends: half an entry would be stored as if it were whole."""
    opened = closed = 0
    count = 0
    for match in ENTRY.finditer(text):
        if match[1] == "":
            opened, count = match.start(), count + 1
        elif match[1]:
            closed = match.end()
    is_torn = opened > closed and (closed > 0 or count == 1)
    return text[:opened] if is_torn and _root_end(text) is None else text


def _root_end(text: str) -> int | None:
    root = _root_start(text)
    name = root[1] if root else ""
    last = deque(re.finditer(rf"</{re.escape(name)}\s*>?", text, re.IGNORECASE), maxlen=1) if name else ()
    return last[0].end() if last else None


def _root_start(text: str) -> re.Match[str] | None:
    return next((match for match in ROOT.finditer(text) if match[1]), None)


def _without_entities(text: str) -> str:
    """Removes declared entities, which are bombs or access to files; references to them stay as written."""
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
    return text if end is None or not text[end:].strip() else text[:end]


def _with_true_characters(text: str) -> str:
    """Corrects characters that went through the wrong table: 0x92 for a quote, or UTF-8 encoded twice."""

    def true_characters(references: re.Match[str]) -> str:
        characters = "".join(chr(_code(number)) for number in re.findall(r"&#(\w+);", references[0]))
        try:
            return characters.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            return characters

    return REFERENCES.sub(true_characters, text).translate(C1)


def _outside_sections(text: str, mend: Callable[[str], str]) -> str:
    """Returns the text, mended except in comments and CDATA sections, where XML looks for nothing."""
    pieces = OPAQUE.split(text)
    pieces[::2] = map(mend, pieces[::2])
    return "".join(pieces)


def _with_true_ampersands(text: str) -> str:
    """Escapes bare & and replaces the entities of HTML."""

    def mend(piece: str) -> str:
        if "&&&" in piece:
            piece = BARE_RUN.sub(lambda run: "&amp;" * len(run[0]), piece)
        return AMPERSAND.sub(_ampersand, piece)

    return _outside_sections(text, mend)


def _ampersand(match: re.Match[str]) -> str:
    number, name = match.groups()
    if number:
        code = _code(number)
        is_character = 0 < code < 0x110000 and not CONTROL.match(chr(code))
        return match[0] if is_character else ""
    if name in html5:
        return html.escape(html5[name])
    return "&amp;" + (name or "")


def _with_quotes(text: str) -> str:
    """Quotes attributes that have no quotes, as HTML allows and XML does not."""

    def quoted(value: re.Match[str]) -> str:
        return f'="{value[1]}"' if value[1] else value[0]

    return _outside_sections(text, lambda piece: TAG.sub(lambda tag: VALUE.sub(quoted, tag[0]), piece))


def _with_numbers(text: str) -> str:
    """Writes &#38; for &amp; and so on: behind the first error, the recovering parser loses named entities silently."""
    return _outside_sections(text, lambda piece: NAMED.sub(lambda named: f"&#{ord(html5[named[1]])};", piece))


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
