"""Character set detection: which encoding bytes are really in, whatever their labels say.

In this order: byte order mark, HTTP header, XML declaration, HTML meta, strict UTF-8, then the bytes themselves. A
label is a claim and has to prove itself: what does not decode, or yields NULs, was mislabelled. Text that is whole
UTF-8 with characters beyond ASCII is UTF-8 under any label: other encodings do not look like it by chance.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from catchment.lazy import pattern

# Labels as servers write them, by the codec that decodes most of what is sent under them: the label's own codec is
# often too narrow (gb2312 feeds are full of GBK, iso-8859-1 ones full of Windows quotes). Labels that are not here are
# ignored: Python knows codecs (rot13, unicode_escape, utf-7) that no stranger may choose.
LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 utf_8",
    "utf-16": "utf-16 utf16 unicode ucs-2 iso-10646-ucs-2 csunicode",
    "utf-16-le": "utf-16le utf-16-le",
    "utf-16-be": "utf-16be utf-16-be",
    "utf-32": "utf-32 ucs-4 iso-10646-ucs-4 utf-32le utf-32be",
    "gb18030": "gb18030 gbk x-gbk gb2312 gb_2312 gb_2312-80 gb2312-80 chinese csgb2312 cp936 ms936 windows-936 euc-cn",
    "big5hkscs": "big5 big5-hkscs big5hkscs big5-eten cn-big5 csbig5 x-x-big5 cp950 windows-950",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 csshiftjis windows-31j cp932",
    "euc_jp": "euc-jp eucjp x-euc-jp euc_jp cseucpkdfmtjapanese",
    "iso2022_jp_2": "iso-2022-jp csiso2022jp",
    "cp949": "euc-kr euckr ks_c_5601 ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949 cp949 uhc",
    "cp1252": "iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 us-ascii ascii ansi_x3.4-1968 windows-1252 cp1252",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251 win-1251 win1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 iso-8859-9 iso8859-9 latin5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "cp874": "windows-874 tis-620 iso-8859-11 cp874",
    "cp866": "ibm866 cp866",
    "iso8859-2": "iso-8859-2 iso8859-2 latin2",
    "iso8859-3": "iso-8859-3 latin3",
    "iso8859-4": "iso-8859-4 latin4",
    "iso8859-5": "iso-8859-5 iso8859-5",
    "iso8859-6": "iso-8859-6",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 latin9 latin-9",
    "iso8859-16": "iso-8859-16",
    "koi8_r": "koi8-r koi8 koi8_r cskoi8r",
    "koi8_u": "koi8-u koi8-ru",
    "mac_roman": "macintosh mac x-mac-roman",
    "mac_cyrillic": "x-mac-cyrillic x-mac-ukrainian",
}
CODECS = {label: codec for codec, labels in LABELS.items() for label in labels.split()}

# Tried one after another where the first does not fit: vendors' extensions of the same encoding.
COUSINS = {"big5hkscs": ("cp950",), "euc_jp": ("euc_jis_2004",)}

MULTI_BYTE = {"gb18030", "big5hkscs", "cp932", "euc_jp", "cp949"}

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with theirs
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

HTTP_LABEL = pattern(r"charset\s*+=\s*+[\"']?\s*+([^\s\"';,]+)", re.IGNORECASE)
XML_LABEL = pattern(rb"<\?\w*xml[^>]*?\sencoding\s*=\s*[\"']\s*([\w.:-]+)", re.IGNORECASE)
META_LABEL = pattern(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
HTML = pattern(rb"<!doctype\s+html|<html|<head", re.IGNORECASE)

# How far to search for labels. Pages with long comments have their meta later than the 1024 bytes of the standard.
HEAD = 4096

# Characters that are frequent in the language. Decoded by the wrong codec, they are not.
CHINESE_MARKS = "，。、！？：；（）《》「」"
KANA = "のにはをたがでてとしれさいるなかっらもりこスントルイリアク"
RUSSIAN = "оеаинтсрвлкмдпуяыьз"
FAMILIAR = {
    "gb18030": "的一是了不在有人我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想日业新"
    + CHINESE_MARKS,
    "big5hkscs": "的一是了不在有人我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡"
    "用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想日業新"
    + CHINESE_MARKS,
    "cp932": KANA + "、。",
    "euc_jp": KANA + "、。",
    "cp949": "이다는의에을가고를한로지은하사기도아어나리시자있라그대서인일들수게만해전으",
    "cp1251": RUSSIAN,
    "koi8_r": RUSSIAN,
    "cp1252": "éèàùçâêîôûëïüöäßñáíóúåæøãõÉÀÖÜÄ’‘“”–—…«»°©\xa0",
}

# The frequent characters make up a fourth of Chinese and most of an alphabet. Wrong guesses stay far below.
ENOUGH_OF_MANY, ENOUGH_OF_ALPHABET = 0.1, 0.5

# How much is examined for a guess, from the first byte beyond ASCII on: decoding all of a large body eight times would
# take seconds, and half a gigabyte.
SAMPLE = 200_000
BEYOND_ASCII = pattern(rb"[\x80-\xff]")

# One damaged character in this many is damage, not another encoding.
DAMAGE = 50


def decode(body: bytes, content_type: str | None = None) -> tuple[str, str]:
    """Returns the text without its byte order mark, and the codec that decodes it. Never fails."""
    claims = list(dict.fromkeys(_claims(body, content_type)))
    body = _unmarked(body)
    whole = _strictly(body, "utf-8")
    if whole is not None and _is_convincing(whole, claims):
        return whole, "utf-8"
    for codec in claims:
        if (text := _strictly(body, codec)) is not None:
            return text, codec
    for codec in [*claims, "utf-8"]:
        if (text := _despite_damage(body, codec)) is not None:
            return text, codec
    return _by_looks(body)


def label(body: bytes, content_type: str | None = None) -> str:
    """Returns the codec that decodes these bytes."""
    return decode(body, content_type)[1]


def claimed(body: bytes, content_type: str | None = None) -> str | None:
    """Returns the codec of the first label, unproven; None where nothing is labelled."""
    return next(_claims(body, content_type), None)


def _claims(body: bytes, content_type: str | None) -> Iterator[str]:
    """Yields the codecs of byte order mark and labels, the most trustworthy first."""
    yield from (codec for mark, codec in MARKS if body.startswith(mark))
    if content_type and (match := HTTP_LABEL.search(content_type)):
        yield from _codecs(match[1])
    head = body[:HEAD]
    if declared := XML_LABEL.search(head):
        yield from _codecs(declared[1].decode("ascii", "replace"))
    elif HTML.search(head) and (declared := META_LABEL.search(head)):
        # Only in pages: a feed's entries may quote a page with a meta of its own.
        yield from _codecs(declared[1].decode("ascii", "replace"))
    elif head.startswith((b"<\0", b"\0<")):
        yield "utf-16-le" if head[0] else "utf-16-be"


def _codecs(label: str) -> Iterator[str]:
    codec = CODECS.get(label.strip().lower())
    if codec:
        yield codec
        yield from COUSINS.get(codec, ())


def _unmarked(body: bytes) -> bytes:
    mark = next((mark for mark, _ in MARKS if body.startswith(mark)), b"")
    return body[len(mark) :]


def _is_convincing(text: str, claims: list[str]) -> bool:
    """Whether text that decodes as UTF-8 is UTF-8, against other claims."""
    if not claims or claims[0] == "utf-8":
        return True
    if text.isascii():
        return False
    # Two Chinese characters can pass for UTF-8 by chance, four hardly ever; of one-byte encodings not even one.
    return claims[0] not in MULTI_BYTE or _beyond_ascii(text) >= 4


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _strictly(body: bytes, codec: str) -> str | None:
    if codec.startswith(("utf-16", "utf-32")) and b"\0" not in body[:100]:
        # Markup begins in ASCII, which is half NULs in these; without, almost any bytes would "decode" to Chinese.
        return None
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _despite_damage(body: bytes, codec: str) -> str | None:
    """Returns the text if nearly all of its characters decode: a body may be cut inside a character, or contain a
    broken one."""
    whole = codecs.getincrementaldecoder(codec)("replace").decode(body)
    broken = whole.count("\ufffd")
    if "\0" in whole or broken * DAMAGE > _beyond_ascii(whole):
        return None
    return whole


def _by_looks(body: bytes) -> tuple[str, str]:
    """Returns the decoding in which the text has most of its language's frequent characters."""
    begins = BEYOND_ASCII.search(body)
    sample = body[begins.start() if begins else 0 :][:SAMPLE]
    readings = [(codec, _strictly(sample, codec) or _despite_damage(sample, codec)) for codec in FAMILIAR]
    scored = [(_familiarity(text, codec), codec) for codec, text in readings if text is not None]
    likely = [
        reading
        for reading in scored
        if reading[0] >= (ENOUGH_OF_MANY if reading[1] in MULTI_BYTE else ENOUGH_OF_ALPHABET)
    ]
    if likely:
        # A whole alphabet is frequent, of Chinese only a part: each is measured against its own threshold.
        _, codec = max(likely, key=lambda reading: reading[0] / (1 if reading[1] in MULTI_BYTE else 2))
        return body.decode(codec, "replace"), codec
    return _by_statistics(body)


def _familiarity(text: str, codec: str) -> float:
    return sum(map(text.count, set(FAMILIAR[codec]))) / max(1, _beyond_ascii(text))


def _by_statistics(body: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes  # heavy, and hardly ever needed

    best = from_bytes(body[:100_000]).best()
    codec = best.encoding if best else "cp1252"
    return body.decode(codec, "replace"), codec
