"""Makes untrusted text safe to print: no terminal escapes, no characters that reverse the direction of writing; and
decodes its entities."""

from __future__ import annotations

import html
import re

from catchment.lazy import pattern

_JOINERS = "\u200c\u200d"
"""Not printable by themselves; emoji and several scripts are written with them."""
_LONG_REFERENCE = pattern(r"&#([0-9]{8,});?")


def unescape(text: str) -> str:
    """Returns the text with its HTML entities decoded. Unlike `html.unescape`, it accepts numbers of any length, of
    which Python converts only the first thousands of digits."""
    if "&" not in text:
        return text
    return html.unescape(_LONG_REFERENCE.sub(_shortened, text))


def _shortened(reference: re.Match[str]) -> str:
    digits = reference[1].lstrip("0")
    return f"&#{digits or 0};" if len(digits) < 8 else "\ufffd"


def one_line(text: str) -> str:
    """Returns a name for storage: unprintable characters become spaces, and runs of spaces one."""
    if text.isprintable():
        return " ".join(text.split())
    return " ".join("".join(char if _is_safe(char) else " " for char in text).split())


def plain(text: object, keeps: str = "\n") -> str:
    """Returns the text for a terminal: every unprintable character becomes a space, except those in `keeps`."""
    return "".join(char if char.isprintable() or char in keeps else " " for char in str(text))


def escaped(text: str, keeps: str = "") -> str:
    """The text with every unprintable character written as its code (`\\x1b`), except those in `keeps`."""
    if text.isprintable():
        return text
    return "".join(char if _is_safe(char) or char in keeps else _code(char) for char in text)


def _is_safe(char: str) -> bool:
    return char.isprintable() or char in _JOINERS


def _code(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
