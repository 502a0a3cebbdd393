"""Reads lists and threads in JSON (`__output=8` and `11`, `lite=js`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from catchment.errors import Unreadable
from catchment.model import JsonObject
from catchment.platforms._common.json import decode_text
from catchment.platforms.nga.bbcode import ZONE
from catchment.platforms.nga.encoding import entries, integer, member, plain, source_text
from catchment.platforms.nga.shapes import BoardPage, BoardRow, ForumFloor, ThreadAnswer

HELPS = "check in a browser whether NGA has changed its format"
MOST_ROWS = 2_000
PAGE_SIZE = 20
_SHOWN_TIME = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}")


def data_of(document: JsonObject) -> JsonObject:
    data = document.get("data")
    return data if isinstance(data, dict) else document


def is_list(data: JsonObject) -> bool:
    return isinstance(data.get("__T"), dict | list) and "__R" not in data


def is_thread(data: JsonObject) -> bool:
    return isinstance(data.get("__R"), dict | list)


def read_list(data: JsonObject) -> BoardPage:
    """Reads a page of a list. Raises `Unreadable` if the body is not one."""
    if not is_list(data):
        raise Unreadable("the answer contains no list of threads", HELPS)
    board = data.get("__F")
    shown = entries(data["__T"])[:MOST_ROWS]
    rows = [listed for row in shown if (listed := _row(row)) is not None]
    total, size = integer(data.get("__ROWS")), integer(data.get("__T__ROWS_PAGE"))
    return BoardPage(
        rows,
        plain(member(board, "name")),
        integer(member(board, "fid")),
        pages=-(-total // size) if total and size and size > 0 and total > 0 else None,
        topped=integer(member(board, "topped_topic")),
        unreadable=len(shown) - len(rows),
    )


def _row(row: Any) -> BoardRow | None:
    tid = integer(member(row, "tid"))
    if tid is None or tid <= 0:
        return None
    real = integer(row.get("quote_from")) or 0
    author = plain(row.get("author"))
    created = integer(row.get("postdate")) or None
    return BoardRow(
        tid=real if real > 0 else tid,
        subject=plain(row.get("subject")),
        author=author,
        author_id=_author_id(row.get("authorid"), author),
        created=created,
        last_reply=integer(row.get("lastpost")) or None,
        replies=integer(row.get("replies")),
        fid=integer(row.get("fid")),
        type_bits=integer(row.get("type")) or 0,
        mirror_tid=tid if real > 0 and real != tid else None,
        parent=_parent(row.get("parent")),
        is_denied=row.get("denied") not in (None, "", 0, "0", False) or (created is None and not author),
    )


def _author_id(value: Any, name: str) -> str:
    if name.startswith("#anony_"):
        return name
    return plain(value)


def _parent(parent: Any) -> str:
    """Returns the name of a sub-board: in an object, in a list, or in either of them written as a text of JSON."""
    if isinstance(parent, str):
        try:
            parent = decode_text(parent)[0] if parent[:1] in ("{", "[") else None
        except Unreadable:
            return ""
    return plain(member(parent, 2))


def read_thread(data: JsonObject) -> ThreadAnswer:
    """Reads a page of a thread. Raises `Unreadable` if the body is not one."""
    thread = data.get("__T")
    tid = integer(member(thread, "tid"))
    if not is_thread(data) or tid is None:
        raise Unreadable("the answer contains no thread", HELPS)
    shown = entries(data["__R"])[:MOST_ROWS]
    rows = [row for row in shown if isinstance(row, dict)]
    comments = {
        pid: comment
        for row in rows
        for comment in entries(row.get("comment"))
        if isinstance(comment, dict) and (pid := integer(comment.get("pid")))
    }
    floors = [floor for row in rows if (floor := _floor(row, comments)) is not None]
    total = integer(data.get("__ROWS"))
    replies = integer(member(thread, "replies"))
    size = integer(data.get("__R__ROWS_PAGE")) or PAGE_SIZE
    count = total if total and total > 0 else replies + 1 if replies is not None and replies >= 0 else None
    digest = integer(member(thread, "digest"))
    return ThreadAnswer(
        tid=tid,
        subject=plain(member(thread, "subject")),
        floors=floors,
        names=user_names(data.get("__U")),
        replies=replies if replies is not None else count - 1 if count else None,
        last_reply=integer(member(thread, "lastpost")) or None,
        fid=integer(member(thread, "fid")),
        board=plain(member(data.get("__F"), "name")),
        page=integer(data.get("__PAGE")),
        pages=-(-count // size) if count and size > 0 else None,
        floors_per_page=size if size > 0 else PAGE_SIZE,
        is_digest=None if digest is None else digest != 0,
        attachments=plain(member(data.get("__GLOBAL"), "_ATTACH_BASE_VIEW")),
        unreadable=len(shown) - len(floors),
        comments=tuple(_comments_elsewhere(comments, {floor.pid for floor in floors})),
    )


def _comments_elsewhere(comments: dict[int, JsonObject], shown: set[int]) -> Iterator[ForumFloor]:
    for pid, row in list(comments.items())[:MOST_ROWS]:
        # Its own row says under which number it is stored.
        if pid not in shown and (comment := _floor({**row, "lou": None}, {})) is not None:
            yield comment


def _floor(row: JsonObject, comments: dict[int, JsonObject]) -> ForumFloor | None:
    """Reads a floor. A comment has a row of its own without content, which is in the row of what it comments on: that
    may be on another page."""
    pid, number = integer(row.get("pid")), integer(row.get("lou"))
    if pid is None or pid < 0 or (pid == 0 and number not in (0, None)):
        return None
    if "content" not in row and pid in comments:
        row = {**comments[pid], "lou": number}
    content = source_text(row["content"]) if "content" in row else None
    return ForumFloor(
        number=0 if pid == 0 else number,
        pid=pid,
        uid=plain(row.get("authorid")),
        created=integer(row.get("postdatetimestamp")) or (None if "content" in row else _minute(row.get("postdate"))),
        # The row of a comment has a subject made by the site, which the comment itself has not.
        subject=plain(row.get("subject")) if content is not None else "",
        content=content,
        edits=plain(row.get("alterinfo")),
        score=integer(row.get("score")),
        files=tuple(plain(member(file, "attachurl")) for file in entries(row.get("attachs"))),
        is_withheld=row.get("denied") not in (None, "", 0, "0", False),
        parent_pid=_parent_pid(row.get("comment_to_id")),
    )


def _parent_pid(commented: Any) -> int | None:
    """Returns the post that a comment comments on. The one that opens the thread is -1 here, and 0 everywhere else."""
    pid = integer(commented)
    return 0 if pid == -1 else pid


def _minute(shown: Any) -> int | None:
    """Returns the Unix time of a time as it is shown to people: all that the own row of a comment has."""
    if not isinstance(shown, str) or not _SHOWN_TIME.fullmatch(shown):
        return None
    try:
        return int(datetime.strptime(shown, "%Y-%m-%d %H:%M").replace(tzinfo=ZONE).timestamp())
    except ValueError:
        return None


def user_names(users: Any) -> dict[str, str]:
    """Returns the user names by uid; those of anonymous ones begin with #anony_."""
    if not isinstance(users, dict):
        return {}
    names = {uid: plain(member(user, "username")) for uid, user in users.items() if isinstance(user, dict)}
    return {uid: name for uid, name in names.items() if name}
