"""HTML sanitising, and conversion of HTML to plain text. Pure functions of strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import count

import nh3

from catchment import work_limits
from catchment.lazy import pattern
from catchment.text.printable import unescape

try:
    from catchment.text import _plain_html
except ImportError:  # installed without a C compiler
    _compiled: Callable[[str], tuple[str, str] | None] | None = None
else:
    _compiled = _plain_html.html_and_text

REL = "noopener noreferrer nofollow"

# A no-break space would come back as an entity, a carriage return as a newline, other control characters not at all.
# Written as runs, not as one choice for each character: that is four times as fast.
_ODD = r"\x00-\x08\x0b-\x1f\x7f-\xa0\ud800-\udfff"
_WORDS = rf"[^<>&{_ODD}]*+(?:&(?:amp|lt|gt);[^<>&{_ODD}]*+)*+"
# Only hosts about which no two programs disagree: names with letters at their end, and plain dotted numbers.
_LABEL = r"(?!xn--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?+"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PORT = r"(?:[1-5][0-9]{4}|6[0-4][0-9]{3}|[0-9]{1,4}(?![0-9]))"
_HOST = rf"(?:(?:{_LABEL}\.)*(?!xn--)[a-z](?:[a-z0-9-]*[a-z0-9])?+|{_BYTE}(?:\.{_BYTE}){{3}})(?::{_PORT})?+"
_PATH = r"[A-Za-z0-9/._~!$'()*+,;=:@%#?-]*+"
_ADDRESS = rf"https?://{_HOST}(?:/{_PATH}(?:&amp;{_PATH})*+)?+"
_IMAGE = rf'<img src="{_ADDRESS}"(?: alt="[^<>&"{_ODD}]*+")?+(?: ?/)?+>'
_SPACE = r"[ \n\t]*+"


def _either(names: str, inside: str) -> str:
    """Matches one of these elements. Spelled out: re of Python 3.11 errs where groups are inside possessive repeats."""
    return "|".join(f"<{name}>{inside}</{name}>" for name in names.split())


_MARKED = _either("strong em b i code", _WORDS)
_PLAIN_LINE = rf"{_WORDS}(?:(?:{_MARKED}|<a href=\"{_ADDRESS}\">{_WORDS}</a>|{_IMAGE}|<br(?: ?/)?+>){_WORDS})*+"
_LISTED = rf"{_SPACE}(?:<li>{_PLAIN_LINE}</li>{_SPACE})*+"
_QUOTED = rf"{_SPACE}(?:<p>{_PLAIN_LINE}</p>{_SPACE})*+"
_BLOCK = "|".join(
    (
        _either("p", _PLAIN_LINE),
        _either("ul ol", _LISTED),
        _either("h1 h2 h3 h4 h5 h6", _PLAIN_LINE),
        _either("blockquote", _QUOTED),
        "<hr(?: ?/)?+>",
    )
)
_LINK, _LINK_END = '<a href="', f'" rel="{REL}">'


_FEW = 500
"""Without compiled code, so many items of a process go to the sanitiser, which costs 30 µs more for each: compiling the
pattern takes 0.1 s, too long for a run with few new items."""
_sanitised = count()


@cache
def _document() -> re.Pattern[str]:
    return re.compile(rf"{_SPACE}(?:(?:{_BLOCK}){_SPACE})*+")


def sanitised_if_plain(html: str) -> str | None:
    """Returns what the sanitiser would return for plain HTML; None if it is not plain and needs the sanitiser."""
    if not _document().fullmatch(html):
        return None
    if _LINK in html:
        # Measured at half the cost of a substitution with groups.
        first, *links = html.split(_LINK)
        html = _LINK.join([first, *[link.replace('">', _LINK_END, 1) for link in links]])
    # Outside of tags there is no ">", and inside no other "/" is before it. Replacing would read the text three times.
    *empty, rest = html.split("/>")
    return ">".join([*[tag.removesuffix(" ") for tag in empty], rest]) if empty else html


def _html_and_text_if_plain(html: str) -> tuple[str, str] | None:
    """Returns what the sanitiser would return for plain HTML, and its text. The compiled form takes a fifth of the time
    and needs no pattern."""
    if next(_sanitised) < _FEW or (plain := sanitised_if_plain(html)) is None:
        return None
    return plain, html_to_text(plain)


html_and_text_if_plain = _compiled or _html_and_text_if_plain


def is_compiled() -> bool:
    """Whether plain HTML is read by compiled code."""
    return _compiled is not None


# PostgreSQL refuses NUL, UTF-8 refuses lone surrogates, and the rest is not text. Tab and the line ends stay.
_CONTROL = pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ORDINARY = pattern("[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]*")


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
# Elsewhere an unknown tag is removed and its text stays; the content of these is not meant for reading.
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

_RELATIVE = pattern(r'\b(?:href|src)="(?!(?:https?|mailto):)')
_CLEAN_TAG = pattern(r"<(/?[a-z0-9]+)[^>]*>")  # after sanitising, no attribute holds a bare ">"
_PREFORMATTED = pattern(r"<pre>.*?</pre>", re.DOTALL)
_EMPTY_LINES = pattern(r"\n{3,}")
_EMBEDDED = pattern(
    r"<(audio|embed|iframe|source|video)\b(?=[^<>]*+>)[^<>]*?\ssrc"
    r"""\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))[^<>]*>""",
    re.I,
)
_UNSPOKEN = pattern(r"<!--.*?(?:-->|\Z)|<(script|style|svg|template|title)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.I)
# A tag as the standard parses it, ">" in quotes and all. Possessive throughout: one pass, whatever comes.
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+))?+"""
_TAG = pattern(rf"</?[a-zA-Z][^\s/>]*+(?:{_ATTRIBUTE})*+[\s/]*+>?")


