"""Decodes NGA's bytes and texts: GB18030 whatever the headers say, entities that were escaped twice, dirty JSON."""

from __future__ import annotations

import re
from typing import Any

from catchment.errors import Unreadable
from catchment.model import JsonObject
from catchment.platforms._common.json import decode_text
from catchment.text.printable import unescape

_UTF8_HANZI = re.compile("[\u2e80-\u9fff\uff00-\uffef]")
_BREAK = re.compile(r"<br\s{0,9}/?>", re.I)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
# Characters beyond GBK are sent as numbers, escaped once more; emoji as the two halves of a UTF-16 pair.
_NUMBER = re.compile(r"&#(?:([0-9]{1,7})|[xX]([0-9a-fA-F]{1,6}));")
# Half of a pair by itself is not a character: a decoder of entities would put a replacement for it.
_HALF = re.compile(r"&(?=#(?:5[5-7][0-9]{3}|[xX][dD][89a-fA-F][0-9a-fA-F]{2});)")
_PREFIX = re.compile(r"\s{0,9}(?:/\*\$js\$\*/)?\s{0,9}window\.script_muti_get_var_store\s{0,9}=\s{0,9}\(?")
# Strings are matched whole, so that nothing inside of them is taken for the end, a key or a number.
_TAIL = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|(/\*(?:\$js\$|error fill content))", re.DOTALL)
_FAULT = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|([{,]\s*+)(-?[0-9]{1,18})(?=\s*+:)"
    r"|(:\s*+)(\+[0-9][0-9.]{0,30}|-?0[0-9][0-9.]{0,30})(?=\s*+[,}\]])",
    re.DOTALL,
)
# A text of nothing but digits is sent without quotes: as a number it would lose its sign, its zeros or its point.
_NUMBER_FOR_TEXT = re.compile(
    r"(\"(?:content|subject|author|username)\"\s{0,9}:\s{0,9})([-+0-9.][-+0-9.eE]{0,400})(?=\s{0,9}[,}])"
)
_HELPS = "it is requested in another format"
LARGEST = 2**53


def decoded(body: bytes, *, is_strict: bool = True) -> str:
    """Returns the text of a body; halves of UTF-16 pairs are escaped twice in it, as in most places of the site.
    Raises `Unreadable` if it is not text, unless invalid bytes are to be ignored.

    The label is ignored: it is GBK, GB18030, wrong or absent, and the text always GB18030; except for a few answers in
    UTF-8, whose Chinese characters do not look like that by chance.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        text = body.decode()
        if text.isascii() or _UTF8_HANZI.search(text):
            return _HALF.sub("&amp;", text)
    except UnicodeDecodeError:
        pass
    # Damaged UTF-8 is still recognised: in GB18030 hardly two bytes in a row would be whole.
    codec = "utf-8" if _is_nearly_utf8(body) else "gb18030"
    try:
        return _HALF.sub("&amp;", body.decode(codec, "strict" if is_strict else "ignore"))
    except UnicodeDecodeError:
        raise Unreadable("the answer contains bytes that are not text", _HELPS) from None


def _is_nearly_utf8(body: bytes) -> bool:
    text = body.decode(errors="replace")
    return len(_UTF8_HANZI.findall(text)) > 10 * text.count("\ufffd")


def json_data(text: str) -> JsonObject:
    """Returns the object in an answer in JSON, also behind a JavaScript assignment. Raises `Unreadable`."""
    prefix = _PREFIX.match(text)
    if prefix is not None:
        text = text[prefix.end() :].rstrip().removesuffix(";").rstrip()
        text = text.removesuffix(")") if prefix[0].endswith("(") else text
    text = _NUMBER_FOR_TEXT.sub(r'\1"\2"', text)
    try:
        data = decode_text(text)[0]
    except Unreadable:
        text = _without_tail(text)
        # Numbers as keys without quotes; numbers that begin with a plus sign or a zero.
        data = decode_text(_FAULT.sub(_mended, text))[0]
    if not isinstance(data, dict):
        raise Unreadable("the answer is not a JSON object", _HELPS)
    return data


def _without_tail(text: str) -> str:
    """Returns the text without the comments behind it; the same words in a post are not a comment."""
    starts = (match.start() for match in _TAIL.finditer(text) if match[1] is not None) if "/*" in text else iter(())
    end = next(starts, None)
    return text if end is None else text[:end]


def _mended(match: re.Match[str]) -> str:
    if match[2] is not None:
        return f'{match[1]}"{match[2]}"'
    # As a text: in most places it is one.
    return f'{match[3]}"{match[4]}"' if match[4] is not None else match[0]


def plain(text: Any) -> str:
    """Returns a title or a name without entities."""
    if not isinstance(text, str):
        return str(text) if isinstance(text, int) and not isinstance(text, bool) else ""
    return decoded_again(unescape(text)) if "&" in text else text


def decoded_again(text: str) -> str:
    """Returns a text whose entities are decoded without those that were escaped twice."""
    return _joined(_NUMBER.sub(_character, text)) if "&" in text else text


def source_text(content: Any) -> str:
    """Returns the BBCode of a post as plain text: line breaks as newlines, no HTML and no entities."""
    if not isinstance(content, str):
        return plain(content)
    return plain(_TAG.sub("", _BREAK.sub("\n", content)) if "<" in content else content)


def _character(match: re.Match[str]) -> str:
    code = int(match[1]) if match[1] else int(match[2], 16)
    return chr(code) if 32 <= code < 0x110000 else ""


def _joined(text: str) -> str:
    """Joins the halves of UTF-16 pairs; a lone half is left out."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore") if not _is_whole(text) else text


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def integer(value: Any) -> int | None:
    """Returns a whole number, also one that is written as text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\s{0,9}[+-]?[0-9]{1,16}\s{0,9}", value):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and abs(value) < LARGEST else None


def entries(value: Any) -> list[Any]:
    """Returns the entries of a list: a real one, or an object with numbers as keys."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def member(value: Any, key: str | int) -> Any:
    """Returns an entry of an object, or of a list that represents one; None if there is none."""
    if isinstance(value, dict):
        return value.get(str(key))
    is_there = isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value)
    return value[key] if is_there else None
