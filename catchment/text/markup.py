"""Untrusted text inside messages for chat services and mail: shown as it is, and never obeyed as markup."""

from __future__ import annotations

import re
from urllib.parse import quote

from catchment.text.printable import one_line

_WIDE = {char: chr(ord(char) + 0xFEE0) for char in "<>[]@*~|\\&"}
"""Their full-width forms look alike and mean nothing to HTML, Markdown or a chat service's mentions."""
_TABLE = str.maketrans(_WIDE | {"`": "'"})
# Within a word it means nothing, and settings are written with it.
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINK = re.compile(r"(?<=\w)://")
_LINE_START = re.compile(r"^([#+=-]+)(?=\s|$)")


def without_markup(text: str) -> str:
    """Returns the text on one line, without anything that a chat service would format, link or notify people for."""
    text = one_line(text).translate(_TABLE)
    return _LINE_START.sub(r"\1.", _LINK.sub(":／／", _UNDERSCORE.sub("＿", text)))


def bare_link(url: str | None) -> str:
    """Returns a web address for a message, with everything encoded that could be markup; empty if it is none."""
    if not url or not url.startswith(("https://", "http://")) or not url.isprintable():
        return ""
    return quote(url, safe=":/?#%=+&,;!$.-").replace("_", "%5F").replace("~", "%7E")