def without_controls(text: str) -> str:
    # Tested first, because this match is twice as fast as a search without a hit.
    return text if _ORDINARY.fullmatch(text) else _CONTROL.sub("", text)


def sanitise(html: str, base_url: str) -> str | None:
    """Returns sanitised HTML, as `html_and_text` does."""
    result = html_and_text(html, base_url)
    return None if result is None else result[0]


def html_and_text(html: str, base_url: str) -> tuple[str, str] | None:
    """Returns sanitised HTML and its text: no scripts, embeds or forms; links and images absolute. Video and audio
    become links.

    None: parsing it could take longer than any post deserves; `strip_tags` still gives its text. Raises TooComplex
    where an answer has too many such, or all of its HTML together is too much.
    """
    if (plain := html_and_text_if_plain(html)) is not None:
        return plain
    html = without_controls(html)
    if _is_heavy(html):
        return None
    html = _EMBEDDED.sub(r'<a href="\2\3\4">[\1]</a>', html)
    clean = _cleaner(None).clean(html)
    if _RELATIVE.search(clean):
        clean = _cleaner(base_url).clean(html)
    if "&#" in html:
        # Written as a number, a control character gets past the parser.
        clean = without_controls(clean)
    return clean, html_to_text(clean)


@lru_cache(maxsize=256)
def _cleaner(base_url: str | None) -> nh3.Cleaner:
    """Returns a cleaner that resolves relative URLs, or for None one that leaves them alone. Making one costs as much
    as cleaning five entries: most answers have no relative URL, and share the one for None."""
    if base_url is None:
        return _cleaner_by("pass_through")
    try:
        return _cleaner_by(("rewrite_with_base", base_url))
    except ValueError:  # the base is not a URL
        return _cleaner_by("deny")


def _cleaner_by(relative_urls: nh3.UrlRelative) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags=_SILENT,
        attributes=_ATTRIBUTES,
        link_rel=REL,
        url_schemes={"http", "https", "mailto"},
        url_relative=relative_urls,
    )


def html_to_text(html: str) -> str:
    """Returns the text of sanitised HTML: a blank line between paragraphs, a line for each list entry, row and line
    break."""
    if "<pre>" in html:
        html = _PREFORMATTED.sub(lambda pre: pre[0].replace("\n", "<br>"), html)
    if "&nbsp;" in html:
        html = html.replace("&nbsp;", " ")
    # One loop over the tags: measured at half the cost of replacing them first and tidying the text behind it.
    pieces = iter(_CLEAN_TAG.split(html))
    line, gap, lines = next(pieces), "", []
    for tag in pieces:
        new_gap = _BREAKS.get(tag)
        if new_gap is None:
            line += next(pieces)
            continue
        if line:
            # As `flat` does; the call alone would cost as much.
            line = line.strip(" ") if line.isprintable() and "  " not in line else " ".join(line.split())
        if line:
            lines.append(gap + line)
            gap = new_gap
        elif new_gap > gap:
            gap = new_gap
        line = next(pieces)
    lines.append(gap + flat(line))
    text = "".join(lines).strip().replace(_CELL, " ")
    # The sanitiser writes no other entities. & comes last, or &amp;lt; would turn into <.
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def flat(text: str) -> str:
    """Returns the text on one line, with single spaces between its words."""
    # Most texts already are, and checking costs a fifth of splitting. The only printable white space is the space.
    return text.strip(" ") if text.isprintable() and "  " not in text else " ".join(text.split())


def strip_tags(html: str) -> str:
    """Returns the text of any HTML, in one pass: for what must not be parsed. Rougher than `html_to_text`."""
    text = _TAG.sub(" ", _UNSPOKEN.sub(" ", without_controls(html)))
    return clean_text(unescape(text))


