"""Texts as the site writes them into HTML and JSON."""

from __future__ import annotations

from html import escape


def escaped(text: str) -> str:
    """A title or a name: entities, and numbers escaped once more for what GBK does not have."""
    return "".join(_in_gbk(char) for char in escape(text, quote=False))


def content_html(text: str) -> str:
    return escaped(text).replace("\n", "<br/>")


def _in_gbk(char: str) -> str:
    try:
        char.encode("gbk")
    except UnicodeEncodeError:
        # As two halves, like the site's own editor sends them.
        units = char.encode("utf-16-be", "surrogatepass")
        return "".join(f"&amp;#{int.from_bytes(units[at : at + 2], 'big')};" for at in range(0, len(units), 2))
    return char
