"""Turns rows and floors into items.

Ids: a thread is `t` and its tid, a reply `p` and its pid. Both are unique on the site; the opening post has no pid of
its own. An anonymous author is known by the name that the site makes for each thread, never by the negative numbers,
which differ from page to page.

Folded is a floor that the site shows with a moderator's penalty box (`[lessernuke]`), or as a notice instead of its
text. What an author folds with `[collapse]` is ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from catchment.model import Item, Media, Reference, ThreadPage, ThreadRow
from catchment.platforms._common.coercion import each_once, from_seconds, media_kind, unique
from catchment.platforms.nga.bbcode import ATTACHMENTS, SITE, PostPlace, file_url, render
from catchment.platforms.nga.html_form import DENIED
from catchment.platforms.nga.shapes import BoardPage, BoardRow, ForumFloor, ThreadAnswer

FLOORS_PER_PAGE = 20
THREAD, FLOOR = "thread", "floor"
_COLLECTION, _BOARD_MIRROR = 0x8000, 0x200000
"""Bits of a row's type."""
_PREFIXES = re.compile(r"\s*+((?:\[[^\[\]]{1,100}\]\s*+)++)")
_PREFIX = re.compile(r"\[([^\[\]]{1,100})\]")
_EDITED = re.compile(r"\[E(\d{1,12})[ \]]")
_HOST = re.compile(r"[a-z0-9.-]{4,80}/attachments")
# A floor's content that is nothing but one of the site's notices.
_NOTICE = re.compile(rf"\s*+(?:\[[a-z0-9=]+\]\s*+)*+(?:{'|'.join(DENIED)})\s*+(?:\[/[a-z]+\]\s*+)*+")


def title_prefixes(title: str) -> tuple[str, ...]:
    """Returns the tags in brackets at the beginning of a title, without the brackets."""
    match = _PREFIXES.match(title)
    return unique(_PREFIX.findall(match[1])) if match else ()


def thread_url(tid: int) -> str:
    return f"{SITE}/read.php?tid={tid}"


def _best(rows: Sequence[BoardRow]) -> BoardRow:
    """Returns the row of the thread itself; if there is none, that of a mirror."""
    return next((row for row in rows if row.mirror_tid is None), rows[0])


def of_rows(rows: Sequence[BoardRow], page: BoardPage) -> Item:
    """Returns the rows of a thread in a list as its opening post, without its text."""
    row = _best(rows)
    return Item(
        external_id=f"t{row.tid}",
        kind=THREAD,
        created_at=from_seconds(row.created),
        title=row.subject or None,
        # A mirror has a title of its own, which begins with the name of its board. It must not rename the thread.
        is_title_foreign=row.mirror_tid is not None,
        title_prefixes=title_prefixes(row.subject) if row.mirror_tid is None else (),
        url=thread_url(row.tid),
        author=row.author or None,
        author_id=row.author_id or None,
        reply_count=row.replies,
        last_reply_at=from_seconds(row.last_reply),
        thread_id=f"t{row.tid}",
        floor_number=0,
        is_head=True,
        is_pinned=None if page.topped is None else page.topped == row.tid,
        is_partial=row.mirror_tid is not None,
        lacks_text=row.mirror_tid is None,
        aliases=tuple(f"t{mirror.mirror_tid}" for mirror in rows if mirror.mirror_tid is not None),
        tags=_tags(row, page),
    )


def _tags(row: BoardRow, page: BoardPage) -> tuple[str, ...]:
    """Returns the sub-board or collection of a thread, and the number of its board (`fid=-447601`) where that is not
    the one whose list shows it."""
    # That of a mirror says nothing about the thread.
    is_elsewhere = bool(row.fid) and row.fid != page.fid and row.mirror_tid is None
    return (*((row.parent,) if row.parent else ()), *((f"fid={row.fid}",) if is_elsewhere else ()))


def state_of_rows(rows: Sequence[BoardRow], page: BoardPage) -> ThreadRow:
    row = _best(rows)
    is_elsewhere = row.fid is not None and page.fid is not None and row.fid != page.fid
    return ThreadRow(
        f"t{row.tid}",
        last_reply_at=from_seconds(row.last_reply),
        page_count=_pages(row.replies),
        is_out_of_order=(
            row.mirror_tid is not None
            or is_elsewhere
            or page.topped == row.tid
            or bool(row.type_bits & (_COLLECTION | _BOARD_MIRROR))
        ),
    )


def _pages(replies: int | None) -> int | None:
    return None if replies is None or replies < 0 else replies // FLOORS_PER_PAGE + 1


