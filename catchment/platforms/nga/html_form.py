"""Reads lists and threads in HTML.

What a page says about rows and floors is partly in elements, by their ids, and partly in calls of the site's scripts
(`topicArg.add`, `postArg.proc`). Only calls at the beginning of a line of a script count: names, signatures and
attachments are inside the same scripts, and anybody can write them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.errors import Unreadable
from catchment.platforms._common.html import parsed, text_of
from catchment.platforms.nga.encoding import decoded_again, integer, source_text
from catchment.platforms.nga.json_form import HELPS, MOST_ROWS, PAGE_SIZE, user_names
from catchment.platforms.nga.shapes import BoardPage, BoardRow, ForumFloor, ThreadAnswer

LIST_MARK = re.compile(r"id=[\"']topicrows[\"']|commonui\.topicArg\.add\(")
THREAD_MARK = re.compile(r"commonui\.postArg\.proc\(")
DENIED = ("帖子发布或回复时间超过限制", "帐号权限不足", "帖子被设为隐藏", "帖子审核未通过")
_CALL = re.compile(r"^(commonui\.(?:topicArg\.add|postArg\.proc|postArg\.setDefault|userInfo\.setAll|loadAlertInfo)"
                   r"|ubbcode\.attach\.load)\s{0,9}\(", re.M)  # fmt: skip
_PAGES = re.compile(r"^(?:var )?__PAGE\s{0,9}=\s{0,9}\{\s{0,9}0:'[^'\n]*',1:(-?\d{1,9}),2:(\d{1,9})", re.M)
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|[(\[{]|[)\]}]|,|[^'\"()\[\]{},]++|.", re.DOTALL)
_FILE = re.compile(r"\burl:'([^'\\\n]{1,500})'")
_VARIABLE = re.compile(r"^\s{0,9}(__CURRENT_FID|__ATTACH_BASE_VIEW)\s{0,9}=\s{0,9}'?([^'\n,;|]{1,100})'?", re.M)
_UID = re.compile(r"\buid=(-?\d{1,15})")
_OUTER = re.compile(r"^<[^<>]*>|</[a-z0-9]+>$")
_MOST_TOKENS = 20_000
_TITLE_END = " NGA玩家社区"


def _shown(node: LexborNode | None) -> str:
    """Returns the text of an element, as the same text in JSON would be read."""
    return decoded_again(text_of(node))


class _Page:
    """The elements of a page by id, and the calls in its scripts."""

    def __init__(self, text: str) -> None:
        tree: LexborHTMLParser = parsed(text)
        self.tree = tree
        self.elements: dict[str, LexborNode] = {}
        for node in tree.css("[id]"):
            self.elements.setdefault(node.attributes.get("id") or "", node)
        self.scripts = [node.text(deep=True) for node in tree.css("script")]

    def calls(self, name: str) -> Iterator[tuple[str, int]]:
        """Yields the calls of a function: the script, and where the arguments begin."""
        for script in self.scripts:
            for match in _CALL.finditer(script):
                if match[1].endswith(name):
                    yield script, match.end()

    def variable(self, name: str) -> str:
        values = (match[2] for script in self.scripts for match in _VARIABLE.finditer(script) if match[1] == name)
        return next((value.strip() for value in values), "")

    def pages(self) -> tuple[int, int] | None:
        """Returns how many pages there are, and which this is; the first may be negative: unknown."""
        matches = (match for script in self.scripts if (match := _PAGES.search(script)))
        return next(((int(match[1]), int(match[2])) for match in matches), None)

    def text(self, id_: str) -> str:
        return _shown(self.elements.get(id_))

    def uid(self, id_: str) -> str:
        node = self.elements.get(id_)
        match = _UID.search((node.attributes.get("href") or "") if node is not None else "")
        return match[1] if match else ""


def _arguments(script: str, begin: int) -> list[str]:
    """Returns the arguments of a call as they are written, up to its closing bracket."""
    arguments, depth = [""], 0
    for count, token in enumerate(_TOKEN.finditer(script, begin)):
        text = token[0]
        if count > _MOST_TOKENS or (depth == 0 and text in ")]}"):
            break
        if depth == 0 and text == ",":
            arguments.append("")
            continue
        depth += (text in "([{") - (text in ")]}")
        arguments[-1] += text
    return [argument.strip() for argument in arguments]


def _string(arguments: list[str], index: int) -> str:
    """Returns an argument without its quotes; empty for one that is not there."""
    text = arguments[index] if index < len(arguments) else ""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    return "" if text == "null" else text


def _number(arguments: list[str], index: int) -> int | None:
    return integer(_string(arguments, index))


def read_list(text: str) -> BoardPage:
    """Reads a page of a list. Raises `Unreadable` if the body is not one."""
    if not LIST_MARK.search(text):
        raise Unreadable("the page contains no list of threads", HELPS)
    page = _Page(text)
    rows = []
    for script, begin in page.calls("topicArg.add"):
        if (row := _row(page, _arguments(script, begin))) is not None:
            rows.append(row)
    pages = page.pages()
    return BoardPage(
        rows[:MOST_ROWS],
        _shown(page.tree.css_first(".nav h1 a")),
        integer(page.variable("__CURRENT_FID")) or None,
        # Without the variable there is one page; a negative number means that the end is unknown.
        pages=(pages[0] if pages[0] > 0 else None) if pages else 1,
        unreadable=max(0, len(page.tree.css("tr.topicrow")) - len(rows)),
    )


def _row(page: _Page, arguments: list[str]) -> BoardRow | None:
    tid = _number(arguments, 8)
    # t_rc1_12: the elements of the row end in 1_12.
    suffix = _string(arguments, 0).removeprefix("t_rc")
    if tid is None or tid <= 0 or f"t_tt{suffix}" not in page.elements:
        return None
    real = _number(arguments, 11) or 0
    title, author = page.text(f"t_tt{suffix}"), page.text(f"t_ta{suffix}")
    cell = page.elements[f"t_tt{suffix}"].parent
    parent = _shown(cell.css_first(".titleadd2")) if cell is not None else ""
    created = _number(arguments, 12) or None
    replies = _number(arguments, 14)
    return BoardRow(
        tid=real if real > 0 else tid,
        subject=title,
        author=author,
        author_id=author if author.startswith("#anony_") else page.uid(f"t_ta{suffix}"),
        created=created,
        last_reply=_number(arguments, 13) or None,
        replies=replies if replies is not None else integer(page.text(f"t_rc{suffix}")),
        fid=_number(arguments, 7),
        type_bits=_number(arguments, 15) or 0,
        mirror_tid=tid if real > 0 and real != tid else None,
        parent=parent[1:-1] if parent[:1] == "[" and parent[-1:] == "]" else parent,
        is_denied=created is None and (not author or title in DENIED),
    )


def read_thread(text: str) -> ThreadAnswer:
    """Reads a page of a thread. Raises `Unreadable` if the body is not one."""
    if not THREAD_MARK.search(text):
        raise Unreadable("the page contains no posts", HELPS)
    page = _Page(text)
    defaults = next((_arguments(*call) for call in page.calls("postArg.setDefault")), [])
    tid = _number(defaults, 2)
    if tid is None or tid <= 0:
        raise Unreadable("the page does not say which thread it is", HELPS)
    edits, files = _edits(page), _files(page)
    calls = [_arguments(*call) for call in page.calls("postArg.proc")]
    floors = [floor for call in calls if (floor := _floor(page, call, edits, files)) is not None]
    if not floors:
        raise Unreadable("the posts of the page cannot be read", HELPS)
    replies, size = _number(defaults, 11), _number(defaults, 13) or PAGE_SIZE
    pages = page.pages()
    base = page.variable("__ATTACH_BASE_VIEW")
    return ThreadAnswer(
        tid=tid,
        subject=page.text("postsubject0") or _shown(page.tree.css_first("title")).removesuffix(_TITLE_END),
        floors=floors[:MOST_ROWS],
        names=next((names for call in page.calls("userInfo.setAll") if (names := _names(*call))), {}),
        replies=replies,
        last_reply=_number(defaults, 12) or None,
        fid=_number(defaults, 0),
        board=_shown(page.tree.css_first(".nav a.nav_link")),
        page=pages[1] if pages else 1,
        pages=pages[0] if pages and pages[0] > 0 else -(-(replies + 1) // size) if replies is not None else 1,
        floors_per_page=size,
        attachments=f"{base}/attachments" if base else "",
        unreadable=max(0, len(page.tree.css("tr.postrow")) - len(floors)),
    )


def _floor(page: _Page, call: list[str], edits: dict[str, str], files: dict[str, tuple[str, ...]]) -> ForumFloor | None:
    key, pid = call[0], _number(call, 10)
    # The key '_pid' is a comment below its post: it is a floor of its own, too. '__pid' is a copy of a popular floor.
    if not re.fullmatch(r"\d{1,9}", key) or pid is None or pid < 0:
        return None
    content = page.elements.get(f"postcontent{key}")
    marks = _string(call, 15).split(",")
    source = source_text(_OUTER.sub("", (content.html or "").strip())) if content is not None else None
    return ForumFloor(
        number=int(key),
        pid=pid,
        uid=_string(call, 13) or page.uid(f"postauthor{key}"),
        created=_number(call, 14) or None,
        subject=page.text(f"postsubject{key}"),
        content=source,
        edits=edits.get(key, ""),
        # recommend, score, score_2
        score=integer(marks[1]) if len(marks) > 1 else None,
        files=files.get(key, ()),
    )


def _edits(page: _Page) -> dict[str, str]:
    """Returns what the page says about later changes of floors, by the number of the floor."""
    calls = (_arguments(*call) for call in page.calls("loadAlertInfo"))
    return {_string(call, 1).removeprefix("alertc"): _string(call, 0) for call in calls}


def _files(page: _Page) -> dict[str, tuple[str, ...]]:
    calls = (_arguments(*call) for call in page.calls("attach.load"))
    return {_string(call, 0).removeprefix("postattach"): tuple(_FILE.findall(call[2])) for call in calls if call[2:]}


def _names(script: str, begin: int) -> dict[str, str]:
    start = script.find("{", begin, begin + 20)
    if start < 0:
        return {}
    try:
        users, _ = json.JSONDecoder(strict=False).raw_decode(script, start)
    except (ValueError, RecursionError):
        return {}
    return user_names(users)
