"""A forum that a test writes by hand: a board with threads and numbered floors, twenty a page, and its platform.

`Board` stands where the fetch client would; the platform's language is JSON of its own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from catchment.errors import PlatformError
from catchment.fetch.responses import http_refusal
from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Forum,
    Item,
    Kind,
    Listing,
    Order,
    Platform,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
    ThreadPage,
    ThreadRow,
    VisitResult,
    WalkPlan,
)
from catchment.platforms._common.forum import PAGES_PER_RUN, WINDOW_DAYS
from catchment.store.items.deletion import remove_items
from catchment.store.store import Store
from tests.clocks import HandClock
from tests.playing import Answering, played
from tests.town import TownApp

LIST, FLOORS, POST = "https://forum.example/list", "https://forum.example/thread", "https://forum.example/post"
ROWS, PER_PAGE = 10, 20


@dataclass
class Post:
    pid: int
    text: str
    at: datetime
    is_shown: bool = True


@dataclass
class Thread:
    tid: int
    title: str
    at: datetime
    floors: dict[int, Post] = field(default_factory=dict)
    """By number; a number that is missing is a hole."""
    is_pinned: bool = False
    is_of_sub_board: bool = False
    last_number: int = 0
    listed_reply_at: datetime | None = None
    """What the list says of the last reply, if it is not the truth."""

    @property
    def shown(self) -> dict[int, Post]:
        return {number: post for number, post in self.floors.items() if post.is_shown}

    @property
    def last_reply_at(self) -> datetime:
        return max(post.at for post in self.shown.values())

    @property
    def page_count(self) -> int:
        return self.last_number // PER_PAGE + 1


class Board(Answering):
    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.threads: dict[int, Thread] = {}
        self.asked: list[str] = []
        self.says: dict[str, deque[PlatformError]] = {}
        """What it does instead of answering, by page asked for, once each."""
        self.copies: dict[str, deque[Any]] = {}
        """Old copies that it sends instead, by page asked for, once each."""
        self._pids = 1000
        self.seconds_a_page = 0.0
        """How long it takes to answer."""
        self.hook: Callable[[str], None] | None = None
        """Called with each page asked for, before the answer."""

    def thread(self, tid: int, pages: float = 1, *, title: str | None = None, at: datetime | None = None) -> Thread:
        """A thread with so many pages of floors."""
        thread = Thread(tid, title or f"Thread {tid}", at or self.clock.now())
        self.threads[tid] = thread
        self.reply(thread, round(pages * PER_PAGE), at=thread.at)
        return thread

    def reply(self, thread: Thread, count: int = 1, at: datetime | None = None) -> None:
        for _ in range(count):
            thread.last_number = thread.last_number + 1 if thread.floors else 0
            self._pids += 1
            text = f"floor {thread.last_number} of {thread.tid}"
            thread.floors[thread.last_number] = Post(self._pids, text, at or self.clock.now())

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        name = request.url.rpartition("/")[2]
        about = " ".join([name, *(str(value) for value in request.params.values())])
        self.asked.append(about)
        if self.hook is not None:
            self.hook(about)
        self.clock.advance(self.seconds_a_page)
        now = self.clock.now()
        if waiting := self.says.get(about):
            attempts.append(Attempt(platform.NAME, now, waiting[0].code, 0.0))
            raise waiting.popleft()
        copies = self.copies.get(about)
        body = copies.popleft() if copies else self._body(about)
        attempts.append(Attempt(platform.NAME, now, "200" if body is not None else "404", 0.0))
        answer = Answer(200 if body is not None else 404, {}, msgspec.json.encode(body), request.url, now)
        if (refused := http_refusal(answer, now)) is not None:
            raise refused
        return answer

    def copy(self, about: str, times: int = 1) -> None:
        """A cache keeps this page as it is now, and sends it so many times."""
        kept = msgspec.json.encode(self._body(about))
        self.copies.setdefault(about, deque()).extend(msgspec.json.decode(kept) for _ in range(times))

    def _body(self, about: str) -> Any:
        name, *numbers = about.split()
        return getattr(self, f"_{name}")(*map(int, numbers))

    def _list(self, page: int) -> Any:
        pinned = [thread for thread in self.threads.values() if thread.is_pinned]
        others = sorted(
            (thread for thread in self.threads.values() if not thread.is_pinned),
            key=lambda thread: (thread.at, thread.tid),
            reverse=True,
        )
        shown = [*(pinned if page == 1 else ()), *others[(page - 1) * ROWS : page * ROWS]]
        return {
            "rows": [
                {
                    "tid": thread.tid,
                    "title": thread.title,
                    "at": thread.at,
                    "last": thread.listed_reply_at or thread.last_reply_at,
                    "replies": thread.last_number,
                    "pinned": thread.is_pinned,
                    "elsewhere": thread.is_of_sub_board,
                }
                for thread in shown
            ],
            "more": len(others) > page * ROWS,
        }

    def _thread(self, tid: int, page: int) -> Any:
        thread = self.threads.get(tid)
        if thread is None:
            return None
        page = min(page, thread.page_count)
        numbers = range((page - 1) * PER_PAGE, min(page * PER_PAGE, thread.last_number + 1))
        return {
            "tid": tid,
            "title": thread.title,
            "page": page,
            "pages": thread.page_count,
            "floors": [(number, thread.shown[number]) for number in numbers if number in thread.shown],
            "numbers": list(numbers),
            "last": thread.last_reply_at,
        }

    def _post(self, pid: int) -> Any:
        for thread in self.threads.values():
            for number, post in thread.shown.items():
                if post.pid == pid:
                    return {"tid": thread.tid, "title": thread.title, "floors": [(number, post)], "numbers": []}
        return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    return [Request(LIST, params={"page": "1"}, listing=plan.listing)]


def floors(source: Source, thread_id: str, number: int) -> Request:
    return Request(FLOORS, params={"tid": thread_id, "page": str(number)}, step="floors")


def recheck(rechecks: list[Recheck]) -> list[Request]:
    """Several floors of one page by the page, as long as none of them was missing."""
    pages: dict[tuple[str, int], list[Recheck]] = {}
    alone = []
    for item in rechecks:
        assert item.thread_id is not None
        assert item.floor_number is not None
        if item.is_unconfirmed:
            alone.append(item)
        else:
            pages.setdefault((item.thread_id, item.floor_number // PER_PAGE + 1), []).append(item)
    alone += [item for group in pages.values() if len(group) == 1 for item in group]
    together = [
        Request(
            FLOORS,
            params={"tid": thread_id, "page": str(page)},
            step="floors",
            state={"rechecked": [item.external_id for item in group]},
        )
        for (thread_id, page), group in pages.items()
        if len(group) > 1
    ]
    return [
        *together,
        *(
            Request(POST, params={"pid": item.external_id[1:]}, step="post", item_id=item.external_id)
            for item in alone
            if item.external_id.startswith("p")
        ),
    ]


def read(answer: Answer, request: Request) -> Reading:
    body = msgspec.json.decode(answer.body)
    if request.url == LIST:
        return _rows(body, request)
    thread_id = str(body["tid"])
    items = tuple(
        Item(
            f"t{thread_id}" if number == 0 else f"p{post['pid']}",
            kind="floor",
            title=body["title"] if number == 0 else None,
            title_prefixes=tuple(re.findall(r"^\[([^]]+)\]", body["title"])) if number == 0 else (),
            text=post["text"],
            created_at=_time(post["at"]),
            author="ada",
            thread_id=thread_id,
            floor_number=number,
            is_head=number == 0,
        )
        for number, post in body["floors"]
    )
    if request.url == POST:
        return Reading(items)
    shown = {number for number, _ in body["floors"]}
    holes = tuple(number for number in body["numbers"] if number not in shown)
    last = _time(body["last"]) if "last" in body else None
    found = {item.external_id for item in items}
    return Reading(
        items,
        thread_page=ThreadPage(thread_id, body["page"], body["pages"], holes, last),
        gone=tuple(id_ for id_ in request.state.get("rechecked", ()) if id_ not in found),
    )


def _rows(body: Any, request: Request) -> Reading:
    items = tuple(
        Item(
            f"t{row['tid']}",
            kind="floor",
            title=row["title"],
            created_at=_time(row["at"]),
            author="ada",
            reply_count=row["replies"],
            last_reply_at=_time(row["last"]),
            thread_id=str(row["tid"]),
            is_head=True,
            is_pinned=row["pinned"],
            lacks_text=True,
            title_prefixes=tuple(re.findall(r"^\[([^]]+)\]", row["title"])),
        )
        for row in body["rows"]
    )
    threads = tuple(
        ThreadRow(
            str(row["tid"]), _time(row["last"]), row["replies"] // PER_PAGE + 1, row["pinned"] or row["elsewhere"]
        )
        for row in body["rows"]
    )
    page = int(request.params["page"]) + 1
    follow = (request.replace(params={"page": str(page)}),) if body["more"] else ()
    return Reading(items, threads=threads, follow=follow, is_end=not follow)


PLATFORM: Any = played(
    NAME="forum",
    KINDS=(
        Kind(
            "forum_board",
            "a board",
            720,
            "board:1",
            (Listing("list", Order.NEWEST_FIRST),),
            fields=(WINDOW_DAYS, PAGES_PER_RUN),
            item_kind="floor",
            forum=Forum(zone="Asia/Shanghai"),
            recheck_ages=(timedelta(days=7),),
        ),
    ),
    first=first,
    read=read,
    floors=floors,
    recheck=recheck,
)


class ForumApp(TownApp):
    """A deployment that follows one board."""

    def __init__(self, home: Any, database_url: str, **settings: Any) -> None:
        super().__init__(home, database_url)
        self.board = Board(self.clock)
        self.play(self.board, PLATFORM)
        from catchment.sources.add import follow

        app = self.app
        self.source, _ = follow(
            app.store, app.secrets, app.platforms, "forum_board", "board:1", self.clock.now(), settings=settings
        )

    def run(self, after: timedelta = timedelta(hours=12)) -> VisitResult:
        """One run over the board; `asked` has what it asked for."""
        self.board.asked.clear()
        (result,) = self.collect(self.source, after=after)
        return result

    @property
    def asked(self) -> list[str]:
        return self.board.asked

    def state(self, tid: int) -> Any:
        return self.app.store.threads.state(self.source.id, str(tid))

    def floors(self, tid: int) -> list[int]:
        """The numbers of the floors that are stored."""
        return sorted(floor_ids(self.app.store, str(tid)))

    def take_out(self, tid: int, *numbers: int) -> None:
        take_out(self.app.store, str(tid), *numbers)


def floor_ids(store: Store, thread_id: str) -> dict[int, int]:
    """The ids of the items on the floors of a thread, by floor number."""
    sql = "SELECT floor_number, id FROM items WHERE thread_id = ? AND floor_number IS NOT NULL"
    return store.database.read(lambda tx: dict(tx.all(sql, thread_id)))


def take_out(store: Store, thread_id: str, *numbers: int) -> None:
    """These floors were never stored, as far as one can tell."""
    ids = floor_ids(store, thread_id)
    store.database.write(lambda tx: remove_items(tx, [ids[number] for number in numbers]))