def clean_text(text: str) -> str:
    """Returns plain text without control characters; spaces collapsed, at most two newlines in a row."""
    text = without_controls(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = "\n".join([" ".join(line.split()) for line in text.split("\n")])
    return _EMPTY_LINES.sub("\n\n", lines).strip()


# Limits on what reaches the parser. It follows the HTML standard, and the standard is quadratic in three places.
# Measured: 100,000 nested <div> take 39 s; one tag with 100,000 attributes 14 s; 2,500 different <b>, left open, are
# copied into each of the 2,500 <p> behind them: 27 KB of HTML take 6 s and 1.5 GB. So there are bounds for one item,
# and what all items of an answer may cost together is bounded, too (`work_limits.WorkLimit`).

_MAX_TAGS = 10_000
_MAX_DEPTH = 500
_MAX_ATTRIBUTES = 1_000
_MAX_COPIES = 500_000

_SHORT_TAGS, _SHORT_LENGTH = 500, 20_000  # below both, any HTML costs some 40 ms at most

# Measured, in microseconds: the cost of one tag; and how many pairs (of tags and the tags around them, of attributes of
# one tag) are done in one. A tag that is copied costs as much as this many pairs.
_TAG_COST = 3
_PAIRS = 100
_COPY_COST = 30

_COPIED = "b|big|code|em|font|i|s|small|strike|strong|tt|u"  # "formatting elements"; <a> and <nobr> do not pile up
_COPIED_START = pattern(rf"<(?:{_COPIED})(?=[\s/>])", re.I)
# Only the plainest attributes: a pair that this pattern sees must be one for the parser too.
_PLAIN = r'(?:\s+[\w:-]+="[^"<>]*")*\s*'
_CLOSED_INLINE = pattern(rf"<({_COPIED}|a|span){_PLAIN}>([^<]*)</\1>|<(?:br|img){_PLAIN}/?>", re.I)
_ONE_ATTRIBUTE = pattern(_ATTRIBUTE)
_TAG_NAME = pattern(r"<(/?[a-zA-Z][a-zA-Z0-9:-]*)")
# They are empty, or their end may be left out: many of them are siblings, not nested. Not <rt>: outside of <ruby> they
# are nested.
_FLAT = frozenset(
    _names(
        """area base br col colgroup dd dt embed hr img input li link meta optgroup option p param source tbody td
        tfoot th thead tr track wbr"""
    )
)


def _is_heavy(html: str) -> bool:
    """Whether parsing it would take longer than any post deserves. Counts it against the answer's limit."""
    limit, tags = work_limits.current(), html.count("<")
    if tags <= _SHORT_TAGS and len(html) <= _SHORT_LENGTH:
        # Half of the tags are copied into the other half; attributes have four characters at least.
        at_worst = tags * _TAG_COST + (tags * tags * _COPY_COST // 4 + len(html) * len(html) // 16) // _PAIRS
        if limit.takes_uninspected(at_worst):
            return False
    limit.spend(tags)
    pairs = _pairs(html, tags)
    if pairs is None:
        limit.count_heavy()
        return True
    limit.spend(tags * _TAG_COST + pairs // _PAIRS)
    return False


def _pairs(html: str, tags: int) -> int | None:
    """Returns how many pairs the parser will process; None: too many of one sort, or too many tags."""
    if tags > _MAX_TAGS or (depth := _depth(html)) > _MAX_DEPTH:
        return None
    if (copied := _left_open(html)) * tags > _MAX_COPIES:
        return None
    attributes = _attributes(html)
    if max(attributes, default=0) > _MAX_ATTRIBUTES:
        return None
    return (depth + _COPY_COST * copied) * tags + sum(count * count for count in attributes)


def _depth(html: str) -> int:
    """Returns how deep tags are nested at most; no further than the bound. Rather too deep than not deep enough."""
    open_tags: dict[str, int] = {}
    depth = deepest = 0
    for match in _TAG_NAME.finditer(html):
        name = match[1].lower()
        if name[0] == "/":
            # The end of a tag that is not open is ignored, as by every browser.
            if open_tags.get(name[1:]):
                open_tags[name[1:]] -= 1
                depth -= 1
        elif name not in _FLAT:
            open_tags[name] = open_tags.get(name, 0) + 1
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > _MAX_DEPTH:
                    break
    return deepest


def _left_open(html: str) -> int:
    """Returns how many tags of the sort that the parser copies are not closed right behind their words."""
    for _ in range(5):  # pairs within pairs; deeper ones count as open, which errs on the safe side
        html, count = _CLOSED_INLINE.subn(r"\2", html)
        if not count:
            break
    return len(_COPIED_START.findall(html))


def _attributes(html: str) -> list[int]:
    """Returns how many attributes each of the long tags has."""
    long_tags = (tag[0] for tag in _TAG.finditer(html) if len(tag[0]) > _LONG_TAG)
    return [len(_ONE_ATTRIBUTE.findall(tag)) for tag in long_tags]


_LONG_TAG = 500
