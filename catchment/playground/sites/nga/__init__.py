"""Simulates NGA: boards and threads as HTML and as JSON, in GBK, with the cookie that guests need first.

All boards are behind two paths, `/thread.php?fid=…` and `/read.php?tid=…`. A guest is sent a page with a cookie that
counts a moment later, now and then only the next one; and now and then an advertisement instead of a page. An account
(`ngaPassportUid` and `ngaPassportCid`) is spared both.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from urllib.parse import parse_qs

from catchment.playground.faults import Fault
from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.sites.nga import markup, payloads
from catchment.playground.sites.nga.texts import escaped
from catchment.playground.sites.nga.threads import (
    FIRST_PID,
    FLOORS_A_PAGE,
    BoardFloor,
    BoardThread,
    fid_of,
    threads_of,
)
from catchment.playground.world import Place, World

NAME = "nga"
PATHS = ("/thread.php", "/read.php")
GUEST_PATIENCE = timedelta(seconds=0.25)
ADVERTISED, REFRESHED, BROKEN = 0.02, 0.1, 0.1
"""Shares of a guest's pages, of cookies that do not count yet, and of pages in compact JSON that are broken."""
GBK = {"Content-Type": "text/html; charset=GBK"}
COOKIE = re.compile(r"\bguestJs=(\d+)_(\d+)([a-z]?)")
GUEST_PAGE = """<html><head><meta http-equiv='Content-Type' content='text/html; charset=GBK'><title>访客不能直接访问</title></head>
<body>(ERROR:<!--msgcodestart-->15<!--msgcodeend-->) <!--msginfostart-->访客不能直接访问<!--msginfoend-->
<script>
document.cookie='guestJs={cookie};domain='+location.host
setTimeout(function(){{location.href=location.href+'&rand='+Math.floor(Math.random()*1000)}},300)
</script></body></html>"""  # noqa: E501
ERROR_PAGE = """<html><head><meta http-equiv='Content-Type' content='text/html; charset=GB18030'><title>{words}</title></head>
<body>(ERROR:<!--msgcodestart-->{code}<!--msgcodeend-->) <span>&gt;</span> <!--msginfostart-->{words}<!--msginfoend--><br/></body>
</html>"""  # noqa: E501
ADVERTISEMENT = """<html><head><meta http-equiv="Content-Type" content="text/html; charset=gb2312" />
<meta http-equiv="refresh" content="25; url=/" /><title>欢迎访问NGA玩家社区</title></head>
<body><a href="/misc/adpage_insert_2.html">继续访问</a></body></html>"""
REFUSALS = {
    429: ("", "访问速度过快"),
    401: ("", "未登录"),
    404: ("2048", "服务器忙,请稍后重试"),
    410: ("2048", "找不到主题"),
}
"""What the site answers where others send a status."""


