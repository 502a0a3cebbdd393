"""Converts the BBCode of posts to HTML, with the images, files and references in it.

One pass over the source. Tags that are left open are closed where their surroundings end; unknown ones stay text.
Depth and number of tags are limited, so that the time is linear in the length of any source. The HTML contains no
attribute that was not checked; cleaning sanitises it all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from html import escape
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from catchment.model import Media, Reference
from catchment.platforms._common.coercion import media_kind

SITE = "https://bbs.nga.cn"
ATTACHMENTS = "https://img.nga.cn/attachments"
ZONE = timezone(timedelta(hours=8))
"""The site's clock; China has no summer time."""

DEEPEST = 40
MOST_TAGS = 5_000
"""What follows is shown as it was written. The longest real posts have some hundreds."""
LONGEST_ADDRESS = 2_000
LONGEST_TITLE = 200

_TAG = re.compile(r"\[(/?)([a-zA-Z][a-zA-Z0-9]{0,15}|\*|@)([^\[\]\n]{0,500})\]")
_HEADING = re.compile(r"^===([^=\n]{1,200})===$", re.MULTILINE)
_NUMBERS = re.compile(r"-?\d{1,15}")
_SPAN = re.compile(r"(colspan|rowspan)\s*=\s*[\"']?(\d{1,2})")
# Hosts that once served the files that are on `ATTACHMENTS` now; their own certificates or names have expired.
_OLD_FILES = re.compile(r"https?://img\d*\.(?:nga\.178\.com|ngacn\.cc|nga\.cn|nga\.donews\.com)/attachments/", re.I)
# A link without its https://; pages of the site itself are named without a host (read.php?tid=1).
_BARE_HOST = re.compile(r"(?:[a-z0-9-]{1,63}\.){1,5}(?!php|html?\b)[a-z]{2,18}(?:/|$)", re.I)
_THUMBNAIL = re.compile(r"(?:\.thumb_ss\.jpg|\.thumb_s\.jpg|\.thumb\.jpg|\.medium\.jpg)$", re.I)
_ANSWERED = re.compile(
    r"\s{0,4}(?:\[(quote)\]|\[b\]Reply to )\s{0,4}"
    r"\[(pid|tid)=(\d{1,15})(?:,(\d{0,15}))?(?:,\d{0,15})?\](?:Reply|Topic)\[/\2\]"
    r"(?:\s{0,4}(?:\[b\])?\s{0,4}Post by \[uid(?:=-?\d{1,15})?\]([^\[\]\n]{1,100})\[/uid\])?",
    re.I,
)

_PLAIN = {"b": "b", "i": "i", "u": "u", "del": "del"}
_BLOCKS = {"quote": "blockquote", "align": "div", "l": "div", "r": "div", "h": "h4", "list": "ul", "table": "table"}
_PENALTIES = ("lessernuke", "lessernuke2", "lessernuke3")
_INVISIBLE = ("color", "size", "font", "hip", "item", "stripbr", "randomblock", "randomblocks")
"""Tags of which only the content is shown: colours and sizes are not kept."""
_CONTAINERS = {*_PLAIN, *_BLOCKS, *_PENALTIES, *_INVISIBLE, "collapse", "tr", "td", "url", "uid", "tid", "pid"}
_RAW = ("code", "img", "noimg", "attach", "album", "flash", "dice", "url", "uid", "tid", "pid")
"""Tags whose content is not BBCode; the last four only without a value."""
_ENDS = {name: re.compile(rf"\[/{name}\]", re.I) for name in _RAW}
_SURROUNDINGS = {"*": ("list",), "tr": ("table",), "td": ("tr", "table")}


class PostPlace(NamedTuple):
    """Where a post is, as far as its addresses depend on that."""

    written_at: datetime | None = None
    attachments: str = ATTACHMENTS


class RenderedPost(NamedTuple):
    html: str
    media: tuple[Media, ...] = ()
    references: tuple[Reference, ...] = ()
    is_penalised: bool = False
    """A moderator's penalty box is in it."""


NOWHERE = PostPlace()


def render(source: str, place: PostPlace = NOWHERE) -> RenderedPost:
    """Returns the HTML of a post's BBCode, given as plain text with newlines."""
    writer = _Writer(place)
    writer.convert(source)
    html = "".join(writer.pieces).strip()
    return RenderedPost(html, tuple(writer.media.values()), _references(source), writer.is_penalised)


def file_url(address: str, place: PostPlace = NOWHERE) -> str | None:
    """Returns the absolute URL of an image or attachment; None if it has none."""
    address = address.strip()
    if address.startswith("//"):
        address = f"https:{address}"
    if "://" not in address:
        path = address.removeprefix("./").lstrip("/")
        if not path or ":" in path.partition("/")[0]:
            return None
        if "/" not in path and place.written_at is not None:
            # Without a folder: that of the day of the post.
            path = f"{place.written_at.astimezone(ZONE):mon_%Y%m/%d}/{path}"
        address = f"{place.attachments}/{path}"
    whole = _address(_OLD_FILES.sub(f"{ATTACHMENTS}/", address, count=1))
    return _THUMBNAIL.sub("", whole) if whole and "/attachments/" in whole else whole


