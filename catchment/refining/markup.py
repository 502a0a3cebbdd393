"""HTML of strangers: made safe to show, and turned into plain text. Pure functions of strings."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

import nh3

from catchment.refining.plain import REL, sanitised_if_plain

# PostgreSQL refuses NUL, UTF-8 refuses lone surrogates, and no reader wants the rest. Tab and the line ends stay.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ORDINARY = re.compile("[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]*")


def _names(text: str) -> list[str]:
    return text.split()


_TAGS = set(
    _names(
        """a abbr acronym article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del details
        dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd li main mark ol p pre
        q rp rt ruby s samp section small span strike strong sub summary sup table tbody td tfoot th thead time tr tt u
        ul var wbr"""
    )
)
_ATTRIBUTES = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
# Elsewhere an unknown tag goes and its words stay; what stands inside these is not meant for reading.
_SILENT = set(_names("button iframe noembed noframes script select style svg template textarea title"))

# What a tag puts between the words before and behind it. The strongest one wins, and they compare as strings do.
_CELL, _LINE, _PARAGRAPH = "\t", "\n", "\n\n"
_BLOCKS = _names(
    "article aside blockquote center details div dl figure h1 h2 h3 h4 h5 h6 hr main ol p pre section table ul"
)
_BREAKS = (
    dict.fromkeys(_names("td th"), _CELL)
    | dict.fromkeys(_names("br caption dd dt figcaption footer header li summary tr"), _LINE)
    | dict.fromkeys([end + block for block in _BLOCKS for end in ("", "/")], _PARAGRAPH)
)

_CLEAN_TAG = re.compile(r"<(/?[a-z0-9]+)[^>]*>")  # after sanitising, no attribute holds a bare ">"
_PREFORMATTED = re.compile(r"<pre>.*?</pre>", re.DOTALL)
_EMPTY_LINES = re.compile(r"\n{3,}")
_EMBEDDED = re.compile(
    r"""<(audio|embed|iframe|source|video)\b[^<>]*?\ssrc\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))[^<>]*>""", re.I
)
_UNSPOKEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|svg|template|title)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.I)
# A tag as the standard reads it, ">" in quotes and all. Possessive throughout: one pass, whatever comes.
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+))?+"""
_TAG = re.compile(rf"</?[a-zA-Z][^\s/>]*+(?:{_ATTRIBUTE})*+[\s/]*+>?")


def without_controls(text: str) -> str:
    # Asked first, because the yes is twice as fast as a search in vain.
    return text if _ORDINARY.fullmatch(text) else _CONTROL.sub("", text)


def sanitise(html: str, base_url: str) -> str | None:
    """The HTML with nothing in it that acts, loads or posts; links and images absolute. Films and sounds become links.

    None: parsing it could take longer than any post deserves; `strip_tags` still gives its text.
    """
    plain = sanitised_if_plain(html)
    if plain is not None:
        return plain
    html = without_controls(html)
    if _is_heavy(html):
        return None
    clean = _cleaner(base_url).clean(_EMBEDDED.sub(r'<a href="\2\3\4">[\1]</a>', html))
    # Written as a number, a control character gets past the parser.
    return without_controls(clean) if "&#" in html else clean


@lru_cache(maxsize=256)
def _cleaner(base_url: str) -> nh3.Cleaner:
    """One for each base: making one costs a quarter of one use, and the entries of an answer mostly share theirs."""
    try:
        return _cleaner_that_makes_relative_urls(("rewrite_with_base", base_url))
    except ValueError:  # the base is no URL
        return _cleaner_that_makes_relative_urls("deny")


def _cleaner_that_makes_relative_urls(how: nh3.UrlRelative) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags=_SILENT,
        attributes=_ATTRIBUTES,
        link_rel=REL,
        url_schemes={"http", "https", "mailto"},
        url_relative=how,
    )


def html_to_text(html: str) -> str:
    """The words of sanitised HTML: a blank line between paragraphs, a line for each list entry, row and line break."""
    if "<pre>" in html:
        html = _PREFORMATTED.sub(lambda pre: pre[0].replace("\n", "<br>"), html)
    if "&nbsp;" in html:
        html = html.replace("&nbsp;", " ")
    # One loop over the tags: measured at half the cost of replacing them first and tidying the text behind it.
    line, *rest = _CLEAN_TAG.split(html)
    lines, gap = [], ""
    for tag, words in zip(rest[::2], rest[1::2], strict=True):
        new_gap = _BREAKS.get(tag)
        if new_gap is None:
            line += words
            continue
        if line and (line := " ".join(line.split())):
            lines.append(gap + line)
            gap = new_gap
        elif new_gap > gap:
            gap = new_gap
        line = words
    lines.append(gap + " ".join(line.split()))
    text = "".join(lines).strip().replace(_CELL, " ")
    # The sanitiser writes no other entities. & comes last, or &amp;lt; would turn into <.
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def strip_tags(html: str) -> str:
    """The words of any HTML, in one pass over it: for what must not be parsed. Rougher than `html_to_text`."""
    text = _TAG.sub(" ", _UNSPOKEN.sub(" ", without_controls(html)))
    return clean_text(unescape(text))


def clean_text(text: str) -> str:
    """Plain text without control characters; spaces collapsed, at most two newlines in a row."""
    text = without_controls(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = "\n".join([" ".join(line.split()) for line in text.split("\n")])
    return _EMPTY_LINES.sub("\n\n", lines).strip()


# ── what must not reach the parser ────────────────────────────────────────────────────────────────────────────────
#
# The parser follows the HTML standard, and the standard is quadratic in three places. Measured: 100,000 nested <div>
# take 39 s; one tag with 100,000 attributes 14 s; 2,500 different <b>, left open, are copied into each of the 2,500 <p>
# behind them: 27 KB of HTML take 6 s and 1.5 GB. With the bounds below, the worst that was found takes 0.3 s.

_MAX_TAGS = 10_000
_MAX_ATTRIBUTES = 1_000
_MAX_COPIES = 500_000

_HARMLESS_TAGS, _HARMLESS_LENGTH = 500, 20_000  # below both, whatever it is costs some 40 ms at most

_COPIED = "b|big|code|em|font|i|s|small|strike|strong|tt|u"  # "formatting elements"; <a> and <nobr> do not pile up
_COPIED_START = re.compile(rf"<(?:{_COPIED})(?=[\s/>])", re.I)
# Only the plainest attributes: a pair that this pattern sees must be one for the parser too.
_PLAIN = r'(?:\s+[\w:-]+="[^"<>]*")*\s*'
_CLOSED_INLINE = re.compile(rf"<({_COPIED}|a|span){_PLAIN}>([^<]*)</\1>|<(?:br|img){_PLAIN}/?>", re.I)
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)


def _is_heavy(html: str) -> bool:
    tags = html.count("<")
    if tags <= _HARMLESS_TAGS and len(html) <= _HARMLESS_LENGTH:
        return False
    return tags > _MAX_TAGS or _left_open(html) * tags > _MAX_COPIES or _has_endless_tag(html)


def _left_open(html: str) -> int:
    """How many tags of the sort that the parser copies are not closed right behind their words."""
    for _ in range(5):  # pairs within pairs; deeper ones count as open, which errs on the safe side
        html, count = _CLOSED_INLINE.subn(r"\2", html)
        if not count:
            break
    return len(_COPIED_START.findall(html))


def _has_endless_tag(html: str) -> bool:
    return any(
        len(tag[0]) > _MAX_ATTRIBUTES and len(_ONE_ATTRIBUTE.findall(tag[0])) > _MAX_ATTRIBUTES
        for tag in _TAG.finditer(html)
    )
