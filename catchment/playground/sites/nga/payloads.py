"""The JSON of boards and threads: compact (`__output=8`), verbose (`11`), or as a script (`lite=js`)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from catchment.playground.sites.nga.texts import content_html, escaped
from catchment.playground.sites.nga.threads import (
    FLOORS_A_PAGE,
    SUB_BOARDS,
    BoardFloor,
    BoardThread,
    anonymous_name,
    uid_of,
)

ROWS_A_PAGE = 35
ZONE = timezone(timedelta(hours=8))
DENIED = "帖子发布或回复时间超过限制"
GLOBAL = {"_ATTACH_BASE_VIEW": "img.nga.cn/attachments"}
ANONYMOUS_UID = -1


def seconds(at: datetime) -> int:
    return int(at.timestamp())


def minute(at: datetime) -> str:
    return f"{at.astimezone(ZONE):%Y-%m-%d %H:%M}"


def thread_author(thread: BoardThread) -> tuple[str, int | str]:
    """Name and uid of the author of a thread, as a list shows them."""
    if thread.is_anonymous:
        return anonymous_name(thread.tid), anonymous_name(thread.tid)
    return thread.head.author, uid_of(thread.head.author)


def row(thread: BoardThread, fid: int, at: datetime) -> dict[str, Any]:
    author, uid = thread_author(thread)
    told: dict[str, Any] = {
        "tid": thread.tid,
        "fid": fid,
        "quote_from": 0,
        "topic_misc": "",
        "author": escaped(author),
        "authorid": uid,
        "subject": escaped(thread.head.version(at).title),
        "type": 262144 if thread.is_anonymous else 0,
        "postdate": seconds(thread.head.shown_from),
        "lastpost": seconds(thread.last_reply_at(at)),
        "lastposter": thread.floors[-1].post.author,
        "replies": thread.replies(at),
        "lastmodify": seconds(thread.last_reply_at(at)),
        "recommend": 0,
        "jdata": "",
        "tpcurl": f"/read.php?tid={thread.tid}",
    }
    if thread.sub_board is not None:
        sub_fid, name = SUB_BOARDS[thread.sub_board]
        told |= {"fid": sub_fid, "parent": {"0": sub_fid, "2": name}}
    return told


def mirror_row(thread: BoardThread, fid: int, at: datetime) -> dict[str, Any]:
    """The row of a thread that stands for it in another place: with an id and a title of its own."""
    told = row(thread, fid, at)
    return told | {
        "tid": thread.tid + 1,
        "quote_from": thread.tid,
        "subject": f"[镜像]{told['subject']}",
        "type": 0x200000,
    }


def denied_row(tid: int, fid: int) -> dict[str, Any]:
    empty = {"topic_misc": "", "author": "", "lastposter": "", "jdata": "", "attachs": "", "content": "", "parent": ""}
    zero = {"quote_from": 0, "authorid": 0, "type": 0, "postdate": 0, "lastpost": 0, "replies": 0, "recommend": 0}
    return {"tid": tid, "fid": fid, "subject": DENIED, **empty, **zero, "denied": "1", "error": DENIED}


def listing(rows: list[dict[str, Any]], total: int, fid: int, name: str, topped: int | str = "") -> dict[str, Any]:
    board = {"fid": fid, "name": name, "topped_topic": topped, "sub_forums": {}}
    return {
        "__GLOBAL": GLOBAL,
        "__ROWS": total,
        "__T": rows,
        "__T__ROWS": len(rows),
        "__T__ROWS_PAGE": ROWS_A_PAGE,
        "__R__ROWS_PAGE": FLOORS_A_PAGE,
        "__F": board,
    }


def _post(floor: BoardFloor, thread: BoardThread, fid: int, at: datetime, score: int) -> dict[str, Any]:
    edited = floor.edited_at(at)
    return {
        "pid": floor.pid,
        "fid": fid,
        "tid": thread.tid,
        "authorid": uid_on_page(floor, thread),
        "type": 0,
        "score": score,
        "score_2": 0,
        "recommend": 0,
        "postdate": minute(floor.post.shown_from),
        "subject": escaped(floor.post.version(at).title) if floor.number == 0 else "",
        "alterinfo": f"[E{seconds(edited)} 0 0]\t" if edited else "",
        "content": content_html(floor.content(at)),
        "lou": floor.number,
        "content_length": len(floor.content(at)),
        "from_client": "7 iOS",
        "postdatetimestamp": seconds(floor.post.shown_from),
        "attachs": "",
    }


def uid_on_page(floor: BoardFloor, thread: BoardThread) -> int:
    is_anonymous = thread.is_anonymous and floor.post.author == thread.head.author
    return ANONYMOUS_UID if is_anonymous else uid_of(floor.post.author)


def posts(
    floors: list[BoardFloor],
    comments: list[BoardFloor],
    thread: BoardThread,
    fid: int,
    at: datetime,
    scores: dict[str, int],
) -> list[dict[str, Any]]:
    """The rows of a page. The content of a comment is in the row of the floor that it comments on; `comments` are those
    whose own rows are on other pages."""
    told: dict[int, dict[str, Any]] = {}

    def add_comment(number: int | None, post: dict[str, Any]) -> None:
        if number in told:
            below = told[number].setdefault("comment", {})
            below[str(len(below))] = post

    for floor in floors:
        post = _post(floor, thread, fid, at, scores.get(floor.post.id, 0))
        if floor.comments_on is None:
            told[floor.number] = post
            continue
        parent = thread.floors[floor.comments_on]
        told[floor.number] = {
            "subject": f"对回复({parent.pid})发表了一条评论" if parent.pid else "对主题发表了一条评论",
            "lou": floor.number,
            "author": "",
            "authorid": post["authorid"],
            "postdate": post["postdate"],
            "pid": floor.pid,
            "comment_to_id": parent.pid or -1,
        }
        add_comment(floor.comments_on, post)
    for floor in comments:
        add_comment(floor.comments_on, _post(floor, thread, fid, at, scores.get(floor.post.id, 0)))
    if floors and floors[0].number == 0:
        popular = sorted(floors[1:], key=lambda floor: -scores.get(floor.post.id, 0))[:2]
        copies = [_post(floor, thread, fid, at, scores.get(floor.post.id, 0)) for floor in popular]
        told[0] |= {"hotreply": dict(enumerate(copies))} if copies else {}
    return list(told.values())


def users(floors: list[BoardFloor], thread: BoardThread) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for floor in floors:
        uid = uid_on_page(floor, thread)
        name = anonymous_name(thread.tid) if uid == ANONYMOUS_UID else floor.post.author
        told[str(uid)] = {"uid": max(uid, 0), "username": name, "groupid": -1, "signature": "", "remark": "sv\twow"}
    return told | {"__GROUPS": {"39": {"0": "学徒"}}}


def thread_page(
    thread: BoardThread,
    rows: list[dict[str, Any]],
    floors: list[BoardFloor],
    fid: int,
    name: str,
    page: int,
    at: datetime,
) -> dict[str, Any]:
    author, _ = thread_author(thread)
    return {
        "__GLOBAL": GLOBAL,
        "__T": {
            "fid": fid,
            "tid": thread.tid,
            "topic_misc": "",
            "subject": escaped(thread.head.version(at).title),
            "locked": 0,
            "quote_from": 0,
            "type": 0,
            "replies": thread.replies(at),
            "authorid": -3 if thread.is_anonymous else uid_of(thread.head.author),
            "postdate": seconds(thread.head.shown_from),
            "lastpost": seconds(thread.last_reply_at(at)),
            "author": escaped(author),
            "digest": 0,
        },
        "__F": {"name": name},
        "__R": rows,
        "__U": users(floors, thread),
        "__R__ROWS": len(rows),
        "__R__ROWS_PAGE": FLOORS_A_PAGE,
        "__ROWS": thread.replies(at) + 1,
        "__PAGE": page,
    }


def written(data: dict[str, Any], form: str, at: datetime) -> bytes:
    """The bytes of a document in a form: raw tabs, lists as objects in the compact ones, and GBK."""
    is_compact = form != "11"
    lists = {key: _numbered(value) if is_compact and isinstance(value, list) else value for key, value in data.items()}
    text = json.dumps({"data": lists, "encode": "gbk", "time": seconds(at)}, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("\\t", "\t")
    return (f"window.script_muti_get_var_store={text}" if form == "js" else text).encode("gb18030")


def _numbered(values: list[Any]) -> dict[str, Any]:
    return {str(index): value for index, value in enumerate(values)}