def _address(text: str, base: str = SITE) -> str | None:
    """Returns the absolute URL of a link on a page; None for one that must not be clicked."""
    text = "".join(text.split())
    if not text or len(text) > LONGEST_ADDRESS:
        return None
    if _BARE_HOST.match(text):
        text = f"https://{text}"
    try:
        whole = urljoin(f"{base}/", text)
        parts = urlsplit(whole)
    except ValueError:
        return None
    return whole if parts.scheme.lower() in ("http", "https") and parts.hostname else None


def _references(source: str) -> tuple[Reference, ...]:
    """Returns what a post answers, from the words that the site puts before it."""
    match = _ANSWERED.match(source)
    if match is None:
        return ()
    relation = "quoted" if match[1] else "replied_to"
    name, number = match[2].lower(), match[3]
    if name == "pid" and int(number) == 0:
        # The first post has no number of its own: it is named by its thread.
        name, number = "tid", match[4] or ""
    if not number:
        return ()
    return (Reference(relation, f"{name[0]}{number}", url=f"{SITE}/read.php?{name}={number}", author=match[5]),)


class _Writer:
    """Writes HTML while it goes through the source."""

    def __init__(self, place: PostPlace) -> None:
        self.place = place
        self.pieces: list[str] = []
        self.media: dict[str, Media] = {}
        self.is_penalised = False
        self._open: list[tuple[str, str]] = []
        """The open tags, with what closes each of them."""
        self._names: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        """Tags whose end is still to come: they were closed by their surroundings, or are too deep to be shown."""
        self._endless: set[str] = set()
        """Raw tags that have no end in the rest of the source."""

    def convert(self, source: str) -> None:
        at = count = 0
        while count < MOST_TAGS and (match := _TAG.search(source, at)) is not None:
            count += 1
            self._text(source[at : match.start()])
            at = self._tag(source, match)
        self._text(source[at:])
        while self._open:
            self._pop()

    def _tag(self, source: str, match: re.Match[str]) -> int:
        """Writes a tag; returns where the source continues."""
        name, value = match[2].lower(), match[3]
        if not match[1]:
            if (end := self._raw(source, name, value, match.end())) is not None:
                return end
            is_known = self._begin(name, value)
        else:
            is_known = not value and self._end(name)
        if not is_known:
            self._text(match[0])
        return match.end()

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._names["table"] and self._open[-1][0] in ("table", "tr") and not text.strip():
            return
        if self._names["stripbr"]:
            text = text.replace("\n", "")
        html = escape(text, quote=False)
        if "===" in html:
            html = _HEADING.sub(r"<h4>\1</h4>", html)
        self.pieces.append(html.replace("\n", "<br>"))

    # ── containers ────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, name: str, value: str) -> bool:
        """Opens a container; False: it is not a container, and stays text."""
        if name == "*":
            return not value and self._list_entry()
        if name == "@":
            return bool(value) and self._word(f"@{value}")
        if name == "s" and value.startswith(":"):
            return self._word(value)
        name = _without_width(name)
        argument = value[1:].strip()
        if name not in _CONTAINERS or not (value[:1] in ("", "=") or name == "td"):
            return False
        if name in _SURROUNDINGS and not self._back_to(_SURROUNDINGS[name]):
            return False
        if len(self._open) >= DEEPEST:
            self._closed[name] += 1
            return True
        if name == "td" and self._open[-1][0] == "table":
            self.pieces.append("<tr>")
            self._push("tr", "</tr>")
        begin, end = self._html(name, argument)
        self.pieces.append(begin)
        self._push(name, end)
        return True

    def _html(self, name: str, argument: str) -> tuple[str, str]:
        """Returns what opens and what closes a container."""
        if name in ("url", "uid", "tid", "pid"):
            address = None if self._is_in_link() else _LINKS[name](argument)
            return (f'<a href="{escape(address)}">', "</a>") if address else ("", "")
        if name in _PENALTIES:
            self.is_penalised = True
            return "<blockquote>", "</blockquote>"
        if name == "collapse":
            title = escape(argument[:LONGEST_TITLE] or "…", quote=False)
            return f"<details><summary>{title}</summary>", "</details>"
        if name == "td":
            # Either [td=2] and [td=2,1,50], or [td colspan=2].
            spans = _SPAN.findall(argument) or list(zip(("colspan", "rowspan"), argument.split(","), strict=False))
            attributes = (f' {span}="{number}"' for span, number in spans if number.isdecimal() and len(number) < 3)
            return f"<td{''.join(attributes)}>", "</td>"
        if name == "tr":
            return "<tr>", "</tr>"
        tag = _PLAIN.get(name) or _BLOCKS.get(name)
        return (f"<{tag}>", f"</{tag}>") if tag else ("", "")

    def _is_in_link(self) -> bool:
        return any(self._names[name] for name in ("url", "uid", "tid", "pid"))

    def _list_entry(self) -> bool:
        if not self._back_to(_SURROUNDINGS["*"]):
            return self._word("• ")
        if len(self._open) < DEEPEST:
            self.pieces.append("<li>")
            self._push("*", "</li>")
        return True

    def _back_to(self, names: tuple[str, ...]) -> bool:
        """Closes what is open inside the nearest of these containers; False: there is none."""
        if not any(self._names[name] for name in names):
            return False
        while self._open[-1][0] not in names:
            self._closed[self._open[-1][0]] += 1
            self._pop()
        return True

    def _end(self, name: str) -> bool:
        """Closes a container and all that is open inside it; False: it is not open."""
        name = _without_width(name)
        if self._closed[name] and not (self._names[name] and self._open[-1][0] == name):
            self._closed[name] -= 1
            return True
        if not self._names[name]:
            return False
        while self._open[-1][0] != name:
            self._closed[self._open[-1][0]] += 1
            self._pop()
        self._pop()
        return True

    def _push(self, name: str, end: str) -> None:
        self._open.append((name, end))
        self._names[name] += 1

    def _pop(self) -> None:
        name, end = self._open.pop()
        self._names[name] -= 1
        self.pieces.append(end)

    def _word(self, text: str) -> bool:
        self._text(text)
        return True

    # ── tags whose content is not BBCode ───────────────────────────────────────────────────────────────────────────

    def _raw(self, source: str, name: str, value: str, begin: int) -> int | None:
        """Writes a tag with raw content; returns where it ends. None: it is not such a tag, or has no end."""
        if name not in _RAW or (value and name in _LINKS):
            return None
        longest = len(source) if name in ("code", "album") else begin + LONGEST_ADDRESS
        end = _ENDS[name].search(source, begin, longest) if name not in self._endless else None
        if end is None:
            if longest == len(source):
                # Not searched for again: a thousand of them would take a thousand times as long.
                self._endless.add(name)
            return None
        content = source[begin : end.start()]
        if name == "code":
            self.pieces.append(f"<pre><code>{escape(content.strip(), quote=False)}</code></pre>")
        elif name == "dice":
            self.pieces.append(f"<code>{escape(content, quote=False)}</code>")
        elif name == "album":
            self._album(value.removeprefix("="), content)
        elif name in _LINKS:
            self._link(content, _LINKS[name](content))
        else:
            self._file(name, value.removeprefix("="), content)
        return end.end()

    def _link(self, text: str, address: str | None) -> None:
        if address is None or self._is_in_link():
            self._text(text)
        else:
            self.pieces.append(f'<a href="{escape(address)}">{escape(text.strip(), quote=False)}</a>')

    def _file(self, name: str, sort: str, content: str) -> None:
        """Writes an image, or a link to another file."""
        address = file_url(content, self.place)
        if address is None:
            self._text(content)
            return
        kind = sort if sort in ("video", "audio") else media_kind(None, address)
        if name in ("img", "noimg"):
            kind = "image"
        elif name == "flash" and kind == "file":
            kind = "video"
        self.media.setdefault(address, Media(address, kind))
        if kind == "image":
            self.pieces.append(f'<img src="{escape(address)}">')
        else:
            self._link(address, address)

    def _album(self, title: str, content: str) -> None:
        self._text(title[:LONGEST_TITLE])
        for address in re.findall(r"\[url\]([^\[\]\n]{1,2000})\[/url\]", content, re.I)[:MOST_TAGS]:
            self._file("img", "", address)


def _without_width(name: str) -> str:
    """Returns td for [td20], a cell of 20 % of the width."""
    return "td" if name.startswith("td") and name[2:].isdecimal() else name


def _site_link(parameter: str) -> Callable[[str], str | None]:
    def link(argument: str) -> str | None:
        match = _NUMBERS.match(argument.strip())
        return f"{SITE}/{parameter}={match[0]}" if match else None

    return link


_thread_link, _post_link = _site_link("read.php?tid"), _site_link("read.php?pid")


def _answered_link(argument: str) -> str | None:
    """Returns the link to a post: [pid=1,2,3] is number 1 of thread 2. An opening post has the number 0; its thread
    finds it."""
    number, _, place = argument.strip().partition(",")
    return _thread_link(place) if number == "0" else _post_link(argument)


_LINKS: dict[str, Callable[[str], str | None]] = {
    "url": _address,
    "uid": _site_link("nuke.php?func=ucp&uid"),
    "tid": _thread_link,
    "pid": _answered_link,
}
