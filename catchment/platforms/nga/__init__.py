"""NGA boards (bbs.nga.cn): threads with all their floors.

**Access.** No account for boards that are open to guests. Use a board's number (`7`, `-7`: a minus sign is part of
it), a collection (`stid=26926296`), the number of one thread (`tid=44191387`), or the address of any of these on any of
the site's hosts. For other boards, add the cookies of an account: `catchment credentials add nga NAME`, then
`ngaPassportUid=…; ngaPassportCid=…`, copied from the headers of a request in a browser. They work only on the host they
come from, and are sent to no other: bbs.nga.cn, unless `--host` says otherwise. The setting `host` of a source says
which host is read.

**Limits.** One request per second, or fewer (`requests_per_second`). Every visit reads the list of threads in order of
posting down to the first day of the window (`window_days`, in Chinese time), then the threads with new replies, up to
`pages_per_run` pages of each; the next runs continue longer ones. For threads of more than 1,000 pages, only the row in
the list is stored. A thread of another board that the list shows, as boards show their sub-boards, has that board's
name and number (`fid=-447601`) as tags. The site's robots.txt is obeyed, and requests carry catchment's own name unless
`NGA_USER_AGENT` gives another.

**Blind spots.** Deleted floors leave a number without a post: what was deleted before it was read cannot be seen.
Threads that are hidden, too old for guests or waiting for review are left out. Digest marks are shown only with a
thread in JSON, the pinned thread only with a board in JSON. Results of dice are computed in the browser; the expression
is kept. Colours and sizes of text are not kept. Folded means that a moderator's penalty is shown with a floor, or a
notice instead of its text; what authors fold themselves is ordinary text. Views are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from catchment.errors import InvalidInput
from catchment.messages import Message, message
from catchment.model import (
    Budget,
    Field,
    Forum,
    Kind,
    Listing,
    Order,
    Progress,
    Recheck,
    Request,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common.forum import FORUM_CHINESE, PAGES_PER_RUN, REQUESTS_PER_SECOND, WINDOW_DAYS
from catchment.platforms.nga import errors, items, parser, requests

NAME = "nga"
TITLE = "NGA"
HOSTS: tuple[str, ...] = requests.HOSTS
# No limit is published. One at a time for the whole site: its hosts show the same.
BUDGET: Budget | None = Budget(NAME, limit=1, window_seconds=1.0)
IS_SCOPED = False  # tids and pids are unique on the whole site
PARSER_VERSION = 2
OBEYS_ROBOTS = True
HAS_COOKIES_PER_HOST = True

HELPS = "use a board's number, such as 7 or -7, or its address, such as https://bbs.nga.cn/thread.php?fid=-7"
_BOARD = re.compile(r"(?:fid\s*=\s*)?([+-]?\d{1,10})")
_OTHER = re.compile(r"(stid|tid)\s*=\s*(\d{1,10})")
_ID = re.compile(r"[tp]\d{1,15}")
_PLACE = re.compile(r"/read\.php\?tid=(\d{1,15})(?:&page=(\d{1,6}))?(?:#|$)")
"""Where a floor is, in its URL."""


KINDS = (
    Kind(
        name="nga_forum",
        title="NGA board",
        what="A board of the NGA forum: its number, or its address",
        interval_minutes=720,
        example="-7",
        listings=(Listing(requests.NEWEST, Order.NEWEST_FIRST, page_size=35),),
        fields=(
            WINDOW_DAYS,
            PAGES_PER_RUN,
            REQUESTS_PER_SECOND,
            Field("host", "The host that is read", HOSTS[0], choices=HOSTS),
        ),
        item_kind=items.THREAD,
        more_item_kinds=(items.FLOOR,),
        recheck_ages=(timedelta(days=1), timedelta(days=7), timedelta(days=30)),
        forum=Forum(zone="Asia/Shanghai", floors_per_page=items.FLOORS_PER_PAGE),
    ),
)

CHINESE = FORUM_CHINESE | {
    "NGA": "NGA 玩家社区",
    "NGA board": "NGA 版面",
    "A board of the NGA forum: its number, or its address": "NGA 论坛的版面：填写版面编号或网址",
    "The host that is read": "从哪个域名读取",
    parser.REPEATED: "列表的各页内容重复",
    parser.DENIED: "已略过此账号无权查看的主题",
    errors.LOG_IN: "添加账号的 Cookie（ngaPassportUid 和 ngaPassportCid）：`catchment credentials add nga NAME`",
    "the answer is empty": "返回内容为空",
    "NGA asks for fewer requests": "NGA 要求降低请求频率",
    "NGA's server is busy": "NGA 服务器繁忙",
    "the thread is waiting for review by the moderators": "主题正在等待审核",
    "there is no such thread or post on NGA": "NGA 上没有这个主题或回复",
    "its stored items are kept": "已保存的内容会保留",
    "NGA does not show it to this account": "此账号无权查看",
    "an account with more rights may see it": "换用权限更高的账号或许可以查看",
    "NGA does not show it to guests, or does not accept the cookies": "NGA 不向访客显示，或 Cookie 已失效",
    "there is no such board on NGA, or it is empty": "NGA 上没有这个版面，或版面中没有内容",
    "check its number: a minus sign is part of it": "请检查版面编号，负号也是编号的一部分",
    "the page is truncated": "页面内容不完整",
    "NGA sends an advertisement instead of the page": "NGA 返回的是广告页",
    "the JSON is malformed": "JSON 已损坏",
    "the answer contains bytes that are not text": "返回内容中有无法解码的字节",
    "the answer contains no list of threads": "返回内容中没有主题列表",
    "the page contains no list of threads": "页面中没有主题列表",
    "the board shows no threads": "版面中没有主题",
    "the answer contains no thread": "返回内容中没有主题",
    "the page contains no posts": "页面中没有回复",
    "the answer contains a different thread from the one requested": "返回的不是所请求的主题",
    "check in a browser whether NGA has changed its format": "请在浏览器中查看 NGA 是否更改了格式",
    HELPS: "填写版面编号（如 7 或 -7），或版面网址，如 https://bbs.nga.cn/thread.php?fid=-7",
}


def understand(text: str, kind: str | None = None) -> Target:
    """Returns a board, a collection or a thread. A bare number is a board only if the kind is given."""
    text = text.strip()
    if not text or not text.isprintable() or len(text) > 2_000:
        raise _wrong(message("no target was given" if not text else "this is not a board"))
    if (match := _OTHER.fullmatch(text)) is not None:
        return _target(match[1], int(match[2]))
    if (match := _BOARD.fullmatch(text)) is not None and (kind == "nga_forum" or match[1] != text):
        return _target("fid", int(match[1]))
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host = (parts.hostname or "").lower().removeprefix("www.")
    except ValueError:
        raise _wrong(message("the address is malformed")) from None
    if parts.scheme not in ("http", "https") or host not in HOSTS:
        raise _wrong(message("{text!r} is not a board on NGA", text=text[:100]))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    settings = {"host": host} if host != HOSTS[0] else {}
    # A collection's address may also name the board that it belongs to.
    names = ("stid", "fid") if parts.path == "/thread.php" else ("tid",) if parts.path == "/read.php" else ()
    for name in names:
        if re.fullmatch(r"[+-]?\d{1,10}", query.get(name, "")):
            return _target(name, int(query[name]), settings)
    raise _wrong(message("this address is neither a board nor a thread"))


def _target(name: str, number: int, settings: dict[str, str] | None = None) -> Target:
    if number == 0 or (number < 0 and name != "fid"):
        raise _wrong(message("there is no such number on NGA"))
    address = str(number) if name == "fid" else f"{name}={number}"
    return Target("nga_forum", address, settings=settings or {})


def _wrong(what: Message) -> InvalidInput:
    return InvalidInput(what, HELPS, field="target")


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    return [requests.board(source)]


def floors(source: Source, thread_id: str, number: int) -> Request:
    """Requests a page of a thread."""
    return requests.thread_page(source, int(thread_id.removeprefix("t")), number)


def recheck(rechecks: Sequence[Recheck]) -> list[Request]:
    """Requests floors by the pages that they are on, twenty at once; one that was not there by its own id, because it
    may have moved to another thread. An opening post has no id but that of its thread. Comments whose text is
    not stored are requested with the post that they comment on."""
    pages: dict[tuple[int, int, int], list[Recheck]] = {}
    alone: list[Recheck] = []
    commented: dict[tuple[int, str], list[Recheck]] = {}
    for item in rechecks:
        place = _PLACE.search(item.url or "")
        if not _ID.fullmatch(item.external_id):
            continue
        if item.text_at is not None and not item.is_unconfirmed and _ID.fullmatch(item.text_at):
            commented.setdefault((item.source.id, item.text_at), []).append(item)
            continue
        if place is None or item.is_unconfirmed:
            alone.append(item)
        else:
            pages.setdefault((item.source.id, int(place[1]), int(place[2] or 1)), []).append(item)
    alone += [item for group in pages.values() if len(group) == 1 for item in group]
    return [
        *(
            requests.rechecked_page(group[0].source, tid, page, [item.external_id for item in group])
            for (_, tid, page), group in pages.items()
            if len(group) > 1
        ),
        *(_by_id(item) for item in alone),
        *(
            requests.comments(group[0].source, post_id, [item.external_id for item in group])
            for (_, post_id), group in commented.items()
        ),
    ]


def _by_id(item: Recheck) -> Request:
    number = int(item.external_id[1:])
    if item.external_id.startswith("p"):
        return requests.post(item.source, number, item.external_id)
    return requests.thread_page(item.source, number, 1).replace(item_id=item.external_id)


read = parser.read
refusal = errors.refusal