class NgaSimulator:
    """Shows the posts of a world as boards of threads."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._boards = {fid_of(place): place for place in world.places if place.form == NAME}
        self._threads: dict[int, tuple[BoardThread, ...]] = {}

    def find(self, path: str) -> Place | None:
        return next(iter(self._boards.values()), None) if path in PATHS else None

    def board(self, query: str) -> Place | None:
        """The board that a request is about."""
        asked = _asked(query)
        if "fid" in asked:
            return self._boards.get(asked["fid"])
        numbers = [place for place in self._boards.values() if self._holds(place, asked)]
        return numbers[0] if numbers else None

    def _holds(self, place: Place, asked: dict[str, int]) -> bool:
        if "pid" in asked:
            return (asked["pid"] - FIRST_PID) // 1_000_000 == place.number
        return any(thread.tid == asked.get("tid") for thread in self.threads(place))

    def threads(self, place: Place) -> tuple[BoardThread, ...]:
        if place.number not in self._threads:
            self._threads[place.number] = threads_of(self.world, place)
        return self._threads[place.number]

    def answer(self, place: Place, ask: Ask) -> Page:
        form = _form(ask.query)
        if (wall := self._wall(ask, form)) is not None:
            return wall
        asked = _asked(ask.query)
        found = self.board(ask.query)
        if ask.path == "/thread.php":
            return self._list(found, asked.get("page", 1), form, ask) if found else _said("56", "版面ID不存在", form)
        return self._thread(found, asked, form, ask) if found else _said("2048", "找不到主题", form)

    def refused(self, fault: Fault, ask: Ask) -> Page:
        """Most errors come as a page with status 200; a 503 comes without a body."""
        assert fault.status is not None
        if fault.status in REFUSALS:
            code, words = REFUSALS[fault.status]
            return _said(code, words, _form(ask.query))
        return Page(fault.status, GBK)

    def who(self, headers: dict[str, str]) -> str | None:
        found = re.search(r"ngaPassportUid=(\d+)", headers.get("cookie", ""))
        return f"uid {found[1]}" if found else "guest"

    # ── what guests meet ──────────────────────────────────────────────────────────────────────────────────────────

    def _wall(self, ask: Ask, form: str) -> Page | None:
        cookies = ask.headers.get("cookie", "")
        if "ngaPassportCid=" in cookies:
            return None
        cookie = COOKIE.search(cookies)
        if cookie is None or not self._counts(cookie, ask.at):
            return _guest_page(ask, is_second=cookie is not None) if not form else _said("15", "访客不能直接访问", form)
        chance = chance_of(self.world.seed, "ad", ask.path, ask.query, ask.at)
        if not form and chance.random() < ADVERTISED:
            return Page(200, GBK, ADVERTISEMENT.encode("gb18030"))
        return None

    def _counts(self, cookie: re.Match[str], at: datetime) -> bool:
        issued = datetime.fromtimestamp(int(cookie[1]), at.tzinfo) + timedelta(milliseconds=int(cookie[2]))
        is_slow = not cookie[3] and chance_of(self.world.seed, "guest", cookie[0]).random() < REFRESHED
        return at - issued >= GUEST_PATIENCE and not is_slow

    # ── what they asked for ───────────────────────────────────────────────────────────────────────────────────────

    def _list(self, place: Place, number: int, form: str, ask: Ask) -> Page:
        at, fid = ask.at - ask.distortion.ago if number == 1 else ask.at, fid_of(place)
        there = [thread for thread in reversed(self.threads(place)) if thread.is_there(at)]
        begin = 0 if ask.distortion.is_looping else (number - 1) * payloads.ROWS_A_PAGE
        shown = there[begin : begin + payloads.ROWS_A_PAGE]
        if not shown and number > 1:
            return _said("2048", "没有符合条件的结果", form)
        if ask.distortion.is_reordered:
            chance_of(ask.path, ask.query, ask.at).shuffle(shown)
        rows = [
            payloads.row(thread, fid, at) for thread in shown for _ in range(2 if ask.distortion.is_repeated else 1)
        ]
        rows.insert(min(3, len(rows)), payloads.denied_row(700 + number, fid))
        rows += [payloads.mirror_row(thread, fid, at) for thread in shown if thread.is_mirrored]
        # The oldest thread is pinned: it is listed above the newest one, and where it belongs as well.
        topped = there[-1] if there else None
        if begin == 0 and topped is not None and topped not in shown:
            rows.insert(0, payloads.row(topped, fid, at))
        total = len(there)
        if form:
            listing = payloads.listing(rows, total, fid, escaped(place.name), topped.tid if topped else "")
            body = self._perhaps_broken(payloads.written(listing, form, at), form, ask)
        else:
            body = markup.board_page(rows, total, fid, place.name, number)
        # No entries: a row shows nothing of a post but its title.
        return Page(200, GBK, body)

    def _thread(self, place: Place, asked: dict[str, int], form: str, ask: Ask) -> Page:
        at, number = ask.at, asked.get("page", 1)
        if "pid" in asked:
            for thread in self.threads(place):
                floors = [floor for floor in thread.floors if floor.pid == asked["pid"] and floor.is_there(at)]
                if floors and thread.is_there(at) and not thread.is_hidden:
                    return self._page(thread, floors, 1, form, at)
            return _said("2048", "找不到主题", form)
        thread = next(thread for thread in self.threads(place) if thread.tid == asked["tid"])
        if thread.is_hidden and thread.is_there(at):
            return _said("", "帖子被设为隐藏", form)
        begin = (number - 1) * FLOORS_A_PAGE
        # A cache has an old copy only of a page that was there then.
        for then in (at - ask.distortion.ago, at):
            shown = [floor for floor in thread.floors[begin : begin + FLOORS_A_PAGE] if floor.is_there(then)]
            if thread.is_there(then) and shown:
                page = self._page(thread, shown, number, form, then)
                return page.replace(body=self._perhaps_broken(page.body, form, ask)) if form else page
        return _said("2048", "找不到主题", form)

    def _perhaps_broken(self, body: bytes, form: str, ask: Ask) -> bytes:
        """Some pages of the compact form have bytes that are neither text nor JSON, whenever they are requested."""
        if (
            form != "8"
            or chance_of(self.world.seed, "broken", ask.path, re.sub(r"&?rand=\d+", "", ask.query)).random() > BROKEN
        ):
            return body
        at = body.index(b'"subject":"') + len(b'"subject":"')
        return body[:at] + b'\xff\x80\\"' + body[at:]

    def _page(self, thread: BoardThread, floors: list[BoardFloor], number: int, form: str, at: datetime) -> Page:
        place = self.world.places[thread.head.place]
        numbers = {floor.number for floor in floors}
        # Below a post stand all comments on it, also those whose own rows are on other pages.
        comments = [
            floor
            for floor in thread.floors
            if floor.comments_on in numbers and floor.number not in numbers and floor.is_there(at)
        ]
        scores = {floor.post.id: max(0, self.world.counters(floor.post, at).score) for floor in (*floors, *comments)}
        fid, name = fid_of(place), place.name
        if form:
            rows = payloads.posts(floors, comments, thread, fid, at, scores)
            data = payloads.thread_page(thread, rows, [*floors, *comments], fid, escaped(name), number, at)
            body = payloads.written(data, form, at)
        else:
            body = markup.thread_page(thread, floors, comments, fid, name, number, at, scores)
        entries = []
        # In HTML, what stands below a post is a copy: the own row has the text as well.
        for floor in (*floors, *comments) if form else floors:
            # In JSON, text and score of a comment are only in the row of the floor that it comments on.
            is_bare = bool(form) and floor.comments_on is not None and floor.comments_on not in numbers
            score = None if is_bare else scores[floor.post.id]
            wire_id = f"p{floor.pid}" if floor.pid else f"t{thread.tid}"
            version = floor.post.version(at).number
            entries.append(Entry(floor.post.id, version, wire_id, score, is_withheld=is_bare))
        return Page(200, GBK, body, entries=tuple(entries))


SIMULATOR = NgaSimulator


def _asked(query: str) -> dict[str, int]:
    """The numbers in a query."""
    values = {name: found[0] for name, found in parse_qs(query).items()}
    return {name: int(value) for name, value in values.items() if re.fullmatch(r"-?\d{1,15}", value)}


def _form(query: str) -> str:
    """The requested form: HTML if it is empty."""
    values = parse_qs(query)
    return "js" if values.get("lite") == ["js"] else values.get("__output", [""])[0]


def _said(code: str, words: str, form: str) -> Page:
    """An error, in the form that was requested."""
    if not form:
        return Page(200, GBK, ERROR_PAGE.format(code=code, words=words).encode("gb18030"))
    told = f"{code}:{words}" if code else words
    document = {"error": {"0": told, "1": "", "2": ""} if code else [told]}
    return Page(200, {"Content-Type": "text/html"}, json.dumps(document, ensure_ascii=False).encode("gb18030"))


def _guest_page(ask: Ask, *, is_second: bool) -> Page:
    seconds, millis = int(ask.at.timestamp()), ask.at.microsecond // 1000
    cookie = f"{seconds}_{millis}{'r' if is_second else ''}"
    headers = {**GBK, "Set-Cookie": f"lastvisit={seconds}; path=/"}
    return Page(403, headers, GUEST_PAGE.format(cookie=cookie).encode("gb18030"))