def state_of_thread(thread: ThreadAnswer) -> ThreadRow:
    """Returns a thread as the only row of a list."""
    return ThreadRow(f"t{thread.tid}", last_reply_at=from_seconds(thread.last_reply), page_count=thread.pages)


def of_floors(thread: ThreadAnswer) -> tuple[Item, ...]:
    """Returns the floors of a page, and the comments that it shows of other pages, each once."""
    items: dict[str, Item] = {}
    for floor in (*thread.floors, *thread.comments):
        item = _of_floor(floor, thread)
        items.setdefault(item.external_id, item)
    return tuple(items.values())


def page_state(thread: ThreadAnswer, number: int) -> ThreadPage:
    """Returns which page it is, and which floors the site itself does not have."""
    first, size = (number - 1) * thread.floors_per_page, thread.floors_per_page
    end = first + size if thread.replies is None else min(first + size, thread.replies + 1)
    shown = {floor.number for floor in thread.floors}
    highest = max((floor for floor in shown if floor is not None), default=first - 1)
    # Without a count, nothing is known beyond the last floor that is shown.
    end = end if thread.replies is not None else highest + 1
    # A floor that could not be read may look like one that is not there.
    holes = () if thread.unreadable else tuple(floor for floor in range(first, end) if floor not in shown)
    return ThreadPage(f"t{thread.tid}", number, thread.pages, holes, from_seconds(thread.last_reply))


def _of_floor(floor: ForumFloor, thread: ThreadAnswer) -> Item:
    is_head = floor.pid == 0
    created = from_seconds(floor.created)
    place = PostPlace(created, _attachments(thread))
    is_withheld = floor.is_withheld or (floor.content is not None and _NOTICE.fullmatch(floor.content) is not None)
    post = render("" if is_withheld else floor.content or "", place)
    name = thread.names.get(floor.uid, "")
    is_anonymous = name.startswith("#anony_")
    title = (floor.subject or thread.subject) if is_head else floor.subject
    return Item(
        external_id=f"t{thread.tid}" if is_head else f"p{floor.pid}",
        kind=THREAD if is_head else FLOOR,
        created_at=created,
        edited_at=_edited_at(floor),
        title=title or None,
        title_prefixes=title_prefixes(title) if is_head else (),
        html=post.html or None,
        url=_floor_url(floor, thread),
        author=name or None,
        author_id=(name if is_anonymous else floor.uid if not floor.uid.startswith("-") else None) or None,
        score=floor.score,
        reply_count=thread.replies if is_head else None,
        last_reply_at=from_seconds(thread.last_reply) if is_head else None,
        thread_id=f"t{thread.tid}",
        floor_number=floor.number,
        is_head=is_head,
        is_digest=thread.is_digest if is_head else None,
        is_folded=post.is_penalised or is_withheld,
        # The text that is stored stays.
        lacks_text=is_withheld or floor.content is None,
        media=each_once((*post.media, *(_file(file, place) for file in floor.files))),
        references=post.references or _commented(floor, thread),
    )


def _floor_url(floor: ForumFloor, thread: ThreadAnswer) -> str | None:
    """Returns where a floor is. Only its own row shows on which page that is."""
    if floor.pid == 0 or floor.number is None:
        return thread_url(thread.tid) if floor.pid == 0 else None
    return f"{thread_url(thread.tid)}&page={floor.number // thread.floors_per_page + 1}#pid{floor.pid}Anchor"


def _commented(floor: ForumFloor, thread: ThreadAnswer) -> tuple[Reference, ...]:
    """Returns which post a comment comments on, where its text does not say that, or is not shown."""
    if floor.parent_pid is None or floor.parent_pid < 0:
        return ()
    if floor.parent_pid == 0:
        return (Reference("replied_to", f"t{thread.tid}", url=thread_url(thread.tid)),)
    return (Reference("replied_to", f"p{floor.parent_pid}", url=f"{SITE}/read.php?pid={floor.parent_pid}"),)


def _attachments(thread: ThreadAnswer) -> str:
    return f"https://{thread.attachments}" if _HOST.fullmatch(thread.attachments) else ATTACHMENTS


def _file(address: str, place: PostPlace) -> Media | None:
    url = file_url(address, place)
    return Media(url, media_kind(None, url)) if url else None


def _edited_at(floor: ForumFloor) -> datetime | None:
    times = [int(seconds) for seconds in _EDITED.findall(floor.edits)]
    return from_seconds(max(times, default=None))
